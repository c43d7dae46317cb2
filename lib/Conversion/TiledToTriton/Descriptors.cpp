// Loads by tensor descriptors, which a GPU's copy engine does for the operands of matrix products.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "lib/Transforms/Tiling/GridChoice.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lamina;

/// Bytes that addresses, strides, and the rows of a block must be multiples of; and the longest side of a block.
static constexpr int64_t kAlignment = 16, kLongestSide = 256;

/// The scalar that a block of consecutive indices starts at; null if the block is no such.
static Value findStart(Value index, OpBuilder &b) {
  Location loc = index.getLoc();
  if (auto cast = index.getDefiningOp<arith::ExtSIOp>())
    index = cast.getIn();
  if (auto range = index.getDefiningOp<tt::MakeRangeOp>())
    return range.getStartAttr().getInt() ? Value() : arith::ConstantIntOp::create(b, loc, 0, 32).getResult();
  auto sum = index.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return {};
  for (auto [splat, rest] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    Value scalar;
    if (auto op = splat.getDefiningOp<tt::SplatOp>()) {
      scalar = op.getSrc();
    } else if (SplatElementsAttr constant; matchPattern(splat, m_Constant(&constant))) {
      scalar = arith::ConstantOp::create(b, loc, constant.getSplatValue<TypedAttr>());
    } else {
      continue;
    }
    Value start = findStart(rest, b);
    if (!start)
      return {};
    if (start.getType() != scalar.getType())
      scalar = arith::TruncIOp::create(b, loc, start.getType(), scalar);
    return matchPattern(start, m_Zero()) ? scalar : arith::AddIOp::create(b, loc, scalar, start).getResult();
  }
  return {};
}

/// What a block of indices is compared with in its mask; null if there is no mask of that form.
static Value findLimit(const Axis *axis) {
  auto compare = axis->mask.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt || compare.getLhs() != axis->index)
    return {};
  if (auto splat = compare.getRhs().getDefiningOp<tt::SplatOp>())
    return splat.getSrc();
  return compare.getRhs();
}

/// Whether both are the same value, or constants of equal elements.
static bool isSame(Value a, Value b) {
  APInt x, y;
  return a == b || (matchPattern(a, m_ConstantInt(&x)) && matchPattern(b, m_ConstantInt(&y)) &&
                    x.getSExtValue() == y.getSExtValue());
}

/// Outside of the tensor a descriptor reads zeros. That is what the contracted dimension needs where the tensor ends
/// with it; what is read beyond the rows or columns of a tile goes to sums that are not stored.
AxisBlock ProgramEmitter::loadDescribed(unsigned argument, const Indices &indices) {
  auto element = cast<tt::PtrType>(program.getArgument(argument).getType()).getPointeeType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  if (guard || !isa<FloatType>(element) || !program.getArgAttr(argument, "tt.divisibility"))
    return {};
  Exprs sizes = getArgumentSizes(kernel, argument), strides = getStrides(argument);
  auto isAligned = [&](AffineExpr stride) { return stride.isMultipleOf(std::max<int64_t>(1, kAlignment / bytes)); };
  SmallVector<unsigned> sides;
  AxisBlock offset = blocks.index(0);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (!index.axes.empty()) {
      sides.push_back(dim);
      continue;
    }
    if (!isAligned(strides[dim]) && !matchPattern(index.value, m_Zero()))
      return {};
    offset = blocks.add(offset, blocks.multiply(blocks.castInteger(index, blocks.indexType), getSize(strides[dim])));
  }
  auto isOne = [&](unsigned dim) { return strides[dim] == getAffineConstantExpr(1, kernel.getContext()); };
  if (sides.size() != 2 || offset.level != 0 || isOne(sides[0]) == isOne(sides[1]))
    return {};
  if (isOne(sides[0]))
    std::swap(sides[0], sides[1]);
  SmallVector<const Axis *, 2> axes;
  for (unsigned dim : sides) {
    if (indices[dim].axes.size() != 1 || indices[dim].axes.front()->size > kLongestSide)
      return {};
    axes.push_back(indices[dim].axes.front());
  }
  if (!isAligned(strides[sides[0]]) || axes[0] == axes[1] || axes[1]->size * bytes < kAlignment)
    return {};

  unsigned level = blocks.getLevel();
  OpBuilder here = blocks.at(level);
  SmallVector<Value, 2> starts;
  for (auto [dim, axis] : llvm::zip(sides, axes)) {
    if (axis == describedAxis && axis->mask) {
      Value limit = findLimit(axis);
      if (!limit || indices[dim].value != axis->index || !isSame(limit, getSize(sizes[dim]).value))
        return {};
    }
    Value start = findStart(indices[dim].value, here);
    if (!start)
      return {};
    starts.push_back(start);
  }

  // Blocks of one shape have one descriptor.
  std::vector<void *> key{offset.value.getAsOpaquePointer()};
  for (int64_t number : {int64_t(sides[0]), int64_t(sides[1]), axes[0]->size, axes[1]->size})
    key.push_back(reinterpret_cast<void *>(number));
  SmallVector<int64_t, 2> shape{axes[0]->size, axes[1]->size};
  auto block = RankedTensorType::get(shape, element);
  AxisBlock descriptor =
      blocks.remember({program.getArgument(argument).getAsOpaquePointer(), key}, 0, [&]() -> AxisBlock {
        OpBuilder b = blocks.at(0);
        Value base = program.getArgument(argument);
        if (!matchPattern(offset.value, m_Zero()))
          base = tt::AddPtrOp::create(b, blocks.loc, base.getType(), base, offset.value);
        SmallVector<Value, 2> extents, steps;
        for (unsigned dim : sides) {
          extents.push_back(blocks.castInteger(getSize(sizes[dim]), b.getI32Type()).value);
          steps.push_back(blocks.castInteger(getSize(strides[dim]), b.getI64Type()).value);
        }
        OpBuilder after = blocks.at(0);
        auto type = tt::TensorDescType::get(kernel.getContext(), block);
        return {tt::MakeTensorDescriptorOp::create(after, blocks.loc, type, base, extents, steps), {}, 0};
      });
  ++numDescribed;
  Value value = tt::DescriptorLoadOp::create(here, blocks.loc, block, descriptor.value, starts);
  return blocks.fromLayout(value, axes);
}
