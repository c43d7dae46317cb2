// The parts of log that other functions share.
#ifndef LAMINA_TRANSFORMS_MATH_LOGARITHM_H
#define LAMINA_TRANSFORMS_MATH_LOGARITHM_H
#include "lib/Transforms/Math/Emitter.h"

namespace lamina::math {
/// x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); k is an integer in f32, f is exact.
struct Split {
  Value k, f;
};
/// Splits a positive finite x, which may be denormal.
Split splitPositive(const Emitter &e, Value x);
} // namespace lamina::math
#endif
