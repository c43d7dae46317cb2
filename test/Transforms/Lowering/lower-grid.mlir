// lamina-lower-grid: the block, the ids of programs, the place of temporaries.
// RUN: lamina-opt %s --split-input-file --lamina-lower-grid -canonicalize | FileCheck %s
// RUN: lamina-opt %s --split-input-file --lamina-lower-grid=max-stack=64 -canonicalize | FileCheck %s --check-prefix=SCRATCH

// CHECK-LABEL: func.func @grid2(
// CHECK-SAME: %[[B:.*]]: !llvm.ptr, %[[LO:.*]]: index, %[[HI:.*]]: index) attributes {kernel.grid
// CHECK: %[[P1:.*]] = llvm.getelementptr %[[B]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[M:.*]], %[[N:.*]]], strides: [%[[N]], 1]
// CHECK: scf.for %[[P:.*]] = %[[LO]] to %[[HI]]
// CHECK:   %[[ID1:.*]] = arith.remui %[[P]]
// CHECK:   %[[ID0:.*]] = arith.divui %[[P]]
// CHECK:   arith.muli %[[ID1]]
// CHECK:   arith.muli %[[ID0]]
// CHECK: return
kernel.func @grid2(%x: memref<f32>,
                   %o: memref<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1 * 2)>})
    attributes {outs = 1 : i64, kernel.grid = affine_map<()[s0, s1] -> (s0 ceildiv 4, (s1 * 2) ceildiv 8)>} {
  %m = kernel.symbol 0
  %s1 = kernel.symbol 1
  %n = affine.apply affine_map<()[s0] -> (s0 * 2)>()[%s1]
  scf.forall (%i, %j) = (0, 0) to (%m, %n) step (4, 8) {
    %v = memref.load %x[] : memref<f32>
    memref.store %v, %o[%i, %j] : memref<?x?xf32>
  }
  kernel.return
}

// -----

// A tail tile gets room for the whole tile, and a view of its own size.
// CHECK-LABEL: func.func @temporaries(
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK-DAG: %[[T:.*]] = memref.alloca() {alignment = 64 : i64} : memref<512xi8>
// CHECK: scf.for
// CHECK:   %[[SIZE:.*]] = affine.min
// CHECK:   memref.view %[[T]][%{{.*}}][%[[SIZE]]] : memref<512xi8> to memref<?xf32>
// CHECK-NOT: memref.dealloc
// SCRATCH: func.func private @lamina_scratch(i64) -> !llvm.ptr
// SCRATCH-LABEL: func.func @temporaries(
// SCRATCH: %[[BYTES:.*]] = arith.constant 576 : i64
// SCRATCH: call @lamina_scratch(%[[BYTES]])
// SCRATCH: %[[S:.*]] = memref.reinterpret_cast {{.*}} to memref<576xi8, strided<[1]>>
// SCRATCH: scf.for
// SCRATCH:   memref.view %[[S]]{{.*}} to memref<?xf32>
// SCRATCH:   memref.view %[[S]]{{.*}} to memref<4xf32>
kernel.func @temporaries(%o: memref<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>})
    attributes {outs = 1 : i64, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 128)>} {
  %n = kernel.symbol 0
  %c0 = arith.constant 0 : index
  scf.forall (%i) = (0) to (%n) step (128) {
    %size = affine.min affine_map<(d0)[s0] -> (128, s0 - d0)>(%i)[%n]
    %t = memref.alloc(%size) : memref<?xf32>
    %u = memref.alloc() : memref<4xf32>
    %v = memref.load %u[%c0] : memref<4xf32>
    memref.store %v, %t[%c0] : memref<?xf32>
    %w = memref.load %t[%c0] : memref<?xf32>
    memref.store %w, %o[%i] : memref<?xf32>
    memref.dealloc %t : memref<?xf32>
  }
  kernel.return
}

// -----

// A size that only the launch knows goes to the scratch memory.
// CHECK-LABEL: func.func @row(
// CHECK: sizes: [%{{.*}}, %[[N:.*]]], strides
// CHECK: arith.muli %[[N]], %c4
// CHECK: call @lamina_scratch
// CHECK: scf.for
// CHECK:   memref.view
kernel.func @row(%o: memref<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>})
    attributes {outs = 1 : i64, kernel.grid = affine_map<()[s0] -> (s0)>} {
  %m = kernel.symbol 0
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (%m) {
    %n = kernel.symbol 1
    %t = memref.alloc(%n) : memref<1x?xf32>
    %v = memref.load %t[%c0, %c0] : memref<1x?xf32>
    memref.store %v, %o[%i, %c0] : memref<?x?xf32>
  }
  kernel.return
}
