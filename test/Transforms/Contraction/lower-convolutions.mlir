// RUN: lamina-opt %s --split-input-file --lamina-lower-contractions | FileCheck %s

// Weights are rows, pixels are columns: a panel holds 9 taps of 4 channels; a row of 20 pixels ends inside a vector, so that
// each vector is put together from two pieces.

// CHECK-LABEL: @convolution
// CHECK: memref.alloc() {{.*}} : memref<{{[0-9]+}}x48x{{[0-9]+}}xf32>
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: vector.store
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// CHECK: scf.for {{.*}} iter_args
// CHECK: math.fma
func.func @convolution(%X: memref<1x4x22x22xf32>, %W: memref<32x4x3x3xf32>, %Y: memref<1x32x20x20xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(b, o, y, x, i, s, t) -> (b, i, y + s, x + t)>,
                     affine_map<(b, o, y, x, i, s, t) -> (o, i, s, t)>,
                     affine_map<(b, o, y, x, i, s, t) -> (b, o, y, x)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"],
    lamina.convolution}
    ins(%X, %W : memref<1x4x22x22xf32>, memref<32x4x3x3xf32>) outs(%Y : memref<1x32x20x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Depthwise: vectors along x, read in place, the taps written out.

// CHECK-LABEL: @depthwise
// CHECK-NOT: memref.alloc
// CHECK-NOT: iter_args
// CHECK-COUNT-9: math.fma
// CHECK-NOT: math.fma
func.func @depthwise(%X: memref<1x8x18x18xf32>, %W: memref<8x3x3xf32>, %Y: memref<1x8x16x16xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(b, g, y, x, s, t) -> (b, g, y + s, x + t)>,
                     affine_map<(b, g, y, x, s, t) -> (g, s, t)>, affine_map<(b, g, y, x, s, t) -> (b, g, y, x)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"], lamina.convolution}
    ins(%X, %W : memref<1x8x18x18xf32>, memref<8x3x3xf32>) outs(%Y : memref<1x8x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}
