// lamina-sink-below-concatenates: ops between parts of values and a concatenation are computed after it, where they were.
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-sink-below-concatenates,lamina-erase-dead))' | FileCheck %s

// CHECK-LABEL: @rotate
// CHECK-DAG: %[[A:.*]] = prim.slice %arg0 [0, 4]
// CHECK-DAG: %[[B:.*]] = prim.slice %arg0 [0, 0]
// CHECK: %[[I:.*]] = prim.iota 1 : tensor<4x8xi64>
// CHECK: %[[C:.*]] = prim.concatenate %[[A]], %[[B]] dim 1
// CHECK: %[[N:.*]] = prim.neg %[[C]] : tensor<4x8xf32>
// CHECK: %[[P:.*]] = prim.compare <lt> %[[I]], %{{.*}} : tensor<4x8xi64>
// CHECK: %[[S:.*]] = prim.select %[[P]], %[[N]], %[[C]]
// CHECK: return %[[S]]
func.func @rotate(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = prim.slice %x [0, 4] to [4, 8] step [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %1 = prim.neg %0 : tensor<4x4xf32>
  %2 = prim.slice %x [0, 0] to [4, 4] step [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %3 = prim.concatenate %1, %2 dim 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// In the middle: both bounds. An op may read its operand twice. A symbol may be a size of another dimension.
// CHECK-LABEL: @middle
// CHECK: %[[C:.*]] = prim.concatenate %arg0, %arg1, %arg0 dim 1
// CHECK: %[[M:.*]] = prim.mul %[[C]], %[[C]] : tensor<?x6xf32>
// CHECK: %[[E:.*]] = prim.exp %[[M]] : tensor<?x6xf32>
// CHECK: %[[G:.*]] = prim.compare <ge>
// CHECK: %[[L:.*]] = prim.compare <lt>
// CHECK: %[[P:.*]] = prim.and %[[G]], %[[L]] : tensor<?x6xi1>
// CHECK: prim.select %[[P]], %[[E]], %[[C]]
func.func @middle(%x: tensor<?x2xf32> {prim.sizes = affine_map<()[s0] -> (s0, 2)>}, %y: tensor<?x2xf32> {prim.sizes = affine_map<()[s0] -> (s0, 2)>}) -> tensor<?x6xf32> {
  %0 = prim.mul %y, %y : tensor<?x2xf32>
  %1 = prim.exp %0 : tensor<?x2xf32>
  %2 = prim.concatenate %x, %1, %x dim 1 : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x6xf32>
  return %2 : tensor<?x6xf32>
}

// What computes the part can do the rest as well; a value with other readers is needed as it is; a conversion changes
// the type; a size that is not known gives no bound.
// CHECK-LABEL: @stay
// CHECK-NOT: prim.select
func.func @stay(%x: tensor<4xf32>, %y: tensor<4xf16>, %z: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<?xf32>) {
  %0 = prim.reduce <max> %x dims [] : tensor<4xf32> to tensor<4xf32>
  %1 = prim.neg %0 : tensor<4xf32>
  %2 = prim.concatenate %1, %x dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %3 = prim.exp %x : tensor<4xf32>
  %4 = prim.concatenate %3, %x dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %5 = prim.convert %y : tensor<4xf16> to tensor<4xf32>
  %6 = prim.concatenate %5, %x dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %7 = prim.neg %z : tensor<?xf32>
  %8 = prim.concatenate %7, %x dim 0 : (tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
  return %2, %4, %3, %6, %8 : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<?xf32>
}
