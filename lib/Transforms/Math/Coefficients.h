// Coefficients of the polynomials in lamina-expand-math, made by scripts/math_coefficients.py.
#ifndef LAMINA_TRANSFORMS_MATH_COEFFICIENTS_H
#define LAMINA_TRANSFORMS_MATH_COEFFICIENTS_H

namespace lamina::math::coefficients {
/// e^r - 1 - r, from r^2 on, |r| <= ln(2)/2; weighted error 2^-28.1.
inline constexpr float exp[] = {0x1.fffffc0000000p-2f, 0x1.55548c0000000p-3f, 0x1.5558b80000000p-5f,
                                0x1.123e620000000p-7f, 0x1.6a4eae0000000p-10f};
/// 2^r - 1, from r on, |r| <= 1/2; weighted error 2^-28.3.
inline constexpr float exp2[] = {0x1.62e4300000000p-1f, 0x1.ebfbdc0000000p-3f,  0x1.c6af7a0000000p-5f,
                                 0x1.3b2de00000000p-7f, 0x1.5f09a40000000p-10f, 0x1.416d1c0000000p-13f};
/// 2^r - 1 in f64, from r on, |r| <= 1/2; weighted error 2^-34.3.
inline constexpr double exp2Wide[] = {0x1.62e42ff0e678fp-1, 0x1.ebfbe07910502p-3,  0x1.c6b08ab8694e8p-5,
                                      0x1.3b29f20c3c83cp-7, 0x1.5d8a8af65a603p-10, 0x1.445ddfe4cd5fep-13,
                                      0x1.fde4460e55799p-17};
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
/// log2(1 + f) - f / ln(2), from f^2 on, 1 + f from sqrt(1/2) to sqrt(2); weighted error 2^-27.7.
inline constexpr float log2[] = {-0x1.7154700000000p-1f, 0x1.ec70940000000p-2f,  -0x1.715afe0000000p-2f,
                                 0x1.277f440000000p-2f,  -0x1.eaa2480000000p-3f, 0x1.a2c9d20000000p-3f,
                                 -0x1.87f8000000000p-3f, 0x1.7f28a40000000p-3f,  -0x1.c39cb40000000p-4f};
/// log10(1 + f) - f / ln(10), from f^2 on, 1 + f from sqrt(1/2) to sqrt(2); weighted error 2^-27.7.
inline constexpr float log10[] = {-0x1.bcb7aa0000000p-3f, 0x1.287a700000000p-3f,  -0x1.bcbf520000000p-4f,
                                  0x1.63d06c0000000p-4f,  -0x1.276a520000000p-4f, 0x1.f84af00000000p-5f,
                                  -0x1.d7910e0000000p-5f, 0x1.cd113e0000000p-5f,  -0x1.1096620000000p-5f};
/// log2(1 + f) in f64, from f on, 1 + f from sqrt(1/2) to sqrt(2); weighted error 2^-38.5.
inline constexpr double log2Wide[] = {
    0x1.71547652b58d5p+0,  -0x1.71547651b5c96p-1, 0x1.ec709de34edf9p-2,  -0x1.7154788a90f23p-2, 0x1.2776b6c80e283p-2,
    -0x1.ec6f2cc6ba395p-3, 0x1.a61b7ddb27dd3p-3,  -0x1.7188f48be8f2cp-3, 0x1.481fd4c0e0a6ap-3,  -0x1.23d4d0bc9eae1p-3,
    0x1.0acaba57cc315p-3,  -0x1.13bd8fc75e185p-3, 0x1.0f74f1bc8c7bbp-3,  -0x1.1dc052c0e2110p-4};
/// sin(r) - r, from r^3 on, |r| <= pi/4; weighted error 2^-32.5.
inline constexpr float sin[] = {-0x1.5555560000000p-3f, 0x1.1111740000000p-7f, -0x1.a0590e0000000p-13f,
                                0x1.7c090e0000000p-19f};
/// cos(r) - 1 + r^2/2, from r^4 on, |r| <= pi/4; weighted error 2^-32.9.
inline constexpr float cos[] = {0x1.55554a0000000p-5f, -0x1.6c0c1e0000000p-10f, 0x1.99e3360000000p-16f};
/// atan(t) - t, from t^3 on, 0 <= t <= 1; weighted error 2^-28.5.
inline constexpr float atan[] = {-0x1.55553e0000000p-2f, 0x1.9991e40000000p-3f,  -0x1.2420860000000p-3f,
                                 0x1.c08c500000000p-4f,  -0x1.5809300000000p-4f, 0x1.da2aa00000000p-5f,
                                 -0x1.fd80040000000p-6f, 0x1.6427e00000000p-7f,  -0x1.d3614e0000000p-10f};
/// sinh(x) - x, from x^3 on, |x| <= 1; weighted error 2^-31.6.
inline constexpr float sinhSmall[] = {0x1.5555560000000p-3f, 0x1.1110e00000000p-7f, 0x1.a022bc0000000p-13f,
                                      0x1.756c1e0000000p-19f};
} // namespace lamina::math::coefficients
#endif
