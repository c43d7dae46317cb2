// Sizes of tensors as expressions over index symbols: of the results of prim ops, and of every value of a function.
#ifndef LAMINA_PRIM_SIZES_H
#define LAMINA_PRIM_SIZES_H

#include "dialects/Common/Exprs.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"

namespace lamina {

/// A canonical form: sums of products, terms and factors in a fixed order, divisions reduced. Two sizes are equal when
/// their canonical forms are. A quotient whose divisor divides every term is divided out, so a divisor is taken not to
/// be 0.
mlir::AffineExpr simplifySize(mlir::AffineExpr expr);
/// The canonical form of the product of `sizes`.
mlir::AffineExpr getNumElements(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::MLIRContext *context);
/// The strides, in elements, of contiguous memory of these sizes.
Exprs getRowMajorStrides(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::MLIRContext *context);

/// Symbols from here on stand for sizes that nothing is known of; a function's own symbols are below.
constexpr unsigned kFirstUnknownSymbol = 1u << 16;
/// Whether an unknown size occurs in the expression.
bool hasUnknownSize(mlir::AffineExpr size);
inline bool hasUnknownSize(llvm::ArrayRef<mlir::AffineExpr> sizes) {
  return llvm::any_of(sizes, [](mlir::AffineExpr size) { return hasUnknownSize(size); });
}
/// The sizes of a type, with unknown symbols number `next`, `next + 1`, ... for each `?`.
Exprs getTypeSizes(mlir::RankedTensorType type, unsigned &next);

namespace prim {
/// The sizes of the results of a verified prim op whose operands have these sizes. Fails on ops of other dialects.
mlir::FailureOr<llvm::SmallVector<Exprs>> inferSizes(mlir::Operation *op, llvm::ArrayRef<Exprs> operandSizes);
/// The same, before the static sizes of the result types are taken into account.
mlir::FailureOr<llvm::SmallVector<Exprs>> inferUnrefinedSizes(mlir::Operation *op, llvm::ArrayRef<Exprs> operandSizes);

// The formulas behind it, for type inference; the attributes must satisfy the ops' constraints.
Exprs transposeSizes(llvm::ArrayRef<mlir::AffineExpr> sizes, llvm::ArrayRef<int64_t> permutation);
/// The sizes without those of the dimensions `dims`.
Exprs dropSizes(llvm::ArrayRef<mlir::AffineExpr> sizes, llvm::ArrayRef<int64_t> dims);
Exprs concatenateSizes(llvm::ArrayRef<Exprs> operands, int64_t dim);
Exprs gatherSizes(llvm::ArrayRef<mlir::AffineExpr> operand, llvm::ArrayRef<mlir::AffineExpr> indices,
                  llvm::ArrayRef<int64_t> dims);
/// For each dimension the constant among the operands' sizes, else the first operand's size.
Exprs elementwiseSizes(llvm::ArrayRef<Exprs> operands);
} // namespace prim

/// The sizes of every tensor in a function. Sizes are computed when asked for, and kept; `forget` a value when its
/// operation is erased, because another may be made at its address. Linear in the number of operations asked about.
class SizeAnalysis {
public:
  /// Arguments' sizes are read from the attribute prim.sizes of `func`, a func.func or kernel.func.
  explicit SizeAnalysis(mlir::Operation *func) : func(func) {}
  SizeAnalysis(const SizeAnalysis &) = delete;

  /// The sizes of a ranked tensor (or memref), one a dimension, in canonical form. The result stays valid as long as
  /// the analysis. A size that cannot be known is an unknown symbol of its own.
  llvm::ArrayRef<mlir::AffineExpr> getSizes(mlir::Value value);
  void forget(mlir::Value value) { known.erase(value); }

private:
  void store(mlir::Value value, Exprs sizes);
  void compute(mlir::Value value);

  mlir::Operation *func;
  unsigned nextUnknown = kFirstUnknownSymbol;
  llvm::DenseMap<mlir::Value, llvm::ArrayRef<mlir::AffineExpr>> known;
  llvm::BumpPtrAllocator allocator;
};

} // namespace lamina
#endif
