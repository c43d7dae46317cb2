// RUN: lamina-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{a pointer to 'i1' cannot be; booleans are stored as i8}}
tt.func @f(%x: !tt.ptr<i1>) {
  tt.return
}

// -----

// expected-error @+1 {{has a name that is no C identifier}}
tt.func @"a.b"() {
  tt.return
}

// -----

// expected-error @+1 {{takes a 'tensor<4xf32>'; arguments are pointers or scalars}}
tt.func @f(%x: tensor<4xf32>) {
  tt.return
}

// -----

// expected-error @+1 {{'tt.divisibility' must be a positive i32}}
tt.func @f(%x: !tt.ptr<f32> {tt.divisibility = 16 : i64}) {
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{must be block}}
  %0 = tt.make_range {start = 0 : i32, end = 12 : i32} : tensor<12xi32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{from 0 to 8 has another number of elements than 'tensor<16xi32>'}}
  %0 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<16xi32>
  tt.return
}

// -----

tt.func @f(%x: !tt.ptr<f32>, %o: i64) {
  // expected-error @+1 {{offset has type}}
  %0 = "tt.addptr"(%x, %c) : (!tt.ptr<f32>, tensor<4xi32>) -> !tt.ptr<f32>
  %c = arith.constant dense<0> : tensor<4xi32>
  tt.return
}

// -----

tt.func @f(%x: !tt.ptr<f32>, %v: f32) {
  // expected-error @+1 {{has a value for masked elements and no mask}}
  %0 = "tt.load"(%x, %v) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

tt.func @f(%x: !tt.ptr<f32>) {
  // expected-error @+1 {{the result has type 'f16', the pointers have '!tt.ptr<f32>'}}
  %0 = "tt.load"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f16
  tt.return
}

// -----

tt.func @f() {
  %a = arith.constant dense<1.0> : tensor<16x8xf32>
  %b = arith.constant dense<1.0> : tensor<8x16xf32>
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  // expected-error @+1 {{has a size below 16}}
  %d = tt.dot %a, %b, %c : tensor<16x8xf32> * tensor<8x16xf32> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f() {
  %a = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{has axis 1, which 'tensor<16xf32>' has not}}
  %t = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %h: f32):
    tt.reduce.return %l : f32
  }) : (tensor<16xf32>) -> f32
  tt.return
}

// -----

tt.func @f() {
  %a = arith.constant dense<1.0> : tensor<16x8xf32>
  // expected-error @+1 {{makes}}
  %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<16x8xf32> -> tensor<16x8xf32>
  tt.return
}

// -----

tt.func @f() {
  %a = arith.constant dense<1.0> : tensor<16x8xf32>
  // expected-error @+1 {{makes}}
  %t = tt.reshape %a : tensor<16x8xf32> -> tensor<64xf32>
  tt.return
}

// -----

tt.func @f() {
  %a = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{has axis 1, which 'tensor<16xf32>' has not}}
  %t = "tt.scan"(%a) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%l: f32, %h: f32):
    tt.scan.return %l : f32
  }) : (tensor<16xf32>) -> tensor<16xf32>
  tt.return
}

// -----

tt.func @f() {
  %a = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @+1 {{has a region that does not combine two of each source}}
  %t = "tt.scan"(%a) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%l: f32):
    tt.scan.return %l : f32
  }) : (tensor<16xf32>) -> tensor<16xf32>
  tt.return
}

// -----

// expected-error @+1 {{a descriptor of blocks 'tensor<48x16xf16>' cannot be; sizes are powers of two}}
func.func private @f(!tt.tensordesc<48x16xf16>)

// -----

tt.func @f(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @+1 {{is of a '!tt.ptr<f32>' and has elements of 'f16'}}
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : !tt.ptr<f32>, !tt.tensordesc<16x16xf16>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @+1 {{has 1 dimensions, its blocks have 2}}
  %d = tt.make_tensor_descriptor %p, [%n], [%s] : !tt.ptr<f16>, !tt.tensordesc<16x16xf16>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : !tt.ptr<f16>, !tt.tensordesc<16x16xf16>
  // expected-error @+1 {{makes 'tensor<16x32xf16>', the descriptor is of 'tensor<16x16xf16>'}}
  %x = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<16x16xf16> -> tensor<16x32xf16>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : !tt.ptr<f16>, !tt.tensordesc<16x16xf16>
  // expected-error @+1 {{has 1 indices, its blocks have 2 dimensions}}
  %x = tt.descriptor_load %d[%n] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %v: f32) {
  // expected-error @+1 {{has no operation 4 of 'f32'}}
  %0 = tt.atomic_rmw %p, %v {atomic_rmw_op = 4 : i32, scope = 1 : i32, sem = 1 : i32} : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<i16>, %v: i16) {
  // expected-error @+1 {{has no operation 6 of 'i16'}}
  %0 = tt.atomic_rmw %p, %v {atomic_rmw_op = 6 : i32, scope = 1 : i32, sem = 1 : i32} : !tt.ptr<i16>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error @+1 {{has order 0 and scope 1}}
  %0 = tt.atomic_rmw %p, %v {atomic_rmw_op = 6 : i32, scope = 1 : i32, sem = 0 : i32} : !tt.ptr<i32>
  tt.return
}
