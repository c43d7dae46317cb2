"""How many warps and stages a kernel gets: by an attribute, or by its blocks. What does not fit the chip is tried otherwise,
in the end with smaller tiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from lamina.errors import CompileError, find_place
from lamina.logging import get_logger

from .triton import Settings
from .triton_pool import CompiledKernel, Request, compile_kernels

if TYPE_CHECKING:
    from .triton_target import ChipDescription

log = get_logger("cuda")

WARPS, STAGES = "kernel.num_warps", "kernel.num_stages"
"""Attributes of a kernel that decide for it."""
ELEMENTS = "kernel.elements"
"""Of any other kernel: elements of a program."""
TILE = "kernel.tile"
"""Of a kernel with a matrix product: rows, columns and depth of a program."""

DESCRIPTORS = "kernel.descriptors"
"""Of a kernel with a matrix product: whether operands are read by tensor descriptors."""

PROGRAM_ELEMENTS = 1024
"""Where no attribute says how many."""
ELEMENTS_PER_THREAD = 16
SUMS_PER_THREAD, MOST_PRODUCT_THREADS = 32, 256
"""Of a matrix product, whose sums stay in registers."""
LEAST_TILE = 16
FEWEST_WARPS, MOST_THREADS = 4, 512
"""A multiprocessor has four schedulers of warps."""


def settings_of(function: Any, chip: ChipDescription) -> list[Settings]:
    """Settings for a `tt.func`, the best first.

    One thread for each 16 elements of the largest block, or for each 32 sums of a matrix product; then more warps, which
    have more registers together; fewer, each of which may have more; and fewer stages, which need less shared memory.
    """
    from mlir import ir

    attributes = function.attributes
    given = {name: ir.IntegerAttr(attributes[name]).value for name in (WARPS, STAGES) if name in attributes}
    if tile := tile_of(function):
        threads, most = tile[0] * tile[1] // SUMS_PER_THREAD, MOST_PRODUCT_THREADS
    else:
        threads, most = _largest_block(function) // ELEMENTS_PER_THREAD, MOST_THREADS
    most = min(most // chip.warp_size, chip.max_warps)
    warps = 1 << max(0, threads // chip.warp_size - 1).bit_length()
    warps = given.get(WARPS, min(most, max(FEWEST_WARPS, warps)))
    stages = given.get(STAGES, chip.stages)
    first = Settings(chip.full_name, warps, stages)
    if given:
        return [first]
    more = [dataclasses.replace(first, warps=w) for w in (2 * warps, warps // 2) if FEWEST_WARPS <= w <= most]
    fewer = [dataclasses.replace(first, stages=s) for s in range(stages - 1, 0, -1)]
    return [first, *more, *fewer]


def tile_of(function: Any) -> Optional[list[int]]:
    """Rows, columns and depth of a program, if the kernel has a matrix product."""
    from mlir import ir

    return list(ir.DenseI64ArrayAttr(function.attributes[TILE])) if TILE in function.attributes else None


def uses_descriptors(function: Any) -> bool:
    """Whether a `tt.func` reads by tensor descriptors."""
    from mlir import ir

    return DESCRIPTORS in function.attributes and bool(ir.BoolAttr(function.attributes[DESCRIPTORS]).value)


def other_attributes(function: Any) -> Optional[dict[str, str]]:
    """What to try where a kernel is too large, as text of attributes: no tensor descriptors, or else the longer side of its
    tile halved; None if there is nothing."""
    tile = tile_of(function)
    if tile is None:
        return None
    rows, columns, depth = tile
    if uses_descriptors(function):
        return {TILE: _tile_text(rows, columns, depth), DESCRIPTORS: "false"}
    if max(rows, columns) <= LEAST_TILE:
        return None
    return {TILE: _tile_text(rows // 2, columns, depth) if rows > columns else _tile_text(rows, columns // 2, depth)}


def _tile_text(rows: int, columns: int, depth: int) -> str:
    return f"array<i64: {rows}, {columns}, {depth}>"


def _largest_block(function: Any) -> int:
    from mlir import ir

    largest = 1

    def visit(op: Any) -> Any:
        nonlocal largest
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType):
                count = 1
                for size in result.type.shape:
                    count *= size
                largest = max(largest, count)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return largest


@dataclasses.dataclass
class Job:
    """A kernel that is to be scheduled.

    Attributes:
        request: what to compile; its settings are replaced.
        chip: for which chip.
        settings: with what in turn.
        shrink: makes the same kernel without tensor descriptors, or else in smaller tiles, which takes its place in its
            module; None if there is no such.
    """

    request: Request
    chip: ChipDescription
    settings: Sequence[Settings]
    shrink: Optional[Callable[[], Job]] = None


def compile_scheduled(jobs: Sequence[Job]) -> list[CompiledKernel]:
    """Compiles kernels, all at once; those that fail, spill or do not fit are compiled again with their next settings,
    and after the last of those in smaller tiles.

    Raises:
        CompileError: a kernel failed, or needs more shared memory than the chip has, with any settings and tiles.
    """
    best: dict[int, CompiledKernel] = {}
    failed: dict[int, CompileError] = {}
    now = list(jobs)
    turns = [0] * len(jobs)
    waiting = list(range(len(jobs)))
    while waiting:
        requests = [dataclasses.replace(now[k].request, settings=now[k].settings[turns[k]]) for k in waiting]
        for k, outcome in zip(waiting, compile_kernels(requests)):
            if isinstance(outcome, CompileError):
                failed.setdefault(k, outcome)
            elif k not in best or _badness(outcome, now[k].chip) < _badness(best[k], now[k].chip):
                best[k] = outcome
            turns[k] = _next_turn(now[k], turns[k], outcome)
        still = []
        for k in waiting:
            if k in best and _badness(best[k], now[k].chip) == (0, 0):
                continue
            if turns[k] == len(now[k].settings):
                job = now[k]
                shrink = job.shrink
                if shrink is None:
                    continue
                # What was best so far belongs to the tiles that are given up.
                best.pop(k, None)
                now[k], turns[k] = shrink(), 0
                log.info("%s is tried without descriptors, or in smaller tiles, on %s", job.request.name, job.chip.name)
            still.append(k)
        waiting = still
    for k, job in enumerate(now):
        if k not in best:
            raise failed[k]
        _check(best[k], job)
    return [best[k] for k in range(len(jobs))]


def _next_turn(job: Job, turn: int, outcome: Union[CompiledKernel, CompileError]) -> int:
    """The next settings that may help: fewer stages where shared memory is short, other warps where registers are."""
    tried = job.settings[turn]
    for following in range(turn + 1, len(job.settings)):
        settings = job.settings[following]
        if isinstance(outcome, CompileError):
            return following
        if settings.stages < tried.stages if outcome.shared > job.chip.shared_memory else settings.warps != tried.warps:
            return following
    return len(job.settings)


def _badness(kernel: CompiledKernel, chip: ChipDescription) -> tuple[int, int]:
    return max(0, kernel.shared - chip.shared_memory), kernel.spills or 0


def _check(kernel: CompiledKernel, job: Job) -> None:
    if kernel.spills:
        log.info("the kernel %s spills %d bytes on %s", job.request.name, kernel.spills, job.chip.name)
    if kernel.shared > job.chip.shared_memory:
        place = find_place(job.request.location)
        raise CompileError(
            f"the kernel {job.request.name} needs {kernel.shared} bytes of shared memory, {job.chip.name} has "
            f"{job.chip.shared_memory}",
            op=place.op,
            location=place.location,
            module=place.module,
            hint="This is a limit of Lamina; rewrite the line, or let PyTorch run the program.",
        )
