"""Calls, sizes, launches, views and planned memory in the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from check import ALL, CONTEXT, DTYPES, make_data

from lamina import dialects, reference

SIZES = """
  func.func @main(%a: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 2, 4)>},
                  %b: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) -> tensor<?x4xf32>
      attributes {prim.symbols = [{name = "s0", min = 1 : i64, max = 5 : i64}]} {
    %0 = prim.neg %a : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }"""

FUSED = """
  kernel.func @k(%x: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>}, %y: tensor<4xf32>,
                 %o0: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>},
                 %o1: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>}) attributes {outs = 2 : i64} {
    %0 = prim.broadcast %y dims [1] sizes [s0, 4] : tensor<4xf32> to tensor<?x4xf32>
    %1 = prim.add %x, %0 : tensor<?x4xf32>
    %2 = prim.mul %1, %1 : tensor<?x4xf32>
    kernel.return %1, %2 : tensor<?x4xf32>, tensor<?x4xf32>
  }
  func.func @main(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 8)>}, %n: tensor<?xi8>
                  {prim.sizes = affine_map<()[s0] -> (s0)>}) -> (tensor<?x4xf32>, tensor<4x?xf32>) {
    %0 = prim.constant dense<1.0> : tensor<4xf32>
    %1 = kernel.view %x offset [0] sizes [s0 * 2, 4] strides [4, 1] : tensor<?xf32> to tensor<?x4xf32>
    %2:2 = kernel.launch @k [s0 * 2] ins(%1, %0 : tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>, tensor<?x4xf32>
    %3 = kernel.view %2#1 offset [0] sizes [4, s0 * 2] strides [1, 4] : tensor<?x4xf32> to tensor<4x?xf32>
    return %2#0, %3 : tensor<?x4xf32>, tensor<4x?xf32>
  }"""

PLANNED = """
  kernel.func @k(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>},
                 %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}) attributes {outs = 1 : i64} {
    %0 = prim.add %x, %x : tensor<?xf32>
    kernel.return %0 : tensor<?xf32>
  }
  func.func @main(%x: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>},
                  %o: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>})
      attributes {kernel.arena = affine_map<()[s0] -> (s0 * 4 + 64)>} {
    %0 = kernel.alloc slot 0 offset [64] bytes [s0 * 4] : tensor<?xf32>
    %1 = kernel.launch @k [s0] ins(%x : tensor<?xf32>) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
    %2 = kernel.launch @k [s0] ins(%0 : tensor<?xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
    return
  }"""


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_sizes_are_bound_and_checked():
    module = dialects.parse(SIZES, CONTEXT)
    assert reference.run(module, zeros(6, 4), zeros(3))[0].shape == (6, 4)
    with pytest.raises(
        reference.ArgumentError, match=r"size of argument 0 in dimension 0 is 5, not s0 \* 2 = 6 \(s0 = 3\)"
    ):
        reference.run(module, zeros(5, 4), zeros(3))
    with pytest.raises(reference.ArgumentError, match="symbol s0 is 0; it must be from 1 to 5"):
        reference.run(module, zeros(0, 4), zeros(0))
    with pytest.raises(reference.ArgumentError, match="symbol s0 is 6"):
        reference.run(module, zeros(12, 4), zeros(6))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((zeros(2, 4),), "@main takes 2 arguments, 1 were given"),
        ((zeros(2, 3), zeros(1)), r"argument 0 has shape \[2, 3\], its type is tensor<\?x4xf32>"),
        ((zeros(2), zeros(1)), r"argument 0 has shape \[2\]"),
        ((zeros(2, 4), np.zeros(1)), "argument 1 has elements float64"),
    ],
)
def test_arguments_are_checked(args, message):
    with pytest.raises(reference.ArgumentError, match=message):
        reference.run(dialects.parse(SIZES, CONTEXT), *args)


def test_unknown_function():
    with pytest.raises(reference.ArgumentError, match="no function @init; it has @main"):
        reference.run(dialects.parse(SIZES, CONTEXT), function="init")


def test_a_function_may_be_passed():
    module = dialects.parse(FUSED, CONTEXT)
    x, y = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones(4, np.float32)
    kernel = module.body.operations[0]
    for each in (kernel, kernel.operation):
        total, square = reference.run(each, x, y)
        np.testing.assert_array_equal(total, x + 1)
        np.testing.assert_array_equal(square, (x + 1) ** 2)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_launches_and_views(size):
    module = dialects.parse(FUSED, CONTEXT)
    x = np.arange(size * 8, dtype=np.float32)
    total, square = reference.run(module, x, np.zeros(size, np.int8))
    np.testing.assert_array_equal(total, x.reshape(-1, 4) + 1)
    np.testing.assert_array_equal(square, ((x.reshape(-1, 4) + 1) ** 2).T)


def test_planned_memory():
    module = dialects.parse(PLANNED, CONTEXT)
    x, out = np.arange(5, dtype=np.float32), zeros(5)
    assert reference.run(module, x, out) == []
    np.testing.assert_array_equal(out, 4 * x)


def test_arena_is_bounded():
    module = dialects.parse(PLANNED.replace("s0 * 4 + 64)>} {", "s0 * 4)>} {"), CONTEXT)
    with pytest.raises(reference.InvalidModuleError, match="bytes 64 to 84 are not in the arena, which has 20"):
        reference.run(module, zeros(5), zeros(5))


def test_views_stay_in_their_memory():
    text = """
      func.func @main(%x: tensor<4xf32>) -> tensor<2x2xf32> {
        %0 = kernel.view %x offset [1] sizes [2, 2] strides [2, 1] : tensor<4xf32> to tensor<2x2xf32>
        return %0 : tensor<2x2xf32>
      }"""
    with pytest.raises(reference.InvalidModuleError, match=r'loc\("-":3:14\): views elements 1 to 4 of memory with 4'):
        reference.run(dialects.parse(text, CONTEXT), zeros(4))


def test_views_of_views_count_from_the_first_element():
    text = """
      func.func @main(%x: tensor<12xf32>) -> tensor<3xf32> {
        %0 = kernel.view %x offset [2] sizes [2, 2] strides [4, 1] : tensor<12xf32> to tensor<2x2xf32>
        %1 = kernel.view %0 offset [1] sizes [3] strides [3] : tensor<2x2xf32> to tensor<3xf32>
        return %1 : tensor<3xf32>
      }"""
    result = reference.run(dialects.parse(text, CONTEXT), np.arange(12, dtype=np.float32))
    assert result[0].tolist() == [3, 6, 9]


def test_a_launch_checks_the_kernels_sizes():
    text = FUSED.replace("@k [s0 * 2]", "@k [s0]")
    with pytest.raises(reference.InvalidModuleError, match="size of input 0 in dimension 0 is 2, not s0 = 1"):
        reference.run(dialects.parse(text, CONTEXT), zeros(8), np.zeros(1, np.int8))


def test_ops_without_a_rule():
    text = """
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = arith.negf %x : tensor<2xf32>
        return %0 : tensor<2xf32>
      }"""
    with pytest.raises(reference.InvalidModuleError, match=r'loc\("-":3:14\): .* no rule for arith.negf'):
        reference.run(dialects.parse(text, CONTEXT), zeros(2))


def test_calls():
    text = """
      func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = prim.add %x, %x : tensor<2xf32>
        return %0 : tensor<2xf32>
      }
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = func.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }"""
    assert reference.run(dialects.parse(text, CONTEXT), np.ones(2, np.float32))[0].tolist() == [2, 2]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_torch_conversions(dtype, shape):
    tensor = make_data(dtype, *shape)
    array = reference.from_torch(tensor.T if len(shape) == 2 else tensor)
    back = reference.to_torch(array)
    assert back.dtype == DTYPES[dtype]
    assert torch.equal(back, tensor.T if len(shape) == 2 else tensor)
    assert array.flags.c_contiguous and array.flags.writeable


def test_every_op_has_a_rule():
    from lamina.dialects import prim

    ops = {each.OPERATION_NAME for each in vars(prim).values() if hasattr(each, "OPERATION_NAME")}
    assert {op for op in ops if op.startswith("prim.")} == set(reference.RULES)
