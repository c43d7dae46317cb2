// RUN: lamina-opt %s --pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,canonicalize,cse))' | FileCheck %s
// RUN: lamina-opt %s --pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,canonicalize,cse,lamina-tile-kernels,canonicalize,cse),lamina-bufferize-kernels)' | FileCheck %s --check-prefix=BUFFERS

// Rows are a loop; in each, indices are merged into another row and back.
// CHECK-LABEL: kernel.func @rows
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64
// CHECK: linalg.index 0
// CHECK: scf.for %{{.*}} = %{{.*}} to %c10{{(_.*)?}} step %c2
// CHECK-COUNT-2: scf.for {{.*}} -> (index, index, tensor<1000xi64>)
// CHECK: lamina.sort = {descending = false, dim = 1 : i64, element_type = f32}

// Programs share the rows, and the indices begin where they end: one row is temporary, and nothing is copied.
// BUFFERS-LABEL: kernel.func @rows
// BUFFERS-SAME: %[[X:.*]]: memref<64x1000xf32>, %[[OUT:.*]]: memref<64x1000xi64>
// BUFFERS: scf.forall
// BUFFERS-COUNT-1: memref.alloc() {{.*}} : memref<1000xi64>
// BUFFERS-NOT: memref.alloc
// BUFFERS-COUNT-1: linalg.generic
// BUFFERS-NOT: linalg.generic
// BUFFERS: kernel.return
kernel.func @rows(%x: tensor<64x1000xf32>, %out: tensor<64x1000xi64>) attributes {outs = 1 : i64} {
  %0, %1 = prim.sort %x dim 1 descending false : tensor<64x1000xf32>
  kernel.return %1 : tensor<64x1000xi64>
}
