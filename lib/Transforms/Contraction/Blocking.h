// Which register tile and which cache blocks a contraction gets; no IR here.
#ifndef LAMINA_TRANSFORMS_CONTRACTION_BLOCKING_H
#define LAMINA_TRANSFORMS_CONTRACTION_BLOCKING_H

#include <cstdint>
#include <optional>

namespace lamina::contraction {

/// rows x (vectors * lanes) accumulators that stay in registers.
struct RegisterTile {
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t lanes = 0;
  int64_t columns() const { return vectors * lanes; }
};

/// What the choice depends on; an absent size means a large one.
struct TileQuery {
  std::optional<int64_t> rows, columns, depth;
  int64_t lanes = 16;
  int64_t registers = 32;
  int64_t fixedVectors = 0; // 0: free
};

/// The tile with the lowest modelled time: whole tiles over rows and columns, with a narrower tile for the last
/// columns.
RegisterTile chooseRegisterTile(const TileQuery &query);

/// The most rows of a tile of the matrix unit, and its depth in bf16 elements.
constexpr int64_t kTileRows = 16, kTileDepth = 32;

/// The tile of C that a matrix unit's eight tiles hold, with at least one for A and one for B besides.
RegisterTile chooseMatrixTile(const TileQuery &query);

/// Depth of a packed block of B: all of it up to a limit, else equal parts.
int64_t chooseDepthBlock(std::optional<int64_t> depth, int64_t multiple);

} // namespace lamina::contraction
#endif
