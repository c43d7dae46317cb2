// Coefficients of the polynomials in lamina-expand-math, made by scripts/math_coefficients.py.
#ifndef LAMINA_TRANSFORMS_MATH_COEFFICIENTS_H
#define LAMINA_TRANSFORMS_MATH_COEFFICIENTS_H

namespace lamina::math::coefficients {
/// e^r - 1 - r, from r^2 on, |r| <= ln(2)/2; weighted error 2^-28.1.
inline constexpr float exp[] = {0x1.fffffc0000000p-2f, 0x1.55548c0000000p-3f, 0x1.5558b80000000p-5f,
                                0x1.123e620000000p-7f, 0x1.6a4eae0000000p-10f};
/// tanh(x) - x, from x^3 on, |x| <= 0.55; weighted error 2^-29.7.
inline constexpr float tanhSmall[] = {-0x1.55554a0000000p-2f, 0x1.110cee0000000p-3f, -0x1.b91e7e0000000p-5f,
                                      0x1.58e5180000000p-6f, -0x1.9921a00000000p-8f};
/// erf(x) - x, from x on, |x| <= 0.9; weighted error 2^-26.1.
inline constexpr float erfSmall[] = {0x1.06eba60000000p-3f,  -0x1.8126ec0000000p-2f, 0x1.ce1b860000000p-4f,
                                     -0x1.b69b960000000p-6f, 0x1.479c9e0000000p-8f,  -0x1.3ba9ce0000000p-11f};
/// ln(1 - erf(x)), 0.9 <= x <= 4; weighted error 2^-27.6.
inline constexpr float erfLarge[] = {-0x1.c993be0000000p-12f, -0x1.2068400000000p+0f, -0x1.4741f60000000p-1f,
                                     -0x1.a1e42a0000000p-4f,  0x1.5bbf960000000p-6f,  -0x1.6b01640000000p-9f,
                                     0x1.5b46fa0000000p-13f};
/// ln(1 + f) - f + f^2/2, from f^3 on, 1 + f from sqrt(1/2) to sqrt(2); weighted error 2^-27.3.
inline constexpr float log[] = {0x1.5555540000000p-2f,  -0x1.0002280000000p-2f, 0x1.99a02c0000000p-3f,
                                -0x1.5472140000000p-3f, 0x1.22d7200000000p-3f,  -0x1.0d846c0000000p-3f,
                                0x1.056f6e0000000p-3f,  -0x1.38ea5a0000000p-4f};
} // namespace lamina::math::coefficients
#endif
