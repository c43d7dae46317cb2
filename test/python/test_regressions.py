"""Programs that were once compiled wrong: results, and the memory around arguments and results."""

from __future__ import annotations

import numpy as np
import pytest

from random_programs import TARGETS, check
from strategies import Program


def make_program(signature: str, body: str, args: list[np.ndarray], symbols: list[int] | None = None) -> Program:
    """A module with the function `@main(signature {body}`."""
    text = f"module {{\n  func.func @main({signature} {{\n{body}\n  }}\n}}\n"
    return Program(text, args, [None] * len(args), symbols or [])


DYNAMIC = "{prim.sizes = affine_map<()[s0] -> (s0)>}"

# What reads elements that are not there: a value of no elements, at the end of memory or at no address at all.
EMPTY = {
    "pad": (
        f"%x: tensor<?xf64> {DYNAMIC}, %p: tensor<f64>) -> tensor<?xf64>",
        """%0 = prim.slice %x [1] to [s0] step [1] : tensor<?xf64> to tensor<?xf64>
           %1 = prim.pad %0, %p low [1] high [2] : tensor<?xf64>, tensor<f64> to tensor<?xf64>
           return %1 : tensor<?xf64>""",
        [np.full([1], 2.5), np.array(3.0)],
        [1],
    ),
    "pad of a reshape": (
        f"%x: tensor<?x6xf32> {{prim.sizes = affine_map<()[s0] -> (s0, 6)>}}, %p: tensor<f32>) -> tensor<3x?xf32>",
        """%0 = prim.reshape %x sizes [3, s0 * 2] : tensor<?x6xf32> to tensor<3x?xf32>
           %1 = prim.pad %0, %p low [0, 20] high [0, 2] : tensor<3x?xf32>, tensor<f32> to tensor<3x?xf32>
           return %1 : tensor<3x?xf32>""",
        [np.zeros([0, 6], np.float32), np.array(3, np.float32)],
        [0],
    ),
    "concatenate": (
        f"%x: tensor<?xf32> {DYNAMIC}, %y: tensor<40xf32>) -> tensor<?xf32>",
        """%0 = prim.reverse %x dims [0] : tensor<?xf32>
           %1 = prim.concatenate %0, %y dim 0 : (tensor<?xf32>, tensor<40xf32>) -> tensor<?xf32>
           return %1 : tensor<?xf32>""",
        [np.zeros([0], np.float32), np.arange(40, dtype=np.float32)],
        [0],
    ),
    "reduce_window": (
        f"%x: tensor<?xi32> {DYNAMIC}) -> tensor<?xi32>",
        """%0 = prim.reduce_window <max> %x window [2] strides [1] dilations [1] low [1] high [1]
             : tensor<?xi32> to tensor<?xi32>
           return %0 : tensor<?xi32>""",
        [np.zeros([0], np.int32)],
        [0],
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EMPTY)
def test_values_without_elements_are_not_read(name: str, target: str) -> None:
    check(make_program(*EMPTY[name]), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source,result", [("i32", "i16"), ("i64", "i32"), ("i32", "i8"), ("i64", "i8")])
def test_a_last_vector_of_one_lane_is_narrow(source: str, result: str, target: str) -> None:
    body = f"""%0 = prim.convert %x : tensor<33x{source}> to tensor<33x{result}>
               return %0 : tensor<33x{result}>"""
    array = np.arange(33, dtype=f"int{source[1:]}")
    check(make_program(f"%x: tensor<33x{source}>) -> tensor<33x{result}>", body, [array]), target)
