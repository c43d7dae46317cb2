"""How far a right implementation's results may be from the interpreter's.

Transcendental functions and the order of a reduction are an implementation's choice, so its results differ from the
interpreter's by a few units in the last place, and what is computed from them by more, or, after a comparison, by
anything. This module runs a function as the interpreter does and carries with every element a bound on that difference:
0 where the result is fixed bit by bit, inf where it may be anything.

The bounds are first-order estimates on the actual data: an elementwise op is evaluated at the corners of its operands'
intervals; a reduction or contraction adds `count * eps` of the sum of magnitudes. Integers and bools are right or
unknown. Functions without kernels only: run the `prim` form of a program for its bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir

from . import contraction, elementwise, reduction, shape
from .errors import InvalidModuleError
from .interpreter import Interpreter, _Frame
from .rules import Call
from .values import Array, is_float, is_narrow

ULPS = 8
"""Units in the last place by which a transcendental function of f32 or f64 may be off; f16 and bf16 round it."""

_EXACT = {"neg", "abs", "sign", "not", "ceil", "floor", "round", "trunc", "sqrt"}
_PERIODIC = {"sin", "cos", "tan"}


@dataclass(frozen=True)
class Bounded:
    """A result and, for each element, how far from it a right implementation may be (float64)."""

    value: Array
    bound: Array


def run_with_bounds(
    module: ir.Module | ir.OpView | ir.Operation, *arrays: Array, function: str = "main"
) -> list[Bounded]:
    """Runs a function of a `prim` module and returns its results with their bounds.

    Args:
        module: a module, or a function.
        arrays: one array an argument.
        function: symbol name.
    """
    return _BoundedInterpreter(module).call_with_bounds(function, arrays)


def find_mismatch(actual: Array, expected: Bounded) -> str | None:
    """Returns what is wrong with a result, None if it is within its bounds.

    NaN agrees with NaN, infinities with equal ones, and zeros of either sign with each other.
    """
    value, bound = expected.value, expected.bound
    if actual.dtype != value.dtype or actual.shape != value.shape:
        return f"{actual.dtype.name}{list(actual.shape)} is not {value.dtype.name}{list(value.shape)}"
    wrong = _distance(actual, value) > bound
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ; the first, {list(place)}, is {actual[place]},"
        f" not {value[place]} to within {bound[place]:g}"
    )


class _BoundedInterpreter(Interpreter):
    """The interpreter, with a bound beside each value."""

    def __init__(self, module: ir.Module | ir.OpView | ir.Operation) -> None:
        super().__init__(module)
        self._bounds: dict[ir.Value, Array] = {}

    def call_with_bounds(self, name: str, args: Sequence[Array]) -> list[Bounded]:
        values = self.call(name, args)
        returned = list(self._get_function(name).regions[0].blocks[0].operations)[-1].operands
        return [Bounded(value, self._get(each, value)) for value, each in zip(values, returned, strict=True)]

    def _get(self, value: ir.Value, array: Array) -> Array:
        return self._bounds[value] if value in self._bounds else np.zeros(array.shape)

    def _execute(self, op: ir.Operation, operands: Sequence[Array], frame: _Frame) -> Sequence[Array]:
        if not op.name.startswith("prim."):
            raise InvalidModuleError(f"there are no bounds for {op.name}")
        results = super()._execute(op, operands, frame)
        bounds = [self._get(value, array) for value, array in zip(op.operands, operands, strict=True)]
        rule = _RULES.get(op.name, _bound_elementwise)
        with np.errstate(all="ignore"):
            new = rule(Call(op, frame.symbols), operands, bounds, results)
        for value, array, bound in zip(op.results, results, new, strict=True):
            if not is_float(array.dtype):
                bound = np.where(bound > 0, np.inf, 0.0)
            self._bounds[value] = np.broadcast_to(np.where(np.isnan(bound), np.inf, bound), array.shape)
        return results


# ---- pieces -------------------------------------------------------------------


def _limits(dtype: np.dtype[Any]) -> Any:
    finfo: Any = ml_dtypes.finfo
    return finfo(dtype)


def _distance(a: Array, b: Array) -> Array:
    """Returns |a - b| in float64; 0 where both are NaN or equal, inf where only one is a number."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(x) & np.isnan(y))
    with np.errstate(all="ignore"):
        distance = np.abs(x - y)
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def _rounding(result: Array, ulps: float = 1) -> Array:
    """Returns the size of `ulps` units in the last place of floats, at least of the smallest normal number."""
    limits = _limits(result.dtype)
    magnitude = np.abs(result.astype(np.float64))
    unit = ulps * float(limits.eps) * np.maximum(magnitude, float(limits.tiny))
    # The value that rounds to infinity in one implementation is the greatest number in another.
    return np.where(np.isinf(magnitude), 0.0, unit)


def _signed_zeros(result: Array) -> Array:
    """Returns a bound that says that a zero may have either sign: what is computed from it may differ."""
    return np.where(result == 0, float(_limits(result.dtype).smallest_subnormal), 0.0)


def _accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if is_narrow(dtype) else dtype


def _finish_sum(result: Array, operands: Sequence[Array], bound: Array, magnitude: Array, finite: Array) -> Array:
    """Returns the bound of a reduction: unknown where the magnitudes overflow, exact where an operand is not finite."""
    limit = float(_limits(_accumulator(operands[0].dtype)).max)
    bound = bound + np.where(bound > 0, _rounding(result), 0.0) + _signed_zeros(result)
    bound = np.where(magnitude > min(limit, float(_limits(result.dtype).max)) / 4, np.inf, bound)
    return np.where(finite, bound, 0.0)


# ---- elementwise --------------------------------------------------------------


def _bound_elementwise(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    (result,) = results
    name = call.op.name.removeprefix("prim.")
    rule = elementwise.RULES[call.op.name]
    unknown = np.any([np.isinf(bound) for bound in bounds], axis=0)
    spread = np.zeros(result.shape)
    if any((bound > 0).any() for bound in bounds):
        ends = [
            _get_ends(operand, np.where(unknown, 0, bound)) for operand, bound in zip(operands, bounds, strict=True)
        ]
        for corner in itertools.product(*ends):
            spread = np.maximum(spread, _distance(np.asarray(rule(call, corner)), result))
    if name == "select":
        unknown = np.isinf(bounds[0]) | np.where(operands[0], np.isinf(bounds[1]), np.isinf(bounds[2]))
    if is_float(result.dtype):
        if name in _TRANSCENDENTAL or (name == "pow"):
            ulps = 2 if is_narrow(result.dtype) else ULPS
            off = np.maximum(_rounding(result, ulps), _rounding(np.ones_like(result), ulps) if name in _PERIODIC else 0)
            spread = spread + off
        elif name in ("max", "min"):
            spread = spread + _signed_zeros(result)
        spread = spread + np.where(spread > 0, _rounding(result), 0.0)
    return [np.where(unknown, np.inf, spread)]


def _get_ends(operand: Array, bound: Array) -> list[Array]:
    """Returns the operand, or both ends of its interval where it has a bound."""
    if not is_float(operand.dtype) or not (bound > 0).any():
        return [operand]
    center = operand.astype(np.float64)
    ends = (np.where(bound > 0, center + sign * bound, center) for sign in (-1, 1))
    return [np.where(bound > 0, end.astype(operand.dtype), operand) for end in ends]


_TRANSCENDENTAL = (set(elementwise.UNARY) - _EXACT) | {"atan2"}


# ---- rearrangement ------------------------------------------------------------


def _bound_rearranged(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    return [np.asarray(shape.RULES[call.op.name](call, bounds))]


def _bound_nothing(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    return [np.zeros(results[0].shape)]


def _bound_gather(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    if any((bound > 0).any() for bound in bounds[1:]):
        return [np.full(results[0].shape, np.inf)]
    return [np.asarray(shape.gather(call, [bounds[0], *operands[1:]]))]


def _bound_scatter(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    known = not any((bound > 0).any() for bound in bounds)
    return [np.full(results[0].shape, 0.0 if known else np.inf)]


# ---- reductions ---------------------------------------------------------------


def _bound_combination(
    combiner: str, operand: Array, bound: Array, result: Array, over: Callable[[np.ufunc, Array], Array]
) -> Array:
    """Returns the bound of a combination of elements.

    Args:
        combiner: which.
        operand: the elements.
        bound: their bounds.
        result: the combinations.
        over: combines an array by a ufunc over the same elements.
    """
    unknown = over(np.logical_or, np.isinf(bound) | ((bound > 0) & (not is_float(operand.dtype))))
    if not is_float(operand.dtype):
        return np.where(unknown, np.inf, 0.0)
    bound = np.where(np.isinf(bound), 0.0, bound)
    if combiner in ("max", "min"):
        spread = over(np.maximum, np.abs(bound))
        return np.where(unknown, np.inf, spread + _signed_zeros(result))
    values = operand.astype(np.float64)
    finite = over(np.logical_and, np.isfinite(values))
    magnitudes = np.where(np.isfinite(values), np.abs(values), 0.0)
    ufunc = reduction.COMBINERS[combiner]
    magnitude = over(ufunc, magnitudes)
    count = over(np.add, np.ones(operand.shape))
    eps = float(_limits(_accumulator(operand.dtype)).eps)
    off = over(ufunc, magnitudes + bound) - magnitude + np.where(count > 1, count * eps * magnitude, 0.0)
    if combiner == "prod":  # a product may overflow or vanish on the way in one order and not in another
        extreme = over(np.multiply, np.maximum(magnitudes, 1)), over(np.multiply, np.maximum(1 / magnitudes, 1))
        magnitude = np.maximum(magnitude, np.maximum(*extreme))
    return np.where(unknown, np.inf, _finish_sum(result, [operand], off, magnitude, finite))


def _bound_reduce(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    dims = tuple(call.integers("dims"))

    def over(ufunc: np.ufunc, array: Array) -> Array:
        return _reduce(ufunc, array, dims)

    return [_bound_combination(call.case("combiner"), operands[0], bounds[0], results[0], over)]


def _bound_window(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    combiner = call.case("combiner")
    fill = reduction.identity(combiner, operands[0].dtype)
    values = reduction.stack_windows(call, operands[0], fill)
    spreads = reduction.stack_windows(call, bounds[0], np.array(0.0))

    def over(ufunc: np.ufunc, array: Array) -> Array:
        return _reduce(ufunc, array, (0,))

    return [_bound_combination(combiner, values, spreads, results[0], over)]


def _bound_scan(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    def over(ufunc: np.ufunc, array: Array) -> Array:
        return np.asarray(ufunc.accumulate(array, axis=call.integer("dim")))

    return [_bound_combination(call.case("combiner"), operands[0], bounds[0], results[0], over)]


def _reduce(ufunc: np.ufunc, array: Array, dims: tuple[int, ...]) -> Array:
    """Combines over dimensions; the maximum of no bounds is 0."""
    if ufunc is np.maximum:
        return np.asarray(ufunc.reduce(array, axis=dims, initial=0.0))
    return np.asarray(ufunc.reduce(array, axis=dims))


def _bound_arg_reduce(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    return [np.where((_without_zeros(operands[0], bounds[0]) > 0).any(axis=call.integer("dim")), np.inf, 0.0)]


def _bound_sort(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    bound = bounds[0]
    spread = np.maximum.reduce(bound, axis=call.integer("dim"), initial=0.0, keepdims=True)
    return [np.broadcast_to(spread, bound.shape), np.broadcast_to(np.where(spread > 0, np.inf, 0.0), bound.shape)]


def _without_zeros(operand: Array, bound: Array) -> Array:
    """Returns the bounds without those that only say that a zero has either sign, which no order sees."""
    if not is_float(operand.dtype):
        return bound
    return np.where((operand == 0) & (bound <= float(_limits(operand.dtype).smallest_subnormal)), 0.0, bound)


# ---- contractions -------------------------------------------------------------


def _bound_contraction(
    call: Call, operands: Sequence[Array], bounds: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    (result,) = results
    product = contraction.multiply if call.op.name == "prim.dot_general" else contraction.convolve
    touched = [
        np.isinf(bound) | ((bound > 0) & (not is_float(each.dtype)))
        for bound, each in zip(bounds, operands, strict=True)
    ]
    ones = [np.ones(operand.shape) for operand in operands]
    unknown = (
        product(call, touched[0].astype(np.float64), ones[1]) + product(call, ones[0], touched[1].astype(np.float64))
    ) > 0
    if not is_float(result.dtype):
        return [np.where(unknown, np.inf, 0.0)]
    values = [operand.astype(np.float64) for operand in operands]
    infinite = [(~np.isfinite(value)).astype(np.float64) for value in values]
    finite = (product(call, infinite[0], ones[1]) + product(call, ones[0], infinite[1])) == 0
    sizes = [np.where(np.isfinite(value), np.abs(value), 0.0) for value in values]
    spreads = [np.where(np.isinf(bound), 0.0, bound) for bound in bounds]
    magnitude, count = product(call, *sizes), product(call, *ones)
    eps = float(_limits(_accumulator(operands[0].dtype)).eps)
    off = product(call, sizes[0] + spreads[0], sizes[1] + spreads[1]) - magnitude + count * eps * magnitude
    return [np.where(unknown, np.inf, _finish_sum(result, operands, off, magnitude, finite))]


_Rule = Callable[[Call, Sequence[Array], Sequence[Array], Sequence[Array]], list[Array]]

_RULES: dict[str, _Rule] = {
    **{
        f"prim.{name}": _bound_rearranged
        for name in ("broadcast", "transpose", "reshape", "slice", "pad", "concatenate", "reverse")
    },
    **{f"prim.{name}": _bound_nothing for name in ("constant", "size", "iota")},
    "prim.gather": _bound_gather,
    "prim.scatter": _bound_scatter,
    "prim.reduce": _bound_reduce,
    "prim.reduce_window": _bound_window,
    "prim.scan": _bound_scan,
    "prim.arg_reduce": _bound_arg_reduce,
    "prim.sort": _bound_sort,
    "prim.dot_general": _bound_contraction,
    "prim.convolution": _bound_contraction,
}
