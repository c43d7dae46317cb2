// RUN: lamina-opt %s --split-input-file --lamina-lower-contractions --verify-diagnostics | FileCheck %s

// Sums in half precision round after every step: not done here.

// CHECK-LABEL: @half
// CHECK: linalg.generic
func.func @half(%A: memref<8x8xf16>, %B: memref<8x8xf16>, %C: memref<8x8xf16>) {
  // expected-remark @below {{not lowered to a register kernel}}
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], lamina.contraction}
    ins(%A, %B : memref<8x8xf16>, memref<8x8xf16>) outs(%C : memref<8x8xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %product = arith.mulf %a, %b : f16
    %sum = arith.addf %c, %product : f16
    linalg.yield %sum : f16
  }
  return
}

// -----

// A product and sum without a reduction in both inputs is no contraction.

// CHECK-LABEL: @elementwise
// CHECK: linalg.generic
func.func @elementwise(%A: memref<8x4xf32>, %B: memref<8xf32>, %C: memref<8xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%A, %B : memref<8x4xf32>, memref<8xf32>) outs(%C : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The sum of the fill's value and the products: a fill with one stays.

// CHECK-LABEL: @fill_one
// CHECK: linalg.fill
// CHECK: arith.addf
func.func @fill_one(%A: memref<32x8xf32>, %B: memref<8x32xf32>, %C: memref<32x32xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%C : memref<32x32xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : memref<32x8xf32>, memref<8x32xf32>) outs(%C : memref<32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}
