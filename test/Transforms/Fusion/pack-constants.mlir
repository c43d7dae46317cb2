// lamina-fuse-kernels: constant right operands of contractions are copied into panels by @init.
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels="pack-widths=48,32 pack-tile-widths=16" | FileCheck %s --check-prefix=PACK
// RUN: lamina-opt %s --split-input-file --lamina-fuse-kernels | FileCheck %s --check-prefix=NONE

// Without widths nothing is copied.
// NONE-NOT: k_copy
// NONE: kernel.launch
// NONE-NOT: k_copy

// The first width that divides the columns: panels [columns / width, rows, width]. What is left of a constant that
// nothing else reads is no argument, and the bias and the output see split columns without a copy.
// PACK-LABEL: func.func @init(
// PACK-SAME: %[[W:.*]]: tensor<64x96xf32> {prim.constant = "w"}) -> tensor<2x64x48xf32>
// PACK-NEXT: %[[V:.*]] = kernel.view %[[W]] offset [0] sizes [64, 2, 48] strides [96, 48, 1]
// PACK-NEXT: %[[P:.*]] = kernel.launch @[[$COPY:.*]] [] ins(%[[V]] : {{.*}}) -> tensor<2x64x48xf32>
// PACK-NEXT: return %[[P]]
// PACK-LABEL: func.func @main(
// PACK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[B:.*]]: tensor<96xf32> {prim.constant = "b"}, %[[W:.*]]: tensor<2x64x48xf32> {prim.constant = "init.0"}) -> tensor<8x96xf32>
// PACK-DAG: %[[BV:.*]] = kernel.view %[[B]] offset [0] sizes [2, 48] strides [48, 1]
// PACK: %[[R:.*]] = kernel.launch @[[DOT:.*]] [] ins(%[[X]], {{.*}}) -> tensor<8x2x48xf32>
// PACK: kernel.view %[[R]] offset [0] sizes [8, 96] strides [96, 1]
// PACK: kernel.func @[[DOT]]({{.*}}: tensor<8x64xf32>, {{.*}}tensor<2x64x48xf32>, %{{.*}}: tensor<8x2x48xf32>)
// PACK-NOT: prim.reshape
// PACK: prim.dot_general
// PACK-NOT: prim.reshape
// PACK: kernel.func @[[$COPY]](%{{.*}}: tensor<64x2x48xf32>, %{{.*}}: tensor<2x64x48xf32>)
func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x96xf32> {prim.constant = "w"}, %b: tensor<96xf32> {prim.constant = "b"}) -> tensor<8x96xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  %1 = prim.broadcast %b dims [1] : tensor<96xf32> to tensor<8x96xf32>
  %2 = prim.add %0, %1 : tensor<8x96xf32>
  return %2 : tensor<8x96xf32>
}

// -----

// A transposed weight gives the same panels; 64 columns take the second width, and any number of rows of the left.
// PACK-LABEL: func.func @init(
// PACK-SAME: tensor<64x64xf32> {prim.constant = "w"}) -> tensor<2x64x32xf32>
// PACK: kernel.view %{{.*}} offset [0] sizes [2, 32, 64] strides [2048, 64, 1]
// PACK-LABEL: func.func @main(
// PACK: kernel.launch @{{.*}} [s0] {{.*}} -> tensor<?x2x32xf32>
func.func @main(%x: tensor<?x64xf32> {prim.sizes = affine_map<()[s0] -> (s0, 64)>}, %w: tensor<64x64xf32> {prim.constant = "w"}) -> tensor<?x64xf32> {
  %t = prim.transpose %w [1, 0] : tensor<64x64xf32> to tensor<64x64xf32>
  %0 = prim.dot_general %x, %t batch [] x [] contract [1] x [0] : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// bf16 for a matrix unit: two rows alternate, [columns / width, rows / 2, width, 2].
// PACK-LABEL: func.func @init(
// PACK-SAME: tensor<64x96xbf16> {prim.constant = "w"}) -> tensor<6x32x16x2xbf16>
func.func @main(%x: tensor<8x64xbf16>, %w: tensor<64x96xbf16> {prim.constant = "w"}) -> tensor<8x96xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x64xbf16>, tensor<64x96xbf16>) -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}

// -----

// Rows that are no whole tiles: bf16 is packed as other types are.
// PACK-LABEL: func.func @init(
// PACK-SAME: tensor<48x96xbf16> {prim.constant = "w"}) -> tensor<2x48x48xbf16>
func.func @main(%x: tensor<8x48xbf16>, %w: tensor<48x96xbf16> {prim.constant = "w"}) -> tensor<8x96xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x48xbf16>, tensor<48x96xbf16>) -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}

// -----

// Two contractions with one weight read one copy.
// PACK-LABEL: func.func @init(
// PACK-SAME: -> tensor<2x96x48xf32> {
// PACK-COUNT-1: kernel.launch
// PACK-NOT: kernel.launch
// PACK-LABEL: func.func @main(
// PACK-SAME: %[[W:[a-z0-9]+]]: tensor<2x96x48xf32> {prim.constant = "init.0"})
// PACK-COUNT-2: kernel.launch {{.*}}%[[W]]
func.func @main(%x: tensor<8x96xf32>, %w: tensor<96x96xf32> {prim.constant = "w"}) -> tensor<8x96xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x96xf32>, tensor<96x96xf32>) -> tensor<8x96xf32>
  %1 = prim.dot_general %0, %w batch [] x [] contract [1] x [0] : (tensor<8x96xf32>, tensor<96x96xf32>) -> tensor<8x96xf32>
  return %1 : tensor<8x96xf32>
}

// -----

// A value that @init makes already is packed there, and its unpacked form is no result any more.
// PACK-LABEL: func.func @init(
// PACK-SAME: tensor<64x96xf32> {prim.constant = "w"}) -> tensor<2x64x48xf32>
// PACK: kernel.launch
// PACK-LABEL: func.func @main(
// PACK-SAME: tensor<2x64x48xf32> {prim.constant = "init.0"})
func.func @init(%w: tensor<64x96xf32> {prim.constant = "w"}) -> tensor<64x96xf32> {
  %0 = prim.exp %w : tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x96xf32> {prim.constant = "init.0"}) -> tensor<8x96xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  return %0 : tensor<8x96xf32>
}
