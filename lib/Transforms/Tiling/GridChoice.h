// The choice of a kernel's grid: which dimensions, and how much of each one program takes.
#ifndef LAMINA_TRANSFORMS_TILING_GRID_CHOICE_H
#define LAMINA_TRANSFORMS_TILING_GRID_CHOICE_H

#include "lib/Transforms/Tiling/BlockTiles.h"
#include "lib/Transforms/Tiling/DimClasses.h"

namespace lamina {

/// What is known of the target.
struct TileTarget {
  int64_t vectorLanes, l2Bytes, threads, pointwiseElements, reduceElements;
  /// Whether tiles are powers of two, each for one block of threads of that machine.
  bool blockTiles = false;
  BlockMachine machine;
  /// Elements of the reduced dimension in a block of an online reduction.
  int64_t onlineElements = 512;
};

struct GridDim {
  unsigned dimClass;
  /// The extent over the kernel's symbols.
  mlir::AffineExpr size;
  int64_t tile = 0;
};

/// The sizes of a kernel's argument.
Exprs getArgumentSizes(kernel::FuncOp func, unsigned arg);

/// Grid dimensions, outermost first; none if the kernel is one program. With block tiles, a kernel of a matrix product
/// that has no attribute `kernel.tile` gets it, and `kernel.grouped` if its last two grid dimensions are rows and
/// columns.
llvm::SmallVector<GridDim> chooseGrid(kernel::FuncOp func, DimClasses &classes, const TileTarget &target);

} // namespace lamina
#endif
