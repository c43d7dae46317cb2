// RUN: lamina-opt %s --canonicalize --split-input-file | FileCheck %s

// x + 0.0 is not x where x is -0.0.
// CHECK-LABEL: @add_zero
// CHECK: %[[SUM:.*]] = prim.add
// CHECK: return %[[SUM]], %arg0, %arg1
func.func @add_zero(%x: tensor<3xf32>, %i: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xi32>) {
  %z = prim.constant dense<0.0> : tensor<3xf32>
  %n = prim.constant dense<-0.0> : tensor<3xf32>
  %iz = prim.constant dense<0> : tensor<3xi32>
  %0 = prim.add %x, %z : tensor<3xf32>
  %1 = prim.add %n, %x : tensor<3xf32>
  %2 = prim.add %iz, %i : tensor<3xi32>
  return %0, %1, %2 : tensor<3xf32>, tensor<3xf32>, tensor<3xi32>
}

// CHECK-LABEL: @sub_zero
// CHECK: %[[D:.*]] = prim.sub
// CHECK: return %arg0, %[[D]]
func.func @sub_zero(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %z = prim.constant dense<0.0> : tensor<3xf32>
  %n = prim.constant dense<-0.0> : tensor<3xf32>
  %0 = prim.sub %x, %z : tensor<3xf32>
  %1 = prim.sub %x, %n : tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// x * 0.0 stays: NaN, infinities and signs.
// CHECK-LABEL: @mul_div
// CHECK: %[[M:.*]] = prim.mul
// CHECK: return %arg0, %arg1, %arg1, %[[M]]
func.func @mul_div(%x: tensor<?xbf16> {prim.sizes = affine_map<()[s0] -> (s0)>}, %u: tensor<2xui8>, %f: tensor<2xf32>)
    -> (tensor<?xbf16>, tensor<2xui8>, tensor<2xui8>, tensor<2xf32>) {
  %one = prim.constant dense<1.0> : tensor<bf16>
  %ones = prim.broadcast %one dims [] sizes [s0] : tensor<bf16> to tensor<?xbf16>
  %uone = prim.constant dense<1> : tensor<2xui8>
  %z = prim.constant dense<0.0> : tensor<2xf32>
  %0 = prim.mul %x, %ones : tensor<?xbf16>
  %1 = prim.mul %uone, %u : tensor<2xui8>
  %2 = prim.div %u, %uone : tensor<2xui8>
  %3 = prim.mul %f, %z : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<?xbf16>, tensor<2xui8>, tensor<2xui8>, tensor<2xf32>
}

// CHECK-LABEL: @involutions
// CHECK-NEXT: return %arg0, %arg1
func.func @involutions(%x: tensor<3xf32>, %i: tensor<3xi1>) -> (tensor<3xf32>, tensor<3xi1>) {
  %0 = prim.neg %x : tensor<3xf32>
  %1 = prim.neg %0 : tensor<3xf32>
  %2 = prim.not %i : tensor<3xi1>
  %3 = prim.not %2 : tensor<3xi1>
  return %1, %3 : tensor<3xf32>, tensor<3xi1>
}

// CHECK-LABEL: @logic
// CHECK: %[[FALSE:.*]] = prim.constant dense<false>
// CHECK: return %arg0, %[[FALSE]], %arg0, %arg0
func.func @logic(%x: tensor<3xi1>) -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
  %t = prim.constant dense<true> : tensor<3xi1>
  %f = prim.constant dense<false> : tensor<3xi1>
  %0 = prim.and %x, %t : tensor<3xi1>
  %1 = prim.and %x, %f : tensor<3xi1>
  %2 = prim.or %x, %f : tensor<3xi1>
  %3 = prim.or %x, %x : tensor<3xi1>
  return %0, %1, %2, %3 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>
}

// -----

// Wrap-around; a division by zero and the overflowing division stay for run time.
// CHECK-LABEL: @integers
// CHECK-DAG: prim.constant dense<-128> : tensor<i8>
// CHECK-DAG: prim.constant dense<44> : tensor<ui8>
// CHECK-DAG: prim.constant dense<-3> : tensor<i32>
// CHECK-COUNT-2: prim.div
// CHECK-NOT: prim.add
func.func @integers() -> (tensor<i8>, tensor<ui8>, tensor<i32>, tensor<i32>, tensor<i8>) {
  %a = prim.constant dense<127> : tensor<i8>
  %b = prim.constant dense<1> : tensor<i8>
  %m = prim.constant dense<-1> : tensor<i8>
  %min = prim.constant dense<-128> : tensor<i8>
  %c = prim.constant dense<200> : tensor<ui8>
  %d = prim.constant dense<100> : tensor<ui8>
  %e = prim.constant dense<-7> : tensor<i32>
  %f = prim.constant dense<2> : tensor<i32>
  %g = prim.constant dense<0> : tensor<i32>
  %0 = prim.add %a, %b : tensor<i8>
  %1 = prim.add %c, %d : tensor<ui8>
  %2 = prim.div %e, %f : tensor<i32>
  %3 = prim.div %e, %g : tensor<i32>
  %4 = prim.div %min, %m : tensor<i8>
  return %0, %1, %2, %3, %4 : tensor<i8>, tensor<ui8>, tensor<i32>, tensor<i32>, tensor<i8>
}

// CHECK-LABEL: @floats
// CHECK-DAG: prim.constant dense<[0x7F800000, 0xFF800000]> : tensor<2xf32>
// CHECK-DAG: prim.constant dense<2.560000e+02> : tensor<bf16>
// CHECK-DAG: prim.constant dense<[true, false]> : tensor<2xi1>
func.func @floats() -> (tensor<2xf32>, tensor<bf16>, tensor<2xi1>) {
  %a = prim.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %z = prim.constant dense<0.0> : tensor<2xf32>
  %b = prim.constant dense<256.0> : tensor<bf16>
  %c = prim.constant dense<1.0> : tensor<bf16>
  %nan = prim.constant dense<[0x7FC00000, 0.0]> : tensor<2xf32>
  %0 = prim.div %a, %z : tensor<2xf32>
  %1 = prim.add %b, %c : tensor<bf16>
  %2 = prim.compare <ne> %nan, %nan : tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<bf16>, tensor<2xi1>
}

// -----

// CHECK-LABEL: @select
// CHECK-NEXT: return %arg1, %arg1, %arg2
func.func @select(%p: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %t = prim.constant dense<true> : tensor<2xi1>
  %f = prim.constant dense<false> : tensor<2xi1>
  %0 = prim.select %p, %x, %x : tensor<2xi1>, tensor<2xf32>
  %1 = prim.select %t, %x, %y : tensor<2xi1>, tensor<2xf32>
  %2 = prim.select %f, %x, %y : tensor<2xi1>, tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @convert
// CHECK-NEXT: return %arg0, %arg0
func.func @convert(%x: tensor<2xbf16>) -> (tensor<2xbf16>, tensor<2xbf16>) {
  %0 = prim.convert %x : tensor<2xbf16> to tensor<2xbf16>
  %1 = prim.convert %x : tensor<2xbf16> to tensor<2xf32>
  %2 = prim.convert %1 : tensor<2xf32> to tensor<2xf64>
  %3 = prim.convert %2 : tensor<2xf64> to tensor<2xbf16>
  return %0, %3 : tensor<2xbf16>, tensor<2xbf16>
}

// Roundings, and conversions whose range differs, stay.
// CHECK-LABEL: @convert_kept
// CHECK-COUNT-6: prim.convert
func.func @convert_kept(%x: tensor<2xf32>, %i: tensor<2xi32>) -> (tensor<2xf32>, tensor<2xi8>, tensor<2xi32>) {
  %0 = prim.convert %x : tensor<2xf32> to tensor<2xbf16>
  %1 = prim.convert %0 : tensor<2xbf16> to tensor<2xf32>
  %2 = prim.convert %i : tensor<2xi32> to tensor<2xf64>
  %3 = prim.convert %2 : tensor<2xf64> to tensor<2xi8>
  %4 = prim.convert %x : tensor<2xf32> to tensor<2xf64>
  %5 = prim.convert %4 : tensor<2xf64> to tensor<2xi32>
  return %1, %3, %5 : tensor<2xf32>, tensor<2xi8>, tensor<2xi32>
}

// CHECK-LABEL: @convert_constants
// CHECK-DAG: dense<[true, true, false]> : tensor<3xi1>
// CHECK-DAG: dense<-2> : tensor<i32>
// CHECK-DAG: dense<44> : tensor<i8>
// CHECK: prim.convert
func.func @convert_constants() -> (tensor<3xi1>, tensor<i32>, tensor<i8>, tensor<ui8>) {
  %a = prim.constant dense<[0x7FC00000, 0.5, -0.0]> : tensor<3xf32>
  %b = prim.constant dense<-2.75> : tensor<f32>
  %c = prim.constant dense<300> : tensor<i32>
  %0 = prim.convert %a : tensor<3xf32> to tensor<3xi1>
  %1 = prim.convert %b : tensor<f32> to tensor<i32>
  %2 = prim.convert %c : tensor<i32> to tensor<i8>
  %3 = prim.convert %b : tensor<f32> to tensor<ui8>
  return %0, %1, %2, %3 : tensor<3xi1>, tensor<i32>, tensor<i8>, tensor<ui8>
}

// -----

// CHECK-LABEL: @broadcast
// CHECK: %[[B:.*]] = prim.broadcast %arg0 dims [2] : tensor<3xf32> to tensor<4x2x3xf32>
// CHECK: return %arg0, %[[B]]
func.func @broadcast(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<4x2x3xf32>) {
  %0 = prim.broadcast %x dims [0] : tensor<3xf32> to tensor<3xf32>
  %1 = prim.broadcast %x dims [1] : tensor<3xf32> to tensor<2x3xf32>
  %2 = prim.broadcast %1 dims [1, 2] : tensor<2x3xf32> to tensor<4x2x3xf32>
  return %0, %2 : tensor<3xf32>, tensor<4x2x3xf32>
}

// CHECK-LABEL: @transpose
// CHECK: %[[T:.*]] = prim.transpose %arg0 [2, 1, 0]
// CHECK: return %arg0, %[[T]]
func.func @transpose(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>) {
  %0 = prim.transpose %x [1, 2, 0] : tensor<2x3x4xf32> to tensor<3x4x2xf32>
  %1 = prim.transpose %0 [2, 0, 1] : tensor<3x4x2xf32> to tensor<2x3x4xf32>
  %2 = prim.transpose %0 [1, 0, 2] : tensor<3x4x2xf32> to tensor<4x3x2xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: @reshape
// CHECK: %[[R:.*]] = prim.reshape %arg0 : tensor<2x6xf32> to tensor<4x3xf32>
// CHECK: return %arg0, %[[R]]
func.func @reshape(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<4x3xf32>) {
  %0 = prim.reshape %x : tensor<2x6xf32> to tensor<12xf32>
  %1 = prim.reshape %0 : tensor<12xf32> to tensor<2x6xf32>
  %2 = prim.reshape %0 : tensor<12xf32> to tensor<4x3xf32>
  return %1, %2 : tensor<2x6xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: @constants
// CHECK-DAG: prim.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi64>
// CHECK-DAG: prim.constant dense<2.000000e+00> : tensor<3x4xf32>
// CHECK-NOT: prim.{{reshape|broadcast|slice|transpose}}
func.func @constants() -> (tensor<2x2xi64>, tensor<3x4xf32>) {
  %0 = prim.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %1 = prim.reshape %0 : tensor<4xi64> to tensor<2x2xi64>
  %2 = prim.constant dense<2.0> : tensor<f32>
  %3 = prim.broadcast %2 dims [] : tensor<f32> to tensor<5x3xf32>
  %4 = prim.slice %3 [0, 0] to [4, 3] step [1, 1] : tensor<5x3xf32> to tensor<4x3xf32>
  %5 = prim.transpose %4 [1, 0] : tensor<4x3xf32> to tensor<3x4xf32>
  return %1, %5 : tensor<2x2xi64>, tensor<3x4xf32>
}

// -----

// CHECK-LABEL: @slice
// CHECK-DAG: %[[A:.*]] = prim.slice %arg0 [5] to [15] step [6] : tensor<20xf32> to tensor<2xf32>
// CHECK-DAG: %[[B:.*]] = prim.slice %arg1 [s0 + 1] to [s0 + 4] step [1] : tensor<?xf32> to tensor<3xf32>
// CHECK: return %arg0, %[[A]], %[[B]]
func.func @slice(%x: tensor<20xf32>, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 8)>})
    -> (tensor<20xf32>, tensor<2xf32>, tensor<3xf32>) {
  %0 = prim.slice %x [0] to [20] step [1] : tensor<20xf32> to tensor<20xf32>
  %1 = prim.slice %x [2] to [18] step [3] : tensor<20xf32> to tensor<6xf32>
  %2 = prim.slice %1 [1] to [5] step [2] : tensor<6xf32> to tensor<2xf32>
  %3 = prim.slice %y [s0] to [s0 * 8] step [1] : tensor<?xf32> to tensor<?xf32>
  %4 = prim.slice %3 [1] to [4] step [1] : tensor<?xf32> to tensor<3xf32>
  return %0, %2, %4 : tensor<20xf32>, tensor<2xf32>, tensor<3xf32>
}

// CHECK-LABEL: @pad_concatenate
// CHECK: %[[C:.*]] = prim.concatenate %arg0, %arg0 dim 0
// CHECK: return %arg0, %arg0, %[[C]]
func.func @pad_concatenate(%x: tensor<4xf32>, %e: tensor<0xf32>, %v: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) {
  %0 = prim.pad %x, %v low [0] high [0] : tensor<4xf32>, tensor<f32> to tensor<4xf32>
  %1 = prim.concatenate %e, %x dim 0 : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = prim.concatenate %x, %e, %x dim 0 : (tensor<4xf32>, tensor<0xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
}

// f16 sums round between the two, and stay.
// CHECK-LABEL: @reduce
// CHECK: %[[R:.*]] = prim.reduce <sum> %arg0 dims [0, 2] : tensor<2x3x4xf32> to tensor<3xf32>
// CHECK: prim.reduce <sum> %arg1
// CHECK: %[[H:.*]] = prim.reduce <sum>
// CHECK: return %[[R]], %[[H]], %arg0
func.func @reduce(%x: tensor<2x3x4xf32>, %h: tensor<2x3x4xf16>) -> (tensor<3xf32>, tensor<3xf16>, tensor<2x3x4xf32>) {
  %0 = prim.reduce <sum> %x dims [0] : tensor<2x3x4xf32> to tensor<3x4xf32>
  %1 = prim.reduce <sum> %0 dims [1] : tensor<3x4xf32> to tensor<3xf32>
  %2 = prim.reduce <sum> %h dims [0] : tensor<2x3x4xf16> to tensor<3x4xf16>
  %3 = prim.reduce <sum> %2 dims [1] : tensor<3x4xf16> to tensor<3xf16>
  %4 = prim.reduce <max> %x dims [] : tensor<2x3x4xf32> to tensor<2x3x4xf32>
  return %1, %3, %4 : tensor<3xf32>, tensor<3xf16>, tensor<2x3x4xf32>
}
