// The choice of a kernel's grid: which dimensions, and how much of each one program takes.
#ifndef LAMINA_TRANSFORMS_TILING_GRID_CHOICE_H
#define LAMINA_TRANSFORMS_TILING_GRID_CHOICE_H

#include "lib/Transforms/Tiling/DimClasses.h"

namespace lamina {

/// What is known of the target.
struct TileTarget {
  int64_t vectorLanes, l2Bytes, threads, pointwiseElements, reduceElements;
};

struct GridDim {
  unsigned dimClass;
  /// The extent over the kernel's symbols.
  mlir::AffineExpr size;
  int64_t tile = 0;
};

/// The sizes of a kernel's argument.
Exprs getArgumentSizes(kernel::FuncOp func, unsigned arg);

/// Grid dimensions, outermost first; none if the kernel is one program.
llvm::SmallVector<GridDim> chooseGrid(kernel::FuncOp func, DimClasses &classes, const TileTarget &target);

} // namespace lamina
#endif
