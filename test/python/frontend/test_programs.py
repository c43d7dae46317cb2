"""Programs compiled ahead of time behave as in eager: aliases, mutations, structures, dynamic sizes, errors."""

from __future__ import annotations

import dataclasses
import functools
import operator

import pytest
import torch
import torch.nn.functional as F
from programs import compare, compile_and_compare, torch_compile
from torch import nn
from torch.export import Dim

import lamina


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


# ---- aliases and mutations


def test_results_that_are_views_of_arguments():
    compile_and_compare(lambda x, y: (x.view(-1), y.t(), x[1:, ::2], (x + 1)), random(4, 6), random(3, 5))


def test_the_argument_itself():
    x = random(3)
    program = lamina.compile(lambda x: (x, x + 1), (x,), target="reference")
    assert program(x)[0] is x


def test_views_take_their_sizes_from_the_call():
    batch = Dim("batch", min=0)
    shapes = ({0: batch},)
    calls = [(random(n, 6),) for n in (4, 1, 0, 9)]
    compile_and_compare(lambda x: x.view(x.shape[0] * 2, 3), random(5, 6), calls=calls, dynamic_shapes=shapes)


def test_one_result_twice():
    x = random(3)

    def f(x):
        y = x * 2
        return y, [y]

    program = lamina.compile(f, (x,), target="reference")
    first, (second,) = program(x)
    assert first is second


def test_arguments_are_written_to():
    def f(x, y):
        x.add_(1)
        y.view(-1)[:2] = 5
        return x.t(), y, x * 2

    compile_and_compare(f, random(3, 4), random(2, 3))


def test_value_before_a_write_is_no_alias():
    def f(x):
        before = x.clone()
        x.mul_(3)
        return before, x

    compile_and_compare(f, random(3, 4))


def test_written_argument_that_shares_memory_is_refused():
    x = random(4)
    program = lamina.compile(lambda x, y: x.add_(y), (random(3), random(3)), target="reference")
    with pytest.raises(ValueError, match="argument 'x' is written to and shares memory"):
        program(x[:3], x[1:])


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("running", torch.zeros(3), persistent=False)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        self.count += 1
        self.running.lerp_(x.mean(0), 0.5)
        return x * self.scale + self.count


@pytest.mark.parametrize("freeze", [True, False])
def test_buffers_are_written_to(freeze):
    calls = [(random(2, 3),), (random(2, 3) + 1,)]
    compile_and_compare(Counter(), random(2, 3), calls=calls, freeze=freeze)


def test_weights_that_are_not_frozen_are_read_at_each_call():
    model = nn.Linear(3, 2)
    x = random(4, 3)
    program = lamina.compile(model, (x,), target="reference", freeze=False)
    with torch.no_grad():
        model.weight.mul_(2)
        torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_frozen_weights_that_change_are_an_error(target):
    model, x = nn.Linear(4, 3), random(2, 4)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    changes = {
        "'bias'": lambda: model.bias.mul_(-3),
        "'weight'": lambda: model.weight[0].zero_(),
        "'weight', 'bias'|'bias', 'weight'": lambda: model.load_state_dict(state),
    }
    with torch.no_grad():
        for name, change in changes.items():
            program = lamina.compile(model, (x,), target=target)
            torch.testing.assert_close(program(x), model(x))
            change()
            with pytest.raises(RuntimeError, match=f"(?:{name}) changed after .* compile again"):
                program(x)
        live = lamina.compile(model, (x,), target=target, freeze=False)
        model.weight.mul_(2)
        torch.testing.assert_close(live(x), model(x))


def test_frozen_weights_are_not_kept_alive():
    model, x = nn.Linear(4, 3), random(2, 4)
    with torch.no_grad():
        expected = model(x)
    program = lamina.compile(model, (x,), target="cpu")
    assert all(frozen.counter.numel() == 0 for frozen in program.program.frozen) and len(program.program.frozen) == 2
    with torch.no_grad():
        torch.testing.assert_close(program(x), expected)
        assert model.weight.shape == (3, 4)


def test_frozen_weights_of_inference_mode_are_not_counted():
    with torch.inference_mode():
        model = nn.Linear(4, 3)
        program = lamina.compile(model, (random(2, 4),), target="cpu")
        torch.testing.assert_close(program(random(2, 4)), model(random(2, 4)))


def test_batch_norm_in_training_updates_its_statistics():
    compile_and_compare(nn.BatchNorm2d(3), random(2, 3, 4, 4))


# ---- structures


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


torch.export.register_dataclass(Pair)


def test_nested_arguments_and_results():
    def f(x, options, pair):
        y = options["a"] + options["b"][0]
        return {"sum": x + y, "list": [y, None, 3, "text", True], "pair": Pair(pair.right, pair.left * 2)}

    x, y = random(2, 3), random(2, 3)
    compile_and_compare(f, x, {"a": x, "b": (y, y)}, Pair(x, y))


def test_no_results():
    compile_and_compare(lambda x: None, random(2))


def test_keyword_arguments_in_any_order():
    class Model(nn.Module):
        def forward(self, x, *, scale, shift=None):
            return x * scale + shift

    x, a, b = random(3), random(3), random(3)
    program = lamina.compile(Model(), (x,), {"scale": a, "shift": b}, target="reference")
    expected = x * a + b
    assert torch.equal(program(x, shift=b, scale=a), expected)
    assert torch.equal(program(x=x, shift=b, scale=a), expected)
    with pytest.raises(TypeError, match="argument 'shift' is missing"):
        program(x, scale=a)


def test_numbers_from_sizes():
    def f(x):
        return x.shape[0], x.shape[0] * x.shape[1] + 1, x.sum() / x.shape[0]

    rows = Dim("rows", min=1)
    calls = [(random(n, 3),) for n in (2, 1, 7)]
    compile_and_compare(f, random(4, 3), calls=calls, dynamic_shapes=({0: rows},))


# ---- sizes


def softmax_of_rows(x):
    return torch.softmax(x * 2 + 1, -1)


def matrix_product(x):
    return x @ x.transpose(-1, -2)


def joined(x):
    return torch.cat([x, x[:, :2]], 1), torch.stack([x, x]), x.sum(0), x.amax(1)


def flattened(x):
    return x.reshape(-1), x.unsqueeze(0).expand(3, -1, -1) + 1, x[:, 1:] - x[:, :-1]


@pytest.mark.parametrize("function", [softmax_of_rows, matrix_product, joined, flattened])
def test_one_graph_for_all_sizes(function):
    calls = [(random(n, 4),) for n in (5, 7, 1, 0, 3)]
    compile_and_compare(function, random(6, 4), calls=calls, dynamic_shapes=({0: Dim("rows", min=0)},))


def test_layer_with_two_dynamic_sizes():
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    shapes = {"input": {0: Dim("batch", min=0), 1: Dim("length", min=0)}}
    calls = [(random(n, m, 4),) for n, m in ((5, 7), (1, 1), (0, 3), (3, 0), (2, 9))]
    compile_and_compare(model, random(2, 3, 4), calls=calls, dynamic_shapes=shapes)


def test_sizes_that_depend_on_each_other():
    half = Dim("half", min=1)
    shapes = ({0: 2 * half}, {0: half})
    calls = [(random(2 * n, 3), random(n, 3)) for n in (1, 4)]
    program = compile_and_compare(
        lambda x, y: x.view(2, -1, 3) + y, random(6, 3), random(3, 3), calls=calls, dynamic_shapes=shapes
    )
    with pytest.raises(ValueError, match="argument 'x' has size 5"):
        program(random(5, 3), random(2, 3))


def test_size_that_is_only_a_multiple():
    half = Dim("half", min=2)
    calls = [(random(2 * n),) for n in (2, 4)]
    compile_and_compare(lambda x: x.view(2, -1).sum(0), random(6), calls=calls, dynamic_shapes=({0: 2 * half},))


class Scale:
    def __init__(self, factor: float):
        self.factor = factor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self(self(x))


CALLABLES = {
    "mm": (torch.mm, random(3, 4), random(4, 2)),
    "exp": (torch.exp, random(3, 4)),
    "gelu": (F.gelu, random(3, 4)),
    "log1p": (torch.log1p, random(3, 4).abs()),
    "partial of a builtin": (functools.partial(torch.sum, dim=1), random(3, 4)),
    "method of a class": (torch.Tensor.add, random(3, 4), random(3, 4)),
    "operator": (operator.matmul, random(3, 4), random(4, 2)),
    "overload": (torch.ops.aten.mm.default, random(3, 4), random(4, 2)),
    "partial": (functools.partial(torch.add, alpha=3), random(3, 4), random(3, 4)),
    "partial of a function": (functools.partial(F.softmax, dim=-1), random(3, 4)),
    "object": (Scale(2.0), random(3, 4)),
    "bound method": (Scale(2.0).twice, random(3, 4)),
    "lambda": (lambda x: x + 1, random(3, 4)),
}


@pytest.mark.parametrize("case", CALLABLES)
def test_any_callable_is_a_model(case):
    function, *arguments = CALLABLES[case]
    compile_and_compare(function, *arguments)


def test_arguments_of_a_builtin_are_counted():
    program = lamina.compile(torch.mm, (random(3, 4), random(4, 2)), target="reference")
    with pytest.raises(TypeError, match=r"expected 2 arguments by position.*got 1"):
        program(random(3, 4))


# ---- memory order


def test_strides_of_results_are_eagers():
    def f(x):
        y = x * 2
        return y.t() + 1, (y + 1).permute(1, 0), y[:, ::2].contiguous(), (y * 3)[:, 1:]

    compile_and_compare(f, random(4, 6))


def heads(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bhik,bhkj->bihj", x, y)


SIZES_OF_ONE = {
    "einsum": (heads, random(1, 3, 20, 16), random(1, 3, 16, 24)),
    "operators after it": (lambda x, y: torch.relu(heads(x, y) + 1), random(1, 3, 20, 16), random(1, 3, 16, 24)),
    "a view after it": (lambda x, y: (heads(x, y) * 2).transpose(1, 2), random(1, 3, 20, 16), random(1, 3, 16, 24)),
    "reshape": (lambda x: (x @ x.mT).permute(0, 2, 1, 3).reshape(1, 4, 1, -1), random(1, 3, 4, 5)),
    "keepdim": (lambda x: x.sum(1, keepdim=True).transpose(0, 1), random(3, 2)),
    "unsqueeze": (lambda x: torch.relu(x.unsqueeze(0).permute(2, 0, 1)), random(3, 1)),
    "softmax": (lambda x, y: torch.softmax(heads(x, y), -1), random(1, 3, 20, 16), random(1, 3, 16, 24)),
    "convolution": (
        lambda x: F.conv2d(x, torch.ones(1, 3, 1, 1)),
        random(1, 3, 5, 5).to(memory_format=torch.channels_last),
    ),
}


@pytest.mark.parametrize("case", SIZES_OF_ONE)
def test_strides_of_sizes_of_one_are_eagers(case):
    function, *arguments = SIZES_OF_ONE[case]
    compile_and_compare(function, *arguments)
    torch._dynamo.reset()
    compare(torch_compile(function)(*arguments), function(*arguments))


def test_expanded_result():
    compile_and_compare(lambda x: (x + 1).unsqueeze(0).expand(3, 4), random(4))


@pytest.mark.parametrize("arrange", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0].expand(4, 6), lambda x: x])
def test_arguments_in_any_memory_order(arrange):
    x = random(4, 6)
    program = lamina.compile(lambda x: (x * 2).sum(1), (arrange(x),), target="reference")
    for argument in (arrange(x), arrange(x).contiguous(), arrange(x).t().contiguous().t()):
        torch.testing.assert_close(program(argument), (argument * 2).sum(1))


def test_channels_last():
    x = random(2, 3, 5, 5).to(memory_format=torch.channels_last)
    compile_and_compare(nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), x)


# ---- errors


def test_wrong_arguments_are_named():
    program = lamina.compile(
        lambda x, y: x + y,
        (random(4, 3), random(4, 3)),
        dynamic_shapes=({0: Dim("n")}, {0: Dim("n")}),
        target="reference",
    )
    with pytest.raises(ValueError, match=r"argument 'y' has size 5 in dimension 0, expected 4 \(s0\)"):
        program(random(4, 3), random(5, 3))
    with pytest.raises(ValueError, match="argument 'x' has size 2 in dimension 1, expected 3"):
        program(random(4, 2), random(4, 3))
    with pytest.raises(ValueError, match="argument 'x' has 1 dimensions, expected 2"):
        program(random(4), random(4, 3))
    with pytest.raises(TypeError, match="argument 'y' has dtype torch.float64, expected torch.float32"):
        program(random(4, 3), random(4, 3).double())
    with pytest.raises(TypeError, match="argument 'x' is a int, expected a tensor"):
        program(1, random(4, 3))
    with pytest.raises(TypeError):
        program(random(4, 3))


def test_bounds_of_a_size():
    program = lamina.compile(
        lambda x: x + 1, (random(4),), dynamic_shapes=({0: Dim("n", min=2, max=8)},), target="reference"
    )
    with pytest.raises(ValueError, match="argument 'x' has size 9 in dimension 0, expected from 2 to 8"):
        program(random(9))


@pytest.mark.parametrize(
    "function, arguments, kind",
    [
        (lambda w, i: F.embedding(i, w), (random(4, 3), torch.tensor([1, 4])), IndexError),
        (lambda x, i: x[i], (random(4, 3), torch.tensor([0, -5])), IndexError),
        (lambda x, i: x.gather(0, i), (random(4), torch.tensor([4])), RuntimeError),
        (lambda x, i: x.index_select(0, i), (random(4, 3), torch.tensor([-1])), IndexError),
        (lambda x, i: x.scatter(0, i, 1.0), (random(4), torch.tensor([4])), RuntimeError),
        (lambda x, y: x // y, (torch.tensor([1, 2]), torch.tensor([1, 0])), RuntimeError),
        (lambda x, y: x % y, (torch.tensor([1, 2]), torch.tensor([1, 0])), RuntimeError),
    ],
)
def test_programs_that_fail_raise_what_eager_raises(function, arguments, kind):
    with pytest.raises(kind) as eager:
        function(*arguments)
    good = tuple(a.clamp(0, 1) if a.dtype == torch.int64 and k else a for k, a in enumerate(arguments))
    program = lamina.compile(function, good, target="reference")
    with pytest.raises(kind) as raised:
        program(*arguments)
    if "index " not in str(eager.value) or "range in self" in str(eager.value):
        assert str(raised.value) == str(eager.value)


class Projection(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


@pytest.mark.parametrize("fallback", ["error", "eager"])
def test_programs_that_are_wrong_raise_what_eager_raises(fallback):
    model, x = Projection(), torch.ones(2, 4, dtype=torch.int64)
    with pytest.raises(RuntimeError) as eager:
        model(x)
    with pytest.raises(RuntimeError) as raised:
        lamina.compile(model, (x,), target="reference", fallback=fallback)
    assert type(raised.value) is RuntimeError and str(raised.value) == str(eager.value)
    line = Projection.forward.__code__.co_firstlineno + 1
    assert any(f"{__file__}:{line}" in note for note in getattr(raised.value, "__notes__", [f"{__file__}:{line}"]))
    torch._dynamo.reset()
    with pytest.raises(RuntimeError) as raised:
        torch_compile(model, fallback=fallback)(x)
    # TorchDynamo adds where it was
    assert str(raised.value).startswith(str(eager.value)) and type(raised.value).__name__ == "RuntimeError"


@pytest.fixture
def broken_sine(monkeypatch):
    """The lowering of sin makes an op that does not verify."""
    from lamina.frontend.importer import Importer

    whole = Importer._import_node

    def broken(self, node):
        if node.target is torch.ops.aten.sin.default:
            from lamina._lib import _lamina

            raise _lamina.CompilerError("'prim.sin' op C1: no")
        return whole(self, node)

    monkeypatch.setattr(Importer, "_import_node", broken)


def test_a_lowering_that_fails_where_eager_does_not(broken_sine):
    def f(x):
        return torch.sin(x) + 1

    with pytest.raises(lamina.CompileError, match="aten.sin.default") as raised:
        lamina.compile(f, (random(3),), target="reference")
    assert raised.value.location == f"{__file__}:{f.__code__.co_firstlineno + 1}"
    with pytest.warns(UserWarning, match="PyTorch runs it"):
        compile_and_compare(f, random(3), fallback="eager")


def test_what_cannot_be_compiled_is_named():
    def f(x):
        return torch.linalg.svdvals(x)

    with pytest.raises(lamina.CompileError) as raised:
        lamina.compile(f, (random(3, 3),), target="reference")
    line = f.__code__.co_firstlineno + 1
    assert raised.value.op == "aten._linalg_svd.default"
    assert raised.value.location == f"{__file__}:{line}"
    assert "fallback" in str(raised.value)


def test_fallback_to_eager():
    def f(x):
        y = torch.relu(x) + 1
        return torch.linalg.svdvals(y) * 2, y.sum(), torch.nonzero(y > 1).float().sum()

    with pytest.warns(UserWarning, match="PyTorch runs it"):
        compile_and_compare(f, random(3, 3), fallback="eager")


def test_unknown_target():
    with pytest.raises(lamina.CompileError, match="there is no target 'abacus'"):
        lamina.compile(lambda x: x, (random(2),), target="abacus")
