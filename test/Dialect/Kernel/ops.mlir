// RUN: lamina-opt %s | lamina-opt | FileCheck %s

// CHECK-LABEL: kernel.func @scale
// CHECK-SAME: kernel.strides
// CHECK-SAME: kernel.grid = #[[GRID:.*]], outs
kernel.func @scale(%x: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>, kernel.strides = affine_map<()[s0] -> (1, s0)>},
                   %out: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>})
    attributes {outs = 1, kernel.grid = affine_map<()[s0] -> (s0 ceildiv 32)>} {
  // CHECK: kernel.symbol 0
  %n = kernel.symbol 0
  %0 = prim.add %x, %x : tensor<?x4xf32>
  // CHECK: kernel.return %{{.*}} : tensor<?x4xf32>
  kernel.return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x?xf32> {prim.sizes = affine_map<()[s0] -> (4, s0)>}, %out: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>})
    attributes {kernel.arena = affine_map<()[s0] -> (s0 * 16)>} {
  // CHECK: kernel.view %arg0 offset [0] sizes [s0, 4] strides [1, s0] : tensor<4x?xf32> to tensor<?x4xf32>
  %0 = kernel.view %x offset [0] sizes [s0, 4] strides [1, s0] : tensor<4x?xf32> to tensor<?x4xf32>
  // CHECK: kernel.alloc slot 0 offset [0] bytes [s0 * 16] : tensor<?x4xf32>
  %1 = kernel.alloc slot 0 offset [0] bytes [s0 * 16] : tensor<?x4xf32>
  // CHECK: kernel.launch @scale [s0] ins(%{{.*}} : tensor<?x4xf32>) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = kernel.launch @scale [s0] ins(%0 : tensor<?x4xf32>) outs(%1 : tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}
