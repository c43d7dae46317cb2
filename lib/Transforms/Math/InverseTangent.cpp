// atan and atan2: a polynomial of the smaller over the larger coordinate, and reflections.
#include "lib/Transforms/Math/Coefficients.h"
#include "lib/Transforms/Math/Emitter.h"

using namespace mlir;
using namespace lamina::math;

/// The angle in [0, pi/2] of the point (x, y), both of whose coordinates are non-negative.
static Value firstQuadrant(const Emitter &e, Value y, Value x) {
  Value steep = e.compare(CmpFPredicate::OGT, y, x);
  Value smaller = e.select(steep, x, y), larger = e.select(steep, y, x);
  Value t = e.div(smaller, larger);
  Value square = e.mul(t, t);
  Value angle = e.fma(e.mul(e.polynomial(square, coefficients::atan), square), t, t);
  // pi/2 in two parts.
  Value reflected = e.add(e.constant(0x1.921fb6p+0f), e.sub(e.constant(-0x1.777a5cp-25f), angle));
  return e.select(steep, reflected, angle);
}

Value lamina::math::expandAtan(const Emitter &e, Value x) {
  return e.copySign(firstQuadrant(e, e.abs(x), e.constant(1.0f)), x);
}

Value lamina::math::expandAtan2(const Emitter &e, Value y, Value x) {
  Value ax = e.abs(x), ay = e.abs(y);
  Value angle = firstQuadrant(e, ay, ax);
  // Equal coordinates, both zero or both infinite among them: C's atan2 takes 0 / 0 as 0 and inf / inf as 1.
  Value isZero = e.compare(CmpFPredicate::OEQ, ay, e.constant(0.0f));
  Value equal = e.compare(CmpFPredicate::OEQ, ay, ax);
  angle = e.select(equal, e.select(isZero, e.constant(0.0f), e.constant(0x1.921fb6p-1f)), angle);
  Value behind = e.compare(CmpIPredicate::slt, e.bits(x), e.constant(0));
  Value reflected = e.add(e.constant(0x1.921fb6p+1f), e.sub(e.constant(-0x1.777a5cp-24f), angle));
  return e.copySign(e.select(behind, reflected, angle), y);
}
