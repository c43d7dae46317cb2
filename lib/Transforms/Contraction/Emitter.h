// Index arithmetic that folds, and loops, shared by the emitters of contraction code.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_EMITTER_H
#define LAMINA_TRANSFORMS_CONTRACTION_EMITTER_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace lamina::contraction {

/// A number known now (attribute) or at run time (value).
using Index = mlir::OpFoldResult;

/// Emits the code of one contraction at the builder's insertion point. Constants and scratch buffers go before
/// everything else, so that no loop allocates.
class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc);

  mlir::OpBuilder &b;
  mlir::Location loc;

  Index constant(int64_t value) { return b.getIndexAttr(value); }
  mlir::Value value(Index index);
  llvm::SmallVector<mlir::Value> values(llvm::ArrayRef<Index> indices);

  Index add(Index lhs, Index rhs);
  Index sub(Index lhs, Index rhs);
  Index mul(Index lhs, Index rhs);
  Index min(Index lhs, Index rhs);
  Index max(Index lhs, Index rhs);
  Index div(Index lhs, Index rhs);
  Index rem(Index lhs, Index rhs);
  Index ceilDiv(Index lhs, int64_t rhs);
  Index roundUp(Index lhs, int64_t rhs) { return mul(ceilDiv(lhs, rhs), constant(rhs)); }
  Index roundDown(Index lhs, int64_t rhs) { return mul(div(lhs, constant(rhs)), constant(rhs)); }

  /// A loop from lower to upper; a loop with one trip, or none, known now is not made.
  void loop(Index lower, Index upper, Index step, llvm::function_ref<void(Index)> body);
  /// The same with values carried from trip to trip.
  llvm::SmallVector<mlir::Value>
  carry(Index lower, Index upper, Index step, llvm::ArrayRef<mlir::Value> initial,
        llvm::function_ref<llvm::SmallVector<mlir::Value>(Index, llvm::ArrayRef<mlir::Value>)> body);
  /// The body under lhs < rhs.
  void ifLess(Index lhs, Index rhs, llvm::function_ref<void()> body);

  /// A buffer in cache-line aligned memory that lives through the whole contraction.
  mlir::Value scratch(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value zero(mlir::Type type);

private:
  mlir::Operation *anchor;
  llvm::DenseMap<int64_t, mlir::Value> constants;
};

} // namespace lamina::contraction
#endif
