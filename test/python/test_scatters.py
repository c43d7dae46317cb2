"""Scatters of Triton targets: atomic operations in place, as eager has them, interpreted."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Optional

import pytest
import torch

import lamina
from cuda_programs import seeded
from lamina.compiler import copy_module
from lamina.frontend.call import CallableProgram
from lamina.frontend.export import import_program
from lamina.targets import get_target
from lamina.targets.cuda import CUDATarget

ROWS, COLUMNS, UPDATES = 40, 30, 3600
"""Elements times updates are more than what one kernel does by looking for the updates of each element."""


@pytest.fixture(autouse=True)
def one_thread():
    """Of two assignments to one element by several threads eager keeps either."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def lower(function: Callable[..., object], *args: torch.Tensor, shapes: Optional[object] = None):
    """The Triton IR of a program's kernels."""
    program = import_program(function, args, dynamic_shapes=shapes)
    return list(CUDATarget("sm_90").emit_ttir(copy_module(program.module)).values())


def run(function: Callable[..., torch.Tensor], *args: torch.Tensor, shapes: Optional[object] = None):
    """The results of a program, interpreted, and the Triton IR of its kernels."""
    program = import_program(function, args, dynamic_shapes=shapes)
    text = "\n".join(CUDATarget("sm_90").emit_ttir(copy_module(program.module)).values())
    return CallableProgram(program, CUDATarget("sm_90").interpret(program), inspect.signature(function)), text


def check(function, *args, shapes=None, others=(), atomics=True, exact=True):
    """A program equals eager, and has atomic operations or none."""
    compiled, text = run(function, *args, shapes=shapes)
    assert ("tt.atomic_rmw" in text) == atomics
    for given in (args, *others):
        before = [x.clone() for x in given]
        actual, expected = compiled(*given), function(*given)
        assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
        tolerance = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
        torch.testing.assert_close(given, tuple(before), rtol=0, atol=0, equal_nan=True)


def indices(count=UPDATES, size=ROWS, seed=0):
    return torch.randint(0, size, (count,), generator=torch.Generator().manual_seed(seed))


def numbers(*shape, dtype=torch.float32, seed=0):
    """Small integers: their sums are exact in any order."""
    low = 0 if dtype in (torch.uint8, torch.bool) else -2
    values = torch.randint(low, 3, shape, generator=torch.Generator().manual_seed(seed))
    return values.to(dtype)


WIDE = [torch.float32, torch.float64, torch.int32, torch.int64]
NARROW = [torch.float16, torch.bfloat16, torch.int16, torch.int8, torch.uint8]


@pytest.mark.parametrize("dtype", WIDE + NARROW, ids=str)
def test_sums(dtype):
    x, u = numbers(ROWS, COLUMNS, dtype=dtype, seed=1), numbers(UPDATES, COLUMNS, dtype=dtype)
    check(lambda x, i, u: x.index_add(0, i, u), x, indices(), u)


@pytest.mark.parametrize(
    "dtype, reduce",
    [
        *itertools.product(WIDE + NARROW, ["amax", "amin", "mean", "sum"]),
        *itertools.product([torch.float32, torch.float16, torch.int64, torch.uint8], ["prod"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions(dtype, reduce, include_self):
    x = numbers(1200, dtype=dtype, seed=1)
    u = numbers(UPDATES, dtype=dtype) if reduce != "prod" else torch.ones(UPDATES, dtype=dtype)

    def function(x, i, u):
        return x.scatter_reduce(0, i, u, reduce, include_self=include_self)

    check(function, x, indices(size=1200), u, atomics=reduce != "prod" or not include_self, exact=reduce != "mean")


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_extrema_of_special_numbers(dtype, reduce):
    special = torch.tensor([float("nan"), -float("nan"), float("inf"), -float("inf"), -1.5, 2.0, 1e-7, -1e-7])
    x, u = special.repeat(150).to(dtype), special[indices(size=8, seed=3)].to(dtype)

    def function(x, i, u):
        return x.scatter_reduce(0, i, u, reduce)

    check(function, x, indices(size=1200), u)
    check(function, x.nan_to_num(0), indices(size=1200), u.nan_to_num(0))


@pytest.mark.parametrize("dtype", [*WIDE, *NARROW, torch.bool], ids=str)
def test_the_last_assignment_counts(dtype):
    x, u = numbers(ROWS, COLUMNS, dtype=dtype, seed=1), numbers(UPDATES, COLUMNS, dtype=dtype)

    def function(x, i, u):
        x = x.clone()
        x[i] = u
        return x

    check(function, x, indices(), u)
    check(function, x, indices(size=7) * 2 + 1, u)


def test_assignments_of_two_indices():
    def function(x, i, j, u):
        return x.index_put((i, j), u)

    i, j = indices(), indices(size=COLUMNS, seed=1)
    check(function, numbers(ROWS, COLUMNS), i, j, numbers(UPDATES, seed=2))
    check(function, numbers(ROWS, COLUMNS, 3), i.reshape(60, 60), j.reshape(60, 60), numbers(60, 60, 3, seed=2))
    check(lambda x, i, j, u: x.index_put((i, j), u), numbers(ROWS, COLUMNS), i[:, None], j[:1], numbers(UPDATES, 1))


def test_assignments_along_a_middle_dimension():
    def function(x, i, u):
        x = x.clone()
        x[:, i] = u
        return x

    check(function, numbers(3, 400, 5), indices(size=400), numbers(3, UPDATES, 5, seed=2))


def test_scatter_along():
    x, i, u = numbers(ROWS, COLUMNS), indices(ROWS * 90, COLUMNS).reshape(ROWS, 90), numbers(ROWS, 90, seed=2)
    check(lambda x, i, u: x.scatter_add(1, i, u), x, i, u)
    check(lambda x, i, u: x.scatter(1, i, u), x, i, u)
    check(lambda x, i: x.scatter(1, i, 2.5), x, i)
    check(lambda x, i, u: x.t().scatter_add(0, i, u), x, i.t(), u.t())


def test_memory_of_the_operand_is_its_own():
    i, u = indices(), numbers(UPDATES, COLUMNS)

    def twice(x, i, u):  # both start from zeros
        return torch.zeros(ROWS, COLUMNS).index_add(0, i, u) - 2 * torch.zeros(ROWS, COLUMNS).index_add(0, i, u * 3)

    def read_after(x, i, u):
        y = x * 2
        return y.index_add(0, i, u) * y

    def chain(x, i, u):
        y = (x + 1).index_add(0, i, u).index_add(0, i.flip(0), u)
        return y.index_add(0, i, u) * 3

    def own_updates(x, i, u):
        y = x + 1
        return y.index_add(0, i, y[i] + u)

    def reshaped(x, i, u):
        return (x.reshape(-1) + 1).reshape(ROWS, COLUMNS).index_add(0, i, u).reshape(COLUMNS, ROWS).t() * 2

    def transposed(x, i, u):
        return (x + 1).t().index_add(1, i, u.t())

    for function in (twice, read_after, chain, own_updates, reshaped, transposed):
        check(function, numbers(ROWS, COLUMNS, seed=1), i, u)


def test_results_that_are_returned_twice():
    def function(x, i, u):
        y = (x + 1).index_add(0, i, u)
        return torch.stack([y, y + 1, x])

    check(function, numbers(ROWS, COLUMNS, seed=1), indices(), numbers(UPDATES, COLUMNS))

    def pair(x, i, u):
        start = x + 1
        return start, start.index_add(0, i, u), start.index_add(0, i, u)

    args = numbers(ROWS, COLUMNS, seed=1), indices(), numbers(UPDATES, COLUMNS)
    compiled, text = run(pair, *args)
    assert "tt.atomic_rmw" in text
    results = compiled(*args)
    for actual, expected in zip(results, pair(*args), strict=True):
        assert torch.equal(actual, expected)
    assert len({x.data_ptr() for x in results}) == 3


def test_changes_of_updates_are_computed_in_the_kernel():
    def function(x, i, u):
        return x.index_add(0, torch.where(i < 5, 0, i), torch.relu(u) * 2)

    args = numbers(ROWS, COLUMNS, seed=1), indices(), numbers(UPDATES, COLUMNS)
    check(function, *args)
    kernels = lower(function, *args)
    (scatter,) = (text for text in kernels if "tt.atomic_rmw" in text)
    assert "arith.mulf" in scatter
    assert len(kernels) == 3, "a copy, a check of the indices, and all the rest"


def test_dynamic_sizes():
    dim = torch.export.Dim("n", min=1, max=10000)

    def add(x, i, u):
        return x.index_add(0, i, u)

    def assign(x, i, u):
        return x.index_put((i,), u)

    others = [(numbers(9000, 4, seed=1), indices(n, seed=n), numbers(n, 4, seed=n)) for n in (2, 33, 700)]
    for function in (add, assign):
        args = numbers(9000, 4, seed=1), indices(50), numbers(50, 4)
        check(function, *args, shapes=(None, {0: dim}, {0: dim}), others=others)


def test_strides():
    x, u = numbers(COLUMNS, ROWS).t(), numbers(UPDATES, 2 * COLUMNS)[:, ::2]
    check(lambda x, i, u: x.index_add(0, i, u), x, indices(2 * UPDATES)[::2], u)
    check(lambda x, i, u: x.index_add(0, i, u), x, indices(), numbers(1, 1).expand(UPDATES, COLUMNS))


def test_sizes_of_one_and_nothing():
    check(lambda x, i, u: x.index_add(0, i, u), numbers(1, 1200), indices(size=1), numbers(UPDATES, 1200))
    check(lambda x, i, u: x.index_add(1, i, u), numbers(1200, 1), indices(size=1), numbers(1200, UPDATES))
    check(lambda x, i, u: x.index_add(0, i, u), numbers(4, 0), indices(size=4), numbers(UPDATES, 0), atomics=False)
    check(lambda x, i, u: x.index_add(0, i, u), numbers(4, 5), indices(0), numbers(0, 5), atomics=False)


def test_few_updates_are_looked_for():
    many = numbers(9000, 900), indices(7), numbers(7, 900)
    assert not any("tt.atomic_rmw" in kernel for kernel in lower(lambda x, i, u: x.index_add(0, i, u), *many))
    check(lambda x, i, u: x.index_add(0, i, u), numbers(9, 90), indices(size=9), numbers(UPDATES, 90), atomics=False)


def test_an_embedding_learns():
    def function(w, i, g):
        w = w.detach().requires_grad_()
        out = torch.nn.functional.embedding(i, w, padding_idx=3)
        return torch.autograd.grad((out * g).sum(), w)[0]

    w, i, g = seeded(500, 16), indices(1200, 500), seeded(1200, 16, seed=2)
    check(lambda i, g: torch.ops.aten.embedding_dense_backward(g, i, 500, 3, False), i, g, exact=False)
    torch.testing.assert_close(function(w, i, g), torch.ops.aten.embedding_dense_backward(g, i, 500, 3, False))


def test_sums_of_narrow_floats_are_rounded_once():
    x, u = torch.zeros(1200, dtype=torch.bfloat16), torch.full((UPDATES,), 0.01, dtype=torch.bfloat16)
    i = torch.zeros(UPDATES, dtype=torch.int64)
    compiled, _ = run(lambda x, i, u: x.index_add(0, i, u), x, i, u)
    exact = u[0].double() * UPDATES
    assert abs(compiled(x, i, u)[0].double() - exact) < 0.005 * exact


def test_deterministic_algorithms_have_an_order():
    x, u = seeded(1200), seeded(UPDATES)
    i = indices(size=1200)

    def add(x, i, u):
        return x.index_add(0, i, u)

    torch.use_deterministic_algorithms(True)
    try:
        check(add, x, i, u, atomics=False, exact=False)
        check(add, x.long(), i, u.long())
        check(lambda x, i, u: x.index_put((i,), u), x, i, u)
    finally:
        torch.use_deterministic_algorithms(False)
    check(add, x, i, u, exact=False)


def test_an_index_outside_is_an_error():
    compiled, text = run(
        lambda x, i, u: x.index_add(0, i, u), numbers(ROWS, COLUMNS), indices(), numbers(UPDATES, COLUMNS)
    )
    assert "tt.atomic_rmw" in text
    wrong = indices()
    wrong[17] = ROWS
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        compiled(numbers(ROWS, COLUMNS), wrong, numbers(UPDATES, COLUMNS))


@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_machine_code(chip):
    args = seeded(ROWS, COLUMNS), indices(), seeded(UPDATES, COLUMNS)
    program = import_program(lambda x, i, u: x.index_add(0, i, u).sum() + x.index_put((i,), u).amax(), args)
    target = get_target(f"cuda:{chip}")
    kernels = target.compile_kernels(copy_module(program.module), after="prim")
    assert len(kernels) >= 4 and all(kernel.spills == 0 for kernel in kernels.values())


def test_the_cpu_keeps_the_order():
    x, u = seeded(1200), seeded(UPDATES)
    torch.testing.assert_close(
        lamina.compile(lambda x, i, u: x.index_add(0, i, u), (x, indices(size=1200), u))(x, indices(size=1200), u),
        x.index_add(0, indices(size=1200), u),
        rtol=0,
        atol=0,
    )
