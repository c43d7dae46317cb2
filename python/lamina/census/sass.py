"""Machine code of NVIDIA's chips as text, and how many instructions of each kind it has."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from lamina.errors import CompileError

GROUPS: Mapping[str, tuple[str, ...]] = {
    # From Volta to Hopper, and those of sm_120; then those that read shared memory on sm_90 and on sm_100.
    "tensor": (
        *("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"),
        *("HGMMA", "IGMMA", "QGMMA", "BGMMA"),
        *("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "UTCMMA"),
    ),
    "float": (
        *("FFMA", "FMUL", "FADD", "FMNMX", "FMNMX3", "FFMA2", "FMUL2", "FADD2"),
        *("HFMA2", "HMUL2", "HADD2", "HMNMX2", "DFMA", "DMUL", "DADD"),
    ),
    "load": ("LDG", "LD"),
    "store": ("STG", "ST"),
    "atomic": ("RED", "REDG", "ATOM", "ATOMG"),
    "copy": ("LDGSTS",),
    "tma": ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED"),
    "shared": ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
    "spill": ("LDL", "STL"),
    "tmem": ("LDTM", "STTM", "UTCCP"),
    "special": ("MUFU",),
    "shuffle": ("SHFL", "REDUX", "CREDUX"),
    "barrier": ("BAR", "UTCBAR", "WARPSYNC"),
}
"""Kinds of instructions by what they are for, without their widths."""

_WITH_WIDTH = frozenset(
    name for group in ("load", "store", "copy", "shared", "spill") for name in GROUPS[group] if not name.endswith("SM")
)
_WIDTHS = {"256": 256, "128": 128, "96": 96, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8}
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)


def disassemble(cubin: bytes) -> str:
    """The machine code of a cubin as text.

    Raises:
        CompileError: there is no nvdisasm, or it does not read this.
    """
    with tempfile.TemporaryDirectory(prefix="lamina-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([_nvdisasm(), "-c", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise CompileError(f"nvdisasm cannot read the machine code: {lines[-1] if lines else done.returncode}")
    return done.stdout


def _nvdisasm() -> str:
    """The disassembler that Triton comes with, or the one of its environment variable TRITON_NVDISASM_PATH."""
    given = os.environ.get("TRITON_NVDISASM_PATH")
    if given:
        return given
    import importlib.util

    spec = importlib.util.find_spec("triton")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        path = Path(place) / "backends" / "nvidia" / "bin" / "nvdisasm"
        if path.exists():
            return str(path)
    raise CompileError(
        "nvdisasm is needed to read machine code, and the installed Triton has none",
        hint="set TRITON_NVDISASM_PATH, or pip install triton",
    )


def count_instructions(sass: str) -> dict[str, int]:
    """Instructions by kind, such as ``HMMA`` or ``LDG.128``: accesses of memory have their width in bits."""
    return dict(Counter(_kind(name) for name in _INSTRUCTION.findall(sass)).most_common())


def _kind(name: str) -> str:
    base, *modifiers = name.split(".")
    if base not in _WITH_WIDTH:
        return base
    return f"{base}.{next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 32)}"


def total_of(instructions: Mapping[str, int], group: str) -> int:
    """How many instructions of a group of GROUPS there are."""
    return sum(count for _, count in of_group(instructions, group))


def of_group(instructions: Mapping[str, int], group: str) -> list[tuple[str, int]]:
    """The kinds of a group of GROUPS that occur, with their counts."""
    return [(kind, count) for kind, count in instructions.items() if kind.partition(".")[0] in GROUPS[group]]


def bytes_of(instructions: Mapping[str, int], groups: Iterable[str]) -> int:
    """Bytes that a thread accesses with the instructions of groups if each runs once."""
    return sum(
        count * int(kind.partition(".")[2] or 0) // 8
        for group in groups
        for kind, count in of_group(instructions, group)
    )
