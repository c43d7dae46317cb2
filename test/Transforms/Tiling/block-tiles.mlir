// Tiles of matrix products for blocks of a GPU: what is given, or what the cost model takes for the machine.
// RUN: lamina-opt %s -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg),any(lamina-tile-kernels{block-tiles=true}))' | FileCheck %s
// RUN: lamina-opt %s -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg),any(lamina-tile-kernels{block-tiles=true multiprocessors=2 shared-bytes=65536}))' | FileCheck %s --check-prefix=SMALL

// CHECK: affine_map<() -> (128, 64)>
// CHECK-LABEL: kernel.func @given
// CHECK-SAME: kernel.grouped
// CHECK-SAME: kernel.tile = array<i64: 32, 64, 16>
kernel.func @given(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>, %o: tensor<4096x4096xf16>) attributes {kernel.tile = array<i64: 32, 64, 16>, outs = 1} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  kernel.return %0 : tensor<4096x4096xf16>
}

// Many programs: the largest tile, whose operands are read least often; less where shared memory does not hold it.
// CHECK-LABEL: kernel.func @large
// CHECK-SAME: kernel.tile = array<i64: 128, 256, 64>
// SMALL-LABEL: kernel.func @large
// SMALL-SAME: kernel.tile = array<i64: 64, 64, 64>
kernel.func @large(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>, %o: tensor<4096x4096xf16>) attributes {outs = 1} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  kernel.return %0 : tensor<4096x4096xf16>
}

// Few programs: small tiles, so that all multiprocessors have one.
// CHECK-LABEL: kernel.func @few
// CHECK-SAME: kernel.tile = array<i64: 32, 32, 32>
kernel.func @few(%x: tensor<128x768xf32>, %w: tensor<768x768xf32>, %o: tensor<128x768xf32>) attributes {outs = 1} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  kernel.return %0 : tensor<128x768xf32>
}

// No side longer than the product's.
// CHECK-LABEL: kernel.func @thin
// CHECK-SAME: kernel.tile = array<i64: 16, {{[0-9]+}}, 64>
kernel.func @thin(%x: tensor<3x4096xbf16>, %w: tensor<4096x4096xbf16>, %o: tensor<3x4096xbf16>) attributes {outs = 1} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<3x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<3x4096xbf16>
  kernel.return %0 : tensor<3x4096xbf16>
}

// Of other kernels, elements of a program: 4 rows of 256, or 8.
// CHECK-LABEL: kernel.func @elements
// CHECK: scf.forall {{.*}} step (4)
kernel.func @elements(%x: tensor<128x256xf32>, %o: tensor<128x256xf32>) attributes {kernel.elements = 1024, outs = 1} {
  %0 = prim.tanh %x : tensor<128x256xf32>
  kernel.return %0 : tensor<128x256xf32>
}

// CHECK-LABEL: kernel.func @rows
// CHECK: scf.forall {{.*}} step (8)
kernel.func @rows(%x: tensor<128x256xf32>, %o: tensor<128xf32>) attributes {kernel.elements = 2048, outs = 1} {
  %0 = prim.reduce <sum> %x dims [1] : tensor<128x256xf32> to tensor<128xf32>
  kernel.return %0 : tensor<128xf32>
}
