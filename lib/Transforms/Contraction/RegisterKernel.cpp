// The innermost kernels: a tile of C in registers.
#include "lib/Transforms/Contraction/RegisterKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <functional>

using namespace mlir;
using namespace lamina::contraction;

/// Steps of k in one trip of the innermost loop.
static constexpr int64_t kUnroll = 4;
/// Steps of k in one block of a sum.
static constexpr int64_t kSumBlock = 128;
/// Nests of k loops with at most this many steps are written out.
static constexpr int64_t kFullUnroll = 32;

Value lamina::contraction::extend(Emitter &e, Value value, Extension extension, Type element) {
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  switch (extension) {
  case Extension::None:
    return value;
  case Extension::Float:
    return arith::ExtFOp::create(e.b, e.loc, type, value);
  case Extension::Signed:
    return arith::ExtSIOp::create(e.b, e.loc, type, value);
  case Extension::Unsigned:
    return arith::ExtUIOp::create(e.b, e.loc, type, value);
  }
  llvm_unreachable("unknown extension");
}

Value lamina::contraction::multiplyAdd(Emitter &e, Value x, Value y, Value z) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return math::FmaOp::create(e.b, e.loc, x, y, z);
  return addValues(e, arith::MulIOp::create(e.b, e.loc, x, y), z);
}

Value lamina::contraction::addValues(Emitter &e, Value x, Value y) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return arith::AddFOp::create(e.b, e.loc, x, y);
  return arith::AddIOp::create(e.b, e.loc, x, y);
}

static VectorType vectorOf(Value memref, int64_t lanes) {
  return VectorType::get({lanes}, cast<MemRefType>(memref.getType()).getElementType());
}

Value lamina::contraction::loadVector(Emitter &e, Value memref, ArrayRef<Index> at, int64_t lanes) {
  return vector::LoadOp::create(e.b, e.loc, vectorOf(memref, lanes), memref, e.values(at));
}

Value lamina::contraction::loadVector(Emitter &e, Value memref, ArrayRef<Index> at, int64_t lanes, Value mask) {
  if (!mask)
    return loadVector(e, memref, at, lanes);
  VectorType type = vectorOf(memref, lanes);
  return vector::MaskedLoadOp::create(e.b, e.loc, type, memref, e.values(at), mask, e.zero(type));
}

void lamina::contraction::storeVector(Emitter &e, Value vector, Value memref, ArrayRef<Index> at, Value mask) {
  if (mask)
    vector::MaskedStoreOp::create(e.b, e.loc, memref, e.values(at), mask, vector);
  else
    vector::StoreOp::create(e.b, e.loc, vector, memref, e.values(at));
}

Value lamina::contraction::loadScalar(Emitter &e, Value memref, ArrayRef<Index> at) {
  return memref::LoadOp::create(e.b, e.loc, memref, e.values(at));
}

void lamina::contraction::storeScalar(Emitter &e, Value value, Value memref, ArrayRef<Index> at) {
  memref::StoreOp::create(e.b, e.loc, value, memref, e.values(at));
}

Value lamina::contraction::laneMask(Emitter &e, Index count, int64_t lanes) {
  auto known = getConstantIntValue(count);
  if (known && *known >= lanes)
    return {};
  return vector::CreateMaskOp::create(e.b, e.loc, VectorType::get({lanes}, e.b.getI1Type()),
                                      ValueRange{e.value(count)});
}

SmallVector<Value> lamina::contraction::emitOuterProduct(Emitter &e, const RegisterTile &tile, Type element,
                                                         ArrayRef<Index> depth, KernelOperands operands) {
  auto type = VectorType::get({tile.lanes}, element);
  SmallVector<Value> zeros(tile.rows * tile.vectors, e.zero(type));
  auto step = [&](ArrayRef<Index> k, SmallVector<Value> sums) {
    SmallVector<Value> columns;
    for (int64_t vector = 0; vector < tile.vectors; ++vector)
      columns.push_back(operands.loadB(vector, k));
    for (int64_t row = 0; row < tile.rows; ++row) {
      Value broadcast = vector::BroadcastOp::create(e.b, e.loc, type, operands.loadA(row, k));
      for (int64_t vector = 0; vector < tile.vectors; ++vector) {
        Value &sum = sums[row * tile.vectors + vector];
        sum = multiplyAdd(e, broadcast, columns[vector], sum);
      }
    }
    return sums;
  };
  int64_t steps = 1;
  for (Index size : depth)
    steps *= std::min<int64_t>(getConstantIntValue(size).value_or(kFullUnroll + 1), kFullUnroll + 1);
  bool writeOut = steps <= kFullUnroll;

  // A long sum of floats runs in blocks that are added up: its error grows with the length of a block, and with their
  // number, not with the product of the two.
  int64_t inner = 1;
  for (Index size : depth.drop_front(depth.empty() ? 0 : 1))
    inner *= getConstantIntValue(size).value_or(kSumBlock);
  int64_t blockSteps = llvm::alignTo(std::max<int64_t>(kSumBlock / std::max<int64_t>(inner, 1), 1), kUnroll);
  auto outerSteps = depth.empty() ? std::nullopt : getConstantIntValue(depth[0]);
  bool inBlocks = isa<FloatType>(element) && outerSteps && *outerSteps >= 2 * blockSteps;

  SmallVector<Index> position(depth.size());
  std::function<SmallVector<Value>(unsigned, SmallVector<Value>)> nest = [&](unsigned level, SmallVector<Value> sums) {
    if (level == depth.size())
      return step(position, sums);
    auto one = [&](Index at, ArrayRef<Value> carried) {
      position[level] = at;
      return nest(level + 1, SmallVector<Value>(carried));
    };
    if (writeOut) {
      for (int64_t i = 0, size = *getConstantIntValue(depth[level]); i < size; ++i)
        sums = one(e.constant(i), sums);
      return sums;
    }
    auto range = [&](Index begin, Index end, SmallVector<Value> sums) {
      if (level + 1 < depth.size())
        return e.carry(begin, end, e.constant(1), sums, one);
      Index main = e.add(begin, e.roundDown(e.sub(end, begin), kUnroll));
      sums = e.carry(begin, main, e.constant(kUnroll), sums, [&](Index at, ArrayRef<Value> carried) {
        SmallVector<Value> unrolled(carried);
        for (int64_t i = 0; i < kUnroll; ++i)
          unrolled = one(e.add(at, e.constant(i)), unrolled);
        return unrolled;
      });
      return e.carry(main, end, e.constant(1), sums, one);
    };
    if (level > 0 || !inBlocks)
      return range(e.constant(0), depth[level], sums);
    Index main = e.roundDown(depth[level], blockSteps);
    sums = e.carry(e.constant(0), main, e.constant(blockSteps), sums, [&](Index begin, ArrayRef<Value> carried) {
      SmallVector<Value> block = range(begin, e.add(begin, e.constant(blockSteps)), zeros);
      for (auto [sum, outer] : llvm::zip(block, carried))
        sum = addValues(e, outer, sum);
      return block;
    });
    return range(main, depth[level], sums);
  };
  return nest(0, zeros);
}

/// The sum of a vector's lanes by halving.
static Value sumLanes(Emitter &e, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  for (int64_t lanes = type.getNumElements() / 2; lanes >= 1; lanes /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      low.push_back(lane);
      high.push_back(lane + lanes);
    }
    vector = addValues(e, vector::ShuffleOp::create(e.b, e.loc, vector, vector, low),
                       vector::ShuffleOp::create(e.b, e.loc, vector, vector, high));
  }
  return vector::ExtractOp::create(e.b, e.loc, vector, int64_t(0));
}

SmallVector<Value>
lamina::contraction::emitDot(Emitter &e, int64_t rows, int64_t columns, int64_t lanes, Type element, Index depth,
                             function_ref<Value(unsigned operand, int64_t row, Index k, Value mask)> load) {
  auto type = VectorType::get({lanes}, element);
  auto step = [&](Index k, ArrayRef<Value> carried, Value mask) {
    SmallVector<Value> sums(carried), a;
    for (int64_t row = 0; row < rows; ++row)
      a.push_back(load(0, row, k, mask));
    for (int64_t column = 0; column < columns; ++column) {
      Value b = load(1, column, k, mask);
      for (int64_t row = 0; row < rows; ++row)
        sums[row * columns + column] = multiplyAdd(e, a[row], b, sums[row * columns + column]);
    }
    return sums;
  };
  SmallVector<Value> sums(rows * columns, e.zero(type));
  Index main = e.roundDown(depth, lanes);
  sums = e.carry(e.constant(0), main, e.constant(lanes), sums,
                 [&](Index k, ArrayRef<Value> carried) { return step(k, carried, {}); });
  sums = e.carry(main, depth, e.constant(lanes), sums, [&](Index k, ArrayRef<Value> carried) {
    return step(k, carried, laneMask(e, e.sub(depth, k), lanes));
  });
  for (Value &sum : sums)
    sum = sumLanes(e, sum);
  return sums;
}
