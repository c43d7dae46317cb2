// RUN: lamina-opt %s --split-input-file --verify-diagnostics

func.func @broadcast_count(%x: tensor<3xf32>) {
  // expected-error @+1 {{C1: dims has 2 entries, not 1}}
  %0 = prim.broadcast %x dims [0, 1] : tensor<3xf32> to tensor<3x2xf32>
  return
}

// -----

func.func @broadcast_range(%x: tensor<3xf32>) {
  // expected-error @+1 {{C1: dimension -1 is not in 0..1}}
  %0 = prim.broadcast %x dims [-1] : tensor<3xf32> to tensor<3x2xf32>
  return
}

// -----

func.func @broadcast_order(%x: tensor<3x2xf32>) {
  // expected-error @+1 {{C1: dims are not increasing}}
  %0 = prim.broadcast %x dims [1, 0] : tensor<3x2xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_size(%x: tensor<4x3xf32>) {
  // expected-error @+1 {{C2: size of operand dimension 1 is 3, the result's is 4}}
  %0 = prim.broadcast %x dims [0, 1] : tensor<4x3xf32> to tensor<4x4xf32>
  return
}

// -----

func.func @broadcast_element(%x: tensor<3xf32>) {
  // expected-error @+1 {{C3: element types are 'f32' and 'f64'}}
  %0 = prim.broadcast %x dims [0] : tensor<3xf32> to tensor<3xf64>
  return
}

// -----

func.func @broadcast_no_sizes(%x: tensor<3xf32>) {
  // expected-error @+1 {{C4: the result type has ?, but no sizes are given}}
  %0 = prim.broadcast %x dims [1] : tensor<3xf32> to tensor<?x3xf32>
  return
}

// -----

func.func @broadcast_idle_sizes(%x: tensor<3xf32>) {
  // expected-error @+1 {{C4: sizes are given, but the result type has no ?}}
  %0 = prim.broadcast %x dims [1] sizes [2, 3] : tensor<3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_other_sizes(%x: tensor<3xf32>) {
  // expected-error @+1 {{C4: sizes: size of dimension 1 is 4, the type's is 3}}
  %0 = prim.broadcast %x dims [1] sizes [s0, 4] : tensor<3xf32> to tensor<?x3xf32>
  return
}

// -----

func.func @division(%x: tensor<f32>) {
  // expected-error @+1 {{C4: sizes divides by a constant below 1}}
  %0 = prim.broadcast %x dims [] sizes [s0 floordiv 0] : tensor<f32> to tensor<?xf32>
  return
}

// -----

func.func @negative_size(%x: tensor<f32>) {
  // expected-error @+1 {{C4: sizes: size of dimension 0 is negative}}
  %0 = prim.broadcast %x dims [] sizes [-3] : tensor<f32> to tensor<?xf32>
  return
}

// -----

func.func @dimension_in_sizes(%x: tensor<f32>) {
  // expected-error @+1 {{C4: sizes uses dimensions; sizes are expressions over symbols}}
  %0 = "prim.broadcast"(%x) {dims = array<i64>, sizes = affine_map<(d0) -> (d0)>} : (tensor<f32>) -> tensor<?xf32>
  return
}

// -----

func.func @transpose_count(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: permutation has 1 entries, not 2}}
  %0 = prim.transpose %x [0] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @transpose_twice(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: dimension 0 occurs twice}}
  %0 = prim.transpose %x [0, 0] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @transpose_type(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{incompatible with return type}}
  %0 = prim.transpose %x [1, 0] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @reshape(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{C1: the operand has 6 elements, the result 8}}
  %0 = prim.reshape %x : tensor<2x3xf32> to tensor<8xf32>
  return
}

// -----

func.func @reshape_element(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{C2: element types are 'f32' and 'i32'}}
  %0 = prim.reshape %x : tensor<2x3xf32> to tensor<6xi32>
  return
}

// -----

func.func @reshape_scalar(%x: tensor<2xf32>) {
  // expected-error @+1 {{C1: the operand has 2 elements, the result 1}}
  %0 = prim.reshape %x : tensor<2xf32> to tensor<f32>
  return
}

// -----

func.func @iota_scalar() {
  // expected-error @+1 {{C1: dimension 0 is not in 0..-1}}
  %0 = prim.iota 0 : tensor<i64>
  return
}

// -----

func.func @iota_negative() {
  // expected-error @+1 {{C1: dimension -1 is not in 0..0}}
  %0 = prim.iota -1 : tensor<4xi64>
  return
}

// -----

func.func @size_rank() {
  // expected-error @+1 {{C2: the result has rank 1, not 0}}
  %0 = prim.size [s0] : tensor<1xi64>
  return
}

// -----

func.func @size_count() {
  // expected-error @+1 {{C1: value has 2 entries, not 1}}
  %0 = prim.size [s0, s1] : tensor<i64>
  return
}

// -----

func.func @symbol_range() {
  // expected-error @+1 {{C1: value uses a symbol above s63}}
  %0 = "prim.size"() {value = affine_map<()[a0,a1,a2,a3,a4,a5,a6,a7,a8,a9,b0,b1,b2,b3,b4,b5,b6,b7,b8,b9,c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,d0,d1,d2,d3,d4,d5,d6,d7,d8,d9,e0,e1,e2,e3,e4,e5,e6,e7,e8,e9,f0,f1,f2,f3,f4,f5,f6,f7,f8,f9,g0,g1,g2,g3,g4] -> (g4)>} : () -> tensor<i64>
  return
}

// -----

func.func @slice_count(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{C1: starts has 1 entries, not 2}}
  %0 = prim.slice %x [0] to [8, 4] step [1, 1] : tensor<8x4xf32> to tensor<8x4xf32>
  return
}

// -----

func.func @slice_steps(%x: tensor<8xf32>) {
  // expected-error @+1 {{C1: step has 0 entries, not 1}}
  %0 = prim.slice %x [0] to [8] step [] : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @slice_limit(%x: tensor<8xf32>) {
  // expected-error @+1 {{C2: dimension 0: 0 <= 0 <= 9 <= size does not hold}}
  %0 = prim.slice %x [0] to [9] step [1] : tensor<8xf32> to tensor<9xf32>
  return
}

// -----

func.func @slice_order(%x: tensor<8xf32>) {
  // expected-error @+1 {{C2: dimension 0: 0 <= 5 <= 4 <= size does not hold}}
  %0 = prim.slice %x [5] to [4] step [1] : tensor<8xf32> to tensor<0xf32>
  return
}

// -----

func.func @slice_step(%x: tensor<8xf32>) {
  // expected-error @+1 {{C3: step has 0, which is below 1}}
  %0 = prim.slice %x [0] to [8] step [0] : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @slice_size(%x: tensor<8xf32>) {
  // expected-error @+1 {{C4: size of result dimension 0 is 4, not 3}}
  %0 = prim.slice %x [0] to [8] step [3] : tensor<8xf32> to tensor<4xf32>
  return
}

// -----

func.func @slice_rank(%x: tensor<8xf32>) {
  // expected-error @+1 {{C4: the result has rank 0, not 1}}
  %0 = prim.slice %x [0] to [8] step [3] : tensor<8xf32> to tensor<f32>
  return
}

// -----

func.func @pad_negative(%x: tensor<8xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{C1: an amount is -1, which is below 0}}
  %0 = prim.pad %x, %v low [-1] high [0] : tensor<8xf32>, tensor<f32> to tensor<7xf32>
  return
}

// -----

func.func @pad_value(%x: tensor<8xf32>, %v: tensor<1xf32>) {
  // expected-error @+1 {{C2: value has rank 1, not 0}}
  %0 = prim.pad %x, %v low [1] high [0] : tensor<8xf32>, tensor<1xf32> to tensor<9xf32>
  return
}

// -----

func.func @pad_size(%x: tensor<8xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{C3: size of result dimension 0 is 9, not 10}}
  %0 = prim.pad %x, %v low [1] high [1] : tensor<8xf32>, tensor<f32> to tensor<9xf32>
  return
}

// -----

func.func @concatenate_none() {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: there are no operands}}
  %0 = prim.concatenate dim 0 : () -> tensor<9xf32>
  return
}

// -----

func.func @concatenate_scalars(%x: tensor<f32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: dimension 0 is not in 0..-1}}
  %0 = prim.concatenate %x dim 0 : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @concatenate_size(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C3: size of dimension 1 is 4 in operand 1, 3 in the first}}
  %0 = prim.concatenate %x, %y dim 0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @reverse(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{C1: dimension 2 is not in 0..1}}
  %0 = prim.reverse %x dims [2] : tensor<2x3xf32>
  return
}

// -----

func.func @gather_none(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: there are no dims}}
  %0 = "prim.gather"(%x) {dims = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_count(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: there are 1 index tensors for 2 dims}}
  %0 = prim.gather %x[%i] dims [0, 1] : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gather_indices(%x: tensor<2x3xf32>, %i: tensor<4xi64>, %j: tensor<5xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: size of dimension 0 is 5 in operand 1, 4 in the first}}
  %0 = prim.gather %x[%i, %j] dims [0, 1] : (tensor<2x3xf32>, tensor<4xi64>, tensor<5xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @scatter_updates(%x: tensor<2x3xf32>, %u: tensor<4x2xf32>, %i: tensor<4xi64>) {
  // expected-error @+1 {{C4: the updates have type 'tensor<4x2xf32>', not 'tensor<4x3xf32>'}}
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] : (tensor<2x3xf32>, tensor<4x2xf32>, tensor<4xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reduce_dims(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C1: dimension 1 occurs twice}}
  %0 = prim.reduce <sum> %x dims [1, 1] : tensor<2x3xf32> to tensor<2xf32>
  return
}

// -----

func.func @reduce_any(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: any takes i1, not 'f32'}}
  %0 = prim.reduce <any> %x dims [1] : tensor<2x3xf32> to tensor<2xf32>
  return
}

// -----

func.func @reduce_sum(%x: tensor<2x3xi1>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: sum takes numbers, not i1}}
  %0 = prim.reduce <sum> %x dims [1] : tensor<2x3xi1> to tensor<2xi1>
  return
}

// -----

func.func @arg_reduce_empty(%x: tensor<2x0xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{C2: the size of dimension 1 is 0}}
  %0 = prim.arg_reduce <max> %x dim 1 : tensor<2x0xf32> to tensor<2xi64>
  return
}

// -----

func.func @scan(%x: tensor<f32>) {
  // expected-error @+1 {{C1: dimension 0 is not in 0..-1}}
  %0 = prim.scan <sum> %x dim 0 : tensor<f32>
  return
}

// -----

func.func @sort(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: dimension 1 is not in 0..0}}
  %0:2 = prim.sort %x dim 1 descending true : tensor<4xf32>
  return
}

// -----

func.func @window_count(%x: tensor<1x8xf32>) {
  // expected-error @+1 {{C1: window has 1 entries, not 2}}
  %0 = prim.reduce_window <max> %x window [3] strides [1, 2] dilations [1, 1] low [0, 1] high [0, 1] : tensor<1x8xf32> to tensor<1x4xf32>
  return
}

// -----

func.func @window_stride(%x: tensor<8xf32>) {
  // expected-error @+1 {{C1: strides has 0, which is below 1}}
  %0 = prim.reduce_window <max> %x window [3] strides [0] dilations [1] low [1] high [1] : tensor<8xf32> to tensor<4xf32>
  return
}

// -----

func.func @window_size(%x: tensor<8xf32>) {
  // expected-error @+1 {{C3: size of result dimension 0 is 5, not 4}}
  %0 = prim.reduce_window <max> %x window [3] strides [2] dilations [1] low [1] high [1] : tensor<8xf32> to tensor<5xf32>
  return
}

// -----

func.func @dot_counts(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{C1: the two sides have different numbers of batch or contracted dimensions}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_overlap(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+1 {{C1: dimension 0 occurs twice}}
  %0 = prim.dot_general %x, %y batch [0] x [0] contract [0] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dot_size(%x: tensor<2x3xf32>, %y: tensor<5x4xf32>) {
  // expected-error @+1 {{C1: size of lhs dimension 1 is 3, that of rhs dimension 0 is 5}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_elements(%x: tensor<2x3xf32>, %y: tensor<3x4xf16>) {
  // expected-error @+1 {{C2: element types are 'f32' and 'f16'}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_result(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @+1 {{C3: size of result dimension 0 is 4, not 2}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @dot_accumulator(%x: tensor<2x3xi8>, %y: tensor<3x4xi8>) {
  // expected-error @+1 {{C4: 'f32' does not accumulate products of 'i8'}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xf32>
  return
}

// -----

func.func @convolution_rank(%x: tensor<1x3xf32>, %w: tensor<6x3xf32>) {
  // expected-error @+1 {{C1: the operands have ranks 2 and 2, not one of 3 to 5}}
  %0 = prim.convolution %x, %w strides [] low [] high [] lhs_dilations [] dilations [] groups 1 : (tensor<1x3xf32>, tensor<6x3xf32>) -> tensor<1x6xf32>
  return
}

// -----

func.func @convolution_groups(%x: tensor<1x3x8xf32>, %w: tensor<6x3x3xf32>) {
  // expected-error @+1 {{C2: 3 channels are not divisible by 2 groups}}
  %0 = prim.convolution %x, %w strides [1] low [1] high [1] lhs_dilations [1] dilations [1] groups 2 : (tensor<1x3x8xf32>, tensor<6x3x3xf32>) -> tensor<1x6x8xf32>
  return
}

// -----

func.func @convolution_no_groups(%x: tensor<1x3x8xf32>, %w: tensor<6x3x3xf32>) {
  // expected-error @+1 {{C2: groups is 0}}
  %0 = prim.convolution %x, %w strides [1] low [1] high [1] lhs_dilations [1] dilations [1] groups 0 : (tensor<1x3x8xf32>, tensor<6x3x3xf32>) -> tensor<1x6x8xf32>
  return
}

// -----

func.func @convolution_size(%x: tensor<1x3x8xf32>, %w: tensor<6x3x3xf32>) {
  // expected-error @+1 {{C5: size of result dimension 2 is 8, not 6}}
  %0 = prim.convolution %x, %w strides [1] low [0] high [0] lhs_dilations [1] dilations [1] groups 1 : (tensor<1x3x8xf32>, tensor<6x3x3xf32>) -> tensor<1x6x8xf32>
  return
}

// -----

func.func @convolution_empty(%x: tensor<1x3x2xf32>, %w: tensor<6x3x5xf32>) {
  // expected-error @+1 {{C5: size of result dimension 2 would be -2}}
  %0 = prim.convolution %x, %w strides [1] low [0] high [0] lhs_dilations [1] dilations [1] groups 1 : (tensor<1x3x2xf32>, tensor<6x3x5xf32>) -> tensor<1x6x0xf32>
  return
}

// -----

func.func @bitcast(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: 'f32' and 'i64' differ in width}}
  %0 = prim.bitcast %x : tensor<4xf32> to tensor<4xi64>
  return
}

// -----

func.func @elements(%x: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{operand #0 must be ranked tensor}}
  %0 = prim.exp %x : tensor<4xf8E4M3FN>
  return
}

// -----

func.func @unranked(%x: tensor<*xf32>) {
  // expected-error @+1 {{invalid kind of type specified}}
  %0 = prim.compare <lt> %x, %x : tensor<*xf32>
  return
}

// -----

// expected-error @+1 {{prim.sizes of argument 0 has 1 entries, not 2}}
func.func @arg_rank(%x: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) {
  return
}

// -----

// expected-error @+1 {{prim.sizes of argument 0: size of dimension 1 is 5, the type's is 4}}
func.func @arg_size(%x: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 5)>}) {
  return
}

// -----

// expected-error @+1 {{prim.sizes is an affine map}}
func.func private @arg_kind(tensor<?xf32> {prim.sizes = [1]})

// -----

// expected-error @+1 {{prim.constant is the key of a constant, a string}}
func.func @constant_key(%x: tensor<4xf32> {prim.constant = 3}) {
  return
}

// -----

// expected-error @+1 {{prim.symbols: entry 0 is no dictionary with a string `name`}}
func.func @symbols() attributes {prim.symbols = [3]} {
  return
}

// -----

// expected-error @+1 {{prim.symbols: entry 0 needs 0 <= min <= max}}
func.func @symbol_bounds() attributes {prim.symbols = [{name = "s0", min = 4, max = 3}]} {
  return
}

// -----

// expected-error @+1 {{prim.checks has 2 messages for 1 results}}
func.func @checks(%x: tensor<i1>) -> tensor<i1> attributes {prim.checks = ["a", "b"]} {
  return %x : tensor<i1>
}

// -----

// expected-error @+1 {{prim.checks: the last 1 results must be 0-d i1 tensors}}
func.func @check_type(%x: tensor<1xi1>) -> tensor<1xi1> attributes {prim.checks = ["a"]} {
  return %x : tensor<1xi1>
}

// -----

func.func @dot_tf32(%x: tensor<2x3xf16>, %y: tensor<3x4xf16>) -> tensor<2x4xf32> {
  // expected-error@+1 {{C5: tf32 is for f32, not 'f16'}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] tf32 : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @convolution_tf32(%x: tensor<1x3x8xf64>, %w: tensor<6x3x3xf64>) -> tensor<1x6x6xf64> {
  // expected-error@+1 {{C4: tf32 is for f32, not 'f64'}}
  %0 = prim.convolution %x, %w strides [1] low [0] high [0] lhs_dilations [1] dilations [1] groups 1 tf32 : (tensor<1x3x8xf64>, tensor<6x3x3xf64>) -> tensor<1x6x6xf64>
  return %0 : tensor<1x6x6xf64>
}

// -----

func.func @scatter(%x: tensor<100xf16>, %u: tensor<5xf16>, %i: tensor<5xi64>) -> tensor<100xf16> {
  // expected-error @+1 {{C5: there is no sum of 'f16' in place}}
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] {in_place} : (tensor<100xf16>, tensor<5xf16>, tensor<5xi64>) -> tensor<100xf16>
  return %0 : tensor<100xf16>
}

// -----

func.func @scatter(%x: tensor<100xi32>, %u: tensor<5xi32>, %i: tensor<5xi64>) -> tensor<100xi32> {
  // expected-error @+1 {{C5: there is no assign of 'i32' in place}}
  %0 = prim.scatter <assign> %x, %u[%i] dims [0] {in_place} : (tensor<100xi32>, tensor<5xi32>, tensor<5xi64>) -> tensor<100xi32>
  return %0 : tensor<100xi32>
}
