"""Packages of programs of which PyTorch runs a part: operators by their names, and what may not be called."""

import copy
import json
import warnings

import pytest
import torch
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import DYNAMIC, seeded
from lamina.errors import CompileError
from lamina_runtime.archive import Archive
from lamina_runtime.operators import find_operator
from lamina_runtime.plan import read_package
from lamina_runtime.program import Program
from package_harness import HostDriver, SplitDriver

pytest.importorskip("triton")


def packaged(path, model, args, dynamic_shapes=None, libraries=(), ptx=False):
    """The loaded package of a program with eager calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = lamina.compile(
            copy.deepcopy(model), args, target="cuda:sm_90", dynamic_shapes=dynamic_shapes, fallback="eager"
        )
    program.save(path, ptx=ptx)
    return lamina_runtime.load(path, driver=SplitDriver(program.executable), libraries=libraries), program


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.register_buffer("calls", torch.ones(16))

    def forward(self, x):
        u, s, v = torch.linalg.svd(self.linear(x), full_matrices=False)
        self.calls.add_(1)
        return (u * s.unsqueeze(-2)) @ v + self.calls, {"values": s[..., : x.shape[0] // 2]}


@pytest.mark.parametrize("shapes", [None, ({0: DYNAMIC},)])
def test_numbers(shapes, tmp_path):
    torch.manual_seed(0)
    model = Net().eval()
    mine, _ = packaged(tmp_path / "p", model, (seeded(8, 16),), shapes)
    for n in (8, 8) if shapes is None else (8, 6, 20):
        x = seeded(n, 16, seed=n)
        with torch.no_grad():
            got, expected = mine(x), model(x)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
        assert got[0].stride() == expected[0].stride()


@pytest.mark.parametrize("folder", [False, True])
def test_both_forms(folder, tmp_path):
    model = lambda x: torch.linalg.inv(x @ x.t() + torch.eye(4)) * 2  # noqa: E731
    mine, program = packaged(tmp_path / "p", model, (seeded(4, 4),))
    program.save(tmp_path / "q", folder=folder, ptx=True)
    other = lamina_runtime.load(tmp_path / "q", driver=SplitDriver(program.executable))
    x = seeded(4, 4, seed=3)
    torch.testing.assert_close(other(x), model(x), rtol=1e-3, atol=1e-3)
    assert torch.equal(mine(x), other(x))


def test_the_order_of_effects(tmp_path):
    """In-place writes between eager calls have their effects in order, on arguments too."""

    def model(x):
        x.mul_(2)
        a = torch.linalg.inv(x)
        x.add_(torch.eye(3))
        return a + 1, torch.linalg.inv(x)

    mine, _ = packaged(tmp_path / "p", model, (seeded(3, 3),))
    x, y = seeded(3, 3, seed=5), seeded(3, 3, seed=5)
    torch.testing.assert_close(mine(x), model(y), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(x, y)


@torch.library.custom_op("lamina_split_test::halved", mutates_args=())
def halved(x: torch.Tensor, text: str, numbers: list[int]) -> torch.Tensor:
    assert text == "half" and numbers == [1, 2]
    return x / 2


@halved.register_fake
def _(x, text, numbers):
    return torch.empty_like(x)


def test_operators_of_libraries_are_allowed_by_name(tmp_path):
    model = lambda x: halved(x + 1, "half", [1, 2]) * 3  # noqa: E731
    mine, program = packaged(tmp_path / "p", model, (seeded(9),), libraries=["lamina_split_test"])
    x = seeded(9, seed=2)
    torch.testing.assert_close(mine(x), model(x))
    with pytest.raises(lamina_runtime.PackageError, match=r"libraries=\['lamina_split_test'\]"):
        lamina_runtime.load(tmp_path / "p", driver=SplitDriver(program.executable))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aten.from_file.default", "which no package may call"),
        ("aten.from_file.out", "which no package may call"),
        ("aten.no_such_op.default", "not registered here"),
        ("aten.add.no_overload", "not registered here"),
        ("profiler._record_function_enter.default", "of a library"),
        ("os.system", "of a library"),
        ("", "of a library"),
        ("aten.__class__.mro", "not registered here"),
        ("aten._dir.x", "not registered here"),
    ],
)
def test_operators_that_are_refused(name, message):
    with pytest.raises(lamina_runtime.PackageError, match=message):
        find_operator(name)


def changed(path, change):
    """The package with another plan."""
    archive = Archive.open(path)
    plan = archive.json("plan.json")
    change(plan)
    archive._entries = {**archive._entries, "plan.json": json.dumps(plan).encode()}
    return archive


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(slots=1),
        lambda plan: plan.update(slots="x"),
        lambda plan: plan.update(parts=9),
        lambda plan: plan.update(parts=-1),
        lambda plan: plan.update(parts="x"),
        lambda plan: plan.update(outputs=[-1]),
        lambda plan: plan.update(outputs=None),
        lambda plan: plan["steps"].append(
            {"writes": [0], "op": "aten.from_file.default", "arguments": [], "named": {}}
        ),
        lambda plan: plan["steps"].append({"writes": [0], "host": "none", "tensors": [], "written": {}}),
        lambda plan: plan["steps"].append({"writes": [0, 1], "op": "getitem", "arguments": [], "named": {}}),
        lambda plan: plan["steps"].append({}),
        lambda plan: plan["steps"].append(3),
        lambda plan: plan["steps"][0].update(part=77),
        lambda plan: plan["steps"][0].update(reads=[10**6]),
        lambda plan: plan["steps"][0].update(numbers=[["rm", 1]]),
    ],
)
def test_damaged_plans(change, tmp_path):
    _, program = packaged(tmp_path / "p", lambda x: torch.linalg.inv(x + 1) * 2, (seeded(4, 4),))
    archive = changed(tmp_path / "p", change)
    with pytest.raises(lamina_runtime.PackageError):
        Program(read_package(archive), HostDriver())


def test_what_depends_on_data_is_refused(tmp_path):
    def model(x):
        return torch.nonzero(x) * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = lamina.compile(model, (seeded(4),), target="cuda:sm_90", fallback="eager")
    with pytest.raises(CompileError, match="depends on data"):
        program.save(tmp_path / "p")
    assert not list(tmp_path.iterdir())


def test_targets_without_packages(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = lamina.compile(lambda x: torch.linalg.inv(x + 1) * 2, (seeded(4, 4),), fallback="eager")
    with pytest.raises(CompileError, match="the target 'cpu' makes no packages"):
        program.save(tmp_path / "p")


def test_checks_of_parts(tmp_path):
    """An index that is out of range in a part raises eager's error, at once or when asked."""

    def model(x, i):
        return torch.linalg.inv(x)[i] * 2

    mine, _ = packaged(tmp_path / "p", model, (seeded(4, 4), torch.tensor([1, 2])))
    x = seeded(4, 4, seed=1)
    torch.testing.assert_close(mine(x, torch.tensor([3, -4])), model(x, torch.tensor([3, -4])), rtol=1e-3, atol=1e-3)
    with pytest.raises(IndexError, match="out of bounds"):
        mine(x, torch.tensor([0, 4]))
    mine.wait = False
    mine(x, torch.tensor([0, 4]))
    with pytest.raises(IndexError, match="out of bounds"):
        mine.raise_if_failed()
