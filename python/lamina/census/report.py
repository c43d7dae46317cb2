"""The census of a program for one chip: a row for each kernel, as data, JSON or a table."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from lamina.package.expressions import evaluate

from .peaks import PEAKS, Peaks
from .sass import GROUPS, bytes_of, count_instructions, disassemble, of_group, total_of
from .work import LaunchWork

if TYPE_CHECKING:
    from lamina.package.build import Image
    from lamina.targets.triton_pool import CompiledKernel


@dataclass(frozen=True)
class KernelCensus:
    """A kernel of a host function; what is counted for a call is the sum over its launches.

    Attributes:
        kernel: its name.
        host: the host function, ``main`` (each call) or ``init`` (once, when the program is loaded).
        launches: of a call.
        programs: of all launches of a call.
        warps, stages: how it was scheduled.
        registers: of a thread; None if the assembler did not say.
        spills: bytes that a thread stores and loads for want of registers; None likewise.
        shared: bytes of shared memory that a program needs.
        code: bytes of machine code.
        instructions: how many of each kind, see count_instructions.
        read, written: bytes of a call, see LaunchWork.
        products, operations: of a call, see LaunchWork.
        seconds: the least time of a call's launches; None of a chip whose peaks are not known.
        bound: what that time is for: ``memory``, ``products`` or ``operations``.
    """

    kernel: str
    host: str
    launches: int
    programs: int
    warps: int
    stages: int
    registers: Optional[int]
    spills: Optional[int]
    shared: int
    code: int
    instructions: Mapping[str, int]
    read: int
    written: int
    products: Mapping[str, int]
    operations: int
    seconds: Optional[float]
    bound: Optional[str]

    @property
    def moved(self) -> int:
        """Bytes read and written by a call."""
        return self.read + self.written

    def count(self, group: str) -> int:
        """Instructions of a group, such as ``tensor`` or ``load`` (see lamina.census.sass.GROUPS)."""
        return total_of(self.instructions, group)

    def straight_line_bytes(self, *groups: str) -> int:
        """Bytes that the programs of a call access with the instructions of groups if each thread runs each once."""
        return bytes_of(self.instructions, groups) * 32 * self.warps * self.programs


@dataclass(frozen=True)
class Census:
    """The kernels of a program for one chip.

    Attributes:
        chip: its name.
        peaks: what the chip can do; None if that is not known.
        kernels: in the order of their first launch, those of ``init`` last.
    """

    chip: str
    peaks: Optional[Peaks]
    kernels: Sequence[KernelCensus]

    def of_host(self, host: str = "main") -> list[KernelCensus]:
        """The kernels of a host function."""
        return [kernel for kernel in self.kernels if kernel.host == host]

    @property
    def launches(self) -> int:
        """Kernels that a call launches."""
        return sum(kernel.launches for kernel in self.of_host())

    @property
    def moved(self) -> int:
        """Bytes that a call's launches read and write."""
        return sum(kernel.moved for kernel in self.of_host())

    @property
    def seconds(self) -> Optional[float]:
        """The least time of a call: its launches one after the other, each at the chip's peak."""
        times = [kernel.seconds for kernel in self.of_host()]
        return None if None in times else sum(time for time in times if time is not None)


def build_census(
    image: Image, work: Mapping[str, Sequence[LaunchWork]], symbols: Sequence[int] = (), instructions: bool = True
) -> Census:
    """The census of a program for one chip.

    Args:
        image: what was compiled for it.
        work: of its host functions, from count_work with the chip's target.
        symbols: values of the program's symbols.
        instructions: whether the machine code is read; without, no instruction is counted.
    """
    peaks = PEAKS.get(image.chip)
    names = list(image.kernels)
    counts: dict[str, dict[str, int]] = {name: {} for name in names}
    if instructions:
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            texts = pool.map(disassemble, [image.kernels[name].binary for name in names])
            counts = {name: count_instructions(text) for name, text in zip(names, texts)}
    rows = []
    for host in sorted(image.hosts, key=lambda name: name != "main"):
        launches = image.hosts[host]["launches"]
        groups: dict[str, list[tuple[int, LaunchWork]]] = {}
        for launch, mine in zip(launches, work[host], strict=True):
            if launch["kernel"] != mine.kernel:
                raise ValueError(f"the work is of {mine.kernel}, the launch of {launch['kernel']}")
            groups.setdefault(mine.kernel, []).append((evaluate(launch["grid"], symbols), mine.at(symbols)))
        rows += [_row(name, host, image.kernels[name], counts[name], each, peaks) for name, each in groups.items()]
    return Census(image.chip, peaks, rows)


def _row(
    name: str,
    host: str,
    kernel: CompiledKernel,
    instructions: dict[str, int],
    launches: Sequence[tuple[int, LaunchWork]],
    peaks: Optional[Peaks],
) -> KernelCensus:
    works = [work for _, work in launches]
    times = [_times(work, peaks, bool(total_of(instructions, "tensor"))) for work in works] if peaks else []
    total = {what: sum(time[what] for time in times) for what in _BOUNDS}
    return KernelCensus(
        kernel=name,
        host=host,
        launches=len(launches),
        programs=sum(grid for grid, _ in launches),
        warps=kernel.warps,
        stages=kernel.stages,
        registers=kernel.registers,
        spills=kernel.spills,
        shared=kernel.shared,
        code=len(kernel.binary),
        instructions=instructions,
        read=sum(_int(work.read) for work in works),
        written=sum(_int(work.written) for work in works),
        products={
            element: sum(_int(work.products[element]) for work in works if element in work.products)
            for element in dict.fromkeys(element for work in works for element in work.products)
        },
        operations=sum(_int(work.operations) for work in works),
        seconds=sum(max(time.values()) for time in times) if peaks else None,
        bound=max(_BOUNDS, key=lambda what: total[what]) if peaks else None,
    )


_BOUNDS = ("memory", "products", "operations")


def _times(work: LaunchWork, peaks: Peaks, matrix: bool) -> dict[str, float]:
    """Seconds that each resource of a chip is busy at least; they can be busy at once."""
    products = sum(
        peaks.seconds_of_products(element, _int(number), matrix) for element, number in work.products.items()
    )
    return {
        "memory": (_int(work.read) + _int(work.written)) / peaks.bandwidth,
        "products": products,
        "operations": peaks.seconds_of_operations(_int(work.operations)),
    }


def _int(value: Any) -> int:
    assert isinstance(value, int), "sizes were evaluated"
    return value


# ---- output


def to_json(censuses: Mapping[str, Census]) -> str:
    """Censuses by chip as JSON."""
    data = {
        chip: {
            "product": census.peaks.product if census.peaks else None,
            "launches": census.launches,
            "bytes": census.moved,
            "seconds": census.seconds,
            "kernels": [dataclasses.asdict(kernel) for kernel in census.kernels],
        }
        for chip, census in censuses.items()
    }
    return json.dumps(data, indent=1) + "\n"


_HEAD = (
    *(
        "kernel",
        "launches",
        "programs",
        "warps",
        "registers",
        "spills",
        "shared",
        "tensor",
        "load",
        "store",
        "copy",
        "tma",
    ),
    *("MB read", "MB written", "GFLOP", "least us", "bound by"),
)


def to_text(censuses: Mapping[str, Census]) -> str:
    """Censuses by chip as tables for people: bytes, operations and times are of a call."""
    from lamina.cli.output import table

    parts = []
    for chip, census in censuses.items():
        title = chip
        if census.peaks is not None:
            title += f" ({census.peaks.product}: {census.peaks.bandwidth / 1e9:g} GB/s; {census.peaks.source})"
        rows = [list(_HEAD), *(_cells(kernel) for kernel in census.of_host())]
        rows.append(_total(census))
        rows += [[f"{kernel.kernel} (once)", *_cells(kernel)[1:]] for kernel in census.kernels if kernel.host != "main"]
        parts.append(f"{title}\n{table(rows)}\n")
    return "\n".join(parts)


def _cells(kernel: KernelCensus) -> list[str]:
    flops = kernel.operations + sum(kernel.products.values())
    return [
        kernel.kernel,
        str(kernel.launches),
        str(kernel.programs),
        str(kernel.warps),
        "?" if kernel.registers is None else str(kernel.registers),
        "?" if kernel.spills is None else str(kernel.spills),
        str(kernel.shared),
        *(_kinds(kernel.instructions, group) for group in ("tensor", "load", "store", "copy", "tma")),
        f"{kernel.read / 1e6:.3f}",
        f"{kernel.written / 1e6:.3f}",
        f"{flops / 1e9:.4f}",
        "?" if kernel.seconds is None else f"{kernel.seconds * 1e6:.3f}",
        kernel.bound or "?",
    ]


def _total(census: Census) -> list[str]:
    kernels = census.of_host()
    flops = sum(kernel.operations + sum(kernel.products.values()) for kernel in kernels)
    return [
        "all",
        str(census.launches),
        *[""] * 3,
        str(sum(kernel.spills or 0 for kernel in kernels)),
        *[""] * 6,
        f"{sum(kernel.read for kernel in kernels) / 1e6:.3f}",
        f"{sum(kernel.written for kernel in kernels) / 1e6:.3f}",
        f"{flops / 1e9:.4f}",
        "?" if census.seconds is None else f"{census.seconds * 1e6:.3f}",
    ]


def _kinds(instructions: Mapping[str, int], group: str) -> str:
    """Such as ``4x128 2x32``, or ``8 HMMA`` where there are no widths."""
    found = of_group(instructions, group)
    parts = [
        f"{count}x{kind.partition('.')[2]}" if "." in kind else f"{count} {kind}"
        for kind, count in sorted(found, key=lambda item: -item[1])
    ]
    return " ".join(parts) or "-"


__all__ = ["GROUPS", "Census", "KernelCensus", "build_census", "to_json", "to_text"]
