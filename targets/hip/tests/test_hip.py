"""The target hip: its chips, what Triton's AMD backend makes of kernels, packages. There is no GPU: nothing is launched."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton.backends.amd
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import PROGRAMS, get_program, seeded
from lamina.errors import CompileError
from lamina.targets import get_target, schedule, target_names
from lamina.targets.triton import Settings
from lamina.targets.triton_pool import CompiledKernel, Request, compile_ttir
from lamina_target_hip import AMD, HIPTarget
from package_harness import HostDriver, InterpreterDriver
from test_models import bert, build, gpt2, llama, resnet50, vit


def kernels_of(name, chip="gfx942"):
    _, program = get_program(name)
    return list(HIPTarget(chip).compile_kernels(program.module).values())


# ---- the target


def test_it_is_found():
    assert "hip" in target_names()
    assert isinstance(get_target("hip"), HIPTarget) and get_target("hip").description.name == "gfx942"
    both = get_target("hip:gfx90a,gfx942").chips
    assert [(chip.multiprocessors, chip.shared_memory, chip.warp_size) for chip in both] == [
        (110, 65536, 64),
        (304, 65536, 64),
    ]


@pytest.mark.parametrize("name", ["hip:gfx000", "hip:sm_90", "hip:gfx942,"])
def test_other_chips_are_refused(name):
    with pytest.raises(CompileError, match=f"the target '{name}' does not exist: the chips are gfx942, gfx90a"):
        get_target(name)


def test_without_its_package(tmp_path):
    """In a process that does not see what is installed."""
    code = """
import importlib.metadata, lamina.targets
importlib.metadata.entry_points = lambda **kwargs: []
try:
    lamina.targets.get_target("hip:gfx942")
except lamina.CompileError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "the target 'hip:gfx942' is not installed" in printed and "pip install lamina-target-hip" in printed


def test_nothing_of_cuda_is_loaded():
    code = "import sys, lamina_target_hip; assert 'lamina.targets.cuda' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- kernels


@pytest.mark.parametrize("chip", ["gfx942", "gfx90a"])
@pytest.mark.parametrize("name", ["optimized_net", "softmax", "matmul_f16", "convolution_of_channels"])
def test_machine_code(name, chip):
    for kernel in kernels_of(name, chip):
        assert kernel.binary.startswith(b"\x7fELF") and f"-{chip}" in kernel.asm["amdgcn"]
        assert kernel.spills == 0 and 0 < kernel.registers <= 512 and kernel.shared <= 65536
        assert set(kernel.asm) == {"ttir", "ttgir", "llir", "amdgcn"} and "ptxas" not in kernel.tools
        dots = kernel.asm["ttir"].count("tt.dot ")
        assert (kernel.asm["amdgcn"].count("v_mfma") > 0) == (dots > 0) == (name != "softmax")


def test_instructions():
    (product,) = kernels_of("matmul_f16")
    assert "v_mfma_f32_32x32x8_f16" in product.asm["amdgcn"] or "v_mfma_f32_16x16x16_f16" in product.asm["amdgcn"]
    (softmax,) = kernels_of("softmax")
    assert softmax.asm["amdgcn"].count("load_dwordx4") > 0 and "__nv_" not in softmax.asm["ttir"]
    assert "__ocml_exp_f32" in softmax.asm["ttir"] and "__ocml" not in softmax.asm["amdgcn"]


def test_attention_is_one_kernel():
    given = tuple(seeded(1, 4, 256, 64, dtype=torch.float16, seed=seed) for seed in range(3))
    attend = lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    program = lamina.compile(attend, given, target="hip:gfx942", fallback="error")
    (facts,) = program.executable.report["gfx942"].values()
    assert facts["spills"] == 0 and facts["shared"] <= 65536
    assert program.ir("amdgcn").count("v_mfma") >= 2


def test_the_device_library_has_all_functions():
    """Every function that kernels may call has its equal in ocml: the linker would leave open what there is not."""
    source = Path(__file__).parents[3] / "lib" / "Conversion" / "TiledToTriton" / "ScalarOps.cpp"
    functions = set(re.findall(r'\{"(?:math|arith)\.\w+", "(\w+)"\}', source.read_text()))
    assert {"exp", "rint", "fmod"} < functions
    library = (Path(triton.backends.amd.__file__).parent / "lib" / "ocml.bc").read_bytes()
    for function in functions:
        for bits in (32, 64):
            assert AMD().device_function(function, bits).encode() in library


@pytest.mark.parametrize("make", [gpt2, bert, llama, vit, resnet50])
def test_whole_models(make):
    model, x = build(make)
    program = lamina.compile(model.requires_grad_(False), (x,), target="hip:gfx942", fallback="error")
    for name, facts in program.executable.report["gfx942"].items():
        assert facts["code"] > 0 and facts["spills"] == 0 and facts["shared"] <= 65536, name


# ---- schedules

ASSEMBLY = """
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     64
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
      - .offset:         16
        .size:           4
        .value_kind:     hidden_block_count_x
    .name:           k
    .sgpr_count:     21
    .sgpr_spill_count: 1
    .vgpr_count:     512
    .vgpr_spill_count: 3
...
	.end_amdgpu_metadata
"""


def test_facts_of_the_assembly():
    assert AMD().facts(ASSEMBLY, "k", "gfx942", "") == {
        "parameters": [8, 4],
        "registers": 512,
        "spills": 16,
        "tools": {},
    }
    with pytest.raises(ValueError, match="no metadata of other"):
        AMD().facts(ASSEMBLY, "other", "gfx942", "")


def test_what_does_not_fit_is_scheduled_again(monkeypatch):
    results = {2: {"shared": 65537}, 1: {"spills": 4}}

    def compile(requests):
        ((warps, stages),) = [(request.settings.warps, request.settings.stages) for request in requests]
        return [CompiledKernel("k", "hip:gfx942", {}, b"", warps, stages, **{"shared": 0, **results[stages]})]

    monkeypatch.setattr(schedule, "compile_kernels", compile)
    settings = [Settings("hip:gfx942", 4, stages) for stages in (2, 1)]
    chip = get_target("hip:gfx942").description
    (kernel,) = schedule.compile_scheduled([schedule.Job(Request("", settings[0]), chip, settings)])
    assert kernel.stages == 1


def test_triton_errors_are_ours():
    with pytest.raises(CompileError, match="Triton could not compile the kernel"):
        compile_ttir("module {", "hip:gfx942")


# ---- packages


def test_a_package(tmp_path):
    model = PROGRAMS["optimized_net"][0]().requires_grad_(False)
    x = seeded(32, 512)
    program = lamina.compile(model, (x,), target="hip:gfx942,gfx90a", fallback="error")
    program.save(tmp_path / "p")
    package = lamina_runtime.read(tmp_path / "p")
    assert package.archive.manifest["chips"] == ["gfx942", "gfx90a"] and package.ptx is None
    (kernel,) = package.images["gfx942"].kernels.values()
    assert kernel.file == f"kernels/gfx942/{kernel.name}.hsaco" and kernel.threads == 64 * kernel.warps
    assert bytes(package.archive[kernel.file]).startswith(b"\x7fELF")
    # Where there is no launcher, it says so; a driver for the chip runs it.
    for call in (lambda: lamina_runtime.load(tmp_path / "p"), lambda: program(x)):
        with pytest.raises(
            lamina_runtime.DriverError, match="for gfx90a, gfx942, which lamina-runtime has no launcher"
        ):
            call()
    with pytest.raises(lamina_runtime.PackageError, match="none that runs on this device, which is sm_90"):
        lamina_runtime.load(tmp_path / "p", driver=HostDriver())
    driver = InterpreterDriver(program.program.module, "hip:gfx942")
    torch.testing.assert_close(lamina_runtime.load(tmp_path / "p", driver=driver)(x), model(x), rtol=1e-5, atol=1e-5)


def test_the_driver_of_the_command_line(tmp_path):
    (tmp_path / "model.py").write_text("import torch\ndef f(x):\n    return torch.softmax(x, -1)\n")
    lamina_command = [sys.executable, "-m", "lamina.cli"]
    run = lambda *args: subprocess.run([*lamina_command, *args], cwd=tmp_path, check=True, capture_output=True)  # noqa: E731
    assert b"hip " in run("targets").stdout
    program = ["compile", "model.py:f", "--input", "f32[4,256]", "--target", "hip:gfx942"]
    assert b"load_dword" in run(*program, "--emit", "amdgcn").stdout
    run(*program, "--emit", "hsaco", "-o", "f.hsaco")
    assert (tmp_path / "f.hsaco").read_bytes().startswith(b"\x7fELF")
    run(*program, "--emit", "package", "-o", "f.lamina")
    assert list(lamina_runtime.read(tmp_path / "f.lamina").images) == ["gfx942"]
