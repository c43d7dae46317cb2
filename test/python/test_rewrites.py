"""Rewrites of prim programs keep their values: random programs, run before and after by the reference interpreter."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from mlir import ir
from mlir.passmanager import PassManager

from lamina import dialects, reference

CONTEXT = dialects.make_context()
PIPELINES = [
    "canonicalize",
    "func.func(lamina-simplify-reshapes)",
    "canonicalize,func.func(lamina-simplify-reshapes),canonicalize",
    "func.func(lamina-sink-below-concatenates)",
    "func.func(lamina-simplify-reshapes,lamina-sink-below-concatenates),canonicalize",
]


class Generator:
    """A random straight-line program on f32 tensors whose values are small integers, so that sums are exact.

    Every size is written as a constant, or as `?` with an expression over s0, whose value is `symbol`.
    """

    def __init__(self, seed: int, symbol: int | None) -> None:
        self.random = random.Random(seed)
        self.symbol = symbol
        self.lines: list[str] = []
        self.values: list[tuple[str, tuple[int, ...], tuple[str, ...]]] = []
        self.args: list[tuple[int, ...]] = []
        self.header: list[str] = []

    # A dimension is a pair: its size in this run, and its expression ("" for a constant).

    def type(self, shape: tuple[int, ...], exprs: tuple[str, ...]) -> str:
        return (
            "tensor<"
            + "".join(("?" if expr else str(size)) + "x" for size, expr in zip(shape, exprs, strict=True))
            + "f32>"
        )

    def list_sizes(self, shape: tuple[int, ...], exprs: tuple[str, ...]) -> str:
        return ", ".join(expr or str(size) for size, expr in zip(shape, exprs, strict=True))

    def sizes(self, shape: tuple[int, ...], exprs: tuple[str, ...]) -> str:
        return f" sizes [{self.list_sizes(shape, exprs)}]" if any(exprs) else ""

    def emit(self, text: str, shape: tuple[int, ...], exprs: tuple[str, ...]) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, shape, exprs))
        return name

    def add_argument(self, shape: tuple[int, ...], exprs: tuple[str, ...]) -> None:
        name = f"%a{len(self.args)}"
        attr = f" {{prim.sizes = affine_map<()[s0] -> ({self.list_sizes(shape, exprs)})>}}" if any(exprs) else ""
        self.header.append(f"{name}: {self.type(shape, exprs)}{attr}")
        self.args.append(shape)
        self.values.append((name, shape, exprs))

    def choose_dim(self) -> tuple[int, str]:
        if self.symbol is not None and self.random.random() < 0.5:
            return self.symbol, "s0"
        return self.random.choice([1, 2, 3, 4]), ""

    def step(self) -> None:
        pick = self.random.choice
        x, shape, exprs = pick(self.values[-6:])
        kind = pick(
            [
                "unary",
                "binary",
                "scale",
                "bias",
                "merge",
                "merge",
                "split",
                "split",
                "transpose",
                "dot",
                "reduce",
                "slice",
                "concatenate",
            ]
        )
        type = self.type(shape, exprs)
        if kind == "unary":
            self.emit(f"prim.{pick(['neg', 'abs', 'sign'])} {x} : {type}", shape, exprs)
        elif kind == "binary":
            y = pick([name for name, *rest in self.values if rest == [shape, exprs]])
            self.emit(f"prim.{pick(['add', 'sub', 'max', 'min'])} {x}, {y} : {type}", shape, exprs)
        elif kind == "scale":
            scalar = self.emit(f"prim.constant dense<{pick(['0.0', '-0.0', '1.0', '2.0'])}> : tensor<f32>", (), ())
            y = self.emit(
                f"prim.broadcast {scalar} dims []{self.sizes(shape, exprs)} : tensor<f32> to {type}", shape, exprs
            )
            self.emit(f"prim.{pick(['add', 'sub', 'min'])} {x}, {y} : {type}", shape, exprs)
        elif kind == "bias":
            dims = sorted(self.random.sample(range(len(shape)), self.random.randint(0, len(shape))))
            part, part_exprs = tuple(shape[dim] for dim in dims), tuple(exprs[dim] for dim in dims)
            self.add_argument(part, part_exprs)
            y = self.emit(
                f"prim.broadcast {self.values[-1][0]} dims {dims}{self.sizes(shape, exprs)} : "
                f"{self.type(part, part_exprs)} to {type}",
                shape,
                exprs,
            )
            self.emit(f"prim.add {x}, {y} : {type}", shape, exprs)
        elif kind == "merge" and len(shape) > 1:
            at = self.random.randrange(len(shape) - 1)
            size, expr = shape[at] * shape[at + 1], ""
            if exprs[at] or exprs[at + 1]:
                left, right = (exprs[k] or str(shape[k]) for k in (at, at + 1))
                expr = f"({left}) * ({right})"
            self.reshape(x, shape, exprs, (*shape[:at], size, *shape[at + 2 :]), (*exprs[:at], expr, *exprs[at + 2 :]))
        elif kind == "split" and shape:
            # Only sizes whose factors are known from an earlier value, or constants.
            candidates = [rest for _, *rest in self.values if math.prod(rest[0]) == math.prod(shape)]
            if self.symbol is None:
                at = self.random.randrange(len(shape))
                factor = pick([k for k in range(1, shape[at] + 1) if shape[at] % k == 0] or [1])
                fine = (*shape[:at], factor, shape[at] // factor, *shape[at + 1 :])
                self.reshape(x, shape, exprs, fine, ("",) * len(fine))
            else:
                fine, fine_exprs = pick([rest for rest in candidates if self.degree(rest[1]) == self.degree(exprs)])
                self.reshape(x, shape, exprs, fine, fine_exprs)
        elif kind == "transpose":
            order = self.random.sample(range(len(shape)), len(shape))
            out, out_exprs = tuple(shape[k] for k in order), tuple(exprs[k] for k in order)
            self.emit(f"prim.transpose {x} {order} : {type} to {self.type(out, out_exprs)}", out, out_exprs)
        elif kind == "dot" and shape:
            contract = self.random.randrange(len(shape))
            batch = [k for k in range(len(shape)) if k != contract and self.random.random() < 0.4]
            if self.random.random() < 0.5:
                batch = batch[::-1]
            free = [self.choose_dim() for _ in range(self.random.randint(0, 1))]
            dims = [(shape[k], exprs[k]) for k in [*batch, contract]] + free
            order = self.random.sample(range(len(dims)), len(dims))
            w_shape, w_exprs = tuple(dims[k][0] for k in order), tuple(dims[k][1] for k in order)
            self.add_argument(w_shape, w_exprs)
            w = self.values[-1][0]
            rhs_batch = [order.index(k) for k in range(len(batch))]
            rest = [k for k in range(len(shape)) if k != contract and k not in batch]
            out_dims = [(shape[k], exprs[k]) for k in [*batch, *rest]] + free
            out, out_exprs = tuple(d[0] for d in out_dims), tuple(d[1] for d in out_dims)
            self.emit(
                f"prim.dot_general {x}, {w} batch {batch} x {rhs_batch} contract [{contract}] x [{order.index(len(batch))}] "
                f": ({type}, {self.type(w_shape, w_exprs)}) -> {self.type(out, out_exprs)}",
                out,
                out_exprs,
            )
            # Keep values small.
            name, shape, exprs = self.values[-1]
            self.emit(f"prim.sign {name} : {self.type(shape, exprs)}", shape, exprs)
        elif kind == "reduce" and shape:
            dims = self.random.sample(range(len(shape)), self.random.randint(0, len(shape)))
            rest = [k for k in range(len(shape)) if k not in dims]
            out, out_exprs = tuple(shape[k] for k in rest), tuple(exprs[k] for k in rest)
            self.emit(
                f"prim.reduce <{pick(['max', 'min', 'sum'])}> {x} dims {dims} : {type} to {self.type(out, out_exprs)}",
                out,
                out_exprs,
            )
            name, shape, exprs = self.values[-1]
            self.emit(f"prim.sign {name} : {self.type(shape, exprs)}", shape, exprs)
        elif kind == "slice" and shape and not any(exprs):
            starts = [self.random.randint(0, size) for size in shape]
            limits = [self.random.randint(start, size) for start, size in zip(starts, shape, strict=True)]
            steps = [self.random.randint(1, 3) for _ in shape]
            out = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, steps, strict=True))
            self.emit(
                f"prim.slice {x} {starts} to {limits} step {steps} : {type} to {self.type(out, exprs)}", out, exprs
            )

        elif kind == "concatenate" and shape:
            # Parts of the value, changed or not, one after the other.
            at = pick([k for k in range(len(shape)) if not exprs[k]] or [None])
            if at is None:
                return
            parts = []
            for _ in range(self.random.randint(1, 3)):
                part, size = x, shape[at]
                if not any(exprs) and self.random.random() < 0.7:
                    limit = self.random.randint(0, size)
                    start = self.random.randint(0, limit)
                    out = (*shape[:at], limit - start, *shape[at + 1 :])
                    starts = [start if k == at else 0 for k in range(len(shape))]
                    limits = [limit if k == at else shape[k] for k in range(len(shape))]
                    text = f"prim.slice {x} {starts} to {limits} step {[1] * len(shape)} : {type} to {self.type(out, exprs)}"
                    part, size = self.emit(text, out, exprs), limit - start
                own = (*shape[:at], size, *shape[at + 1 :])
                for _ in range(self.random.randint(0, 2)):
                    part = self.emit(
                        f"prim.{pick(['neg', 'abs', 'sign'])} {part} : {self.type(own, exprs)}", own, exprs
                    )
                parts.append((part, own))
            total = (*shape[:at], sum(own[at] for _, own in parts), *shape[at + 1 :])
            types = ", ".join(self.type(own, exprs) for _, own in parts)
            names = ", ".join(name for name, _ in parts)
            self.emit(f"prim.concatenate {names} dim {at} : ({types}) -> {self.type(total, exprs)}", total, exprs)

    def degree(self, exprs: tuple[str, ...]) -> int:
        """The power of s0 in the number of elements."""
        return sum(expr.count("s0") for expr in exprs)

    def reshape(self, x: str, shape: tuple, exprs: tuple, out: tuple, out_exprs: tuple) -> None:
        self.emit(
            f"prim.reshape {x}{self.sizes(out, out_exprs)} : {self.type(shape, exprs)} to {self.type(out, out_exprs)}",
            out,
            out_exprs,
        )

    def generate(self, steps: int) -> str:
        for _ in range(2):
            dims = [self.choose_dim() for _ in range(3)]
            self.add_argument(tuple(d[0] for d in dims), tuple(d[1] for d in dims))
        for _ in range(steps):
            self.step()
        results = self.random.sample(self.values, min(3, len(self.values))) + [self.values[-1]]
        names = ", ".join(name for name, *_ in results)
        types = ", ".join(self.type(shape, exprs) for _, shape, exprs in results)
        # The symbol is found from an argument that has it bare.
        symbol = "" if self.symbol is None else ", %s: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}"
        body = "\n  ".join(self.lines)
        return f"func.func @main({', '.join(self.header)}{symbol}) -> ({types}) {{\n  {body}\n  return {names} : {types}\n}}"


def check(seed: int, symbol: int | None, pipeline: str) -> None:
    generator = Generator(seed, symbol)
    text = generator.generate(12)
    numbers = np.random.default_rng(seed)
    arrays = [numbers.integers(-1, 2, shape).astype(np.float32) for shape in generator.args]
    arrays = [np.where(array == 0, np.float32(-0.0), array).astype(np.float32) for array in arrays]
    if symbol is not None:
        arrays.append(np.zeros(symbol, np.float32))
    module = ir.Module.parse(text, CONTEXT)
    expected = reference.run(module, *arrays)
    PassManager.parse(f"builtin.module({pipeline})", CONTEXT).run(module.operation)
    module.operation.verify()
    for actual, value in zip(reference.run(module, *arrays), expected, strict=True):
        assert actual.shape == value.shape, text
        np.testing.assert_array_equal(actual, value, err_msg=text)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("seed", range(60))
def test_static(seed: int, pipeline: str) -> None:
    check(seed, None, pipeline)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("symbol", [1, 5])
def test_dynamic(seed: int, symbol: int, pipeline: str) -> None:
    check(seed, symbol, pipeline)
