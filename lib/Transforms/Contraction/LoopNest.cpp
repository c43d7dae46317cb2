// The loops around the register kernels: cache blocks, packing, tiles and the write of C.
#include "lib/Transforms/Contraction/LoopNest.h"
#include "lib/Transforms/Contraction/MatrixKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <functional>
#include <limits>

using namespace mlir;
using namespace lamina::contraction;

namespace {

/// Addresses of the first elements inside the outer loops.
struct Bases {
  Index a, b, c;
};

class LoopNest {
public:
  LoopNest(Emitter &e, const Problem &problem, const Schedule &schedule, const NestOptions &options);
  void emit();

private:
  void outerLoops(unsigned level, Bases bases);
  void dotProducts(const Bases &bases);
  void columns(const Bases &bases, Index begin, Index end, const RegisterTile &tile, bool wholePanels);
  void rowTiles(const Bases &bases, Index begin, Index count, Index depthBegin, Index depth, const RegisterTile &tile,
                bool wholePanels, Value panels);
  void matrixTiles(const Bases &bases, Index begin, Index count, Index depthBegin, Index depth,
                   const RegisterTile &tile, bool wholePanels, Value panels);
  TileMemory matrixRows(Value a, bool contiguous, Index aStart, Index aPitch, Index row, Index depth,
                        const RegisterTile &tile, Value copy);
  void writeTile(const RegisterTile &tile, ArrayRef<Value> sums, Value cView, Index row, Index column, Index end,
                 bool wholePanels);
  void writeBuffer(const RegisterTile &tile, Value buffer, Value cView, Index row, Index column, Index end,
                   bool wholePanels);

  Index stride(const Operand &operand, ArrayRef<unsigned> loops) {
    return loops.empty() ? e.constant(1) : operand.strides[loops.back()];
  }
  Index product(ArrayRef<unsigned> loops) {
    Index result = e.constant(1);
    for (unsigned loop : loops)
      result = e.mul(result, problem.sizes[loop]);
    return result;
  }
  std::optional<int64_t> bound(ArrayRef<unsigned> loops) {
    int64_t result = 1;
    for (unsigned loop : loops) {
      if (problem.bounds[loop] == ShapedType::kDynamic)
        return std::nullopt;
      result *= problem.bounds[loop];
    }
    return result;
  }
  /// Row numbers of a tile, the last row repeated where there are fewer.
  SmallVector<Index> tileRows(Index row, int64_t rows) {
    SmallVector<Index> result;
    for (int64_t i = 0; i < rows; ++i) {
      Index at = e.add(row, e.constant(i));
      result.push_back(wholeTiles(rows) || i == 0 ? at : e.min(at, e.sub(M, e.constant(1))));
    }
    return result;
  }
  bool wholeTiles(int64_t rows) {
    auto size = getConstantIntValue(M);
    return size && *size % rows == 0;
  }

  /// The mask of each vector of a tile's columns; null where it has all of them.
  SmallVector<Value> columnMasks(const RegisterTile &tile, Index column, Index end, bool wholePanels) {
    SmallVector<Value> masks(tile.vectors);
    for (int64_t vector = 0; vector < tile.vectors && !wholePanels; ++vector)
      masks[vector] = laneMask(e, e.sub(end, e.add(column, e.constant(vector * tile.lanes))), tile.lanes);
    return masks;
  }
  void writeVector(Value sum, Value c, ArrayRef<Index> at, Value mask) {
    if (readsC)
      sum = addValues(e, loadVector(e, c, at, cast<VectorType>(sum.getType()).getNumElements(), mask), sum);
    storeVector(e, sum, c, at, mask);
  }

  Emitter &e;
  const Problem &problem;
  const Schedule &schedule;
  const NestOptions &options;
  Index M, N, K;
  bool readsC;
};

LoopNest::LoopNest(Emitter &e, const Problem &problem, const Schedule &schedule, const NestOptions &options)
    : e(e), problem(problem), schedule(schedule), options(options) {
  M = product(schedule.m);
  N = product(schedule.n);
  K = product(schedule.k);
  readsC = schedule.accumulates || !options.startAtZero;
}

void LoopNest::emit() {
  if (schedule.matrix)
    configureTiles(e, std::min<int64_t>(bound(schedule.m).value_or(kTileRows), kTileRows));
  outerLoops(0, {problem.a.offset, problem.b.offset, problem.c.offset});
  if (schedule.matrix)
    releaseTiles(e);
}

void LoopNest::outerLoops(unsigned level, Bases bases) {
  if (level < schedule.outer.size()) {
    unsigned loop = schedule.outer[level];
    auto next = [&](Index base, const Operand &operand, Index i) {
      return e.add(base, e.mul(i, operand.strides[loop]));
    };
    e.loop(e.constant(0), problem.sizes[loop], e.constant(1), [&](Index i) {
      outerLoops(level + 1, {next(bases.a, problem.a, i), next(bases.b, problem.b, i), next(bases.c, problem.c, i)});
    });
    return;
  }
  if (schedule.access == Access::Dot)
    return dotProducts(bases);

  TileQuery query;
  query.rows = bound(schedule.m);
  query.columns = bound(schedule.n);
  query.depth = bound(schedule.k);
  query.lanes = schedule.lanes;
  query.registers = options.vectorBits == 512 ? 32 : 16;
  query.fixedVectors = problem.packedColumns / schedule.lanes;
  RegisterTile tile = schedule.matrix ? chooseMatrixTile(query) : chooseRegisterTile(query);
  auto size = getConstantIntValue(N);
  bool whole = size && *size % tile.columns() == 0;
  RegisterTile last = tile;
  if (size && !query.fixedVectors)
    last.vectors = llvm::divideCeil(*size % tile.columns(), tile.lanes);
  if (whole || last.vectors == tile.vectors || *size < tile.columns())
    return columns(bases, e.constant(0), N, whole ? tile : last, whole);
  // The last columns get a narrower kernel rather than a mostly empty tile.
  Index main = e.roundDown(N, tile.columns());
  columns(bases, e.constant(0), main, tile, true);
  columns(bases, main, N, last, (*size - *getConstantIntValue(main)) % last.columns() == 0);
}

void LoopNest::dotProducts(const Bases &bases) {
  int64_t rows = std::max<int64_t>(*bound(schedule.m), 1);
  int64_t registers = options.vectorBits == 512 ? 32 : 16;
  int64_t tileColumns = std::max<int64_t>(1, std::min<int64_t>(8, (registers - rows - 1) / (rows + 1)));
  if (auto size = getConstantIntValue(N))
    tileColumns = std::max<int64_t>(1, std::min(tileColumns, *size));
  Index rowStride = schedule.m.empty() ? e.constant(0) : problem.a.strides[schedule.m[0]];
  Index columnStride = schedule.n.empty() ? e.constant(0) : problem.b.strides[schedule.n[0]];
  Value a = problem.a.view(e, bases.a, {M, K}, {rowStride, e.constant(1)});
  Value b = problem.b.view(e, bases.b, {N, K}, {columnStride, e.constant(1)});
  Value c = problem.c.view(e, bases.c, {M, N}, {stride(problem.c, schedule.m), stride(problem.c, schedule.n)});
  bool wholeRows = getConstantIntValue(M) == rows;
  SmallVector<Index> rowAt;
  for (int64_t row = 0; row < rows; ++row)
    rowAt.push_back(wholeRows ? e.constant(row)
                              : e.max(e.min(e.constant(row), e.sub(M, e.constant(1))), e.constant(0)));
  auto tile = [&](Index column, int64_t count) {
    SmallVector<Value> sums = emitDot(e, rows, count, schedule.lanes, problem.accumulator, K,
                                      [&](unsigned operand, int64_t row, Index k, Value mask) {
                                        const Operand &from = operand ? problem.b : problem.a;
                                        Index at = operand ? e.add(column, e.constant(row)) : rowAt[row];
                                        Value vector = loadVector(e, operand ? b : a, {at, k}, schedule.lanes, mask);
                                        return extend(e, vector, from.extension, problem.accumulator);
                                      });
    for (int64_t row = 0; row < rows; ++row)
      e.ifLess(e.constant(row), M, [&] {
        for (int64_t i = 0; i < count; ++i) {
          SmallVector<Index> at = {e.constant(row), e.add(column, e.constant(i))};
          Value sum = sums[row * count + i];
          storeScalar(e, readsC ? addValues(e, loadScalar(e, c, at), sum) : sum, c, at);
        }
      });
  };
  auto body = [&] {
    Index main = e.roundDown(N, tileColumns);
    e.loop(e.constant(0), main, e.constant(tileColumns), [&](Index column) { tile(column, tileColumns); });
    e.loop(main, N, e.constant(1), [&](Index column) { tile(column, 1); });
  };
  if (wholeRows)
    body();
  else
    e.ifLess(e.constant(0), M, body); // with no row there is nothing to read either
}

void LoopNest::columns(const Bases &bases, Index begin, Index end, const RegisterTile &tile, bool wholePanels) {
  bool packs = schedule.access != Access::Prepacked && schedule.access != Access::InPlace;
  int64_t width = tile.columns(), depth = std::max<int64_t>(schedule.depthBlock, 1);
  Type element = schedule.matrix ? problem.b.element : problem.accumulator;
  int64_t elementBytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8), together = schedule.matrix ? 2 : 1;
  // A block of B is read again for each tile of rows, from the L2 cache.
  int64_t panels = std::max<int64_t>(1, options.blockBytes / (depth * width * elementBytes));
  if (auto rows = getConstantIntValue(M); rows && *rows <= tile.rows && !packs)
    panels = std::numeric_limits<int32_t>::max();
  std::optional<int64_t> size = getConstantIntValue(e.sub(end, begin));
  if (!size)
    size = bound(schedule.n);
  if (size)
    panels = std::min<int64_t>(panels, std::max<int64_t>(llvm::divideCeil(*size, width), 1));
  int64_t block = panels * width;
  // Transposed blocks write whole squares, and the matrix unit reads them.
  int64_t depthRoom = llvm::alignTo(depth, schedule.lanes * together) / together;
  Value packed = !packs ? Value() : e.scratch({panels, depthRoom, width * together}, element);

  e.loop(begin, end, e.constant(block), [&](Index column) {
    bool even = size && getConstantIntValue(end) && *size % block == 0;
    Index count = even ? e.constant(block) : e.min(e.constant(block), e.sub(end, column));
    auto known = getConstantIntValue(K);
    auto depthBlock = [&](Index row) {
      Index rows = e.constant(depth);
      if (!schedule.deep)
        rows = K;
      else if (!known || *known % depth != 0)
        rows = e.min(rows, e.sub(K, row));
      PackRequest request{problem, bases.b, schedule.n, schedule.k,  column, count,
                          row,     rows,    together,   wholePanels, packed};
      switch (schedule.access) {
      case Access::Rows:
        packRows(e, request, schedule.lanes);
        break;
      case Access::Prepacked:
      case Access::InPlace:
        break;
      case Access::Transposed:
        packTransposed(e, request, schedule.lanes);
        break;
      case Access::Pixels:
        packPixels(e, request, schedule.lanes);
        break;
      default:
        packScalars(e, request);
      }
      auto tiles = schedule.matrix ? &LoopNest::matrixTiles : &LoopNest::rowTiles;
      (this->*tiles)(bases, column, count, row, rows, tile, wholePanels, packed);
    };
    if (schedule.deep)
      e.loop(e.constant(0), K, e.constant(depth), depthBlock);
    else
      depthBlock(e.constant(0)); // even with no row: C may have to become zero
  });
}

void LoopNest::rowTiles(const Bases &bases, Index begin, Index count, Index depthBegin, Index depth,
                        const RegisterTile &tile, bool wholePanels, Value panels) {
  bool inPlace = schedule.access == Access::InPlace;
  Index rowStride = schedule.m.empty() ? e.constant(0) : problem.a.strides[schedule.m[0]];

  // A and B as the kernel walks them: loops of k one by one in place, else flattened.
  SmallVector<Index> depths = {depth}, aSizes = {M}, bSizes, aStrides = {rowStride}, bStrides;
  if (inPlace && schedule.k.size() != 1) {
    depths.clear();
    for (unsigned loop : schedule.k) {
      depths.push_back(problem.sizes[loop]);
      aStrides.push_back(problem.a.strides[loop]);
      bStrides.push_back(problem.b.strides[loop]);
    }
  } else {
    aStrides.push_back(stride(problem.a, schedule.k));
    bStrides.push_back(stride(problem.b, schedule.k));
  }
  llvm::append_range(aSizes, depths);
  auto start = [&](Index base, const Operand &operand) {
    return schedule.k.empty() ? base : e.add(base, e.mul(depthBegin, stride(operand, schedule.k)));
  };
  Value a = problem.a.view(e, start(bases.a, problem.a), aSizes, aStrides);
  int64_t columnStride = 1;
  if (inPlace) {
    llvm::append_range(bSizes, depths);
    bSizes.push_back(N);
    columnStride = getConstantIntValue(stride(problem.b, schedule.n)).value_or(1);
    bStrides.push_back(e.constant(1));
    panels = problem.b.view(e, start(bases.b, problem.b), bSizes, bStrides);
  } else if (schedule.access == Access::Prepacked) {
    panels = problem.b.view(e, bases.b, {e.ceilDiv(N, tile.columns()), K, e.constant(tile.columns())},
                            {problem.packedStride, stride(problem.b, schedule.k), e.constant(1)});
  }
  Value c = problem.c.view(
      e, bases.c, {M, N},
      {schedule.m.empty() ? e.constant(0) : stride(problem.c, schedule.m), stride(problem.c, schedule.n)});

  // A copy of the rows pays where elements would be converted again for each panel, or where the tile has more rows
  // than there are registers for their addresses.
  bool copyA = !inPlace && (problem.a.extension != Extension::None || (tile.rows > 8 && !wholeTiles(tile.rows)));
  Value aCopy;
  int64_t depthBound = schedule.deep ? schedule.depthBlock : bound(schedule.k).value_or(0);
  copyA &= depthBound > 0;
  if (copyA) // the odd pitch keeps rows out of each other's cache sets
    aCopy = e.scratch({tile.rows, (int64_t)llvm::alignTo(depthBound, schedule.lanes) + schedule.lanes},
                      problem.accumulator);

  Index end = e.add(begin, count);
  e.loop(e.constant(0), M, e.constant(tile.rows), [&](Index row) {
    SmallVector<Index> rows = tileRows(row, tile.rows);
    if (copyA)
      packLeft(e, problem, a, getConstantIntValue(aStrides[1]) == 1, rows, depth, schedule.lanes, aCopy);
    e.loop(e.constant(0), e.ceilDiv(count, tile.columns()), e.constant(1), [&](Index panel) {
      Index column = e.add(begin, e.mul(panel, e.constant(tile.columns())));
      auto loadA = [&](int64_t i, ArrayRef<Index> k) {
        SmallVector<Index> at = {copyA ? e.constant(i) : rows[i]};
        llvm::append_range(at, k);
        Value element = loadScalar(e, copyA ? aCopy : a, at);
        return copyA ? element : extend(e, element, problem.a.extension, problem.accumulator);
      };
      auto loadB = [&](int64_t vector, ArrayRef<Index> k) {
        Index lane = e.constant(vector * tile.lanes);
        if (!inPlace) {
          bool raw = schedule.access == Access::Prepacked;
          Index number = raw ? e.add(e.div(begin, e.constant(tile.columns())), panel) : panel;
          Value value = loadVector(e, panels, {number, k[0], lane}, tile.lanes);
          return raw ? extend(e, value, problem.b.extension, problem.accumulator) : value;
        }
        SmallVector<Index> at(k);
        Index first = e.add(column, lane);
        at.push_back(e.mul(first, e.constant(columnStride)));
        Index left = wholePanels ? e.constant(tile.lanes) : e.sub(end, first);
        return extend(e, loadStrided(e, panels, at, columnStride, left, tile.lanes), problem.b.extension,
                      problem.accumulator);
      };
      SmallVector<Value> sums = emitOuterProduct(e, tile, problem.accumulator, depths, {loadA, loadB});
      writeTile(tile, sums, c, row, column, end, wholePanels);
    });
  });
}

/// The rows of A from `row` on as the matrix unit reads them: where they are, if they are whole tiles, else in `copy`.
TileMemory LoopNest::matrixRows(Value a, bool contiguous, Index aStart, Index aPitch, Index row, Index depth,
                                const RegisterTile &tile, Value copy) {
  Index copyPitch = e.constant(cast<MemRefType>(copy.getType()).getDimSize(1));
  auto copyRows = [&] {
    packLeft(e, problem, a, contiguous, tileRows(row, tile.rows), depth, kTileDepth, copy);
    return tileMemory(e, copy, e.constant(0), copyPitch);
  };
  auto direct = [&] { return tileMemory(e, problem.a.buffer, e.add(aStart, e.mul(row, aPitch)), aPitch); };
  auto knownDepth = getConstantIntValue(depth);
  if (!contiguous || (knownDepth && *knownDepth % kTileDepth != 0))
    return copyRows();
  if (wholeTiles(tile.rows) && knownDepth)
    return direct();
  Value whole = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sle, e.value(e.add(row, e.constant(tile.rows))),
                                      e.value(M));
  if (!knownDepth) {
    Value rest = e.value(e.rem(depth, e.constant(kTileDepth)));
    Value even = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, rest, e.value(e.constant(0)));
    whole = arith::AndIOp::create(e.b, e.loc, whole, even);
  }
  Type index = e.b.getIndexType();
  auto branch = scf::IfOp::create(e.b, e.loc, TypeRange{index, index}, whole, /*withElseRegion=*/true);
  auto fill = [&](Block *block, function_ref<TileMemory()> make) {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(block);
    TileMemory memory = make();
    scf::YieldOp::create(e.b, e.loc, e.values({memory.address, memory.pitch}));
  };
  fill(branch.thenBlock(), direct);
  fill(branch.elseBlock(), copyRows);
  return {branch.getResult(0), branch.getResult(1)};
}

/// What rowTiles does, on the matrix unit.
void LoopNest::matrixTiles(const Bases &bases, Index begin, Index count, Index depthBegin, Index depth,
                           const RegisterTile &tile, bool wholePanels, Value panels) {
  bool prepacked = schedule.access == Access::Prepacked;
  Index aPitch = schedule.m.empty() ? e.constant(0) : problem.a.strides[schedule.m[0]];
  Index kStride = stride(problem.a, schedule.k);
  Index aStart = e.add(bases.a, e.mul(depthBegin, kStride));
  Value a = problem.a.view(e, aStart, {M, depth}, {aPitch, kStride});
  Value c = problem.c.view(
      e, bases.c, {M, N},
      {schedule.m.empty() ? e.constant(0) : stride(problem.c, schedule.m), stride(problem.c, schedule.n)});
  int64_t depthBound = schedule.deep ? schedule.depthBlock : bound(schedule.k).value_or(schedule.depthBlock);
  // The odd pitch keeps rows out of each other's cache sets.
  Value copy = e.scratch({tile.rows, (int64_t)llvm::alignTo(depthBound, kTileDepth) + kTileDepth}, problem.a.element);
  Value buffer = e.scratch({tile.rows, tile.columns()}, problem.accumulator);
  TileMemory sums = tileMemory(e, buffer, e.constant(0), e.constant(tile.columns()));
  Index panelPitch = e.constant(2 * tile.columns());
  Index panelSize = prepacked ? problem.packedStride
                              : e.mul(e.constant(cast<MemRefType>(panels.getType()).getDimSize(1)), panelPitch);
  Index end = e.add(begin, count);
  e.loop(e.constant(0), M, e.constant(tile.rows), [&](Index row) {
    TileMemory rows = matrixRows(a, getConstantIntValue(kStride) == 1, aStart, aPitch, row, depth, tile, copy);
    e.loop(e.constant(0), e.ceilDiv(count, tile.columns()), e.constant(1), [&](Index panel) {
      Index column = e.add(begin, e.mul(panel, e.constant(tile.columns())));
      Index number = prepacked ? e.div(column, e.constant(tile.columns())) : panel;
      Index start = e.add(prepacked ? bases.b : e.constant(0), e.mul(number, panelSize));
      TileMemory right = tileMemory(e, prepacked ? problem.b.buffer : panels, start, panelPitch);
      emitTileProduct(e, tile, e.roundUp(depth, kTileDepth), rows, right, sums);
      writeBuffer(tile, buffer, c, row, column, end, wholePanels);
    });
  });
}

void LoopNest::writeTile(const RegisterTile &tile, ArrayRef<Value> sums, Value c, Index row, Index column, Index end,
                         bool wholePanels) {
  Index rowEnd = wholeTiles(tile.rows) ? e.add(row, e.constant(tile.rows)) : M;
  auto isThere = [&](int64_t i, function_ref<void()> body) {
    if (i == 0 || wholeTiles(tile.rows))
      return body();
    e.ifLess(e.add(row, e.constant(i)), rowEnd, body);
  };
  if (schedule.unitColumns) {
    SmallVector<Value> masks = columnMasks(tile, column, end, wholePanels);
    for (int64_t i = 0; i < tile.rows; ++i)
      isThere(i, [&] {
        for (int64_t vector = 0; vector < tile.vectors; ++vector) {
          SmallVector<Index> at = {e.add(row, e.constant(i)), e.add(column, e.constant(vector * tile.lanes))};
          writeVector(sums[i * tile.vectors + vector], c, at, masks[vector]);
        }
      });
    return;
  }
  // Without a unit stride the tile goes through memory.
  Value buffer = e.scratch({tile.rows, tile.columns()}, problem.accumulator);
  for (int64_t i = 0; i < tile.rows; ++i)
    for (int64_t vector = 0; vector < tile.vectors; ++vector)
      storeVector(e, sums[i * tile.vectors + vector], buffer, {e.constant(i), e.constant(vector * tile.lanes)});
  writeBuffer(tile, buffer, c, row, column, end, wholePanels);
}

/// Writes a tile of sums that lies in a buffer to C.
void LoopNest::writeBuffer(const RegisterTile &tile, Value buffer, Value c, Index row, Index column, Index end,
                           bool wholePanels) {
  Index rows = e.constant(tile.rows);
  if (!wholeTiles(tile.rows))
    rows = e.min(rows, e.sub(M, row));
  if (schedule.unitColumns) {
    SmallVector<Value> masks = columnMasks(tile, column, end, wholePanels);
    e.loop(e.constant(0), rows, e.constant(1), [&](Index i) {
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        Index lane = e.constant(vector * tile.lanes);
        writeVector(loadVector(e, buffer, {i, lane}, tile.lanes), c, {e.add(row, i), e.add(column, lane)},
                    masks[vector]);
      }
    });
    return;
  }
  Index columns = e.min(e.constant(tile.columns()), e.sub(end, column));
  e.loop(e.constant(0), rows, e.constant(1), [&](Index i) {
    e.loop(e.constant(0), columns, e.constant(1), [&](Index j) {
      SmallVector<Index> at = {e.add(row, i), e.add(column, j)};
      Value sum = loadScalar(e, buffer, {i, j});
      storeScalar(e, readsC ? addValues(e, loadScalar(e, c, at), sum) : sum, c, at);
    });
  });
}

} // namespace

void lamina::contraction::emitLoopNest(Emitter &e, const Problem &problem, const Schedule &schedule,
                                       const NestOptions &options) {
  LoopNest(e, problem, schedule, options).emit();
}
