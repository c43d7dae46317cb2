"""Minimax coefficients of lamina-expand-math: writes lib/Transforms/Math/Coefficients.h.

Each polynomial is found by Remez' exchange algorithm in 60-digit arithmetic. The coefficients are rounded to f32 one at
a time, lowest power first, and the remaining ones fitted again, so that later ones absorb the earlier ones' rounding.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

mp.dps = 60


@dataclass
class Fit:
    """Approximates function(x) by the sum of c_i * x**powers[i] on [low, high]; max |weight(x) * error(x)| is least."""

    name: str
    subject: str
    function: Callable
    weight: Callable
    powers: list[int]
    low: float
    high: float
    single: bool = True
    fixed: dict[int, object] = field(default_factory=dict)


def solve(points, function, weight, powers):
    """Coefficients whose weighted error is +e, -e, +e, ... on len(powers) + 1 points."""
    size = len(powers) + 1
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, x in enumerate(points):
        for column, power in enumerate(powers):
            matrix[row, column] = x**power
        matrix[row, size - 1] = (-1) ** row / weight(x)
        right[row] = function(x)
    return list(mp.lu_solve(matrix, right))[:-1]


def remez(function, weight, powers, low, high, grid=1500):
    """Returns the minimax coefficients and the largest weighted error that was seen on the grid."""
    low, high = mpf(low), mpf(high)
    # Chebyshev-spaced points; the half step keeps x = 0, where a relative error is undefined, off the grid.
    xs = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / grid) for i in range(grid)]
    # Divided by x**powers[0] the basis has no zero inside the interval; the sign of that factor belongs to the weight.
    values, weights = [function(x) for x in xs], [weight(x) * mp.sign(x) ** powers[0] for x in xs]
    table = dict(zip(xs, zip(values, weights)))
    size = len(powers) + 1
    points = [xs[round((i + 0.5) * (grid - 1) / size)] for i in range(size)]
    for _ in range(60):
        coefficients = solve(points, lambda x: table[x][0], lambda x: table[x][1], powers)
        errors = [w * (v - sum(c * x**p for c, p in zip(coefficients, powers))) for x, v, w in zip(xs, values, weights)]
        # The extremum of every run of equal sign; the best alternating window of them is the next reference.
        extrema: list[int] = []
        for i, error in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > size:
            smallest = min(range(len(extrema)), key=lambda i: abs(errors[extrema[i]]))
            if len(extrema) == size + 1 or smallest in (0, len(extrema) - 1):
                extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
            else:  # an inner one leaves with a neighbour, so that the signs still alternate
                neighbour = min((smallest - 1, smallest + 1), key=lambda i: abs(errors[extrema[i]]))
                del extrema[min(smallest, neighbour) : max(smallest, neighbour) + 1]
        worst = max(abs(error) for error in errors)
        if len(extrema) < size:
            break
        points = [xs[i] for i in extrema]
        if worst < 1.001 * min(abs(errors[i]) for i in extrema):
            break
    return coefficients, worst


def fit(spec: Fit):
    """Returns the rounded coefficients and the weighted error that they leave."""
    known: dict[int, mpf] = {p: mpf(v) for p, v in spec.fixed.items()}
    powers = list(spec.powers)

    def rest(x):
        return spec.function(x) - sum(c * x**p for p, c in known.items())

    while powers:
        coefficients, worst = remez(rest, spec.weight, powers, spec.low, spec.high)
        if not spec.single:
            known.update(zip(powers, coefficients))
            break
        known[powers.pop(0)] = mpf(float(np.float32(float(coefficients[0]))))
    grid = [mpf(spec.low) + (mpf(spec.high) - mpf(spec.low)) * (i + mpf(1) / 2) / 2000 for i in range(2000)]
    error = max(abs(spec.weight(x) * (spec.function(x) - sum(c * x**p for p, c in known.items()))) for x in grid)
    return [known[p] for p in spec.powers], error


def relative(function):
    return lambda x: 1 / abs(function(x))


HALF_LN2 = 0.35
ROOT_HALF = -0.2930, 0.4143
FITS = [
    Fit(
        "exp",
        "e^r - 1 - r, from r^2 on, |r| <= ln(2)/2",
        lambda r: mp.expm1(r) - r,
        relative(mp.exp),
        [2, 3, 4, 5, 6],
        -HALF_LN2,
        HALF_LN2,
    ),
    Fit(
        "exp2",
        "2^r - 1, from r on, |r| <= 1/2",
        lambda r: mp.powm1(2, r),
        relative(lambda r: mpf(2) ** r),
        [1, 2, 3, 4, 5, 6],
        -0.501,
        0.501,
    ),
    Fit(
        "exp2Wide",
        "2^r - 1 in f64, from r on, |r| <= 1/2",
        lambda r: mp.powm1(2, r),
        relative(lambda r: mpf(2) ** r),
        [1, 2, 3, 4, 5, 6, 7],
        -0.501,
        0.501,
        single=False,
    ),
    Fit(
        "tanhSmall",
        "tanh(x) - x, from x^3 on, |x| <= 0.55",
        lambda x: mp.tanh(x) - x,
        relative(mp.tanh),
        [3, 5, 7, 9, 11],
        1e-6,
        0.55,
    ),
    Fit(
        "erfSmall",
        "erf(x) - x, from x on, |x| <= 0.9",
        lambda x: mp.erf(x) - x,
        relative(mp.erf),
        [1, 3, 5, 7, 9, 11],
        1e-6,
        0.9,
    ),
    Fit(
        "erfLarge",
        "ln(1 - erf(x)), 0.9 <= x <= 4",
        lambda x: mp.log(mp.erfc(x)),
        lambda x: mp.erfc(x) + mpf("1e-5"),
        [0, 1, 2, 3, 4, 5, 6],
        0.9,
        4.0,
    ),
    Fit(
        "log",
        "ln(1 + f) - f + f^2/2, from f^3 on, 1 + f from sqrt(1/2) to sqrt(2)",
        lambda f: mp.log1p(f) - f + f * f / 2,
        relative(mp.log1p),
        [3, 4, 5, 6, 7, 8, 9, 10],
        *ROOT_HALF,
    ),
    Fit(
        "log2",
        "log2(1 + f) - f / ln(2), from f^2 on, 1 + f from sqrt(1/2) to sqrt(2)",
        lambda f: (mp.log1p(f) - f) / mp.ln2,
        relative(lambda f: mp.log1p(f) / mp.ln2),
        [2, 3, 4, 5, 6, 7, 8, 9, 10],
        *ROOT_HALF,
    ),
    Fit(
        "log10",
        "log10(1 + f) - f / ln(10), from f^2 on, 1 + f from sqrt(1/2) to sqrt(2)",
        lambda f: (mp.log1p(f) - f) / mp.ln10,
        relative(lambda f: mp.log1p(f) / mp.ln10),
        [2, 3, 4, 5, 6, 7, 8, 9, 10],
        *ROOT_HALF,
    ),
    Fit(
        "log2Wide",
        "log2(1 + f) in f64, from f on, 1 + f from sqrt(1/2) to sqrt(2)",
        lambda f: mp.log1p(f) / mp.ln2,
        relative(lambda f: mp.log1p(f) / mp.ln2),
        list(range(1, 15)),
        *ROOT_HALF,
        single=False,
    ),
    Fit(
        "sin",
        "sin(r) - r, from r^3 on, |r| <= pi/4",
        lambda r: mp.sin(r) - r,
        relative(mp.sin),
        [3, 5, 7, 9],
        1e-6,
        0.79,
    ),
    Fit(
        "cos",
        "cos(r) - 1 + r^2/2, from r^4 on, |r| <= pi/4",
        lambda r: mp.cos(r) - 1 + r * r / 2,
        relative(mp.cos),
        [4, 6, 8],
        1e-6,
        0.79,
    ),
    Fit(
        "atan",
        "atan(t) - t, from t^3 on, 0 <= t <= 1",
        lambda t: mp.atan(t) - t,
        relative(mp.atan),
        list(range(3, 21, 2)),
        1e-6,
        1.0,
    ),
    Fit(
        "sinhSmall",
        "sinh(x) - x, from x^3 on, |x| <= 1",
        lambda x: mp.sinh(x) - x,
        relative(mp.sinh),
        [3, 5, 7, 9],
        1e-6,
        1.0,
    ),
]


def text(value, single):
    return f"{float(value).hex()}{'f' if single else ''}"


def main() -> None:
    chosen = set(sys.argv[1:])
    lines = [
        "// Coefficients of the polynomials in lamina-expand-math, made by scripts/math_coefficients.py.",
        "#ifndef LAMINA_TRANSFORMS_MATH_COEFFICIENTS_H",
        "#define LAMINA_TRANSFORMS_MATH_COEFFICIENTS_H",
        "",
        "namespace lamina::math::coefficients {",
    ]
    for spec in FITS:
        if chosen and spec.name not in chosen:
            continue
        values, error = fit(spec)
        print(f"{spec.name}: 2^{float(mp.log(error, 2)):.2f}", file=sys.stderr)
        kind = "float" if spec.single else "double"
        lines.append(f"/// {spec.subject}; weighted error 2^{float(mp.log(error, 2)):.1f}.")
        row = f"inline constexpr {kind} {spec.name}[] = {{"
        items = [text(v, spec.single) for v in values]
        while items:
            end = "," if len(items) > 1 else "};"
            if len(row) + len(items[0]) + 2 > 118:
                lines.append(row.rstrip())
                row = "    "
            row += items.pop(0) + end + " "
        lines.append(row.rstrip())
    lines += ["} // namespace lamina::math::coefficients", "#endif"]
    if not chosen:
        path = Path(__file__).parent.parent / "lib/Transforms/Math/Coefficients.h"
        path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
