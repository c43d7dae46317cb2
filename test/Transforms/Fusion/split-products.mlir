// lamina-split-reductions of matrix products: a long contracted dimension makes programs where rows and columns do not.
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-split-reductions{min-parallelism=264 product-tile=32}))' | FileCheck %s
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-split-reductions{min-parallelism=264}))' | FileCheck %s --check-prefix=OFF

// OFF-NOT: prim.reduce

// CHECK-LABEL: @skinny
// CHECK-DAG: %[[X:.*]] = prim.reshape %arg0 : tensor<48x8192xf16> to tensor<48x32x256xf16>
// CHECK-DAG: %[[W:.*]] = prim.reshape %arg1 : tensor<8192x64xf16> to tensor<32x256x64xf16>
// CHECK: %[[P:.*]] = prim.dot_general %[[X]], %[[W]] batch [1] x [0] contract [2] x [1] : (tensor<48x32x256xf16>, tensor<32x256x64xf16>) -> tensor<32x48x64xf32>
// CHECK: %[[S:.*]] = prim.reduce <sum> %[[P]] dims [0] : tensor<32x48x64xf32> to tensor<48x64xf32>
// CHECK: return %[[S]]
func.func @skinny(%x: tensor<48x8192xf16>, %w: tensor<8192x64xf16>) -> tensor<48x64xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<48x8192xf16>, tensor<8192x64xf16>) -> tensor<48x64xf32>
  return %0 : tensor<48x64xf32>
}

// Batch dimensions stay behind the new one, symbols and precision what they are.
// CHECK-LABEL: @batch
// CHECK: prim.dot_general %{{.*}}, %{{.*}} batch [2, 0] x [1, 0] contract [3] x [2] tf32 : (tensor<2x?x{{.*}}xf32>, {{.*}}) -> tensor<{{[0-9]+}}x2x?x16xf32>
// CHECK: prim.reduce <sum> %{{.*}} dims [0] : tensor<{{[0-9]+}}x2x?x16xf32> to tensor<2x?x16xf32>
func.func @batch(%x: tensor<2x?x4096xf32> {prim.sizes = affine_map<()[s0] -> (2, s0, 4096)>}, %w: tensor<2x4096x16xf32>) -> tensor<2x?x16xf32> {
  %0 = prim.dot_general %x, %w batch [0] x [0] contract [2] x [1] tf32 : (tensor<2x?x4096xf32>, tensor<2x4096x16xf32>) -> tensor<2x?x16xf32>
  return %0 : tensor<2x?x16xf32>
}

// Programs enough; a dimension that nothing divides; one that is not known.
// CHECK-LABEL: @whole
// CHECK-NOT: prim.reduce
// CHECK: return
func.func @whole(%x: tensor<1024x8192xf32>, %w: tensor<8192x1024xf32>, %y: tensor<8x10007xf32>, %z: tensor<8x?xf32> {prim.sizes = affine_map<()[s0] -> (8, s0)>}) -> (tensor<1024x1024xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<1024x8192xf32>, tensor<8192x1024xf32>) -> tensor<1024x1024xf32>
  %1 = prim.dot_general %y, %y batch [] x [] contract [1] x [1] : (tensor<8x10007xf32>, tensor<8x10007xf32>) -> tensor<8x8xf32>
  %2 = prim.dot_general %z, %z batch [] x [] contract [1] x [1] : (tensor<8x?xf32>, tensor<8x?xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<1024x1024xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
