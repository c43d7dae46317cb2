// RUN: lamina-opt %s --lamina-expand-math --split-input-file | FileCheck %s

// A vector and a scalar take the same steps.
// CHECK-LABEL: func.func @exp
// CHECK-NOT: math.exp
// CHECK: %[[S:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: arith.bitcast %[[S]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[T:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: arith.bitcast %[[T]] : f32 to i32
func.func @exp(%v: vector<16xf32>, %x: f32) -> (vector<16xf32>, f32) {
  %0 = math.exp %v : vector<16xf32>
  %1 = math.exp %x : f32
  return %0, %1 : vector<16xf32>, f32
}

// -----

// CHECK-LABEL: func.func @others
// CHECK-NOT: math.{{tanh|erf|log}}
// CHECK: return
func.func @others(%v: vector<3x5xf32>) -> vector<3x5xf32> {
  %0 = math.tanh %v : vector<3x5xf32>
  %1 = math.erf %0 : vector<3x5xf32>
  %2 = math.log %1 : vector<3x5xf32>
  return %2 : vector<3x5xf32>
}

// -----

// f64 and functions without an expansion are calls, and each function is declared once.
// CHECK: func.func private @acosf(f32) -> f32 attributes {llvm.readnone}
// CHECK: func.func private @exp(f64) -> f64 attributes {llvm.readnone}
// CHECK-LABEL: func.func @libm
// CHECK-SAME: %[[V:[a-z0-9]+]]: vector<2xf64>
// CHECK: %[[A:.*]] = vector.extract %[[V]][0]
// CHECK: %[[B:.*]] = call @exp(%[[A]]) : (f64) -> f64
// CHECK: vector.insert %[[B]], %{{.*}} [0]
// CHECK: call @exp
// CHECK: call @acosf
// CHECK: call @exp
func.func @libm(%v: vector<2xf64>, %x: f32, %d: f64) -> (vector<2xf64>, f32, f64) {
  %0 = math.exp %v : vector<2xf64>
  %1 = math.acos %x : f32
  %2 = math.exp %d : f64
  return %0, %1, %2 : vector<2xf64>, f32, f64
}

// -----

// Ops that are instructions stay.
// CHECK-LABEL: func.func @kept
// CHECK: math.sqrt
// CHECK: math.roundeven
// CHECK: math.copysign
func.func @kept(%v: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sqrt %v : vector<16xf32>
  %1 = math.roundeven %0 : vector<16xf32>
  %2 = math.copysign %1, %v : vector<16xf32>
  return %2 : vector<16xf32>
}

// -----

// Lanes beyond 2^17 are computed by libm, in a branch that is taken only where there is one.
// CHECK: func.func private @sinf(f32) -> f32
// CHECK-LABEL: func.func @sin
// CHECK-SAME: %[[V:[a-z0-9]+]]: vector<16xf32>
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[LARGE]]
// CHECK: %[[R:.*]] = scf.if %[[ANY]] -> (vector<16xf32>)
// CHECK: %[[SLOW:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[V]])
// CHECK: func.call @sinf
// CHECK: arith.select %[[LARGE]], %[[SLOW]], %[[FAST:.*]] :
// CHECK: } else {
// CHECK: scf.yield %[[FAST]]
// CHECK: return %[[R]]
func.func @sin(%v: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sin %v : vector<16xf32>
  return %0 : vector<16xf32>
}

// -----

// The power is computed in f64 and rounded to f32 once.
// CHECK-LABEL: func.func @powf
// CHECK: arith.extf
// CHECK: math.fma {{.*}} : vector<16xf64>
// CHECK: arith.truncf
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @powf(%v: vector<16xf32>, %w: vector<16xf32>) -> vector<16xf32> {
  %0 = math.powf %v, %w : vector<16xf32>
  return %0 : vector<16xf32>
}

// Division by a scalar from outside the loop: one division before it, and in it only where a lane needs it.

// CHECK-LABEL: @divide_by_invariant
// CHECK: %[[R:.*]] = arith.divf {{.*}} : f32
// CHECK: scf.for
// CHECK: vector.reduction <or>
// CHECK: scf.if
// CHECK: arith.divf {{.*}} : vector<16xf32>
// CHECK: } else {
// CHECK: vector.broadcast %[[R]]
// CHECK-COUNT-4: math.fma
func.func @divide_by_invariant(%x: memref<64xf32>, %d: f32) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %a = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
    %b = vector.broadcast %d : f32 to vector<16xf32>
    %q = arith.divf %a, %b : vector<16xf32>
    vector.store %q, %x[%i] : memref<64xf32>, vector<16xf32>
  }
  return
}

// A divisor that is found in the loop is left alone, and so are f64 and scalars.

// CHECK-LABEL: @divide_by_variant
// CHECK-NOT: scf.if
func.func @divide_by_variant(%x: memref<64xf32>, %y: memref<64xf64>, %d: f64) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %a = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
    %s = memref.load %x[%i] : memref<64xf32>
    %b = vector.broadcast %s : f32 to vector<16xf32>
    %q = arith.divf %a, %b : vector<16xf32>
    vector.store %q, %x[%i] : memref<64xf32>, vector<16xf32>
    %e = memref.load %y[%i] : memref<64xf64>
    %f = arith.divf %e, %d : f64
    memref.store %f, %y[%i] : memref<64xf64>
  }
  return
}

// -----

// Ops on tensors, and those on vectors of a length that is not known and calls would need, are left alone.
// CHECK-LABEL: func.func @left_alone(
// CHECK-NEXT: math.exp {{.*}} : tensor<4xf32>
// CHECK-NEXT: math.exp {{.*}} : tensor<4xf64>
// CHECK-NEXT: math.exp {{.*}} : vector<[4]xf64>
// CHECK-NEXT: return
func.func @left_alone(%x: tensor<4xf32>, %y: tensor<4xf64>, %z: vector<[4]xf64>) -> (tensor<4xf32>, tensor<4xf64>, vector<[4]xf64>) {
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.exp %y : tensor<4xf64>
  %2 = math.exp %z : vector<[4]xf64>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf64>, vector<[4]xf64>
}
