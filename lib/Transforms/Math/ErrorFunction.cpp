// erf: an odd polynomial near 0, elsewhere 1 - e^q(|x|) with a polynomial q for the logarithm of 1 - erf.
#include "lib/Transforms/Math/Coefficients.h"
#include "lib/Transforms/Math/Exponential.h"

using namespace mlir;
using namespace lamina::math;

Value lamina::math::expandErf(const Emitter &e, Value x) {
  Value magnitude = e.abs(x);
  Value small = e.fma(e.polynomial(e.mul(x, x), coefficients::erfSmall), x, x);
  // erf(4) rounds to 1.
  Value q = e.polynomial(e.clampAbove(magnitude, 4.0f), coefficients::erfLarge);
  Factored complement = factoredExp(e, q, 1.0f);
  Value large = e.fma(e.neg(complement.value), complement.power, e.constant(1.0f));
  return e.select(e.compare(CmpFPredicate::OLT, magnitude, e.constant(0.9f)), small, e.copySign(large, x));
}
