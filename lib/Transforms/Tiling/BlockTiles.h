// Block tiles: how many rows and columns of a matrix product one program of a GPU takes.
#ifndef LAMINA_TRANSFORMS_TILING_BLOCK_TILES_H
#define LAMINA_TRANSFORMS_TILING_BLOCK_TILES_H

#include <cstdint>

namespace lamina {

/// What one multiprocessor does in a nanosecond, and how many there are.
struct BlockMachine {
  int64_t multiprocessors = 132;
  /// Multiply-adds of narrow floats by matrix units, and of f32 without them.
  int64_t matrixOps = 3750, vectorOps = 250;
  /// Bytes that come from the L2 cache.
  int64_t loadBytes = 40;
  /// Bytes of shared memory that one program may have.
  int64_t sharedBytes = 227 << 10;
};

struct BlockTile {
  int64_t rows, columns, depth;
};

/// A product of `batch` matrices of `rows` by `depth` and `depth` by `columns` elements of `elementBytes`.
struct BlockProduct {
  int64_t batch, rows, columns, depth, elementBytes;
};

/// The tile with which all multiprocessors are estimated to be done first. With `columns` the tile has that many, and
/// the product is walked along them: the columns of scores.
BlockTile chooseBlockTile(const BlockProduct &product, const BlockMachine &machine, int64_t columns = 0);

/// Elements along the contracted dimension that are loaded at once: a row of 128 bytes.
int64_t chooseBlockDepth(int64_t elementBytes);

} // namespace lamina
#endif
