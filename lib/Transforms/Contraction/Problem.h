// A contraction or convolution as loops and linear addresses: the form that the lowering works on.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_PROBLEM_H
#define LAMINA_TRANSFORMS_CONTRACTION_PROBLEM_H

#include "lib/Transforms/Contraction/Emitter.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace lamina::contraction {

/// How an input element becomes an element of the accumulator's type.
enum class Extension { None, Float, Signed, Unsigned };

/// A buffer whose element address is offset + sum over the loops of index * stride.
struct Operand {
  mlir::Value buffer;
  mlir::Type element;
  Extension extension = Extension::None;
  Index offset;
  llvm::SmallVector<Index> strides; // one a loop
  /// Pairs (outer, inner) of loops with stride(outer) = stride(inner) * size(inner), known from the layout.
  llvm::SmallVector<std::pair<unsigned, unsigned>> contiguous;

  /// The buffer seen with these sizes and strides from `start` on.
  mlir::Value view(Emitter &e, Index start, llvm::ArrayRef<Index> sizes, llvm::ArrayRef<Index> viewStrides) const;
};

/// C[batch, m, n] += sum over k of A[batch, m, k] * B[batch, k, n], each of batch, m, n, k any number of loops. A
/// convolution is the same: its input has a stride for the output pixel and one for the kernel tap.
struct Problem {
  llvm::SmallVector<Index> sizes;    // of the loops
  llvm::SmallVector<int64_t> bounds; // upper bounds, or ShapedType::kDynamic
  llvm::SmallVector<unsigned> batch, m, n, k;
  Operand a, b, c;
  mlir::Type accumulator;
  /// Columns of a panel where B lies in panels [panel, k / packedRows, column, packedRows]; 0 where it does not.
  int64_t packedColumns = 0;
  int64_t packedRows = 1; // rows of B whose elements alternate
  Index packedStride;     // from one panel to the next

  std::optional<int64_t> size(unsigned loop) const { return mlir::getConstantIntValue(sizes[loop]); }
  /// Exchanges the roles of A and B, rows and columns.
  void transpose();
  /// Makes two loops of one group into the inner one.
  void merge(Emitter &e, llvm::SmallVector<unsigned> &group, unsigned outer, unsigned inner);
  /// Merges loops of one group that are contiguous together in every operand.
  void collapse(Emitter &e);
  /// Recognises a B that lies in panels by its strides, and makes its columns one loop; its rows are the last loop of
  /// k.
  void findPanels(Emitter &e, int64_t lanes);
  /// Whether `outer` and `inner` walk through `operand` as one loop does.
  bool mergeable(const Operand &operand, unsigned outer, unsigned inner) const;
};

/// What was read from the op before any IR is made.
struct Match {
  bool swappedProduct = false;
  Extension extensions[2] = {Extension::None, Extension::None};
  mlir::Type accumulator;
  llvm::SmallVector<unsigned> batch, m, n, k;
};

/// Succeeds if `op` is a contraction or convolution that this lowering does.
mlir::FailureOr<Match> matchProblem(mlir::linalg::LinalgOp op);
/// Reads sizes and strides of a matched op.
Problem buildProblem(Emitter &e, mlir::linalg::LinalgOp op, const Match &match);

} // namespace lamina::contraction
#endif
