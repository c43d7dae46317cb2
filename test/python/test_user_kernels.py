"""Triton kernels of the user's own in a program: captured with no GPU, and named in errors."""

import inspect
import warnings

import pytest
import torch
from torch import nn

import lamina
from cuda_programs import DYNAMIC, seeded
from lamina.errors import CompileError
from lamina.frontend.export import capture
from lamina.frontend.user_kernels import kernel_of

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def scaled_sum(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + scale * tl.load(y + i, mask=mask), mask=mask)


tuned_sum = triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], ["n"])(scaled_sum)


def launched(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    scaled_sum[(triton.cdiv(n, 128),)](x, y, out, n, 2.0, BLOCK=128)
    return out


def tuned(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    tuned_sum[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, 2.0)
    return out


@torch.library.triton_op("lamina_test::scaled_sum", mutates_args={})
def registered(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    torch.library.wrap_triton(scaled_sum)[(triton.cdiv(n, 128),)](x, y, out, n, 2.0, BLOCK=128)
    return out


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x + 1, y) * 2


FUNCTIONS = (launched, tuned, registered)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shapes", [None, ({0: DYNAMIC}, {0: DYNAMIC})])
def test_calls_are_captured(function, shapes):
    before = scaled_sum.run.__func__, triton.runtime.driver._active
    _, exported = capture(Model(function), (seeded(300), seeded(300)), None, shapes)
    assert (scaled_sum.run.__func__, triton.runtime.driver._active) == before
    (node,) = [node for node in exported.graph.nodes if kernel_of(node) is not None]
    assert kernel_of(node) == "scaled_sum"
    assert node.kwargs["tensors_to_clone"] == ["out"]
    # One grid for each way in which the kernel may be tuned; it is computed of the sizes.
    for first, *others in node.kwargs["grid"]:
        assert others == [1, 1]
        assert first in (2, 3) if shapes is None else isinstance(first.meta["val"], torch.SymInt)


def line_of(function, text):
    function = getattr(function, "_init_fn", function)
    lines, start = inspect.getsourcelines(function)
    return start + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("fallback", ["error", "eager"])
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_the_host_has_no_kernels(target, fallback):
    with pytest.raises(CompileError) as caught:
        lamina.compile(Model(launched), (seeded(300), seeded(300)), target=target, fallback=fallback)
    error = caught.value
    assert (
        f"the program launches the Triton kernel scaled_sum, which needs a GPU, and is compiled for '{target}'"
        in str(error)
    )
    assert error.location == f"{__file__}:{line_of(launched, 'scaled_sum[')}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_way_to_launch(function):
    with pytest.raises(
        CompileError, match=r"test_user_kernels.py:\d+: .*the Triton kernel scaled_sum, which needs a GPU"
    ):
        lamina.compile(Model(function), (seeded(300), seeded(300)))


def test_just_in_time():
    x = seeded(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception, match="the Triton kernel scaled_sum, which needs a GPU") as caught:
            torch.compile(Model(registered), backend="lamina")(x, x)
    assert type(caught.value).__name__ == "CompileError"


def test_cuda_names_the_kernel():
    with pytest.raises(CompileError, match=r"test_user_kernels.py:\d+: .*it launches the Triton kernel scaled_sum"):
        lamina.compile(Model(launched), (seeded(300), seeded(300)), target="cuda:sm_90")
