// Scans and sorts along a dimension: tt.scan over blocks, with a total that is carried from chunk to chunk; comparisons
// of all pairs.
#include "lib/Conversion/PrimToLinalg/ScalarBody.h"
#include "lib/Conversion/PrimToLinalg/Scan.h"
#include "lib/Conversion/PrimToLinalg/Sort.h"
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lamina;

static Reduction getReduction(MLIRContext *context, Location loc, prim::Combiner combiner, Type elementType) {
  OpBuilder b(context);
  Reduction reduction;
  reduction.identity = {lamina::getIdentity(b, combiner, elementType)};
  reduction.combine = [=](OpBuilder &b, ValueRange x, ValueRange y) -> SmallVector<Value> {
    return {buildCombination(b, loc, combiner, elementType, x[0], y[0])};
  };
  return reduction;
}

/// A float as another float type.
static AxisBlock castFloats(BlockBuilder &blocks, const AxisBlock &block, Type type) {
  Type from = block.getElementType();
  if (from == type)
    return block;
  bool isWider = type.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth();
  return blocks.apply(block, [&](OpBuilder &b, ValueRange x) -> Value {
    Type result = blocks.getType(type, block.axes);
    if (isWider)
      return arith::ExtFOp::create(b, blocks.loc, result, x[0]);
    return arith::TruncFOp::create(b, blocks.loc, result, x[0]);
  });
}

/// At an axis over all of the dimension, or over a chunk of a loop that carries the total: tt.scan. At any other index
/// the elements up to it are combined.
AxisBlock ProgramEmitter::readScan(Operation *op, const ScanInfo &info, Value operand, const Indices &indices) {
  Type wide = getComputeType(info.elementType), narrow = getScalarType(info.elementType);
  Reduction reduction = getReduction(op->getContext(), op->getLoc(), info.combiner, info.elementType);
  AxisBlock at = indices[info.dim], identity = blocks.constant(reduction.identity[0]);
  auto getElement = [&](const Indices &at) { return castFloats(blocks, read(operand, at), wide); };
  const Axis *axis = at.axes.size() == 1 && at.value == at.axes.front()->index ? at.axes.front() : nullptr;
  bool isWhole = axis && llvm::any_of(wholeAxes, [&](auto &whole) { return whole.second == axis; });
  auto carry = carries.find(op);
  bool isChunk = axis && carry != carries.end() && carry->second.axis == axis &&
                 carry->second.before.value == carry->second.after.value;
  auto dependsElsewhere = [&](unsigned dim, const AxisBlock &index) {
    return dim != info.dim && llvm::is_contained(index.axes, axis);
  };
  for (auto [dim, index] : llvm::enumerate(indices))
    if (dependsElsewhere(dim, index))
      isWhole = isChunk = false;
  AxisBlock result;
  if (isWhole || isChunk) {
    AxisBlock element = getElement(indices);
    if (AxisBlock mask = blocks.getMask(axis))
      element = blocks.select(mask, element, identity);
    SmallVector<AxisBlock> all(indices);
    all.push_back(element);
    if (isChunk)
      all.push_back(carry->second.before);
    element = blocks.expand(element, blocks.join(all));
    SmallVector<AxisBlock> state = widenBooleans(element);
    result = scanAlong(op->getLoc(), reduction, axis, state[0]);
    if (isChunk) {
      combineAlong(op->getLoc(), reduction, axis, state);
      auto combine = [&](const AxisBlock &x, const AxisBlock &y) {
        return blocks.apply({x, y}, [&](OpBuilder &b, ValueRange v) { return reduction.combine(b, v[0], v[1])[0]; });
      };
      AxisBlock before = carry->second.before;
      result = combine(before, result);
      carry->second.after = combine(before, state[0]);
    }
    if (result.getElementType() != wide)
      result = blocks.castInteger(result, wide);
  } else {
    Indices loops(indices);
    loops[info.dim] = {};
    loops.push_back(at);
    std::pair<unsigned, Extent> dim(info.dim, getDimExtent(operand, info.dim));
    result = reduceOver(op->getLoc(), reduction, dim, loops, [&]() -> SmallVector<AxisBlock> {
      AxisBlock upTo =
          blocks.apply({loops[info.dim], blocks.castInteger(at, blocks.indexType)}, [&](OpBuilder &b, ValueRange x) {
            return arith::CmpIOp::create(b, blocks.loc, arith::CmpIPredicate::sle, x[0], x[1]);
          });
      Indices inner(loops);
      inner.pop_back();
      return {blocks.select(upTo, getElement(inner), identity)};
    })[0];
  }
  return isa<FloatType>(wide) ? castFloats(blocks, result, narrow) : result;
}

/// An element's rank is the number of those that go before it; the result at a place is the element whose rank it is.
/// n^2 comparisons, all of them independent.
AxisBlock ProgramEmitter::readSort(Operation *op, const SortInfo &info, Value operand, const Indices &indices) {
  Location loc = op->getLoc();
  Type wide = getComputeType(info.elementType), i64 = IntegerType::get(op->getContext(), 64);
  Reduction sum = getReduction(op->getContext(), loc, prim::Combiner::sum, i64);
  auto compare = [&](arith::CmpIPredicate predicate, const AxisBlock &x, const AxisBlock &y) {
    return blocks.apply(
        {x, y}, [&](OpBuilder &b, ValueRange v) { return arith::CmpIOp::create(b, loc, predicate, v[0], v[1]); });
  };
  auto isBefore = [&](const AxisBlock &x, const AxisBlock &y) {
    return blocks.apply({x, y}, [&](OpBuilder &b, ValueRange v) { return goesBefore(b, loc, info, v[0], v[1]); });
  };
  AxisBlock always = blocks.constant(BoolAttr::get(op->getContext(), true));
  auto getElement = [&](const AxisBlock &place) {
    Indices at(indices);
    at[info.dim] = place;
    return castFloats(blocks, read(operand, at), wide);
  };
  // Loops: the given indices, the element that is ranked, the one that it is compared with.
  std::pair<unsigned, Extent> ranked(indices.size(), getDimExtent(operand, info.dim)),
      other(indices.size() + 1, ranked.second);
  Indices loops(indices);
  loops.resize(indices.size() + 1);
  return reduceOver(loc, sum, ranked, loops, [&]() -> SmallVector<AxisBlock> {
    AxisBlock place = loops[ranked.first], element = getElement(place);
    Indices inner(loops);
    inner[info.dim] = blocks.index(0);
    inner.resize(indices.size() + 2);
    AxisBlock rank = reduceOver(loc, sum, other, inner, [&]() -> SmallVector<AxisBlock> {
      AxisBlock from = inner[other.first], with = getElement(from);
      AxisBlock isEarlier = compare(arith::CmpIPredicate::slt, from, place);
      AxisBlock before = blocks.select(isEarlier, blocks.make<arith::XOrIOp>(isBefore(element, with), always),
                                       isBefore(with, element));
      return {blocks.castInteger(before, i64, false)};
    })[0];
    AxisBlock isHere = compare(arith::CmpIPredicate::eq, rank, blocks.castInteger(indices[info.dim], i64));
    return {blocks.select(isHere, blocks.castInteger(place, i64), blocks.zero(i64))};
  })[0];
}

void ProgramEmitter::findScans(Value value, ArrayRef<std::optional<unsigned>> dims,
                               llvm::MapVector<Operation *, unsigned> &scans) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  if (auto scan = matchScan(op)) {
    if (dims[scan->first.dim])
      scans.insert({op, *dims[scan->first.dim]});
    return findScans(scan->second, dims, scans);
  }
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return;
  SmallVector<std::optional<unsigned>> loops(generic.getNumLoops());
  AffineMap map = generic.getMatchingIndexingMap(generic.getDpsInitOperand(cast<OpResult>(value).getResultNumber()));
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      loops[loop.getPosition()] = dims[dim];
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    SmallVector<std::optional<unsigned>> inner;
    for (AffineExpr expr : generic.getMatchingIndexingMap(operand).getResults()) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      inner.push_back(loop ? loops[loop.getPosition()] : std::nullopt);
    }
    if (isa<RankedTensorType>(operand->get().getType()))
      findScans(operand->get(), inner, scans);
  }
}

void ProgramEmitter::storeScanned(const Output &output, Indices &indices, const Loop &loop,
                                  ArrayRef<Operation *> scans) {
  // A total for each element of the dimensions that are not scanned.
  SmallVector<AxisBlock> others;
  for (auto [dim, index] : llvm::enumerate(indices))
    if (dim != loop.dim)
      others.push_back(index);
  SmallVector<const Axis *, 3> axes = blocks.join(others);
  SmallVector<Value> carried;
  for (Operation *op : scans) {
    ScanInfo info = matchScan(op)->first;
    AxisBlock identity =
        blocks.constant(getReduction(op->getContext(), op->getLoc(), info.combiner, info.elementType).identity[0]);
    carried.push_back(blocks.expand(widenBooleans(identity)[0], axes).value);
  }
  Loop chunked = loop;
  chunked.chunk = std::max<int64_t>(chunked.chunk, 2);
  runLoops(chunked, indices, carried, [&](SmallVector<Value> &carried) {
    for (auto [op, value] : llvm::zip_equal(scans, carried)) {
      AxisBlock before{value, axes, blocks.getLevel()};
      carries[op] = {indices[loop.dim].axes.front(), before, before};
    }
    store(output, indices, read(output.value, indices));
    for (auto [op, value] : llvm::zip_equal(scans, carried)) {
      value = blocks.expand(carries[op].after, axes).value;
      carries.erase(op);
    }
  });
}
