"""Runs kernels of prim ops through linalg, with and without tiles, and compares them with the reference interpreter."""

from __future__ import annotations

import math
import re

import numpy as np
from mlir import ir

from lamina import dialects, reference
from lamina._lib import _lamina

LOWERING = (
    "lamina-bufferize-kernels,lamina-vectorize-loops,convert-linalg-to-loops,canonicalize,lamina-expand-math,lamina-expand-bf16,lamina-lower-grid,"
    "lamina-cpu-to-llvm"
)


def lower(text: str, pipeline: str) -> str:
    """Returns the module after a pipeline, as text."""
    with dialects.make_context() as context:
        module = dialects.parse(text, context)
        _lamina.run_pipeline(module.operation, f"builtin.module({pipeline})")
        return str(module)


class Kernel:
    """A compiled kernel.func.

    `convert` and `tile` are the options of the two passes; `tile` None leaves the kernel as one program.
    """

    def __init__(self, text: str, convert: str = "", tile: str | None = ""):
        with dialects.make_context() as context:
            module = dialects.parse(text, context)
            _lamina.run_pipeline(module.operation, f"builtin.module(any(lamina-convert-prim-to-linalg{{{convert}}}))")
            if tile is not None:
                passes = f"any(canonicalize,cse,lamina-tile-kernels{{{tile}}},canonicalize,cse)"
                _lamina.run_pipeline(module.operation, f"builtin.module({passes})")
            self.tiled = str(module)
            function = module.body.operations[0]
            self.name = ir.StringAttr(function.attributes["sym_name"]).value
            self.grid = (
                ir.AffineMapAttr(function.attributes["kernel.grid"]) if "kernel.grid" in function.attributes else None
            )
            self.grid_text = str(self.grid) if self.grid is not None else "affine_map<() -> (1)>"
            _lamina.run_pipeline(module.operation, f"builtin.module({LOWERING})")
            self.executable = _lamina.Executable(_lamina.compile_objects(module.operation))

    def programs(self, symbols: list[int]) -> int:
        """Returns how many programs there are for these values of the symbols."""
        match = re.fullmatch(r"affine_map<\(\)(?:\[(.*?)\])? -> \((.*)\)>", self.grid_text)
        names = {name.strip(): value for name, value in zip((match[1] or "").split(","), symbols, strict=False)}
        # ceildiv as a Python operator of the same precedence.
        exprs = (
            re.sub(r"(\S+|\([^()]*\)) ceildiv (\d+)", r"-(-(\1) // \2)", match[2])
            .replace("floordiv", "//")
            .replace(" mod ", " % ")
        )
        values = eval(f"({exprs},)", {}, names)
        return math.prod(values)

    def __call__(self, ins: list[np.ndarray], outs: list[np.ndarray], symbols: list[int]) -> None:
        """Runs the kernel; outs are written."""
        block = [each.ctypes.data for each in [*ins, *outs]] + symbols
        programs = self.programs(symbols)
        if programs:
            self.executable.launch(self.name, block, programs)


def run_reference(text: str, ins: list[np.ndarray]) -> list[np.ndarray]:
    """Returns what the interpreter makes of the kernel."""
    with dialects.make_context() as context:
        module = dialects.parse(text, context)
        return reference.Interpreter(module).call(_name_of(text), ins)


def _name_of(text: str) -> str:
    return re.search(r"kernel\.func @(\w+)", text)[1]


VARIANTS = {
    "tiled": ("", ""),
    "small_tiles": ("", "pointwise-elements=4 reduce-elements=8 vector-lanes=1 l2-bytes=64 threads=4"),
    "one_program": ("", None),
    "not_merged": ("merge-reductions=false", ""),
    "not_fused": ("fuse=false", ""),
}


def check(
    text: str,
    ins: list[np.ndarray],
    symbols: tuple[int, ...] = (),
    rtol: float = 1e-5,
    atol: float = 1e-5,
    variants=tuple(VARIANTS),
    kernels=None,
) -> None:
    """Compares every variant with the interpreter."""
    expected = run_reference(text, ins)
    for variant in variants:
        key = (text, variant)
        if kernels is not None and key in kernels:
            kernel = kernels[key]
        else:
            kernel = Kernel(text, *VARIANTS[variant])
            if kernels is not None:
                kernels[key] = kernel
        outs = [np.zeros(each.shape, each.dtype) for each in expected]
        # Whatever is not written shows.
        for out in outs:
            out.reshape(-1).view(np.uint8)[...] = 0x5A
        kernel(ins, outs, list(symbols))
        for out, each in zip(outs, expected, strict=True):
            if each.dtype.kind in "iub":
                np.testing.assert_array_equal(out, each, err_msg=f"{variant}\n{kernel.tiled}")
            else:
                np.testing.assert_allclose(
                    out.astype(np.float64),
                    each.astype(np.float64),
                    rtol=rtol,
                    atol=atol,
                    err_msg=f"{variant}\n{kernel.tiled}",
                )
