// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg))' | FileCheck %s

// A transposed weight is a map; the bias and relu are one more generic.

// CHECK-DAG: #[[$LHS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$RHS:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$OUT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: kernel.func @linear
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[W:.*]]: tensor<32x16xf32>, %[[B:.*]]: tensor<32xf32>
// CHECK: %[[D:.*]] = linalg.generic {indexing_maps = [#[[$LHS]], #[[$RHS]], #[[$OUT]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[W]]
// CHECK-SAME: lamina.contraction
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[D]], %[[B]]
// CHECK: arith.addf
// CHECK: arith.maximumf
kernel.func @linear(%x: tensor<8x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>, %o: tensor<8x32xf32>) attributes {outs = 1} {
  %t = prim.transpose %w [1, 0] : tensor<32x16xf32> to tensor<16x32xf32>
  %d = prim.dot_general %x, %t batch [] x [] contract [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %bb = prim.broadcast %b dims [1] : tensor<32xf32> to tensor<8x32xf32>
  %s = prim.add %d, %bb : tensor<8x32xf32>
  %z = prim.constant dense<0.0> : tensor<8x32xf32>
  %r = prim.max %s, %z : tensor<8x32xf32>
  kernel.return %r : tensor<8x32xf32>
}

// -----

// Arithmetic on an operand is done before; a widening conversion in the body.

// CHECK-LABEL: kernel.func @prologue
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[W:.*]]: tensor<16x32xbf16>
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[E]], %[[W]]
// CHECK-SAME: lamina.contraction
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.mulf
// CHECK: arith.addf
kernel.func @prologue(%x: tensor<8x16xf32>, %w: tensor<16x32xbf16>, %o: tensor<8x32xf32>) attributes {outs = 1} {
  %e = prim.exp %x : tensor<8x16xf32>
  %f = prim.convert %w : tensor<16x32xbf16> to tensor<16x32xf32>
  %d = prim.dot_general %e, %f batch [] x [] contract [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  kernel.return %d : tensor<8x32xf32>
}

// -----

// Zeros around the input are a generic of their own.

// CHECK-DAG: #[[IN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 * 2 + d5, d3 * 2 + d6)>
// CHECK-LABEL: kernel.func @conv
// CHECK: %[[P:.*]] = linalg.generic
// CHECK-SAME: lamina.padding
// CHECK: tensor.extract
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[P]]
// CHECK-SAME: lamina.convolution
kernel.func @conv(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %o: tensor<1x6x4x4xf32>) attributes {outs = 1} {
  %0 = prim.convolution %x, %w strides [2, 2] low [1, 1] high [1, 1] lhs_dilations [1, 1] dilations [1, 1] groups 1 : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x4x4xf32>
  kernel.return %0 : tensor<1x6x4x4xf32>
}

// -----

// Groups of channels are a dimension.

// CHECK-LABEL: kernel.func @groups
// CHECK-DAG: tensor.expand_shape %{{.*}} : tensor<1x4x8x8xf32> into tensor<1x2x2x8x8xf32>
// CHECK-DAG: tensor.expand_shape %{{.*}} : tensor<6x2x3x3xf32> into tensor<2x3x2x3x3xf32>
// CHECK: lamina.convolution
// CHECK: tensor.collapse_shape
kernel.func @groups(%x: tensor<1x4x8x8xf32>, %w: tensor<6x2x3x3xf32>, %o: tensor<1x6x6x6xf32>) attributes {outs = 1} {
  %0 = prim.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] lhs_dilations [1, 1] dilations [1, 1] groups 2 : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x6x6xf32>
  kernel.return %0 : tensor<1x6x6x6xf32>
}

// -----

// CHECK-LABEL: kernel.func @pool
// CHECK: lamina.window
// CHECK: arith.maximumf
kernel.func @pool(%x: tensor<1x4x8x8xf32>, %o: tensor<1x4x4x4xf32>) attributes {outs = 1} {
  %0 = prim.reduce_window <max> %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] low [0, 0, 0, 0] high [0, 0, 0, 0] : tensor<1x4x8x8xf32> to tensor<1x4x4x4xf32>
  kernel.return %0 : tensor<1x4x4x4xf32>
}
