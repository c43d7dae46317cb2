"""The programs that are measured: each a module and its inputs, made anew from a fixed seed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Workload:
    """A program to measure.

    Attributes:
        name: unique.
        groups: names that select it together with others.
        make: a new module and its inputs, random.
        tolerance: largest relative Frobenius error against float64.
        training: a step computes the loss and the gradients of all parameters.
        model: a whole model; it takes seconds to compile and tenths of a second to run.
    """

    name: str
    groups: frozenset[str]
    make: Callable[[], Made]
    tolerance: float = 1e-4
    training: bool = False
    model: bool = False

    def build(self) -> Made:
        """The module, in its mode, and the inputs; the same values each time."""
        torch.manual_seed(0)
        module, inputs = self.make()
        return module.train(self.training), inputs

    @property
    def causal(self) -> bool:
        """Whether half of the counted FLOPs fall to a mask that a kernel need not compute."""
        return self.name.startswith("sdpa")


# ---- modules


class LinearReLU(nn.Module):
    """The smallest network: one layer and its activation."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.linear(x))


class Perceptron(nn.Sequential):
    """Three linear layers with GELU between them."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1024))


class Product(nn.Module):
    """A matrix product, batched or not."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


class WrittenAttention(nn.Module):
    """Causal attention as its formula, with a mask that is added."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.scale = width**-0.5
        self.register_buffer("mask", torch.full((length, length), -torch.inf).triu(1))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-2, -1) * self.scale + self.mask
        return scores.softmax(-1) @ v


class FusedAttention(nn.Module):
    """Causal attention as PyTorch's one op."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class ConvolutionBlock(nn.Module):
    """Convolution, batch normalisation in inference, ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        for buffer, low, high in ((self.norm.running_mean, -0.1, 0.1), (self.norm.running_var, 0.5, 1.5)):
            assert buffer is not None
            nn.init.uniform_(buffer, low, high)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.convolution(x)))


class Pointwise(nn.Module):
    """Twelve elementwise ops, four of them transcendental, on one tensor and a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(1024))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(x)
        y = torch.tanh(x * 1.7 + self.bias) * gate
        y = torch.where(y > 0, y, y.exp() - 1.0)
        return torch.maximum((y + x) * 0.5, -gate)


class Softmax(nn.Module):
    """Softmax of rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.softmax(-1)


class NormResidualGELU(nn.Module):
    """Layer normalisation, a residual, GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(1024)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.norm(x) + residual)


class RMSNorm(nn.Module):
    """Root mean square normalisation, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Sum(nn.Module):
    """The sum over one dimension, or over all (None)."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum() if self.dim is None else x.sum(self.dim)


class Regression(nn.Module):
    """Two layers and a mean squared error: what one training step differentiates."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(1024, 1024), nn.Linear(1024, 1024)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(self.second(F.gelu(self.first(x))), target)


class Transformer(nn.Module):
    """A model of the transformers library, from one tensor to one tensor."""

    def __init__(self, model: nn.Module, argument: str, result: str, **options: Any) -> None:
        super().__init__()
        self.model, self.argument, self.result, self.options = model, argument, result, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(**{self.argument: x}, **self.options), self.result)


# ---- models of the transformers library, with random weights


def gpt2_config(layers: int = 12) -> Any:
    """GPT-2's smallest configuration, with as many layers as asked for."""
    from transformers import GPT2Config

    return GPT2Config(n_layer=layers)


def _ids(vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, 128))


def _gpt2() -> Made:
    from transformers import GPT2LMHeadModel

    return Transformer(GPT2LMHeadModel(gpt2_config()), "input_ids", "logits", use_cache=False), (_ids(50257),)


def _bert() -> Made:
    from transformers import BertConfig, BertModel

    return Transformer(BertModel(BertConfig()), "input_ids", "last_hidden_state"), (_ids(30522),)


def _llama() -> Made:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=32000,
    )
    return Transformer(LlamaForCausalLM(config), "input_ids", "logits", use_cache=False), (_ids(32000),)


def _vit() -> Made:
    from transformers import ViTConfig, ViTModel

    return Transformer(ViTModel(ViTConfig()), "pixel_values", "last_hidden_state"), (torch.randn(1, 3, 224, 224),)


def _resnet50() -> Made:
    from transformers import ResNetConfig, ResNetModel

    return Transformer(ResNetModel(ResNetConfig()), "pixel_values", "last_hidden_state"), (torch.randn(1, 3, 224, 224),)


# ---- the list


def _random(dtype: torch.dtype, *shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


def _attention(module: Callable[[int], nn.Module], length: int, dtype: torch.dtype) -> Made:
    """Eight heads of width 64, batch 1."""
    return module(length).to(dtype), _random(dtype, *[(1, 8, length, 64)] * 3)


def _typed(dtype: torch.dtype) -> Iterable[tuple[str, str, Callable[[], Made]]]:
    """Name, group and maker of the workloads that exist in several dtypes."""
    yield "optimized_net", "linear", lambda: (LinearReLU().to(dtype), _random(dtype, (32, 512)))
    yield "mlp", "linear", lambda: (Perceptron().to(dtype), _random(dtype, (128, 1024)))
    yield "matmul1024", "matmul", lambda: (Product(), _random(dtype, (1024, 1024), (1024, 1024)))
    yield "bmm16x256", "matmul", lambda: (Product(), _random(dtype, (16, 256, 256), (16, 256, 256)))
    yield "convblock", "convolution", lambda: (ConvolutionBlock().to(dtype), _random(dtype, (1, 64, 56, 56)))
    for length in (1024, 4096):
        yield (
            f"attn_naive_s{length}",
            "attention",
            partial(_attention, lambda n: WrittenAttention(n, 64), length, dtype),
        )
        yield f"sdpa_s{length}", "attention", partial(_attention, lambda n: FusedAttention(), length, dtype)


def _rows() -> Iterable[Workload]:
    for suffix, dtype, tolerance in (("f32", torch.float32, 1e-4), ("bf16", torch.bfloat16, 2e-2)):
        for name, group, make in _typed(dtype):
            yield Workload(f"{name}_{suffix}", frozenset({group, suffix}), make, tolerance)
    rows = (4096, 1024)
    f32 = torch.float32
    for name, group, make in (
        ("pointwise12", "pointwise", lambda: (Pointwise(), _random(f32, rows))),
        ("softmax", "rows", lambda: (Softmax(), _random(f32, rows))),
        ("ln_res_gelu", "rows", lambda: (NormResidualGELU(), _random(f32, rows, rows))),
        ("rmsnorm", "rows", lambda: (RMSNorm(), _random(f32, rows))),
        # The mean is 1 so that the relative error of the sum means something.
        ("sum_rows", "reduction", lambda: (Sum(1), (torch.randn(4096, 4096) + 1,))),
        ("sum_full", "reduction", lambda: (Sum(None), (torch.randn(4096, 4096) + 1,))),
    ):
        yield Workload(name, frozenset({group, "f32"}), make)
    yield Workload(
        "train_mlp",
        frozenset({"training", "f32"}),
        lambda: (Regression(), _random(f32, (128, 1024), (128, 1024))),
        training=True,
    )
    for name, make in (("gpt2", _gpt2), ("bert", _bert), ("llama", _llama), ("vit", _vit), ("resnet50", _resnet50)):
        yield Workload(name, frozenset({"models", "f32"}), make, 1e-3, model=True)


WORKLOADS = {workload.name: workload for workload in _rows()}
GROUPS = sorted({group for workload in WORKLOADS.values() for group in workload.groups})


def select(text: str) -> list[Workload]:
    """The workloads that a comma-separated list of names and groups means, in their own order.

    Raises:
        ValueError: a name is unknown.
    """
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name != "all" and name not in WORKLOADS and name not in GROUPS:
            raise ValueError(f"there is no workload or group {name!r}; groups: {', '.join(GROUPS)}")
    return [w for w in WORKLOADS.values() if {w.name, "all"} & set(wanted) or w.groups & set(wanted)]


# ---- running


def as_tuple(value: Any) -> tuple[torch.Tensor, ...]:
    """The tensors that a module returned."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def train_step(function: Callable[..., torch.Tensor], module: nn.Module, inputs: tuple) -> tuple[torch.Tensor, ...]:
    """The loss and the gradients of all parameters of the module, by autograd through `function`."""
    for parameter in module.parameters():
        parameter.grad = None
    loss = function(*inputs)
    loss.backward()
    return (loss.detach(), *(p.grad for p in module.parameters() if p.grad is not None))


def runner(workload: Workload, function: Callable[..., Any], module: nn.Module, inputs: tuple) -> Callable[[], Any]:
    """A call of `function`, which is the module or what a compiler made of it, as a user would make it."""
    if workload.training:
        return lambda: train_step(function, module, inputs)

    def call() -> Any:
        with torch.no_grad():
            return function(*inputs)

    return call


def functional(workload: Workload, module: nn.Module, inputs: tuple) -> Made:
    """A module without autograd for compilers that work ahead of time.

    A training step becomes a graph of its forward and backward passes, whose first arguments are the parameters.
    """
    if not workload.training:
        return module, inputs
    from torch._decomp import core_aten_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx

    names = [name for name, _ in module.named_parameters()]
    values = tuple(parameter.detach().clone() for parameter in module.parameters())

    def step(*arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parameters = [a.detach().requires_grad_() for a in arguments[: len(names)]]
        loss = torch.func.functional_call(module, dict(zip(names, parameters)), arguments[len(names) :])
        return (loss.detach(), *torch.autograd.grad(loss, parameters))

    graph = make_fx(step, decomposition_table=dict(core_aten_decompositions()))(*values, *inputs)
    return graph, (*values, *inputs)


def double(workload: Workload) -> tuple[torch.Tensor, ...]:
    """The results in float64, by eager PyTorch."""
    module, inputs = workload.build()
    module = module.double()
    inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    context = contextlib.nullcontext() if workload.training else torch.no_grad()
    with context:
        results = train_step(module, module, inputs) if workload.training else as_tuple(module(*inputs))
    return tuple(result.detach() for result in results)
