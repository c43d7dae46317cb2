// RUN: lamina-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg{fuse=false}))' | FileCheck %s

// Without fusion a value with several readers is a tensor, and sizes come from tensor.dim.

// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>
// CHECK: tensor.dim %[[X]]
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[E]]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[E]]
func.func @shared(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = prim.exp %x : tensor<?xf32>
  %1 = prim.neg %0 : tensor<?xf32>
  %2 = prim.abs %0 : tensor<?xf32>
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// -----

// A reshape is a view.

// CHECK-LABEL: func.func @view
// CHECK: tensor.expand_shape
func.func @view(%x: tensor<6xf32>) -> tensor<2x3xf32> {
  %0 = prim.reshape %x : tensor<6xf32> to tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @symbol(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<i64> {
  // expected-error@+1 {{symbol s1 is not the size of any argument dimension}}
  %0 = prim.size [s1] : tensor<i64>
  return %0 : tensor<i64>
}
