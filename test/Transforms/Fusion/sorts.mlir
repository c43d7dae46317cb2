// RUN: lamina-opt %s --lamina-fuse-kernels | FileCheck %s

// The values of a sort are read at its indices.
// CHECK-LABEL: func.func @main
// CHECK: %[[ORDER:.*]] = kernel.launch @k_sort [] ins(%[[X:.*]] : tensor<4x8xf32>) -> tensor<4x8xi64>
// CHECK: kernel.launch @k_gather [] ins(%[[X]], %[[ORDER]] :
// CHECK: kernel.func @k_sort
// CHECK: %[[VALUES:.*]], %[[INDICES:.*]] = prim.sort
// CHECK: kernel.return %[[INDICES]]
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi64>) {
  %0, %1 = prim.sort %x dim 1 descending false : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xi64>
}
