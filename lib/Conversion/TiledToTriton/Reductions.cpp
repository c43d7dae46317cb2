// Reductions of a linalg.generic: partial states in blocks, combined by tt.reduce.
#include "lib/Conversion/TiledToTriton/ProgramEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lamina;

static TypedAttr getIdentity(Operation *op) {
  Type type = op->getResult(0).getType();
  Builder b(op->getContext());
  auto infinity = [&](bool isNegative) -> TypedAttr {
    return b.getFloatAttr(type, APFloat::getInf(cast<FloatType>(type).getFloatSemantics(), isNegative));
  };
  auto integer = [&](APInt value) -> TypedAttr { return b.getIntegerAttr(type, value); };
  unsigned width = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  return llvm::TypeSwitch<Operation *, TypedAttr>(op)
      .Case<arith::AddFOp>([&](auto) { return b.getFloatAttr(type, 0.0); })
      .Case<arith::MulFOp>([&](auto) { return b.getFloatAttr(type, 1.0); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) { return infinity(true); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) { return infinity(false); })
      .Case<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(
          [&](auto) { return integer(APInt::getZero(width)); })
      .Case<arith::MulIOp>([&](auto) { return integer(APInt(width, 1)); })
      .Case<arith::AndIOp, arith::MinUIOp>([&](auto) { return integer(APInt::getAllOnes(width)); })
      .Case<arith::MaxSIOp>([&](auto) { return integer(APInt::getSignedMinValue(width)); })
      .Case<arith::MinSIOp>([&](auto) { return integer(APInt::getSignedMaxValue(width)); })
      .Default([](auto) { return TypedAttr(); });
}

/// The best element and the least index of one. NaN is better than any number; a state that has no element yet has the
/// highest index.
static std::optional<Reduction> matchArgReduction(linalg::GenericOp op) {
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  auto bestSelect = yield.getOperand(0).getDefiningOp<arith::SelectOp>(),
       indexSelect = yield.getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!bestSelect || !indexSelect)
    return std::nullopt;
  Value best = op.getRegionOutputArgs()[0], element = bestSelect.getTrueValue();
  arith::CmpFOp onFloat;
  arith::CmpIOp onInteger;
  for (Operation *user : best.getUsers()) {
    auto f = dyn_cast<arith::CmpFOp>(user);
    if (f && f.getRhs() == best && f.getLhs() == element)
      onFloat = f;
    auto i = dyn_cast<arith::CmpIOp>(user);
    if (i && i.getRhs() == best && i.getLhs() == element)
      onInteger = i;
  }
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  auto identity = fill ? fill.getInputs().front().getDefiningOp<arith::ConstantOp>() : nullptr;
  if ((!onFloat && !onInteger) || !identity)
    return std::nullopt;
  Reduction reduction;
  reduction.element = {element, indexSelect.getTrueValue()};
  auto indexType = cast<IntegerType>(reduction.element[1].getType());
  reduction.identity = {cast<TypedAttr>(identity.getValue()),
                        IntegerAttr::get(indexType, APInt::getSignedMaxValue(indexType.getWidth()))};
  Location loc = op.getLoc();
  reduction.combine = [=](OpBuilder &b, ValueRange x, ValueRange y) mutable -> SmallVector<Value> {
    Value better, equal;
    if (onFloat) {
      auto compare = [&](arith::CmpFPredicate predicate, Value l, Value r) -> Value {
        return arith::CmpFOp::create(b, loc, predicate, l, r);
      };
      Value xNaN = compare(arith::CmpFPredicate::UNO, x[0], x[0]),
            yNaN = compare(arith::CmpFPredicate::UNO, y[0], y[0]);
      Value xNumber = compare(arith::CmpFPredicate::ORD, x[0], x[0]);
      better = arith::OrIOp::create(b, loc, compare(onFloat.getPredicate(), y[0], x[0]),
                                    arith::AndIOp::create(b, loc, yNaN, xNumber));
      equal = arith::OrIOp::create(b, loc, compare(arith::CmpFPredicate::OEQ, x[0], y[0]),
                                   arith::AndIOp::create(b, loc, xNaN, yNaN));
    } else {
      better = arith::CmpIOp::create(b, loc, onInteger.getPredicate(), y[0], x[0]);
      equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x[0], y[0]);
    }
    Value earlier = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, y[1], x[1]);
    Value take = arith::OrIOp::create(b, loc, better, arith::AndIOp::create(b, loc, equal, earlier));
    return {arith::SelectOp::create(b, loc, take, y[0], x[0]), arith::SelectOp::create(b, loc, take, y[1], x[1])};
  };
  return reduction;
}

std::optional<Reduction> lamina::matchReduction(linalg::GenericOp op, unsigned result) {
  if (op->hasAttr("lamina.arg_reduce")) {
    std::optional<Reduction> reduction = matchArgReduction(op);
    if (reduction)
      reduction->result = result;
    return reduction;
  }
  Value state = op.getRegionOutputArgs()[result];
  Operation *combiner = op.getBody()->getTerminator()->getOperand(result).getDefiningOp();
  if (!combiner || combiner->getNumOperands() != 2 || !state.hasOneUse() || *state.getUsers().begin() != combiner)
    return std::nullopt;
  TypedAttr identity = getIdentity(combiner);
  if (!identity)
    return std::nullopt;
  Reduction reduction;
  reduction.element = {combiner->getOperand(combiner->getOperand(0) == state ? 1 : 0)};
  reduction.identity = {identity};
  reduction.combine = [combiner](OpBuilder &b, ValueRange x, ValueRange y) -> SmallVector<Value> {
    OperationState made(combiner->getLoc(), combiner->getName(), {x[0], y[0]}, x[0].getType(), combiner->getAttrs());
    return {b.create(made)->getResult(0)};
  };
  return reduction;
}

AxisBlock ProgramEmitter::reduce(linalg::GenericOp op, unsigned result, Indices loops) {
  Type type = getElementTypeOrSelf(op.getResult(result).getType());
  std::optional<Reduction> reduction = matchReduction(op, result);
  if (!reduction)
    return fail(op, "is a reduction of a form that is not known", type);
  SmallVector<std::pair<unsigned, Extent>> dims;
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    if (!loops[loop])
      dims.push_back({loop, getLoopExtent(op, loop)});
  auto getState = [&] {
    return llvm::map_to_vector(reduction->element, [&](Value value) { return getBodyValue(op, value, loops); });
  };
  SmallVector<AxisBlock> state = reduceOver(op.getLoc(), *reduction, dims, loops, getState, op);
  AxisBlock total = state[reduction->result];
  if (state.size() != 1)
    return total;
  // What the reduction starts from; the sum of zeros of one sign needs it too.
  AxisBlock init = readOperand(op, *op.getDpsInitOperand(result), loops);
  if (init.value == blocks.constant(reduction->identity[0]).value && !isa<FloatType>(type))
    return total;
  return blocks.apply({init, total}, [&](OpBuilder &b, ValueRange x) { return reduction->combine(b, x[0], x[1])[0]; });
}

/// Booleans are combined as i32.
SmallVector<AxisBlock> ProgramEmitter::widenBooleans(ArrayRef<AxisBlock> state) {
  Type i1 = IntegerType::get(kernel.getContext(), 1), i32 = IntegerType::get(kernel.getContext(), 32);
  return llvm::map_to_vector(state, [&](const AxisBlock &block) {
    return block.getElementType() == i1 ? blocks.castInteger(block, i32, false) : block;
  });
}

/// The region of a tt.reduce or tt.scan.
template <typename Return>
static void buildCombineRegion(OpBuilder &b, Location loc, Region &region, const Reduction &reduction,
                               ArrayRef<Type> elements) {
  SmallVector<Type> arguments(elements);
  arguments.append(elements.begin(), elements.end());
  Block *body = b.createBlock(&region, {}, arguments, SmallVector<Location>(arguments.size(), loc));
  ValueRange all(body->getArguments());
  Return::create(b, loc, reduction.combine(b, all.take_front(elements.size()), all.drop_front(elements.size())));
}

void ProgramEmitter::combineAlong(Location loc, const Reduction &reduction, const Axis *axis,
                                  SmallVector<AxisBlock> &state) {
  SmallVector<const Axis *, 3> left(state.front().axes);
  unsigned position = llvm::find(left, axis) - left.begin();
  left.erase(left.begin() + position);
  SmallVector<Value> sources;
  SmallVector<Type> types, elements;
  unsigned level = 0;
  for (const AxisBlock &block : state) {
    sources.push_back(block.value);
    elements.push_back(block.getElementType());
    types.push_back(blocks.getType(elements.back(), left));
    level = std::max(level, block.level);
  }
  OpBuilder b = blocks.at(level);
  auto made = tt::ReduceOp::create(b, loc, types, sources, position);
  buildCombineRegion<tt::ReduceReturnOp>(b, loc, made.getCombineOp(), reduction, elements);
  for (auto [block, value] : llvm::zip_equal(state, made.getResults()))
    block = {value, left, level};
}

AxisBlock ProgramEmitter::scanAlong(Location loc, const Reduction &reduction, const Axis *axis, AxisBlock block) {
  unsigned position = llvm::find(block.axes, axis) - block.axes.begin();
  OpBuilder b = blocks.at(block.level);
  auto made = tt::ScanOp::create(b, loc, block.value.getType(), block.value, position, false);
  buildCombineRegion<tt::ScanReturnOp>(b, loc, made.getCombineOp(), reduction, block.getElementType());
  return {made->getResult(0), block.axes, block.level};
}

SmallVector<AxisBlock> ProgramEmitter::reduceOver(Location loc, const Reduction &reduction,
                                                  ArrayRef<std::pair<unsigned, Extent>> dims, Indices &loops,
                                                  llvm::function_ref<SmallVector<AxisBlock>()> getState,
                                                  linalg::GenericOp op) {
  SmallVector<AxisBlock> given;
  for (const AxisBlock &loop : loops)
    if (loop)
      given.push_back(loop);
  SmallVector<const Axis *, 3> kept = blocks.join(given);
  SmallVector<Loop> chunked;
  if (AxisBlock index = op ? getOnlineIndex(op, dims, kept) : AxisBlock())
    loops[dims.front().first] = index;
  else
    chunked = choose(dims, kept, loops);

  // The state of the elements at the present indices: the identity where they are outside their extents.
  auto getElement = [&](SmallVector<const Axis *, 3> &axes) {
    SmallVector<AxisBlock> state, indices;
    llvm::append_range(state, getState());
    for (auto [loop, extent] : dims)
      indices.push_back(loops[loop]);
    SmallVector<const Axis *, 3> reduced = blocks.join(indices);
    AxisBlock mask = blocks.getMask(reduced);
    for (auto [block, identity] : llvm::zip_equal(state, reduction.identity))
      if (mask)
        block = blocks.select(mask, block, blocks.constant(identity));
    if (axes.empty()) {
      llvm::append_range(indices, state);
      axes = blocks.join(indices);
    }
    for (AxisBlock &block : state)
      block = blocks.expand(block, axes);
    return state;
  };

  SmallVector<const Axis *, 3> axes;
  SmallVector<AxisBlock> state;
  if (chunked.empty()) {
    state = getElement(axes);
  } else {
    // One state for each element of a chunk is carried; axes of chunks come last.
    SmallVector<AxisBlock> outer(given);
    for (auto [loop, extent] : dims)
      if (loops[loop])
        outer.push_back(loops[loop]);
    SmallVector<const Axis *, 3> outerAxes = blocks.join(outer);
    SmallVector<int64_t> shape;
    for (const Axis *axis : outerAxes)
      shape.push_back(axis->size);
    for (const Loop &loop : chunked)
      if (loop.chunk != 1)
        shape.push_back(loop.chunk);
    SmallVector<Value> carried;
    for (TypedAttr identity : reduction.identity) {
      Value start = blocks.constant(identity).value;
      if (!shape.empty())
        start =
            blocks
                .constant(SplatElementsAttr::get(RankedTensorType::get(shape, identity.getType()), Attribute(identity)))
                .value;
      carried.push_back(start);
    }
    runLoops(chunked, loops, carried, [&](SmallVector<Value> &carried) {
      SmallVector<AxisBlock> inner(outer);
      for (const Loop &loop : chunked)
        inner.push_back(loops[loop.dim]);
      axes = blocks.join(inner);
      if (axes.empty() && !shape.empty())
        llvm_unreachable("axes of chunks were made");
      SmallVector<Value> values;
      for (const AxisBlock &block : getElement(axes))
        values.push_back(blocks.expand(block, axes).value);
      OpBuilder b = blocks.at(blocks.getLevel());
      carried = reduction.combine(b, carried, values);
    });
    for (Value value : carried)
      state.push_back({value, axes, blocks.getLevel()});
  }

  SmallVector<Type> types = llvm::map_to_vector(state, [](const AxisBlock &block) { return block.getElementType(); });
  state = widenBooleans(state);
  for (const Axis *axis : axes)
    if (!llvm::is_contained(kept, axis))
      combineAlong(loc, reduction, axis, state);
  for (auto [block, type] : llvm::zip_equal(state, types))
    if (block.getElementType() != type)
      block = blocks.castInteger(block, type);
  return state;
}
