// Emits the loops of a LoopNest: parallel loops outside, then the vector loop and the reductions.
//
// Along a reduction the nest is   parallel..., (start) reductions..., vector loop (finish: combine the lanes);
// across it, it is                parallel..., vector loop, (start) reductions... (finish);
// with transposed reads           parallel..., blocks of the vector loop, blocks of the block loop, one block.
#include "lib/Transforms/Vectorize/NestEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lamina;

NestEmitter::NestEmitter(OpBuilder &builder, LoopNest &nest) : b(builder), nest(nest), loc(nest.op.getLoc()) {
  reducesLanes = nest.vectorLoop >= 0 && nest.loops[nest.vectorLoop].reduction;
  auto append = [&](bool reduction) {
    for (unsigned loop = 0; loop < nest.loops.size(); ++loop)
      if (int(loop) != nest.vectorLoop && int(loop) != nest.blockLoop && nest.loops[loop].reduction == reduction)
        order.push_back(loop);
  };
  append(false);
  if (nest.vectorLoop >= 0 && !reducesLanes)
    order.push_back(nest.vectorLoop);
  unsigned parallel = order.size();
  append(true);
  if (reducesLanes)
    order.push_back(nest.vectorLoop);
  for (auto [index, output] : llvm::enumerate(nest.outputs))
    if (output.combiner) {
      reductions.push_back(index);
      combiners.insert(output.combiner);
    }
  if (!reductions.empty())
    accumulatorLevel = parallel;
}

void NestEmitter::emit() {
  Scope scope{BodyCloner(b, loc, nest.bodyMemories), {}, {}, {}};
  unsigned numDims = nest.sizes.size();
  scope.cloner.dims.resize(numDims);
  scope.entered.assign(numDims, true);
  for (const Loop &loop : nest.loops)
    scope.entered[loop.dim] = false;
  for (unsigned dim = 0; dim < numDims; ++dim)
    if (scope.entered[dim])
      scope.cloner.dims[dim] = LaneValue::uniform(constantIndex(b, loc, 0));
  for (const Access &access : nest.accesses)
    scope.addresses.push_back(access.start);
  scope.loaded.assign(nest.accesses.size(), false);
  for (OpOperand &operand : nest.op->getOpOperands())
    if (!isa<MemRefType>(operand.get().getType()))
      scope.cloner.map(nest.op.getMatchingBlockArgument(&operand), LaneValue::uniform(operand.get()));
  if (!order.empty()) {
    loadReady(scope, false);
    scope.cloner.cloneReady(*nest.op.getBlock(), combiners, false);
  }
  emitLevel(0, scope, {});
}

LaneValue NestEmitter::addressOf(Scope &scope, unsigned index) {
  const Access &access = nest.accesses[index];
  BodyCloner &cloner = scope.cloner;
  if (!access.linear) {
    LaneValue address = LaneValue::uniform(access.memory.offset);
    for (auto [expr, stride] : llvm::zip(access.map.getResults(), access.memory.strides))
      address = cloner.add(
          address, cloner.mul(cloner.affine(expr, cloner.dims, {}), LaneValue::uniform(toValue(b, loc, stride))));
    return address;
  }
  LaneValue address = LaneValue::uniform(scope.addresses[index]);
  if (cloner.context.lanes == 1)
    return address;
  OpFoldResult stride = access.strides[nest.loops[nest.vectorLoop].dim];
  if (std::optional<int64_t> step = constantOf(stride))
    return LaneValue::linear(address.base, *step);
  LaneValue lane = LaneValue::linear(constantIndex(b, loc, 0), 1);
  return cloner.add(address, cloner.mul(lane, LaneValue::uniform(cast<Value>(stride))));
}

/// Loads the operands whose loops are all entered. What a result held before is read only where its body uses it.
void NestEmitter::loadReady(Scope &scope, bool innermost) {
  for (auto [index, access] : llvm::enumerate(nest.accesses)) {
    OpOperand &operand = nest.op->getOpOperand(access.operand);
    BlockArgument argument = nest.op.getMatchingBlockArgument(&operand);
    bool isResult = nest.op.isDpsInit(&operand);
    if (scope.loaded[index] || argument.use_empty())
      continue;
    if (isResult && (!innermost || llvm::any_of(nest.outputs, [&, i = index](const Output &output) {
          return output.access == i && output.combiner;
        })))
      continue;
    bool ready = true;
    for (const Loop &loop : nest.loops)
      ready &= scope.entered[loop.dim] || !access.dependsOn(loop.dim);
    if (!ready)
      continue;
    scope.cloner.map(argument, access.memory.load(b, loc, scope.cloner.context, addressOf(scope, index)));
    scope.loaded[index] = true;
  }
}

void NestEmitter::enter(Scope &scope, unsigned dim, LaneValue value, bool innermost) {
  scope.cloner.dims[dim] = value;
  scope.entered[dim] = true;
  for (auto [index, access] : llvm::enumerate(nest.accesses))
    if (access.linear && access.dependsOn(dim))
      scope.addresses[index] =
          addIndex(b, loc, scope.addresses[index], mulIndex(b, loc, value.base, toValue(b, loc, access.strides[dim])));
  if (innermost)
    return;
  loadReady(scope, false);
  scope.cloner.cloneReady(*nest.op.getBlock(), combiners, false);
}

/// What the order in which lanes are combined leaves open. Which lane holds which term is our choice, so a sum may be
/// reassociated; which of 0 and -0 an extremum over both gives depends on the order, here as in eager, and without it
/// x86 needs half the instructions.
static arith::FastMathFlags freedomOf(vector::CombiningKind kind) {
  using Kind = vector::CombiningKind;
  if (kind == Kind::ADD || kind == Kind::MUL)
    return arith::FastMathFlags::reassoc;
  return kind == Kind::MAXIMUMF || kind == Kind::MINIMUMF ? arith::FastMathFlags::nsz : arith::FastMathFlags::none;
}

Value NestEmitter::combine(const Output &output, Value lhs, Value rhs) {
  Operation *copy = b.clone(*output.combiner);
  copy->setOperands({lhs, rhs});
  copy->getResult(0).setType(lhs.getType());
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(copy))
    copy->setAttr("fastmath", arith::FastMathFlagsAttr::get(b.getContext(), freedomOf(output.kind)));
  return copy->getResult(0);
}

/// The value that changes nothing: combiner(x, identity) = x.
static TypedAttr identityOf(OpBuilder &b, vector::CombiningKind kind, Type type) {
  using Kind = vector::CombiningKind;
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    switch (kind) {
    case Kind::ADD:
      return b.getFloatAttr(type, APFloat::getZero(semantics, /*Negative=*/true));
    case Kind::MUL:
      return b.getFloatAttr(type, 1.0);
    case Kind::MAXIMUMF:
      return b.getFloatAttr(type, APFloat::getInf(semantics, /*Negative=*/true));
    case Kind::MINIMUMF:
      return b.getFloatAttr(type, APFloat::getInf(semantics));
    default: // maxnumf and minnumf return the other operand
      return b.getFloatAttr(type, APFloat::getNaN(semantics));
    }
  }
  unsigned width = type.getIntOrFloatBitWidth();
  switch (kind) {
  case Kind::MUL:
    return b.getIntegerAttr(type, 1);
  case Kind::MAXSI:
    return b.getIntegerAttr(type, APInt::getSignedMinValue(width));
  case Kind::MINSI:
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(width));
  case Kind::MINUI:
  case Kind::AND:
    return b.getIntegerAttr(type, APInt::getAllOnes(width));
  default: // add, or, xor, maxui
    return b.getIntegerAttr(type, 0);
  }
}

NestEmitter::Values NestEmitter::startAccumulators(Scope &scope) {
  Values values;
  for (unsigned index : reductions) {
    const Output &output = nest.outputs[index];
    const Access &access = nest.accesses[output.access];
    if (!reducesLanes) {
      LaneValue held = access.memory.load(b, loc, scope.cloner.context, addressOf(scope, output.access));
      values.push_back(asVector(b, loc, scope.cloner.context, held));
      continue;
    }
    TypedAttr identity = identityOf(b, output.kind, access.memory.element);
    auto type = VectorType::get({nest.lanes}, access.memory.element);
    values.push_back(arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, Attribute(identity))));
  }
  return values;
}

void NestEmitter::finishAccumulators(Scope &scope, Values accumulators) {
  for (auto [index, value] : llvm::zip(reductions, accumulators)) {
    const Output &output = nest.outputs[index];
    const Access &access = nest.accesses[output.access];
    LaneValue address = addressOf(scope, output.access);
    LaneValue result = isa<VectorType>(value.getType()) ? LaneValue::lanes(value) : LaneValue::uniform(value);
    if (reducesLanes) {
      auto flags = isa<FloatType>(access.memory.element) ? freedomOf(output.kind) : arith::FastMathFlags::none;
      LaneValue held = access.memory.load(b, loc, scope.cloner.context, address);
      result = LaneValue::uniform(vector::ReductionOp::create(b, loc, output.kind, value, held.base, flags));
    }
    access.memory.store(b, loc, scope.cloner.context, address, result);
  }
}

NestEmitter::Values NestEmitter::narrowAccumulators(Values accumulators, int64_t lanes) {
  for (auto [index, value] : llvm::zip(reductions, accumulators))
    while (cast<VectorType>(value.getType()).getNumElements() > lanes) {
      int64_t half = cast<VectorType>(value.getType()).getNumElements() / 2;
      auto part = [&](int64_t first) -> Value {
        return vector::ExtractStridedSliceOp::create(b, loc, value, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{half},
                                                     ArrayRef<int64_t>{1});
      };
      Value low = part(0), high = part(half);
      value = combine(nest.outputs[index], low, high);
    }
  return accumulators;
}

NestEmitter::Values NestEmitter::emitLevel(unsigned level, Scope &scope, Values accumulators) {
  bool starts = level == accumulatorLevel;
  if (starts)
    accumulators = startAccumulators(scope);
  if (level == order.size())
    accumulators = emitInnermost(scope, accumulators);
  else if (int(order[level]) == nest.vectorLoop && nest.blockLoop >= 0)
    emitBlocks(scope);
  else if (int(order[level]) == nest.vectorLoop)
    accumulators = emitVectorLoop(level, scope, accumulators);
  else
    accumulators = emitLoop(level, scope, accumulators);
  if (!starts)
    return accumulators;
  finishAccumulators(scope, accumulators);
  return {};
}

NestEmitter::Values NestEmitter::forLoop(Value begin, Value end, int64_t step, Values accumulators,
                                         function_ref<Values(Value, Values)> body) {
  auto loop = scf::ForOp::create(b, loc, begin, end, constantIndex(b, loc, step), accumulators,
                                 [&](OpBuilder &, Location, Value iv, ValueRange arguments) {
                                   Values results = body(iv, llvm::to_vector(arguments));
                                   scf::YieldOp::create(b, loc, results);
                                 });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

/// Terms of a sum that are added one after the other.
static constexpr int64_t kCascade = 64;

NestEmitter::Values NestEmitter::cascadeLoop(unsigned level, Value end, int64_t step, Values accumulators,
                                             function_ref<Values(Value, Values)> body) {
  Value begin = constantIndex(b, loc, 0);
  auto inFloats = [&](unsigned index) {
    const Output &output = nest.outputs[index];
    return output.kind == vector::CombiningKind::ADD && isa<FloatType>(nest.accesses[output.access].memory.element);
  };
  std::optional<int64_t> last = getConstantIntValue(end);
  // Only the innermost loop carries accumulators that have begun.
  if (accumulators.empty() || level + 1 != order.size() || llvm::none_of(reductions, inFloats) ||
      (last && *last <= 2 * kCascade * step))
    return forLoop(begin, end, step, accumulators, body);
  return forLoop(begin, end, kCascade * step, accumulators, [&](Value block, Values outer) {
    Value limit = arith::AddIOp::create(b, loc, block, constantIndex(b, loc, kCascade * step));
    if (!last || *last % (kCascade * step))
      limit = arith::MinSIOp::create(b, loc, limit, end);
    Values fresh;
    for (auto [index, value] : llvm::zip(reductions, outer)) {
      const Output &output = nest.outputs[index];
      TypedAttr identity = identityOf(b, output.kind, nest.accesses[output.access].memory.element);
      if (auto vector = dyn_cast<VectorType>(value.getType()))
        identity = DenseElementsAttr::get(vector, Attribute(identity));
      fresh.push_back(arith::ConstantOp::create(b, loc, identity));
    }
    Values sums = forLoop(block, limit, step, fresh, body);
    for (auto [i, index] : llvm::enumerate(reductions))
      sums[i] = combine(nest.outputs[index], outer[i], sums[i]);
    return sums;
  });
}

NestEmitter::Values NestEmitter::emitLoop(unsigned level, Scope &scope, Values accumulators) {
  const Loop &loop = nest.loops[order[level]];
  auto body = [&](Value iv, Values inner) {
    Scope nested = scope;
    enter(nested, loop.dim, LaneValue::uniform(iv), level + 1 == order.size());
    return emitLevel(level + 1, nested, inner);
  };
  return cascadeLoop(level, toValue(b, loc, loop.size), 1, accumulators, body);
}

NestEmitter::Values NestEmitter::emitVectorLoop(unsigned level, Scope &scope, Values accumulators) {
  const Loop &loop = nest.loops[order[level]];
  auto step = [&](Value iv, int64_t lanes, Value mask, Values inner) {
    Scope nested = scope;
    nested.cloner.context.lanes = lanes;
    nested.cloner.context.mask = mask;
    enter(nested, loop.dim, LaneValue::linear(iv, lanes == 1 ? 0 : 1), level + 1 == order.size());
    return emitLevel(level + 1, nested, inner);
  };
  auto fullSteps = [&](Value end) {
    accumulators = cascadeLoop(level, end, nest.lanes, accumulators,
                               [&](Value iv, Values inner) { return step(iv, nest.lanes, nullptr, inner); });
  };
  auto maskType = [&](int64_t lanes) { return VectorType::get({lanes}, b.getI1Type()); };

  if (std::optional<int64_t> size = constantOf(loop.size)) {
    int64_t remainder = *size % nest.lanes, end = *size - remainder;
    if (end == nest.lanes)
      accumulators = step(constantIndex(b, loc, 0), nest.lanes, nullptr, accumulators);
    else if (end > 0)
      fullSteps(constantIndex(b, loc, end));
    if (remainder == 0)
      return accumulators;
    // The remainder takes the smallest vector that holds it, unless a loop around this one carries full vectors.
    int64_t lanes = nest.lanes;
    if (!reducesLanes)
      lanes = llvm::PowerOf2Ceil(remainder);
    else if (level == accumulatorLevel) {
      lanes = std::max<int64_t>(2, llvm::PowerOf2Ceil(remainder));
      accumulators = narrowAccumulators(accumulators, lanes);
    }
    Value mask;
    if (lanes != remainder)
      mask = vector::ConstantMaskOp::create(b, loc, maskType(lanes), ArrayRef<int64_t>{remainder});
    return step(constantIndex(b, loc, end), lanes, mask, accumulators);
  }

  Value size = toValue(b, loc, loop.size);
  Value remainder = arith::AndIOp::create(b, loc, size, constantIndex(b, loc, nest.lanes - 1)); // a power of two
  Value end = arith::SubIOp::create(b, loc, size, remainder);
  fullSteps(end);
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, remainder, constantIndex(b, loc, 0));
  auto masked = [&](OpBuilder &, Location) {
    Value mask = vector::CreateMaskOp::create(b, loc, maskType(nest.lanes), ValueRange{remainder});
    scf::YieldOp::create(b, loc, step(end, nest.lanes, mask, accumulators));
  };
  if (accumulators.empty()) {
    scf::IfOp::create(b, loc, any, masked);
    return {};
  }
  auto branch = scf::IfOp::create(b, loc, any, masked,
                                  [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, accumulators); });
  return llvm::to_vector(ValueRange(branch.getResults()));
}

/// A buffer for one block, at the entry of the function: in a loop it would grow the stack in each iteration.
Value NestEmitter::blockBuffer(Type element) {
  OpBuilder::InsertionGuard guard(b);
  if (auto function = nest.op->getParentOfType<FunctionOpInterface>())
    b.setInsertionPointToStart(&function.getFunctionBody().front());
  auto type = MemRefType::get({nest.lanes * nest.lanes}, element);
  return memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64));
}

/// Transposes a square of vectors: of rows i and i + d, swaps the columns that differ in bit d of their number, for
/// each d.
static void transposeSquare(OpBuilder &b, Location loc, MutableArrayRef<Value> rows) {
  int64_t side = rows.size();
  for (int64_t d = side / 2; d > 0; d /= 2) {
    SmallVector<int64_t> low(side), high(side);
    for (int64_t k = 0; k < side; ++k) {
      low[k] = k & d ? side + k - d : k;
      high[k] = k & d ? side + k : k + d;
    }
    for (int64_t i = 0; i < side; ++i) {
      if (i & d)
        continue;
      Value first = rows[i], second = rows[i + d];
      rows[i] = vector::ShuffleOp::create(b, loc, first, second, low);
      rows[i + d] = vector::ShuffleOp::create(b, loc, first, second, high);
    }
  }
}

void NestEmitter::emitBlocks(Scope &scope) {
  const Loop &along = nest.loops[nest.vectorLoop], &across = nest.loops[nest.blockLoop];
  int64_t side = nest.lanes;
  Value zero = constantIndex(b, loc, 0), full = constantIndex(b, loc, side);
  // The part of a block that exists: its extent, and a mask unless blocks divide the loop.
  auto partOf = [&](const Loop &loop, Value start) -> std::pair<Value, Value> {
    if (std::optional<int64_t> size = constantOf(loop.size); size && *size % side == 0)
      return {full, Value()};
    Value rest = arith::SubIOp::create(b, loc, toValue(b, loc, loop.size), start);
    Value extent = arith::MinSIOp::create(b, loc, rest, full);
    auto type = VectorType::get({side}, b.getI1Type());
    return {extent, vector::CreateMaskOp::create(b, loc, type, ValueRange{extent})};
  };
  SmallVector<FlatMemory> buffers;
  for (unsigned index : nest.transposed) {
    FlatMemory buffer;
    buffer.flat = blockBuffer(cast<MemRefType>(nest.accesses[index].memory.flat.getType()).getElementType());
    buffer.element = nest.accesses[index].memory.element;
    buffers.push_back(buffer);
  }

  auto block = [&](Value alongStart, Value acrossStart) {
    auto [alongExtent, alongMask] = partOf(along, alongStart);
    auto [acrossExtent, acrossMask] = partOf(across, acrossStart);
    for (auto [index, buffer] : llvm::zip(nest.transposed, buffers)) {
      const Access &access = nest.accesses[index];
      FlatMemory bytes = access.memory; // the elements as they are stored
      bytes.element = cast<MemRefType>(bytes.flat.getType()).getElementType();
      FlatMemory squares = buffer;
      squares.element = bytes.element;
      SmallVector<Value> rows;
      LaneContext context{side, acrossMask, false};
      Value stride = toValue(b, loc, access.strides[along.dim]);
      Value start = addIndex(b, loc, scope.addresses[index], acrossStart);
      Value last = alongMask ? addIndex(b, loc, alongExtent, constantIndex(b, loc, -1)) : Value();
      for (int64_t row = 0; row < side; ++row) {
        Value offset = constantIndex(b, loc, row);
        if (alongMask) // rows behind the last one are read from the last one
          offset = arith::MinSIOp::create(b, loc, offset, last);
        Value position = addIndex(b, loc, alongStart, offset);
        Value address = addIndex(b, loc, start, mulIndex(b, loc, position, stride));
        rows.push_back(bytes.load(b, loc, context, LaneValue::linear(address, 1)).vector);
      }
      transposeSquare(b, loc, rows);
      for (auto [column, lanes] : llvm::enumerate(rows))
        squares.store(b, loc, LaneContext{side, Value(), false},
                      LaneValue::linear(constantIndex(b, loc, column * side), 1), LaneValue::lanes(lanes));
    }
    forLoop(zero, acrossExtent, 1, {}, [&, alongMask = alongMask](Value column, Values) -> Values {
      Scope nested = scope;
      for (unsigned index : nest.transposed)
        nested.loaded[index] = true;
      enter(nested, across.dim, LaneValue::uniform(addIndex(b, loc, acrossStart, column)), true);
      nested.cloner.context = {side, alongMask, false};
      enter(nested, along.dim, LaneValue::linear(alongStart, 1), true);
      for (auto [index, buffer] : llvm::zip(nest.transposed, buffers)) {
        BlockArgument argument = nest.op.getMatchingBlockArgument(&nest.op->getOpOperand(nest.accesses[index].operand));
        Value address = mulIndex(b, loc, column, full);
        nested.cloner.map(argument, buffer.load(b, loc, {side, Value(), false}, LaneValue::linear(address, 1)));
      }
      return emitInnermost(nested, {});
    });
  };
  forLoop(zero, toValue(b, loc, along.size), side, {}, [&](Value alongStart, Values) -> Values {
    return forLoop(zero, toValue(b, loc, across.size), side, {}, [&](Value acrossStart, Values) -> Values {
      block(alongStart, acrossStart);
      return {};
    });
  });
}

NestEmitter::Values NestEmitter::emitInnermost(Scope &scope, Values accumulators) {
  BodyCloner &cloner = scope.cloner;
  loadReady(scope, true);
  cloner.cloneReady(*nest.op.getBlock(), combiners, true);
  Values results;
  Operation *yield = nest.op.getBlock()->getTerminator();
  for (auto [index, output] : llvm::enumerate(nest.outputs)) {
    if (!output.combiner) {
      nest.accesses[output.access].memory.store(b, loc, cloner.context, addressOf(scope, output.access),
                                                cloner.lookup(yield->getOperand(index)));
      continue;
    }
    Value accumulator = accumulators[results.size()];
    Value expression = asVector(b, loc, cloner.context, cloner.lookup(output.expression));
    Value combined = combine(output, accumulator, expression);
    if (reducesLanes && cloner.context.mask)
      combined = arith::SelectOp::create(b, loc, cloner.context.mask, combined, accumulator);
    results.push_back(combined);
  }
  return results;
}
