// lamina-fuse-kernels: what is not copied into panels.
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels="pack-widths=48,32 pack-tile-widths=16" | FileCheck %s
// CHECK-NOT: @init

// No width divides the columns.
// CHECK: kernel.launch @{{.*}} ins(%arg0, %arg1 : tensor<8x64xf32>, tensor<64x100xf32>)
func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x100xf32> {prim.constant = "w"}) -> tensor<8x100xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x64xf32>, tensor<64x100xf32>) -> tensor<8x100xf32>
  return %0 : tensor<8x100xf32>
}

// -----

// An input, and a constant that is the left operand.
// CHECK: kernel.launch @{{.*}} ins(%arg0, %arg1 : tensor<96x96xf32>, tensor<96x96xf32>)
func.func @main(%w: tensor<96x96xf32> {prim.constant = "w"}, %x: tensor<96x96xf32>) -> tensor<96x96xf32> {
  %0 = prim.dot_general %w, %x batch [] x [] contract [1] x [0] : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
  return %0 : tensor<96x96xf32>
}

// -----

// A batch of constants.
// CHECK: kernel.launch @{{.*}} ins(%arg0, %arg1 : tensor<2x8x64xf32>, tensor<2x64x96xf32>)
func.func @main(%x: tensor<2x8x64xf32>, %w: tensor<2x64x96xf32> {prim.constant = "w"}) -> tensor<2x8x96xf32> {
  %0 = prim.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<2x8x64xf32>, tensor<2x64x96xf32>) -> tensor<2x8x96xf32>
  return %0 : tensor<2x8x96xf32>
}

// -----

// A function of another name has no @init.
// CHECK: kernel.launch @{{.*}} ins(%arg0, %arg1 : tensor<8x64xf32>, tensor<64x96xf32>)
func.func @other(%x: tensor<8x64xf32>, %w: tensor<64x96xf32> {prim.constant = "w"}) -> tensor<8x96xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}
// CHECK-NOT: @init
