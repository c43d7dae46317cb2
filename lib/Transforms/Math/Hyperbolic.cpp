// tanh, sinh and cosh: odd polynomials near 0, elsewhere from e^|x|.
#include "lib/Transforms/Math/Coefficients.h"
#include "lib/Transforms/Math/Exponential.h"

using namespace mlir;
using namespace lamina::math;

Value lamina::math::expandTanh(const Emitter &e, Value x) {
  Value one = e.constant(1.0f), magnitude = e.abs(x);
  Value square = e.mul(x, x);
  Value small = e.fma(e.mul(e.polynomial(square, coefficients::tanhSmall), square), x, x);
  // tanh(9.1) rounds to 1.
  Factored exponential = factoredExp(e, e.clampAbove(magnitude, 9.1f), 2.0f);
  Value large = e.sub(one, e.div(e.constant(2.0f), e.fma(exponential.value, exponential.power, one)));
  Value result = e.select(e.compare(CmpFPredicate::OLT, magnitude, e.constant(0.55f)), small, large);
  // The polynomial's sum loses the sign of -0.
  return e.copySign(result, x);
}

/// e^|x| / 2, which is infinite only where cosh is.
static Value halfExp(const Emitter &e, Value magnitude) {
  Value bounded = e.clampAbove(magnitude, 90.0f);
  Reduced reduced = reduceExp(e, bounded, 1.0f, 2 * 127.0f - 1.0f);
  return scaleByHalves(e, expOfRemainder(e, reduced.r), reduced.n);
}

Value lamina::math::expandCosh(const Emitter &e, Value x) {
  Value half = halfExp(e, e.abs(x));
  return e.add(half, e.div(e.constant(0.25f), half));
}

Value lamina::math::expandSinh(const Emitter &e, Value x) {
  Value magnitude = e.abs(x), square = e.mul(x, x);
  Value small = e.fma(e.mul(e.polynomial(square, coefficients::sinhSmall), square), x, x);
  Value half = halfExp(e, magnitude);
  Value large = e.sub(half, e.div(e.constant(0.25f), half));
  Value result = e.select(e.compare(CmpFPredicate::OLT, magnitude, e.constant(1.0f)), small, large);
  return e.copySign(result, x);
}
