// lamina-cpu-to-llvm: what the loops of kernels and host functions are made of becomes the LLVM dialect, and nothing else.
// RUN: lamina-opt %s --lamina-cpu-to-llvm | FileCheck %s
// RUN: lamina-opt %s --lamina-cpu-to-llvm | FileCheck %s --check-prefix=ONLY
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(func.func(lamina-cpu-to-llvm))' 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not lamina-opt %s --pass-pipeline='builtin.module(lamina-cpu-to-llvm{vector-bits=3})' 2>&1 | FileCheck %s --check-prefix=OPTION

// NESTED: error: lamina-cpu-to-llvm is a pipeline of builtin.module
// OPTION: error: lamina-cpu-to-llvm has no options
// ONLY-NOT: {{(^|= ) *"?(arith|math|scf|cf|memref|vector|amx|index|affine|func)\.}}
// ONLY-NOT: unrealized_conversion_cast

// Loops are branches; a strided view is an address; a masked transfer of a vector is a masked load.
// CHECK-LABEL: llvm.func @loop(
// CHECK: llvm.cond_br
// CHECK: llvm.getelementptr
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
func.func @loop(%x: memref<?x64xf32>, %y: memref<?xf32, strided<[1], offset: ?>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %z = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c16 {
    %row = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<?x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    %left = affine.min affine_map<()[s0, s1] -> (16, s0 - s1)>()[%n, %i]
    %mask = vector.create_mask %left : vector<16xi1>
    %v = vector.transfer_read %row[%c0], %z, %mask {in_bounds = [true]} : memref<64xf32, strided<[1], offset: ?>>, vector<16xf32>
    vector.transfer_write %v, %y[%i], %mask {in_bounds = [true]} : vector<16xf32>, memref<?xf32, strided<[1], offset: ?>>
  }
  return
}

// Lamina's expansions come before upstream's: no exp is left, log1p of f64 is libm's, and sqrt and fma are instructions.
// CHECK-LABEL: llvm.func @maths(
// CHECK-NOT: llvm.intr.exp
// CHECK-NOT: @expf
// CHECK: llvm.call @log1p(
// CHECK: llvm.intr.sqrt
// CHECK: llvm.intr.fma
func.func @maths(%x: vector<16xf32>, %d: f64) -> (vector<16xf32>, f64, vector<16xf32>, vector<16xf32>) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.log1p %d : f64
  %2 = math.sqrt %x : vector<16xf32>
  %3 = math.fma %x, %x, %x : vector<16xf32>
  return %0, %1, %2, %3 : vector<16xf32>, f64, vector<16xf32>, vector<16xf32>
}

// A product and a sum are not contracted; a reduction of floats may be reassociated.
// CHECK-LABEL: llvm.func @sums(
// CHECK: llvm.fmul %{{[^{]*}} : vector<16xf32>
// CHECK: llvm.fadd %{{[^{]*}} : vector<16xf32>
// CHECK: llvm.intr.vector.reduce.fadd{{.*}}#llvm.fastmath<reassoc>
func.func @sums(%x: vector<16xf32>, %y: vector<16xf32>) -> f32 {
  %0 = arith.mulf %x, %y : vector<16xf32>
  %1 = arith.addf %0, %x : vector<16xf32>
  %2 = vector.reduction <add>, %1 : vector<16xf32> into f32
  return %2 : f32
}

// LLVM cannot legalise masked loads of 16-bit floats.
// CHECK-LABEL: llvm.func @bf16(
// CHECK: llvm.intr.masked.load {{.*}} -> vector<16xi16>
// CHECK: llvm.bitcast %{{.*}} : vector<16xi16> to vector<16xbf16>
func.func @bf16(%x: memref<64xbf16>, %n: index) -> vector<16xbf16> {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : vector<16xbf16>
  %mask = vector.create_mask %n : vector<16xi1>
  %v = vector.maskedload %x[%c0], %mask, %z : memref<64xbf16>, vector<16xi1>, vector<16xbf16> into vector<16xbf16>
  return %v : vector<16xbf16>
}

// Tiles of the matrix unit go through the blocks of a loop.
// CHECK-LABEL: llvm.func @tiles(
// CHECK: llvm.br ^{{.*}}!llvm.x86_amx
// CHECK: llvm.x86.tdpbf16ps
func.func @tiles(%a: memref<16x32xbf16>, %b: memref<16x32xbf16>, %c: memref<16x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (!amx.tile<16x16xf32>) {
    %ta = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
    %tb = amx.tile_load %b[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
    %next = amx.tile_mulf %ta, %tb, %s : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    scf.yield %next : !amx.tile<16x16xf32>
  }
  amx.tile_store %c[%c0, %c0], %sum : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}
