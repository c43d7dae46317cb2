// RUN: lamina-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(lamina-derive-attention),canonicalize)' | FileCheck %s
// RUN: lamina-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(lamina-derive-attention),canonicalize,cse,lamina-fuse-kernels)' | FileCheck %s --check-prefix=FUSED

// The division comes after the product; maximum, sum and product are marked; the product that makes the scores may join.

// CHECK-LABEL: func.func @attention
// CHECK: %[[S:.*]] = prim.dot_general %arg0, %arg1 {{.*}} {kernel.scores}
// CHECK: %[[M:.*]] = prim.reduce <max> %[[S]] dims [1] {kernel.online}
// CHECK: %[[MASKED:.*]] = prim.compare <eq> %[[M]]
// CHECK: %[[SHIFT:.*]] = prim.select %[[MASKED]]
// CHECK: prim.broadcast %[[SHIFT]]
// CHECK: %[[E:.*]] = prim.exp
// CHECK: %[[L:.*]] = prim.reduce <sum> %[[E]] dims [1] {kernel.online}
// CHECK: %[[O:.*]] = prim.dot_general %[[E]], %arg2 {{.*}} {kernel.online}
// CHECK: %[[D:.*]] = prim.broadcast %[[L]] dims [0] : tensor<8xf32> to tensor<8x4xf32>
// CHECK: prim.div %[[O]], %[[D]]
// FUSED-LABEL: func.func @attention
// FUSED-COUNT-1: kernel.launch
// FUSED-NOT: kernel.launch
// FUSED: kernel.func {{.*}} attributes {kernel.online
func.func @attention(%q: tensor<8x4xf32>, %k: tensor<16x4xf32>, %v: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %s = prim.dot_general %q, %k batch [] x [] contract [1] x [1] : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
  %m = prim.reduce <max> %s dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %d = prim.sub %s, %mb : tensor<8x16xf32>
  %e = prim.exp %d : tensor<8x16xf32>
  %l = prim.reduce <sum> %e dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %lb = prim.broadcast %l dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %p = prim.div %e, %lb : tensor<8x16xf32>
  %o = prim.dot_general %p, %v batch [] x [] contract [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %o : tensor<8x4xf32>
}

// -----

// Weights that are rounded to bf16 before the product: the terms are, instead.

// CHECK-LABEL: func.func @rounded
// CHECK: %[[E:.*]] = prim.exp
// CHECK: %[[R:.*]] = prim.convert %[[E]] : tensor<8x16xf32> to tensor<8x16xbf16>
// CHECK: prim.dot_general %[[R]], %arg1 {{.*}} {kernel.online}
func.func @rounded(%s: tensor<8x16xf32>, %v: tensor<16x4xbf16>) -> tensor<8x4xf32> {
  %m = prim.reduce <max> %s dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %d = prim.sub %s, %mb : tensor<8x16xf32>
  %e = prim.exp %d : tensor<8x16xf32>
  %l = prim.reduce <sum> %e dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %lb = prim.broadcast %l dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %p = prim.div %e, %lb : tensor<8x16xf32>
  %r = prim.convert %p : tensor<8x16xf32> to tensor<8x16xbf16>
  %o = prim.dot_general %r, %v batch [] x [] contract [1] x [0] : (tensor<8x16xbf16>, tensor<16x4xbf16>) -> tensor<8x4xf32>
  return %o : tensor<8x4xf32>
}

// -----

// Other shapes of the same values, between the steps, do not matter.

// CHECK-LABEL: func.func @reshaped
// CHECK: prim.dot_general {{.*}} {kernel.online}
func.func @reshaped(%s: tensor<2x4x16xf32>, %v: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %flat = prim.reshape %s : tensor<2x4x16xf32> to tensor<8x16xf32>
  %m = prim.reduce <max> %flat dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %mr = prim.reshape %m : tensor<8xf32> to tensor<2x4xf32>
  %mb = prim.broadcast %mr dims [0, 1] : tensor<2x4xf32> to tensor<2x4x16xf32>
  %d = prim.sub %s, %mb : tensor<2x4x16xf32>
  %e = prim.exp %d : tensor<2x4x16xf32>
  %l = prim.reduce <sum> %e dims [2] : tensor<2x4x16xf32> to tensor<2x4xf32>
  %lb = prim.broadcast %l dims [0, 1] : tensor<2x4xf32> to tensor<2x4x16xf32>
  %p = prim.div %e, %lb : tensor<2x4x16xf32>
  %pf = prim.reshape %p : tensor<2x4x16xf32> to tensor<8x16xf32>
  %o = prim.dot_general %pf, %v batch [] x [] contract [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %o : tensor<8x4xf32>
}

// -----

// A sum along another dimension makes no softmax.

// CHECK-LABEL: func.func @lookalike
// CHECK-NOT: kernel.online
func.func @lookalike(%s: tensor<16x16xf32>, %v: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %m = prim.reduce <max> %s dims [1] : tensor<16x16xf32> to tensor<16xf32>
  %mb = prim.broadcast %m dims [0] : tensor<16xf32> to tensor<16x16xf32>
  %d = prim.sub %s, %mb : tensor<16x16xf32>
  %e = prim.exp %d : tensor<16x16xf32>
  %l = prim.reduce <sum> %e dims [0] : tensor<16x16xf32> to tensor<16xf32>
  %lb = prim.broadcast %l dims [0] : tensor<16xf32> to tensor<16x16xf32>
  %p = prim.div %e, %lb : tensor<16x16xf32>
  %o = prim.dot_general %p, %v batch [] x [] contract [1] x [0] : (tensor<16x16xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  return %o : tensor<16x4xf32>
}

// -----

// Weights that are a result too are made anyway.

// CHECK-LABEL: func.func @weights_too
// CHECK-NOT: kernel.online
func.func @weights_too(%s: tensor<8x16xf32>, %v: tensor<16x4xf32>) -> (tensor<8x4xf32>, tensor<8x16xf32>) {
  %m = prim.reduce <max> %s dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %d = prim.sub %s, %mb : tensor<8x16xf32>
  %e = prim.exp %d : tensor<8x16xf32>
  %l = prim.reduce <sum> %e dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %lb = prim.broadcast %l dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %p = prim.div %e, %lb : tensor<8x16xf32>
  %o = prim.dot_general %p, %v batch [] x [] contract [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %o, %p : tensor<8x4xf32>, tensor<8x16xf32>
}
