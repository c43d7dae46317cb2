// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-print-sizes))' --verify-diagnostics

func.func @shapes(%x: tensor<?x?x8xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1, 8)>}, %v: tensor<f32>) {
  // expected-remark @+1 {{sizes [8, s0, s1]}}
  %0 = prim.transpose %x [2, 0, 1] : tensor<?x?x8xf32> to tensor<8x?x?xf32>
  // A product has one form, however it is written.
  // expected-remark @+1 {{sizes [(s0 * s1) * 8]}}
  %1 = prim.reshape %x sizes [(8 * s1) * s0] : tensor<?x?x8xf32> to tensor<?xf32>
  // expected-remark @+1 {{sizes [s0, s1, 8, s0 * 2]}}
  %2 = prim.broadcast %x dims [0, 1, 2] sizes [s0, s1, 8, s0 + s0] : tensor<?x?x8xf32> to tensor<?x?x8x?xf32>
  // expected-remark @+1 {{sizes [s0 - 1, s1, 3]}}
  %3 = prim.slice %x [1, 0, 0] to [s0, s1, 8] step [1, 1, 3] : tensor<?x?x8xf32> to tensor<?x?x3xf32>
  // expected-remark @+1 {{sizes [s0 + 2, s1 * 2, 8]}}
  %4 = prim.pad %x, %v low [1, 0, 0] high [1, s1, 0] : tensor<?x?x8xf32>, tensor<f32> to tensor<?x?x8xf32>
  // expected-remark @+1 {{sizes [s0 * 3, s1, 8]}}
  %5 = prim.concatenate %x, %x, %x dim 0 : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  // expected-remark @+1 {{sizes [s0, 8]}}
  %6 = prim.reduce <sum> %x dims [1] : tensor<?x?x8xf32> to tensor<?x8xf32>
  // expected-remark @+1 {{sizes [s0, s1, 8], [s0, s1, 8]}}
  %7:2 = prim.sort %x dim 2 descending false : tensor<?x?x8xf32>
  // expected-remark @+1 {{sizes [s0, s1, s1]}}
  %8 = prim.dot_general %x, %x batch [0] x [0] contract [2] x [2] : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  // expected-remark @+1 {{sizes []}}
  %9 = prim.size [s0 * s1] : tensor<i64>
  return
}

// What divides a term leaves the quotient.
func.func @quotients(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 16)>}) {
  // expected-remark @+1 {{sizes [s0 * 4, 4]}}
  %0 = prim.reshape %x sizes [(s0 * 16) floordiv 4, 4] : tensor<?xf32> to tensor<?x4xf32>
  // expected-remark @+1 {{sizes [s0 * 8]}}
  %1 = prim.slice %x [0] to [s0 * 16] step [2] : tensor<?xf32> to tensor<?xf32>
  // expected-remark @+1 {{sizes [s0 * 8 + s0 floordiv 2 + 1]}}
  %2 = prim.slice %x [s0 * 2] to [s0 * 19 + 1] step [2] : tensor<?xf32> to tensor<?xf32>
  return
}

// Types that say more than expressions win; a size without an expression has a symbol of its own.
func.func @known_and_unknown(%x: tensor<?xf32>, %y: tensor<4xf32>) {
  // expected-remark @+1 {{sizes [4]}}
  %0 = "prim.add"(%x, %y) : (tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
  // expected-remark @+1 {{sizes [s65536]}}
  %1 = prim.neg %x : tensor<?xf32>
  return
}

kernel.func @double(%in: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %out: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  %0 = prim.add %in, %in : tensor<?xf32>
  kernel.return %0 : tensor<?xf32>
}

func.func @host(%x: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>}) {
  // expected-remark @+1 {{sizes [s0 * 4]}}
  %0 = kernel.view %x offset [0] sizes [s0 * 4] strides [1] : tensor<?x4xf32> to tensor<?xf32>
  // expected-remark @+1 {{sizes [s0 * 4]}}
  %1 = kernel.launch @double [s0 * 4] ins(%0 : tensor<?xf32>) -> tensor<?xf32>
  // expected-remark @+1 {{sizes [s0 * 4]}}
  %2 = kernel.alloc slot 0 offset [0] bytes [s0 * 16] : tensor<?xf32>
  // expected-remark @+1 {{sizes [s0 * 4]}}
  %3 = kernel.launch @double [s0 * 4] ins(%0 : tensor<?xf32>) outs(%2 : tensor<?xf32>) -> tensor<?xf32>
  return
}
