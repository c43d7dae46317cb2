// sin and cos: reduction by multiples of pi/2 in three f32 parts; libm where a lane is too large for that.
#include "lib/Transforms/Math/CallLibm.h"
#include "lib/Transforms/Math/Coefficients.h"
#include "lib/Transforms/Math/Emitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lamina::math;

/// Above it the three parts of pi/2 are too few bits.
static constexpr float limit = 0x1p17f;

namespace {
/// sin(r) and cos(r) for x = n pi/2 + r; `n` has the quadrant in its low two bits.
struct Quadrant {
  Value sin, cos, n;
};
} // namespace

static Quadrant reduce(const Emitter &e, Value x) {
  Value shift = e.constant(0x1.8p23f);
  Value shifted = e.fma(x, e.constant(0x1.45f306p-1f), shift);
  Value n = e.sub(shifted, shift);
  // The parts of pi/2 are rounded down: with n = 0 the sign of x = -0 passes through.
  Value r = e.fma(n, e.constant(-0x1.921fb4p+0f), x);
  r = e.fma(n, e.constant(-0x1.4442d0p-24f), r);
  r = e.fma(n, e.constant(-0x1.846988p-48f), r);
  Value square = e.mul(r, r);
  // The sum loses the sign of -0.
  Value sin = e.copySign(e.fma(e.mul(e.polynomial(square, coefficients::sin), square), r, r), r);
  Value cos = e.fma(e.polynomial(square, coefficients::cos), square, e.constant(-0.5f));
  cos = e.fma(cos, square, e.constant(1.0f));
  return {sin, cos, e.bits(shifted)};
}

/// The lanes of `fast` where |x| is at most the limit, and op(x) by libm elsewhere.
static Value withFallback(const Emitter &e, Operation *op, Value x, Value fast) {
  OpBuilder &builder = e.builder;
  Location loc = e.loc;
  Value large = e.compare(CmpFPredicate::OGT, e.abs(x), e.constant(limit));
  Value any = large;
  auto vector = dyn_cast<VectorType>(x.getType());
  if (vector) {
    auto flat = VectorType::get({vector.getNumElements()}, builder.getI1Type());
    any = builder.createOrFold<vector::ShapeCastOp>(loc, flat, large);
    any = vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, any);
  }
  auto ifOp = scf::IfOp::create(builder, loc, x.getType(), any, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  Value slow;
  if (vector) {
    auto flat = VectorType::get({vector.getNumElements()}, vector.getElementType());
    Value lanes = builder.createOrFold<vector::ShapeCastOp>(loc, flat, x);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value count = arith::ConstantIndexOp::create(builder, loc, vector.getNumElements());
    auto loop = scf::ForOp::create(builder, loc, zero, count, one, ValueRange{lanes});
    builder.setInsertionPointToStart(loop.getBody());
    Value carried = loop.getRegionIterArg(0), lane = loop.getInductionVar();
    Value element = vector::ExtractOp::create(builder, loc, carried, OpFoldResult(lane));
    element = callLibm(builder, op, element);
    carried = vector::InsertOp::create(builder, loc, element, carried, OpFoldResult(lane));
    scf::YieldOp::create(builder, loc, carried);
    builder.setInsertionPointAfter(loop);
    slow = builder.createOrFold<vector::ShapeCastOp>(loc, vector, loop.getResult(0));
  } else {
    slow = callLibm(builder, op, x);
  }
  scf::YieldOp::create(builder, loc, e.select(large, slow, fast));
  builder.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(builder, loc, fast);
  builder.setInsertionPointAfter(ifOp);
  return ifOp.getResult(0);
}

static Value isOdd(const Emitter &e, Value n) {
  return e.compare(CmpIPredicate::ne, e.andI(n, e.constant(1)), e.constant(0));
}

/// `value`, negated if bit 1 of `n` is set.
static Value negateByQuadrant(const Emitter &e, Value value, Value n) {
  Value sign = e.shl(e.andI(n, e.constant(2)), e.constant(30));
  return e.fromBits(e.xorI(e.bits(value), sign));
}

Value lamina::math::expandSin(const Emitter &e, Operation *op) {
  Value x = op->getOperand(0);
  Quadrant q = reduce(e, x);
  return withFallback(e, op, x, negateByQuadrant(e, e.select(isOdd(e, q.n), q.cos, q.sin), q.n));
}

Value lamina::math::expandCos(const Emitter &e, Operation *op) {
  Value x = op->getOperand(0);
  Quadrant q = reduce(e, x);
  Value n = e.addI(q.n, e.constant(1));
  return withFallback(e, op, x, negateByQuadrant(e, e.select(isOdd(e, n), q.cos, q.sin), n));
}
