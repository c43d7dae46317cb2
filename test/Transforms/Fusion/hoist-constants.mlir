// lamina-hoist-constants: what moves to @init, and what stays.
// RUN: lamina-opt %s --split-input-file --lamina-hoist-constants | FileCheck %s
// RUN: lamina-opt %s --split-input-file --lamina-hoist-constants --lamina-hoist-constants | FileCheck %s

// Scaled weights and the logarithm of a bias; a constant that only @init reads is no argument of @main any more.
// CHECK-LABEL: func.func @init(
// CHECK-SAME: %[[W:.*]]: tensor<8x8xf32> {prim.constant = "w"}, %[[S:.*]]: tensor<8xf32> {prim.constant = "s"}) -> (tensor<8x8xf32>, tensor<8xf32>)
// CHECK-DAG: %[[B:.*]] = prim.broadcast %[[S]] dims [1]
// CHECK-DAG: %[[M:.*]] = prim.mul %[[W]], %[[B]]
// CHECK-DAG: %[[L:.*]] = prim.log %[[S]]
// CHECK: return %[[M]], %[[L]]
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[M:.*]]: tensor<8x8xf32> {prim.constant = "init.0"}, %[[L:.*]]: tensor<8xf32> {prim.constant = "init.1"}) -> tensor<4x8xf32>
// CHECK-NEXT: %[[D:.*]] = prim.dot_general %[[X]], %[[M]]
// The broadcast is read through, and stays.
// CHECK-NEXT: %[[B:.*]] = prim.broadcast %[[L]] dims [1]
// CHECK-NEXT: %[[R:.*]] = prim.add %[[D]], %[[B]]
// CHECK-NEXT: return %[[R]]
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {prim.constant = "w"}, %s: tensor<8xf32> {prim.constant = "s"}, %unused: tensor<8xf32> {prim.constant = "u"}) -> tensor<4x8xf32> {
  %sb = prim.broadcast %s dims [1] : tensor<8xf32> to tensor<8x8xf32>
  %ws = prim.mul %w, %sb : tensor<8x8xf32>
  %d = prim.dot_general %x, %ws batch [] x [] contract [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %l = prim.log %s : tensor<8xf32>
  %lb = prim.broadcast %l dims [1] : tensor<8xf32> to tensor<4x8xf32>
  %r = prim.add %d, %lb : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// A result that is bigger than the constants it is made of is computed in each call: here, of 64 rows.
// CHECK-NOT: @init
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<8xf32> {prim.constant = "s"})
// CHECK-NEXT: prim.broadcast %[[S]]
// CHECK-NEXT: prim.exp
func.func @main(%x: tensor<64x8xf32>, %s: tensor<8xf32> {prim.constant = "s"}) -> tensor<64x8xf32> {
  %sb = prim.broadcast %s dims [1] : tensor<8xf32> to tensor<64x8xf32>
  %e = prim.exp %sb : tensor<64x8xf32>
  %r = prim.add %x, %e : tensor<64x8xf32>
  return %r : tensor<64x8xf32>
}

// -----

// Views of constants do not move on their own.
// CHECK-NOT: @init
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: prim.dot_general
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {prim.constant = "w"}) -> tensor<4x8xf32> {
  %t = prim.transpose %w [1, 0] : tensor<8x8xf32> to tensor<8x8xf32>
  %d = prim.dot_general %x, %t batch [] x [] contract [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}

// -----

// Sizes with symbols are known in a call only; a literal costs no more there; both are left.
// CHECK-NOT: @init
// CHECK-LABEL: func.func @main(
// CHECK: prim.exp %{{.*}} : tensor<?x8xf32>
// CHECK: prim.log %{{.*}} : tensor<2xf32>
func.func @main(%x: tensor<?x8xf32> {prim.sizes = affine_map<()[s0] -> (s0, 8)>}, %s: tensor<8xf32> {prim.constant = "s"}) -> (tensor<?x8xf32>, tensor<2xf32>) {
  %sb = prim.broadcast %s dims [1] sizes [s0, 8] : tensor<8xf32> to tensor<?x8xf32>
  %e = prim.exp %sb : tensor<?x8xf32>
  %r = prim.add %x, %e : tensor<?x8xf32>
  %c = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %l = prim.log %c : tensor<2xf32>
  return %r, %l : tensor<?x8xf32>, tensor<2xf32>
}

// -----

// A value that @main and @init both need is computed once and returned.
// CHECK-LABEL: func.func @init(
// CHECK-COUNT-1: prim.exp
// CHECK-NOT: prim.exp
// CHECK-LABEL: func.func @main(
// CHECK-NOT: prim.exp
// CHECK-NOT: prim.log
func.func @main(%x: tensor<8xf32>, %w: tensor<8xf32> {prim.constant = "w"}) -> tensor<8xf32> {
  %t = prim.exp %w : tensor<8xf32>
  %u = prim.log %t : tensor<8xf32>
  %p = prim.add %x, %u : tensor<8xf32>
  %q = prim.add %p, %t : tensor<8xf32>
  return %q : tensor<8xf32>
}

// -----

// Only @main has constants that come once.
// CHECK-NOT: @init
// CHECK-LABEL: func.func @other(
// CHECK-NEXT: prim.exp
func.func @other(%w: tensor<8xf32> {prim.constant = "w"}) -> tensor<8xf32> {
  %t = prim.exp %w : tensor<8xf32>
  return %t : tensor<8xf32>
}

// -----

// What is made of literals alone moves too if it takes a kernel of its own; what a kernel computes while it reads stays.
// CHECK-LABEL: func.func @init() -> tensor<8xi64>
// CHECK-NEXT: %[[I:.*]] = prim.iota 0
// CHECK-NEXT: %[[S:.*]] = prim.scan <sum> %[[I]]
// CHECK-NEXT: return %[[S]]
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xi64>, %[[M:[a-z0-9]+]]: tensor<8xi64> {prim.constant = "init.0"})
// CHECK-NEXT: %[[T:.*]] = prim.iota 0
// CHECK-NEXT: %[[Q:.*]] = prim.mul %[[T]], %[[T]]
// CHECK-NEXT: %[[A:.*]] = prim.add %[[X]], %[[M]]
// CHECK-NEXT: prim.add %[[A]], %[[Q]]
func.func @main(%x: tensor<8xi64>) -> tensor<8xi64> {
  %0 = prim.iota 0 : tensor<8xi64>
  %1 = prim.scan <sum> %0 dim 0 : tensor<8xi64>
  %2 = prim.mul %0, %0 : tensor<8xi64>
  %3 = prim.add %x, %1 : tensor<8xi64>
  %4 = prim.add %3, %2 : tensor<8xi64>
  return %4 : tensor<8xi64>
}

// -----

// Not what would take more than a mebibyte, nor what depends on a symbol.
// CHECK-NOT: @init
func.func @main(%x: tensor<1024x512xi64>, %y: tensor<?xi64> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> (tensor<1024x512xi64>, tensor<?xi64>) {
  %0 = prim.iota 0 : tensor<1024x512xi64>
  %1 = prim.scan <sum> %0 dim 0 : tensor<1024x512xi64>
  %2 = prim.add %x, %1 : tensor<1024x512xi64>
  %3 = prim.iota 0 sizes [s0] : tensor<?xi64>
  %4 = prim.scan <sum> %3 dim 0 : tensor<?xi64>
  %5 = prim.add %y, %4 : tensor<?xi64>
  return %2, %5 : tensor<1024x512xi64>, tensor<?xi64>
}
