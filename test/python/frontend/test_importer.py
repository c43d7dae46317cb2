"""The imported module: its locations, symbols, constants, and the shape of what it holds."""

from __future__ import annotations

import re

import torch
from torch import nn
from torch.export import Dim

import lamina


def imported(model, *args, **options) -> str:
    program = lamina.import_program(model, args, **options)
    return program.module.operation.get_asm(enable_debug_info=True, use_local_scope=True, print_generic_op_form=False)


def names(text: str) -> list[str]:
    return re.findall(r"= (prim\.[a-z_0-9]+) ", text)


def helper(x):
    return x.exp()


class Inner(nn.Module):
    def forward(self, x):
        return helper(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Inner()])

    def forward(self, x):
        return self.blocks[0](x)


def test_location_has_line_module_and_node():
    text = imported(Outer(), torch.ones(3))
    line = helper.__code__.co_firstlineno + 1
    assert f'"exp"("blocks.0"("{__file__}":{line}' in text


def test_location_without_a_line_of_the_users():
    text = imported(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.ones(4, 3))
    assert 'loc("linear"("0"))' in text and 'loc("relu"("1"))' in text


def test_symbols_and_sizes():
    rows, columns = Dim("rows", min=0, max=100), Dim("columns", min=3)
    text = imported(lambda x: x.t().reshape(-1), torch.ones(5, 7), dynamic_shapes=({0: rows, 1: columns},))
    assert "prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>" in text
    assert '{max = 100 : i64, min = 0 : i64, name = "s0"}' in text
    assert '{min = 3 : i64, name = "s1"}' in text
    assert "sizes [s0 * s1]" in text


def test_weights_are_constant_arguments():
    text = imported(nn.Linear(3, 2), torch.ones(4, 3))
    assert 'prim.constant = "weight"' in text and 'prim.constant = "bias"' in text


def test_linear_is_one_product_without_reshapes():
    found = names(imported(nn.Linear(3, 2), torch.ones(4, 5, 3)))
    assert found == ["prim.dot_general", "prim.broadcast", "prim.add"]


def test_linear_of_bf16_rounds_once():
    text = imported(nn.Linear(3, 2, dtype=torch.bfloat16), torch.ones(4, 3, dtype=torch.bfloat16))
    assert "-> tensor<4x2xf32>" in text
    assert names(text)[-2:] == ["prim.add", "prim.convert"]


def test_checks():
    text = imported(lambda w, i: torch.nn.functional.embedding(i, w), torch.ones(4, 3), torch.tensor([1]))
    assert 'prim.checks = ["IndexError: index out of range in self"]' in text


def test_transposed_argument_is_declared_contiguous():
    text = imported(lambda x: x + 1, torch.ones(4, 3).t())
    assert "tensor<4x3xf32>" in text and names(text).count("prim.transpose") == 2
