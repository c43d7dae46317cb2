// lamina-expand-bf16: no floating point conversion is left.
// RUN: lamina-opt %s --lamina-expand-bf16 | FileCheck %s

// CHECK-LABEL: func.func @round_trip(
// CHECK-NOT: arith.extf
// CHECK-NOT: arith.truncf
// CHECK: arith.shli {{.*}} : vector<16xi32>
// CHECK: arith.bitcast {{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: arith.addf
// CHECK-NOT: arith.truncf
// CHECK: arith.bitcast {{.*}} : vector<16xi16> to vector<16xbf16>
func.func @round_trip(%x: vector<16xbf16>) -> vector<16xbf16> {
  %a = arith.extf %x : vector<16xbf16> to vector<16xf32>
  %b = arith.addf %a, %a : vector<16xf32>
  %c = arith.truncf %b : vector<16xf32> to vector<16xbf16>
  return %c : vector<16xbf16>
}
