// Block tiles: the cost model of matrix products on a GPU.
#include "lib/Transforms/Tiling/BlockTiles.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace lamina;

/// tt.dot takes no less than the first; four warps have work from the second on; a program has registers for no more
/// sums, half of them where vector units make them.
static constexpr int64_t kLeastSide = 16, kUsualSide = 32, kMostRows = 128, kMostColumns = 256, kMostSums = 1 << 15;
/// A side below which matrix units work at less than their full rate.
static constexpr int64_t kFullRows = 64, kFullColumns = 32;
/// Nanoseconds of a program beside its loop, and of the way of a block from the L2 cache to registers; that many blocks
/// are under way at once.
static constexpr double kProgramTime = 1000, kLoadLatency = 600;
static constexpr int64_t kStages = 3;

int64_t lamina::chooseBlockDepth(int64_t elementBytes) { return std::max<int64_t>(kLeastSide, 128 / elementBytes); }

static double estimateTime(const BlockProduct &product, const BlockTile &tile, const BlockMachine &machine,
                           bool isWalked) {
  int64_t columnTiles = llvm::divideCeil(product.columns, tile.columns);
  int64_t programs = product.batch * llvm::divideCeil(product.rows, tile.rows) * (isWalked ? 1 : columnTiles);
  bool isNarrow = product.elementBytes <= 2;
  double rate = machine.vectorOps;
  if (isNarrow)
    rate = machine.matrixOps * std::min(1.0, double(tile.rows) / kFullRows) *
           std::min(1.0, double(tile.columns) / kFullColumns);
  double arithmetic = tile.rows * tile.columns / rate;
  double loads = double((isWalked ? 0 : tile.rows) + tile.columns) * product.elementBytes / machine.loadBytes;
  double step = std::max({arithmetic, loads, kLoadLatency / double(kStages * tile.depth)});
  double walked = double(product.depth) * (isWalked ? columnTiles : 1) * step;
  double epilogue = 4.0 * tile.rows * tile.columns / machine.loadBytes;
  return double(llvm::divideCeil(programs, machine.multiprocessors)) * (walked + epilogue + kProgramTime);
}

BlockTile lamina::chooseBlockTile(const BlockProduct &product, const BlockMachine &machine, int64_t columns) {
  // Sides as long as the product's are enough.
  auto limit = [](int64_t size, int64_t most) {
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(1, size)), kLeastSide, most);
  };
  int64_t depth = chooseBlockDepth(product.elementBytes);
  int64_t mostRows = limit(product.rows, kMostRows), mostColumns = limit(product.columns, kMostColumns);
  int64_t leastRows = std::min(kUsualSide, mostRows), leastColumns = std::min(kUsualSide, mostColumns);
  if (columns)
    leastColumns = mostColumns = columns;
  BlockTile best{leastRows, leastColumns, depth};
  double least = estimateTime(product, best, machine, columns != 0);
  for (int64_t rows = leastRows; rows <= mostRows; rows *= 2)
    for (int64_t side = leastColumns; side <= mostColumns; side *= 2) {
      BlockTile tile{rows, side, depth};
      bool fits = (rows + side) * depth * product.elementBytes * kStages <= machine.sharedBytes;
      if (!fits || rows * side > (product.elementBytes <= 2 ? kMostSums : kMostSums / 2))
        continue;
      // Of equals the smaller one, whose tails waste less.
      if (double time = estimateTime(product, tile, machine, columns != 0); time < least) {
        least = time;
        best = tile;
      }
    }
  return best;
}
