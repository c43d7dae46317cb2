// powf and rsqrt: x^y = 2^(y log2(x)) in f64 between f32 operands and result.
#include "lib/Transforms/Math/Coefficients.h"
#include "lib/Transforms/Math/Logarithm.h"
#include <limits>

using namespace mlir;
using namespace lamina::math;

Value lamina::math::expandPow(const Emitter &e, Value x, Value y) {
  float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Value zero = e.constant(0.0f), one = e.constant(1.0f), magnitude = e.abs(x);

  // log2|x| in f64 for finite x that are not 0.
  Split s = splitPositive(e, magnitude);
  Value f = e.extend(s.f);
  Value logarithm = e.fma(e.polynomial(f, coefficients::log2Wide), f, e.extend(s.k));
  Value logInfinite = e.constant(double(infinity));
  Value isZero = e.compare(CmpFPredicate::OEQ, x, zero);
  Value isInfinite = e.compare(CmpFPredicate::OEQ, magnitude, e.constant(infinity));
  logarithm = e.select(isZero, e.neg(logInfinite), e.select(isInfinite, logInfinite, logarithm));

  // 2^p in f64; its bounds are far outside of f32, and it is rounded once, to f32.
  Value p = e.mul(e.extend(y), logarithm);
  Value high = e.constant(300.0), low = e.constant(-300.0);
  p = e.select(e.compare(CmpFPredicate::OLT, high, p), high, p);
  p = e.select(e.compare(CmpFPredicate::OGT, low, p), low, p);
  Value shift = e.constant(0x1.8p52 + 1023.0);
  Value shifted = e.add(p, shift);
  Value r = e.sub(p, e.sub(shifted, shift));
  Value value = e.fma(e.polynomial(r, coefficients::exp2Wide), r, e.constant(1.0));
  Value bits = arith::BitcastOp::create(e.builder, e.loc, e.i64(), shifted);
  Value power = arith::BitcastOp::create(e.builder, e.loc, e.f64(), e.shl(bits, e.constant(int64_t(52))));
  Value result = e.truncate(e.mul(value, power));
  result = e.select(e.compare(CmpFPredicate::UNO, x, y), e.constant(nan), result);

  // Negative x: only integer powers, and odd ones are negative. -0 and -infinity have all powers.
  auto isInteger = [&](Value v) {
    return e.compare(CmpFPredicate::OEQ, mlir::math::RoundEvenOp::create(e.builder, e.loc, v), v);
  };
  Value integer = isInteger(y);
  Value odd = e.andI(integer, e.xorI(isInteger(e.mul(y, e.constant(0.5f))), e.trueMask()));
  Value sign = e.select(odd, e.andI(e.bits(x), e.constant(std::numeric_limits<int32_t>::min())), e.constant(0));
  result = e.fromBits(e.orI(e.bits(result), sign));
  Value negative =
      e.andI(e.compare(CmpFPredicate::OLT, x, zero), e.compare(CmpFPredicate::OGT, x, e.constant(-infinity)));
  result = e.select(e.andI(negative, e.xorI(integer, e.trueMask())), e.constant(nan), result);

  // x^0 and 1^y are 1 even for NaN, and (-1)^(+-infinity) is 1.
  Value infinitePower = e.compare(CmpFPredicate::OEQ, e.abs(y), e.constant(infinity));
  Value unit = e.orI(e.compare(CmpFPredicate::OEQ, y, zero), e.compare(CmpFPredicate::OEQ, x, one));
  unit = e.orI(unit, e.andI(infinitePower, e.compare(CmpFPredicate::OEQ, magnitude, one)));
  return e.select(unit, one, result);
}

Value lamina::math::expandRsqrt(const Emitter &e, Value x) {
  return e.div(e.constant(1.0f), mlir::math::SqrtOp::create(e.builder, e.loc, x));
}
