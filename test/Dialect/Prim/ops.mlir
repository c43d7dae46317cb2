// RUN: lamina-opt %s | lamina-opt | FileCheck %s
// RUN: lamina-opt %s --mlir-print-op-generic | lamina-opt | FileCheck %s

// CHECK-LABEL: @elementwise
func.func @elementwise(%x: tensor<4x?xf32> {prim.sizes = affine_map<()[s0] -> (4, s0)>}, %i: tensor<2xi32>, %b: tensor<2xi1>, %u: tensor<2xui8>) {
  // CHECK: prim.neg %arg0 : tensor<4x?xf32>
  %neg = prim.neg %x : tensor<4x?xf32>
  // CHECK: prim.abs %arg0 : tensor<4x?xf32>
  %abs = prim.abs %x : tensor<4x?xf32>
  // CHECK: prim.sign %arg0 : tensor<4x?xf32>
  %sign = prim.sign %x : tensor<4x?xf32>
  // CHECK: prim.not %arg1 : tensor<2xi32>
  %not = prim.not %i : tensor<2xi32>
  // CHECK: prim.exp %arg0 : tensor<4x?xf32>
  %exp = prim.exp %x : tensor<4x?xf32>
  // CHECK: prim.exp2 %arg0 : tensor<4x?xf32>
  %exp2 = prim.exp2 %x : tensor<4x?xf32>
  // CHECK: prim.expm1 %arg0 : tensor<4x?xf32>
  %expm1 = prim.expm1 %x : tensor<4x?xf32>
  // CHECK: prim.log %arg0 : tensor<4x?xf32>
  %log = prim.log %x : tensor<4x?xf32>
  // CHECK: prim.log2 %arg0 : tensor<4x?xf32>
  %log2 = prim.log2 %x : tensor<4x?xf32>
  // CHECK: prim.log10 %arg0 : tensor<4x?xf32>
  %log10 = prim.log10 %x : tensor<4x?xf32>
  // CHECK: prim.log1p %arg0 : tensor<4x?xf32>
  %log1p = prim.log1p %x : tensor<4x?xf32>
  // CHECK: prim.sqrt %arg0 : tensor<4x?xf32>
  %sqrt = prim.sqrt %x : tensor<4x?xf32>
  // CHECK: prim.rsqrt %arg0 : tensor<4x?xf32>
  %rsqrt = prim.rsqrt %x : tensor<4x?xf32>
  // CHECK: prim.sin %arg0 : tensor<4x?xf32>
  %sin = prim.sin %x : tensor<4x?xf32>
  // CHECK: prim.cos %arg0 : tensor<4x?xf32>
  %cos = prim.cos %x : tensor<4x?xf32>
  // CHECK: prim.tan %arg0 : tensor<4x?xf32>
  %tan = prim.tan %x : tensor<4x?xf32>
  // CHECK: prim.asin %arg0 : tensor<4x?xf32>
  %asin = prim.asin %x : tensor<4x?xf32>
  // CHECK: prim.acos %arg0 : tensor<4x?xf32>
  %acos = prim.acos %x : tensor<4x?xf32>
  // CHECK: prim.atan %arg0 : tensor<4x?xf32>
  %atan = prim.atan %x : tensor<4x?xf32>
  // CHECK: prim.sinh %arg0 : tensor<4x?xf32>
  %sinh = prim.sinh %x : tensor<4x?xf32>
  // CHECK: prim.cosh %arg0 : tensor<4x?xf32>
  %cosh = prim.cosh %x : tensor<4x?xf32>
  // CHECK: prim.tanh %arg0 : tensor<4x?xf32>
  %tanh = prim.tanh %x : tensor<4x?xf32>
  // CHECK: prim.asinh %arg0 : tensor<4x?xf32>
  %asinh = prim.asinh %x : tensor<4x?xf32>
  // CHECK: prim.acosh %arg0 : tensor<4x?xf32>
  %acosh = prim.acosh %x : tensor<4x?xf32>
  // CHECK: prim.atanh %arg0 : tensor<4x?xf32>
  %atanh = prim.atanh %x : tensor<4x?xf32>
  // CHECK: prim.erf %arg0 : tensor<4x?xf32>
  %erf = prim.erf %x : tensor<4x?xf32>
  // CHECK: prim.ceil %arg0 : tensor<4x?xf32>
  %ceil = prim.ceil %x : tensor<4x?xf32>
  // CHECK: prim.floor %arg0 : tensor<4x?xf32>
  %floor = prim.floor %x : tensor<4x?xf32>
  // CHECK: prim.round %arg0 : tensor<4x?xf32>
  %round = prim.round %x : tensor<4x?xf32>
  // CHECK: prim.trunc %arg0 : tensor<4x?xf32>
  %trunc = prim.trunc %x : tensor<4x?xf32>
  // CHECK: prim.add %arg0, %arg0 : tensor<4x?xf32>
  %add = prim.add %x, %x : tensor<4x?xf32>
  // CHECK: prim.sub %arg0, %arg0 : tensor<4x?xf32>
  %sub = prim.sub %x, %x : tensor<4x?xf32>
  // CHECK: prim.mul %arg0, %arg0 : tensor<4x?xf32>
  %mul = prim.mul %x, %x : tensor<4x?xf32>
  // CHECK: prim.div %arg0, %arg0 : tensor<4x?xf32>
  %div = prim.div %x, %x : tensor<4x?xf32>
  // CHECK: prim.rem %arg0, %arg0 : tensor<4x?xf32>
  %rem = prim.rem %x, %x : tensor<4x?xf32>
  // CHECK: prim.pow %arg0, %arg0 : tensor<4x?xf32>
  %pow = prim.pow %x, %x : tensor<4x?xf32>
  // CHECK: prim.atan2 %arg0, %arg0 : tensor<4x?xf32>
  %atan2 = prim.atan2 %x, %x : tensor<4x?xf32>
  // CHECK: prim.max %arg0, %arg0 : tensor<4x?xf32>
  %max = prim.max %x, %x : tensor<4x?xf32>
  // CHECK: prim.min %arg0, %arg0 : tensor<4x?xf32>
  %min = prim.min %x, %x : tensor<4x?xf32>
  // CHECK: prim.and %arg1, %arg1 : tensor<2xi32>
  %and = prim.and %i, %i : tensor<2xi32>
  // CHECK: prim.or %arg1, %arg1 : tensor<2xi32>
  %or = prim.or %i, %i : tensor<2xi32>
  // CHECK: prim.xor %arg1, %arg1 : tensor<2xi32>
  %xor = prim.xor %i, %i : tensor<2xi32>
  // CHECK: prim.shl %arg1, %arg1 : tensor<2xi32>
  %shl = prim.shl %i, %i : tensor<2xi32>
  // CHECK: prim.shr %arg1, %arg1 : tensor<2xi32>
  %shr = prim.shr %i, %i : tensor<2xi32>
  // CHECK: prim.not %arg2 : tensor<2xi1>
  %not1 = prim.not %b : tensor<2xi1>
  // CHECK: prim.max %arg3, %arg3 : tensor<2xui8>
  %max8 = prim.max %u, %u : tensor<2xui8>
  // CHECK: prim.compare <ge> %arg0, %arg0 : tensor<4x?xf32>
  %compare = prim.compare <ge> %x, %x : tensor<4x?xf32>
  // CHECK: prim.select %{{.*}}, %arg0, %arg0 : tensor<4x?xi1>, tensor<4x?xf32>
  %select = prim.select %compare, %x, %x : tensor<4x?xi1>, tensor<4x?xf32>
  // CHECK: prim.convert %arg0 : tensor<4x?xf32> to tensor<4x?xf16>
  %convert = prim.convert %x : tensor<4x?xf32> to tensor<4x?xf16>
  // CHECK: prim.bitcast %arg1 : tensor<2xi32> to tensor<2xf32>
  %bitcast = prim.bitcast %i : tensor<2xi32> to tensor<2xf32>
  return
}

// CHECK-LABEL: @shapes
// CHECK-SAME: prim.constant = "weight"
// CHECK-SAME: prim.symbols
func.func @shapes(%x: tensor<?x8xf32> {prim.sizes = affine_map<()[s0] -> (s0, 8)>}, %w: tensor<8xf32> {prim.constant = "weight"}, %i: tensor<3xi64>)
    attributes {prim.symbols = [{name = "batch", min = 1, max = 64}]} {
  // CHECK: prim.constant dense<0.000000e+00> : tensor<f32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  // CHECK: prim.size [s0 * 2] : tensor<i64>
  %size = prim.size [s0 * 2] : tensor<i64>
  // CHECK: prim.iota 0 sizes [s0, 4] : tensor<?x4xi64>
  %iota = prim.iota 0 sizes [s0, 4] : tensor<?x4xi64>
  // CHECK: prim.broadcast %arg1 dims [1] sizes [s0, 8] : tensor<8xf32> to tensor<?x8xf32>
  %broadcast = prim.broadcast %w dims [1] sizes [s0, 8] : tensor<8xf32> to tensor<?x8xf32>
  // CHECK: prim.transpose %arg0 [1, 0] : tensor<?x8xf32> to tensor<8x?xf32>
  %transpose = prim.transpose %x [1, 0] : tensor<?x8xf32> to tensor<8x?xf32>
  // CHECK: prim.reshape %arg0 sizes [s0 * 2, 4] : tensor<?x8xf32> to tensor<?x4xf32>
  %reshape = prim.reshape %x sizes [s0 * 2, 4] : tensor<?x8xf32> to tensor<?x4xf32>
  // CHECK: prim.slice %arg0 [1, 0] to [s0, 8] step [1, 2] : tensor<?x8xf32> to tensor<?x4xf32>
  %slice = prim.slice %x [1, 0] to [s0, 8] step [1, 2] : tensor<?x8xf32> to tensor<?x4xf32>
  // CHECK: prim.pad %arg0, %{{.*}} low [0, 1] high [s0, 0] : tensor<?x8xf32>, tensor<f32> to tensor<?x9xf32>
  %pad = prim.pad %x, %zero low [0, 1] high [s0, 0] : tensor<?x8xf32>, tensor<f32> to tensor<?x9xf32>
  // CHECK: prim.concatenate %arg0, %arg0 dim 1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %concatenate = prim.concatenate %x, %x dim 1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  // CHECK: prim.reverse %arg0 dims [0, 1] : tensor<?x8xf32>
  %reverse = prim.reverse %x dims [0, 1] : tensor<?x8xf32>
  // CHECK: prim.gather %arg0[%arg2] dims [0] : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  %gather = prim.gather %x[%i] dims [0] : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  // CHECK: prim.gather %arg0[%arg2, %arg2] dims [1, 0] : (tensor<?x8xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xf32>
  %gather2 = prim.gather %x[%i, %i] dims [1, 0] : (tensor<?x8xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xf32>
  // CHECK: prim.scatter <assign> %arg0, %{{.*}}[%arg2] dims [0] : (tensor<?x8xf32>, tensor<3x8xf32>, tensor<3xi64>) -> tensor<?x8xf32>
  %scatter = prim.scatter <assign> %x, %gather[%i] dims [0] : (tensor<?x8xf32>, tensor<3x8xf32>, tensor<3xi64>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: @reductions
func.func @reductions(%x: tensor<?x8xf32> {prim.sizes = affine_map<()[s0] -> (s0, 8)>}, %h: tensor<2x3x4xbf16>, %c: tensor<1x2x8xf32>, %k: tensor<4x1x3xf32>) {
  // CHECK: prim.reduce <max> %arg0 dims [0] : tensor<?x8xf32> to tensor<8xf32>
  %reduce = prim.reduce <max> %x dims [0] : tensor<?x8xf32> to tensor<8xf32>
  // CHECK: prim.arg_reduce <min> %arg0 dim 1 : tensor<?x8xf32> to tensor<?xi64>
  %arg_reduce = prim.arg_reduce <min> %x dim 1 : tensor<?x8xf32> to tensor<?xi64>
  // CHECK: prim.scan <prod> %arg0 dim 0 : tensor<?x8xf32>
  %scan = prim.scan <prod> %x dim 0 : tensor<?x8xf32>
  // CHECK: prim.sort %arg0 dim 1 descending true : tensor<?x8xf32>
  %sort:2 = prim.sort %x dim 1 descending true : tensor<?x8xf32>
  // CHECK: prim.reduce_window <sum> %arg0 window [1, 3] strides [1, 2] dilations [1, 1] low [0, 1] high [0, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %window = prim.reduce_window <sum> %x window [1, 3] strides [1, 2] dilations [1, 1] low [0, 1] high [0, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  // CHECK: prim.dot_general %arg1, %arg1 batch [0] x [0] contract [2] x [2] : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x3xf32>
  %dot = prim.dot_general %h, %h batch [0] x [0] contract [2] x [2] : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x3xf32>
  // CHECK: prim.convolution %arg2, %arg3 strides [1] low [1] high [1] lhs_dilations [1] dilations [1] groups 2 : (tensor<1x2x8xf32>, tensor<4x1x3xf32>) -> tensor<1x4x8xf32>
  %convolution = prim.convolution %c, %k strides [1] low [1] high [1] lhs_dilations [1] dilations [1] groups 2 : (tensor<1x2x8xf32>, tensor<4x1x3xf32>) -> tensor<1x4x8xf32>
  return
}

// CHECK-LABEL: @empty
func.func @empty(%x: tensor<0x3xf32>) {
  // CHECK: prim.reduce <sum> %arg0 dims [0, 1] : tensor<0x3xf32> to tensor<f32>
  %0 = prim.reduce <sum> %x dims [0, 1] : tensor<0x3xf32> to tensor<f32>
  // CHECK: prim.reshape %arg0 : tensor<0x3xf32> to tensor<7x0xf32>
  %1 = prim.reshape %x : tensor<0x3xf32> to tensor<7x0xf32>
  return
}
