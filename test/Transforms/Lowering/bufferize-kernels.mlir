// lamina-bufferize-kernels: layouts of arguments, in-place results, temporaries inside the grid, copies.
// RUN: lamina-opt %s --split-input-file --lamina-bufferize-kernels | FileCheck %s

// Rows of a softmax-like kernel: the output is written in place, only row temporaries are allocated.
// CHECK-LABEL: kernel.func @rows(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32, strided<[1, ?]>>
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<?x?xf32>
// CHECK-SAME: attributes {kernel.grid = {{.*}}, outs = 1 : i64}
// CHECK-NOT: memref.alloc
// CHECK: scf.forall (%[[I:.*]]) in
// CHECK:   memref.subview %[[X]]
// CHECK:   %[[T:.*]] = memref.alloc() {{.*}} : memref<1xf32>
// CHECK:   linalg.generic {{.*}} outs(%[[T]]
// CHECK:   %[[R:.*]] = memref.subview %[[O]]
// CHECK:   linalg.generic {{.*}} outs(%[[R]]
// CHECK-NOT: memref.copy
// CHECK-NOT: linalg.generic
// CHECK: kernel.return
kernel.func @rows(%x: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>, kernel.strides = affine_map<()[s0] -> (1, s0)>},
                  %o: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>})
    attributes {outs = 1 : i64, kernel.grid = affine_map<()[s0] -> (s0)>} {
  %m = kernel.symbol 0
  %n = kernel.symbol 1
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (%m) shared_outs(%a = %o) -> (tensor<?x?xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<1x?xf32>
    %e = tensor.empty() : tensor<1xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
                         iterator_types = ["parallel", "reduction"]} ins(%row : tensor<1x?xf32>) outs(%f : tensor<1xf32>) {
    ^bb0(%v: f32, %acc: f32):
      %t = arith.addf %v, %acc : f32
      linalg.yield %t : f32
    } -> tensor<1xf32>
    %empty = tensor.empty(%n) : tensor<1x?xf32>
    %d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
                         iterator_types = ["parallel", "parallel"]} ins(%row, %s : tensor<1x?xf32>, tensor<1xf32>) outs(%empty : tensor<1x?xf32>) {
    ^bb0(%v: f32, %w: f32, %u: f32):
      %t = arith.divf %v, %w : f32
      linalg.yield %t : f32
    } -> tensor<1x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %a[%i, 0] [1, %n] [1, 1] : tensor<1x?xf32> into tensor<?x?xf32>
    }
  }
  kernel.return %r : tensor<?x?xf32>
}

// -----

// Without a grid the value goes straight to the output.
// CHECK-LABEL: kernel.func @scalar(
// CHECK-SAME: %[[X:.*]]: memref<f32>, %[[O:.*]]: memref<f32>
// CHECK-NOT: memref.alloc
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<f32>) outs(%[[O]] : memref<f32>)
// CHECK-NOT: linalg.generic
kernel.func @scalar(%x: tensor<f32>, %o: tensor<f32>) attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (1)>} {
  %e = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%x : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%v: f32, %u: f32):
    %t = arith.negf %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  kernel.return %r : tensor<f32>
}

// -----

// An input is not written: what is returned is copied, by a linalg.generic.
// CHECK-LABEL: kernel.func @copy(
// CHECK-SAME: %[[X:.*]]: memref<4x8xf32, strided<[1, 4]>> {{.*}}, %[[O:.*]]: memref<4x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[O]] : memref<4x8xf32>)
// CHECK-NOT: memref.copy
kernel.func @copy(%x: tensor<4x8xf32> {kernel.strides = affine_map<() -> (1, 4)>}, %o: tensor<4x8xf32>)
    attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (1)>} {
  kernel.return %x : tensor<4x8xf32>
}

// -----

// Two reductions that start from one tensor each start in their own output.
// CHECK-LABEL: kernel.func @shared_start(
// CHECK-SAME: %[[A:[a-z0-9]*]]: memref<5xi64>, %[[B:[a-z0-9]*]]: memref<5xi64>, %[[O:.*]]: memref<i64>, %[[P:.*]]: memref<i64>)
// CHECK-NOT: memref.alloc
// CHECK-DAG: linalg.fill {{.*}} outs(%[[O]] : memref<i64>)
// CHECK-DAG: linalg.fill {{.*}} outs(%[[P]] : memref<i64>)
// CHECK: linalg.generic {{.*}} ins(%[[A]] : {{.*}}) outs(%[[O]] : memref<i64>)
// CHECK: linalg.generic {{.*}} ins(%[[B]] : {{.*}}) outs(%[[P]] : memref<i64>)
// CHECK-NOT: linalg.generic
kernel.func @shared_start(%a: tensor<5xi64>, %b: tensor<5xi64>, %o: tensor<i64>, %p: tensor<i64>)
    attributes {outs = 2 : i64, kernel.grid = affine_map<() -> (1)>} {
  %c = arith.constant -1 : i64
  %e = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%c : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%a : tensor<5xi64>) outs(%f : tensor<i64>) {
  ^bb0(%x: i64, %y: i64):
    %s = arith.addi %x, %y : i64
    linalg.yield %s : i64
  } -> tensor<i64>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%b : tensor<5xi64>) outs(%f : tensor<i64>) {
  ^bb0(%x: i64, %y: i64):
    %s = arith.muli %x, %y : i64
    linalg.yield %s : i64
  } -> tensor<i64>
  kernel.return %0, %1 : tensor<i64>, tensor<i64>
}
