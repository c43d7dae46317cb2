// Clones the body of a linalg op: scalars stay scalar as long as all lanes share them, indices stay `base + lane *
// step` as long as they are, and everything else becomes a vector.
#include "lib/Transforms/Vectorize/BodyCloner.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lamina;

static bool hasVectorForm(Operation &op) {
  for (Type type : op.getResultTypes())
    if (!VectorType::isValidElementType(type))
      return false;
  if (isa<linalg::IndexOp, linalg::YieldOp, scf::YieldOp, memref::LoadOp, affine::AffineApplyOp, affine::AffineMinOp,
          affine::AffineMaxOp, arith::ConstantOp>(op))
    return true;
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return branch.getNumResults() > 0 && canVectorizeBody(*branch.thenBlock()) && canVectorizeBody(*branch.elseBlock());
  return op.getNumRegions() == 0 && isMemoryEffectFree(&op) && OpTrait::hasElementwiseMappableTraits(&op);
}

bool lamina::canVectorizeBody(Block &body) {
  return llvm::all_of(body, [](Operation &op) { return hasVectorForm(op); });
}

LaneValue BodyCloner::lookup(Value value) const {
  auto found = values.find(value);
  return found == values.end() ? LaneValue::uniform(value) : found->second;
}

LaneValue BodyCloner::binary(function_ref<Value(Value, Value)> make, LaneValue lhs, LaneValue rhs) {
  if (lhs.isUniform() && rhs.isUniform())
    return LaneValue::uniform(make(lhs.base, rhs.base));
  return LaneValue::lanes(make(asVector(b, loc, context, lhs), asVector(b, loc, context, rhs)));
}

LaneValue BodyCloner::add(LaneValue lhs, LaneValue rhs) {
  if (lhs.isLinear() && rhs.isLinear())
    return LaneValue::linear(addIndex(b, loc, lhs.base, rhs.base), lhs.step + rhs.step);
  if (lhs.isUniform())
    std::swap(lhs, rhs);
  if (rhs.isUniform() && constantOf(rhs.base) == 0)
    return lhs;
  if (rhs.isUniform() && lhs.isClamped()) {
    lhs.base = addIndex(b, loc, lhs.base, rhs.base);
    for (Clamp &clamp : lhs.clamps)
      clamp.bound = addIndex(b, loc, clamp.bound, rhs.base);
    return lhs;
  }
  return binary([&](Value l, Value r) -> Value { return arith::AddIOp::create(b, loc, l, r); }, lhs, rhs);
}

LaneValue BodyCloner::mul(LaneValue lhs, LaneValue rhs) {
  if (lhs.isUniform() && rhs.isUniform())
    return LaneValue::uniform(mulIndex(b, loc, lhs.base, rhs.base));
  if (lhs.isUniform())
    std::swap(lhs, rhs);
  std::optional<int64_t> factor;
  if (rhs.isUniform())
    factor = constantOf(rhs.base);
  if (factor && lhs.isLinear())
    return LaneValue::linear(mulIndex(b, loc, lhs.base, rhs.base), lhs.step * *factor);
  if (factor == 1)
    return lhs;
  return binary([&](Value l, Value r) -> Value { return arith::MulIOp::create(b, loc, l, r); }, lhs, rhs);
}

LaneValue BodyCloner::affine(AffineExpr expr, ArrayRef<LaneValue> dims, ArrayRef<LaneValue> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return LaneValue::uniform(constantIndex(b, loc, constant.getValue()));
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto op = cast<AffineBinaryOpExpr>(expr);
  LaneValue lhs = affine(op.getLHS(), dims, symbols), rhs = affine(op.getRHS(), dims, symbols);
  if (expr.getKind() == AffineExprKind::Add)
    return add(lhs, rhs);
  if (expr.getKind() == AffineExprKind::Mul)
    return mul(lhs, rhs);
  // Divisors are positive. The quotient of arith.divsi rounds to zero; move it down where the remainder is negative.
  auto zeroOf = [&](Value like) { return arith::ConstantOp::create(b, loc, b.getZeroAttr(like.getType())); };
  auto remainder = [&](Value l, Value r) -> Value { return arith::RemSIOp::create(b, loc, l, r); };
  auto negative = [&](Value rem) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, rem, zeroOf(rem));
  };
  auto mod = [&](Value l, Value r) -> Value {
    Value rem = remainder(l, r);
    return arith::SelectOp::create(b, loc, negative(rem), arith::AddIOp::create(b, loc, rem, r), rem);
  };
  auto floordiv = [&](Value l, Value r) -> Value {
    // (l - (l mod r)) is divisible, so its quotient is exact.
    return arith::DivSIOp::create(b, loc, arith::SubIOp::create(b, loc, l, mod(l, r)), r);
  };
  if (expr.getKind() == AffineExprKind::Mod)
    return binary(mod, lhs, rhs);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return binary(floordiv, lhs, rhs);
  return binary(
      [&](Value l, Value r) {
        return floordiv(
            arith::AddIOp::create(
                b, loc, l,
                arith::SubIOp::create(b, loc, r, arith::ConstantOp::create(b, loc, b.getOneAttr(r.getType())))),
            r);
      },
      lhs, rhs);
}

/// Keeps a minimum or maximum of `base + lane * step` and a scalar as a clamp.
static bool cloneClamp(Operation *op, ArrayRef<LaneValue> operands, LaneValue &result) {
  if (!isa<arith::MinSIOp, arith::MaxSIOp>(op) || !op->getResult(0).getType().isIndex())
    return false;
  unsigned scalar = operands[0].isUniform() ? 0 : 1;
  const LaneValue &moving = operands[1 - scalar];
  if (!operands[scalar].isUniform() || !moving.base || moving.step == 0)
    return false;
  result = moving;
  result.clamps.push_back({isa<arith::MaxSIOp>(op), operands[scalar].base});
  return true;
}

/// Keeps `base + lane * step` through the arithmetic on indices that preserves it.
bool BodyCloner::cloneLinear(Operation *op, ArrayRef<LaneValue> operands, LaneValue &result) {
  if (op->getNumResults() != 1 || !llvm::all_of(operands, [](const LaneValue &v) { return v.isLinear(); }))
    return false;
  auto wide = [](Type type) { return type.isIndex() || type.isInteger(64); };
  if (!wide(op->getResult(0).getType()) || !llvm::all_of(op->getOperandTypes(), wide))
    return false;
  int64_t step;
  if (isa<arith::AddIOp>(op))
    step = operands[0].step + operands[1].step;
  else if (isa<arith::SubIOp>(op))
    step = operands[0].step - operands[1].step;
  else if (isa<arith::IndexCastOp>(op))
    step = operands[0].step;
  else if (isa<arith::MulIOp>(op)) {
    unsigned constant = operands[0].isUniform() ? 0 : 1;
    APInt factor;
    if (!operands[constant].isUniform() || !matchPattern(operands[constant].base, m_ConstantInt(&factor)))
      return false;
    step = operands[1 - constant].step * factor.getSExtValue();
  } else {
    return false;
  }
  Operation *copy = b.clone(*op);
  for (auto [index, operand] : llvm::enumerate(operands))
    copy->setOperand(index, operand.base);
  result = LaneValue::linear(copy->getResult(0), step);
  return true;
}

LaneValue BodyCloner::cloneElementwise(Operation *op, ArrayRef<LaneValue> operands) {
  LaneValue index;
  if (cloneLinear(op, operands, index) || cloneClamp(op, operands, index))
    return index;
  bool divides = isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
                     arith::CeilDivSIOp, arith::CeilDivUIOp>(op);
  bool uniform = llvm::all_of(operands, [](const LaneValue &v) { return v.isUniform(); }) &&
                 !(divides && context.conditional && context.lanes > 1);
  SmallVector<Value> mapped;
  for (const LaneValue &operand : operands)
    mapped.push_back(uniform ? operand.base : asVector(b, loc, context, operand));
  // A divisor that all lanes share is the divisor of a lane that exists, unless none does.
  if (divides && !uniform && context.mask && (context.conditional || !operands[1].isUniform())) {
    // An integer division of lanes that do not exist must not trap.
    Value one = arith::ConstantOp::create(b, loc, b.getOneAttr(mapped[1].getType()));
    mapped[1] = arith::SelectOp::create(b, loc, context.mask, mapped[1], one);
  }
  Operation *copy = b.clone(*op);
  copy->setOperands(mapped);
  if (uniform)
    return LaneValue::uniform(copy->getResult(0));
  copy->getResult(0).setType(VectorType::get({context.lanes}, op->getResult(0).getType()));
  return LaneValue::lanes(copy->getResult(0));
}

void BodyCloner::cloneScalar(Operation *op) {
  IRMapping mapping;
  for (auto &[from, to] : values)
    if (to.isUniform())
      mapping.map(from, to.base);
  Operation *copy = b.clone(*op, mapping);
  copy->walk([&](linalg::IndexOp index) {
    index.replaceAllUsesWith(dims[index.getDim()].base);
    index.erase();
  });
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
    map(from, LaneValue::uniform(to));
}

/// All lanes take the same side: a branch whose results are vectors.
void BodyCloner::cloneUniformIf(scf::IfOp op, Value condition) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(VectorType::get({context.lanes}, type));
  auto branch = scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), branch->getRegions())) {
    b.setInsertionPointToStart(&to.front());
    for (Operation &inner : from.front().without_terminator())
      clone(&inner);
    SmallVector<Value> yields;
    for (Value value : from.front().getTerminator()->getOperands())
      yields.push_back(asVector(b, loc, context, lookup(value)));
    scf::YieldOp::create(b, loc, yields);
  }
  for (auto [from, to] : llvm::zip_equal(op.getResults(), branch.getResults()))
    map(from, LaneValue::lanes(to));
}

void BodyCloner::cloneIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  if (LaneValue condition = lookup(branch.getCondition()); condition.isUniform())
    return cloneUniformIf(branch, condition.base);
  Value condition = asVector(b, loc, context, lookup(branch.getCondition()));
  Value allTrue = arith::ConstantOp::create(b, loc, b.getOneAttr(condition.getType()));
  Value inverse = arith::XOrIOp::create(b, loc, condition, allTrue);
  LaneContext outer = context;
  SmallVector<Value> results[2];
  for (int side = 0; side < 2; ++side) {
    context.mask = side == 0 ? condition : inverse;
    if (outer.mask)
      context.mask = arith::AndIOp::create(b, loc, context.mask, outer.mask);
    context.conditional = true;
    Block &block = side == 0 ? *branch.thenBlock() : *branch.elseBlock();
    for (Operation &inner : block.without_terminator())
      clone(&inner);
    for (Value value : block.getTerminator()->getOperands())
      results[side].push_back(asVector(b, loc, context, lookup(value)));
  }
  context = outer;
  for (auto [index, result] : llvm::enumerate(branch.getResults()))
    map(result, LaneValue::lanes(arith::SelectOp::create(b, loc, condition, results[0][index], results[1][index])));
}

bool BodyCloner::isReady(Operation *op, Block &body, bool last) const {
  if (last)
    return true;
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return dims[index.getDim()].base != nullptr;
  // What can trap stays inside: the loops around it may be empty.
  if (op->getNumRegions() != 0 || !isPure(op))
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return operand.getParentBlock() != &body || values.contains(operand); });
}

void BodyCloner::cloneReady(Block &body, const SmallPtrSetImpl<Operation *> &skip, bool last) {
  for (Operation &op : body.without_terminator())
    if (!skip.contains(&op) && !done.contains(&op) && isReady(&op, body, last)) {
      clone(&op);
      done.insert(&op);
    }
}

void BodyCloner::clone(Operation *op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return map(index.getResult(), dims[index.getDim()]);
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    if (auto found = memories.find(load.getMemRef()); found != memories.end()) {
      const FlatMemory &memory = found->second;
      LaneValue index = LaneValue::uniform(memory.offset);
      for (auto [position, stride] : llvm::zip(load.getIndices(), memory.strides))
        index = add(index, mul(lookup(position), LaneValue::uniform(toValue(b, loc, stride))));
      return map(load.getResult(), memory.load(b, loc, context, index));
    }
  }
  if (context.lanes == 1 && op->getNumRegions() != 0)
    return cloneScalar(op);
  if (isa<scf::IfOp>(op))
    return cloneIf(op);
  SmallVector<LaneValue> operands;
  for (Value operand : op->getOperands())
    operands.push_back(lookup(operand));
  if (isa<affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp>(op)) {
    AffineMap map = isa<affine::AffineApplyOp>(op) ? cast<affine::AffineApplyOp>(op).getAffineMap()
                    : isa<affine::AffineMinOp>(op) ? cast<affine::AffineMinOp>(op).getAffineMap()
                                                   : cast<affine::AffineMaxOp>(op).getAffineMap();
    ArrayRef<LaneValue> all(operands);
    LaneValue result;
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      LaneValue next = affine(expr, all.take_front(map.getNumDims()), all.drop_front(map.getNumDims()));
      if (position == 0)
        result = next;
      else if (isa<affine::AffineMinOp>(op))
        result = binary([&](Value l, Value r) -> Value { return arith::MinSIOp::create(b, loc, l, r); }, result, next);
      else
        result = binary([&](Value l, Value r) -> Value { return arith::MaxSIOp::create(b, loc, l, r); }, result, next);
    }
    return this->map(op->getResult(0), result);
  }
  if (op->getNumResults() == 1 && (op->hasTrait<OpTrait::Elementwise>() || context.lanes > 1))
    return map(op->getResult(0), cloneElementwise(op, operands));
  cloneScalar(op);
}
