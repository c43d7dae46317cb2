// Index arithmetic that folds, and loops, shared by the emitters of contraction code.
#include "lib/Transforms/Contraction/Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lamina::contraction;

Emitter::Emitter(OpBuilder &builder, Location loc) : b(builder), loc(loc) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  anchor = zero.getDefiningOp();
  constants[0] = zero;
}

Value Emitter::value(Index index) {
  if (auto value = dyn_cast<Value>(index))
    return value;
  int64_t constant = *getConstantIntValue(index);
  Value &known = constants[constant];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(anchor);
    known = arith::ConstantIndexOp::create(b, loc, constant);
  }
  return known;
}

SmallVector<Value> Emitter::values(ArrayRef<Index> indices) {
  SmallVector<Value> result;
  for (Index index : indices)
    result.push_back(value(index));
  return result;
}

Index Emitter::add(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(*l + *r);
  if (l && *l == 0)
    return rhs;
  if (r && *r == 0)
    return lhs;
  return arith::AddIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::sub(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(*l - *r);
  if (r && *r == 0)
    return lhs;
  return arith::SubIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::mul(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(*l * *r);
  if ((l && *l == 0) || (r && *r == 1))
    return lhs;
  if ((r && *r == 0) || (l && *l == 1))
    return rhs;
  return arith::MulIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::min(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(std::min(*l, *r));
  return arith::MinSIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::max(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(std::max(*l, *r));
  return arith::MaxSIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::div(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(*l / *r);
  if (r && *r == 1)
    return lhs;
  return arith::DivUIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::rem(Index lhs, Index rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return constant(*l % *r);
  if (r && *r == 1)
    return constant(0);
  return arith::RemUIOp::create(b, loc, value(lhs), value(rhs)).getResult();
}

Index Emitter::ceilDiv(Index lhs, int64_t rhs) { return div(add(lhs, constant(rhs - 1)), constant(rhs)); }

void Emitter::loop(Index lower, Index upper, Index step, function_ref<void(Index)> body) {
  carry(lower, upper, step, {}, [&](Index index, ArrayRef<Value>) {
    body(index);
    return SmallVector<Value>();
  });
}

SmallVector<Value> Emitter::carry(Index lower, Index upper, Index step, ArrayRef<Value> initial,
                                  function_ref<SmallVector<Value>(Index, ArrayRef<Value>)> body) {
  auto l = getConstantIntValue(lower), u = getConstantIntValue(upper), s = getConstantIntValue(step);
  if (l && u && *u <= *l)
    return SmallVector<Value>(initial);
  if (l && u && s && *u <= *l + *s)
    return body(lower, initial);
  auto loop = scf::ForOp::create(b, loc, value(lower), value(upper), value(step), initial);
  OpBuilder::InsertionGuard guard(b);
  if (initial.empty()) {
    b.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar(), {});
    return {};
  }
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> carried(loop.getRegionIterArgs());
  SmallVector<Value> results = body(loop.getInductionVar(), carried);
  scf::YieldOp::create(b, loc, results);
  return SmallVector<Value>(loop.getResults());
}

void Emitter::ifLess(Index lhs, Index rhs, function_ref<void()> body) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r) {
    if (*l < *r)
      body();
    return;
  }
  Value condition = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value(lhs), value(rhs));
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

Value Emitter::scratch(ArrayRef<int64_t> shape, Type element) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(anchor);
  return memref::AllocOp::create(b, loc, MemRefType::get(shape, element), b.getI64IntegerAttr(64));
}

Value Emitter::zero(Type type) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(anchor);
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}
