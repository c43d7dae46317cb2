// lamina-erase-dead: chains of ops that nothing uses go in one sweep; nothing else changes.
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-erase-dead))' | FileCheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT: %[[E:.*]] = prim.exp %arg0
// CHECK-NEXT: %[[N:.*]] = prim.neg %[[E]]
// CHECK-NEXT: %[[M:.*]] = prim.neg %[[N]]
// CHECK-NEXT: return %[[M]]
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = prim.exp %x : tensor<4xf32>
  %1 = prim.log %0 : tensor<4xf32>
  %2 = prim.neg %0 : tensor<4xf32>
  %3 = prim.mul %1, %2 : tensor<4xf32>
  %4 = prim.neg %2 : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// A value with one used result of two stays, and so does what has an effect.
// CHECK-LABEL: @kept
// CHECK-NEXT: %{{.*}}, %[[I:.*]] = prim.sort
// CHECK-NEXT: call @effect()
// CHECK-NEXT: return %[[I]]
func.func private @effect() -> tensor<4xf32>
func.func @kept(%x: tensor<4xf32>) -> tensor<4xi64> {
  %0:2 = prim.sort %x dim 0 descending true : tensor<4xf32>
  %1 = func.call @effect() : () -> tensor<4xf32>
  return %0#1 : tensor<4xi64>
}
