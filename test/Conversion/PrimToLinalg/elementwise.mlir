// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg))' | FileCheck %s

// A chain, a broadcast and a transpose are one generic; equal reads are one input.

// CHECK: #[[$TRANSPOSED:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: kernel.func @chain
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[B]] : tensor<8x4xf32>, tensor<8xf32>)
// CHECK: ^bb0(%[[A:.*]]: f32, %[[C:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[E:.*]] = math.exp %[[A]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[C]]
// CHECK-NEXT: %[[M:.*]] = arith.maximumf %[[S]], %[[A]]
// CHECK-NEXT: linalg.yield %[[M]]
// CHECK-NOT: linalg.generic
// CHECK: kernel.return
kernel.func @chain(%x: tensor<8x4xf32>, %b: tensor<8xf32>, %o: tensor<4x8xf32>) attributes {outs = 1} {
  %0 = prim.exp %x : tensor<8x4xf32>
  %1 = prim.transpose %0 [1, 0] : tensor<8x4xf32> to tensor<4x8xf32>
  %2 = prim.broadcast %b dims [1] : tensor<8xf32> to tensor<4x8xf32>
  %3 = prim.add %1, %2 : tensor<4x8xf32>
  %4 = prim.transpose %x [1, 0] : tensor<8x4xf32> to tensor<4x8xf32>
  %5 = prim.max %3, %4 : tensor<4x8xf32>
  kernel.return %5 : tensor<4x8xf32>
}

// -----

// Narrow floats are rounded after every op.

// CHECK-LABEL: kernel.func @narrow
// CHECK: ^bb0(%[[A:.*]]: bf16, %{{.*}}: bf16):
// CHECK-NEXT: %[[A32:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT: %[[E:.*]] = math.exp %[[A32]] : f32
// CHECK-NEXT: %[[E16:.*]] = arith.truncf %[[E]] : f32 to bf16
// CHECK-NEXT: %[[F:.*]] = arith.extf %[[E16]] : bf16 to f32
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[F]] : f32
// CHECK-NEXT: arith.truncf %[[N]] : f32 to bf16
kernel.func @narrow(%x: tensor<4xbf16>, %o: tensor<4xbf16>) attributes {outs = 1} {
  %0 = prim.exp %x : tensor<4xbf16>
  %1 = prim.neg %0 : tensor<4xbf16>
  kernel.return %1 : tensor<4xbf16>
}

// -----

// Unsigned elements lose their sign in the types and keep it in the ops.

// CHECK-LABEL: kernel.func @unsigned
// CHECK-SAME: tensor<4xi8>
// CHECK: arith.maxui
// CHECK: arith.uitofp
kernel.func @unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>, %o: tensor<4xf32>) attributes {outs = 1} {
  %0 = prim.max %x, %y : tensor<4xui8>
  %1 = prim.convert %0 : tensor<4xui8> to tensor<4xf32>
  kernel.return %1 : tensor<4xf32>
}

// -----

// A division never traps.

// CHECK-LABEL: kernel.func @division
// CHECK: %[[SAFE:.*]] = arith.select
// CHECK: arith.divsi %{{.*}}, %[[SAFE]]
kernel.func @division(%x: tensor<4xi32>, %y: tensor<4xi32>, %o: tensor<4xi32>) attributes {outs = 1} {
  %0 = prim.div %x, %y : tensor<4xi32>
  kernel.return %0 : tensor<4xi32>
}

// -----

// Outputs over one iteration space share a generic, and what they both need is computed once.

// CHECK-LABEL: kernel.func @outputs
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: kernel.return %[[R]]#0, %[[R]]#1
kernel.func @outputs(%x: tensor<4xf32>, %o: tensor<4xf32>, %p: tensor<4xf32>) attributes {outs = 2} {
  %0 = prim.exp %x : tensor<4xf32>
  %1 = prim.neg %0 : tensor<4xf32>
  %2 = prim.abs %0 : tensor<4xf32>
  kernel.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Dynamic sizes come from the kernel's symbols.

// CHECK-LABEL: kernel.func @dynamic
// CHECK: %[[S:.*]] = kernel.symbol 0
// CHECK: tensor.empty(%[[S]]) : tensor<?x4xf32>
kernel.func @dynamic(%x: tensor<4xf32>, %o: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>}) attributes {outs = 1} {
  %0 = prim.broadcast %x dims [1] sizes [s0, 4] : tensor<4xf32> to tensor<?x4xf32>
  kernel.return %0 : tensor<?x4xf32>
}
