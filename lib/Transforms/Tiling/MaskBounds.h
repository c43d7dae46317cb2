// Which part of a reduced dimension a mask made of indices leaves.
#ifndef LAMINA_TRANSFORMS_TILING_MASK_BOUNDS_H
#define LAMINA_TRANSFORMS_TILING_MASK_BOUNDS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace lamina {

/// expr >= 0 over the op's loops, and over `symbols`, which are defined outside of it.
struct IndexCondition {
  mlir::AffineExpr expr;
  llvm::SmallVector<mlir::Value> symbols;
};

/// Conditions on the loop indices without each of which the term that `op` adds to its maximum number `result` is -inf.
llvm::SmallVector<IndexCondition> findMaskConditions(mlir::linalg::LinalgOp op, unsigned result);

} // namespace lamina
#endif
