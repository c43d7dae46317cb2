// tanh: an odd polynomial near 0, elsewhere 1 - 2 / (e^2|x| + 1).
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
  return e.select(e.compare(CmpFPredicate::OLT, magnitude, e.constant(0.55f)), small, e.copySign(large, x));
}
