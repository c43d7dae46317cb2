// lamina-fuse-kernels: kernels are not joined where the fewer programs cost more than a launch and the memory saves.
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels="min-parallelism=64" | FileCheck %s --check-prefixes=CHECK,MANY,BIG
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels="min-parallelism=1" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels="min-parallelism=64 size-hint=4" | FileCheck %s --check-prefixes=CHECK,MANY,SMALL

// The second step of a reduction is one program, the first has 512.
// CHECK-LABEL: func.func @steps(
// MANY-NEXT: %[[A:.*]] = kernel.launch @[[FIRST:.*]] [] ins(%arg0 : {{.*}}) -> tensor<512xf32>
// MANY-NEXT: %[[B:.*]] = kernel.launch @[[LAST:.*]] [] ins(%[[A]] : tensor<512xf32>) -> tensor<f32>
// ONE-NEXT: %[[B:.*]] = kernel.launch @{{.*}} [] ins(%arg0 : {{.*}}) -> tensor<f32>
// CHECK-NEXT: return %[[B]]
func.func @steps(%x: tensor<512x4096xf32>) -> tensor<f32> {
  %0 = prim.exp %x : tensor<512x4096xf32>
  %1 = prim.reduce <sum> %0 dims [1] : tensor<512x4096xf32> to tensor<512xf32>
  %2 = prim.reduce <sum> %1 dims [0] : tensor<512xf32> to tensor<f32>
  return %2 : tensor<f32>
}

// -----

// A dimension without a bound is taken to be `size-hint` long: with 4 there is too little work for two launches.
// CHECK-LABEL: func.func @hint(
// CHECK: kernel.launch
// BIG: kernel.launch
// SMALL-NOT: kernel.launch
// ONE-NOT: kernel.launch
// CHECK: return
func.func @hint(%x: tensor<?x?x?xf32> {prim.sizes = affine_map<()[s0] -> (s0, s0, s0)>}) -> tensor<f32> {
  %0 = prim.exp %x : tensor<?x?x?xf32>
  %1 = prim.reduce <sum> %0 dims [1, 2] : tensor<?x?x?xf32> to tensor<?xf32>
  %2 = prim.reduce <sum> %1 dims [0] : tensor<?xf32> to tensor<f32>
  return %2 : tensor<f32>
}
