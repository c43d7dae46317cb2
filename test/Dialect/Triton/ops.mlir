// RUN: lamina-opt %s | lamina-opt | FileCheck %s
// RUN: lamina-opt %s -mlir-print-op-generic | lamina-opt | FileCheck %s
// RUN: lamina-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: tt.func public @rows
// CHECK-SAME: !tt.ptr<f32> {tt.divisibility = 16 : i32}
// GENERIC: "tt.func"()
// GENERIC-SAME: arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}]
// GENERIC-SAME: sym_name = "rows", sym_visibility = "public"
tt.func public @rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16>, %n: i32) {
  // CHECK: tt.get_program_id 0 : i32
  // GENERIC: "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
  %p = tt.get_program_id 0 : i32
  // GENERIC: "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %r, %ns : tensor<64xi32>
  // CHECK: tt.addptr %{{.*}}, %{{.*}} : !tt.ptr<f32>, i32
  %b = tt.addptr %x, %p : !tt.ptr<f32>, i32
  %s = tt.splat %b : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %a = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %z = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x!tt.ptr<f32>>
  // GENERIC: "tt.load"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1>}>
  %v = tt.load %a, %m, %z : tensor<64x!tt.ptr<f32>>
  %v1 = tt.load %b : !tt.ptr<f32>
  // GENERIC: "tt.reduce"(%{{.*}}) <{axis = 0 : i32}> ({
  // GENERIC: "tt.reduce.return"
  %t = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %h: f32):
    %c = arith.addf %l, %h : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  // CHECK: tt.extern_elementwise "__nv_expf"(%{{.*}}) {libname = "", libpath = "", pure = true} : (f32) -> f32
  %e = tt.extern_elementwise "__nv_expf"(%t) {libname = "", libpath = "", pure = true} : (f32) -> f32
  %q = tt.precise_divf %e, %v1 : f32
  %w = tt.precise_sqrt %q : f32
  %h = arith.truncf %w : f32 to f16
  tt.store %o, %h : !tt.ptr<f16>
  tt.return
}

// CHECK-LABEL: tt.func public @shapes
tt.func public @shapes(%o: !tt.ptr<f32>) {
  %a = arith.constant dense<1.0> : tensor<16x32xbf16>
  %b = arith.constant dense<1.0> : tensor<16x32xbf16>
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  // CHECK: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<16x32xbf16> -> tensor<32x16xbf16>
  %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<16x32xbf16> -> tensor<32x16xbf16>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xbf16> * tensor<32x16xbf16> -> tensor<16x16xf32>
  %d = tt.dot %a, %t, %c : tensor<16x32xbf16> * tensor<32x16xbf16> -> tensor<16x16xf32>
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  // CHECK: tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %e = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  // CHECK: tt.broadcast %{{.*}} : tensor<16x1xi32> -> tensor<16x16xi32>
  %x = tt.broadcast %e : tensor<16x1xi32> -> tensor<16x16xi32>
  // CHECK: tt.bitcast %{{.*}} : tensor<16x16xi32> -> tensor<16x16xf32>
  %f = tt.bitcast %x : tensor<16x16xi32> -> tensor<16x16xf32>
  %s = arith.addf %d, %f : tensor<16x16xf32>
  %p = tt.splat %o : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %m = arith.constant dense<true> : tensor<16x16xi1>
  // CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x16x!tt.ptr<f32>>
  tt.store %p, %s, %m : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func @descriptors
// CHECK: %[[D:.*]] = tt.make_tensor_descriptor %{{.*}}, [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] : !tt.ptr<f16>, !tt.tensordesc<64x32xf16>
// CHECK: tt.descriptor_load %[[D]][%{{.*}}, %{{.*}}] : !tt.tensordesc<64x32xf16> -> tensor<64x32xf16>
tt.func @descriptors(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %one] : !tt.ptr<f16>, !tt.tensordesc<64x32xf16>
  %x = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<64x32xf16> -> tensor<64x32xf16>
  tt.return
}

// CHECK-LABEL: tt.func @atomics
// CHECK: tt.atomic_rmw %{{.*}}, %{{.*}} {atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 1 : i32} : !tt.ptr<f32>
// CHECK: tt.atomic_rmw %{{.*}}, %{{.*}}, %{{.*}} {{{.*}}} : tensor<8x!tt.ptr<i32>>
tt.func @atomics(%p: !tt.ptr<f32>, %v: f32, %q: !tt.ptr<i32>) {
  %0 = tt.atomic_rmw %p, %v {atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 1 : i32} : !tt.ptr<f32>
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %s = tt.splat %q : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
  %m = arith.constant dense<true> : tensor<8xi1>
  %1 = tt.atomic_rmw %s, %r, %m {atomic_rmw_op = 6 : i32, scope = 1 : i32, sem = 1 : i32} : tensor<8x!tt.ptr<i32>>
  tt.return
}
