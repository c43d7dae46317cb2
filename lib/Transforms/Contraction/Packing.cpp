// Copies of operands in the order in which the register kernels read them.
#include "lib/Transforms/Contraction/Packing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <functional>
#include <limits>

using namespace mlir;
using namespace lamina::contraction;

static int64_t panelColumns(const PackRequest &request) {
  return cast<MemRefType>(request.panels.getType()).getDimSize(2) / request.together;
}

/// Calls `body` with the address of each row of the block and its number in the block.
static void forEachRow(Emitter &e, const PackRequest &request, function_ref<void(Index address, Index row)> body) {
  const Problem &problem = request.problem;
  if (request.k.empty())
    return body(request.base, e.constant(0));
  Index inner = e.constant(1);
  for (unsigned loop : request.k.drop_front())
    inner = e.mul(inner, problem.sizes[loop]);
  std::function<void(unsigned, Index, Index)> nest = [&](unsigned level, Index address, Index row) {
    if (level == request.k.size())
      return body(address, row);
    unsigned loop = request.k[level];
    Index first = level ? e.constant(0) : e.div(request.row, inner);
    Index count = level ? problem.sizes[loop] : e.div(request.depth, inner);
    if (level == 0)
      address = e.add(address, e.mul(first, problem.b.strides[loop]));
    e.loop(e.constant(0), count, e.constant(1), [&](Index i) {
      nest(level + 1, e.add(address, e.mul(i, problem.b.strides[loop])),
           level ? e.add(e.mul(row, problem.sizes[loop]), i) : i);
    });
  };
  nest(0, request.base, e.constant(0));
}

/// The part of an address that the flattened column gives.
static Index columnAddress(Emitter &e, const PackRequest &request, Index column) {
  const Problem &problem = request.problem;
  Index address = e.constant(0);
  for (unsigned i = request.n.size(); i-- > 0;) {
    unsigned loop = request.n[i];
    Index at = i ? e.rem(column, problem.sizes[loop]) : column;
    address = e.add(address, e.mul(at, problem.b.strides[loop]));
    if (i)
      column = e.div(column, problem.sizes[loop]);
  }
  return address;
}

/// B's memory as one line from `start` on; only its stride matters.
static Value lineView(Emitter &e, const Operand &operand, Index start) {
  return operand.view(e, start, {e.constant(std::numeric_limits<int32_t>::max())}, {e.constant(1)});
}

void lamina::contraction::packScalars(Emitter &e, const PackRequest &request) {
  const Problem &problem = request.problem;
  int64_t width = panelColumns(request);
  Value line = lineView(e, problem.b, e.constant(0));
  e.loop(e.constant(0), e.ceilDiv(request.columns, width), e.constant(1), [&](Index panel) {
    e.loop(e.constant(0), e.constant(width), e.constant(1), [&](Index lane) {
      // Columns past the end repeat the last one: they are never stored to C.
      Index column = e.min(e.add(e.mul(panel, e.constant(width)), lane), e.sub(request.columns, e.constant(1)));
      Index offset = columnAddress(e, request, e.add(request.column, column));
      forEachRow(e, request, [&](Index address, Index row) {
        Value element = loadScalar(e, line, {e.add(address, offset)});
        storeScalar(e, extend(e, element, problem.b.extension, problem.accumulator), request.panels,
                    {panel, row, lane});
      });
    });
  });
}

/// Masks of the vectors of the last panel, which has fewer columns.
static SmallVector<Value> lastMasks(Emitter &e, const PackRequest &request, Index panel, int64_t lanes) {
  int64_t width = panelColumns(request);
  Index left = e.sub(request.columns, e.mul(panel, e.constant(width)));
  SmallVector<Value> masks;
  for (int64_t vector = 0; vector < width / lanes; ++vector)
    masks.push_back(laneMask(e, e.sub(left, e.constant(vector * lanes)), lanes));
  return masks;
}

/// Rows 2 r and 2 r + 1 of B to row r of the panels, element by element in turn; zeros where there is no row, up to a
/// whole tile.
static void packRowPairs(Emitter &e, const PackRequest &request, int64_t lanes) {
  const Problem &problem = request.problem;
  int64_t width = panelColumns(request);
  Index rowStride = problem.b.strides[request.k[0]];
  Index start = e.add(e.add(request.base, request.column), e.mul(request.row, rowStride));
  Value view = problem.b.view(e, start, {request.depth, request.columns}, {rowStride, e.constant(1)});
  Value zero = e.zero(VectorType::get({lanes}, problem.b.element));
  auto copy = [&](Index pair, int64_t rows, Index panel, ArrayRef<Value> masks) {
    for (int64_t vector = 0; vector < width / lanes; ++vector) {
      Index column = e.add(e.mul(panel, e.constant(width)), e.constant(vector * lanes));
      Value loaded[2] = {zero, zero};
      for (int64_t row = 0; row < rows; ++row)
        loaded[row] = loadVector(e, view, {e.add(e.mul(pair, e.constant(2)), e.constant(row)), column}, lanes,
                                 masks.empty() ? Value() : masks[vector]);
      Value both = vector::InterleaveOp::create(e.b, e.loc, loaded[0], loaded[1]);
      storeVector(e, both, request.panels, {panel, pair, e.constant(2 * vector * lanes)});
    }
  };
  auto allRows = [&](function_ref<void(Index pair, int64_t rows)> body) {
    Index pairs = e.div(request.depth, e.constant(2)), some = e.ceilDiv(request.depth, 2);
    e.loop(e.constant(0), pairs, e.constant(1), [&](Index pair) { body(pair, 2); });
    e.loop(pairs, some, e.constant(1), [&](Index pair) { body(pair, 1); });
    e.loop(some, e.div(e.roundUp(request.depth, kTileDepth), e.constant(2)), e.constant(1),
           [&](Index pair) { body(pair, 0); });
  };
  Index whole = e.div(request.columns, e.constant(width));
  allRows([&](Index pair, int64_t rows) {
    e.loop(e.constant(0), whole, e.constant(1), [&](Index panel) { copy(pair, rows, panel, {}); });
  });
  if (request.wholePanels)
    return;
  e.loop(whole, e.ceilDiv(request.columns, width), e.constant(1), [&](Index panel) {
    SmallVector<Value> masks = lastMasks(e, request, panel, lanes);
    allRows([&](Index pair, int64_t rows) { copy(pair, rows, panel, masks); });
  });
}

void lamina::contraction::packRows(Emitter &e, const PackRequest &request, int64_t lanes) {
  if (request.together == 2)
    return packRowPairs(e, request, lanes);
  const Problem &problem = request.problem;
  int64_t width = panelColumns(request);
  Value line = lineView(e, problem.b, e.constant(0));
  auto copy = [&](Index address, Index row, Index panel, ArrayRef<Value> masks) {
    for (int64_t vector = 0; vector < width / lanes; ++vector) {
      Index lane = e.constant(vector * lanes);
      Index at = e.add(address, e.add(e.mul(panel, e.constant(width)), lane));
      Value value = loadVector(e, line, {at}, lanes, masks.empty() ? Value() : masks[vector]);
      storeVector(e, extend(e, value, problem.b.extension, problem.accumulator), request.panels, {panel, row, lane});
    }
  };
  PackRequest block = request;
  block.base = e.add(request.base, request.column);
  Index whole = e.div(request.columns, e.constant(width));
  forEachRow(e, block, [&](Index address, Index row) {
    e.loop(e.constant(0), whole, e.constant(1), [&](Index panel) { copy(address, row, panel, {}); });
  });
  if (request.wholePanels)
    return;
  e.loop(whole, e.ceilDiv(request.columns, width), e.constant(1), [&](Index panel) {
    SmallVector<Value> masks = lastMasks(e, request, panel, lanes);
    forEachRow(e, block, [&](Index address, Index row) { copy(address, row, panel, masks); });
  });
}

/// Transposes a square of vectors: exchanges blocks of 1, 2, 4 ... lanes, one two-source shuffle a vector each time.
static void transposeInRegisters(Emitter &e, SmallVector<Value> &vectors) {
  int64_t lanes = vectors.size();
  for (int64_t block = 1; block < lanes; block *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool upper = lane & block;
      low.push_back(upper ? lanes + lane - block : lane);
      high.push_back(upper ? lanes + lane : lane + block);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & block)
        continue;
      Value first = vectors[i], second = vectors[i + block];
      vectors[i] = vector::ShuffleOp::create(e.b, e.loc, first, second, low);
      vectors[i + block] = vector::ShuffleOp::create(e.b, e.loc, first, second, high);
    }
  }
}

void lamina::contraction::packTransposed(Emitter &e, const PackRequest &request, int64_t lanes) {
  const Problem &problem = request.problem;
  int64_t width = panelColumns(request);
  // Rows that alternate are transposed together, as one element of twice the width.
  int64_t together = request.together, deep = lanes * together;
  auto pairType = VectorType::get({lanes}, e.b.getIntegerType(together * problem.b.element.getIntOrFloatBitWidth()));
  Index columnStride = problem.b.strides[request.n[0]];
  Index start = e.add(e.add(request.base, request.row), e.mul(request.column, columnStride));
  Value view = problem.b.view(e, start, {request.columns, request.depth}, {columnStride, e.constant(1)});
  Index columns = request.wholePanels ? request.columns : e.roundUp(request.columns, width);
  e.loop(e.constant(0), columns, e.constant(lanes), [&](Index column) {
    Index panel = e.div(column, e.constant(width));
    Index lane = e.sub(column, e.mul(panel, e.constant(width)));
    SmallVector<Index> rows;
    for (int64_t i = 0; i < lanes; ++i) {
      Index row = e.add(column, e.constant(i));
      // Columns past the end repeat the last one: they are never stored to C.
      rows.push_back(request.wholePanels ? row : e.min(row, e.sub(request.columns, e.constant(1))));
    }
    auto block = [&](Index k, Value mask) {
      SmallVector<Value> vectors;
      for (int64_t i = 0; i < lanes; ++i) {
        Value loaded = loadVector(e, view, {rows[i], k}, deep, mask);
        vectors.push_back(together == 1 ? extend(e, loaded, problem.b.extension, problem.accumulator)
                                        : vector::BitCastOp::create(e.b, e.loc, pairType, loaded));
      }
      transposeInRegisters(e, vectors);
      for (int64_t i = 0; i < lanes; ++i) {
        Value vector = vectors[i];
        if (together > 1)
          vector = vector::BitCastOp::create(e.b, e.loc, VectorType::get({deep}, problem.b.element), vector);
        storeVector(e, vector, request.panels,
                    {panel, e.add(e.div(k, e.constant(together)), e.constant(i)), e.mul(lane, e.constant(together))});
      }
    };
    Index main = e.roundDown(request.depth, deep);
    e.loop(e.constant(0), main, e.constant(deep), [&](Index k) { block(k, {}); });
    // The panels' depth is a multiple of a block's, so that the rows past the end have room.
    e.loop(main, request.depth, e.constant(deep),
           [&](Index k) { block(k, laneMask(e, e.sub(request.depth, k), deep)); });
  });
}

Value lamina::contraction::loadStrided(Emitter &e, Value line, ArrayRef<Index> at, int64_t stride, Index count,
                                       int64_t lanes) {
  if (stride == 1)
    return loadVector(e, line, at, lanes, laneMask(e, count, lanes));
  // 2 * count - 1 elements of two vectors, of which the even ones are kept.
  Index reach = e.sub(e.mul(count, e.constant(2)), e.constant(1));
  SmallVector<Index> second(at);
  second.back() = e.add(second.back(), e.constant(lanes));
  Value low = loadVector(e, line, at, lanes, laneMask(e, reach, lanes));
  Value high = loadVector(e, line, second, lanes, laneMask(e, e.sub(reach, e.constant(lanes)), lanes));
  SmallVector<int64_t> even;
  for (int64_t lane = 0; lane < lanes; ++lane)
    even.push_back(2 * lane);
  return vector::ShuffleOp::create(e.b, e.loc, low, high, even);
}

void lamina::contraction::packPixels(Emitter &e, const PackRequest &request, int64_t lanes) {
  const Problem &problem = request.problem;
  int64_t width = panelColumns(request);
  unsigned inner = request.n.back();
  int64_t rowPixels = *problem.size(inner);
  int64_t stride = *getConstantIntValue(problem.b.strides[inner]);
  Value line = lineView(e, problem.b, e.constant(0));
  // A vector of pixels crosses into this many rows at most.
  int64_t pieces = rowPixels % lanes == 0 ? 1 : (lanes - 2) / rowPixels + 2;
  struct Piece {
    Index address, lane, count;
    bool first;
    Value mask;
  };
  e.loop(e.constant(0), e.ceilDiv(request.columns, width), e.constant(1), [&](Index panel) {
    SmallVector<Piece> all;
    for (int64_t vector = 0; vector < width / lanes; ++vector) {
      Index lane = e.constant(vector * lanes);
      Index done = e.add(e.mul(panel, e.constant(width)), lane);
      Index left = request.wholePanels ? e.constant(lanes)
                                       : e.max(e.min(e.sub(request.columns, done), e.constant(lanes)), e.constant(0));
      Index pixel = e.add(request.column, done);
      Index x = e.rem(pixel, e.constant(rowPixels));
      for (int64_t piece = 0; piece < pieces; ++piece) {
        // Lanes [begin, end) lie in the row that is `piece` rows after the first pixel's.
        Index begin = piece ? e.min(e.sub(e.constant(piece * rowPixels), x), left) : e.constant(0);
        Index end = pieces == 1 ? left : e.min(e.sub(e.constant((piece + 1) * rowPixels), x), left);
        Index at = columnAddress(e, request, e.add(pixel, begin));
        Index count = e.sub(end, begin);
        Value mask = piece ? laneMask(e, count, lanes) : Value();
        all.push_back({at, e.add(lane, begin), count, piece == 0, mask});
      }
    }
    forEachRow(e, request, [&](Index address, Index row) {
      for (const Piece &piece : all) {
        Value value = loadStrided(e, line, {e.add(address, piece.address)}, stride, piece.count, lanes);
        value = extend(e, value, problem.b.extension, problem.accumulator);
        storeVector(e, value, request.panels, {panel, row, piece.lane}, piece.mask);
      }
    });
  });
}

void lamina::contraction::packLeft(Emitter &e, const Problem &problem, Value view, bool contiguous,
                                   ArrayRef<Index> rows, Index depth, int64_t lanes, Value copy) {
  Type element = cast<MemRefType>(copy.getType()).getElementType();
  auto convert = [&](Value value) {
    return element == problem.a.element ? value : extend(e, value, problem.a.extension, element);
  };
  if (!contiguous) {
    e.loop(e.constant(0), depth, e.constant(1), [&](Index k) {
      for (auto [i, row] : llvm::enumerate(rows))
        storeScalar(e, convert(loadScalar(e, view, {row, k})), copy, {e.constant(i), k});
    });
    e.loop(depth, e.roundUp(depth, lanes), e.constant(1), [&](Index k) {
      for (unsigned i = 0; i < rows.size(); ++i)
        storeScalar(e, e.zero(element), copy, {e.constant(i), k});
    });
    return;
  }
  auto block = [&](Index k, Value mask) {
    for (auto [i, row] : llvm::enumerate(rows))
      storeVector(e, convert(loadVector(e, view, {row, k}, lanes, mask)), copy, {e.constant(i), k});
  };
  Index main = e.roundDown(depth, lanes);
  e.loop(e.constant(0), main, e.constant(lanes), [&](Index k) { block(k, {}); });
  e.loop(main, depth, e.constant(lanes), [&](Index k) { block(k, laneMask(e, e.sub(depth, k), lanes)); });
}
