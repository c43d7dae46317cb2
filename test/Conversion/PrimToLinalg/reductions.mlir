// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg))' | FileCheck %s --check-prefixes=CHECK,MERGED
// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(any(lamina-convert-prim-to-linalg{merge-reductions=false}))' | FileCheck %s --check-prefixes=CHECK,APART

// The exponential is stored while it is summed.

// CHECK-LABEL: kernel.func @softmax
// CHECK: %[[M:.*]] = linalg.generic
// CHECK: arith.maximumf
// MERGED: %[[E:.*]]:2 = linalg.generic
// MERGED-SAME: iterator_types = ["parallel", "reduction"]
// MERGED: math.exp
// MERGED: arith.addf
// MERGED: linalg.generic
// MERGED-SAME: ins(%[[E]]#0, %[[E]]#1
// APART: %[[E:.*]] = linalg.generic
// APART-SAME: iterator_types = ["parallel", "parallel"]
// APART: math.exp
// APART: %[[S:.*]] = linalg.generic
// APART: arith.addf
// APART: linalg.generic
// APART-SAME: ins(%[[E]], %[[S]]
// CHECK: arith.divf
// CHECK-NOT: math.exp
kernel.func @softmax(%x: tensor<8x16xf32>, %o: tensor<8x16xf32>) attributes {outs = 1} {
  %m = prim.reduce <max> %x dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %d = prim.sub %x, %mb : tensor<8x16xf32>
  %e = prim.exp %d : tensor<8x16xf32>
  %s = prim.reduce <sum> %e dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %sb = prim.broadcast %s dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %r = prim.div %e, %sb : tensor<8x16xf32>
  kernel.return %r : tensor<8x16xf32>
}

// -----

// Narrow floats accumulate in f32 and are rounded once.

// CHECK-LABEL: kernel.func @narrow
// CHECK: linalg.fill {{.*}} -> tensor<8xf32>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.truncf %{{.*}} : f32 to f16
kernel.func @narrow(%x: tensor<8x16xf16>, %o: tensor<8xf16>) attributes {outs = 1} {
  %0 = prim.reduce <sum> %x dims [1] : tensor<8x16xf16> to tensor<8xf16>
  kernel.return %0 : tensor<8xf16>
}

// -----

// A division that a broadcast repeats is done once a row.

// CHECK-LABEL: kernel.func @mean
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.divf
// CHECK: linalg.yield
// CHECK: linalg.generic
// CHECK-NOT: arith.divf
// CHECK: arith.subf
kernel.func @mean(%x: tensor<8x16xf32>, %o: tensor<8x16xf32>) attributes {outs = 1} {
  %n = prim.constant dense<16.0> : tensor<8xf32>
  %s = prim.reduce <sum> %x dims [1] : tensor<8x16xf32> to tensor<8xf32>
  %m = prim.div %s, %n : tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x16xf32>
  %r = prim.sub %x, %mb : tensor<8x16xf32>
  kernel.return %r : tensor<8x16xf32>
}

// -----

// CHECK-LABEL: kernel.func @arg
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK-SAME: lamina.arg_reduce
// CHECK: kernel.return %[[R]]#1
kernel.func @arg(%x: tensor<8x16xf32>, %o: tensor<8xi64>) attributes {outs = 1} {
  %0 = prim.arg_reduce <max> %x dim 1 : tensor<8x16xf32> to tensor<8xi64>
  kernel.return %0 : tensor<8xi64>
}

// -----

// CHECK-LABEL: kernel.func @scan
// CHECK: scf.for
// CHECK: tensor.insert_slice
// CHECK: lamina.scan
kernel.func @scan(%x: tensor<8x16xf32>, %o: tensor<8x16xf32>) attributes {outs = 1} {
  %0 = prim.scan <sum> %x dim 0 : tensor<8x16xf32>
  kernel.return %0 : tensor<8x16xf32>
}
