// Operands of products by tensor descriptors: where the attribute or the length of the loop asks for them, and they can be.
// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,lamina-tile-kernels{block-tiles=true},canonicalize,cse),lamina-convert-tiled-to-triton{descriptors=true},tt.func(canonicalize,cse))' | FileCheck %s
// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,lamina-tile-kernels{block-tiles=true},canonicalize,cse),lamina-convert-tiled-to-triton,tt.func(canonicalize,cse))' | FileCheck %s --check-prefix=OFF

// 32 iterations. Rows have a tail, the depth has one too, which ends with the tensors: nothing is masked but the store.

// OFF-LABEL: tt.func public @long
// OFF-SAME: kernel.descriptors = false
// OFF-NOT: tt.descriptor_load
// CHECK-LABEL: tt.func public @long
// CHECK-SAME: kernel.descriptors = true
// CHECK-DAG: %[[DX:.*]] = tt.make_tensor_descriptor %arg0, [%c100_i32, %c2040_i32], [%c2040_i64, %c1_i64] : !tt.ptr<f16>, !tt.tensordesc<64x64xf16>
// CHECK-DAG: %[[DW:.*]] = tt.make_tensor_descriptor %arg1, [%c2040_i32, %c128_i32], [%c128_i64, %c1_i64] : !tt.ptr<f16>, !tt.tensordesc<64x64xf16>
// CHECK: scf.for %[[K:[a-z0-9]+]] =
// CHECK-DAG: %[[A:.*]] = tt.descriptor_load %[[DX]][{{.*}}, %[[K]]] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
// CHECK-DAG: %[[B:.*]] = tt.descriptor_load %[[DW]][%[[K]], {{.*}}]
// CHECK-NOT: tt.load
// CHECK: tt.dot %[[A]], %[[B]]
// CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} :
kernel.func @long(%x: tensor<100x2040xf16>, %w: tensor<2040x128xf16>, %o: tensor<100x128xf32>) attributes {kernel.tile = array<i64: 64, 64, 64>, outs = 1} {
  %xf = prim.convert %x : tensor<100x2040xf16> to tensor<100x2040xf32>
  %wf = prim.convert %w : tensor<2040x128xf16> to tensor<2040x128xf32>
  %d = prim.dot_general %xf, %wf batch [] x [] contract [1] x [0] : (tensor<100x2040xf32>, tensor<2040x128xf32>) -> tensor<100x128xf32>
  kernel.return %d : tensor<100x128xf32>
}

// -----

// CHECK-LABEL: tt.func public @short
// CHECK-SAME: kernel.descriptors = false
// CHECK-NOT: tt.descriptor_load
kernel.func @short(%x: tensor<128x1024xf16>, %w: tensor<1024x128xf16>, %o: tensor<128x128xf16>) attributes {kernel.tile = array<i64: 64, 64, 64>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<128x1024xf16>, tensor<1024x128xf16>) -> tensor<128x128xf16>
  kernel.return %d : tensor<128x128xf16>
}

// -----

// The attribute decides, whatever the option. A transposed operand is read as it lies in memory.

// CHECK-LABEL: tt.func public @asked
// OFF-LABEL: tt.func public @asked
// OFF: tt.descriptor_load {{.*}} -> tensor<64x32xf16>
// OFF: %[[W:.*]] = tt.descriptor_load {{.*}} -> tensor<16x32xf16>
// OFF: tt.trans %[[W]] {order = array<i32: 1, 0>}
kernel.func @asked(%x: tensor<128x96xf16>, %w: tensor<128x96xf16>, %o: tensor<128x128xf16>) attributes {kernel.descriptors = true, kernel.tile = array<i64: 64, 16, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<128x96xf16>, tensor<128x96xf16>) -> tensor<128x128xf16>
  kernel.return %d : tensor<128x128xf16>
}

// -----

// CHECK-LABEL: tt.func public @refused
// CHECK-NOT: tt.descriptor_load
kernel.func @refused(%x: tensor<64x4096xf16>, %w: tensor<4096x64xf16>, %o: tensor<64x64xf16>) attributes {kernel.descriptors = false, kernel.tile = array<i64: 64, 64, 64>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x4096xf16>, tensor<4096x64xf16>) -> tensor<64x64xf16>
  kernel.return %d : tensor<64x64xf16>
}

// -----

// The batch moves the base, of an operand whose matrices are multiples of 16 bytes apart.

// CHECK-LABEL: tt.func public @batch
// CHECK: %[[BASE:.*]] = tt.addptr %arg0
// CHECK: tt.make_tensor_descriptor %[[BASE]], [%c64_i32, %c64_i32]
kernel.func @batch(%x: tensor<3x64x64xf16>, %w: tensor<3x64x64xf16>, %o: tensor<3x64x64xf16>) attributes {kernel.descriptors = true, kernel.tile = array<i64: 32, 32, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<3x64x64xf16>, tensor<3x64x64xf16>) -> tensor<3x64x64xf16>
  kernel.return %d : tensor<3x64x64xf16>
}

// -----

// Rows of 150 bytes; a computed operand; an inner stride of 2: pointers.

// CHECK-LABEL: tt.func public @misaligned
// CHECK-NOT: tt.make_tensor_descriptor %arg0
// CHECK: tt.make_tensor_descriptor %arg1
// CHECK-NOT: tt.make_tensor_descriptor %arg0
kernel.func @misaligned(%x: tensor<64x75xf16>, %w: tensor<75x64xf16>, %o: tensor<64x64xf16>) attributes {kernel.descriptors = true, kernel.tile = array<i64: 32, 32, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x75xf16>, tensor<75x64xf16>) -> tensor<64x64xf16>
  kernel.return %d : tensor<64x64xf16>
}

// -----

// CHECK-LABEL: tt.func public @computed
// CHECK-NOT: tt.make_tensor_descriptor %arg0
// CHECK: tt.make_tensor_descriptor %arg1
kernel.func @computed(%x: tensor<64x64xf16>, %w: tensor<64x64xf16>, %o: tensor<64x64xf16>) attributes {kernel.descriptors = true, kernel.tile = array<i64: 32, 32, 32>, outs = 1} {
  %n = prim.neg %x : tensor<64x64xf16>
  %d = prim.dot_general %n, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  kernel.return %d : tensor<64x64xf16>
}

// -----

// CHECK-LABEL: tt.func public @strided
// CHECK-NOT: tt.make_tensor_descriptor %arg0
// CHECK: tt.make_tensor_descriptor %arg1, [%c64_i32, %c64_i32], [%c72_i64, %c1_i64]
kernel.func @strided(%x: tensor<64x64xf16> {kernel.strides = affine_map<() -> (128, 2)>}, %w: tensor<64x64xf16> {kernel.strides = affine_map<() -> (72, 1)>}, %o: tensor<64x64xf16>) attributes {kernel.descriptors = true, kernel.tile = array<i64: 32, 32, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  kernel.return %d : tensor<64x64xf16>
}

// -----

// Sizes that are open: the rows may have any number, the columns are a multiple of 8.

// CHECK-LABEL: tt.func public @open
// CHECK: tt.make_tensor_descriptor %arg0, [%{{.*}}, %c64_i32], [%c64_i64, %c1_i64]
kernel.func @open(%x: tensor<?x64xf16> {prim.sizes = affine_map<()[s0] -> (s0, 64)>}, %w: tensor<64x64xf16>, %o: tensor<?x64xf16> {prim.sizes = affine_map<()[s0] -> (s0, 64)>}) attributes {kernel.descriptors = true, kernel.tile = array<i64: 32, 32, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<?x64xf16>, tensor<64x64xf16>) -> tensor<?x64xf16>
  kernel.return %d : tensor<?x64xf16>
}
