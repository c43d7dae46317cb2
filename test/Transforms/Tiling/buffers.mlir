// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg),any(lamina-tile-kernels{pointwise-elements=64 reduce-elements=64 threads=2}),canonicalize,cse,lamina-bufferize-kernels)' | FileCheck %s

// In memory there are only temporaries of the size of a tile, and no copies.

// CHECK-LABEL: kernel.func @norm
// CHECK-NOT: memref<8x128xf32>{{$}}
// CHECK: scf.forall
// CHECK-NOT: memref.copy
// CHECK-NOT: memref.alloc{{.*}}memref<8x
// CHECK: kernel.return
kernel.func @norm(%x: tensor<8x128xf32>, %o: tensor<8x128xf32>, %om: tensor<8xf32>) attributes {outs = 2} {
  %n = prim.constant dense<128.0> : tensor<8xf32>
  %s = prim.reduce <sum> %x dims [1] : tensor<8x128xf32> to tensor<8xf32>
  %m = prim.div %s, %n : tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x128xf32>
  %c = prim.sub %x, %mb : tensor<8x128xf32>
  %e = prim.exp %c : tensor<8x128xf32>
  %q = prim.reduce <sum> %e dims [1] : tensor<8x128xf32> to tensor<8xf32>
  %qb = prim.broadcast %q dims [0] : tensor<8xf32> to tensor<8x128xf32>
  %r = prim.div %e, %qb : tensor<8x128xf32>
  kernel.return %r, %m : tensor<8x128xf32>, tensor<8xf32>
}

// -----

// The accumulators of a contraction are the output's memory.

// CHECK-LABEL: kernel.func @matmul
// CHECK-NOT: memref.alloc
// CHECK: lamina.contraction
// CHECK-NOT: memref.alloc
// CHECK: kernel.return
kernel.func @matmul(%x: tensor<16x32xf32>, %w: tensor<256x32xf32>, %o: tensor<16x256xf32>) attributes {outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<16x32xf32>, tensor<256x32xf32>) -> tensor<16x256xf32>
  kernel.return %d : tensor<16x256xf32>
}
