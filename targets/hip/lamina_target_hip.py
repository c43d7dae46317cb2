"""The target ``hip``: kernels for AMD's CDNA GPUs, by the AMD backend that Triton's wheel has."""

from __future__ import annotations

import re
from typing import Any, Union

from lamina.targets.triton_target import ChipDescription, Toolchain, TritonTarget

_REGISTER_BYTES = 4


class AMD(Toolchain):
    """Triton's backend for HIP: LLVM makes assembly, assembles it and links the code object, in the process itself."""

    backend = "hip"
    stages = ("ttir", "ttgir", "llir", "amdgcn", "hsaco")
    variables = ("TRITON_AMD_CODEGEN_PATH",)

    def device_function(self, function: str, bits: int) -> str:
        """The function of ocml, AMD's library of mathematics, whose functions are those of libdevice."""
        return f"__ocml_{function}_f{bits}"

    def facts(self, assembly: str, name: str, arch: Union[int, str], log: str) -> dict[str, Any]:
        """See Toolchain: all from the code object's metadata. Parameters that the driver fills in itself are none of ours."""
        match = re.search(r"^\s*\.amdgpu_metadata$(.*)^\s*\.end_amdgpu_metadata$", assembly, re.DOTALL | re.MULTILINE)
        if match is None or f".name:           {name}\n" not in match[1]:
            raise ValueError(f"the assembly has no metadata of {name}")
        count = {key: int(value) for key, value in re.findall(r"\.(\w+_count):\s+(\d+)", match[1])}
        arguments = re.findall(r"\.size:\s+(\d+)\s+\.value_kind:\s+(\w+)", match[1])
        return {
            "parameters": [int(size) for size, kind in arguments if not kind.startswith("hidden_")],
            "registers": count["vgpr_count"],
            "spills": _REGISTER_BYTES * (count["vgpr_spill_count"] + count["sgpr_spill_count"]),
            "tools": {},
        }


def _cdna(name: str, compute_units: int, matrix_rate: int, vector_rate: int, load_rate: int) -> ChipDescription:
    """A chip of CDNA: 64 KiB of LDS, wavefronts of 64, 1024 threads at most in a workgroup.

    A loop has two iterations under way, one in registers and one in LDS: there are no copies from global memory to LDS that
    a third could wait in. Products of f32 too run on the matrix units, so `vector_rate` is theirs for f32.
    """
    return ChipDescription(
        name,
        name,
        64 << 10,
        compute_units,
        target="hip",
        max_warps=16,
        warp_size=64,
        stages=2,
        matrix_rate=matrix_rate,
        vector_rate=vector_rate,
        load_rate=load_rate,
    )


class HIPTarget(TritonTarget):
    """The target named ``hip``; its chips have names such as ``gfx942``."""

    name = "hip"
    # MI300X, and MI250X, of which a device is one of two dies. Rates are the data sheets' by compute units; bytes are those
    # of the MI300X's Infinity Cache, which its dies share, and of the MI250X's L2 cache.
    known = {chip.name: chip for chip in (_cdna("gfx942", 304, 2150, 269, 56), _cdna("gfx90a", 110, 870, 217, 63))}
    default_chip = "gfx942"
    toolchain = AMD()
    emits = toolchain.stages
