// The parts of exp that other functions share.
#ifndef LAMINA_TRANSFORMS_MATH_EXPONENTIAL_H
#define LAMINA_TRANSFORMS_MATH_EXPONENTIAL_H
#include "lib/Transforms/Math/Emitter.h"

namespace lamina::math {
/// x * scale = n ln(2) + r * scale. `n` is an i32 whose low 22 bits hold n + bias.
struct Reduced {
  Value r, n;
};
/// Splits x * scale, |x * scale| < 2^8 ln(2); `scale` is a power of two, so that r keeps the unit of x.
Reduced reduceExp(const Emitter &e, Value x, float scale, float bias);
/// e^(r * scale) for the remainder of a reduction.
Value expOfRemainder(const Emitter &e, Value r, float scale = 1.0f);
/// value * 2^n for an n with a bias of 2 * 127, |n| < 2 * 126, rounded once.
Value scaleByHalves(const Emitter &e, Value value, Value n);
/// e^(x * scale) as a product that the caller may round together with a sum.
struct Factored {
  Value value, power;
};
/// As above for |x * scale| < 87, so that 2^n is a normal number.
Factored factoredExp(const Emitter &e, Value x, float scale);
} // namespace lamina::math
#endif
