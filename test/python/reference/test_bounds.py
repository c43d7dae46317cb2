"""Bounds of results: they hold for another right implementation, and a wrong one is found."""

from __future__ import annotations

from unittest import mock

import numpy as np
from check import CONTEXT
from hypothesis import HealthCheck, given, settings

from lamina import dialects, reference
from lamina.reference import contraction, elementwise, reduction
from lamina.reference.values import convert, is_narrow
from strategies import prim_modules


def another_unary(name):
    """The row of a transcendental function, a few units in the last place off in turn."""
    exact = elementwise.UNARY[name]

    def function(call, operands):
        result = elementwise.apply(exact, *operands)
        if is_narrow(result.dtype):
            return result
        info = np.finfo(result.dtype)
        factors = np.resize(np.array([1 + 4 * info.eps, 1 - 4 * info.eps, 1], result.dtype), result.shape)
        return np.where(np.isfinite(result) & (abs(result) < info.max / 2), result * factors, result)

    return function


def another_reduce(call, operands):
    """Sums in float64, or products, of the elements in opposite order."""
    combiner, dims = call.case("combiner"), tuple(call.integers("dims"))
    reversed_operand = np.flip(operands[0], dims)
    if combiner != "sum" or operands[0].dtype.kind not in "fV":
        return reduction.combine(combiner, reversed_operand, dims)
    with np.errstate(all="ignore"):
        total = np.sum(reversed_operand.astype(np.float64), axis=dims)
        return convert(
            np.asarray(convert(total, np.dtype(np.float32)) if is_narrow(operands[0].dtype) else total),
            operands[0].dtype,
        )


def another_dot(call, operands):
    """Accumulates in float32 where the element type is not f64."""
    if operands[0].dtype.kind not in "fV" or operands[0].dtype == np.float64:
        return contraction.dot_general(call, operands)
    with np.errstate(all="ignore"):
        product = contraction.multiply(call, *(each.astype(np.float32) for each in operands))
    return convert(product, reference.values.get_dtype(call.result_type()))


ANOTHER = {
    **{f"prim.{name}": another_unary(name) for name in ("exp", "log", "tanh", "sin", "erf", "rsqrt", "expm1", "cosh")},
    "prim.reduce": another_reduce,
    "prim.dot_general": another_dot,
}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(prim_modules())
def test_another_implementation_is_within_bounds(program):
    module = dialects.parse(program.text, CONTEXT)
    expected = reference.run_with_bounds(module, *program.args)
    with mock.patch.dict(reference.RULES, ANOTHER):
        actual = reference.run(module, *program.args)
    for number, (array, bounded) in enumerate(zip(actual, expected, strict=True)):
        mismatch = reference.find_mismatch(array, bounded)
        assert mismatch is None, f"result {number}: {mismatch}"


def run_with_bounds(body: str, *args: np.ndarray) -> list[reference.Bounded]:
    return reference.run_with_bounds(dialects.parse(body, CONTEXT), *args)


def test_exact_results_have_no_room():
    text = """
      func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        %0 = prim.mul %x, %x : tensor<3xf32>
        return %0 : tensor<3xf32>
      }"""
    (result,) = run_with_bounds(text, np.array([1.1, 2.2, np.nan], np.float32))
    assert not result.bound.any()
    assert reference.find_mismatch(result.value, result) is None
    wrong = np.nextafter(result.value, np.float32(np.inf))
    assert "2 of 3 elements differ; the first, [0], is 1.21" in reference.find_mismatch(wrong, result)


def test_a_wrong_function_is_found():
    text = """
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = prim.exp %x : tensor<2xf32>
        return %0 : tensor<2xf32>
      }"""
    (result,) = run_with_bounds(text, np.array([1, 2], np.float32))
    assert reference.find_mismatch(result.value * np.float32(1 + 4e-7), result) is None
    assert reference.find_mismatch(result.value * np.float32(1 + 4e-6), result) is not None


def test_an_uncertain_comparison_is_unknown():
    text = """
      func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xi1> {
        %0 = prim.exp %x : tensor<2xf32>
        %1 = prim.compare <lt> %0, %y : tensor<2xf32>
        return %1 : tensor<2xi1>
      }"""
    (result,) = run_with_bounds(text, np.zeros(2, np.float32), np.array([1, 2], np.float32))
    assert result.bound.tolist() == [np.inf, 0]
