"""Tuning: candidates of kernels, how they are measured, and schedules that programs are compiled by."""

import json
import math
import os
import subprocess
import sys
import zipfile

import pytest
import torch
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import seeded
from lamina.compiler import copy_module, emit
from lamina.errors import CompileError
from lamina.frontend.export import import_program
from lamina.targets import get_target
from lamina.targets.choices import Choice, Schedule, choices_around, kernel_key, untiled_kernels
from lamina.targets.cuda import CHIPS
from lamina.targets.schedule import tile_of
from lamina.targets.triton_target import BEFORE_TILES, kernels_of
from lamina_runtime import tune
from lamina_runtime.schedule import merge_schedules, read_schedule, write_schedule
from package_harness import HostDriver, InterpreterDriver

pytest.importorskip("triton")

CHIP = "cuda:sm_90"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 96)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1)


def untiled(model, args, chip=CHIP, **options):
    """The kernels of a program before they are tiled, with the module that they are in."""
    module = copy_module(import_program(model, args, **options).module)
    for _ in get_target(chip).lower(module, until=BEFORE_TILES):
        pass
    return module, dict(untiled_kernels(module))


def keys(model, args, **options):
    module, kernels = untiled(model, args, **options)
    return {kernel_key(function) for function in kernels.values()}


# ---- keys and choices


def test_a_key_is_of_what_is_computed():
    def one(x, y):
        return torch.softmax(x @ y, -1)

    def other(x, y):
        z = x @ y
        return z.softmax(dim=-1)

    args = seeded(64, 32), seeded(32, 48)
    assert keys(one, args) == keys(other, args)
    assert not keys(one, args) & keys(one, (seeded(64, 32), seeded(32, 50)))
    assert not keys(one, args) & keys(one, tuple(x.half() for x in args))
    assert not keys(lambda x: x + 1, (seeded(9),)) & keys(lambda x: x + 2, (seeded(9),))


def test_a_key_is_not_of_a_choice():
    module, kernels = untiled(lambda x, y: x @ y, (seeded(64, 32), seeded(32, 48)))
    (function,) = kernels.values()
    before, text = kernel_key(function), str(function)
    assert kernel_key(function) == before and str(function) == text
    Choice(tile=(16, 32, 64), warps=8, stages=2).apply(function)
    assert kernel_key(function) == before
    assert list(tile_of(function)) == [16, 32, 64]


@pytest.mark.parametrize("chip", CHIPS.values(), ids=CHIPS)
@pytest.mark.parametrize(
    "default", [Choice(tile=(128, 128, 64), warps=8, stages=3), Choice(tile=(16, 64, 32), warps=4, stages=3)]
)
def test_choices_of_products(default, chip):
    choices = choices_around(default, chip, 1000)
    assert len(choices) == len(set(choices)) >= 40 and default not in choices
    assert choices_around(default, chip, 5) == choices[:5]
    # The first differ in one way.
    assert all((c.tile != default.tile) + (c.stages != default.stages) <= 1 for c in choices[:5])
    for choice in choices:
        rows, columns, depth = choice.tile
        assert 16 <= min(choice.tile) and max(rows, columns) <= 256 and 4 <= choice.warps <= 16 and choice.stages >= 1
        assert (rows + columns) * depth * max(1, choice.stages - 1) <= chip.shared_memory
        assert Choice.of_json(json.loads(json.dumps(choice.to_json()))) == choice


def test_choices_of_others():
    chip = CHIPS["sm_90"]
    choices = choices_around(Choice(elements=1024, warps=4), chip, 12)
    assert len(choices) == 12
    assert {choice.warps for choice in choices} >= {2, 4, 8} and {choice.elements for choice in choices} >= {512, 2048}
    assert all(choice.elements >= 32 * choice.warps for choice in choices)


@pytest.mark.parametrize(
    "data",
    [
        {"tiles": [16, 16, 16]},
        {"tile": [16, 16]},
        {"tile": [16, 16, 24]},
        {"tile": 16},
        {"warps": 3},
        {"warps": 0},
        {"warps": "4"},
        {"warps": True},
        {"stages": -1},
        {"elements": 1.0},
        {"elements": 1 << 40},
    ],
)
def test_wrong_choices(data, tmp_path):
    with pytest.raises(ValueError):
        Choice.of_json(data)
    module, kernels = untiled(lambda x: x + 1, (seeded(100),))
    (function,) = kernels.values()
    path = tmp_path / "schedule"
    write_schedule(path, {kernel_key(function): {CHIP: {"choice": data}}})
    with pytest.raises(CompileError, match=r"schedule has a wrong choice for the kernel k_add: .*\n.*measure again"):
        lamina.compile(lambda x: x + 1, (seeded(100),), target=CHIP, schedule=path)


# ---- schedules


def schedule_for(path, model, args, choose, chip=CHIP, **options):
    """A file with a choice for each kernel."""
    module, kernels = untiled(model, args, chip, **options)
    entries = {kernel_key(f): {chip: {"choice": choose(name, f).to_json()}} for name, f in kernels.items()}
    write_schedule(path, entries)
    return path


def test_a_schedule_decides(tmp_path):
    args = (seeded(128, 64),)

    def choose(name, function):
        if "dot" in name:
            return Choice(tile=(32, 16, 32), warps=4, stages=2)
        return Choice(elements=4096, warps=2)

    model = Net().eval()
    path = schedule_for(tmp_path / "s", model, args, choose)
    plain = lamina.compile(model, args, target=CHIP)
    program = lamina.compile(model, args, target=CHIP, schedule=str(path))
    for name, facts in program.executable.report["sm_90"].items():
        assert facts["warps"] == (4 if "dot" in name else 2)
        if "dot" in name:
            assert facts["stages"] == 2
    assert plain.executable.report["sm_90"] != program.executable.report["sm_90"]
    text = program.ir("tiled")
    assert "kernel.tile = array<i64: 32, 16, 32>" in text and "kernel.elements = 4096" in text
    assert "kernel.elements" not in plain.ir("tiled")
    # 128 rows of 96 elements, as many to a program as are 4096 elements.
    launches = program.executable.images["sm_90"].hosts["main"]["launches"]
    assert {launch["grid"] for launch in launches if "dot" in launch["kernel"]} == {4 * 6}
    program.save(tmp_path / "net.lamina", ptx=False)
    driver = InterpreterDriver(program.program.module, CHIP, schedule=path)
    torch.testing.assert_close(
        lamina_runtime.load(tmp_path / "net.lamina", driver=driver)(*args), model(*args), rtol=1e-5, atol=1e-5
    )


def test_a_schedule_is_for_its_chips(tmp_path):
    args = (seeded(1000),)
    model = lambda x: torch.tanh(x) * 2  # noqa: E731
    path = schedule_for(tmp_path / "s", model, args, lambda name, f: Choice(elements=256, warps=1), "cuda:sm_80")
    program = lamina.compile(model, args, target="cuda:sm_80,sm_90", schedule=path)
    warps = {chip: [k["warps"] for k in kernels.values()] for chip, kernels in program.executable.report.items()}
    assert warps == {"sm_80": [1], "sm_90": [4]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is no schedule"),
        (b"\x00\xff", "is no schedule"),
        (b"[]", "is no schedule"),
        (b"{}", "is no schedule"),
        (b"[" * 100000, "is no schedule"),
        (b'{"format": 2, "kernels": {}}', "has the format 2, expected 1"),
        (b'{"format": 1}', "is damaged"),
        (b'{"format": 1, "kernels": {"a": 1}}', "is damaged"),
        (b'{"format": 1, "kernels": {"a": {"cuda:sm_90": {"choice": 4}}}}', "is damaged"),
    ],
)
def test_damaged_schedules(content, message, tmp_path):
    path = tmp_path / "schedule"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CompileError, match=message):
        lamina.compile(lambda x: x + 1, (seeded(9),), target=CHIP, schedule=path)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_other_targets_take_none(target, tmp_path):
    write_schedule(tmp_path / "s", {})
    with pytest.raises(CompileError, match=f"the target '{target}' takes no schedule"):
        lamina.compile(lambda x: x + 1, (seeded(9),), target=target, schedule=tmp_path / "s")


def test_merging():
    a = {"k": {"x": {"choice": {"warps": 1}}, "y": {"choice": {"warps": 2}}}}
    b = {"k": {"y": {"choice": {"warps": 4}}}, "l": {"x": {"choice": {}}}}
    assert merge_schedules(a, b) == {
        "k": {"x": {"choice": {"warps": 1}}, "y": {"choice": {"warps": 4}}},
        "l": {"x": {"choice": {}}},
    }
    assert a["k"]["y"] == {"choice": {"warps": 2}}


def test_a_schedule_is_written_whole(tmp_path):
    path = tmp_path / "s"
    write_schedule(path, {})
    with pytest.raises(TypeError):
        write_schedule(path, {"k": {"x": {"choice": object()}}})
    assert read_schedule(path) == {}
    with pytest.raises(OSError):
        write_schedule(tmp_path / "none" / "s", {})
    assert os.listdir(tmp_path) == ["s"]


# ---- measuring


class CandidateDriver(InterpreterDriver):
    """Interprets candidates too, each from its own Triton IR. Its clock shows what `times` says of the last kernel that ran.

    Args:
        path: the package.
        module: the prim module that it was made of.
        times: seconds by the file of a kernel, if it ends so.
        spoilt: ends of files of kernels that write something else.
        refused: ends of files that cannot be loaded.
    """

    def __init__(self, path, module, times=(), spoilt=(), refused=(), chip=CHIP):
        super().__init__(module, chip)
        self._prim, self._chip = copy_module(module), chip
        self.times, self.spoilt, self.refused = dict(times), tuple(spoilt), tuple(refused)
        self.last = ""
        self.runs = []
        self._made = {}
        with zipfile.ZipFile(path) as archive:
            plan = json.loads(archive.read("plan.json"))
        self.entries = {
            each["file"]: (kernel["tuning"]["key"], each["choice"])
            for kernel in plan["chips"][chip.partition(":")[2]]["kernels"].values()
            for each in kernel["tuning"]["candidates"]
        }

    def load(self, image, kernel):
        if kernel.file.endswith(self.refused or "\0"):
            raise lamina_runtime.DriverError("refused")
        return super().load(image, kernel)

    def _function(self, kernel):
        if kernel.file not in self.entries:
            return self._functions[kernel.name]
        if kernel.file not in self._made:
            key, choice = self.entries[kernel.file]
            target = get_target(self._chip)
            target.schedule = Schedule({key: {self._chip: {"choice": choice}}})
            module = copy_module(self._prim)
            for _ in target.lower(module):
                pass
            self._made[kernel.file] = module, dict(kernels_of(module))[kernel.name]
        return self._made[kernel.file][1]

    def execute(self, launch, pointers):
        self.last = launch.kernel.file
        self.runs.append(self.last)
        default = self._functions[launch.kernel.name]
        self._functions[launch.kernel.name] = self._function(launch.kernel)
        try:
            super().execute(launch, pointers)
        finally:
            self._functions[launch.kernel.name] = default
        if launch.kernel.file.endswith(self.spoilt or "\0"):
            self.memory_of(launch, pointers)[-1][:1] += 100

    def clock(self, run):
        run()
        return next((time for end, time in self.times.items() if self.last.endswith(end)), 10e-6)


def with_candidates(path, model, args, candidates=3, chip=CHIP, **options):
    program = lamina.compile(model, args, target=chip, **options)
    program.save(path, ptx=False, candidates=candidates)
    return program


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "net.candidates"
    torch.manual_seed(0)
    model, args = Net().eval(), (seeded(40, 64),)
    return path, model, args, with_candidates(path, model, args)


def measured(net, args=None, **driver):
    path, _, given, program = net
    driver = CandidateDriver(path, program.program.module, **driver)
    entries, found = tune.tune(path, given if args is None else args, driver=driver, timer=driver.clock)
    return driver, entries, {m.kernel: m for m in found}


def test_the_fastest_is_chosen(net, tmp_path):
    path, model, args, program = net
    driver, entries, found = measured(net, times={".1.cubin": 4e-6, ".2.cubin": 6e-6})
    assert found.keys() == set(program.kernels) and len(found) == 2
    with zipfile.ZipFile(path) as archive:
        kernels = json.loads(archive.read("plan.json"))["chips"]["sm_90"]["kernels"]
    for name, m in found.items():
        second = kernels[name]["tuning"]["candidates"][1]
        assert m.choice == second["choice"] and not m.wrong and m.candidates == 3
        assert (m.default, m.seconds) == (10e-6, 4e-6)
        assert entries[kernels[name]["tuning"]["key"]][CHIP]["choice"] == second["choice"]
    # Measured in turns.
    clocked = [file for file in driver.runs if "dot" in file][4:-1]
    assert clocked[:4] * tune.ROUNDS == clocked and len(set(clocked[:4])) == 4
    # What is compiled by it is what was measured.
    write_schedule(tmp_path / "s", entries)
    again = lamina.compile(model, args, target=CHIP, schedule=tmp_path / "s")
    with zipfile.ZipFile(path) as archive:
        for name, kernel in again.executable.images["sm_90"].kernels.items():
            assert kernel.binary == archive.read(f"kernels/sm_90/{name}.1.cubin")
    table = tune.report(list(found.values()))
    assert "10.0" in table and "4.0" in table and "0.40" in table


def test_noise_changes_nothing(net):
    _, _, found = measured(net, times={".1.cubin": 9.9e-6})
    assert all(m.seconds == m.default == 10e-6 for m in found.values())


def test_wrong_results_are_never_chosen(net):
    _, _, found = measured(net, times={".1.cubin": 1e-6, ".0.cubin": 5e-6}, spoilt=[".1.cubin"])
    assert all(len(m.wrong) == 1 and m.seconds == 5e-6 for m in found.values())


def test_what_cannot_be_loaded_is_never_chosen(net):
    _, _, found = measured(net, times={".1.cubin": 1e-6}, refused=[".1.cubin"])
    assert all(len(m.wrong) == 1 and m.seconds == 10e-6 for m in found.values())


def test_arguments_of_its_own(net):
    driver, _, found = measured(net, args=None)
    path = net[0]
    entries, again = tune.tune(path, driver=driver, timer=driver.clock)
    assert {m.kernel for m in again} == found.keys()


def test_memory_is_as_it_was(tmp_path):
    """A kernel that writes to what it reads runs many times and has its effect once; indices that it changes stay valid."""

    def step(x, counts, table):
        counts.add_(1)
        x.mul_(2).add_(table[counts].sum())
        return x + 1

    args = seeded(100), torch.tensor([3, 4]), seeded(6)
    program = with_candidates(tmp_path / "p", step, tuple(a.clone() for a in args))
    driver = CandidateDriver(tmp_path / "p", program.program.module)
    mine, theirs = [a.clone() for a in args], [a.clone() for a in args]
    entries, found = tune.tune(tmp_path / "p", mine, driver=driver, timer=driver.clock)
    step(*theirs)
    torch.testing.assert_close(mine, theirs)
    assert entries and not any(m.wrong for m in found)


@pytest.mark.parametrize("rows", [0, 1, 33, 200])
def test_open_sizes(rows, tmp_path):
    model = Net().eval()
    shapes = ({0: torch.export.Dim("rows", min=0, max=1024)},)
    program = with_candidates(tmp_path / "p", model, (seeded(40, 64),), dynamic_shapes=shapes)
    driver = CandidateDriver(tmp_path / "p", program.program.module, times={".0.cubin": 1e-6})
    entries, found = tune.tune(tmp_path / "p", driver=driver, timer=driver.clock, sizes={("x", 0): rows})
    # Nothing is launched, and so nothing measured, where there are no rows.
    assert len(found) == (0 if rows == 0 else len(program.kernels)) and len(entries) == len(found)
    assert all(not m.wrong and m.seconds == 1e-6 for m in found)
    for sizes, message in [
        ({("y", 0): 1}, "there is no argument 'y' with a dimension 0; the arguments are x"),
        ({("x", 1): 64}, "the size of 'x' in dimension 1 is not open"),
        ({("x", 0): 2000}, "argument 'x' has size 2000 in dimension 0, expected from 0 to 1024"),
    ]:
        with pytest.raises(ValueError, match=message):
            tune.tune(tmp_path / "p", driver=driver, timer=driver.clock, sizes=sizes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_results_are_compared_in_every_type(dtype, tmp_path):
    def model(x):
        return x.t().contiguous(), (x.float() * 3).to(dtype)

    x = (seeded(33, 20) > 0).to(dtype) if dtype is torch.bool else (seeded(33, 20) * 5).to(dtype)
    program = with_candidates(tmp_path / "p", model, (x,), candidates=2)
    driver = CandidateDriver(tmp_path / "p", program.program.module)
    _, found = tune.tune(tmp_path / "p", (x,), driver=driver, timer=driver.clock)
    assert found and not any(m.wrong for m in found)
    driver = CandidateDriver(tmp_path / "p", program.program.module, spoilt=[".0.cubin"])
    _, found = tune.tune(tmp_path / "p", (x,), driver=driver, timer=driver.clock)
    assert all(len(m.wrong) == 1 for m in found)


def test_close():
    nan, inf = math.nan, math.inf

    def close(a, b, element="f32", dtype=torch.float32):
        return tune._close([torch.tensor(a, dtype=dtype)], [torch.tensor(b, dtype=dtype)], [element])

    assert close([1.0, nan, inf, -inf], [1.0, nan, inf, -inf])
    assert close([1.0, 1e-7], [1.0001, 0.0])
    for other in ([1.01, nan], [1.0, 0.0], [1.0, inf], [nan, nan]):
        assert not close(other, [1.0, nan])
    assert not close([inf, 1.0], [-inf, 1.0]) and close([nan], [nan]) and not close([nan], [0.0])
    assert not close([1, 2], [1, 3], "i32", torch.int32)


@pytest.mark.parametrize(
    ("element", "size"), [("f32", 4), ("bf16", 2), ("i1", 1), ("i8", 1), ("i64", 8), ("f8E4M3FN", 1), ("f8E5M2", 1)]
)
def test_sizes_of_elements(element, size):
    assert tune.element_bytes(element) == size


def test_a_package_without_candidates(tmp_path):
    program = lamina.compile(lambda x: x + 1, (seeded(9),), target=CHIP)
    program.save(tmp_path / "p", ptx=True)
    for capability, chip in ((90, "sm_90"), (120, "sm_80")):
        with pytest.raises(
            lamina_runtime.PackageError, match=f"has no candidates for {chip}: make it with lamina tune"
        ):
            tune.tune(tmp_path / "p", driver=HostDriver(capability), timer=lambda run: 0.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda tuning: tuning.pop("key"),
        lambda tuning: tuning.update(candidates=3),
        lambda tuning: tuning["candidates"][0].update(grid="s9"),
        lambda tuning: tuning["candidates"][0].update(grid=["rm", 1]),
        lambda tuning: tuning["candidates"][0].update(file="kernels/none"),
        lambda tuning: tuning["candidates"][0].update(warps=-1),
        lambda tuning: tuning["candidates"][0].pop("choice"),
    ],
)
def test_damaged_candidates(net, change, tmp_path):
    from lamina_runtime.archive import Archive
    from lamina_runtime.plan import read_package

    archive = Archive.open(net[0])
    plan = archive.json("plan.json")
    change(next(iter(plan["chips"]["sm_90"]["kernels"].values()))["tuning"])
    archive._entries = {**archive._entries, "plan.json": json.dumps(plan).encode()}
    with pytest.raises(lamina_runtime.PackageError):
        tune.read_tunables(read_package(archive), 90)


def test_candidates_do_not_hinder(net):
    """A package with candidates is loaded and called as any other."""
    path, model, args, program = net
    mine = lamina_runtime.load(path, driver=InterpreterDriver(program.program.module))
    torch.testing.assert_close(mine(*args), model(*args), rtol=1e-5, atol=1e-5)
    assert (
        "k_dot"
        in subprocess.run(
            [sys.executable, "-m", "lamina_runtime", path], capture_output=True, text=True, check=True
        ).stdout
    )


def test_attention_and_convolutions_have_candidates(tmp_path):
    """Tiles of any kernel of products can be chosen, and its numbers stay."""
    torch.manual_seed(0)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(16, 32, 3, padding=1)

        def forward(self, q, image):
            return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True), self.convolution(image)

    model, args = Both().eval(), (seeded(1, 2, 70, 32), seeded(1, 16, 9, 9))
    program = with_candidates(tmp_path / "p", model, args, candidates=6)
    driver = CandidateDriver(tmp_path / "p", program.program.module)
    with torch.no_grad():
        _, found = tune.tune(tmp_path / "p", args, driver=driver, timer=driver.clock)
    assert sum("tile" in m.choice for m in found) == 2
    assert all(m.candidates >= 3 and not m.wrong for m in found)


# ---- the commands

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        return torch.relu(self.linear(x))
"""


def lamina_command(*arguments, cwd):
    command = [sys.executable, "-m", "lamina.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_the_command(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    common = ["model.py:Net", "--input", "f32[32,64]"]
    done = lamina_command("tune", *common, "--target", CHIP, "--candidates", "2", "-o", "p", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sm_90    2 candidates" in done.stdout and "python -m lamina_runtime.tune p -o SCHEDULE" in done.stdout
    for target in ("cpu", "reference"):
        done = lamina_command("tune", *common, "--target", target, "-o", "q", cwd=tmp_path)
        assert done.returncode == 2 and f"the target {target} has no candidates" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["__pycache__", "model.py", "p"] or sorted(os.listdir(tmp_path)) == [
        "model.py",
        "p",
    ]
    # No GPU is here.
    command = [sys.executable, "-m", "lamina_runtime.tune", "p", "-o", "s"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "CUDA" in done.stderr
    assert not (tmp_path / "s").exists()


def test_the_command_measures(net, tmp_path, monkeypatch, capsys):
    path, _, _, program = net
    driver = CandidateDriver(path, program.program.module, times={".0.cubin": 5e-6})
    monkeypatch.setattr(tune, "default_driver", lambda package, device: driver)
    monkeypatch.setattr(tune, "_event_timer", driver.clock)
    write_schedule(tmp_path / "s", {"other": {CHIP: {"choice": {}}}})
    assert tune.main([str(path), "-o", str(tmp_path / "s")]) == 0
    assert len(read_schedule(tmp_path / "s")) == 3
    assert "0.50" in capsys.readouterr().out
    for arguments, message in [
        ([str(path), "-o", str(tmp_path / "none" / "s")], "No such file"),
        ([str(path), "-o", str(tmp_path / "s"), "--size", "x"], "expected ARGUMENT:DIMENSION=SIZE"),
        ([str(tmp_path / "none"), "-o", str(tmp_path / "s")], "No such file"),
        ([str(path), "-o", str(path)], "is no schedule"),
    ]:
        assert tune.main(arguments) == 1
        assert message in capsys.readouterr().err


def test_the_driver_compiles_by_a_schedule(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    torch.manual_seed(0)
    schedule_for(
        tmp_path / "s", lambda x: torch.relu(x), (seeded(32, 64),), lambda name, f: Choice(elements=128, warps=1)
    )
    (tmp_path / "f.py").write_text("import torch\n\ndef f(x):\n    return torch.relu(x)\n")
    common = ["compile", "f.py:f", "--input", "f32[32,64]", "--schedule", "s"]
    done = lamina_command(*common, "--target", CHIP, "--emit", "tiled", cwd=tmp_path)
    assert done.returncode == 0 and "kernel.elements = 128" in done.stdout, done.stderr
    done = lamina_command(*common, "--emit", "fused", cwd=tmp_path)
    assert done.returncode == 1 and "the target 'cpu' takes no schedule" in done.stderr


def test_phases_show_the_choice():
    prim = import_program(lambda x: torch.relu(x), (seeded(100),)).module
    module, kernels = untiled(lambda x: torch.relu(x), (seeded(100),))
    (function,) = kernels.values()
    target = get_target(CHIP)
    target.schedule = Schedule({kernel_key(function): {CHIP: {"choice": {"elements": 32, "warps": 1}}}})
    assert "kernel.elements = 32" in emit(prim, "tiled", target)
    assert "kernel.elements" not in emit(prim, "linalg", target)
