// The innermost kernel on a matrix unit: a tile of C in the tile registers of AMX.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_MATRIXKERNEL_H
#define LAMINA_TRANSFORMS_CONTRACTION_MATRIXKERNEL_H

#include "lib/Transforms/Contraction/Blocking.h"
#include "lib/Transforms/Contraction/Emitter.h"

namespace lamina::contraction {

/// Sets the shapes of all tile registers: `rows` (at most 16) of A and of the sums, 64 bytes wide.
void configureTiles(Emitter &e, int64_t rows);
/// Gives the tile registers back, so that no other code finds them in use.
void releaseTiles(Emitter &e);

/// Memory as the kernel walks it: the address of its first byte, and bytes from row to row.
struct TileMemory {
  Index address, pitch;
};

/// The memory from element `start` of a buffer on, with `pitch` elements from row to row.
TileMemory tileMemory(Emitter &e, mlir::Value buffer, Index start, Index pitch);

/// sums = A * B. A: bf16 rows of `depth` elements; B: a row for each two of `depth`, in which the two elements of a
/// column lie together; sums: f32. `depth` is a multiple of 32.
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS.
void emitTileProduct(Emitter &e, const RegisterTile &tile, Index depth, TileMemory a, TileMemory b, TileMemory sums);

} // namespace lamina::contraction
#endif
