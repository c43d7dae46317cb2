// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-simplify-reshapes))' | FileCheck %s

// A linear layer with bias: the batch and sequence dimensions stay apart, for any size.
// CHECK-LABEL: @linear
// CHECK-NEXT: %[[D:.*]] = prim.dot_general %arg0, %arg1 batch [] x [] contract [2] x [1] : (tensor<?x?x16xf32>, tensor<4x16xf32>) -> tensor<?x?x4xf32>
// CHECK-NEXT: %[[B:.*]] = prim.broadcast %arg2 dims [2] sizes [s0, s1, 4] : tensor<4xf32> to tensor<?x?x4xf32>
// CHECK-NEXT: %[[A:.*]] = prim.add %[[D]], %[[B]] : tensor<?x?x4xf32>
// CHECK-NEXT: return %[[A]]
func.func @linear(%x: tensor<?x?x16xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1, 16)>}, %w: tensor<4x16xf32>, %b: tensor<4xf32>) -> tensor<?x?x4xf32> {
  %0 = prim.reshape %x sizes [s0 * s1, 16] : tensor<?x?x16xf32> to tensor<?x16xf32>
  %1 = prim.transpose %w [1, 0] : tensor<4x16xf32> to tensor<16x4xf32>
  %2 = prim.dot_general %0, %1 batch [] x [] contract [1] x [0] : (tensor<?x16xf32>, tensor<16x4xf32>) -> tensor<?x4xf32>
  %3 = prim.broadcast %b dims [1] sizes [s1 * s0, 4] : tensor<4xf32> to tensor<?x4xf32>
  %4 = prim.add %2, %3 : tensor<?x4xf32>
  %5 = prim.reshape %4 sizes [s0, s1, 4] : tensor<?x4xf32> to tensor<?x?x4xf32>
  return %5 : tensor<?x?x4xf32>
}

// Batched matmul on heads: what PyTorch makes of 4-d matmul.
// CHECK-LABEL: @heads
// CHECK-NEXT: %[[D:.*]] = prim.dot_general %arg0, %arg1 batch [0, 1] x [0, 1] contract [3] x [3] : (tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>) -> tensor<2x3x8x8xf32>
// CHECK-NEXT: return %[[D]]
func.func @heads(%q: tensor<2x3x8x16xf32>, %k: tensor<2x3x8x16xf32>) -> tensor<2x3x8x8xf32> {
  %0 = prim.transpose %k [0, 1, 3, 2] : tensor<2x3x8x16xf32> to tensor<2x3x16x8xf32>
  %1 = prim.reshape %q : tensor<2x3x8x16xf32> to tensor<6x8x16xf32>
  %2 = prim.reshape %0 : tensor<2x3x16x8xf32> to tensor<6x16x8xf32>
  %3 = prim.dot_general %1, %2 batch [0] x [0] contract [2] x [1] : (tensor<6x8x16xf32>, tensor<6x16x8xf32>) -> tensor<6x8x8xf32>
  %4 = prim.reshape %3 : tensor<6x8x8xf32> to tensor<2x3x8x8xf32>
  return %4 : tensor<2x3x8x8xf32>
}

// CHECK-LABEL: @chain
// CHECK-NEXT: %[[C:.*]] = prim.constant dense<2.000000e+00> : tensor<4x6xf32>
// CHECK-NEXT: %[[E:.*]] = prim.exp %arg0 : tensor<4x6xf32>
// CHECK-NEXT: %[[M:.*]] = prim.mul %[[E]], %[[C]] : tensor<4x6xf32>
// CHECK-NEXT: return %[[M]]
func.func @chain(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %c = prim.constant dense<2.0> : tensor<24xf32>
  %0 = prim.reshape %x : tensor<4x6xf32> to tensor<24xf32>
  %1 = prim.exp %0 : tensor<24xf32>
  %2 = prim.mul %1, %c : tensor<24xf32>
  %3 = prim.reshape %2 : tensor<24xf32> to tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// A value with other users is not computed twice.
// CHECK-LABEL: @shared
// CHECK-NEXT: %[[E:.*]] = prim.exp
// CHECK-NEXT: %[[R:.*]] = prim.reshape
// CHECK-NEXT: return %[[E]], %[[R]]
func.func @shared(%x: tensor<24xf32>) -> (tensor<24xf32>, tensor<4x6xf32>) {
  %0 = prim.exp %x : tensor<24xf32>
  %1 = prim.reshape %0 : tensor<24xf32> to tensor<4x6xf32>
  return %0, %1 : tensor<24xf32>, tensor<4x6xf32>
}

// The order of the free dimensions would change.
// CHECK-LABEL: @free_order
// CHECK: prim.transpose
// CHECK-NEXT: prim.dot_general
func.func @free_order(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<3x2x5xf32> {
  %0 = prim.transpose %x [1, 0, 2] : tensor<2x3x4xf32> to tensor<3x2x4xf32>
  %1 = prim.dot_general %0, %w batch [] x [] contract [2] x [0] : (tensor<3x2x4xf32>, tensor<4x5xf32>) -> tensor<3x2x5xf32>
  return %1 : tensor<3x2x5xf32>
}

// CHECK-LABEL: @transposes
// CHECK-NEXT: %[[B:.*]] = prim.broadcast %arg1 dims [0] sizes [s0, 3] : tensor<?xf32> to tensor<?x3xf32>
// CHECK-NEXT: %[[A:.*]] = prim.add %arg0, %[[B]] : tensor<?x3xf32>
// CHECK-NEXT: return %[[A]]
func.func @transposes(%x: tensor<?x3xf32> {prim.sizes = affine_map<()[s0] -> (s0, 3)>}, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<?x3xf32> {
  %0 = prim.transpose %x [1, 0] : tensor<?x3xf32> to tensor<3x?xf32>
  %1 = prim.broadcast %y dims [1] sizes [3, s0] : tensor<?xf32> to tensor<3x?xf32>
  %2 = prim.add %0, %1 : tensor<3x?xf32>
  %3 = prim.transpose %2 [1, 0] : tensor<3x?xf32> to tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}

// No reshape can tell which of two unknown sizes is which.
// CHECK-LABEL: @unknown
// CHECK: prim.reshape
// CHECK: prim.exp
func.func @unknown(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %0 = prim.reshape %x sizes [s0 * s1] : tensor<?x?xf32> to tensor<?xf32>
  %1 = prim.exp %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// A split goes above a concatenation of another dimension; of the one that is concatenated it stays.
// CHECK-LABEL: @concatenate
// CHECK-DAG: %[[X:.*]] = prim.reshape %arg0 : tensor<6x4xf32> to tensor<2x3x4xf32>
// CHECK-DAG: %[[Y:.*]] = prim.reshape %arg1 : tensor<6x2xf32> to tensor<2x3x2xf32>
// CHECK: %[[C:.*]] = prim.concatenate %[[X]], %[[Y]] dim 2
// CHECK: prim.concatenate %arg0, %arg1 dim 1
// CHECK-NEXT: prim.reshape %{{.*}} : tensor<6x6xf32> to tensor<6x2x3xf32>
func.func @concatenate(%x: tensor<6x4xf32>, %y: tensor<6x2xf32>) -> (tensor<2x3x6xf32>, tensor<6x2x3xf32>) {
  %0 = prim.concatenate %x, %y dim 1 : (tensor<6x4xf32>, tensor<6x2xf32>) -> tensor<6x6xf32>
  %1 = prim.reshape %0 : tensor<6x6xf32> to tensor<2x3x6xf32>
  %2 = prim.concatenate %x, %y dim 1 : (tensor<6x4xf32>, tensor<6x2xf32>) -> tensor<6x6xf32>
  %3 = prim.reshape %2 : tensor<6x6xf32> to tensor<6x2x3xf32>
  return %1, %3 : tensor<2x3x6xf32>, tensor<6x2x3xf32>
}

// A broadcast makes new dimensions of size 1 itself.
// CHECK-LABEL: @units
// CHECK-NOT: prim.reshape
// CHECK: prim.broadcast %arg1 dims [2, 3] : tensor<3x4xf32> to tensor<2x1x3x4xf32>
// CHECK-NOT: prim.reshape
func.func @units(%x: tensor<2x1x3x4xf32>, %y: tensor<3x4xf32>) -> tensor<2x1x3x4xf32> {
  %0 = prim.reshape %x : tensor<2x1x3x4xf32> to tensor<2x3x4xf32>
  %1 = prim.broadcast %y dims [1, 2] : tensor<3x4xf32> to tensor<2x3x4xf32>
  %2 = prim.add %0, %1 : tensor<2x3x4xf32>
  %3 = prim.reshape %2 : tensor<2x3x4xf32> to tensor<2x1x3x4xf32>
  return %3 : tensor<2x1x3x4xf32>
}
