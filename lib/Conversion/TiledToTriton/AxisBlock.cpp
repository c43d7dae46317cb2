// Blocks over named axes.
#include "lib/Conversion/TiledToTriton/AxisBlock.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lamina;

BlockBuilder::BlockBuilder(Block *entry, Location loc, Type indexType) : loc(loc), indexType(indexType) {
  scopes.push_back({nullptr, entry, nullptr, {}});
}

OpBuilder BlockBuilder::at(unsigned level) {
  if (level + 1 < scopes.size())
    return OpBuilder(scopes[level + 1].loop);
  Scope &scope = scopes.back();
  if (scope.before)
    return OpBuilder(scope.before);
  if (!scope.body->empty() && scope.body->back().hasTrait<OpTrait::IsTerminator>())
    return OpBuilder(&scope.body->back());
  return OpBuilder::atBlockEnd(scope.body);
}

Type BlockBuilder::getType(Type element, ArrayRef<const Axis *> axes) {
  if (axes.empty())
    return element;
  return RankedTensorType::get(llvm::map_to_vector(axes, [](const Axis *axis) { return axis->size; }), element);
}

// ---- blocks

/// Constants are at the start of the function, so that all code sees them.
AxisBlock BlockBuilder::constant(TypedAttr value) {
  Value &known = constants[value];
  if (!known) {
    OpBuilder start = OpBuilder::atBlockBegin(scopes.front().body);
    known = arith::ConstantOp::create(start, loc, value);
  }
  return {known, {}, 0};
}

AxisBlock BlockBuilder::zero(Type type) {
  return constant(cast<TypedAttr>(Builder(type.getContext()).getZeroAttr(type)));
}

SmallVector<const Axis *, 3> BlockBuilder::join(ArrayRef<AxisBlock> blocks) {
  SmallVector<const Axis *, 3> result;
  for (const AxisBlock &block : blocks)
    for (const Axis *axis : block.axes)
      if (!llvm::is_contained(result, axis))
        result.push_back(axis);
  llvm::sort(result, [](const Axis *a, const Axis *b) { return a->order < b->order; });
  return result;
}

AxisBlock BlockBuilder::expand(const AxisBlock &block, ArrayRef<const Axis *> axes) {
  if (ArrayRef<const Axis *>(block.axes) == axes)
    return block;
  Type type = getType(block.getElementType(), axes);
  OpBuilder b = at(block.level);
  SmallVector<const Axis *, 3> all(axes);
  if (block.axes.empty())
    return {tt::SplatOp::create(b, loc, type, block.value), all, block.level};
  Value value = block.value;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    if (llvm::is_contained(block.axes, axis))
      continue;
    auto from = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(from.getShape());
    shape.insert(shape.begin() + dim, 1);
    value = tt::ExpandDimsOp::create(b, loc, from.clone(shape), value, b.getI32IntegerAttr(dim));
  }
  if (value.getType() != type)
    value = tt::BroadcastOp::create(b, loc, type, value);
  return {value, all, block.level};
}

Value BlockBuilder::layOut(const AxisBlock &block, ArrayRef<const Axis *> axes) {
  SmallVector<const Axis *, 3> sorted(axes);
  llvm::sort(sorted, [](const Axis *a, const Axis *b) { return a->order < b->order; });
  AxisBlock full = expand(block, sorted);
  if (ArrayRef<const Axis *>(sorted) == axes)
    return full.value;
  SmallVector<int32_t> order;
  for (const Axis *axis : axes)
    order.push_back(llvm::find(sorted, axis) - sorted.begin());
  OpBuilder b = at(block.level);
  return tt::TransOp::create(b, loc, getType(block.getElementType(), axes), full.value, b.getDenseI32ArrayAttr(order));
}

Value BlockBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  OpBuilder b = at(getLevel());
  return tt::ReshapeOp::create(b, loc, type.clone(shape), value);
}

AxisBlock BlockBuilder::fromLayout(Value value, ArrayRef<const Axis *> axes) {
  value = reshape(value, llvm::map_to_vector(axes, [](const Axis *axis) { return axis->size; }));
  SmallVector<const Axis *, 3> sorted(axes);
  llvm::sort(sorted, [](const Axis *a, const Axis *b) { return a->order < b->order; });
  if (ArrayRef<const Axis *>(sorted) != axes) {
    SmallVector<int32_t> order;
    for (const Axis *axis : sorted)
      order.push_back(llvm::find(axes, axis) - axes.begin());
    OpBuilder b = at(getLevel());
    value = tt::TransOp::create(b, loc, getType(getElementTypeOrSelf(value.getType()), sorted), value,
                                b.getDenseI32ArrayAttr(order));
  }
  return {value, sorted, getLevel()};
}

AxisBlock BlockBuilder::apply(ArrayRef<AxisBlock> operands, llvm::function_ref<Value(OpBuilder &, ValueRange)> build) {
  AxisBlock result;
  result.axes = join(operands);
  SmallVector<Value> values;
  for (const AxisBlock &operand : operands) {
    values.push_back(expand(operand, result.axes).value);
    result.level = std::max(result.level, operand.level);
  }
  OpBuilder b = at(result.level);
  result.value = build(b, values);
  return result;
}

AxisBlock BlockBuilder::add(const AxisBlock &lhs, const AxisBlock &rhs) {
  if (matchPattern(lhs.value, m_Zero()))
    return rhs;
  if (matchPattern(rhs.value, m_Zero()))
    return lhs;
  return make<arith::AddIOp>(lhs, rhs);
}

AxisBlock BlockBuilder::multiply(const AxisBlock &lhs, const AxisBlock &rhs) {
  if (matchPattern(lhs.value, m_Zero()) || matchPattern(rhs.value, m_One()))
    return lhs;
  if (matchPattern(rhs.value, m_Zero()) || matchPattern(lhs.value, m_One()))
    return rhs;
  return make<arith::MulIOp>(lhs, rhs);
}

AxisBlock BlockBuilder::castInteger(const AxisBlock &block, Type type, bool isSigned) {
  unsigned from = block.getElementType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return block;
  APInt number;
  if (matchPattern(block.value, m_ConstantInt(&number)))
    return constant(IntegerAttr::get(type, isSigned ? number.sextOrTrunc(to) : number.zextOrTrunc(to)));
  return apply(block, [&](OpBuilder &b, ValueRange x) -> Value {
    Type result = getType(type, block.axes);
    if (from > to)
      return arith::TruncIOp::create(b, loc, result, x[0]);
    if (isSigned)
      return arith::ExtSIOp::create(b, loc, result, x[0]);
    return arith::ExtUIOp::create(b, loc, result, x[0]);
  });
}

AxisBlock BlockBuilder::select(const AxisBlock &condition, const AxisBlock &yes, const AxisBlock &no) {
  return apply({condition, yes, no},
               [&](OpBuilder &b, ValueRange x) { return arith::SelectOp::create(b, loc, x[0], x[1], x[2]); });
}

// ---- axes

const Axis *BlockBuilder::makeAxis(int64_t size, double order, AxisBlock offset, AxisBlock limit) {
  auto axis = std::make_unique<Axis>(Axis{size, order, nullptr, nullptr, offset ? offset.level : 0});
  OpBuilder b = at(0);
  Type i32 = b.getI32Type();
  Value range =
      tt::MakeRangeOp::create(b, loc, getType(i32, axis.get()), b.getI32IntegerAttr(0), b.getI32IntegerAttr(size));
  AxisBlock index = castInteger({range, {axis.get()}, 0}, indexType);
  if (offset)
    index = add(index, offset);
  axis->index = index.value;
  if (limit) {
    AxisBlock mask = apply({index, limit}, [&](OpBuilder &b, ValueRange x) {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x[0], x[1]);
    });
    axis->mask = mask.value;
    axis->level = std::max(axis->level, mask.level);
  }
  axes.push_back(std::move(axis));
  return axes.back().get();
}

AxisBlock BlockBuilder::getMask(ArrayRef<const Axis *> axes) {
  AxisBlock result;
  for (const Axis *axis : axes) {
    if (!axis->mask)
      continue;
    AxisBlock mask{axis->mask, {axis}, axis->level};
    result = result ? make<arith::AndIOp>(result, mask) : mask;
  }
  return result;
}

// ---- loops

scf::ForOp BlockBuilder::enterLoop(AxisBlock extent, int64_t step, ValueRange inits) {
  AxisBlock low = index(0), by = index(step);
  OpBuilder b = at(getLevel());
  auto loop = scf::ForOp::create(b, loc, low.value, extent.value, by.value, inits);
  scopes.push_back({loop, loop.getBody(), nullptr, {}});
  return loop;
}

void BlockBuilder::leaveLoop(ValueRange yields) {
  OpBuilder b = at(getLevel());
  if (!yields.empty())
    scf::YieldOp::create(b, loc, yields);
  scopes.pop_back();
}

AxisBlock BlockBuilder::remember(Key key, unsigned level, llvm::function_ref<AxisBlock()> compute) {
  auto it = scopes[level].known.find(key);
  if (it != scopes[level].known.end())
    return it->second;
  std::vector<Scope> aside;
  Operation *before = scopes[level].before;
  if (level + 1 < scopes.size()) {
    scopes[level].before = scopes[level + 1].loop;
    std::move(scopes.begin() + level + 1, scopes.end(), std::back_inserter(aside));
    scopes.resize(level + 1);
  }
  AxisBlock result = compute();
  scopes[level].before = before;
  std::move(aside.begin(), aside.end(), std::back_inserter(scopes));
  return scopes[level].known[key] = result;
}
