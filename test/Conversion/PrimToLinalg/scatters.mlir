// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg{parallel-scatters=true},canonicalize,cse))' | FileCheck %s

// Each element adds the updates that meet it.

// CHECK-LABEL: kernel.func @sum
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.cmpi eq
// CHECK: scf.if
// CHECK: arith.addf
// CHECK-NOT: tensor.insert
kernel.func @sum(%x: tensor<100x16xf32>, %u: tensor<5x16xf32>, %i: tensor<5xi64>, %o: tensor<100x16xf32>) attributes {outs = 1} {
  %0 = prim.scatter <sum> %x, %u[%i] dims [0] : (tensor<100x16xf32>, tensor<5x16xf32>, tensor<5xi64>) -> tensor<100x16xf32>
  kernel.return %0 : tensor<100x16xf32>
}

// -----

// Of several updates the last one stays: its number is found first.

// CHECK-LABEL: kernel.func @assign
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.maxsi
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: scf.if
kernel.func @assign(%x: tensor<100x16xf32>, %u: tensor<5x16xf32>, %i: tensor<5xi64>, %o: tensor<100x16xf32>) attributes {outs = 1} {
  %0 = prim.scatter <assign> %x, %u[%i] dims [0] : (tensor<100x16xf32>, tensor<5x16xf32>, tensor<5xi64>) -> tensor<100x16xf32>
  kernel.return %0 : tensor<100x16xf32>
}
