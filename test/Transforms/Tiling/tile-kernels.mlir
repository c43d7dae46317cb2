// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg),any(lamina-tile-kernels{pointwise-elements=64 reduce-elements=64 threads=2}),canonicalize,cse)' | FileCheck %s

// A row kernel: one row a program; temporaries are as large as a row, and the result is written in place.

// CHECK: #[[GRID:.*]] = affine_map<() -> (8)>
// CHECK: kernel.func @softmax
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: scf.forall (%[[I:.*]]) in (8) shared_outs(%[[O:.*]] = %{{.*}}) -> (tensor<8x128xf32>)
// CHECK: %[[D:.*]] = tensor.extract_slice %[[O]][%[[I]], 0] [1, 128] [1, 1]
// CHECK: tensor.extract_slice %arg0[%[[I]], 0] [1, 128] [1, 1]
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<1x128xf32>, tensor<1xf32>)
// CHECK: math.exp
// CHECK: %[[R:.*]] = linalg.generic
// CHECK-SAME: outs(%[[D]]
// CHECK: tensor.parallel_insert_slice %[[R]] into %[[O]][%[[I]], 0] [1, 128] [1, 1]
kernel.func @softmax(%x: tensor<8x128xf32>, %o: tensor<8x128xf32>) attributes {outs = 1} {
  %m = prim.reduce <max> %x dims [1] : tensor<8x128xf32> to tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x128xf32>
  %d = prim.sub %x, %mb : tensor<8x128xf32>
  %e = prim.exp %d : tensor<8x128xf32>
  %s = prim.reduce <sum> %e dims [1] : tensor<8x128xf32> to tensor<8xf32>
  %sb = prim.broadcast %s dims [0] : tensor<8xf32> to tensor<8x128xf32>
  %r = prim.div %e, %sb : tensor<8x128xf32>
  kernel.return %r : tensor<8x128xf32>
}

// -----

// A flat kernel of unknown size: the last tile is shorter.

// CHECK: #[[GRID:.*]] = affine_map<()[s0] -> (s0 ceildiv 64)>
// CHECK: #[[TAIL:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
// CHECK: kernel.func @flat
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: %[[S:.*]] = kernel.symbol 0
// CHECK: scf.forall (%[[I:.*]]) = (0) to (%[[S]]) step (64)
// CHECK: %[[N:.*]] = affine.min #[[TAIL]](%[[I]])[%[[S]]]
// CHECK: tensor.extract_slice %{{.*}}[%[[I]]] [%[[N]]] [1]
kernel.func @flat(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  %0 = prim.exp %x : tensor<?xf32>
  kernel.return %0 : tensor<?xf32>
}

// -----

// Short rows are taken together.

// CHECK: #[[GRID:.*]] = affine_map<() -> (4)>
// CHECK: kernel.func @short
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: scf.forall (%{{.*}}) = (0) to (32) step (8)
kernel.func @short(%x: tensor<32x8xf32>, %o: tensor<32xf32>) attributes {outs = 1} {
  %0 = prim.reduce <sum> %x dims [1] : tensor<32x8xf32> to tensor<32xf32>
  kernel.return %0 : tensor<32xf32>
}

// -----

// Across rows: a block of columns.

// CHECK: #[[GRID:.*]] = affine_map<() -> (4)>
// CHECK: kernel.func @columns
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: scf.forall (%{{.*}}) = (0) to (256) step (64)
kernel.func @columns(%x: tensor<1000x256xf32>, %o: tensor<256xf32>) attributes {outs = 1} {
  %0 = prim.reduce <sum> %x dims [0] : tensor<1000x256xf32> to tensor<256xf32>
  kernel.return %0 : tensor<256xf32>
}

// -----

// A contraction: all rows, a block of columns, the whole depth.

// CHECK: #[[GRID:.*]] = affine_map<() -> (4)>
// CHECK: kernel.func @linear
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: scf.forall (%[[J:.*]]) = (0) to (256) step (64)
// CHECK: tensor.extract_slice %{{.*}}[%[[J]], 0] [64, 32] [1, 1]
// CHECK: linalg.generic
// CHECK-SAME: lamina.contraction
kernel.func @linear(%x: tensor<16x32xf32>, %w: tensor<256x32xf32>, %o: tensor<16x256xf32>) attributes {outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<16x32xf32>, tensor<256x32xf32>) -> tensor<16x256xf32>
  %r = prim.neg %d : tensor<16x256xf32>
  kernel.return %r : tensor<16x256xf32>
}

// -----

// A convolution: one image and a block of rows; the padded input of a program is what its rows read.

// CHECK: #[[GRID:.*]] = affine_map<() -> (4)>
// CHECK: kernel.func @conv
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: scf.forall
// CHECK: tensor<1x4x10x34xf32>
// CHECK: lamina.padding
// CHECK: lamina.convolution
kernel.func @conv(%x: tensor<1x4x32x32xf32>, %w: tensor<8x4x3x3xf32>, %o: tensor<1x8x32x32xf32>) attributes {outs = 1} {
  %0 = prim.convolution %x, %w strides [1, 1] low [1, 1] high [1, 1] lhs_dilations [1, 1] dilations [1, 1] groups 1 : (tensor<1x4x32x32xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x32x32xf32>
  kernel.return %0 : tensor<1x8x32x32xf32>
}

// -----

// Rows of a scan along columns are programs; a temporary that is read at computed indices is whole in each program.

// CHECK: #[[GRID:.*]] = affine_map<() -> (2)>
// CHECK: kernel.func @scan
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK: scf.forall
// CHECK: scf.for
// CHECK: lamina.scan
kernel.func @scan(%x: tensor<2x64xf32>, %o: tensor<2x64xf32>) attributes {outs = 1} {
  %0 = prim.scan <sum> %x dim 1 : tensor<2x64xf32>
  kernel.return %0 : tensor<2x64xf32>
}

// -----

// A scatter is one program.

// CHECK: kernel.func @scatter
// CHECK-NOT: scf.forall
// CHECK: lamina.scatter
kernel.func @scatter(%x: tensor<4x3xf32>, %u: tensor<6x3xf32>, %i: tensor<6xi64>, %o: tensor<4x3xf32>) attributes {outs = 1} {
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] : (tensor<4x3xf32>, tensor<6x3xf32>, tensor<6xi64>) -> tensor<4x3xf32>
  kernel.return %0 : tensor<4x3xf32>
}

// -----

// CHECK: #[[GRID:.*]] = affine_map<() -> (1)>
// CHECK: kernel.func @scalar
// CHECK-SAME: kernel.grid = #[[GRID]]
// CHECK-NOT: scf.forall
kernel.func @scalar(%x: tensor<f32>, %o: tensor<f32>) attributes {outs = 1} {
  %0 = prim.exp %x : tensor<f32>
  kernel.return %0 : tensor<f32>
}
