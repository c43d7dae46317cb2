"""The driver: what it prints and where, its exit codes, inputs that are wrong, and the examples of its page."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch

from lamina.cli import call as call_driver
from lamina.cli.inputs import InputSpec, InputType
from lamina.cli.pt2 import _is_expression, _is_target

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)
    def forward(self, x):
        return torch.relu(self.linear(x))

def add(x, y):
    print("from the model")
    return {"sum": x + y, "k": 3}

def inputs():
    return torch.ones(4, 16)

def fails(x):
    raise ValueError("on purpose")

def leaves(x):
    raise SystemExit(7)

def wrong():
    raise RuntimeError("no inputs")

class Needs(torch.nn.Module):
    def __init__(self, size):
        super().__init__()

number = 3
"""
PRIM = """
func.func @main(%x: tensor<?x4xf32> {prim.sizes = affine_map<()[s0] -> (s0, 4)>}) -> tensor<?x4xf32> {
  %0 = prim.exp %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folder(tmp_path, monkeypatch, cache):
    """The working folder of a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(cache))
    monkeypatch.delenv("LAMINA_DEBUG", raising=False)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "exp.mlir").write_text(PRIM)
    return tmp_path


@pytest.fixture
def driver(folder, capsys):
    """Runs the driver in this process; returns exit code, stdout, stderr."""

    def call(line):
        code = call_driver(shlex.split(line))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


def test_without_a_command_the_help_is_shown(driver):
    code, out, err = driver("")
    assert code == 2 and out == ""
    assert err.startswith("Usage: lamina ") and "Commands:" in err and "error:" not in err


@pytest.mark.parametrize(
    "name,value,code,message",
    [
        ("LAMINA_FALLBACK", "banana", 1, "error: LAMINA_FALLBACK is 'banana', expected one of eager, error"),
        ("LAMINA_CACHE_SIZE", "banana", 0, "warning: LAMINA_CACHE_SIZE is 'banana', expected bytes such as 500M"),
        ("LAMINA_LOGS", "banana,cache", 0, "warning: LAMINA_LOGS names banana, expected some of frontend, "),
    ],
)
def test_settings_that_are_wrong_are_named(driver, monkeypatch, name, value, code, message):
    from lamina import cache

    cache.warn_once.cache_clear()
    monkeypatch.setenv(name, value)
    got, _, err = driver("compile model.py:Net --input f32[4,16]")
    assert got == code and sum(line.startswith(message) for line in err.splitlines()) == 1
    cache.warn_once.cache_clear()


def test_arguments_of_a_module_are_counted(driver, folder):
    code, out, _ = driver("compile model.py:Net --input f32[4,16] --emit prim")
    assert code == 0
    (folder / "net.mlir").write_text(out)
    code, _, err = driver("run net.mlir --input f32[4,16]")
    assert code == 1 and "raised" not in err
    assert "the @main of net.mlir takes 3 arguments (" in err and "f32[8,16]" in err
    assert "1 was given by --input" in err
    code, _, err = driver("run exp.mlir")
    assert code == 1 and "takes 1 argument (arg0: f32[s0,4]), 0 were given by --input" in err


def test_summary(driver):
    code, out, err = driver("compile model.py:Net --input f32[4,16]")
    assert code == 0 and err == ""
    rows = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())
    assert rows["program"] == "model.py:Net" and rows["target"] == "cpu"
    assert int(rows["kernels"]) >= 1 and int(rows["launches"]) >= 1
    assert {"code", "arena", "weights", "time compiling"} <= rows.keys()


@pytest.mark.parametrize(
    "phase,part",
    [
        ("fx", "torch.ops.aten"),
        ("prim", "prim.add"),
        ("fused", "kernel.launch"),
        ("linalg", "linalg.generic"),
        ("asm", ".text"),
    ],
)
def test_emit(driver, phase, part):
    code, out, err = driver(f"compile model.py:add --input f32[4] --input f32[4] --emit {phase}")
    assert code == 0 and part in out
    assert "from the model" not in out and "from the model" in err


def test_emit_of_prim_parses_again(driver, folder):
    assert driver("compile model.py:Net --input f32[4,16] --dynamic x:0=n:2..9 --emit prim -o a.mlir")[0] == 0
    code, out, _ = driver("compile a.mlir --emit prim")
    assert code == 0 and "prim.dot_general" in out and "max = 9" in out
    code, out, _ = driver("run a.mlir --input f32[3,16] --compare reference")
    assert code == 1, "a constant is an argument like others"


def test_print_ir_after(driver):
    code, out, err = driver("compile exp.mlir --print-ir-after tiled --print-ir-after fused --print-ir-after prim")
    assert code == 0 and out == ""
    assert [line for line in err.splitlines() if line.startswith("// ----")] == [
        "// ---- after prim",
        "// ---- after fused",
        "// ---- after tiled",
    ]


def test_binary_output(driver, folder):
    code, out, _ = driver("compile exp.mlir --emit obj -o exp.o")
    assert code == 0 and out == ""
    assert (folder / "exp.o").read_bytes().startswith(b"\x7fELF")
    assert sorted(path.name for path in folder.glob(".*")) == []


def test_run(driver, folder):
    np.save(folder / "x.npy", np.ones((4, 16), dtype=np.float32))
    code, out, err = driver("run model.py:Net --input x.npy --compare eager -o out.npz")
    assert code == 0 and err == ""
    assert out.startswith("out0  float32[4,8]") and "largest error" in out
    with np.load(folder / "out.npz", allow_pickle=False) as archive:
        assert archive["out0"].shape == (4, 8)


def test_run_of_a_structure(driver):
    code, out, _ = driver("run model.py:add --input f32[2] --input y=f32[2] --compare eager")
    assert code == 0
    assert "out0['sum']  float32[2]" in out and "out1['k']" in out


def test_seeds(driver):
    first, again, other = (driver(f"run exp.mlir --input f32[3,4] --seed {seed}")[1] for seed in (1, 1, 2))
    assert first == again != other


def test_results_that_differ(driver, monkeypatch):
    from lamina.targets.cpu import CPUExecutable

    original = CPUExecutable.__call__

    def wrong(self, inputs, outputs, symbols):
        original(self, inputs, outputs, symbols)
        outputs[0].add_(1)

    monkeypatch.setattr(CPUExecutable, "__call__", wrong)
    code, out, _ = driver("run exp.mlir --input f32[3,4] --compare reference")
    assert code == 1 and "largest error 1" in out and "differs" in out


def test_a_program_of_torch_export(driver, folder):
    dims = {"x": {0: torch.export.Dim("n", min=2)}}
    exported = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(3, 4),), dynamic_shapes={"input": dims["x"]})
    torch.export.save(exported, folder / "net.pt2")
    code, out, err = driver("run net.pt2 --compare eager")
    assert (code, err) == (0, "") and "float32[3,2]" in out
    code, out, _ = driver("compile net.pt2 --emit prim")
    assert code == 0 and "tensor<?x4xf32>" in out


def test_a_program_that_would_run_code_is_refused(driver, folder):
    exported = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(3, 4),))
    torch.export.save(exported, folder / "net.pt2")

    def changed(name, old, new):
        with zipfile.ZipFile(folder / "net.pt2") as source, zipfile.ZipFile(folder / name, "w") as result:
            for item in source.namelist():
                data = source.read(item)
                result.writestr(item, data.replace(old, new) if "/models/" in item else data)

    changed("call.pt2", b"torch.ops.aten.linear.default", b"torch.hub.os.system")
    changed("name.pt2", b'"name": "input"', b'"name": "input=print(1)"')
    with zipfile.ZipFile(folder / "net.pt2") as source, zipfile.ZipFile(folder / "object.pt2", "w") as result:
        for item in source.namelist():
            result.writestr(item, source.read(item))
        result.writestr(source.namelist()[0].split("/")[0] + "/data/constants/custom_obj_0", b"")
    for name in ("call.pt2", "name.pt2", "object.pt2"):
        code, _, err = driver(f"compile {name}")
        assert code == 1 and err.startswith(f"error: {name} "), err


def test_strings_of_a_program_of_torch_export():
    assert _is_target("torch.ops.aten.add.Tensor") and _is_target("_operator.getitem")
    assert (
        not _is_target("torch.load")
        and not _is_target("torch.ops.aten.__class__")
        and not _is_target("torch.os.system")
    )
    assert _is_expression("s0*2 + Max(1, s27)") and _is_expression("3")
    assert _is_expression("2*Symbol('s31', positive=True, integer=True)")
    assert not _is_expression("Symbol('s31', positive=exec)") and not _is_expression("Symbol('exec(1)')")
    assert not _is_expression("__import__('os')") and not _is_expression("s0.a") and not _is_expression("exec(s0)")


WRONG = [
    ("compile no.py:Net", 1, "no.py does not exist"),
    ("compile .", 1, ". is a folder"),
    ("compile model.py", 1, "name the model in it, as model.py:Net"),
    ("compile model.py:No", 1, "model.py has no 'No'; it has Net, add"),
    ("compile model.py:number", 1, "number of model.py is a int"),
    ("compile model.py:Needs", 1, "Needs cannot be made without arguments: TypeError"),
    ("compile model.py:Net", 1, "missing a required argument: 'x'"),
    ("compile model.py:fails --input f32[2]", 1, "fails cannot be compiled: ValueError: on purpose"),
    ("compile model.py:leaves --input f32[2]", 1, "leaves cannot be compiled: SystemExit: 7"),
    ("compile model.py:add --input f32[2] --input f32[3]", 1, "add cannot be compiled: RuntimeError"),
    ("compile model.py:Net --inputs-from model.py:wrong", 1, "wrong failed: RuntimeError: no inputs"),
    ("compile model.py:Net --inputs-from model.py", 1, "name a function"),
    ("compile model.py:Net --input no.npy", 1, "no.npy cannot be read"),
    ("compile model.py:Net --input model.npy", 1, "model.npy is no .npy file"),
    ("compile model.py:Net --input object.npy", 1, "object.npy is no .npy file of numbers"),
    ("compile model.py:Net --input f32[4,16] --dynamic x", 1, "expected ARGUMENT:DIMENSION=NAME"),
    ("compile model.py:Net --input f32[4,16] --dynamic y:0=n", 1, "no tensor 'y' was given; there are x"),
    ("compile model.py:Net --input f32[4,16] --dynamic x:2=n", 1, "x has 2 dimensions"),
    ("compile model.py:Net --input f32[4,16] --dynamic x:1=n", 1, "Net cannot be compiled"),
    ("compile raises.py:Net", 1, "raises.py:2: raises.py cannot be run: KeyError: 'a'"),
    ("compile syntax.py:Net", 1, "syntax.py:1: syntax.py cannot be run: SyntaxError"),
    ("compile garbage.mlir", 1, "garbage.mlir is no text"),
    ("compile wrong.mlir", 1, "wrong.mlir:1:1: custom op 'garbage' is unknown"),
    ("compile vector.mlir", 1, "which is no tensor of PyTorch's"),
    ("compile garbage.pt2", 1, "garbage.pt2 is no .pt2 file"),
    ("compile zip.pt2", 1, "zip.pt2 is no .pt2 file of torch.export.save but some other zip file"),
    ("compile x.npy", 1, "x.npy is none of"),
    ("compile exp.mlir --emit fx", 1, "has no fx graph"),
    ("compile exp.mlir --dynamic x:0=n", 1, "--dynamic is for Python files"),
    ("compile exp.mlir --emit prim -o no/x", 1, "no/x cannot be written: No such file or directory"),
    ("compile exp.mlir --emit prim -o /dev/full", 1, "/dev/full cannot be written: No space left on device"),
    ("compile exp.mlir --target tpu", 1, "there is no target 'tpu'"),
    ("compile exp.mlir --target cpu:a:b", 1, "'cpu:a:b'"),
    ("compile exp.mlir --emit nope", 2, "the target cpu has no phase 'nope'; it has fx, prim"),
    ("compile exp.mlir --print-ir-after nope", 2, "has no phase 'nope'"),
    ("compile exp.mlir --target reference --emit asm", 2, "has no phase 'asm'; use --target cpu"),
    ("compile exp.mlir --input f33[2]", 2, "f33 is none of f64"),
    ("compile exp.mlir --input f32[99999999,999999]", 2, "more than"),
    ("compile exp.mlir --input i64[2]:0", 2, "no number from 0 up to 0"),
    ("compile exp.mlir --input foo()", 2, "is none of"),
    ("compile", 2, "missing argument 'FILE'"),
    ("nope", 2, "no such command 'nope'"),
    ("run exp.mlir", 1, "takes 1 argument (arg0: f32[s0,4])"),
    ("run exp.mlir --input f32[2,5]", 1, "argument 'arg0' has size 5 in dimension 1, expected 4"),
    ("run exp.mlir --input i64[2,4]", 1, "argument 'arg0' has dtype torch.int64"),
    ("run exp.mlir --input f32[2,4] --compare eager", 1, "use --compare reference"),
    ("run exp.mlir --input f32[2,4] -o out.txt", 2, "does not end in .npz"),
]


def test_what_is_wrong_is_one_clear_error(driver, folder):
    (folder / "raises.py").write_text("x = {}\nx['a']\n")
    (folder / "syntax.py").write_text("def f(:\n")
    (folder / "garbage.mlir").write_bytes(b"\xff\xfe\x00garbage")
    (folder / "garbage.pt2").write_bytes(b"\xff\xfe\x00garbage")
    (folder / "wrong.mlir").write_text("garbage{")
    (folder / "vector.mlir").write_text(
        "func.func @main(%x: vector<4xf32>) -> vector<4xf32> { return %x : vector<4xf32> }"
    )
    (folder / "model.npy").write_text(MODEL)
    np.save(folder / "x.npy", np.ones(2))
    np.save(folder / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(folder / "zip.pt2", "w") as archive:
        archive.writestr("x/data.pkl", "")
    for line, expected, message in WRONG:
        code, out, err = driver(line)
        errors = [text for text in err.splitlines() if text.startswith("error: ")]
        assert (code, out, len(errors)) == (expected, "", 1), (line, out, err)
        assert message in err, (line, err)


def test_a_file_is_written_whole_or_not_at_all(driver, folder, monkeypatch):
    (folder / "out.mlir").write_text("before")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    code, _, err = driver("compile exp.mlir --emit prim -o out.mlir")
    assert code == 1 and "No space left on device" in err
    assert (folder / "out.mlir").read_text() == "before"
    assert sorted(path.name for path in folder.glob(".*")) == []


@pytest.mark.parametrize(
    "text,expected",
    [
        ("f32[2,3]", InputSpec("", None, "float32", (2, 3))),
        ("f32[2x3]", InputSpec("", None, "float32", (2, 3))),
        ("float16[]", InputSpec("", None, "float16", ())),
        ("m=i1[0]", InputSpec("", "m", "bool", (0,))),
        ("i64[2]:5", InputSpec("", None, "int64", (2,), 5)),
        ("k=x.npy", InputSpec("", "k", file=pathlib.Path("x.npy"))),
        ("-3", InputSpec("", value=-3)),
        ("k=0.5", InputSpec("", "k", value=0.5)),
        ("true", InputSpec("", value=True)),
    ],
)
def test_inputs(text, expected):
    spec = InputType().convert(text, None, None)
    assert spec == InputSpec(text, *list(vars(expected).values())[1:])


def test_interrupt(driver, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("lamina.cli.compile.open_source", interrupted)
    code, _, err = driver("compile exp.mlir")
    # click ends the line on which a terminal shows ^C.
    assert (code, err) == (130, "\ninterrupted\n")


def test_cache_and_targets(driver, cache):
    assert driver("compile exp.mlir")[0] == 0
    code, out, _ = driver("cache")
    assert code == 0 and str(cache) in out
    assert not re.search(r"^entries +0$", out, re.MULTILINE)
    code, out, _ = driver("cache clear")
    assert code == 0 and out.startswith("removed ")
    assert re.search(r"^entries +0$", driver("cache")[1], re.MULTILINE)
    code, out, _ = driver("targets")
    assert code == 0 and re.search(r"^cpu .* asm obj$", out, re.MULTILINE)
    code, out, _ = driver("version")
    assert code == 0 and "torch" in out


@pytest.mark.parametrize("command", ["", "compile", "run", "targets", "cache", "cache clear", "version"])
def test_help_has_examples(driver, command):
    code, out, _ = driver(f"{command} --help")
    assert code == 0 and re.search(r"Examples?:\n +lamina ", out)


SCRIPT = "from lamina.cli import main; main()"


def test_a_closed_pipe_is_silent(folder):
    """As a process, for only that has a pipe and an exit of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "compile", "exp.mlir", "--emit", "llvm"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() in (0, 141)


def test_examples_of_the_page(driver, folder):
    page = (ROOT / "docs" / "driver.md").read_text()
    (folder / "model.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    lines = re.findall(r"^\$ lamina (.*)$", page, re.MULTILINE)
    assert len(lines) > 5
    for line in lines:
        code, _, err = driver(line)
        assert code == 0, (line, err)
    assert (folder / "net.mlir").exists() and (folder / "net.o").exists() and (folder / "out.npz").exists()
