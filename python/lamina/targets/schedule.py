"""How many warps and stages a kernel gets: by an attribute, or by its blocks. What does not fit the chip is tried otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lamina.errors import CompileError, find_place
from lamina.logging import get_logger

from .triton import Settings
from .triton_pool import CompiledKernel, Request, compile_kernels

if TYPE_CHECKING:
    from .triton_target import ChipDescription

log = get_logger("cuda")

WARPS, STAGES = "kernel.num_warps", "kernel.num_stages"
"""Attributes of a kernel that decide for it."""

ELEMENTS_PER_THREAD = 16
FEWEST_WARPS, MOST_THREADS = 4, 512
"""A multiprocessor has four schedulers of warps."""


def settings_of(function: Any, chip: ChipDescription) -> list[Settings]:
    """Settings for a `tt.func`, the best first.

    One thread for each 16 elements of the largest block; then more warps, which have more registers together; fewer, each
    of which may have more; and fewer stages, which need less shared memory.
    """
    from mlir import ir

    attributes = function.attributes
    given = {name: ir.IntegerAttr(attributes[name]).value for name in (WARPS, STAGES) if name in attributes}
    warps = 1 << max(0, _largest_block(function) // (ELEMENTS_PER_THREAD * chip.warp_size) - 1).bit_length()
    most = min(MOST_THREADS // chip.warp_size, chip.max_warps)
    warps = given.get(WARPS, min(most, max(FEWEST_WARPS, warps)))
    stages = given.get(STAGES, chip.stages)
    first = Settings(chip.full_name, warps, stages)
    if given:
        return [first]
    more = [dataclasses.replace(first, warps=w) for w in (2 * warps, warps // 2) if FEWEST_WARPS <= w <= most]
    fewer = [dataclasses.replace(first, stages=s) for s in range(stages - 1, 0, -1)]
    return [first, *more, *fewer]


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
    """A kernel that is to be scheduled: what to compile (its settings are replaced), for which chip, with what in turn."""

    request: Request
    chip: ChipDescription
    settings: Sequence[Settings]


def compile_scheduled(jobs: Sequence[Job]) -> list[CompiledKernel]:
    """Compiles kernels, all at once; those that fail, spill or do not fit are compiled again with their next settings.

    Raises:
        CompileError: a kernel failed, or needs more shared memory than the chip has with any settings.
    """
    best: dict[int, CompiledKernel] = {}
    failed: dict[int, CompileError] = {}
    waiting = list(range(len(jobs)))
    for turn in range(max((len(job.settings) for job in jobs), default=0)):
        waiting = [k for k in waiting if turn < len(jobs[k].settings)]
        requests = [dataclasses.replace(jobs[k].request, settings=jobs[k].settings[turn]) for k in waiting]
        for k, outcome in zip(waiting, compile_kernels(requests)):
            if isinstance(outcome, CompileError):
                failed.setdefault(k, outcome)
            elif k not in best or _badness(outcome, jobs[k].chip) < _badness(best[k], jobs[k].chip):
                best[k] = outcome
        waiting = [k for k in waiting if k not in best or _badness(best[k], jobs[k].chip) > (0, 0)]
        if not waiting:
            break
    for k, job in enumerate(jobs):
        if k not in best:
            raise failed[k]
        _check(best[k], job)
    return [best[k] for k in range(len(jobs))]


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
