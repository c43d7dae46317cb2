// Tiles of a kernel's values, computed from tiles of what they read.
#ifndef LAMINA_TRANSFORMS_TILING_TILE_PULLER_H
#define LAMINA_TRANSFORMS_TILING_TILE_PULLER_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace lamina {

/// A box of a tensor or of loops.
struct Tile {
  llvm::SmallVector<mlir::OpFoldResult> offsets, sizes;
  bool operator==(const Tile &other) const { return offsets == other.offsets && sizes == other.sizes; }
};

class TilePuller {
public:
  /// Ops are made at the builder's position.
  TilePuller(kernel::FuncOp func, mlir::OpBuilder &builder) : func(func), builder(builder) {}

  /// The tile `tile` of `value`, when it is computed, is written to `destination`, a tensor of the tile's sizes.
  void setDestination(mlir::Value value, Tile tile, mlir::Value destination) {
    destinations.push_back({value, tile, destination});
  }
  mlir::Value getTile(mlir::Value value, const Tile &tile);
  /// `result` is the tile `tile` of `value`.
  void setTile(mlir::Value value, const Tile &tile, mlir::Value result) { known[value].push_back({tile, result}); }
  /// What the reduction or contraction that makes `value` starts from, for a tile of it.
  mlir::Value makeInit(mlir::Value value, const Tile &tile);
  /// The op on a box of its loops; its results start from `inits`, or where these are null from what the op's start
  /// from.
  mlir::Operation *makeLinalg(mlir::linalg::LinalgOp op, const Tile &loops, llvm::ArrayRef<mlir::Value> inits = {});
  /// Sets the sizes that are null to those of whole loops.
  void completeLoops(mlir::linalg::LinalgOp op, Tile &loops);

  /// The whole of a tensor.
  Tile getWhole(mlir::Value value);
  mlir::OpFoldResult getDimSize(mlir::Value value, unsigned dim);
  mlir::OpFoldResult getSize(mlir::AffineExpr expr);

private:
  mlir::Value compute(mlir::Value value, const Tile &tile);
  mlir::Value tileLinalg(mlir::linalg::LinalgOp op, unsigned result, const Tile &tile);
  mlir::Value tileInit(mlir::Value init, mlir::Value value, const Tile &tile);
  mlir::Value tileSlice(mlir::Value value, const Tile &tile);
  mlir::Value tileReshape(mlir::Operation *op, const Tile &tile);
  void cloneBody(mlir::linalg::LinalgOp op, mlir::Operation *clone, llvm::ArrayRef<mlir::OpFoldResult> offsets);
  mlir::Value slice(mlir::Value tensor, const Tile &tile);
  Tile mapTile(mlir::AffineMap map, const Tile &loops);

  struct Destination {
    mlir::Value value;
    Tile tile;
    mlir::Value tensor;
  };
  kernel::FuncOp func;
  mlir::OpBuilder &builder;
  llvm::SmallVector<Destination> destinations;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Tile, mlir::Value>>> known;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::pair<Tile, mlir::Operation *>>> tiledOps;
  llvm::DenseMap<unsigned, mlir::Value> symbols;
  /// Made before all their uses, since ops are made in one straight line.
  llvm::DenseMap<mlir::AffineExpr, mlir::OpFoldResult> knownSizes;
};

} // namespace lamina
#endif
