"""lamina_runtime: packages loaded and run without a GPU, their numbers, arguments, errors, and calls of the CUDA driver."""

import collections
import ctypes
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import DYNAMIC, PROGRAMS, TOLERANCE, get_model, seeded
from lamina_runtime.driver import CudaDriver
from package_harness import HostDriver, InterpreterDriver, build_stub

pytest.importorskip("triton")
LOAD_ALONE = Path(__file__).parents[2] / "scripts" / "load_alone.py"


def package(path, model, args, kwargs=None, dynamic_shapes=None, chips="sm_90", ptx=False, **options):
    """Compiles and saves a program; returns it."""
    program = lamina.compile(model, args, kwargs, dynamic_shapes=dynamic_shapes, target=f"cuda:{chips}", **options)
    program.save(path, ptx=ptx)
    return program


def interpreted(path, program, chip="sm_90"):
    """The package, with its kernels interpreted."""
    return lamina_runtime.load(path, driver=InterpreterDriver(program.program.module, f"cuda:{chip}"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers(name, tmp_path):
    _, arguments, dynamic, more = PROGRAMS[name]
    model = get_model(name)
    path = tmp_path / "program.lamina"
    program = package(path, model, tuple(x.clone() for x in arguments), dynamic_shapes=dynamic)
    mine = interpreted(path, program)
    for given in [arguments, *more]:
        copies = [x.clone() for x in given], [x.clone() for x in given]
        with torch.no_grad():
            expected, got = model(*copies[0]), mine(*copies[1])
        tolerance = TOLERANCE.get(expected.dtype, 0)
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(copies[1], copies[0], rtol=tolerance, atol=tolerance)
        assert got.stride() == expected.stride()


@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["optimized_net", "softmax", "layer_norm", "pointwise", "in_place"])
def test_both_chips(name, chip, tmp_path):
    _, arguments, dynamic, _ = PROGRAMS[name]
    model = get_model(name)
    program = package(
        tmp_path / "p", model, tuple(x.clone() for x in arguments), dynamic_shapes=dynamic, chips="sm_80,sm_90"
    )
    mine = interpreted(tmp_path / "p", program, chip)
    copies = [x.clone() for x in arguments], [x.clone() for x in arguments]
    with torch.no_grad():
        torch.testing.assert_close(mine(*copies[1]), model(*copies[0]), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(copies[1], copies[0])
    assert all(image.startswith(b"\x7fELF") for image in mine.driver.images.values())


def test_calls_in_the_same_process():
    program = lamina.compile(
        lambda x, y: (torch.softmax(x, -1) @ y, x.t()),
        (seeded(4, 8), seeded(8, 3)),
        dynamic_shapes=({0: DYNAMIC}, None),
        target="cuda:sm_90",
    )
    program.executable.driver = InterpreterDriver(program.program.module)
    x, y = seeded(5, 8), seeded(25)[1:].view(8, 3)
    torch.testing.assert_close(program(x, y=y)[0], torch.softmax(x, -1) @ y)
    with pytest.raises(TypeError, match="argument 'y' has dtype"):
        program(x, y.double())
    # As graphs of TorchDynamo call it, which have been checked.
    from lamina.frontend.call import generate

    got = generate(program.program, program.executable, guard=False)([x, y])
    torch.testing.assert_close(got[0], torch.softmax(x, -1) @ y)


# ---- arguments and results


class Structured(nn.Module):
    def forward(self, batch, scale, flag=True, *, extra=None):
        x, (y, z) = batch["x"], batch["pair"]
        result = x * scale + y
        if flag:
            result = result - z
        Pair = collections.namedtuple("Pair", "first second")
        return {"sum": result, "same": [x, x.t()], "pair": Pair(extra[0] + 1, (result.shape[0], None, 2.5))}


def test_nested_arguments(tmp_path):
    def batch(n):
        return {"pair": (seeded(4, seed=1), seeded(n, 4, seed=2)), "x": seeded(n, 4)}

    model, extra = Structured(), [seeded(3)]
    shapes = ({"pair": (None, {0: DYNAMIC}), "x": {0: DYNAMIC}}, None, None, [None])
    program = package(
        tmp_path / "p",
        model,
        (batch(5), 2.0),
        {"flag": True, "extra": extra},
        dynamic_shapes=dict(zip(("batch", "scale", "flag", "extra"), shapes)),
    )
    mine = interpreted(tmp_path / "p", program)
    for n in (5, 2, 9):
        given = batch(n)
        got, expected = mine(given, 2.0, True, extra=extra), model(given, 2.0, True, extra=extra)
        torch.testing.assert_close(got["sum"], expected["sum"])
        assert got["same"][0] is given["x"] and got["same"][1].data_ptr() == given["x"].data_ptr()
        assert got["same"][1].shape == (4, n)
        torch.testing.assert_close(got["pair"].first, expected["pair"].first)
        assert got["pair"].second == (n, None, 2.5)
    given = batch(5)
    mine(extra=extra, batch=given, flag=True, scale=2.0)
    for args, kwargs, error, message in [
        (
            (given, 3.0),
            {"flag": True, "extra": extra},
            ValueError,
            r"'scale' is 3\.0, the program was compiled for 2\.0",
        ),
        ((given, 2.0), {"flag": False, "extra": extra}, ValueError, "'flag' is False"),
        ((given, 2.0), {"flag": True}, TypeError, "'extra' is missing"),
        ((given, 2.0), {"flag": True, "extra": extra, "no": 1}, TypeError, "'no' was not given"),
        ((given, 2.0), {"flag": True, "extra": tuple(extra)}, TypeError, "expected a list of 1, got a tuple"),
        (({"x": given["x"]}, 2.0), {"flag": True, "extra": extra}, TypeError, "dictionary with the keys"),
    ]:
        with pytest.raises(error, match=message):
            mine(*args, **kwargs)


def test_arguments_are_checked(tmp_path):
    program = package(
        tmp_path / "p", lambda x, y: x + y, (seeded(4, 8), seeded(4, 8)), dynamic_shapes=({0: DYNAMIC}, {0: DYNAMIC})
    )
    mine = interpreted(tmp_path / "p", program)
    x = seeded(4, 8)
    for args, error, message in [
        ((x,), TypeError, "argument 'y' is missing"),
        ((x, 1), TypeError, "argument 'y' is a int, expected a tensor"),
        ((x, x.double()), TypeError, "argument 'y' has dtype torch.float64, expected torch.float32"),
        ((x, x.to("meta")), TypeError, "argument 'y' is on device meta, expected cpu"),
        ((x, x.to_sparse()), TypeError, "argument 'y' has layout torch.sparse_coo"),
        ((x, x[0]), ValueError, "argument 'y' has 1 dimensions, expected 2"),
        ((x, x[:3]), ValueError, "argument 'y' has size 3 in dimension 0, expected 4"),
        ((x, x[:, :3]), ValueError, "argument 'y' has size 3 in dimension 1, expected 8"),
    ]:
        with pytest.raises(error, match=message):
            mine(*args)


def test_ranges_of_sizes(tmp_path):
    batch = torch.export.Dim("batch", min=2, max=6)
    program = package(tmp_path / "p", lambda x: x * 2, (seeded(4, 8),), dynamic_shapes=({0: batch},))
    mine = interpreted(tmp_path / "p", program)
    for n in (2, 6):
        torch.testing.assert_close(mine(seeded(n, 8)), seeded(n, 8) * 2)
    with pytest.raises(ValueError, match="argument 'x' has size 7 in dimension 0, expected from 2 to 6"):
        mine(seeded(7, 8))


def test_any_strides_and_addresses(tmp_path):
    program = package(tmp_path / "p", lambda x: x * 2 + 1, (seeded(8, 6),))
    mine = interpreted(tmp_path / "p", program)
    memory = torch.arange(200.0)
    for x in (memory[1:49].view(8, 6), seeded(6, 8).t(), seeded(8, 12)[:, ::2], torch.ones(1).expand(8, 6)):
        torch.testing.assert_close(mine(x), x * 2 + 1)
    x = torch.view_as_complex(seeded(8, 6, 2)).conj().imag
    assert x.is_neg()
    torch.testing.assert_close(mine(x), x * 2 + 1)


def test_strides_of_results(tmp_path):
    def model(x):
        return (x + 1).t(), x.new_zeros(3).expand(4, 3) + 0, (x * 2).permute(1, 0, 2) if x.dim() == 3 else x[:, ::2]

    program = package(tmp_path / "p", model, (seeded(8, 6),))
    x = seeded(8, 6)
    for got, expected in zip(interpreted(tmp_path / "p", program)(x), model(x)):
        torch.testing.assert_close(got, expected)
        assert got.stride() == expected.stride()


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3, 2).t())
        self.weight = nn.Parameter(seeded(4, 4))

    def forward(self, x):
        self.count.add_(1)
        return x @ self.weight + self.count.sum(), self.count, self.weight


def test_state(tmp_path):
    model = Counter().requires_grad_(False)
    program = package(tmp_path / "p", model, (seeded(4, 4),))
    first, second = (interpreted(tmp_path / "p", program) for _ in range(2))
    x = seeded(4, 4)
    for turn in (1, 2):
        got = first(x)
        torch.testing.assert_close(got[0], x @ model.weight + 6.0 * turn, rtol=1e-5, atol=1e-5)
        assert torch.equal(got[1], torch.full((2, 3), float(turn))) and got[1].stride() == model.count.stride()
        assert torch.equal(got[2], model.weight)
    assert second(x)[1][0, 0] == 1 and model.count.sum() == 0


def test_overlapping_arguments_are_refused(tmp_path):
    def model(x, y):
        x.add_(1)
        return x + y

    program = package(tmp_path / "p", model, (seeded(4), seeded(4)))
    mine = interpreted(tmp_path / "p", program)
    x, y = seeded(4), seeded(4, seed=1)
    torch.testing.assert_close(mine(x, y), seeded(4) + 1 + y)
    torch.testing.assert_close(x, seeded(4) + 1)
    with pytest.raises(ValueError, match="'x' is written to and shares memory"):
        mine(x, x)


def test_errors_of_eager(tmp_path):
    def model(x, i):
        return x[i]

    program = package(tmp_path / "p", model, (seeded(10, 3), torch.tensor([1, 2])))
    mine = interpreted(tmp_path / "p", program)
    x, wrong = seeded(10, 3), torch.tensor([1, 10])
    torch.testing.assert_close(mine(x, torch.tensor([-1, 3])), x[[-1, 3]])
    with pytest.raises(IndexError, match="out of bounds"):
        mine(x, wrong)
    # Nothing waits while a graph is recorded, or if the caller says so.
    mine.driver.is_capturing = True
    mine(x, wrong)
    with pytest.raises(IndexError, match="out of bounds"):
        mine.raise_if_failed()
    mine.driver.is_capturing, mine.wait = False, False
    mine(x, torch.tensor([0, 1]))
    mine.raise_if_failed()


def test_empty_tensors(tmp_path):
    program = package(tmp_path / "p", lambda x: (x * 2, x.sum()), (seeded(4, 3),), dynamic_shapes=({0: DYNAMIC},))
    mine = interpreted(tmp_path / "p", program)
    (spec,) = mine.package.call["symbols"]
    if spec["min"] == 0:
        got = mine(seeded(0, 3))
        assert got[0].shape == (0, 3) and got[1] == 0
    static = package(tmp_path / "q", lambda x: (x * 2, x.sum(0)), (seeded(0, 3),))
    got = interpreted(tmp_path / "q", static)(seeded(0, 3))
    assert got[0].shape == (0, 3) and torch.equal(got[1], torch.zeros(3))


def test_indices_of_32_bits_are_not_exceeded(tmp_path):
    program = package(
        tmp_path / "p", lambda x: x + 1, (torch.zeros(4, dtype=torch.int8),), dynamic_shapes=({0: DYNAMIC},)
    )
    del program
    driver = HostDriver()
    mine = lamina_runtime.load(tmp_path / "p", driver=driver)
    with pytest.raises(ValueError, match=r"32 bits: compile with bounds for the open sizes \(torch.export.Dim"):
        mine._call.host.run([0, 0], (2**31 + 1,))


def test_indices_have_64_bits_where_bounds_need_them(tmp_path):
    rows = torch.export.Dim("rows", max=2**20)
    x = seeded(3, 4096)
    for columns, scalar in ((4096, "i64"), (1000, "i32")):
        path = tmp_path / scalar
        program = package(path, lambda x: torch.tanh(x), (x[:, :columns],), dynamic_shapes=({0: rows},))
        (kernel,) = lamina_runtime.program.read(path).images["sm_90"].kernels.values()
        assert kernel.scalars == (scalar,)
        got = interpreted(path, program)(x[:2, :columns].contiguous())
        torch.testing.assert_close(got, torch.tanh(x[:2, :columns]), rtol=1e-5, atol=1e-6)
    lamina_runtime.load(tmp_path / "i64", driver=HostDriver())._call.host.run([0, 0], (2**20,))


def test_threads(tmp_path):
    program = package(
        tmp_path / "p", lambda x: torch.softmax(x + 1, -1) @ x.t(), (seeded(4, 8),), dynamic_shapes=({0: DYNAMIC},)
    )
    mine = interpreted(tmp_path / "p", program)
    wrong = []

    def work(seed):
        x = seeded(3 + seed, 8, seed=seed)
        try:
            for _ in range(3):
                torch.testing.assert_close(mine(x), torch.softmax(x + 1, -1) @ x.t())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- alone


def environment(tmp_path):
    """An environment in which lamina_runtime is found, and lamina is not."""
    import lamina_runtime

    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "lamina_runtime").symlink_to(os.path.dirname(lamina_runtime.__file__))
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def test_alone_it_stops_only_at_the_driver(tmp_path):
    """In an environment of its own, the wheel does what scripts/runtime_alone.sh checks."""
    package(tmp_path / "softmax", *PROGRAMS["softmax"][:2], chips="sm_80,sm_90", ptx=True)
    model = get_model("optimized_net")
    package(tmp_path / "net", model, PROGRAMS["optimized_net"][1]).save(tmp_path / "light", without=model.state_dict())
    run = subprocess.run(
        [sys.executable, LOAD_ALONE, *(tmp_path / name for name in ("softmax", "net", "light"))],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert [line.partition(";")[0] for line in run.stdout.splitlines()] == [
        "softmax: 2 chips, 2 kernels",
        "net: 1 chips, 1 kernels",
        "light: 1 chips, 1 kernels",
    ]
    if not torch.cuda.is_available():
        assert run.stdout.count("DriverError: libcuda.so.1, the CUDA driver, cannot be loaded") == 3


def test_description(tmp_path):
    package(tmp_path / "p", get_model("optimized_net"), PROGRAMS["optimized_net"][1], chips="sm_80,sm_90", ptx=True)
    run = subprocess.run(
        [sys.executable, "-m", "lamina_runtime", str(tmp_path / "p"), str(tmp_path / "none")],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and run.stderr.startswith("error: ") and "none" in run.stderr
    for expected in (
        "runs on     sm_80, sm_90, others from sm_80 on",
        "result      float32[32, 512]",
        "main: 1 launches",
    ):
        assert expected in run.stdout


# ---- the CUDA driver


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_stub(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(library, tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("STUB_DRIVER_LOG", str(log))
    monkeypatch.setenv("STUB_DRIVER_PARAMETERS", "0")
    # A copy for each test: the library keeps its log open.
    copy = tmp_path / "libcuda.so.1"
    copy.write_bytes(open(library, "rb").read())
    return CudaDriver(torch.device("cpu"), str(copy)), log


def test_launches_reach_the_driver(driver, tmp_path, monkeypatch):
    driver, log = driver
    package(
        tmp_path / "p",
        lambda x, y: torch.tanh(x) * y + 1,
        (seeded(37, 5), seeded(5)),
        dynamic_shapes=({0: DYNAMIC}, None),
    )
    mine = lamina_runtime.load(tmp_path / "p", driver=driver)
    ((name, kernel),) = mine.image.kernels.items()
    assert kernel.pointers == ("f32", "f32", "f32") and kernel.scalars == ("i32",) and kernel.hidden == 2
    monkeypatch.setenv("STUB_DRIVER_PARAMETERS", "6")
    x, y = seeded(3000, 5), seeded(5)
    result = mine(x, y)
    lines = log.read_text().splitlines()
    assert lines[:2] == ["module 7fELF", f"function {kernel.entry}"]
    words = lines[-1].split()
    (launch,) = mine.image.hosts["main"].launches
    from lamina_runtime.expressions import evaluate

    programs = evaluate(launch.grid, [3000])
    assert words[:10] == [
        "launch",
        kernel.entry,
        str(programs),
        "1",
        "1",
        str(32 * kernel.warps),
        "1",
        "1",
        str(kernel.shared),
        "(nil)",
    ]
    assert words[10] == "0"
    assert {int(word, 16) for word in words[11:14]} == {x.data_ptr(), y.data_ptr(), result.data_ptr()}
    assert int(words[13], 16) == result.data_ptr()  # outputs come last
    assert [int(word, 16) for word in words[14:]] == [3000, 0, 0]


def test_much_shared_memory_is_asked_for(driver, tmp_path):
    driver, log = driver
    x = seeded(256, 256, dtype=torch.float16)
    program = package(tmp_path / "p", lambda x, y: x @ y, (x, x))
    (facts,) = program.executable.report["sm_90"].values()
    mine = lamina_runtime.load(tmp_path / "p", driver=driver)
    mine(x, x)
    asked = f"attribute 8 {facts['shared']}" in log.read_text()
    assert asked == (facts["shared"] > 48 << 10)


def test_errors_of_the_driver(driver, tmp_path, monkeypatch):
    driver, _ = driver
    package(tmp_path / "p", lambda x: x + 1, (seeded(8),))
    mine = lamina_runtime.load(tmp_path / "p", driver=driver)
    monkeypatch.setenv("STUB_DRIVER_FAILS", "cuLaunchKernelEx")
    with pytest.raises(
        lamina_runtime.DriverError, match="launch of k_.* failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal"
    ):
        mine(seeded(8))
    monkeypatch.setenv("STUB_DRIVER_FAILS", "cuModuleLoadData")
    with pytest.raises(lamina_runtime.DriverError, match="the kernel k_.* cannot be loaded: cuModuleLoadData failed"):
        lamina_runtime.load(tmp_path / "p", driver=driver)


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has CUDA")
def test_a_driver_without_a_torch_for_it(library, tmp_path, monkeypatch):
    package(tmp_path / "p", lambda x: x + 1, (seeded(8),))
    monkeypatch.setenv("LAMINA_LIBCUDA", library)
    monkeypatch.setenv("STUB_DRIVER_LOG", str(tmp_path / "log"))
    with pytest.raises(lamina_runtime.DriverError, match="is built without CUDA"):
        lamina_runtime.load(tmp_path / "p")
    monkeypatch.setenv("STUB_DRIVER_FAILS", "cuInit")
    with pytest.raises(lamina_runtime.DriverError, match="cuInit failed"):
        lamina_runtime.load(tmp_path / "p")


def test_launch_config_is_the_drivers():
    from lamina_runtime.driver import _LaunchConfig

    assert ctypes.sizeof(_LaunchConfig) == 56
    offsets = {name: getattr(_LaunchConfig, name).offset for name, *_ in _LaunchConfig._fields_}
    assert offsets == {"grid": 0, "block": 12, "shared": 24, "stream": 32, "attributes": 40, "attribute_count": 48}


def test_signature_is_the_models(tmp_path):
    program = package(
        tmp_path / "p",
        Structured(),
        ({"x": seeded(2, 4), "pair": (seeded(4), seeded(2, 4))}, 1.0),
        {"extra": [seeded(1)]},
    )
    call = json.loads(bytes(lamina_runtime.read(tmp_path / "p").archive["plan.json"]))["call"]
    assert call["parameters"] == list(inspect.signature(Structured().forward).parameters)
    assert program.kernels
