"""Attention as people write it is one kernel without a tensor of queries by keys, and equals eager."""

import inspect
import math

import pytest
import torch
import torch.nn.functional as F

import lamina
from lamina.compiler import copy_module
from lamina.frontend.call import CallableProgram
from lamina.frontend.export import import_program
from lamina.targets.cpu import CPUTarget
from lamina.targets.cuda import CUDATarget, verify_ttir

INF = float("inf")


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def scaled_before(q, k, v):
    return torch.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2), -1) @ v


def by_hand(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    e = torch.exp(w - w.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v


def einsum(q, k, v):
    return torch.einsum("bhqk,bhkd->bhqd", torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.1, -1), v)


def causal_tril(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    return torch.softmax(w.masked_fill(~torch.ones(w.shape[-2:], dtype=torch.bool).tril(), -INF), -1) @ v


def causal_aranges(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    allowed = torch.arange(w.shape[-2])[:, None] >= torch.arange(w.shape[-1])
    return torch.softmax(torch.where(allowed, w, -INF), -1) @ v


def causal_additive(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    return torch.softmax(w + torch.full(w.shape[-2:], -INF, dtype=w.dtype).triu(1), -1) @ v


def large_negative(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    lowest = torch.finfo(w.dtype).min
    return torch.softmax(w.masked_fill(torch.ones(w.shape[-2:], dtype=torch.bool).triu(1), lowest), -1) @ v


def alibi(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    slopes = 2.0 ** -torch.arange(1, q.shape[1] + 1)
    distance = torch.arange(w.shape[-1]) - torch.arange(w.shape[-2])[:, None]
    return torch.softmax(w + (slopes[:, None, None] * distance).to(w.dtype), -1) @ v


def sliding_window(q, k, v):
    w = q @ k.transpose(-1, -2) * 0.125
    i, j = torch.arange(w.shape[-2])[:, None], torch.arange(w.shape[-1])
    return torch.softmax(w.masked_fill(~((j <= i) & (j > i - 20)), -INF), -1) @ v


def soft_capped(q, k, v):
    return torch.softmax(30 * torch.tanh(q @ k.transpose(-1, -2) / 30), -1) @ v


def f32_softmax(q, k, v):
    return torch.softmax((q @ k.transpose(-1, -2)).float(), -1).to(q.dtype) @ v


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def sdpa_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def sdpa_scaled(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=0.3)


def from_projections(q, k, v):
    """Heads that are split from one dimension, and joined again."""
    b, h, s, d = q.shape
    q, k, v = (x.transpose(1, 2).reshape(b, -1, h * d).view(b, -1, h, d).transpose(1, 2) for x in (q, k, v))
    return plain(q, k, v).transpose(1, 2).reshape(b, s, h * d)


def batched_matrices(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return torch.bmm(torch.softmax(torch.baddbmm(torch.zeros(1, 1, 1, dtype=q.dtype), q, k.mT, alpha=0.1), -1), v)


SPELLINGS = [
    plain,
    scaled_before,
    by_hand,
    einsum,
    causal_tril,
    causal_aranges,
    causal_additive,
    large_negative,
    alibi,
    sliding_window,
    soft_capped,
    f32_softmax,
    sdpa,
    sdpa_causal,
    sdpa_scaled,
    from_projections,
    batched_matrices,
]


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def random(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def run(function, *args):
    """The result, the kernels that the call launches, and their temporary memory in bytes."""
    program = lamina.compile(Module(function), args, fallback="error")
    entry = program.executable.binary.entries["main"]
    return program(*args), entry.launches, int(entry.arena)


def check(actual, function, *args):
    """As near as eager, up to a factor, to what f64 gives."""
    expected = function(*args)
    exact = function(*(x.double() if x.is_floating_point() else x for x in args))
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    # Eager's product of bf16 matrices was seen to spread a row of NaN to another row.
    assert torch.equal(actual.isnan(), exact.isnan())
    error, eager = ((x - exact).nan_to_num().abs().max() for x in (actual, expected))
    assert error <= 2 * eager + torch.finfo(actual.dtype).eps


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", SPELLINGS)
def test_spelling(function, dtype):
    args = [random(2, 3, 70, 64, dtype=dtype, seed=i) for i in range(3)]
    actual, launches, arena = run(function, *args)
    # In 16 bits a softmax by hand rounds after each step, which a running maximum could not repeat.
    if function is not by_hand or dtype == torch.float32:
        assert len(launches) == 1 and arena < 2 * 3 * 70 * 70, launches
    check(actual, function, *args)


def run_as_triton(function, *args):
    """The result by the interpreter of Triton IR, and the kernels, which Triton has read."""
    model = Module(function)
    program = import_program(model, args)
    kernels = CUDATarget().emit_ttir(copy_module(program.module))
    for text in kernels.values():
        verify_ttir(text)
    signature = inspect.signature(model.forward)
    return CallableProgram(program, CUDATarget().interpret(program), signature)(*args), kernels


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", SPELLINGS)
def test_spelling_as_triton(function, dtype):
    args = [random(1, 2, 150, 32, dtype=dtype, seed=i) for i in range(3)]
    actual, kernels = run_as_triton(function, *args)
    if function is not by_hand or dtype == torch.float32:
        assert len(kernels) == 1, list(kernels)
    check(actual, function, *args)


def test_rows_are_loaded_once():
    args = [random(2, 4, 512, 64, dtype=torch.float16, seed=i) for i in range(3)]
    (text,) = CUDATarget().emit_ttir(import_program(Module(sdpa_causal), args).module).values()
    before, _, inside = text.partition('"scf.for"')
    assert (before.count('"tt.load"'), inside.count('"tt.load"')) == (1, 2)


@pytest.mark.parametrize("size", [7, 64, 130])
def test_one_tensor_for_all(size):
    # Rows and columns of one argument are different dimensions of the scores.
    def own(x):
        return sdpa_causal(x, x, x) + x

    x = random(1, 2, size, 32)
    for actual in (run(own, x)[0], run_as_triton(own, x)[0]):
        check(actual, own, x)


@pytest.mark.parametrize("function", [plain, sdpa_causal, sliding_window])
@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 100), (100, 1), (5, 130), (128, 64)])
def test_sizes_as_triton(function, queries, keys):
    args = [random(1, 2, s, 16, seed=i) for i, s in enumerate((queries, keys, keys))]
    actual, _ = run_as_triton(function, *args)
    check(actual, function, *args)


@pytest.mark.parametrize("function", [plain, sdpa_causal, sliding_window])
@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 300), (300, 1), (5, 257), (600, 512), (0, 8)])
def test_sizes(function, queries, keys):
    args = [random(2, 2, s, 24, seed=i) for i, s in enumerate((queries, keys, keys))]
    actual, launches, _ = run(function, *args)
    assert actual.shape == (2, 2, queries, 24)
    if queries:
        check(actual, function, *args)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks_as_arguments(dtype):
    """Rows that are masked as a whole are zeros where F.scaled_dot_product_attention says so, else NaN."""
    q, k, v = (random(2, 3, 50, 32, dtype=dtype, seed=i) for i in range(3))
    mask = random(2, 1, 50, 50, seed=4) > 0
    mask[:, :, 7] = False
    args = (q, k, v, mask)
    for function in (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        lambda q, k, v, m: torch.softmax((q @ k.mT).masked_fill(~m, -INF), -1) @ v,
        lambda q, k, v, m: F.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.zeros_like(m, dtype=q.dtype).masked_fill(~m, -INF)
        ),
    ):
        actual, launches, _ = run(function, *args)
        assert len(launches) == 1
        check(actual, function, *args)


def test_sizes_of_one():
    """Every dimension of size 1, in turn and together."""
    for mask in range(16):
        b, s, t, d = (1 if mask >> bit & 1 else 5 for bit in range(4))
        args = [random(b, 2, n, d, seed=i) for i, n in enumerate((s, t, t))]
        for function in (plain, sdpa_causal):
            actual, _, _ = run(function, *args)
            check(actual, function, *args)


def test_one_program_with_many_keys():
    """No buffer is as long as the keys, even where there is nothing to deal out."""
    q, k, v = random(8, 16), random(20000, 16, seed=1), random(20000, 16, seed=2)
    program = import_program(Module(plain), (q, k, v))
    module = copy_module(program.module)
    for _ in CPUTarget().lower(module, until="tiled"):
        pass
    assert "scf.for" in str(module) and "tensor<8x20000xf32>" not in str(module)
    actual, _, _ = run(plain, q, k, v)
    check(actual, plain, q, k, v)


def test_key_padding():
    q, k, v = (random(2, 3, 50, 32, seed=i) for i in range(3))
    padding = torch.arange(50)[None] >= torch.tensor([[50], [13]])

    def function(q, k, v, padding):
        return torch.softmax((q @ k.mT).masked_fill(padding[:, None, None], -INF), -1) @ v

    actual, launches, _ = run(function, q, k, v, padding)
    assert len(launches) == 1
    check(actual, function, q, k, v, padding)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_grouped_queries(dtype):
    q = random(2, 8, 40, 32, dtype=dtype)
    k, v = (random(2, 2, 40, 32, dtype=dtype, seed=i) for i in (1, 2))

    def repeated(q, k, v):
        return plain(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))

    def expanded(q, k, v):
        k, v = (x[:, :, None].expand(2, 2, 4, 40, 32).reshape(2, 8, 40, 32) for x in (k, v))
        return plain(q, k, v)

    def enabled(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    for function in (repeated, expanded, enabled):
        actual, launches, _ = run(function, q, k, v)
        assert len(launches) == 1, (function, launches)
        check(actual, function, q, k, v)


def test_log_sum_exp_returned():
    q, k, v = (random(2, 3, 300, 32, seed=i) for i in range(3))

    def function(q, k, v):
        w = q @ k.mT
        m = w.amax(-1, keepdim=True)
        e = torch.exp(w - m)
        s = e.sum(-1, keepdim=True)
        return (e / s) @ v, (m + s.log()).squeeze(-1)

    program = lamina.compile(Module(function), (q, k, v), fallback="error")
    for actual, expected in zip(program(q, k, v), function(q, k, v), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_weights_returned():
    """A softmax that is a result itself is no temporary: nothing is lost by keeping it."""
    q, k, v = (random(2, 3, 30, 32, seed=i) for i in range(3))

    def function(q, k, v):
        weights = torch.softmax(q @ k.mT, -1)
        return weights @ v, weights

    program = lamina.compile(Module(function), (q, k, v), fallback="error")
    for actual, expected in zip(program(q, k, v), function(q, k, v), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [INF, -INF, math.nan])
def test_infinite_scores(value):
    q, k, v = (random(1, 2, 600, 16, seed=i) for i in range(3))
    bias = torch.zeros(600, 600)
    bias[3, 500], bias[4, 0], bias[5, :] = value, value, value

    def function(q, k, v, bias):
        return torch.softmax(q @ k.mT + bias, -1) @ v

    actual, launches, _ = run(function, q, k, v, bias)
    assert len(launches) == 1
    check(actual, function, q, k, v, bias)


def only_looks_like_attention_dropped_max(q, k, v):
    w = q @ k.mT * 0.01
    e = torch.exp(w - w.amax(-2, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v


def only_looks_like_attention_other_sum(q, k, v):
    w = q @ k.mT * 0.1
    e = torch.exp(w - w.amax(-1, keepdim=True))
    return (e / (e * e).sum(-1, keepdim=True)) @ v


def only_looks_like_attention_other_dimension(q, k, v):
    return torch.softmax(q @ k.mT, -2) @ v


@pytest.mark.parametrize(
    "function",
    [
        only_looks_like_attention_dropped_max,
        only_looks_like_attention_other_sum,
        only_looks_like_attention_other_dimension,
    ],
)
def test_lookalikes(function):
    args = [random(2, 3, 40, 40, seed=i) for i in range(3)]
    actual, _, _ = run(function, *args)
    check(actual, function, *args)


def test_dynamic_sizes():
    sequence = torch.export.Dim("sequence", min=0)
    args = [random(2, 3, 70, 32, seed=i) for i in range(3)]
    for function in (plain, sdpa_causal, sliding_window):
        program = lamina.compile(Module(function), tuple(args), dynamic_shapes={"args": ({2: sequence},) * 3})
        for size in (70, 1, 300, 7, 0):
            now = [random(2, 3, size, 32, seed=i) for i in range(3)]
            torch.testing.assert_close(program(*now), function(*now), rtol=1e-4, atol=1e-5)
