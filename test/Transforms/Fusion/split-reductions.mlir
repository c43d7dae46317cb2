// lamina-split-reductions: the first step keeps enough elements for as many programs, the second combines them.
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-split-reductions))' | FileCheck %s
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-split-reductions{launch-elements=100000000}))' | FileCheck %s --check-prefix=OFF
// RUN: lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-split-reductions{min-parallelism=1}))' | FileCheck %s --check-prefix=OFF

// Neither too few elements nor enough programs: no op more than there were.
// OFF-NOT: prim.reshape
// OFF-COUNT-9: prim.reduce
// OFF-NOT: prim.reduce
// OFF-NOT: prim.reshape

// One dimension alone is split by its largest divisor up to 512, whatever the number of threads.
// CHECK-LABEL: @one
// CHECK-NEXT: %[[S:.*]] = prim.reshape %arg0 : tensor<1050000xf32> to tensor<500x2100xf32>
// CHECK-NEXT: %[[P:.*]] = prim.reduce <sum> %[[S]] dims [1] : tensor<500x2100xf32> to tensor<500xf32>
// CHECK-NEXT: %[[R:.*]] = prim.reduce <sum> %[[P]] dims [0] : tensor<500xf32> to tensor<f32>
// CHECK-NEXT: return %[[R]]
func.func @one(%x: tensor<1050000xf32>) -> tensor<f32> {
  %0 = prim.reduce <sum> %x dims [0] : tensor<1050000xf32> to tensor<f32>
  return %0 : tensor<f32>
}

// Without such a divisor it stays.
// CHECK-LABEL: @prime
// CHECK-NEXT: prim.reduce <max> %arg0 dims [0] : tensor<1000003xf32> to tensor<f32>
// CHECK-NEXT: return
func.func @prime(%x: tensor<1000003xf32>) -> tensor<f32> {
  %0 = prim.reduce <max> %x dims [0] : tensor<1000003xf32> to tensor<f32>
  return %0 : tensor<f32>
}

// What is kept makes programs enough.
// CHECK-LABEL: @kept
// CHECK-NEXT: prim.reduce <sum> %arg0 dims [0] : tensor<64x4096xf32> to tensor<4096xf32>
// CHECK-NEXT: return
func.func @kept(%x: tensor<64x4096xf32>) -> tensor<4096xf32> {
  %0 = prim.reduce <sum> %x dims [0] : tensor<64x4096xf32> to tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// Too few elements for two kernels.
// CHECK-LABEL: @little
// CHECK-NEXT: prim.reduce <sum> %arg0 dims [0] : tensor<4096xf32> to tensor<f32>
// CHECK-NEXT: return
func.func @little(%x: tensor<4096xf32>) -> tensor<f32> {
  %0 = prim.reduce <sum> %x dims [0] : tensor<4096xf32> to tensor<f32>
  return %0 : tensor<f32>
}

// The outermost reduced dimension of several is left to the second step, and bf16 rounds once, after it.
// CHECK-LABEL: @narrow
// CHECK-NEXT: %[[X:.*]] = prim.convert %arg0 : tensor<4x300x4x500xbf16> to tensor<4x300x4x500xf32>
// CHECK-NEXT: %[[P:.*]] = prim.reduce <sum> %[[X]] dims [1, 3] : tensor<4x300x4x500xf32> to tensor<4x4xf32>
// CHECK-NEXT: %[[R:.*]] = prim.reduce <sum> %[[P]] dims [0] : tensor<4x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[N:.*]] = prim.convert %[[R]] : tensor<4xf32> to tensor<4xbf16>
// CHECK-NEXT: return %[[N]]
func.func @narrow(%x: tensor<4x300x4x500xbf16>) -> tensor<4xbf16> {
  %0 = prim.reduce <sum> %x dims [3, 1, 0] : tensor<4x300x4x500xbf16> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// CHECK-LABEL: @dynamic_outer
// CHECK-NEXT: %[[P:.*]] = prim.reduce <max> %arg0 dims [1] : tensor<?x4096xf32> to tensor<?xf32>
// CHECK-NEXT: %[[R:.*]] = prim.reduce <max> %[[P]] dims [0] : tensor<?xf32> to tensor<f32>
// CHECK-NEXT: return %[[R]]
func.func @dynamic_outer(%x: tensor<?x4096xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4096)>}) -> tensor<f32> {
  %0 = prim.reduce <max> %x dims [0, 1] : tensor<?x4096xf32> to tensor<f32>
  return %0 : tensor<f32>
}

// The sizes of the reshape are expressions.
// CHECK-LABEL: @dynamic_inner
// CHECK-NEXT: %[[S:.*]] = prim.reshape %arg0 sizes [512, 8, s1] : tensor<4096x?xi32> to tensor<512x8x?xi32>
// CHECK-NEXT: %[[P:.*]] = prim.reduce <prod> %[[S]] dims [1, 2] : tensor<512x8x?xi32> to tensor<512xi32>
// CHECK-NEXT: prim.reduce <prod> %[[P]] dims [0] : tensor<512xi32> to tensor<i32>
func.func @dynamic_inner(%x: tensor<4096x?xi32> {prim.sizes = affine_map<()[s0, s1] -> (4096, s1)>}) -> tensor<i32> {
  %0 = prim.reduce <prod> %x dims [0, 1] : tensor<4096x?xi32> to tensor<i32>
  return %0 : tensor<i32>
}

// Nothing says how to split a dimension of any size.
// CHECK-LABEL: @dynamic_alone
// CHECK-NEXT: prim.reduce <max> %arg0 dims [1] : tensor<4x?x1xf32> to tensor<4x1xf32>
// CHECK-NEXT: return
func.func @dynamic_alone(%x: tensor<4x?x1xf32> {prim.sizes = affine_map<()[s0] -> (4, s0, 1)>}) -> tensor<4x1xf32> {
  %0 = prim.reduce <max> %x dims [1] : tensor<4x?x1xf32> to tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// Few rows, but short ones: a launch would cost more than they do.
// CHECK-LABEL: @short
// CHECK-NEXT: prim.reduce <sum> %arg0 dims [1] : tensor<4x12288xf32> to tensor<4xf32>
// CHECK-NEXT: return
func.func @short(%x: tensor<4x12288xf32>) -> tensor<4xf32> {
  %0 = prim.reduce <sum> %x dims [1] : tensor<4x12288xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
