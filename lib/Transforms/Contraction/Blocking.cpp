// Which register tile and which cache blocks a contraction gets; no IR here.
#include "lib/Transforms/Contraction/Blocking.h"
#include <algorithm>

using namespace lamina::contraction;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Cycles of one step in k: two FMA units, two vector loads a cycle (a broadcast is a load too), and an FMA's latency
/// of 4 for the accumulator that it goes round.
static double stepCycles(int64_t rows, int64_t vectors) {
  double arithmetic = rows * vectors / 2.0, loads = (rows + vectors) / 2.0;
  return std::max({arithmetic + 0.05 * loads, loads, 4.0});
}

RegisterTile lamina::contraction::chooseRegisterTile(const TileQuery &query) {
  constexpr int64_t large = 1 << 16;
  int64_t rows = query.rows.value_or(large), columns = query.columns.value_or(large);
  int64_t depth = query.depth.value_or(512);
  RegisterTile best{1, std::max<int64_t>(query.fixedVectors, 1), query.lanes};
  double bestCycles = 0;
  int64_t maxVectors = rows == 1 ? 8 : 6;
  for (int64_t vectors = 1; vectors <= std::max(maxVectors, query.fixedVectors); ++vectors) {
    if (query.fixedVectors && vectors != query.fixedVectors)
      continue;
    for (int64_t tileRows = 1; tileRows <= std::min<int64_t>(rows, 28); ++tileRows) {
      // Accumulators, the vectors of B and one broadcast element of A.
      if (tileRows * vectors + vectors + 1 > query.registers && tileRows > 1)
        continue;
      double overhead = 12 + tileRows * vectors;
      int64_t whole = columns / (vectors * query.lanes);
      int64_t tail = ceilDiv(columns % (vectors * query.lanes), query.lanes);
      double cycles = whole * (depth * stepCycles(tileRows, vectors) + overhead);
      if (tail)
        cycles += depth * stepCycles(tileRows, query.fixedVectors ? vectors : tail) + overhead;
      cycles *= ceilDiv(rows, tileRows);
      // Many rows mean many streams of A; measured to lose a few per cent.
      if (tileRows > 8)
        cycles *= 1.03;
      if (bestCycles == 0 || cycles < bestCycles) {
        bestCycles = cycles;
        best = {tileRows, vectors, query.lanes};
      }
    }
  }
  return best;
}

RegisterTile lamina::contraction::chooseMatrixTile(const TileQuery &query) {
  int64_t rows = query.rows.value_or(2 * kTileRows), columns = query.columns.value_or(2 * query.lanes);
  int64_t vectors = query.fixedVectors ? query.fixedVectors : columns <= query.lanes ? 1 : 2;
  // Two by two: each tile that is loaded is used twice.
  if (rows > kTileRows && vectors <= 2)
    return {2 * kTileRows, vectors, query.lanes};
  return {std::clamp<int64_t>(rows, 1, kTileRows), vectors, query.lanes};
}

int64_t lamina::contraction::chooseDepthBlock(std::optional<int64_t> depth, int64_t multiple) {
  constexpr int64_t whole = 4096, block = 2048;
  if (!depth)
    return std::max<int64_t>(1, 1024 / multiple) * multiple;
  if (*depth <= std::max(whole, multiple))
    return *depth;
  int64_t parts = ceilDiv(*depth, block);
  return ceilDiv(ceilDiv(*depth, parts), multiple) * multiple;
}
