// The innermost kernels: a tile of C in registers.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_REGISTERKERNEL_H
#define LAMINA_TRANSFORMS_CONTRACTION_REGISTERKERNEL_H

#include "lib/Transforms/Contraction/Blocking.h"
#include "lib/Transforms/Contraction/Problem.h"

namespace lamina::contraction {

/// Converts a scalar or vector of an input to the accumulator's element type.
mlir::Value extend(Emitter &e, mlir::Value value, Extension extension, mlir::Type element);
/// x * y + z on scalars or vectors, fused for floating point.
mlir::Value multiplyAdd(Emitter &e, mlir::Value x, mlir::Value y, mlir::Value z);
mlir::Value addValues(Emitter &e, mlir::Value x, mlir::Value y);

/// Vector access to memrefs whose last dimension has stride 1.
mlir::Value loadVector(Emitter &e, mlir::Value memref, llvm::ArrayRef<Index> at, int64_t lanes);
/// Lanes where the mask is off are zero; a null mask loads all.
mlir::Value loadVector(Emitter &e, mlir::Value memref, llvm::ArrayRef<Index> at, int64_t lanes, mlir::Value mask);
void storeVector(Emitter &e, mlir::Value vector, mlir::Value memref, llvm::ArrayRef<Index> at, mlir::Value mask = {});
mlir::Value loadScalar(Emitter &e, mlir::Value memref, llvm::ArrayRef<Index> at);
void storeScalar(Emitter &e, mlir::Value value, mlir::Value memref, llvm::ArrayRef<Index> at);
/// The first `count` lanes; null if these are statically all.
mlir::Value laneMask(Emitter &e, Index count, int64_t lanes);

/// How a kernel gets its operands at one step in k; the position has one index a k loop.
struct KernelOperands {
  /// Element of A in row `row`, already of the accumulator's type.
  llvm::function_ref<mlir::Value(int64_t row, llvm::ArrayRef<Index> k)> loadA;
  /// Vector number `vector` of B.
  llvm::function_ref<mlir::Value(int64_t vector, llvm::ArrayRef<Index> k)> loadB;
};

/// Outer-product kernel: in each step of k the vectors of B, the elements of A broadcast, rows * vectors fused
/// multiply-adds. Returns the accumulators, row by row.
llvm::SmallVector<mlir::Value> emitOuterProduct(Emitter &e, const RegisterTile &tile, mlir::Type element,
                                                llvm::ArrayRef<Index> depth, KernelOperands operands);

/// Dot kernel, for operands that are both contiguous in k: each accumulator is a vector of partial sums. Returns sums.
/// `load(operand, row, k, mask)` is a vector along k of row `row` of A (operand 0) or of column `row` of B (operand 1).
llvm::SmallVector<mlir::Value>
emitDot(Emitter &e, int64_t rows, int64_t columns, int64_t lanes, mlir::Type element, Index depth,
        llvm::function_ref<mlir::Value(unsigned operand, int64_t row, Index k, mlir::Value mask)> load);

} // namespace lamina::contraction
#endif
