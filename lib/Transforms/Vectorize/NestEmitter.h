// Emits the loops of a LoopNest.
#ifndef LAMINA_TRANSFORMS_VECTORIZE_NESTEMITTER_H
#define LAMINA_TRANSFORMS_VECTORIZE_NESTEMITTER_H
#include "lib/Transforms/Vectorize/BodyCloner.h"
#include "lib/Transforms/Vectorize/LoopNest.h"

namespace lamina {

class NestEmitter {
public:
  NestEmitter(mlir::OpBuilder &builder, LoopNest &nest);
  void emit();

private:
  /// What is known at one place of the nest.
  struct Scope {
    BodyCloner cloner;
    llvm::SmallVector<mlir::Value> addresses; ///< per linear access: the part of the loops entered so far
    llvm::SmallVector<bool> entered;          ///< per dimension of the op
    llvm::SmallVector<bool> loaded;           ///< per access
  };
  using Values = llvm::SmallVector<mlir::Value>;

  void enter(Scope &scope, unsigned dim, LaneValue value, bool innermost);
  void loadReady(Scope &scope, bool innermost);
  LaneValue addressOf(Scope &scope, unsigned access);
  Values emitLevel(unsigned level, Scope &scope, Values accumulators);
  Values emitLoop(unsigned level, Scope &scope, Values accumulators);
  Values emitVectorLoop(unsigned level, Scope &scope, Values accumulators);
  void emitBlocks(Scope &scope);
  mlir::Value blockBuffer(mlir::Type element);
  Values emitInnermost(Scope &scope, Values accumulators);
  Values startAccumulators(Scope &scope);
  void finishAccumulators(Scope &scope, Values accumulators);
  /// Folds vectors of partial results until they have `lanes` lanes.
  Values narrowAccumulators(Values accumulators, int64_t lanes);
  /// A loop from 0 that carries accumulators in blocks where it is the innermost: each block sums on its own and is
  /// added to the rest, so that a long sum in floats loses no more digits than a pairwise one of PyTorch's does.
  Values cascadeLoop(unsigned level, mlir::Value end, int64_t step, Values accumulators,
                     llvm::function_ref<Values(mlir::Value, Values)> body);
  Values forLoop(mlir::Value begin, mlir::Value end, int64_t step, Values accumulators,
                 llvm::function_ref<Values(mlir::Value, Values)> body);
  mlir::Value combine(const Output &output, mlir::Value lhs, mlir::Value rhs);

  mlir::OpBuilder &b;
  LoopNest &nest;
  mlir::Location loc;
  llvm::SmallVector<unsigned> order;      ///< loops, from the outermost to the innermost
  unsigned accumulatorLevel = ~0u;        ///< position in `order` around which accumulators live
  bool reducesLanes = false;              ///< the vector loop is a reduction
  llvm::SmallVector<unsigned> reductions; ///< outputs that are accumulated
  llvm::SmallPtrSet<mlir::Operation *, 4> combiners;
};

} // namespace lamina
#endif
