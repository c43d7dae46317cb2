// Bodies of generics: indices, reads of tensors, and the op itself.
#include "lib/Conversion/PrimToLinalg/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lamina;

Body::Body(Emitter &emitter, Location loc, ArrayRef<AffineExpr> loopSizes)
    : builder(emitter.getContext()), loc(loc), emitter(emitter), loopSizes(loopSizes),
      block(std::make_unique<Block>()) {
  builder.setInsertionPointToEnd(block.get());
}

Body::Body(Emitter &emitter, Location loc, OpBuilder &at) : builder(at), loc(loc), emitter(emitter) {}

Access Body::getIdentity() const {
  Access access;
  for (unsigned loop = 0; loop < loopSizes.size(); ++loop)
    access.push_back(getLoop(loop));
  return access;
}

// ---- indices

/// Indices are never negative where they divide, so unsigned division is the floor.
Value Body::evaluate(AffineExpr expr) {
  Value &value = evaluated[expr];
  if (value)
    return value;
  Value result;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    result = arith::ConstantIndexOp::create(builder, loc, constant.getValue());
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    // Not in a branch, since passes that shift indices look for them in the body itself.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(block.get());
    result = linalg::IndexOp::create(builder, loc, dim.getPosition());
  } else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    result = emitter.getSymbol(symbol.getPosition());
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = evaluate(binary.getLHS()), rhs = evaluate(binary.getRHS());
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      result = arith::AddIOp::create(builder, loc, lhs, rhs);
      break;
    case AffineExprKind::Mul:
      result = arith::MulIOp::create(builder, loc, lhs, rhs);
      break;
    case AffineExprKind::Mod:
      result = arith::RemUIOp::create(builder, loc, lhs, rhs);
      break;
    case AffineExprKind::FloorDiv:
      result = arith::DivUIOp::create(builder, loc, lhs, rhs);
      break;
    default:
      result = arith::CeilDivUIOp::create(builder, loc, lhs, rhs);
    }
  }
  return evaluated[expr] = result;
}

Value Body::getValue(const Index &index) { return index.value ? index.value : evaluate(index.expr); }

Index Body::add(const Index &lhs, const Index &rhs) {
  if (!lhs.value && !rhs.value)
    return lhs.expr + rhs.expr;
  if (!rhs.value && rhs.expr == 0)
    return lhs;
  return Value(arith::AddIOp::create(builder, loc, getValue(lhs), getValue(rhs)));
}
Index Body::multiply(const Index &lhs, AffineExpr rhs) {
  if (!lhs.value)
    return lhs.expr * rhs;
  if (rhs == 1)
    return lhs;
  return Value(arith::MulIOp::create(builder, loc, lhs.value, evaluate(rhs)));
}
Index Body::divide(const Index &lhs, AffineExpr rhs) {
  if (!lhs.value)
    return lhs.expr.floorDiv(rhs);
  if (rhs == 1)
    return lhs;
  return Value(arith::DivUIOp::create(builder, loc, lhs.value, evaluate(rhs)));
}
Index Body::modulo(const Index &lhs, AffineExpr rhs) {
  if (!lhs.value)
    return lhs.expr % rhs;
  return Value(arith::RemUIOp::create(builder, loc, lhs.value, evaluate(rhs)));
}

Value Body::clamp(Value index, AffineExpr size) {
  Value last = evaluate(simplifySize(size - 1));
  Value low = arith::MinSIOp::create(builder, loc, index, last);
  return arith::MaxSIOp::create(builder, loc, low, evaluate(getAffineConstantExpr(0, emitter.getContext())));
}

// ---- reads

Value Body::getScalar(Value value, const Access &access) {
  for (auto &[at, scalar] : known.lookup(value))
    if (at == access)
      return scalar;
  Value result;
  if (Value tensor = emitter.lookup(value)) {
    result = read(tensor, emitter.getSizes(value), access);
    result = castFloat(builder, loc, result, getScalarType(getElementTypeOrSelf(value.getType())));
  } else {
    result = computeScalar(value, access);
  }
  bind(value, access, result);
  return result;
}

Value Body::computeScalar(Value value, const Access &access) { return pull(value.getDefiningOp(), access); }

Value Body::read(Value tensor, ArrayRef<AffineExpr> sizes, const Access &access) {
  if (block)
    if (Value scalar = readAsInput(tensor, sizes, access))
      return scalar;
  SmallVector<Value> indices;
  for (const Index &index : access)
    indices.push_back(getValue(index));
  return tensor::ExtractOp::create(builder, loc, tensor, indices);
}

/// A read whose indices are loops, up to a slice of the tensor, is an input of the generic. Null if this one is not.
Value Body::readAsInput(Value tensor, ArrayRef<AffineExpr> sizes, const Access &access) {
  Exprs offsets, extents, loops, kept;
  SmallVector<int64_t> strides;
  bool isWhole = true;
  for (auto [index, size] : llvm::zip_equal(access, sizes)) {
    if (index.value)
      return nullptr;
    auto linear = matchLinearIndex(index.expr);
    if (!linear)
      return nullptr;
    AffineExpr extent = linear->dim ? loopSizes[*linear->dim] : getAffineConstantExpr(1, emitter.getContext());
    int64_t stride = linear->dim ? linear->stride : 1;
    offsets.push_back(linear->offset);
    extents.push_back(extent);
    strides.push_back(stride);
    isWhole &= linear->dim && linear->offset == 0 && stride == 1 && size == extent;
    if (linear->dim) {
      loops.push_back(getAffineDimExpr(*linear->dim, emitter.getContext()));
      kept.push_back(extent);
    }
  }
  if (!isWhole) {
    auto attributesOf = [&](ArrayRef<int64_t> values) {
      return llvm::map_to_vector(values, [&](int64_t value) { return OpFoldResult(builder.getIndexAttr(value)); });
    };
    auto type = getTensorType(kept, getElementTypeOrSelf(tensor.getType()));
    tensor = tensor::ExtractSliceOp::create(emitter.builder, loc, type, tensor, emitter.getSizes(offsets),
                                            emitter.getSizes(extents), attributesOf(strides));
  }
  return addInput(tensor, AffineMap::get(loopSizes.size(), 0, loops, emitter.getContext()));
}

Value Body::readUnlessEmpty(ArrayRef<AffineExpr> sizes, Value otherwise, function_ref<Value()> read) {
  if (llvm::is_contained(sizes, getAffineConstantExpr(0, emitter.getContext())))
    return otherwise;
  Value condition;
  for (AffineExpr size : sizes) {
    if (isa<AffineConstantExpr>(size))
      continue;
    Value zero = evaluate(getAffineConstantExpr(0, emitter.getContext()));
    Value hasElements = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, evaluate(size), zero);
    condition = condition ? Value(arith::AndIOp::create(builder, loc, condition, hasElements)) : hasElements;
  }
  if (!condition)
    return read();
  auto branch = scf::IfOp::create(builder, loc, otherwise.getType(), condition, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    // What the branch computes is known in the branch alone.
    auto outerKnown = known;
    auto outerEvaluated = evaluated;
    builder.setInsertionPointToStart(branch.thenBlock());
    Value scalar = read();
    scf::YieldOp::create(builder, loc, scalar);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, otherwise);
    known = std::move(outerKnown);
    evaluated = std::move(outerEvaluated);
  }
  return branch.getResult(0);
}

Value Body::getGuarded(Value value, Access access, ArrayRef<bool> checked, Value condition, Value fill) {
  ArrayRef<AffineExpr> sizes = emitter.getSizes(value);
  Exprs checkedSizes;
  for (auto [size, isChecked] : llvm::zip_equal(sizes, checked))
    if (isChecked || size == 0)
      checkedSizes.push_back(size);
  return readUnlessEmpty(checkedSizes, fill, [&] { return selectInside(value, access, checked, condition, fill); });
}

Value Body::selectInside(Value value, Access access, ArrayRef<bool> checked, Value condition, Value fill) {
  ArrayRef<AffineExpr> sizes = emitter.getSizes(value);
  Value zero = evaluate(getAffineConstantExpr(0, emitter.getContext()));
  for (auto [index, size, isChecked] : llvm::zip_equal(access, sizes, checked)) {
    if (!isChecked)
      continue;
    Value at = getValue(index);
    Value notBelow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, at, zero);
    Value notAbove = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, at, evaluate(size));
    Value inside = arith::AndIOp::create(builder, loc, notBelow, notAbove);
    condition = condition ? Value(arith::AndIOp::create(builder, loc, condition, inside)) : inside;
    index = clamp(at, size);
  }
  Value scalar = getScalar(value, access);
  return condition ? Value(arith::SelectOp::create(builder, loc, condition, scalar, fill)) : scalar;
}

// ---- results

Value Body::addInput(Value tensor, AffineMap map) {
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input == tensor && inputMaps[i] == map)
      return block->getArgument(i);
  inputs.push_back(tensor);
  inputMaps.push_back(map);
  return block->insertArgument(inputs.size() - 1, getElementTypeOrSelf(tensor.getType()), loc);
}

Value Body::addOut(Value init, AffineMap map) {
  outs.push_back(init);
  outMaps.push_back(map);
  return block->addArgument(getElementTypeOrSelf(init.getType()), loc);
}

linalg::GenericOp Body::finish(ArrayRef<utils::IteratorType> iterators, ArrayRef<Value> yields, StringRef mark) {
  // A loop that no operand runs over gets its size from an empty tensor.
  llvm::SmallBitVector sized(loopSizes.size());
  for (AffineMap map : llvm::concat<AffineMap>(inputMaps, outMaps))
    for (AffineExpr expr : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sized.set(dim.getPosition());
  if (!sized.all()) {
    Exprs missing, missingSizes;
    for (unsigned loop = 0; loop < loopSizes.size(); ++loop)
      if (!sized.test(loop)) {
        missing.push_back(getLoop(loop));
        missingSizes.push_back(loopSizes[loop]);
      }
    Type type = outs.empty() ? Type(builder.getI8Type()) : getElementTypeOrSelf(outs.front().getType());
    addInput(emitter.makeEmpty(loc, missingSizes, type),
             AffineMap::get(loopSizes.size(), 0, missing, emitter.getContext()));
  }
  linalg::YieldOp::create(builder, loc, yields);
  SmallVector<AffineMap> maps(inputMaps);
  maps.append(outMaps);
  auto generic =
      linalg::GenericOp::create(emitter.builder, loc, TypeRange(ValueRange(outs)), inputs, outs, maps, iterators);
  generic.getRegion().push_back(block.release());
  if (!mark.empty())
    generic->setAttr(mark, builder.getUnitAttr());
  ++emitter.numGenerics;
  return generic;
}
