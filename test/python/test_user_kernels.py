"""Triton kernels of the user's own in a program: captured with no GPU, and named in errors."""

import ctypes
import dataclasses
import inspect
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import DYNAMIC, seeded
from lamina.errors import CompileError
from lamina.frontend.export import capture
from lamina.frontend.user_kernels import kernel_of
from lamina_runtime.driver import CudaDriver
from package_harness import SplitDriver

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def scaled_sum(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + scale * tl.load(y + i, mask=mask), mask=mask)


tuned_sum = triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], ["n"])(scaled_sum)


def launched(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    scaled_sum[(triton.cdiv(n, 128),)](x, y, out, n, 2.0, BLOCK=128)
    return out


def tuned(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    tuned_sum[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, 2.0)
    return out


@torch.library.triton_op("lamina_test::scaled_sum", mutates_args={})
def registered(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    torch.library.wrap_triton(scaled_sum)[(triton.cdiv(n, 128),)](x, y, out, n, 2.0, BLOCK=128)
    return out


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x + 1, y) * 2


FUNCTIONS = (launched, tuned, registered)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shapes", [None, ({0: DYNAMIC}, {0: DYNAMIC})])
def test_calls_are_captured(function, shapes):
    before = scaled_sum.run.__func__, triton.runtime.driver._active
    _, exported = capture(Model(function), (seeded(300), seeded(300)), None, shapes)
    assert (scaled_sum.run.__func__, triton.runtime.driver._active) == before
    (node,) = [node for node in exported.graph.nodes if kernel_of(node) is not None]
    assert kernel_of(node) == "scaled_sum"
    assert node.kwargs["tensors_to_clone"] == ["out"]
    # One grid for each way in which the kernel may be tuned; it is computed of the sizes.
    for first, *others in node.kwargs["grid"]:
        assert others == [1, 1]
        assert first in (2, 3) if shapes is None else isinstance(first.meta["val"], torch.SymInt)


def line_of(function, text):
    function = getattr(function, "_init_fn", function)
    lines, start = inspect.getsourcelines(function)
    return start + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("fallback", ["error", "eager"])
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_the_host_has_no_kernels(target, fallback):
    with pytest.raises(CompileError) as caught:
        lamina.compile(Model(launched), (seeded(300), seeded(300)), target=target, fallback=fallback)
    error = caught.value
    assert (
        f"the program launches the Triton kernel scaled_sum, which needs a GPU, and is compiled for '{target}'"
        in str(error)
    )
    assert error.location == f"{__file__}:{line_of(launched, 'scaled_sum[')}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_way_to_launch(function):
    with pytest.raises(
        CompileError, match=r"test_user_kernels.py:\d+: .*the Triton kernel scaled_sum, which needs a GPU"
    ):
        lamina.compile(Model(function), (seeded(300), seeded(300)))


def test_just_in_time():
    x = seeded(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception, match="the Triton kernel scaled_sum, which needs a GPU") as caught:
            torch.compile(Model(registered), backend="lamina")(x, x)
    assert type(caught.value).__name__ == "CompileError"


# ---- packages


@triton.jit
def scaled_rows(out, x, rows, scale, factor: tl.constexpr, columns, stride, flag, BLOCK: tl.constexpr):
    """Scalars before and between pointers' places, a 1 and a constant, two axes."""
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < columns
    values = tl.load(x + row * stride + i, mask=mask, other=0.0)
    scaled = values * scale + factor
    values = tl.where(flag, scaled, values.to(scaled.dtype))
    tl.store(out + row * columns + i, values.to(out.dtype.element_ty), mask=mask)


@triton.jit
def offset_sum(n, x, shift, y, out, BLOCK: tl.constexpr):
    """A scalar comes first, and one that may be negative."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask) + shift, mask=mask)


@triton.jit
def add_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def row_sums(x, out, columns):
    row = tl.program_id(0)
    total = 0.0
    for column in range(columns):
        total += tl.load(x + row * columns + column)
    tl.store(out + row, total)


def rows_of(x, scale=0.5, factor=3, flag=True):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, columns = x.shape
    grid = (rows, triton.cdiv(columns, 16))
    scaled_rows[grid](out, x, rows, scale, factor, columns, x.stride(0), flag, BLOCK=16)
    return out


def packaged(tmp_path, model, args, dynamic_shapes=None, chips="sm_90", **options):
    """The loaded package, whose kernels are interpreted: those of the user by Triton itself."""
    copies = tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in args)
    program = lamina.compile(model, copies, target=f"cuda:{chips}", dynamic_shapes=dynamic_shapes, **options)
    program.save(tmp_path / "p", ptx=False)
    driver = SplitDriver(program.executable, chips.partition(",")[0])
    return lamina_runtime.load(tmp_path / "p", driver=driver), driver


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shapes", [None, ({0: DYNAMIC}, {0: DYNAMIC})])
def test_numbers(function, shapes, tmp_path):
    mine, driver = packaged(tmp_path, Model(function), (seeded(300), seeded(300)), shapes)
    for n in (300,) if shapes is None else (300, 2, 1000):
        x, y = seeded(n), seeded(n, seed=1)
        torch.testing.assert_close(mine(x, y), ((x + 1) + 2 * y) * 2)
    # What is only to be written is made by no kernel, and not copied.
    assert [name for name, *_ in driver.launches][:3] == ["k_add", "scaled_sum", "k_mul"]


# Triton's interpreter does not compute in bf16.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("flag", [True, False])
def test_arguments(dtype, flag, tmp_path):
    x = seeded(5, 40).to(dtype)
    mine, driver = packaged(tmp_path, lambda x: rows_of(x, flag=flag) + 1, (x,))
    expected = (x.double() * 0.5 + 3 if flag else x).to(dtype) + 1
    torch.testing.assert_close(mine(x), expected, rtol=1e-2 if dtype.itemsize == 2 else 1e-6, atol=1e-2)
    ((_, programs, _, symbols),) = [launch for launch in driver.launches if launch[0] == "scaled_rows"]
    assert programs == 15 and len(symbols) == 5


def test_axes_and_open_sizes(tmp_path):
    mine, driver = packaged(tmp_path, lambda x: rows_of(x * 2), (seeded(5, 40),), ({0: DYNAMIC, 1: DYNAMIC},))
    for shape in ((5, 40), (2, 3), (9, 33)):
        x = seeded(*shape)
        torch.testing.assert_close(mine(x), x + 3)
    assert [launch[1] for launch in driver.launches if launch[0] == "scaled_rows"] == [15, 2, 27]


def test_strides_are_those_of_the_capture(tmp_path):
    """A kernel is told strides as numbers; an argument that has others is brought into them."""
    x = seeded(5, 40)
    mine, _ = packaged(tmp_path, lambda x: rows_of(x), (x,))
    for other in (x.t().contiguous().t(), seeded(5, 80)[:, ::2], torch.cat([seeded(1), seeded(200)])[1:].view(5, 40)):
        torch.testing.assert_close(mine(other), other * 0.5 + 3)
    mine, _ = packaged(tmp_path, lambda x: rows_of(x), (seeded(5, 80)[:, :40],))
    torch.testing.assert_close(mine(x), x * 0.5 + 3)


@pytest.mark.parametrize("shift", [-7, 1, 16, 0, 2**31, -(2**40)])
def test_integers(shift, tmp_path):
    def model(x, y):
        out = torch.empty_like(x)
        offset_sum[(4,)](x.numel(), x, shift, y, out, BLOCK=32)
        return out

    x, y = torch.arange(100), torch.arange(100) ** 2
    mine, _ = packaged(tmp_path, model, (x, y))
    assert torch.equal(mine(x, y), x + y + shift)


def test_in_place(tmp_path):
    def model(x):
        add_in_place[(4,)](x, x.numel(), BLOCK=32)
        y = x * 2
        add_in_place[(4,)](y, y.numel(), BLOCK=32)
        return y

    mine, _ = packaged(tmp_path, model, (seeded(100),))
    x = seeded(100)
    before = x.clone()
    torch.testing.assert_close(mine(x), (before + 1) * 2 + 1)
    torch.testing.assert_close(x, before + 1)


def test_several_kernels(tmp_path):
    """Two kernels, one of them twice with other constants; each is compiled as often as it differs."""

    def model(x):
        a, b, c = rows_of(x, factor=3), rows_of(x, factor=4), rows_of(x + 1, factor=3)
        sums = torch.empty(x.shape[0], device=x.device)
        row_sums[(x.shape[0],)](a, sums, x.shape[1])
        return b + c, torch.relu(sums)

    mine, driver = packaged(tmp_path, model, (seeded(5, 40),))
    x = seeded(5, 40)
    got = mine(x)
    torch.testing.assert_close(got[0], x * 0.5 + 4 + (x + 1) * 0.5 + 3)
    torch.testing.assert_close(got[1], torch.relu((x * 0.5 + 3).sum(1)))
    assert {"scaled_rows", "scaled_rows_1", "row_sums"} <= set(mine.kernels) and "scaled_rows_2" not in mine.kernels


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(40, 24)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        self.calls.add_(1)
        return rows_of(self.linear(x)), self.calls + torch.tensor([1.0, 2.0, 3.0])


def test_weights_and_buffers(tmp_path):
    torch.manual_seed(0)
    model = Weighted().eval()
    mine, _ = packaged(tmp_path, model, (seeded(5, 40),), chips="sm_90,sm_80")
    for call in (1.0, 2.0):
        x = seeded(5, 40, seed=int(call))
        got = mine(x)
        with torch.no_grad():
            torch.testing.assert_close(got[0], model.linear(x) * 0.5 + 3, rtol=1e-5, atol=1e-5)
        assert torch.equal(got[1], torch.tensor([1.0, 2.0, 3.0]) + call)


def test_every_chip(tmp_path):
    program = lamina.compile(Model(launched), (seeded(300), seeded(300)), target="cuda:sm_80,sm_90,sm_100,sm_120")
    program.save(tmp_path / "p")
    package = lamina_runtime.program.read(tmp_path / "p")
    assert set(package.images) == {"sm_80", "sm_90", "sm_100", "sm_120"} and package.ptx is not None
    for chip, image in {**package.images, "ptx": package.ptx}.items():
        assert list(image.kernels) == ["scaled_sum"]
        code = bytes(package.archive[image.kernels["scaled_sum"].file])
        assert code.startswith(b"\x7fELF") or chip == "ptx" and b".entry scaled_sum" in code
    text = subprocess.run(
        [sys.executable, "-m", "lamina_runtime", tmp_path / "p"], capture_output=True, text=True, check=True
    ).stdout
    assert text.count("kernel scaled_sum") == 5 and text.count("kernel k_mul") == 5


def test_the_cuda_driver_passes_arguments_in_their_places(tmp_path):
    """The stub of the driver sees what a GPU would."""
    kernel = lamina_runtime.plan.Kernel(
        "k", "k", "f", 4, 0, 0, 1, ("f32", "f32"), ("i32", "f32", "i64"), 2, places=(1, 3)
    )
    seen = []

    class Library:
        @staticmethod
        def cuLaunchKernelEx(config, function, addresses, extra):
            values = [ctypes.c_uint64.from_address(addresses[k]).value for k in range(7)]
            seen.append((list(config._obj.grid), values))
            return 0

    driver = object.__new__(CudaDriver)
    driver._library = Library()
    launch = lamina_runtime.driver.BoundLaunch(kernel, 24, (-1, 5, 6), (9, 9), (2, 3, 4))
    driver.bind(ctypes.c_void_p(1), launch)([100, 200], 300, 0)
    assert seen == [([2, 3, 4], [2**64 - 1, 100, 5, 200, 6, 300, 0])]
    with pytest.raises(lamina_runtime.DriverError, match="at most 65535 along this axis"):
        driver.bind(None, dataclasses.replace(launch, grid=(1, 65536, 1)))


def hooked(x):
    out = torch.empty_like(x)
    config = triton.Config({"BLOCK": 128}, pre_hook=lambda nargs: None)
    triton.autotune([config], ["n"])(scaled_sum)[(3,)](x, x, out, x.numel(), 2.0)
    return out


@triton.jit
def broken(x, out, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 1000, "the block is too small")
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))


def breaks(x):
    out = torch.empty_like(x)
    broken[(1,)](x, out, BLOCK=128)
    return out


@triton.jit
def large(x, y, out, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + rows, tl.dot(tl.load(x + rows), tl.load(y + rows)))


def too_large(x, y):
    out = torch.empty(512, 512)
    large[(1,)](x, y, out, BLOCK=512)
    return out


def test_what_cannot_be_packaged():
    with pytest.raises(Exception, match="[Hh]ook"):
        lamina.compile(hooked, (seeded(300),), target="cuda:sm_90")
    with pytest.raises(
        CompileError, match=r"test_user_kernels.py:\d+: Triton cannot compile the kernel broken"
    ) as caught:
        lamina.compile(breaks, (seeded(128),), target="cuda:sm_90")
    assert "the block is too small" in str(caught.value)
    x = seeded(512, 512).half()
    with pytest.raises(CompileError, match=r"test_user_kernels.py:\d+: .*bytes of shared memory, sm_90 has 232448"):
        lamina.compile(too_large, (x, x), target="cuda:sm_90")
    program = lamina.compile(Model(launched), (seeded(300), seeded(300)), target="cuda:sm_90")
    with pytest.raises(CompileError, match="has no candidates"):
        program.save("never", candidates=3)
    with pytest.raises(CompileError, match="cannot be left out"):
        program.save("never", without=["w"])


def test_other_operators_are_still_named():
    def model(x, y):
        return torch.linalg.svdvals(launched(x, y).view(3, 100))

    with pytest.raises(CompileError, match=r"test_user_kernels.py:\d+: .*svd"):
        lamina.compile(model, (seeded(300), seeded(300)), target="cuda:sm_90")
