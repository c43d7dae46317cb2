// RUN: lamina-opt %s -split-input-file -pass-pipeline='builtin.module(kernel.func(lamina-convert-prim-to-linalg,lamina-tile-kernels{block-tiles=true pointwise-elements=1024 reduce-elements=1024},canonicalize,cse),lamina-convert-tiled-to-triton,tt.func(canonicalize,cse))' | FileCheck %s

// A flat kernel of unknown size: a block of 1024 elements, of which those below the size are active.

// CHECK-LABEL: tt.func public @flat
// CHECK-SAME: (%[[X:.*]]: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %[[O:.*]]: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %[[N:.*]]: i32)
// CHECK-SAME: kernel.grid = #map
// CHECK-DAG: %[[P:.*]] = tt.get_program_id 0
// CHECK-DAG: %[[R:.*]] = tt.make_range {end = 1024 : i32, start = 0 : i32}
// CHECK-DAG: %[[AT:.*]] = arith.muli %[[P]], %c1024
// CHECK: arith.cmpi slt, %[[R]]
// CHECK: %[[V:.*]] = tt.load {{.*}} : tensor<1024x!tt.ptr<f32>>
// CHECK: %[[E:.*]] = tt.extern_elementwise "__nv_expf"(%[[V]])
// CHECK: tt.store %{{.*}}, %[[E]], %{{.*}}
kernel.func @flat(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1} {
  %0 = prim.exp %x : tensor<?xf32>
  kernel.return %0 : tensor<?xf32>
}

// -----

// A row kernel: the row is one block, which is read once.

// CHECK-LABEL: tt.func public @softmax
// CHECK-COUNT-1: tt.load
// CHECK-NOT: tt.load
// CHECK: arith.select {{.*}} : tensor<1024xi1>, tensor<1024xf32>
// CHECK: "tt.reduce"
// CHECK: arith.maximumf
// CHECK: "tt.reduce"
// CHECK: arith.addf
// CHECK: tt.precise_divf
// CHECK: tt.store
kernel.func @softmax(%x: tensor<8x1000xf32>, %o: tensor<8x1000xf32>) attributes {outs = 1} {
  %m = prim.reduce <max> %x dims [1] : tensor<8x1000xf32> to tensor<8xf32>
  %mb = prim.broadcast %m dims [0] : tensor<8xf32> to tensor<8x1000xf32>
  %d = prim.sub %x, %mb : tensor<8x1000xf32>
  %e = prim.exp %d : tensor<8x1000xf32>
  %s = prim.reduce <sum> %e dims [1] : tensor<8x1000xf32> to tensor<8xf32>
  %sb = prim.broadcast %s dims [0] : tensor<8xf32> to tensor<8x1000xf32>
  %r = prim.div %e, %sb : tensor<8x1000xf32>
  kernel.return %r : tensor<8x1000xf32>
}

// -----

// Rows of unknown length: a loop over chunks for the reduction, then one for the output.

// CHECK-LABEL: tt.func public @rows
// CHECK: %[[S:.*]] = scf.for
// CHECK: tt.load
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: "tt.reduce"(%[[S]])
// CHECK: scf.for
// CHECK: tt.load
// CHECK: tt.store
kernel.func @rows(%x: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>}, %o: tensor<?x?xf32> {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>}) attributes {outs = 1} {
  %s = prim.reduce <sum> %x dims [1] : tensor<?x?xf32> to tensor<?xf32>
  %sb = prim.broadcast %s dims [0] sizes [s0, s1] : tensor<?xf32> to tensor<?x?xf32>
  %r = prim.mul %x, %sb : tensor<?x?xf32>
  kernel.return %r : tensor<?x?xf32>
}

// -----

// A contraction: operands keep their type in memory, zeros beyond the depth, and the epilogue on the accumulator.

// CHECK-LABEL: tt.func public @linear
// CHECK: %[[ACC:.*]] = scf.for {{.*}} iter_args({{.*}}) -> (tensor<64x64xf32>)
// CHECK: tt.dot {{.*}} : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
// CHECK: arith.truncf %[[ACC]]
// CHECK: tt.store {{.*}} : tensor<64x64x!tt.ptr<f16>>
kernel.func @linear(%x: tensor<100x80xf16>, %w: tensor<200x80xf16>, %o: tensor<100x200xf16>) attributes {kernel.tile = array<i64: 64, 64, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<100x80xf16>, tensor<200x80xf16>) -> tensor<100x200xf16>
  %r = prim.neg %d : tensor<100x200xf16>
  kernel.return %r : tensor<100x200xf16>
}

// -----

// Tiles of rows by columns are walked in groups of 8 rows: where they divide the rows there is no last, smaller group.

// CHECK-LABEL: tt.func public @grouped
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[GROUP:.*]] = arith.constant 64 : i32
// CHECK-DAG: %[[ID:.*]] = tt.get_program_id
// CHECK: %[[FIRST:.*]] = arith.divsi %[[ID]], %[[GROUP]]
// CHECK: %[[TOP:.*]] = arith.muli %[[FIRST]], %[[EIGHT]]
// CHECK: %[[IN:.*]] = arith.remsi %[[ID]], %[[GROUP]]
// CHECK: %[[ROW:.*]] = arith.remsi %[[IN]], %[[EIGHT]]
// CHECK: arith.addi %[[TOP]], %[[ROW]]
// CHECK: arith.divsi %[[IN]], %[[EIGHT]]
kernel.func @grouped(%x: tensor<1024x64xf16>, %w: tensor<64x512xf16>, %o: tensor<1024x512xf32>) attributes {kernel.tile = array<i64: 64, 64, 32>, outs = 1} {
  %xf = prim.convert %x : tensor<1024x64xf16> to tensor<1024x64xf32>
  %wf = prim.convert %w : tensor<64x512xf16> to tensor<64x512xf32>
  %d = prim.dot_general %xf, %wf batch [] x [] contract [1] x [0] : (tensor<1024x64xf32>, tensor<64x512xf32>) -> tensor<1024x512xf32>
  kernel.return %d : tensor<1024x512xf32>
}

// -----

// Operands may be rounded where the program says so.

// CHECK-LABEL: tt.func public @rounded
// CHECK: tt.dot {{.*}} {inputPrecision = 0 : i32} : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
kernel.func @rounded(%x: tensor<100x80xf32>, %w: tensor<80x200xf32>, %o: tensor<100x200xf32>) attributes {kernel.tile = array<i64: 32, 32, 32>, outs = 1} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] tf32 : (tensor<100x80xf32>, tensor<80x200xf32>) -> tensor<100x200xf32>
  kernel.return %d : tensor<100x200xf32>
}

// -----

// Booleans are bytes in memory.

// CHECK-LABEL: tt.func public @masks
// CHECK-SAME: !tt.ptr<i8>
// CHECK: tt.load {{.*}} : tensor<16x!tt.ptr<i8>>
// CHECK: arith.cmpi ne
// CHECK: arith.extui {{.*}} : tensor<16xi1> to tensor<16xi8>
kernel.func @masks(%x: tensor<12xi1>, %o: tensor<12xi1>) attributes {outs = 1} {
  %0 = prim.not %x : tensor<12xi1>
  kernel.return %0 : tensor<12xi1>
}

// -----

// A convolution: output channels by places, a block of input channels at a time.

// CHECK-LABEL: tt.func public @convolution
// CHECK-COUNT-3: scf.for
// CHECK: tt.reshape {{.*}} : tensor<32x4x16xf32> -> tensor<32x64xf32>
// CHECK: tt.dot {{.*}} : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
// CHECK: tt.reshape {{.*}} : tensor<64x64xf32> -> tensor<64x4x16xf32>
kernel.func @convolution(%x: tensor<1x40x14x14xf32>, %w: tensor<70x40x3x3xf32>, %o: tensor<1x70x12x12xf32>) attributes {kernel.tile = array<i64: 64, 64, 32>, outs = 1} {
  %0 = prim.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] lhs_dilations [1, 1] dilations [1, 1] groups 1 : (tensor<1x40x14x14xf32>, tensor<70x40x3x3xf32>) -> tensor<1x70x12x12xf32>
  kernel.return %0 : tensor<1x70x12x12xf32>
}

// -----

// A row that fits into a block is one tt.scan; a longer one carries its total.

// CHECK-LABEL: tt.func public @scan
// CHECK-NOT: scf.for
// CHECK: "tt.scan"
kernel.func @scan(%x: tensor<9x77xf32>, %o: tensor<9x77xf32>) attributes {outs = 1} {
  %0 = prim.scan <sum> %x dim 1 : tensor<9x77xf32>
  kernel.return %0 : tensor<9x77xf32>
}

// -----

// CHECK-LABEL: tt.func public @long_scan
// CHECK: scf.for {{.*}} iter_args(%[[TOTAL:.*]] = {{.*}}) -> (i64)
// CHECK: "tt.scan"
// CHECK: "tt.reduce"
// CHECK: arith.addi %[[TOTAL]]
// CHECK: tt.store
kernel.func @long_scan(%x: tensor<100000xi64>, %o: tensor<100000xi64>) attributes {outs = 1} {
  %0 = prim.scan <sum> %x dim 0 : tensor<100000xi64>
  kernel.return %0 : tensor<100000xi64>
}
