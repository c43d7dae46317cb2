// RUN: lamina-opt %s --split-input-file --lamina-lower-contractions | FileCheck %s
// RUN: lamina-opt %s --split-input-file --lamina-lower-contractions=vector-bits=256 | FileCheck %s --check-prefix=NARROW

// A whole number of tiles: panels of B outside the loop over rows, accumulators carried through k, no mask, no fill left.

// CHECK-LABEL: @matmul
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<[[P:[0-9]+]]x64x[[W:[0-9]+]]xf32>
// CHECK-NOT: linalg.fill
// CHECK: scf.for
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: vector.store {{.*}} memref<[[P]]x64x[[W]]xf32>
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>,
// CHECK: memref.load
// CHECK-NEXT: vector.broadcast {{.*}} : f32 to vector<16xf32>
// CHECK-NEXT: math.fma {{.*}} : vector<16xf32>
// CHECK-NOT: mask
// CHECK: vector.store
// CHECK-NOT: linalg
// CHECK: return
// NARROW-LABEL: @matmul
// NARROW: math.fma {{.*}} : vector<8xf32>
func.func @matmul(%A: memref<240x64xf32>, %B: memref<64x240xf32>, %C: memref<240x240xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<240x240xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], lamina.contraction}
    ins(%A, %B : memref<240x64xf32>, memref<64x240xf32>) outs(%C : memref<240x240xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Contiguous in k: squares of B are transposed in registers. Without a fill C is added to.

// CHECK-LABEL: @transposed
// CHECK-COUNT-64: vector.shuffle
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.maskedload
// CHECK: arith.addf
// CHECK: vector.maskedstore
func.func @transposed(%A: memref<?x64xf32>, %B: memref<?x64xf32>, %C: memref<?x?xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : memref<?x64xf32>, memref<?x64xf32>) outs(%C : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// One row, B contiguous in k: dot products, no copy of B.

// CHECK-LABEL: @vector_matrix
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.load
// CHECK: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK: math.fma
// CHECK: memref.store
func.func @vector_matrix(%A: memref<1x128xbf16>, %B: memref<64x128xbf16>, %C: memref<1x64xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : memref<1x128xbf16>, memref<64x128xbf16>) outs(%C : memref<1x64xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Packed panels are read where they are.

// CHECK-LABEL: @packed
// CHECK-NOT: memref.alloc
// CHECK: vector.load {{.*}} : memref<3x64x48xf32, {{.*}}>, vector<16xf32>
// CHECK-NEXT: vector.load
// CHECK-NEXT: vector.load
// CHECK-NEXT: memref.load
func.func @packed(%A: memref<32x64xf32>, %B: memref<3x64x48xf32>, %C: memref<32x3x48xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, p, w, k) -> (m, k)>, affine_map<(m, p, w, k) -> (p, k, w)>,
                     affine_map<(m, p, w, k) -> (m, p, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], lamina.contraction}
    ins(%A, %B : memref<32x64xf32>, memref<3x64x48xf32>) outs(%C : memref<32x3x48xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}
