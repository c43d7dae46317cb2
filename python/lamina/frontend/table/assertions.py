"""Assertions of the program about its data: checks, which fail the program as they do in eager."""

from __future__ import annotations

import torch

from ..builder import Builder, Value
from . import lowers

aten = torch.ops.aten


@lowers(aten._assert_async.default)
def assert_async(b: Builder, x: Value) -> None:
    assert_with(b, x, "Expected Tensor with single nonzero value, but got zero")


@lowers(aten._assert_async.msg)
def assert_with(b: Builder, x: Value, message: str) -> None:
    b.check(b.with_scalar("ne", b.reshape(x, []), 0), f"RuntimeError: {message}")


@lowers(aten._functional_assert_async.msg)
def functional_assert(b: Builder, x: Value, message: str, token: Value) -> Value:
    assert_with(b, x, message)
    return token
