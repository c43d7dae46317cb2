"""The census: what the kernels of a program are made of, what they move and compute, and the least time that takes a chip.

Nothing here runs a kernel: registers, spills and shared memory are those that the assembler reports, instructions are
counted in the machine code, bytes and operations come from the program, and times from the chips' data sheets.
"""

from .peaks import PEAKS, Peaks
from .report import Census, KernelCensus, build_census, to_json, to_text
from .sass import count_instructions, disassemble, total_of
from .work import LaunchWork, count_work, read_work

__all__ = [
    "PEAKS",
    "Census",
    "KernelCensus",
    "LaunchWork",
    "Peaks",
    "build_census",
    "count_instructions",
    "count_work",
    "disassemble",
    "read_work",
    "to_json",
    "to_text",
    "total_of",
]
