// Scatters in place: programs share the updates, which are atomic operations.
// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,lamina-tile-kernels{block-tiles=true pointwise-elements=1024},canonicalize,cse))' | FileCheck %s --check-prefix=TILED
// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,lamina-tile-kernels{block-tiles=true pointwise-elements=1024},canonicalize,cse),lamina-convert-tiled-to-triton,tt.func(canonicalize,cse))' | FileCheck %s

// TILED: #[[GRID:.*]] = affine_map<()[s0] -> ((s0 * 16) ceildiv 1024)>
// TILED: kernel.func @rows({{.*}}) attributes {kernel.grid = #[[GRID]], kernel.in_place = array<i64: 0>
// TILED: %[[U:.*]] = linalg.generic
// TILED: kernel.scatter <addf> %[[U]][%arg2] into %arg0 dims [0] sizes [s0, 16] elements 1024

// CHECK-LABEL: tt.func public @rows
// CHECK-SAME: %[[X:.*]]: !tt.ptr<f32> {{{.*}}}, %[[U:.*]]: !tt.ptr<f32> {{{.*}}}, %[[I:.*]]: !tt.ptr<i64> {{{.*}}}, %[[O:.*]]: !tt.ptr<f32> {{{.*}}}, %[[N:.*]]: i32)
// CHECK: %[[ACTIVE:.*]] = arith.cmpi slt
// CHECK: arith.divui
// CHECK: %[[AT:.*]] = tt.load
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]]
// CHECK: tt.splat %[[O]]
// CHECK: %[[MASK:.*]] = arith.andi %[[ACTIVE]], %[[INSIDE]]
// CHECK: tt.atomic_rmw %{{.*}}, %{{.*}}, %[[MASK]] {atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 1 : i32} : tensor<1024x!tt.ptr<f32>>
// CHECK-NOT: tt.store
// CHECK: tt.return
kernel.func @rows(%x: tensor<100x16xf32>, %u: tensor<?x16xf32> {prim.sizes = affine_map<()[s0] -> (s0, 16)>},
                  %i: tensor<?xi64> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<100x16xf32>) attributes {kernel.in_place = array<i64: 0>, outs = 1 : i64} {
  %0 = prim.exp %u : tensor<?x16xf32>
  %1 = prim.scatter <sum> %x, %0[%i] dims [0] {in_place} : (tensor<100x16xf32>, tensor<?x16xf32>, tensor<?xi64>) -> tensor<100x16xf32>
  kernel.return %1 : tensor<100x16xf32>
}

// -----

// Two indices; a block of as many updates as there are, of which none is outside.
// TILED: kernel.scatter <maxs> %{{.*}}[%arg1, %arg2] into %arg0 dims [0, 1] sizes [4, 8] elements 32
// CHECK-LABEL: tt.func public @places
// CHECK-COUNT-2: arith.cmpi ult
// CHECK: tt.atomic_rmw {{.*}} {atomic_rmw_op = 6 : i32, {{.*}}} : tensor<32x!tt.ptr<i32>>
kernel.func @places(%x: tensor<100x16xi32>, %i: tensor<4x8xi64>, %j: tensor<4x8xi64>, %o: tensor<100x16xi32>) attributes {kernel.in_place = array<i64: 0>, outs = 1 : i64} {
  %0 = prim.iota 1 : tensor<4x8xi32>
  %1 = prim.scatter <max> %x, %0[%i, %j] dims [0, 1] {in_place} : (tensor<100x16xi32>, tensor<4x8xi32>, tensor<4x8xi64>, tensor<4x8xi64>) -> tensor<100x16xi32>
  kernel.return %1 : tensor<100x16xi32>
}

// -----

// More updates than 32 bits count.
// CHECK-LABEL: tt.func public @many
// CHECK: arith.muli {{.*}} : i64
// CHECK: tt.atomic_rmw
kernel.func @many(%x: tensor<100xi32>, %i: tensor<65536xi64>, %o: tensor<100xi32>) attributes {kernel.in_place = array<i64: 0>, outs = 1 : i64} {
  %0 = prim.broadcast %i dims [0] : tensor<65536xi64> to tensor<65536x65536xi64>
  %1 = prim.constant dense<1> : tensor<i32>
  %2 = prim.broadcast %1 dims [] : tensor<i32> to tensor<65536x65536xi32>
  %3 = prim.scatter <sum> %x, %2[%0] dims [0] {in_place} : (tensor<100xi32>, tensor<65536x65536xi32>, tensor<65536x65536xi64>) -> tensor<100xi32>
  kernel.return %3 : tensor<100xi32>
}
