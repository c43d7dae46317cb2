"""Measures lamina-expand-math: the largest error over f32 and the time of an element, and torch's own on one thread.

    python scripts/measure_math.py [--exhaustive] [--only exp tanh ...]

Every 251st bit pattern of f32 is taken. With --exhaustive, all are taken where the function does not just repeat
the binade before and has not reached its limit (see ACTIVE); this takes minutes.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "test" / "python"))
from math_harness import SIGMOID, Loop, ulp_errors, unary  # noqa: E402

NAMES = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "erf", "atan", "sin", "cos",
         "rsqrt", "sigmoid"]  # fmt: skip
CHUNK = 2**22
STEP = 251
# Magnitudes between which every number is taken; log treats the significand alike in all binades.
ACTIVE = {"exp": (2.0**-26, 105), "tanh": (2.0**-14, 10), "erf": (2.0**-14, 4.5), "log": (2.0**-9, 2.0**9)}
DEFAULT_ACTIVE = (2.0**-14, 128)


def largest_error(values: np.ndarray, exact: np.ndarray, known: float, x: np.ndarray) -> tuple[float, np.float32]:
    """The largest error in ulp, which is looked for only where the value is not the exact one rounded to f32."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = exact.astype(np.float32)
    at = np.flatnonzero((values.view(np.int32) != rounded.view(np.int32)) & ~(np.isnan(values) & np.isnan(rounded)))
    if not len(at):
        return known, np.float32(0)
    errors = ulp_errors(values[at], exact[at])
    worst = int(np.argmax(errors))
    return errors[worst], x[at[worst]]


def patterns(active: tuple[float, float] | None):
    """Arrays of inputs of at most CHUNK elements."""
    spans = [(0, 2**32, STEP)]
    if active is not None:
        low, high = (int(np.float32(bound).view(np.int32)) for bound in active)
        spans += [(low, high, 1), (low + 2**31, high + 2**31, 1)]
    for begin, end, step in spans:
        for start in range(begin, end, CHUNK * step):
            yield (
                np.arange(start, min(start + CHUNK * step, end), step, dtype=np.uint64)
                .astype(np.uint32)
                .view(np.float32)
            )


def accuracy(name: str, loop: Loop, reference, exhaustive: bool) -> str:
    ours = theirs = (0.5, np.float32(0))
    for x in patterns(ACTIVE.get(name, DEFAULT_ACTIVE) if exhaustive else None):
        if name.startswith("log") and name != "log1p":
            x = x[x >= 0]
        if not len(x):
            continue
        tensor = torch.from_numpy(x)
        exact = reference(tensor.double()).numpy()
        ours = max(ours, largest_error(loop(x), exact, 0.5, x), key=lambda e: e[0])
        theirs = max(theirs, largest_error(reference(tensor).numpy(), exact, 0.5, x), key=lambda e: e[0])
    return f"{ours[0]:8.3f} at {ours[1]!s:>15}, torch {theirs[0]:8.3f} at {theirs[1]!s:>15}"


def speed(loop: Loop, reference) -> str:
    """The best of interleaved runs on 8192 elements from 0.01 to 3, all in the first-level cache."""
    x = np.linspace(0.01, 3, 8192, dtype=np.float32)
    y, tensor, result = np.empty_like(x), torch.from_numpy(x), torch.empty(len(x))
    packed = loop.bind(x, y)
    ours, theirs = [], []
    for _ in range(50):
        begin = time.perf_counter()
        for _ in range(20):
            loop.function(packed)
        middle = time.perf_counter()
        for _ in range(20):
            reference(tensor, out=result)
        end = time.perf_counter()
        ours.append((middle - begin) / 20 / len(x) * 1e9)
        theirs.append((end - middle) / 20 / len(x) * 1e9)
    return f"{min(ours):6.3f} ns, torch {min(theirs):6.3f} ns"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exhaustive", action="store_true", help="all inputs that matter")
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES, help="the functions to measure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.only:
        loop = Loop(SIGMOID) if name == "sigmoid" else unary(name)
        reference = getattr(torch, name)
        error = accuracy(name, loop, reference, options.exhaustive)
        print(f"{name:8} {error}   {speed(loop, reference)}", flush=True)


if __name__ == "__main__":
    main()
