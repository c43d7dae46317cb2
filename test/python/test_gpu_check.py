"""scripts/gpu_check: against a driver that is a stub, and its parts where kernels are interpreted."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lamina
import lamina_runtime
from package_harness import HostDriver, InterpreterDriver, build_stub

pytest.importorskip("triton")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks.gpu import build, check, programs, worker  # noqa: E402

NAMES = ("softmax", "sum_full", "optimized_net_f32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    index = {name: build.build(name, folder, "sm_90") for name in NAMES}
    (folder / programs.INDEX).write_text(json.dumps({"programs": index}))
    return folder


def gpu_check(folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, ROOT / "scripts" / "gpu_check", folder, "-o", folder / "result.json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_weights_are_not_in_the_packages(folder):
    package = folder / "optimized_net_f32.lamina"
    assert package.stat().st_size < 512 * 512 * 4
    with pytest.raises(lamina_runtime.PackageError, match="without the weight linear.(weight|bias): give it by load"):
        lamina_runtime.load(package, driver=HostDriver())


def test_against_a_stub(folder, tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("STUB_DRIVER_LOG", str(log))
    done = gpu_check(folder, "--stub", build_stub(tmp_path), "--seconds", "600")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NO GPU RAN: the driver is a stub" in done.stdout
    assert "3 of 3 programs were loaded and launched" in done.stdout
    for name in NAMES:
        assert any(line.startswith(f"{name} ") for line in done.stdout.splitlines())
    assert "right" not in done.stdout and "WRONG" not in done.stdout
    result = json.loads((folder / "result.json").read_text())
    assert result["gpu_ran"] is False and set(result["rows"]) == set(NAMES)
    assert result["rows"]["sum_full"]["launches"] == 2
    lines = log.read_text().splitlines()
    assert sum(line.startswith("module 7fELF") for line in lines) == 4
    assert sum(line.startswith("launch ") for line in lines) >= 8


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu(folder):
    done = gpu_check(folder)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("NO GPU RAN: torch ")


def test_wrong_commands(folder, tmp_path):
    done = gpu_check(folder, "--only", "softmin")
    assert done.returncode == 2 and "there is no program or group 'softmin'" in done.stderr
    done = subprocess.run([sys.executable, ROOT / "scripts/gpu_check", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and "programs.json" in done.stderr


# ---- checks, with the kernels interpreted


class Interpreted:
    """A device whose kernels are interpreted, and which has graphs of a kind."""

    device, executes = torch.device("cpu"), True

    def __init__(self, driver):
        self.driver = driver

    def seconds(self, call, count):
        return 1e-3 * count

    def captured(self, call):
        return call


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))


@pytest.fixture
def small(monkeypatch, tmp_path):
    work = programs.Workload("small", frozenset(), lambda: (Small(), (torch.randn(4, 16),)))
    monkeypatch.setitem(programs.PROGRAMS, "small", work)
    row = build.build("small", tmp_path, "sm_90")
    model, inputs = work.build()
    program = lamina.import_program(model.requires_grad_(False), inputs)
    return tmp_path, row["file"], InterpreterDriver(program.module)


def answers(small, *stages):
    folder, file, interpreter = small
    said = []
    serving = worker._Worker(folder, Interpreted(interpreter), said.append)
    for stage in stages:
        serving.serve(stage, "small", file)
    row = {}
    for message in said:
        row.update(message)
    return row


def test_what_is_right(small):
    row = answers(small, "check")
    assert row["right"] and row["error"] < 1e-6 and row["graph_error"] < 1e-6
    assert set(row["call"]) == set(row["graph"]) == {"lamina", "eager"}


def test_comparisons(small, monkeypatch):
    modes = []
    monkeypatch.setattr(torch, "compile", lambda module, mode, dynamic: modes.append(mode) or module)
    row = answers(small, "check", "compile")
    assert set(row["call"]) == {"lamina", "eager", "compile"} and row["compile_seconds"] >= 0
    row = answers(small, "check", "compile", "autotune")
    assert set(row["call"]) == {"lamina", "eager", "autotune"} and modes[1:] == [None, "max-autotune-no-cudagraphs"]
    assert set(row["graph"]) == {"lamina", "eager", "compile", "autotune"}


def test_what_cannot_be_recorded(small, monkeypatch):
    def captured(self, call):
        if call is captured.bad:
            raise RuntimeError("operation not permitted when stream is capturing")
        return call

    monkeypatch.setattr(Interpreted, "captured", captured)
    original = worker._Loaded.__init__

    def loaded(self, *arguments):
        original(self, *arguments)
        captured.bad = self.calls[bad]

    monkeypatch.setattr(worker._Loaded, "__init__", loaded)
    bad = "eager"
    row = answers(small, "check")
    assert row["right"] and set(row["graph"]) == {"lamina"} and "not permitted" in row["graph_failures"]["eager"]
    bad = "lamina"
    with pytest.raises(RuntimeError, match="not permitted"):
        answers(small, "check")


def test_what_is_wrong_is_not_timed(small, monkeypatch):
    executed = InterpreterDriver.execute

    def execute(self, launch, pointers):
        executed(self, launch, pointers)
        ctypes.c_float.from_address(pointers[-1]).value += 0.5

    monkeypatch.setattr(InterpreterDriver, "execute", execute)
    row = answers(small, "check")
    assert not row["right"] and row["error"] > 1e-2 and "call" not in row


def test_errors():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert worker.errors([x], [x]) == 0 and worker.errors([x], []) == worker.errors([x[:1]], [x]) == float("inf")
    assert worker.errors([x.float() + torch.tensor([0, 1.0])], [x]) == pytest.approx(0.25)
    assert worker.errors([x * torch.nan], [x]) == worker.errors([x * torch.inf], [x]) == float("inf")


# ---- the parent


class Scripted:
    """A worker whose answers are known."""

    def __init__(self, **known):
        self.known, self.asked = known, []

    def ask(self, stage, name, file, timeout):
        self.asked.append((stage, name))
        return self.known.get(f"{stage}_{name}", ({}, None))


def test_rows():
    found = Scripted(
        check_a=({"right": True, "error": 1e-7, "eager_error": 1e-7, "call": {"lamina": 1e-5, "eager": 2e-5}}, None),
        check_b=({"right": False, "error": 1.0, "eager_error": 1e-7}, None),
        check_c=({"load_seconds": 1.0}, "the process ended with -11: it said nothing"),
        compile_a=({"call": {"lamina": 1.1e-5, "eager": 2e-5, "compile": 1.5e-5}}, None),
        autotune_a=({}, "no result after 30 s"),
    )
    rows = check.run(
        found, {**{name: {"file": name} for name in "abc"}, "d": {"error": "no\nmore"}}, check.STAGES, budget=60
    )
    assert found.asked == [("check", "a"), ("check", "b"), ("check", "c"), ("compile", "a"), ("autotune", "a")]
    text = check.table(rows)
    lines = {line.split()[0]: line for line in text.splitlines()[3:7]}
    assert "right" in lines["a"] and "1.82" in lines["a"] and "1.36" in lines["a"]
    assert "WRONG" in lines["b"] and "FAILED" in lines["c"] and "FAILED" in lines["d"]
    assert "c: failure: the process ended with -11" in text and "d: failure: it was not compiled: no" in text
    assert "a: autotune: no result after 30 s" in text


def test_no_time_is_left():
    found = Scripted()
    rows = check.run(found, {"a": {"file": "a"}}, check.STAGES, budget=0)
    assert not found.asked and rows["a"]["skipped"] == "no time was left for check"


def test_a_worker_that_dies_or_hangs(folder, tmp_path, monkeypatch):
    """Each costs its program alone; what was said before counts."""
    (tmp_path / "sitecustomize.py").write_text(
        """
import sys
if "benchmarks.gpu.worker" in sys.orig_argv:
    import json, os, time
    def say(**message):
        print(json.dumps(message), flush=True)
    say(device={"name": "a test"}, done=True)
    for line in sys.stdin:
        name = json.loads(line)["name"]
        say(load_seconds=1.0)
        if name == "hangs":
            time.sleep(1000)
        if name == "dies":
            print("the last words", file=sys.stderr, flush=True)
            os.abort()
        say(right=True, done=True)
    os._exit(0)
"""
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = check.Worker(folder, None)
    try:
        assert process.start(60)["device"] == {"name": "a test"}
        assert process.ask("check", "a", "", 60) == ({"load_seconds": 1.0, "right": True}, None)
        row, why = process.ask("check", "dies", "", 60)
        assert row == {"load_seconds": 1.0} and "ended with -6: the last words" in why
        row, why = process.ask("check", "hangs", "", 3)
        assert row == {"load_seconds": 1.0} and why == "no result after 3 s"
        assert process.ask("check", "a", "", 60) == ({"load_seconds": 1.0, "right": True}, None)
    finally:
        process.stop()
