"""The CUDA target: kernels as Triton IR, compiled for named chips on a machine that need not have a GPU, and packaged."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Union

from lamina.targets.interpreted import InterpretedExecutable
from lamina.targets.triton import verify_ttir
from lamina.targets.triton_pool import CompiledKernel, compile_ttir
from lamina.targets.triton_target import ChipDescription, Toolchain, TritonTarget, kernels_of

__all__ = [
    "CHIPS",
    "CUDADescription",
    "CUDATarget",
    "CompiledKernel",
    "InterpretedExecutable",
    "compile_ttir",
    "kernels_of",
    "verify_ttir",
]

OLDEST_PTX = 80
"""PTX 8.0 is what drivers of CUDA 12.0 read; sm_80 needs no newer one. It is also what a package has for other chips."""


@dataclass(frozen=True)
class CUDADescription(ChipDescription):
    """A chip of CUDA. Its `sm` is the compute capability, 90 for sm_90."""

    target: str = field(default="cuda", kw_only=True)

    @property
    def sm(self) -> int:
        """The compute capability, 90 for sm_90."""
        return int(self.arch)


def _chip(
    name: str, shared: int, multiprocessors: int, matrix: int, vector: int, load: int, *options: tuple[str, Any]
) -> CUDADescription:
    return CUDADescription(
        name,
        int(name[3:]),
        shared << 10,
        multiprocessors,
        matrix_rate=matrix,
        vector_rate=vector,
        load_rate=load,
        descriptors=int(name[3:]) >= _FIRST_WITH_DESCRIPTORS,
        options=options,
    )


_FIRST_WITH_DESCRIPTORS = 90

# Rates are of A100, RTX 3090, RTX 6000 Ada, H100 SXM, B200 and RTX PRO 6000: the operations of their data sheets, without
# sparsity, by multiprocessors; and about what micro-benchmarks see of the L2 cache of A100 (5 TB/s) and H100 (5.5 TB/s).
CHIPS = {
    chip.name: chip
    for chip in (
        _chip("sm_80", 163, 108, 1444, 90, 47, ("ptx_version", OLDEST_PTX)),
        _chip("sm_86", 99, 84, 423, 212, 30),
        _chip("sm_89", 99, 142, 641, 320, 40),
        _chip("sm_90", 227, 132, 3750, 254, 42),
        _chip("sm_100", 227, 148, 7600, 270, 50),
        _chip("sm_120", 99, 188, 670, 335, 40),
    )
}


class NVIDIA(Toolchain):
    """Triton's backend for CUDA: PTX, which ptxas assembles."""

    backend = "cuda"
    stages = ("ttir", "ttgir", "llir", "ptx", "cubin")
    variables = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
    disassembly = "sass"

    def prepare(self) -> None:
        """Has ptxas say registers and spills; and one ptxas of CUDA 12 assemble for every chip: what that of CUDA 13 makes
        no 12.x driver loads."""
        from triton import knobs

        os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"
        blackwell = getattr(knobs.nvidia, "ptxas_blackwell", None)
        if blackwell is None or "TRITON_PTXAS_BLACKWELL_PATH" in os.environ:
            return
        major = lambda tool: int(tool.version.partition(".")[0])  # noqa: E731
        if major(blackwell) > 12 >= major(knobs.nvidia.ptxas):
            os.environ["TRITON_PTXAS_BLACKWELL_PATH"] = knobs.nvidia.ptxas.path

    def disassemble(self, binary: bytes) -> str:
        """See Toolchain."""
        from lamina.census import disassemble

        return disassemble(binary)

    def facts(self, assembly: str, name: str, arch: Union[int, str], log: str) -> dict[str, Any]:
        """See Toolchain: parameters from the PTX, registers and spills from what ``ptxas -v`` says, if it says anything."""
        from triton import knobs

        tool = knobs.nvidia.ptxas
        if int(arch) >= 90:
            tool = getattr(knobs.nvidia, "ptxas_blackwell", tool)
        found: dict[str, Any] = {"parameters": parameter_widths(assembly, name), "tools": {"ptxas": tool.version}}
        if match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log):
            found["spills"] = int(match[1]) + int(match[2])
        if match := re.search(r"Used (\d+) registers", log):
            found["registers"] = int(match[1])
        return found


def parameter_widths(ptx: str, name: str) -> list[int]:
    """Bytes of each parameter of an entry point; the last two are Triton's own scratch memory."""
    match = re.search(rf"\.entry\s+{re.escape(name)}\s*\((.*?)\)", ptx, re.DOTALL)
    if match is None:
        raise ValueError(f"the PTX has no entry point {name}")
    return [int(bits) // 8 for bits in re.findall(r"\.param\s+\.[a-z](\d+)\b", match[1])]


class CUDATarget(TritonTarget):
    """The target named ``cuda``; its chips have names such as ``sm_90``."""

    name = "cuda"
    known = CHIPS
    default_chip = "sm_90"
    toolchain = NVIDIA()
    # What is made for sm_90 and later is for one chip alone.
    portable_chip = "sm_80"
    emits = (*toolchain.stages, toolchain.disassembly)
    has_census = True
