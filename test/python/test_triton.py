"""The CUDA target up to Triton IR: Triton reads and compiles the kernels, and the interpreter's numbers are eager's."""

import inspect

import pytest
import torch
from torch import nn

from lamina.errors import CompileError
from lamina.frontend.call import CallableProgram
from lamina.frontend.export import import_program
from lamina.targets import get_target
from lamina.targets.cuda import CUDADescription, CUDATarget, compile_ttir, verify_ttir

DYNAMIC = torch.export.Dim.DYNAMIC
needs_triton = pytest.mark.skipif(
    not __import__("importlib").util.find_spec("triton"), reason="Triton is not installed"
)


def seeded(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


class OptimizedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, x):
        return torch.relu(self.linear(x))


def in_place(x):
    x.add_(1)
    x.mul_(2)
    return x


def pointwise(x, y):
    return torch.tanh(x) * y + 1


def matmul(x, y):
    return x @ y


def softmax(x):
    return torch.softmax(x, -1)


# Name: model, arguments, dynamic shapes, further arguments to call with.
PROGRAMS = {
    "optimized_net": (OptimizedNet, (seeded(32, 512),), None, []),
    "softmax": (softmax, (seeded(7, 1000),), None, []),
    "softmax_bf16": (softmax, (seeded(7, 100, dtype=torch.bfloat16),), None, []),
    "softmax_dynamic": (softmax, (seeded(7, 1000),), (((DYNAMIC, DYNAMIC)),), [(seeded(3, 5001),), (seeded(70, 2),)]),
    "layer_norm": (lambda: nn.LayerNorm(300), (seeded(6, 300),), None, []),
    "layer_norm_f16": (lambda: nn.LayerNorm(300).half(), (seeded(6, 300, dtype=torch.float16),), None, []),
    "rms_norm": (lambda: nn.RMSNorm(100), (seeded(4, 8, 100),), None, []),
    "pointwise": (pointwise, (seeded(37, 5), seeded(5, seed=1)), ({0: DYNAMIC}, None), [(seeded(3000, 5), seeded(5))]),
    "in_place": (in_place, (seeded(1000),), None, []),
    "sum_all": (lambda x: x.sum(), (seeded(37, 50),), None, []),
    "mean_rows": (lambda x: x.mean(0), (seeded(300, 50),), None, []),
    "max_middle": (lambda x: x.amax(1), (seeded(5, 33, 17),), None, []),
    "argmax": (lambda x: x.argmax(-1), (seeded(9, 77),), None, []),
    "any": (lambda x: (x > 2).any(-1), (seeded(9, 77),), None, []),
    "transpose": (lambda x: (x.t() + 1).contiguous(), (seeded(37, 50),), None, []),
    "gelu_bf16": (lambda x: nn.functional.gelu(x), (seeded(37, 50, dtype=torch.bfloat16),), None, []),
    "gather": (lambda x, i: x[i], (seeded(37, 50), torch.tensor([[1, 36], [-37, 0]])), None, []),
    "concatenate": (lambda x, y: torch.cat([x, y * 2], 1), (seeded(9, 5), seeded(9, 7)), None, []),
    "pad": (lambda x: nn.functional.pad(x, (1, 2)) * 3, (seeded(9, 5),), None, []),
    "integers": (lambda x, y: (x // y) + (x % y) ** 3, (torch.arange(-50, 50), torch.arange(1, 101)), None, []),
    "matmul_f16": (matmul, (seeded(100, 80, dtype=torch.float16), seeded(80, 72, dtype=torch.float16)), None, []),
    "matmul_batch": (matmul, (seeded(3, 20, 70), seeded(3, 70, 33)), None, []),
    "matmul_dynamic": (
        matmul,
        (seeded(20, 64), seeded(64, 33)),
        ({0: DYNAMIC}, None),
        [(seeded(130, 64), seeded(64, 33))],
    ),
    "vector": (matmul, (seeded(1, 300), seeded(300, 50)), None, []),
    "convolution": (lambda: nn.Conv2d(3, 4, 3, padding=1, stride=2), (seeded(2, 3, 9, 9),), None, []),
}
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def get_model(name):
    model = PROGRAMS[name][0]
    torch.manual_seed(0)
    return model() if not inspect.signature(model).parameters else model


def get_program(name):
    _, arguments, dynamic, _ = PROGRAMS[name]
    model = get_model(name)
    return model, import_program(model, tuple(x.clone() for x in arguments), dynamic_shapes=dynamic)


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers(name):
    model, program = get_program(name)
    forward = model.forward if isinstance(model, nn.Module) else model
    mine = CallableProgram(program, CUDATarget().interpret(program), inspect.signature(forward))
    for arguments in [PROGRAMS[name][1], *PROGRAMS[name][3]]:
        copies = [x.clone() for x in arguments], [x.clone() for x in arguments]
        with torch.no_grad():
            expected, got = model(*copies[0]), mine(*copies[1])
        tolerance = TOLERANCE.get(expected.dtype, 0)
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(copies[1], copies[0], rtol=tolerance, atol=tolerance)


@needs_triton
@pytest.mark.parametrize("name", PROGRAMS)
def test_triton_reads(name):
    _, program = get_program(name)
    kernels = CUDATarget().emit_ttir(program.module)
    assert kernels
    for text in kernels.values():
        verify_ttir(text)


@needs_triton
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["optimized_net", "softmax", "layer_norm_f16", "softmax_dynamic", "argmax", "any"])
def test_machine_code(name, chip):
    _, program = get_program(name)
    for kernel in CUDATarget(chip).compile_kernels(program.module).values():
        assert kernel.cubin.startswith(b"\x7fELF")
        assert f".target {chip}" in kernel.asm["ptx"]
        assert kernel.name in kernel.asm["ptx"]


@needs_triton
def test_triton_errors_are_ours():
    with pytest.raises(CompileError, match="Triton could not read the kernel.*error:"):
        verify_ttir("module { tt.func @f() { tt.nonsense } }")
    with pytest.raises(CompileError, match="Triton could not compile the kernel"):
        compile_ttir("module {", 90)


def test_chips():
    assert get_target("cuda:sm_80").description == CUDADescription.of("sm_80")
    with pytest.raises(CompileError, match="sm_90"):
        get_target("cuda:sm_12")
    assert [chip.sm for chip in get_target("cuda:sm_90,sm_80").chips] == [90, 80]
    with pytest.raises(CompileError, match="sm_90"):
        get_target("cuda:sm_80,")


def test_importing_lamina_leaves_triton_alone():
    import subprocess
    import sys

    code = "import sys, lamina, lamina.targets.cuda; assert 'triton' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_addresses_are_checked():
    import numpy as np
    from mlir import ir

    from lamina.dialects import make_context
    from lamina.reference.errors import ProgramError
    from lamina.reference.triton import launch

    text = """
    tt.func public @f(%x: !tt.ptr<f32>, %n: i32) {
      %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
      %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
      %p = tt.addptr %s, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
      %ns = tt.splat %n : i32 -> tensor<8xi32>
      %m = arith.cmpi slt, %r, %ns : tensor<8xi32>
      %v = tt.load %p, %m : tensor<8x!tt.ptr<f32>>
      %w = arith.addf %v, %v : tensor<8xf32>
      tt.store %p, %w, %m : tensor<8x!tt.ptr<f32>>
      tt.return
    }"""
    module = ir.Module.parse(text, make_context())
    function = module.body.operations[0].operation
    x = np.arange(6, dtype=np.float32)
    launch(function, [x], [6], 1)
    assert x.tolist() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(ProgramError, match="element 6 of argument 0, which has 6"):
        launch(function, [x], [7], 1)
