// exp and its relatives by Cody-Waite reduction: e^x = 2^n e^r, |r| <= ln(2)/2.
#include "lib/Transforms/Math/Exponential.h"
#include "lib/Transforms/Math/Coefficients.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir;
using namespace lamina::math;

/// Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits of the sum.
static constexpr float magic = 0x1.8p23f;
/// ln(2) in two parts; n times the first is exact for |n| < 2^8.
static constexpr float ln2High = 0x1.62e4p-1f, ln2Low = 0x1.7f7d1cp-20f;

Reduced lamina::math::reduceExp(const Emitter &e, Value x, float scale, float bias) {
  // x * scale is reduced; `bias` is added to the integer in the bits only.
  Value shifted = e.fma(x, e.constant(scale * 0x1.715476p+0f), e.constant(magic + bias));
  Value n = e.sub(shifted, e.constant(magic + bias));
  Value r = e.fma(n, e.constant(-ln2High / scale), x);
  r = e.fma(n, e.constant(-ln2Low / scale), r);
  return {r, e.bits(shifted)};
}

Value lamina::math::expOfRemainder(const Emitter &e, Value r, float scale) {
  // The powers of the scale go into the coefficients, exactly.
  llvm::SmallVector<float> c = {scale};
  float power = scale;
  for (float term : coefficients::exp)
    c.push_back(term * (power *= scale));
  Value value = e.polynomial(r, c);
  return e.fma(value, r, e.constant(1.0f));
}

Value lamina::math::scaleByHalves(const Emitter &e, Value value, Value n) {
  // The two factors keep intermediate results normal; the last product rounds once into the denormals, or overflows.
  Value half = e.shr(n, e.constant(1)), rest = e.subI(n, half), twentyThree = e.constant(23);
  value = e.mul(value, e.fromBits(e.shl(half, twentyThree)));
  return e.mul(value, e.fromBits(e.shl(rest, twentyThree)));
}

Value lamina::math::expandExp(const Emitter &e, Value x) {
  // Beyond these bounds the result is 0 or infinity already. A product that underflows to 0 costs a processor over a
  // hundred cycles, and masked attention is full of them: such lanes compute exp(0) instead.
  Value vanishes = e.compare(CmpFPredicate::OLT, x, e.constant(-104.0f));
  x = e.select(vanishes, e.constant(0.0f), e.clampAbove(x, 89.0f));
  Reduced reduced = reduceExp(e, x, 1.0f, 2 * 127.0f);
  return e.select(vanishes, e.constant(0.0f), scaleByHalves(e, expOfRemainder(e, reduced.r), reduced.n));
}

Factored lamina::math::factoredExp(const Emitter &e, Value x, float scale) {
  Reduced reduced = reduceExp(e, x, scale, 127.0f);
  return {expOfRemainder(e, reduced.r, scale), e.fromBits(e.shl(reduced.n, e.constant(23)))};
}

Value lamina::math::expandExp2(const Emitter &e, Value x) {
  x = e.clampBelow(e.clampAbove(x, 129.0f), -151.0f);
  Value shift = e.constant(magic + 2 * 127.0f);
  Value shifted = e.add(x, shift);
  Value r = e.sub(x, e.sub(shifted, shift));
  Value value = e.fma(e.polynomial(r, coefficients::exp2), r, e.constant(1.0f));
  return scaleByHalves(e, value, e.bits(shifted));
}

Value lamina::math::expandExpm1(const Emitter &e, Value x) {
  // Below the lower bound the result is -1 already.
  Value bounded = e.clampBelow(e.clampAbove(x, 89.0f), -18.0f);
  Reduced reduced = reduceExp(e, bounded, 1.0f, 127.0f);
  Value r = reduced.r;
  Value minusOne = e.fma(e.polynomial(r, coefficients::exp), e.mul(r, r), r);
  // 2^n (e^r - 1) + (2^n - 1). Where 2^128 could be needed, half of it is used and the sum doubled.
  Value large = e.compare(CmpFPredicate::OGT, bounded, e.constant(80.0f));
  Value n = e.subI(reduced.n, e.select(large, e.constant(1), e.constant(0)));
  Value power = e.fromBits(e.shl(n, e.constant(23)));
  Value result = e.fma(minusOne, power, e.sub(power, e.constant(1.0f)));
  result = e.mul(result, e.select(large, e.constant(2.0f), e.constant(1.0f)));
  // The sum loses the sign of -0.
  return e.copySign(result, x);
}
