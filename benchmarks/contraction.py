"""Contractions and convolutions on one thread against torch: medians of interleaved runs, torch's time / ours.

The time is the thread's own, so that other programs on the machine disturb less.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "test" / "python"))
from contraction_harness import Case, Program, random
from test_convolution import convolution

# Scratch on the stack, as the grid's lowering does it: a call allocates nothing.
PREPARE = "func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=4194304}),"


def matmul(m, n, k, transposed=False, element="f32", layout="static"):
    rng = np.random.default_rng(0)
    a, b = random(rng, (m, k), element), random(rng, (n, k) if transposed else (k, n), element)
    case = Case(
        "m n K",
        ("m, K", "n, K" if transposed else "K, n", "m, n"),
        (a, b, np.empty((m, n), np.float32)),
        (element, element, "f32"),
        (layout,) * 3,
    )
    left, right = (torch.from_numpy(np.asarray(x, np.float32)) for x in (a, b))
    if element == "bf16":
        left, right = left.bfloat16(), right.bfloat16()
    right = right.t() if transposed else right
    out = torch.empty(m, n, dtype=left.dtype)
    return case, lambda: torch.mm(left, right, out=out)


def packed(m, n, k, width=48):
    rng = np.random.default_rng(0)
    a, b = random(rng, (m, k), "f32"), random(rng, (n, k), "f32")
    panels = np.zeros((-(-n // width) * width, k), np.float32)
    panels[:n] = b
    panels = np.ascontiguousarray(panels.reshape(-1, width, k).transpose(0, 2, 1))
    case = Case(
        "m n K",
        ("m, K", f"n floordiv {width}, K, n mod {width}", "m, n"),
        (a, panels, np.empty((m, n), np.float32)),
        ("f32",) * 3,
        attributes=f"lamina.contraction, lamina.packed_b = {width} : i64",
    )
    left, right, out = torch.from_numpy(a), torch.from_numpy(b).t(), torch.empty(m, n)
    return case, lambda: torch.mm(left, right, out=out)


def batched(b, m, n, k, transposed=False):
    rng = np.random.default_rng(0)
    x, y = random(rng, (b, m, k), "f32"), random(rng, (b, n, k) if transposed else (b, k, n), "f32")
    case = Case(
        "b m n K",
        ("b, m, K", "b, n, K" if transposed else "b, K, n", "b, m, n"),
        (x, y, np.empty((b, m, n), np.float32)),
        ("f32",) * 3,
    )
    left, right, out = torch.from_numpy(x), torch.from_numpy(y), torch.empty(b, m, n)
    right = right.transpose(1, 2) if transposed else right
    return case, lambda: torch.bmm(left, right, out=out)


def conv(groups=0, **arguments):
    case, _ = convolution(np.random.default_rng(0), groups=groups, **arguments)
    x, w, _ = (torch.from_numpy(t) for t in case.arrays)
    if groups:
        x, w = x.flatten(1, 2), w.flatten(0, 1)
    return case, lambda: torch.conv2d(x, w, None, arguments.get("stride", 1), 0, 1, max(groups, 1))


CASES = {
    "mm 1024^3": lambda: matmul(1024, 1024, 1024),
    "mm 1024^3 dynamic": lambda: matmul(1024, 1024, 1024, layout="dynamic"),
    "mm 1000^3": lambda: matmul(1000, 1000, 1000),
    "mm 128x768x3072": lambda: matmul(128, 3072, 768),
    "mm 128x768x3072 B^T": lambda: matmul(128, 3072, 768, True),
    "mm 128x768x3072 prepacked": lambda: packed(128, 3072, 768),
    "mm 128x3072x768 B^T": lambda: matmul(128, 768, 3072, True),
    "mm 32x512x512": lambda: matmul(32, 512, 512),
    "mm 32x512x512 B^T": lambda: matmul(32, 512, 512, True),
    "mm 32x512x512 prepacked": lambda: packed(32, 512, 512),
    "mm 512x512x3001 B^T": lambda: matmul(512, 3001, 512, True),
    "mv 1x1024x1024 B^T": lambda: matmul(1, 1024, 1024, True),
    "mv 1x1024x1024": lambda: matmul(1, 1024, 1024),
    "bmm 12x128x64x128": lambda: batched(12, 128, 128, 64),
    "bmm 12x128x64x128 B^T": lambda: batched(12, 128, 128, 64, True),
    "bmm 12x128x128x64": lambda: batched(12, 128, 64, 128),
    "mm bf16 256x512x512": lambda: matmul(256, 512, 512, element="bf16"),
    "conv 3x3 64-64 56": lambda: conv(batch=1, inputs=64, outputs=64, size=(58, 58), kernel=(3, 3)),
    "conv 1x1 256-64 56": lambda: conv(batch=1, inputs=256, outputs=64, size=(56, 56), kernel=(1, 1)),
    "conv 7x7 s2 3-64 224": lambda: conv(batch=1, inputs=3, outputs=64, size=(229, 229), kernel=(7, 7), stride=2),
    "conv 3x3 s2 128-128 28": lambda: conv(batch=1, inputs=128, outputs=128, size=(57, 57), kernel=(3, 3), stride=2),
    "conv 3x3 512-512 7": lambda: conv(batch=1, inputs=512, outputs=512, size=(9, 9), kernel=(3, 3)),
    "conv 3x3 depthwise 144 56": lambda: conv(batch=1, groups=144, inputs=1, outputs=1, size=(58, 58), kernel=(3, 3)),
}


def measure(case, run_torch, seconds: float, options: str) -> tuple[float, float, float]:
    """Medians in ms of torch and of ours, and the time to compile."""
    start = time.perf_counter()
    run = Program([case], options, PREPARE).bind(0, *case.arrays)
    compiled = time.perf_counter() - start
    times = ([], [])
    end = time.perf_counter() + seconds
    run(), run_torch()
    while time.perf_counter() < end or len(times[0]) < 5:
        for function, samples in zip((run_torch, run), times, strict=True):
            start = time.thread_time()
            function()
            samples.append(time.thread_time() - start)
    return (*(statistics.median(x) * 1e3 for x in times), compiled * 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--options", default="", help="options of lamina-lower-contractions")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'case':28} {'torch ms':>9} {'ours ms':>9} {'ratio':>6} {'compile ms':>10}")
    for name, make in CASES.items():
        if arguments.only in name:
            theirs, ours, compiled = measure(*make(), arguments.seconds, arguments.options)
            print(f"{name:28} {theirs:9.3f} {ours:9.3f} {theirs / ours:6.2f} {compiled:10.0f}", flush=True)


if __name__ == "__main__":
    main()
