// RUN: lamina-opt %s --split-input-file --lamina-lower-contractions=matrix-unit=true | FileCheck %s
// RUN: lamina-opt %s --split-input-file --lamina-lower-contractions="matrix-unit=true vector-bits=256" | FileCheck %s --check-prefix=NARROW

// bf16 with f32 sums: B is copied in pairs of rows, A is read where it is, and four tiles hold the sums.

// CHECK-LABEL: @matmul
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// CHECK-NOT: memref.load
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: scf.for
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// NARROW-LABEL: @matmul
// NARROW-NOT: llvm.call_intrinsic
// NARROW: math.fma
func.func @matmul(%A: memref<64x128xbf16>, %B: memref<128x96xbf16>, %C: memref<64x96xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], lamina.contraction}
    ins(%A, %B : memref<64x128xbf16>, memref<128x96xbf16>) outs(%C : memref<64x96xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// A depth that is no whole number of tiles: rows of A go through a copy that ends in zeros.

// CHECK-LABEL: @odd_depth
// CHECK: vector.maskedload {{.*}} into vector<32xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
func.func @odd_depth(%A: memref<64x50xbf16>, %B: memref<50x96xbf16>, %C: memref<64x96xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], lamina.contraction}
    ins(%A, %B : memref<64x50xbf16>, memref<50x96xbf16>) outs(%C : memref<64x96xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Panels whose rows alternate are read where they are.

// CHECK-LABEL: @panels
// CHECK-NOT: vector.interleave
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
func.func @panels(%A: memref<32x32x2xbf16>, %B: memref<3x32x32x2xbf16>, %C: memref<32x3x32xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, p, w, k, t) -> (m, k, t)>, affine_map<(m, p, w, k, t) -> (p, k, w, t)>,
                     affine_map<(m, p, w, k, t) -> (m, p, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], lamina.contraction}
    ins(%A, %B : memref<32x32x2xbf16>, memref<3x32x32x2xbf16>) outs(%C : memref<32x3x32xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %x = arith.extf %a : bf16 to f32
    %y = arith.extf %b : bf16 to f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// f32 stays on vectors.

// CHECK-LABEL: @f32
// CHECK-NOT: llvm.call_intrinsic
// CHECK: math.fma
func.func @f32(%A: memref<64x128xf32>, %B: memref<128x96xf32>, %C: memref<64x96xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], lamina.contraction}
    ins(%A, %B : memref<64x128xf32>, memref<128x96xf32>) outs(%C : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}
