"""The CUDA target up to Triton IR: Triton reads and compiles the kernels, and the interpreter's numbers are eager's."""

import contextlib
import inspect

import pytest
import torch
from torch import nn

import lamina
from cuda_programs import PROGRAMS, TOLERANCE, get_program
from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.frontend.call import CallableProgram
from lamina.targets import get_target
from lamina.targets.cuda import CHIPS, CUDATarget, compile_ttir, verify_ttir


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_triton_reads(name):
    _, program = get_program(name)
    kernels = CUDATarget().emit_ttir(program.module)
    assert kernels
    for text in kernels.values():
        verify_ttir(text)


@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["optimized_net", "softmax", "layer_norm_f16", "softmax_dynamic", "argmax", "any"])
def test_machine_code(name, chip):
    _, program = get_program(name)
    for kernel in CUDATarget(chip).compile_kernels(program.module).values():
        assert kernel.binary.startswith(b"\x7fELF")
        assert f".target {chip}" in kernel.asm["ptx"]
        assert kernel.name in kernel.asm["ptx"]


def test_triton_errors_are_ours():
    with pytest.raises(CompileError, match="Triton could not read the kernel.*error:"):
        verify_ttir("module { tt.func @f() { tt.nonsense } }")
    with pytest.raises(CompileError, match="Triton could not compile the kernel"):
        compile_ttir("module {", "cuda:sm_90")


def test_chips():
    assert get_target("cuda:sm_80").description == CHIPS["sm_80"]
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


def tf32_error(function, *args):
    """The largest relative error to f64 of a program by the interpreter of Triton IR, and its kernel."""
    program = lamina.import_program(function, args)
    (text,) = CUDATarget("sm_80").emit_ttir(copy_module(program.module)).values()
    actual = CallableProgram(program, CUDATarget().interpret(program), inspect.signature(function))(*args)
    expected = function(*(x.double() for x in args))
    return ((actual - expected).abs().max() / expected.abs().max()).item(), text


def test_tf32_is_torchs_switch():
    x, y = (torch.randn(96, 96, generator=torch.Generator().manual_seed(i)) for i in (0, 1))
    image, weight = torch.randn(1, 16, 12, 12), torch.randn(32, 16, 3, 3)

    def product(x, y):
        return x @ y

    def convolve(x, w):
        return torch.nn.functional.conv2d(x, w)

    @contextlib.contextmanager
    def matmul_switch(allow):
        torch.backends.cuda.matmul.allow_tf32 = allow
        yield
        torch.backends.cuda.matmul.allow_tf32 = False

    def convolution_switch(allow):
        return torch.backends.cudnn.flags(enabled=True, allow_tf32=allow)

    for function, args, switch in ((product, (x, y), matmul_switch), (convolve, (image, weight), convolution_switch)):
        for allow, bounds in ((False, (0, 1e-6)), (True, (1e-5, 2e-3))):
            with switch(allow):
                error, text = tf32_error(function, *args)
            assert bounds[0] < error < bounds[1], (function.__name__, allow)
            assert ("tf32" in compile_ttir(text, "cuda:sm_80").asm["ptx"]) == allow
