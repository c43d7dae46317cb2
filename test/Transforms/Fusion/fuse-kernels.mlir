// lamina-fuse-kernels: which ops share a kernel, and what the kernel looks like.
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels | FileCheck %s

// Reductions, what they are made of and what is made of them share a kernel, for any number of rows.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>
// CHECK-NEXT: %[[R:.*]] = kernel.launch @[[K:.*]] [s2, s1] ins(%[[X]] : tensor<?x?xf32>) -> tensor<?x?xf32>
// CHECK-NEXT: return %[[R]]
// A kernel has symbols of its own, numbered as it meets them.
// CHECK: kernel.func @[[K]](%[[X:.*]]: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>}, %{{.*}}: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>}) attributes {outs = 1 : i64} {
// CHECK-NEXT: %[[M:.*]] = prim.reduce <max> %[[X]] dims [1]
// CHECK-NEXT: %[[MB:.*]] = prim.broadcast %[[M]] dims [0] sizes [s0, s1]
// CHECK-NEXT: %[[D:.*]] = prim.sub %[[X]], %[[MB]]
// CHECK-NEXT: %[[E:.*]] = prim.exp %[[D]]
// CHECK-NEXT: %[[S:.*]] = prim.reduce <sum> %[[E]] dims [1]
// CHECK-NEXT: %[[SB:.*]] = prim.broadcast %[[S]] dims [0] sizes [s0, s1]
// CHECK-NEXT: %[[Q:.*]] = prim.div %[[E]], %[[SB]]
// CHECK-NEXT: kernel.return %[[Q]]
// CHECK-NOT: kernel.func
func.func @softmax(%x: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1, s2] -> (s2, s1)>}) -> tensor<?x?xf32> {
  %m = prim.reduce <max> %x dims [1] : tensor<?x?xf32> to tensor<?xf32>
  %mb = prim.broadcast %m dims [0] sizes [s2, s1] : tensor<?xf32> to tensor<?x?xf32>
  %d = prim.sub %x, %mb : tensor<?x?xf32>
  %e = prim.exp %d : tensor<?x?xf32>
  %s = prim.reduce <sum> %e dims [1] : tensor<?x?xf32> to tensor<?xf32>
  %sb = prim.broadcast %s dims [0] sizes [s2, s1] : tensor<?xf32> to tensor<?x?xf32>
  %r = prim.div %e, %sb : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// Dimensions that always go together are one.
// CHECK-LABEL: func.func @coalesce(
// CHECK: kernel.launch @k_add [s0] {{.*}} -> tensor<?xf32>
// CHECK: kernel.view {{.*}} sizes [s0, 8, 16] strides [128, 16, 1] : tensor<?xf32> to tensor<?x8x16xf32>
// CHECK: kernel.func @k_add(%{{.*}}: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 128)>}
func.func @coalesce(%x: tensor<?x8x16xf32> {prim.sizes = affine_map<()[s0] -> (s0, 8, 16)>},
                    %y: tensor<?x8x16xf32> {prim.sizes = affine_map<()[s0] -> (s0, 8, 16)>}) -> tensor<?x8x16xf32> {
  %0 = prim.add %x, %y : tensor<?x8x16xf32>
  return %0 : tensor<?x8x16xf32>
}

// -----

// Not those of which a value has only one.
// CHECK-LABEL: func.func @coalesce_some(
// CHECK: kernel.func @k_add(%{{.*}}: tensor<32x16xf32>, %{{.*}}: tensor<16xf32>, %{{.*}}: tensor<32x16xf32>)
func.func @coalesce_some(%x: tensor<4x8x16xf32>, %y: tensor<16xf32>) -> tensor<4x8x16xf32> {
  %b = prim.broadcast %y dims [2] : tensor<16xf32> to tensor<4x8x16xf32>
  %0 = prim.add %x, %b : tensor<4x8x16xf32>
  return %0 : tensor<4x8x16xf32>
}

// -----

// A slice is an offset and strides, and its dimensions are no longer one piece of memory.
// CHECK-LABEL: func.func @slice(
// CHECK-NEXT: %[[V:.*]] = kernel.view %{{.*}} offset [22] sizes [3, 8] strides [20, 2] : tensor<4x20xf32> to tensor<3x8xf32>
// CHECK-NEXT: kernel.launch @[[K:.*]] [] ins(%[[V]]
// CHECK: kernel.func @[[K]](%{{.*}}: tensor<3x8xf32> {kernel.strides = affine_map<() -> (20, 2)>}, %{{.*}}: tensor<3x8xf32>)
func.func @slice(%x: tensor<4x20xf32>) -> tensor<3x8xf32> {
  %0 = prim.slice %x [1, 2] to [4, 18] step [1, 2] : tensor<4x20xf32> to tensor<3x8xf32>
  %1 = prim.exp %0 : tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// A reshape inside a kernel splits the dimensions of all of its values: none is left.
// CHECK-LABEL: func.func @heads(
// CHECK: %[[V:.*]] = kernel.view %arg0 offset [0] sizes [2, 16, 3, 4] strides [192, 12, 4, 1] : tensor<2x16x12xf32> to tensor<2x16x3x4xf32>
// CHECK-NEXT: %[[R:.*]] = kernel.launch @[[K:.*]] [] ins(%[[V]], %arg1 {{.*}}) -> tensor<2x3x16x4xf32>
// CHECK-NEXT: return %[[R]]
// CHECK: kernel.func @[[K]]
// CHECK-NOT: prim.reshape
// CHECK: prim.transpose %{{.*}} [0, 2, 1, 3] : tensor<2x16x3x4xf32> to tensor<2x3x16x4xf32>
// CHECK-NOT: prim.reshape
func.func @heads(%x: tensor<2x16x12xf32>, %y: tensor<2x16x3x4xf32>) -> tensor<2x3x16x4xf32> {
  %0 = prim.exp %x : tensor<2x16x12xf32>
  %1 = prim.reshape %0 : tensor<2x16x12xf32> to tensor<2x16x3x4xf32>
  %2 = prim.add %1, %y : tensor<2x16x3x4xf32>
  %3 = prim.transpose %2 [0, 2, 1, 3] : tensor<2x16x3x4xf32> to tensor<2x3x16x4xf32>
  return %3 : tensor<2x3x16x4xf32>
}

// -----

// Sizes without common factors are two iteration spaces: the reshape is a view between two kernels.
// CHECK-LABEL: func.func @misfit(
// CHECK: %[[A:.*]] = kernel.launch @{{.*}} [] ins(%arg0 : tensor<6x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: %[[V:.*]] = kernel.view %[[A]] offset [0] sizes [8, 3] strides [3, 1] : tensor<6x4xf32> to tensor<8x3xf32>
// CHECK-NEXT: kernel.launch @{{.*}} [] ins(%[[V]] : tensor<8x3xf32>) -> tensor<8xf32>
func.func @misfit(%x: tensor<6x4xf32>) -> tensor<8xf32> {
  %0 = prim.reduce <sum> %x dims [1] : tensor<6x4xf32> to tensor<6xf32>
  %1 = prim.broadcast %0 dims [0] : tensor<6xf32> to tensor<6x4xf32>
  %2 = prim.mul %x, %1 : tensor<6x4xf32>
  %3 = prim.reshape %2 : tensor<6x4xf32> to tensor<8x3xf32>
  %4 = prim.reduce <sum> %3 dims [1] : tensor<8x3xf32> to tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// What is transposed in memory must be copied before such a reshape can read it.
// CHECK-LABEL: func.func @misfit_transposed(
// CHECK: %[[C:.*]] = kernel.launch @k_copy [] ins(%arg0 : tensor<4x6xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: %[[V:.*]] = kernel.view %[[C]] offset [0] sizes [8, 3] strides [3, 1]
// CHECK-NEXT: kernel.launch @{{.*}} [] ins(%[[V]] : tensor<8x3xf32>) -> tensor<8xf32>
func.func @misfit_transposed(%x: tensor<4x6xf32>) -> tensor<8xf32> {
  %0 = prim.transpose %x [1, 0] : tensor<4x6xf32> to tensor<6x4xf32>
  %1 = prim.reshape %0 : tensor<6x4xf32> to tensor<8x3xf32>
  %2 = prim.reduce <sum> %1 dims [1] : tensor<8x3xf32> to tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Kernels are equal whatever their locations; one that differs, or whose name is taken, gets another name.
// CHECK-LABEL: func.func @equal(
// CHECK-DAG: kernel.launch @[[E:k_exp_[0-9]+]] [] ins(%arg1 : tensor<32xf32>)
// CHECK-DAG: kernel.launch @[[E]] [] ins(%arg2 : tensor<32xf32>)
// CHECK-DAG: kernel.launch @[[F:k_exp_[0-9]+]] [] ins(%arg3 : tensor<48xf32>)
// CHECK: kernel.func @[[E]](%{{.*}}: tensor<32xf32>
// CHECK: kernel.func @[[F]](%{{.*}}: tensor<48xf32>
// CHECK-NOT: kernel.func
func.func private @k_exp()
func.func @equal(%i: tensor<8xi64>, %x: tensor<32xf32>, %y: tensor<32xf32>, %z: tensor<48xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<48xf32>) {
  %0 = prim.exp %x : tensor<32xf32> loc("here":1:1)
  %1 = prim.gather %0[%i] dims [0] : (tensor<32xf32>, tensor<8xi64>) -> tensor<8xf32>
  %2 = prim.exp %y : tensor<32xf32> loc("there":2:2)
  %3 = prim.gather %2[%i] dims [0] : (tensor<32xf32>, tensor<8xi64>) -> tensor<8xf32>
  %4 = prim.exp %z : tensor<48xf32>
  return %1, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<48xf32>
}

// -----

// Ops without a cost are in each kernel that reads them, and never in memory.
// CHECK-LABEL: func.func @free(
// CHECK-SAME: %[[X:.*]]: tensor<64x64xf32>, %[[Y:.*]]: tensor<64xf32>)
// CHECK-NEXT: %[[A:.*]] = kernel.launch @[[DOT:.*]] [] ins(%[[X]], %[[Y]] : {{.*}}) -> tensor<64x64xf32>
// CHECK-NEXT: %[[B:.*]] = kernel.launch @[[SUB:.*]] [] ins(%[[Y]] : {{.*}}) -> tensor<64xf32>
// CHECK-NEXT: return %[[A]], %[[B]]
// CHECK: kernel.func @[[DOT]](
// CHECK: prim.broadcast
// CHECK: prim.iota
// CHECK: kernel.func @[[SUB]](
// CHECK: prim.iota
func.func @free(%x: tensor<64x64xf32>, %y: tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %b = prim.broadcast %y dims [1] : tensor<64xf32> to tensor<64x64xf32>
  %d = prim.dot_general %x, %b batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %i = prim.iota 0 : tensor<64xf32>
  %m = prim.sub %y, %i : tensor<64xf32>
  %ib = prim.broadcast %i dims [1] : tensor<64xf32> to tensor<64x64xf32>
  %e = prim.add %d, %ib : tensor<64x64xf32>
  return %e, %m : tensor<64x64xf32>, tensor<64xf32>
}

// -----

// A gather reads memory that another kernel has written: the sum of both joins the gather, not the exp before it,
// whose kernel would then wait for itself.
// CHECK-LABEL: func.func @no_cycle(
// CHECK: %[[A:.*]] = kernel.launch @k_exp []
// CHECK: kernel.launch @[[K:.*]] [] ins({{.*}}, %arg1 : tensor<64x64xf32>, tensor<64xi64>) -> tensor<64x64xf32>
// CHECK-NOT: kernel.launch
// CHECK: kernel.func @[[K]](
// CHECK: prim.gather
// CHECK: prim.add
func.func @no_cycle(%x: tensor<64x64xf32>, %i: tensor<64xi64>) -> tensor<64x64xf32> {
  %a = prim.exp %x : tensor<64x64xf32>
  %b = prim.gather %a[%i] dims [0] : (tensor<64x64xf32>, tensor<64xi64>) -> tensor<64x64xf32>
  %c = prim.add %a, %b : tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}

// -----

// x + transpose(x) has one iteration space only if x is in memory.
// CHECK-LABEL: func.func @no_projection(
// CHECK-COUNT-2: kernel.launch
// CHECK-NOT: kernel.launch
// CHECK: kernel.func @[[ADD:k_add]](%[[A:.*]]: tensor<64x64xf32>, %{{.*}}: tensor<64x64xf32>)
// CHECK-NEXT: %[[T:.*]] = prim.transpose %[[A]] [1, 0]
// CHECK-NEXT: prim.add %[[A]], %[[T]]
func.func @no_projection(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = prim.exp %x : tensor<64x64xf32>
  %t = prim.transpose %a [1, 0] : tensor<64x64xf32> to tensor<64x64xf32>
  %c = prim.add %a, %t : tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}

// -----

// One contraction a kernel, with what follows it element by element; no reduction beside it.
// CHECK-LABEL: func.func @contractions(
// CHECK-NEXT: %[[A:.*]] = kernel.launch @[[E:k_dot_general_exp]] []
// CHECK-NEXT: %[[B:.*]] = kernel.launch @k_dot_general [] ins(%[[A]], %arg1
// CHECK-NEXT: %[[C:.*]] = kernel.launch @k_max [] ins(%[[B]]
// CHECK-NEXT: return %[[C]]
func.func @contractions(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = prim.exp %0 : tensor<64x64xf32>
  %2 = prim.dot_general %1, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = prim.reduce <max> %2 dims [1] : tensor<64x64xf32> to tensor<64xf32>
  return %3 : tensor<64xf32>
}

// -----

// Results are memory of their own: an argument, and a value returned twice, are copied. Dead ops are dropped.
// CHECK-LABEL: func.func @results(
// CHECK-NOT: k_log
// CHECK-DAG: %[[E:.*]]:2 = kernel.launch @k_exp [] ins(%arg0 : tensor<4xf32>) -> tensor<4xf32>, tensor<4xf32>
// CHECK-DAG: %[[C:.*]] = kernel.launch @k_copy [] ins(%arg0 : tensor<4xf32>) -> tensor<4xf32>
// CHECK: return %[[C]], %[[E]]#0, %[[E]]#1
// CHECK-NOT: k_log
func.func @results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = prim.exp %x : tensor<4xf32>
  %1 = prim.log %x : tensor<4xf32>
  return %x, %0, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Two arguments of one view are one; symbols are passed to each kernel that needs them, and a kernel without gets none.
// CHECK-LABEL: func.func @symbols(
// CHECK: kernel.launch @{{.*}} [s1] ins(%arg1 : tensor<?xf32>) -> tensor<?xf32>
// CHECK: kernel.launch @{{.*}} [] ins(%arg0 : tensor<8xf32>) -> tensor<8xf32>
func.func @symbols(%x: tensor<8xf32>, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s1)>}) -> (tensor<?xf32>, tensor<8xf32>) {
  %0 = prim.mul %y, %y : tensor<?xf32>
  %1 = prim.exp %x : tensor<8xf32>
  return %0, %1 : tensor<?xf32>, tensor<8xf32>
}

// -----

// Indices are clamped in the kernel that gathers by them.
// CHECK-LABEL: func.func @clamped(
// CHECK-NEXT: kernel.launch @k_min_max_gather
// CHECK-NEXT: return
func.func @clamped(%x: tensor<10x4xf32>, %i: tensor<6xi64>) -> tensor<6x4xf32> {
  %0 = prim.constant dense<0> : tensor<6xi64>
  %1 = prim.constant dense<9> : tensor<6xi64>
  %2 = prim.min %i, %1 : tensor<6xi64>
  %3 = prim.max %2, %0 : tensor<6xi64>
  %4 = prim.gather %x[%3] dims [0] : (tensor<10x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %4 : tensor<6x4xf32>
}

// -----

// A square is computed where it is summed, not stored beside what it is the square of.
// CHECK-LABEL: func.func @norm(
// CHECK: %[[D:.*]] = kernel.launch @k_dot_general_add [] ins(%{{.*}}) -> tensor<64x512xf32>
// CHECK: kernel.launch @k_mul_sum{{.*}} ins(%[[D]] : tensor<64x512xf32>) -> tensor<64x512xf32>
// CHECK: return
func.func @norm(%x: tensor<64x512xf32>, %w: tensor<512x512xf32>) -> tensor<64x512xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %1 = prim.add %0, %x : tensor<64x512xf32>
  %2 = prim.mul %1, %1 : tensor<64x512xf32>
  %3 = prim.reduce <sum> %2 dims [1] : tensor<64x512xf32> to tensor<64xf32>
  %4 = prim.broadcast %3 dims [0] : tensor<64xf32> to tensor<64x512xf32>
  %5 = prim.mul %1, %4 : tensor<64x512xf32>
  return %5 : tensor<64x512xf32>
}

// -----

// A reader keeps its dimension of size 1; what joins it gets one.
// CHECK-LABEL: func.func @unit(
// CHECK-NEXT: kernel.launch @k_concatenate_exp_add
// CHECK-NEXT: return
// CHECK: %[[E:.*]] = prim.exp
// CHECK: prim.broadcast %[[E]] dims [1] : tensor<8xf32> to tensor<1x8xf32>
func.func @unit(%x: tensor<1x4xf32>, %y: tensor<8xf32>) -> tensor<1x8xf32> {
  %0 = prim.concatenate %x, %x dim 1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x8xf32>
  %1 = prim.exp %y : tensor<8xf32>
  %2 = prim.reshape %1 : tensor<8xf32> to tensor<1x8xf32>
  %3 = prim.add %0, %2 : tensor<1x8xf32>
  return %3 : tensor<1x8xf32>
}
