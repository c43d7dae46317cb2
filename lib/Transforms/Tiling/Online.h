// Kernels whose reductions run online: one loop over blocks of the reduced dimension.
#ifndef LAMINA_TRANSFORMS_TILING_ONLINE_H
#define LAMINA_TRANSFORMS_TILING_ONLINE_H

#include "lib/Transforms/Tiling/DimClasses.h"
#include "lib/Transforms/Tiling/TilePuller.h"

namespace lamina {

/// The part of a dimension class that a program takes.
struct ClassTile {
  unsigned dimClass;
  mlir::OpFoldResult offset, size;
};

/// Emits the reductions of a kernel marked `kernel.online` as one loop over blocks of `block` elements of the dimension
/// that they reduce (all at multiples of it, if `wholeBlocks`), with the results so far carried from block to block,
/// and gives `puller` their tiles.
///
/// Per block: the maximum m' of the maximum so far m and the block's; what was summed so far is scaled by exp(m - m');
/// then the block's terms, which are linear in exp(x - m'), are added.
/// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
/// 2022.
void emitOnlineReductions(kernel::FuncOp func, DimClasses &classes, TilePuller &puller, mlir::OpBuilder &builder,
                          llvm::ArrayRef<ClassTile> tiles, int64_t block, bool wholeBlocks);

} // namespace lamina
#endif
