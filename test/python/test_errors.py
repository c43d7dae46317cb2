"""Errors name the user's line, the operator, its module and the argument."""

import logging

import pytest
import torch

import lamina
from lamina import CompileError
from lamina.compiler import run_passes
from lamina.errors import Place, find_place
from lamina.frontend.text import parse_program
from lamina.logging import get_logger, timed


@pytest.mark.parametrize(
    "text,expected",
    [
        ('loc("add"("a.b"("/x/net.py":12:0))): error: no', Place("add", "a.b", "/x/net.py:12")),
        ('loc("add"("/x/net.py":12:0)): error: no', Place("add", None, "/x/net.py:12")),
        ('loc(fused["mm"("l"("/x/n.py":3:0)), "add"("/x/m.py":9:0)]): error: no', Place("mm", "l", "/x/n.py:3")),
        ('loc("net.mlir":3:4): error: no', Place(None, None, "net.mlir:3")),
        ('loc(unknown): error: no\n  loc("add"("/x/net.py":12:0)): note: here', Place("add", None, "/x/net.py:12")),
        ("error: no", Place()),
        ("", Place()),
    ],
)
def test_places_in_diagnostics(text, expected):
    assert find_place(text) == expected


def test_message():
    error = CompileError("cannot do it", "aten.foo", "model.py:12", "do that.", "layers.3.mlp")
    assert str(error) == "model.py:12: aten.foo (module layers.3.mlp): cannot do it\n  what to do: do that."
    assert str(CompileError("cannot")) == "cannot"
    assert str(CompileError("aten.foo is bad", "aten.foo", module="m")) == "in module m: aten.foo is bad"


LOCATED = 'module { func.func @main() { return } } loc("mm"("layers.3"("/x/model.py":12:0)))'


def test_a_pass_that_fails_names_the_line():
    with pytest.raises(CompileError) as caught:
        run_passes(parse_program(LOCATED, "x"), "lamina-crash-for-test{kind=error}", "fused")
    error = caught.value
    assert (error.op, error.module, error.location) == ("mm", "layers.3", "/x/model.py:12")
    assert str(error).startswith(
        "/x/model.py:12: mm (module layers.3): the program could not be taken to the phase 'fused'"
    )


def test_a_pass_that_crashes_is_an_error():
    with pytest.raises(CompileError, match="the compiler crashed on the way to the phase 'tiled'") as caught:
        run_passes(parse_program(LOCATED, "x"), "lamina-crash-for-test{kind=segfault}", "tiled")
    assert "lamina-crash-for-test" in str(caught.value)


@pytest.mark.parametrize(
    "text,message",
    [
        ("garbage{", "x.mlir:1:1: custom op 'garbage' is unknown"),
        ("module {}", "x.mlir has no function @main"),
        ("func.func private @main()", "x.mlir has no function @main"),
        (
            "func.func @main(%x: tensor<3xf32>) {\n  %0 = prim.transpose %x [1] : tensor<3xf32> to tensor<3xf32>\n  return\n}",
            "x.mlir:2:",
        ),
    ],
)
def test_text_that_is_wrong(text, message):
    with pytest.raises(CompileError) as caught:
        parse_program(text, "x.mlir")
    assert message in str(caught.value)


class Inner(torch.nn.Module):
    def forward(self, x):
        return x.nonzero()


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity(), Inner()])

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


def test_an_operator_that_is_not_known():
    with pytest.raises(CompileError) as caught:
        lamina.compile(Outer(), (torch.ones(4),))
    error = caught.value
    line = Inner.forward.__code__.co_firstlineno + 1
    assert error.location == f"{__file__}:{line}"
    assert error.module == "layers.1"
    assert str(error).startswith(f"{__file__}:{line}: in module layers.1: Lamina cannot compile aten.nonzero.default")
    assert 'fallback="eager"' in error.hint


def branches(x):
    return x if x.sum() > 0 else -x


def test_a_branch_on_a_value():
    with pytest.raises(CompileError, match="branches on a value") as caught:
        lamina.compile(branches, (torch.ones(4),))
    assert caught.value.location == f"{__file__}:{branches.__code__.co_firstlineno + 1}"


@pytest.fixture(scope="module")
def program():
    dims = {"x": {0: torch.export.Dim("n", min=2, max=8)}, "y": {0: torch.export.Dim("n", min=2, max=8)}, "k": None}

    def add(x, y, k):
        return x + y.sum() * k

    return lamina.compile(add, (torch.ones(3, 4), torch.ones(3, 2), 2), dynamic_shapes=dims)


X, Y = torch.ones(3, 4), torch.ones(3, 2)


@pytest.mark.parametrize(
    "args,kind,message",
    [
        ((X, Y), TypeError, "'k'"),
        ((X, Y, 2, 3), TypeError, "too many positional arguments"),
        ((1, Y, 2), TypeError, "argument 'x' is a int, expected a tensor"),
        ((X.double(), Y, 2), TypeError, "argument 'x' has dtype torch.float64, expected torch.float32"),
        ((X, Y.to("meta"), 2), TypeError, "argument 'y' is on device meta, expected cpu"),
        ((X, Y.to_sparse(), 2), TypeError, "argument 'y' has layout torch.sparse_coo"),
        ((X, Y[0], 2), ValueError, "argument 'y' has 1 dimensions, expected 2"),
        ((X, torch.ones(3, 3), 2), ValueError, "argument 'y' has size 3 in dimension 1, expected 2"),
        ((X[:, :3], Y, 2), ValueError, "argument 'x' has size 3 in dimension 1, expected 4"),
        ((X, Y[:2], 2), ValueError, "argument 'y' has size 2 in dimension 0, expected 3"),
        (
            (torch.ones(9, 4), torch.ones(9, 2), 2),
            ValueError,
            "argument 'x' has size 9 in dimension 0, expected from 2 to 8",
        ),
        ((X, Y, 3), ValueError, "argument 'k' is 3, the program was compiled for 2"),
    ],
)
def test_calls_that_are_wrong_name_the_argument(program, args, kind, message):
    with pytest.raises(kind) as caught:
        program(*args)
    assert message in str(caught.value)


def test_names_that_are_wrong(program):
    with pytest.raises(TypeError, match="'z'"):
        program(X, Y, 2, z=2)
    torch.testing.assert_close(program(X, k=2, y=Y), X + 12)


def test_phases_of_a_program(program):
    for phase, part in [
        ("fx", "torch.ops.aten"),
        ("prim", "prim.add"),
        ("fused", "kernel.launch"),
        ("planned", "outs("),
        ("linalg", "linalg.generic"),
        ("tiled", "scf.forall"),
        ("llvm", "target triple"),
        ("asm", ".text"),
    ]:
        assert part in program.ir(phase), phase
    assert "prim." not in program.ir("linalg") and "kernel." not in program.ir("linalg")
    assert program.ir("obj").startswith(b"\x7fELF")
    with pytest.raises(ValueError, match="has no phase 'nope'; it has prim, fused"):
        program.ir("nope")


def test_kernels_and_memory(program):
    assert program.kernels and all(isinstance(name, str) for name in program.kernels)
    assert program.peak_memory(X, Y, 2) >= X.nbytes
    assert program.peak_memory(torch.ones(8, 4), torch.ones(8, 2), 2) >= 2 * X.nbytes


def test_logs(monkeypatch, capsys):
    monkeypatch.setenv("LAMINA_LOGS", "alpha, beta")
    with timed(get_logger("alpha"), "work"):
        pass
    get_logger("gamma").debug("silent")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "alpha: work: " in lines[0] and lines[0].endswith(" ms of CPU)")
    assert not logging.getLogger("lamina.gamma").handlers
