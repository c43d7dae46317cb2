// log and its relatives: x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
#include "lib/Transforms/Math/Logarithm.h"
#include "lib/Transforms/Math/Coefficients.h"
#include <limits>

using namespace mlir;
using namespace lamina::math;

Split lamina::math::splitPositive(const Emitter &e, Value x) {
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

/// `result` for positive finite x, and the logarithm of every other x: infinity and NaN are their own.
static Value withSpecialCases(const Emitter &e, Value x, Value result) {
  float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Value zero = e.constant(0.0f);
  result = e.select(e.compare(CmpFPredicate::OLT, x, e.constant(infinity)), result, x);
  result = e.select(e.compare(CmpFPredicate::OLT, x, zero), e.constant(nan), result);
  return e.select(e.compare(CmpFPredicate::OEQ, x, zero), e.constant(-infinity), result);
}

/// k ln(2) + ln(1 + f)
static Value naturalLog(const Emitter &e, Split s) {
  Value square = e.mul(s.f, s.f);
  Value tail = e.fma(e.polynomial(s.f, coefficients::log), s.f, e.constant(-0.5f));
  // ln(2) in two parts.
  tail = e.fma(s.k, e.constant(0x1.7f7d1cp-20f), e.mul(tail, square));
  return e.fma(s.k, e.constant(0x1.62e4p-1f), e.add(s.f, tail));
}

/// log_b(1 + f) for a base with 1 / ln(b) = high + low: the polynomial is the difference from f / ln(b).
static Value scaledLog(const Emitter &e, Value f, llvm::ArrayRef<float> c, float high, float low) {
  Value tail = e.fma(f, e.constant(low), e.mul(e.polynomial(f, c), e.mul(f, f)));
  return e.fma(f, e.constant(high), tail);
}

Value lamina::math::expandLog(const Emitter &e, Value x) {
  return withSpecialCases(e, x, naturalLog(e, splitPositive(e, x)));
}

Value lamina::math::expandLog2(const Emitter &e, Value x) {
  Split s = splitPositive(e, x);
  Value fraction = scaledLog(e, s.f, coefficients::log2, 0x1.715476p+0f, 0x1.4ae0cp-26f);
  return withSpecialCases(e, x, e.add(s.k, fraction));
}

Value lamina::math::expandLog10(const Emitter &e, Value x) {
  Split s = splitPositive(e, x);
  Value fraction = scaledLog(e, s.f, coefficients::log10, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f);
  // log10(2) in two parts; k times the first is exact.
  Value result = e.fma(s.k, e.constant(0x1.344p-2f), e.fma(s.k, e.constant(0x1.3509f8p-18f), fraction));
  return withSpecialCases(e, x, result);
}

Value lamina::math::expandLog1p(const Emitter &e, Value x) {
  // k comes from the rounded 1 + x; f = x / 2^k + (1 / 2^k - 1) is rounded once, so that nothing of x is lost.
  Value sum = e.add(x, e.constant(1.0f));
  Value exponent = e.andI(e.subI(e.bits(sum), e.constant(0x3f3504f3)), e.constant(int32_t(0xff800000)));
  // 4 / 2^k is a normal number for every k up to 128.
  Value scale = e.fromBits(e.subI(e.constant((127 + 2) << 23), exponent));
  Value quarter = e.constant(0.25f);
  Value f = e.fma(e.mul(x, quarter), scale, e.fma(scale, quarter, e.constant(-1.0f)));
  Value k = e.toFloat(e.shr(exponent, e.constant(23)));
  Value result = withSpecialCases(e, sum, naturalLog(e, {k, f}));
  // x itself where its square does not count: this keeps denormals, which x / 4 would round, and -0.
  return e.select(e.compare(CmpFPredicate::OLT, e.abs(x), e.constant(0x1p-25f)), x, result);
}
