// Sorts: a merge sort from below of each row's indices, the elements staying where they are.
//
// Runs of 1, 2, 4, ... indices are merged in pairs into a second row of indices, and from there back. The cost is
// n log n comparisons, and two rows of indices as temporary memory.
#include "lib/Conversion/PrimToLinalg/Sort.h"
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "lib/Conversion/PrimToLinalg/ScalarBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

static constexpr StringLiteral kSortMark = "lamina.sort", kRowMark = "lamina.sort_row";

/// NaN is the largest.
Value lamina::goesBefore(OpBuilder &b, Location loc, const SortInfo &info, Value x, Value y) {
  if (isa<FloatType>(info.elementType)) {
    auto order = info.descending ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
    Value less = arith::CmpFOp::create(b, loc, order, x, y);
    Value first = info.descending ? x : y, second = info.descending ? y : x;
    Value onlyFirstIsNaN =
        arith::AndIOp::create(b, loc, arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, first, first),
                              arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, second, second));
    return arith::OrIOp::create(b, loc, less, onlyFirstIsNaN);
  }
  bool isUnsigned = info.elementType.isUnsignedInteger() || info.elementType.isInteger(1);
  auto above = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  auto below = isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(b, loc, info.descending ? above : below, x, y);
}

namespace {
/// One row: `position` is where it is, with any value at the sorted dimension.
struct RowSorter {
  Value operand;
  const SortInfo &info;
  SmallVector<Value> position;
  Value size;

  Value sort(OpBuilder &b, Location loc, Value order, Value other);

private:
  Value index(OpBuilder &b, Location loc, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value getElement(OpBuilder &b, Location loc, Value place) {
    SmallVector<Value> at = position;
    at[info.dim] = arith::IndexCastOp::create(b, loc, b.getIndexType(), place);
    return castFloat(b, loc, tensor::ExtractOp::create(b, loc, operand, at), getComputeType(info.elementType));
  }
  Value mergePair(OpBuilder &b, Location loc, Value order, Value other, Value low, Value width);
  Value mergePairs(OpBuilder &b, Location loc, Value order, Value other, Value width);
};

/// Merges the runs of `width` indices of `order` that start at `low` into `other`.
Value RowSorter::mergePair(OpBuilder &b, Location loc, Value order, Value other, Value low, Value width) {
  auto clip = [&](Value end) -> Value { return arith::MinSIOp::create(b, loc, end, size); };
  Value middle = clip(arith::AddIOp::create(b, loc, low, width)),
        high = clip(arith::AddIOp::create(b, loc, middle, width)), one = index(b, loc, 1);
  auto step = [&](OpBuilder &b, Location loc, Value place, ValueRange state) {
    // The next of each run; one that has ended gives any of its indices.
    Value left = state[0], right = state[1];
    Value last = arith::SubIOp::create(b, loc, size, one);
    Value leftPlace = tensor::ExtractOp::create(b, loc, order, Value(arith::MinSIOp::create(b, loc, left, last)));
    Value rightPlace = tensor::ExtractOp::create(b, loc, order, Value(arith::MinSIOp::create(b, loc, right, last)));
    Value hasLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, left, middle);
    Value hasRight = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, right, high);
    Value before = goesBefore(b, loc, info, getElement(b, loc, rightPlace), getElement(b, loc, leftPlace));
    Value notLeft = arith::XOrIOp::create(b, loc, hasLeft, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
    Value takeRight = arith::AndIOp::create(b, loc, hasRight, arith::OrIOp::create(b, loc, notLeft, before));
    Value taken = arith::SelectOp::create(b, loc, takeRight, rightPlace, leftPlace);
    Value nextLeft = arith::AddIOp::create(b, loc, left, one), nextRight = arith::AddIOp::create(b, loc, right, one);
    nextLeft = arith::SelectOp::create(b, loc, takeRight, left, nextLeft);
    nextRight = arith::SelectOp::create(b, loc, takeRight, nextRight, right);
    Value written = tensor::InsertOp::create(b, loc, taken, state[2], place);
    scf::YieldOp::create(b, loc, ValueRange{nextLeft, nextRight, written});
  };
  return scf::ForOp::create(b, loc, low, high, one, ValueRange{low, middle, other}, step).getResult(2);
}

/// Merges all pairs of runs of `width` indices of `order` into `other`.
Value RowSorter::mergePairs(OpBuilder &b, Location loc, Value order, Value other, Value width) {
  Value both = arith::AddIOp::create(b, loc, width, width);
  auto pair = [&](OpBuilder &b, Location loc, Value low, ValueRange state) {
    scf::YieldOp::create(b, loc, mergePair(b, loc, order, state.front(), low, width));
  };
  return scf::ForOp::create(b, loc, index(b, loc, 0), size, both, ValueRange{other}, pair).getResult(0);
}

/// `order` has the row's indices from the first to the last, `other` is as large.
Value RowSorter::sort(OpBuilder &b, Location loc, Value order, Value other) {
  // As many merges as the last index has bits, and one more if that is odd: they go to the other row and back.
  Value zero = index(b, loc, 0), one = index(b, loc, 1), two = index(b, loc, 2);
  Value last = arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, size, one), zero);
  Value zeros =
      math::CountLeadingZerosOp::create(b, loc, Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), last)));
  Value merges =
      arith::SubIOp::create(b, loc, index(b, loc, 64), arith::IndexCastOp::create(b, loc, b.getIndexType(), zeros));
  auto mergeTwice = [&](OpBuilder &b, Location loc, Value number, ValueRange state) {
    Value width = arith::ShLIOp::create(b, loc, one, number), next = arith::ShLIOp::create(b, loc, two, number);
    Value there = mergePairs(b, loc, state[0], state[1], width);
    Value back = mergePairs(b, loc, there, state[0], next);
    scf::YieldOp::create(b, loc, ValueRange{back, there});
  };
  return scf::ForOp::create(b, loc, zero, merges, two, ValueRange{order, other}, mergeTwice).getResult(0);
}
} // namespace

Value lamina::buildSort(OpBuilder &b, Location loc, Value operand, const SortInfo &info, Value init) {
  auto type = cast<RankedTensorType>(operand.getType());
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, operand);
  if (!init)
    init = tensor::EmptyOp::create(b, loc, sizes, b.getI64Type());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<int64_t> rows;
  SmallVector<Value> low, high, step;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != info.dim && type.getDimSize(dim) != 1) {
      rows.push_back(dim);
      low.push_back(zero);
      high.push_back(getValueOrCreateConstantIndexOp(b, loc, sizes[dim]));
      step.push_back(one);
    }
  auto attributes = b.getDictionaryAttr({b.getNamedAttr("dim", b.getI64IntegerAttr(info.dim)),
                                         b.getNamedAttr("descending", b.getBoolAttr(info.descending)),
                                         b.getNamedAttr("element_type", TypeAttr::get(info.elementType))});
  OpFoldResult size = sizes[info.dim];
  Value length = getValueOrCreateConstantIndexOp(b, loc, size);
  auto rowType = RankedTensorType::get({type.getDimSize(info.dim)}, b.getI64Type());
  auto sortRow = [&](OpBuilder &b, Location loc, ValueRange row, ValueRange state) -> scf::ValueVector {
    RowSorter sorter{operand, info, SmallVector<Value>(rank, zero), length};
    SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)), extents(rank, b.getIndexAttr(1)),
        strides(rank, b.getIndexAttr(1));
    for (auto [dim, at] : llvm::zip_equal(rows, row)) {
      sorter.position[dim] = at;
      offsets[dim] = at;
    }
    extents[info.dim] = size;
    AffineMap map = AffineMap::getMultiDimIdentityMap(1, b.getContext());
    auto makeEmpty = [&]() -> Value { return tensor::EmptyOp::create(b, loc, size, b.getI64Type()); };
    auto indices = linalg::GenericOp::create(
        b, loc, rowType, ValueRange(), makeEmpty(), map, utils::IteratorType::parallel,
        [](OpBuilder &b, Location loc, ValueRange) {
          Value index = linalg::IndexOp::create(b, loc, 0);
          linalg::YieldOp::create(b, loc, Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), index)));
        });
    Value order = sorter.sort(b, loc, indices.getResult(0), makeEmpty());
    order.getDefiningOp()->setAttr(kRowMark, attributes);
    return {tensor::InsertSliceOp::create(b, loc, order, state.front(), offsets, extents, strides)};
  };
  scf::LoopNest nest = scf::buildLoopNest(b, loc, low, high, step, init, sortRow);
  if (!nest.loops.empty())
    nest.loops.front()->setAttr(kSortMark, attributes);
  return nest.results.front();
}

static std::optional<std::pair<SortInfo, Value>> match(Operation *op, StringRef mark) {
  auto attrs = op->getAttrOfType<DictionaryAttr>(mark);
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!attrs || !loop)
    return std::nullopt;
  SortInfo info{cast<IntegerAttr>(attrs.get("dim")).getInt(), cast<BoolAttr>(attrs.get("descending")).getValue(),
                cast<TypeAttr>(attrs.get("element_type")).getValue()};
  Value operand;
  loop.walk([&](tensor::ExtractOp extract) {
    if (loop.isDefinedOutsideOfLoop(extract.getTensor()))
      operand = extract.getTensor();
  });
  if (!operand)
    return std::nullopt;
  return std::make_pair(info, operand);
}

std::optional<std::pair<SortInfo, Value>> lamina::matchSort(Operation *op) { return match(op, kSortMark); }
std::optional<std::pair<SortInfo, Value>> lamina::matchRowSort(Operation *op) { return match(op, kRowMark); }

/// The elements are read at their indices.
void lamina::emitSort(Emitter &emitter, prim::SortOp op) {
  Location loc = op.getLoc();
  Value operand = emitter.getTensor(op.getOperand());
  Type elementType = op.getOperand().getType().getElementType();
  SortInfo info{static_cast<int64_t>(op.getDim()), op.getDescending(), elementType};
  emitter.define(op.getIndices(), buildSort(emitter.builder, loc, operand, info));
  if (op.getValues().use_empty())
    return;
  Exprs sizes(emitter.getSizes(op.getOperand()));
  Body body(emitter, loc, sizes);
  Access access = body.getIdentity();
  Value place = body.getScalar(op.getIndices(), access);
  access[info.dim] = Value(arith::IndexCastOp::create(body.builder, loc, body.builder.getIndexType(), place));
  Value scalar = body.getScalar(op.getOperand(), access);
  body.addOut(emitter.makeEmpty(loc, sizes, scalar.getType()),
              AffineMap::getMultiDimIdentityMap(sizes.size(), emitter.getContext()));
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  emitter.define(op.getValues(), body.finish(iterators, scalar).getResult(0));
}
