// lamina-mask-as-integers: 16-bit floats under a mask.
// RUN: lamina-opt %s --lamina-mask-as-integers | FileCheck %s

// CHECK-LABEL: llvm.func @copy
// CHECK: %[[V:.*]] = llvm.intr.masked.load {{.*}} -> vector<64xi16>
// CHECK: %[[F:.*]] = llvm.bitcast %[[V]] : vector<64xi16> to vector<64xbf16>
// CHECK: %[[I:.*]] = llvm.bitcast %[[F]] : vector<64xbf16> to vector<64xi16>
// CHECK: llvm.intr.masked.store %[[I]], {{.*}} : vector<64xi16>
// CHECK: llvm.intr.masked.load {{.*}} -> vector<16xf32>
llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr, %mask: vector<64xi1>, %other: vector<16xi1>) -> vector<16xf32> {
  %zero = llvm.mlir.constant(dense<0.0> : vector<64xbf16>) : vector<64xbf16>
  %none = llvm.mlir.constant(dense<0.0> : vector<16xf32>) : vector<16xf32>
  %0 = llvm.intr.masked.load %from, %mask, %zero {alignment = 2 : i32} : (!llvm.ptr, vector<64xi1>, vector<64xbf16>) -> vector<64xbf16>
  llvm.intr.masked.store %0, %to, %mask {alignment = 2 : i32} : vector<64xbf16>, vector<64xi1> into !llvm.ptr
  %1 = llvm.intr.masked.load %from, %other, %none {alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
  llvm.return %1 : vector<16xf32>
}
