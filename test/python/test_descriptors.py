"""Tensor descriptors: products whose operands are read by them have eager's numbers, and become copies by the engine of a GPU."""

import numpy as np
import pytest
import torch
from mlir import ir
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import DYNAMIC, seeded
from lamina.compiler import copy_module
from lamina.dialects import make_context
from lamina.frontend.export import import_program
from lamina.reference.errors import ProgramError
from lamina.reference.triton import launch
from lamina.targets import get_target
from lamina.targets.choices import Choice, choices_around, kernel_key, untiled_kernels
from lamina.targets.cuda import CHIPS
from lamina.targets.schedule import other_attributes, uses_descriptors
from lamina.targets.triton_target import BEFORE_TILES, kernels_of
from lamina_runtime.schedule import write_schedule
from package_harness import InterpreterDriver

pytest.importorskip("triton")


def asked_for(path, model, args, descriptors=True, tile=None, chip="cuda:sm_90", **options):
    """A schedule with descriptors for each kernel with a product."""
    module = copy_module(import_program(model, args, **options).module)
    for _ in get_target(chip).lower(module, until=BEFORE_TILES):
        pass
    choice = Choice(tile=tile, descriptors=descriptors).to_json()
    kernels = [function for name, function in untiled_kernels(module) if "dot" in name or "conv" in name]
    write_schedule(path, {kernel_key(function): {chip: {"choice": choice}} for function in kernels})
    return path


def described(model, args, schedule, chip="cuda:sm_90", **options):
    """Descriptors that are made in the kernels of a program."""
    module = copy_module(import_program(model, args, **options).module)
    target = get_target(chip, schedule)
    return sum(text.count("tt.make_tensor_descriptor") for text in target.emit_ttir(module).values())


def check(tmp_path, model, args, expected, tolerance, tile=(32, 32, 32), dynamic_shapes=None, more=()):
    path = asked_for(tmp_path / "s", model, args, tile=tile, dynamic_shapes=dynamic_shapes)
    assert described(model, args, path, dynamic_shapes=dynamic_shapes) == expected
    program = lamina.compile(model, args, target="cuda:sm_90", schedule=path, dynamic_shapes=dynamic_shapes)
    program.save(tmp_path / "p", ptx=False)
    driver = InterpreterDriver(program.program.module, schedule=path)
    mine = lamina_runtime.load(tmp_path / "p", driver=driver)
    for given in (args, *more):
        with torch.no_grad():
            torch.testing.assert_close(mine(*given), model(*given), rtol=tolerance, atol=tolerance)


FORMS = {
    "rows by columns": (lambda x, y: x @ y, (70, 72), (72, 40)),
    "second transposed": (lambda x, y: x @ y.t(), (70, 72), (40, 72)),
    "first transposed": (lambda x, y: x.t() @ y, (72, 72), (72, 40)),
    "both transposed": (lambda x, y: x.t() @ y.t(), (72, 48), (40, 72)),
    "with an epilogue": (lambda x, y: torch.relu(x @ y) * 2, (33, 64), (64, 64)),
    "one block": (lambda x, y: x @ y, (16, 16), (16, 16)),
    "a depth of one block and a bit": (lambda x, y: x @ y, (16, 40), (40, 16)),
    "a batch": (lambda x, y: x @ y, (3, 20, 24), (3, 24, 40)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("form", FORMS)
def test_numbers(form, dtype, tmp_path):
    model, x, y = FORMS[form]
    args = seeded(*x).to(dtype), seeded(*y, seed=1).to(dtype)
    check(tmp_path, model, args, 2, 2e-2 if dtype is torch.float16 else 1e-1)


def test_tf32(tmp_path):
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        check(tmp_path, lambda x, y: x @ y, (seeded(40, 36), seeded(36, 44)), 2, 3e-2)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ((40, 75), (75, 40), 1),  # rows of 150 bytes
        ((40, 76), (76, 42), 0),  # of 152 and 84
        ((40, 72), (72, 40), 2),
    ],
)
def test_what_is_not_aligned_is_read_by_pointers(x, y, expected, tmp_path):
    check(tmp_path, lambda x, y: x @ y, (seeded(*x).half(), seeded(*y).half()), expected, 2e-2)


def test_slices(tmp_path):
    """Of a depth that ends before its tensor does, what follows is not read as if it belonged to it."""
    x, y = seeded(40, 96).half(), seeded(40, 40).half()
    x[:, 40:] = torch.inf
    check(tmp_path, lambda x, y: x[:, :40] @ y, (x, y), 2, 2e-2)
    check(tmp_path, lambda x, y: x[8:, :40] @ y, (x, y), 2, 2e-2)
    check(tmp_path, lambda x, y: x[1:, :40] @ y, (x, y), 2, 2e-2)
    check(tmp_path, lambda x, y: x[:, 4:44] @ y, (x.nan_to_num(1, 1), y), 1, 2e-2)


def test_open_sizes(tmp_path):
    shapes = ({0: DYNAMIC}, None)
    more = [(seeded(n, 64).half(), seeded(64, 40).half()) for n in (2, 31, 100)]
    check(
        tmp_path,
        lambda x, y: x @ y,
        (seeded(40, 64).half(), seeded(64, 40).half()),
        2,
        2e-2,
        (32, 32, 32),
        shapes,
        more,
    )
    shapes = ({1: DYNAMIC}, {0: DYNAMIC})  # rows of x are of any length
    more = [(seeded(40, n).half(), seeded(n, 40).half()) for n in (2, 31, 100)]
    check(
        tmp_path,
        lambda x, y: x @ y,
        (seeded(40, 64).half(), seeded(64, 40).half()),
        1,
        2e-2,
        (32, 32, 32),
        shapes,
        more,
    )


def test_a_layer_and_its_split(tmp_path):
    torch.manual_seed(0)
    layer = nn.Linear(4096, 48).half().eval()
    check(tmp_path, layer, (seeded(20, 4096).half(),), 2, 2e-2, (16, 16, 64))


@pytest.mark.parametrize("chip", CHIPS)
def test_long_loops_have_them_where_the_chip_can(chip):
    for depth, long in ((4096, True), (512, False)):
        x = torch.empty(4096, depth, dtype=torch.float16)
        module = copy_module(import_program(lambda x: x @ x.t(), (x,)).module)
        target = get_target(f"cuda:{chip}")
        for _ in target.lower(module):
            pass
        ((_, function),) = kernels_of(module)
        assert uses_descriptors(function) == (long and CHIPS[chip].descriptors)
        assert CHIPS[chip].descriptors == (int(chip[3:]) >= 90)
        other = other_attributes(function)
        assert other.get("kernel.descriptors") == ("false" if uses_descriptors(function) else None)


@pytest.mark.parametrize("chip", ["sm_90", "sm_100", "sm_120"])
def test_machine_code(chip, tmp_path):
    """Copies are the engine's, and the tile of 128 x 128 x 64 needs no more registers than one written by hand."""
    x = torch.empty(4096, 4096, dtype=torch.float16)
    model = lambda x, y: x @ y  # noqa: E731
    path = asked_for(tmp_path / "s", model, (x, x), tile=(128, 128, 64), chip=f"cuda:{chip}")
    program = lamina.compile(model, (x, x), target=f"cuda:{chip}", schedule=path)
    (kernel,) = program.census()[chip].kernels
    assert sum(n for name, n in kernel.instructions.items() if name.startswith("UTMALDG")) >= 2
    assert not any(name.startswith(("LDGSTS", "LDG.E.U16")) for name in kernel.instructions)
    assert not kernel.spills and kernel.count("tensor") > 0
    if chip == "sm_90":
        assert kernel.registers <= 108 * 1.1 and any(name.startswith("HGMMA") for name in kernel.instructions)
    (facts,) = program.executable.images[chip].kernels.values()
    assert facts.scratch > 0


def test_the_tuner_tries_both():
    default = Choice(tile=(128, 128, 64), warps=8, stages=3, descriptors=False)
    tried = choices_around(default, CHIPS["sm_90"], 12)
    assert Choice(tile=(128, 128, 64), warps=8, stages=3, descriptors=True) in tried
    assert all(not choice.descriptors for choice in choices_around(default, CHIPS["sm_80"], 1000))
    assert Choice.of_json({"descriptors": True}).descriptors is True
    with pytest.raises(ValueError):
        Choice.of_json({"descriptors": 1})


TEXT = """
tt.func @f(%p: !tt.ptr<f16>, %o: !tt.ptr<f16>, %rows: i32, %stride: i64, %inner: i64, %start: i32) {
  %c24 = arith.constant 24 : i32
  %at = tt.addptr %p, %start : !tt.ptr<f16>, i32
  %d = tt.make_tensor_descriptor %at, [%rows, %c24], [%stride, %inner] : !tt.ptr<f16>, !tt.tensordesc<4x32xf16>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %x = tt.descriptor_load %d[%c1, %c8] : !tt.tensordesc<4x32xf16> -> tensor<4x32xf16>
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %s = tt.splat %o : !tt.ptr<f16> -> tensor<128x!tt.ptr<f16>>
  %q = tt.addptr %s, %r : tensor<128x!tt.ptr<f16>>, tensor<128xi32>
  %y = tt.reshape %x : tensor<4x32xf16> -> tensor<128xf16>
  tt.store %q, %y : tensor<128x!tt.ptr<f16>>
  tt.return
}
"""


def interpreted(rows=3, stride=32, inner=1, start=0, elements=128):
    with make_context():
        module = ir.Module.parse(TEXT)
        memory, out = np.arange(elements, dtype=np.float16), np.full(128, -1, np.float16)
        launch(module.body.operations[0].operation, [memory, out], [rows, stride, inner, start], 1)
    return out.reshape(4, 32)


def test_the_interpreter_reads_zeros_outside():
    out = interpreted()
    expected = np.zeros((4, 32), np.float16)
    for row in range(2):  # rows 1 and 2 of three, columns 8 to 23
        expected[row, :16] = 32 * (row + 1) + np.arange(8, 24)
    assert (out == expected).all()
    assert (interpreted(rows=1) == 0).all() and (interpreted(rows=0, elements=0) == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inner": 2}, "the inner stride of a descriptor of argument 0 is 2"),
        ({"stride": 25}, "the stride of a descriptor of argument 0 is 25 elements of 2 bytes"),
        ({"start": 4}, "the offset of a descriptor of argument 0 is 4 elements of 2 bytes"),
        ({"rows": 5}, "is read or written"),
    ],
)
def test_the_interpreter_refuses_what_hardware_does(arguments, message):
    with pytest.raises(ProgramError, match=message):
        interpreted(**arguments)
