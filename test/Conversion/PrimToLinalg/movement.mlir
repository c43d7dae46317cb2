// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg))' | FileCheck %s

// A slice of an argument is a view that the generic reads.

// CHECK-LABEL: kernel.func @slice
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][1, 0] [3, 3] [1, 2]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[S]]
kernel.func @slice(%x: tensor<4x6xf32>, %o: tensor<3x3xf32>) attributes {outs = 1} {
  %0 = prim.neg %x : tensor<4x6xf32>
  %1 = prim.slice %0 [1, 0] to [4, 6] step [1, 2] : tensor<4x6xf32> to tensor<3x3xf32>
  kernel.return %1 : tensor<3x3xf32>
}

// -----

// Reads at computed indices are clamped.

// CHECK-LABEL: kernel.func @gather
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32>, %[[I:.*]]: tensor<5xi64>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[I]] : tensor<5xi64>)
// CHECK: ^bb0(%[[V:.*]]: i64,
// CHECK: %[[A:.*]] = arith.index_cast %[[V]]
// CHECK: %[[L:.*]] = arith.minsi %[[A]]
// CHECK: %[[C:.*]] = arith.maxsi %[[L]]
// CHECK: tensor.extract %[[X]][%[[C]], %{{.*}}]
kernel.func @gather(%x: tensor<4x6xf32>, %i: tensor<5xi64>, %o: tensor<5x6xf32>) attributes {outs = 1} {
  %0 = prim.gather %x[%i] dims [0] : (tensor<4x6xf32>, tensor<5xi64>) -> tensor<5x6xf32>
  kernel.return %0 : tensor<5x6xf32>
}

// -----

// CHECK-LABEL: kernel.func @concatenate
// CHECK: tensor.extract
// CHECK: tensor.extract
// CHECK: arith.select
// CHECK-NOT: tensor.extract
kernel.func @concatenate(%x: tensor<4x6xf32>, %y: tensor<2x6xf32>, %o: tensor<6x6xf32>) attributes {outs = 1} {
  %0 = prim.concatenate %x, %y dim 0 : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
  kernel.return %0 : tensor<6x6xf32>
}

// -----

// Only the padded dimension is checked.

// CHECK-LABEL: kernel.func @pad
// CHECK-COUNT-2: arith.cmpi
// CHECK-NOT: arith.cmpi
// CHECK: arith.select
kernel.func @pad(%x: tensor<4x6xf32>, %v: tensor<f32>, %o: tensor<7x6xf32>) attributes {outs = 1} {
  %0 = prim.pad %x, %v low [1, 0] high [2, 0] : tensor<4x6xf32>, tensor<f32> to tensor<7x6xf32>
  kernel.return %0 : tensor<7x6xf32>
}

// -----

// CHECK-LABEL: kernel.func @scatter
// CHECK: linalg.generic
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if
// CHECK: tensor.insert
// CHECK: lamina.scatter
kernel.func @scatter(%x: tensor<4x3xf32>, %u: tensor<6x3xf32>, %i: tensor<6xi64>, %o: tensor<4x3xf32>) attributes {outs = 1} {
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] : (tensor<4x3xf32>, tensor<6x3xf32>, tensor<6xi64>) -> tensor<4x3xf32>
  kernel.return %0 : tensor<4x3xf32>
}
