// RUN: lamina-opt %s --pass-pipeline='builtin.module(kernel.func(lamina-count-work),func.func(lamina-count-work))' --split-input-file | FileCheck %s

// A gather reads no more than it looks up, and no more than there is; the indices are read whole.
// CHECK-DAG: #[[TABLE:.+]] = affine_map<() -> (2048, 96)>
// CHECK-DAG: #[[INDICES:.+]] = affine_map<() -> (6)>
// CHECK-DAG: #[[ROWS:.+]] = affine_map<() -> (96)>
// CHECK: kernel.func @gather
// CHECK-SAME: kernel.work = {elements = [#[[TABLE]], #[[INDICES]], #[[ROWS]]], operations = #[[ROWS]], products = {}}
kernel.func @gather(%table: tensor<128x16xf32>, %indices: tensor<6xi64>, %out: tensor<6x16xf32>) attributes {outs = 1 : i64} {
  %0 = prim.gather %table[%indices] dims [0] : (tensor<128x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  %1 = prim.exp %0 : tensor<6x16xf32>
  kernel.return %1 : tensor<6x16xf32>
}

// -----

// A table with another reader is read whole.
// CHECK-DAG: #[[TABLE:.+]] = affine_map<() -> (2048)>
// CHECK: kernel.func @gather_and_sum
// CHECK-SAME: elements = [#[[TABLE]],
kernel.func @gather_and_sum(%table: tensor<128x16xf32>, %indices: tensor<6xi64>, %out: tensor<6x16xf32>, %sum: tensor<16xf32>) attributes {outs = 2 : i64} {
  %0 = prim.gather %table[%indices] dims [0] : (tensor<128x16xf32>, tensor<6xi64>) -> tensor<6x16xf32>
  %1 = prim.reduce <sum> %table dims [0] : tensor<128x16xf32> to tensor<16xf32>
  kernel.return %0, %1 : tensor<6x16xf32>, tensor<16xf32>
}

// -----

// A transposed slice; an argument that nothing reads; one whose stride of 0 repeats it.
// CHECK-DAG: #[[SLICE:.+]] = affine_map<() -> (128, 32)>
// CHECK-DAG: #[[NONE:.+]] = affine_map<() -> (32, 0)>
// CHECK-DAG: #[[REPEATED:.+]] = affine_map<() -> (8, 8)>
// CHECK: kernel.func @parts
// CHECK-SAME: elements = [#[[SLICE]], #[[NONE]], #[[REPEATED]],
kernel.func @parts(%x: tensor<8x16xf32>, %unused: tensor<32xf32>, %bias: tensor<4x8xf32> {kernel.strides = affine_map<() -> (0, 1)>}, %out: tensor<4x8xf32>) attributes {outs = 1 : i64} {
  %0 = prim.transpose %x [1, 0] : tensor<8x16xf32> to tensor<16x8xf32>
  %1 = prim.slice %0 [4, 0] to [8, 8] step [1, 1] : tensor<16x8xf32> to tensor<4x8xf32>
  %2 = prim.add %1, %bias : tensor<4x8xf32>
  kernel.return %2 : tensor<4x8xf32>
}

// -----

// Multiplications and additions, by the operands' type; elementwise ops and reductions; sizes that are open.
// CHECK-DAG: #[[X:.+]] = affine_map<()[s0] -> (s0 * 64)>
// CHECK-DAG: #[[W:.+]] = affine_map<() -> (2048)>
// CHECK-DAG: #[[SUM:.+]] = affine_map<()[s0] -> (s0)>
// CHECK-DAG: #[[PRODUCTS:.+]] = affine_map<()[s0] -> (s0 * 4096)>
// CHECK: kernel.func @product
// CHECK-SAME: kernel.work = {elements = [#[[X]], #[[W]], #[[SUM]]], operations = #[[X]], products = {f16 = #[[PRODUCTS]]}}
kernel.func @product(%x: tensor<?x64xf16> {prim.sizes = affine_map<()[s0] -> (s0, 64)>}, %w: tensor<64x32xf16>, %out: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1 : i64} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<?x64xf16>, tensor<64x32xf16>) -> tensor<?x32xf32>
  %1 = prim.exp %0 : tensor<?x32xf32>
  %2 = prim.reduce <sum> %1 dims [1] : tensor<?x32xf32> to tensor<?xf32>
  kernel.return %2 : tensor<?xf32>
}

// -----

// A convolution of groups, 2 * 6 * 16 results of 2 * 9 products each; a pooling of 4 elements.
// CHECK-DAG: #[[PRODUCTS:.+]] = affine_map<() -> (6912)>
// CHECK-DAG: #[[POOLED:.+]] = affine_map<() -> (192)>
// CHECK: kernel.func @convolution
// CHECK-SAME: operations = #[[POOLED]], products = {f32 = #[[PRODUCTS]]}
kernel.func @convolution(%x: tensor<2x4x6x6xf32>, %w: tensor<6x2x3x3xf32>, %out: tensor<2x6x2x2xf32>) attributes {outs = 1 : i64} {
  %0 = prim.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] lhs_dilations [1, 1] dilations [1, 1] groups 2
    : (tensor<2x4x6x6xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x4xf32>
  %1 = prim.reduce_window <max> %0 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] low [0, 0, 0, 0] high [0, 0, 0, 0]
    : tensor<2x6x4x4xf32> to tensor<2x6x2x2xf32>
  kernel.return %1 : tensor<2x6x2x2xf32>
}

// -----

// Functions of the host have no work of their own.
// CHECK: func.func @host(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> {
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// What is changed in place is read and written where there are updates.
// CHECK-DAG: #[[OPERAND:.+]] = affine_map<() -> (2048, 96)>
// CHECK-DAG: #[[ROWS:.+]] = affine_map<() -> (96)>
// CHECK-DAG: #[[INDICES:.+]] = affine_map<() -> (6)>
// CHECK: kernel.func @scatter
// CHECK-SAME: elements = [#[[OPERAND]], #[[ROWS]], #[[INDICES]], #[[OPERAND]]]
kernel.func @scatter(%x: tensor<128x16xf32>, %updates: tensor<6x16xf32>, %indices: tensor<6xi64>, %out: tensor<128x16xf32>) attributes {kernel.in_place = array<i64: 0>, outs = 1 : i64} {
  %0 = prim.scatter <sum> %x, %updates[%indices] dims [0] {in_place} : (tensor<128x16xf32>, tensor<6x16xf32>, tensor<6xi64>) -> tensor<128x16xf32>
  kernel.return %0 : tensor<128x16xf32>
}
