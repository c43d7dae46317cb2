// log and its relatives: x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
#include "lib/Transforms/Math/Coefficients.h"
#include "lib/Transforms/Math/Emitter.h"
#include <limits>

using namespace mlir;
using namespace lamina::math;

namespace {
/// x = 2^k (1 + f) for a positive finite x; k is an integer in f32.
struct Split {
  Value k, f;
};
} // namespace

static Split split(const Emitter &e, Value x) {
  // Denormals are scaled by 2^23 first, and the exponent put right by 23.
  Value denormal = e.compare(CmpFPredicate::OLT, x, e.constant(0x1p-126f));
  Value bits = e.bits(e.select(denormal, e.mul(x, e.constant(0x1p23f)), x));
  // Relative to sqrt(1/2), the exponent field counts k.
  Value offset = e.subI(bits, e.constant(0x3f3504f3));
  Value exponent = e.andI(offset, e.constant(int32_t(0xff800000)));
  Value f = e.sub(e.fromBits(e.subI(bits, exponent)), e.constant(1.0f));
  Value k = e.toFloat(e.shr(exponent, e.constant(23)));
  k = e.add(k, e.select(denormal, e.constant(-23.0f), e.constant(0.0f)));
  return {k, f};
}

Value lamina::math::expandLog(const Emitter &e, Value x) {
  Split s = split(e, x);
  Value square = e.mul(s.f, s.f);
  Value tail = e.fma(e.polynomial(s.f, coefficients::log), s.f, e.constant(-0.5f));
  // ln(2) in two parts; k times the first is exact.
  tail = e.fma(s.k, e.constant(0x1.7f7d1cp-20f), e.mul(tail, square));
  Value result = e.fma(s.k, e.constant(0x1.62e4p-1f), e.add(s.f, tail));
  float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Value zero = e.constant(0.0f);
  // Infinity and NaN are their own logarithms.
  result = e.select(e.compare(CmpFPredicate::OLT, x, e.constant(infinity)), result, x);
  result = e.select(e.compare(CmpFPredicate::OLT, x, zero), e.constant(nan), result);
  return e.select(e.compare(CmpFPredicate::OEQ, x, zero), e.constant(-infinity), result);
}
