"""torch.compile with the lamina backend: inference, training, dynamic sizes, mutation, fallback."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
import torch.nn.functional as F
from programs import torch_compile
from torch import nn

import lamina


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def train_and_compare(function, *args: torch.Tensor) -> None:
    """Compares results and gradients of arguments and parameters with eager."""

    def run(function, parameters):
        leaves = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        results = [r for r in torch.utils._pytree.tree_leaves(function(*leaves)) if isinstance(r, torch.Tensor)]
        # a loss in which each element counts differently
        sum((r * torch.linspace(0.5, 1, r.numel()).view(r.shape)).sum() for r in results if r.requires_grad).backward()
        return results, [t.grad for t in (*leaves, *parameters)]

    eager = copy.deepcopy(function)
    expected = run(eager, list(eager.parameters()) if isinstance(eager, nn.Module) else [])
    got = run(torch_compile(function), list(function.parameters()) if isinstance(function, nn.Module) else [])
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


MASK = torch.rand(2, 1, 5, 5, generator=torch.Generator().manual_seed(0)) > 0.3
MASK[0, 0, 2] = False
HEADS = (random(2, 4, 5, 8), random(2, 4, 5, 8) * 0.5, random(2, 4, 5, 8) + 1)

TRAINING = {
    "attention": (F.scaled_dot_product_attention, *HEADS),
    "causal attention": (functools.partial(F.scaled_dot_product_attention, is_causal=True), *HEADS),
    "masked attention": (functools.partial(F.scaled_dot_product_attention, attn_mask=MASK), *HEADS),
    "grouped attention": (
        functools.partial(F.scaled_dot_product_attention, enable_gqa=True),
        HEADS[0],
        HEADS[1][:, :2],
        HEADS[2][:, :2],
    ),
    "grouped convolution": (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), random(2, 4, 9, 9)),
    "dilated convolution": (nn.Conv1d(4, 6, 3, padding=2, dilation=2), random(2, 4, 9)),
    "transposed convolution": (
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        random(2, 4, 5, 5),
    ),
    "residual block": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        random(2, 3, 8, 8),
    ),
    "group norm": (nn.GroupNorm(2, 4), random(2, 4, 5, 5)),
    "perceptron": (nn.Sequential(nn.LayerNorm(8), nn.GELU(approximate="tanh"), nn.Linear(8, 3)), random(2, 3, 8)),
    "average pooling": (nn.AvgPool2d(3, 2, 1), random(2, 3, 9, 9)),
    "embedding": (lambda w, i: F.embedding(i, w), random(10, 4), torch.tensor([[1, 2], [9, 1]])),
    "lstm": (nn.LSTM(4, 5, 2), random(3, 2, 4)),
    "cross entropy": (F.cross_entropy, random(5, 7), torch.tensor([0, 6, 3, 3, 1])),
    "encoder layer": (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), random(2, 3, 8)),
    "order statistics": (lambda x: x.max(1).values + x.sort(1)[0][:, 0] + x.topk(2, 1)[0][:, 1], random(5, 4)),
}


@pytest.mark.parametrize("case", TRAINING, ids=[name.replace(" ", "_") for name in TRAINING])
def test_training(case):
    torch.manual_seed(0)
    train_and_compare(*TRAINING[case])


def test_backend_is_found_by_its_function_name():
    assert torch_compile(lambda x: x + 1)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_dynamic_sizes_without_guards_on_zero_and_one():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8))
    graphs = []

    def counting(gm, inputs, **kwargs):
        graphs.append(gm)
        return lamina.frontend.dynamo.backend(gm, inputs, **kwargs)

    with torch.fx.experimental._config.patch(backed_size_oblivious=True), torch.no_grad():
        options = {"target": "reference", "fallback": "error"}
        compiled = torch.compile(model, backend=functools.partial(counting, options=options), dynamic=True)
        compiled(random(5, 4))
        count = len(graphs)
        for rows in (5, 7, 1, 0, 3):
            x = random(rows, 4)
            torch.testing.assert_close(compiled(x), model(x))
    assert len(graphs) == count


def test_numbers_become_symbols():
    compiled = torch_compile(lambda x, n: x * n + n, dynamic=True)
    for n in (3, 4, 9):
        torch.testing.assert_close(compiled(random(4), n), random(4) * n + n)


def test_mutations_and_aliases():
    def f(x, y):
        x.add_(1)
        y.view(-1)[:2] = 5
        return x.t(), y

    a, b = random(3, 4), random(2, 3)
    mine, theirs = (a.clone(), b.clone()), (a.clone(), b.clone())
    got, expected = torch_compile(f)(*mine), f(*theirs)
    torch.testing.assert_close((mine, got), (theirs, expected))
    assert got[1] is mine[1] and got[0].data_ptr() == mine[0].data_ptr()


def test_frozen_weights_are_constants():
    model = nn.Linear(4, 3)
    compiled = torch_compile(model, freeze=True)
    x = random(2, 4)
    with torch.no_grad():
        before = model(x)
        torch.testing.assert_close(compiled(x), before)
        model.weight.zero_()
        with pytest.raises(RuntimeError, match="changed after the program was compiled"):
            compiled(x)


def test_fallback():
    def f(x):
        y = torch.relu(x)
        return torch.linalg.svdvals(y) + y.sum()

    with pytest.warns(UserWarning, match="aten._linalg_svd.default"):
        got = torch_compile(f, fallback="eager")(random(3, 3))
    torch.testing.assert_close(got, f(random(3, 3)))


def test_no_fallback():
    with pytest.raises(lamina.CompileError, match="aten._linalg_svd.default") as raised:
        torch_compile(lambda x: torch.linalg.svdvals(x))(random(3, 3))
    assert raised.value.location.startswith(__file__)


def _dropouts(x):
    return F.dropout(F.dropout(x, 0.5) * 2, 0.5), torch.rand(3)


def _branches(x):
    return F.dropout(x.abs(), 0.5) * 3 + F.dropout(F.dropout(x, 0.3) - 1, 0.2), torch.randn(2)


@pytest.mark.parametrize("function", [_dropouts, _branches])
def test_random_numbers_come_in_the_order_of_the_program(function):
    x = random(4, 5)
    torch.manual_seed(3)
    expected = function(x)
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="PyTorch runs it"):
        got = torch_compile(function, fallback="eager")(x)
    torch.testing.assert_close(got, expected)


SOLVERS = {
    "inv": lambda x: torch.linalg.inv(x.abs()) * 2,
    "cholesky": lambda x: torch.linalg.cholesky(x).exp(),
    "solve": lambda x: torch.linalg.solve(x, x + 1) + torch.linalg.inv(x),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.filterwarnings("ignore:Lamina cannot compile")
def test_checks_of_solvers_are_kept(name, ahead):
    function, good, singular = SOLVERS[name], torch.eye(3) * 4 + 1, -torch.ones(3, 3)
    if ahead:
        compiled = lamina.compile(function, (good,), target="reference", fallback="eager")
    else:
        compiled = torch_compile(function, fallback="eager")
    torch.testing.assert_close(compiled(good), function(good))
    with pytest.raises(torch.linalg.LinAlgError) as expected:
        function(singular)
    with pytest.raises(torch.linalg.LinAlgError) as raised:
        compiled(singular)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("message", [None, "no: it is not"])
@pytest.mark.parametrize("ahead", [False, True])
def test_assertions_of_data(message, ahead):
    def f(x):
        torch._assert_async(x.sum() > 0, *([] if message is None else [message]))
        return x + 1

    good, bad = torch.ones(3), -torch.ones(3)
    compiled = lamina.compile(f, (good,), target="reference") if ahead else torch_compile(f)
    torch.testing.assert_close(compiled(good), f(good))
    with pytest.raises(RuntimeError) as expected:
        f(bad)
    with pytest.raises(RuntimeError) as raised:
        compiled(bad)
    assert str(raised.value) == str(expected.value)


def test_fallback_from_the_environment(monkeypatch):
    monkeypatch.setenv("LAMINA_FALLBACK", "error")
    with pytest.raises(lamina.CompileError):
        torch_compile(lambda x: torch.linalg.svdvals(x), fallback="eager")(random(3, 3))


def test_unknown_option():
    with pytest.raises(Exception, match="unknown option 'fallbck'"):
        torch.compile(
            lambda x: x + 1, backend=functools.partial(lamina.frontend.dynamo.backend, options={"fallbck": "eager"})
        )(random(2))
