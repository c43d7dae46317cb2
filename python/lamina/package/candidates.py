"""Candidates: a program's kernels compiled in several ways, of which lamina_runtime.tune finds the fastest on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.logging import get_logger, timed
from lamina.targets.choices import Choice, choices_around, kernel_key, untiled_kernels
from lamina.targets.triton import Settings
from lamina.targets.triton_pool import CompiledKernel, Request, compile_kernels
from lamina.targets.triton_target import BEFORE_TILES, TritonTarget, kernels_of

from .expressions import Expr, of_map, product

log = get_logger("cuda")

_AT_ONCE = 64

Progress = Callable[[str, int, int], None]
"""Told for which chip candidates are being compiled, how many are, and of how many."""


@dataclass(frozen=True)
class Candidate:
    """A kernel compiled in some way.

    Attributes:
        choice: how.
        kernel: its machine code.
        grid: programs, over the kernel's symbols.
    """

    choice: Choice
    kernel: CompiledKernel
    grid: Expr


@dataclass(frozen=True)
class Tunable:
    """A kernel that may be compiled in other ways: its key in schedules, and those ways."""

    key: str
    candidates: list[Candidate]


def build_candidates(
    module: Any,
    target: TritonTarget,
    defaults: Mapping[str, Choice],
    most: int,
    progress: Optional[Progress] = None,
) -> dict[str, Tunable]:
    """Compiles the kernels of a prim module, which is left as it is, in other ways than by default.

    What does not compile, spills, or does not fit the chip is left out, and so is what is the same as another.

    Args:
        module: the module.
        target: for one chip.
        defaults: of each kernel, how it is compiled by default.
        most: ways for each kernel, at most.
        progress: told how far it is.

    Raises:
        CompileError: a pass failed.
    """
    copy = copy_module(module)
    for _ in target.lower(copy, until=BEFORE_TILES):
        pass
    keys = {name: kernel_key(function) for name, function in untiled_kernels(copy)}
    wanted = [
        (name, choice)
        for name in keys
        if name in defaults
        for choice in choices_around(defaults[name], target.description, most)
    ]
    with timed(log, f"{len(wanted)} candidates for {target.description.name}"):
        made = list(_lowered(copy, target, wanted))
        requests = {
            (name, text, choice.warps, choice.stages): (name, choice, grid, _request(name, text, choice, target))
            for name, choice, grid, text in reversed(made)  # of equal ones the first stays
        }
        jobs = list(reversed(requests.values()))
        result = {name: Tunable(key, []) for name, key in keys.items() if name in defaults}
        for start in range(0, len(jobs), _AT_ONCE):
            if progress is not None:
                progress(target.description.name, start, len(jobs))
            part = jobs[start : start + _AT_ONCE]
            for (name, choice, grid, _), outcome in zip(part, compile_kernels([job[3] for job in part])):
                if isinstance(outcome, CompileError):
                    log.debug("%s as %s: %s", name, choice.to_json(), outcome.message)
                elif not outcome.spills and outcome.shared <= target.description.shared_memory:
                    result[name].candidates.append(Candidate(choice, outcome, grid))
    return result


def _request(name: str, text: str, choice: Choice, target: TritonTarget) -> Request:
    chip = target.description
    return Request(text, Settings(chip.full_name, choice.warps or 4, choice.stages or chip.stages), name=name)


def _lowered(
    module: Any, target: TritonTarget, wanted: Sequence[tuple[str, Choice]]
) -> Iterator[tuple[str, Choice, Expr, str]]:
    """Kernels of a module before tiles, in several ways: name, choice, grid, and Triton IR. What cannot be tiled so is left out."""
    from mlir import ir

    if not wanted:
        return
    copy = copy_module(module)
    originals = dict(untiled_kernels(copy))
    for number, (name, choice) in enumerate(wanted):
        clone = originals[name].clone(ir.InsertionPoint(originals[name])).operation
        clone.attributes["sym_name"] = ir.StringAttr.get(_clone_name(number), copy.context)
        choice.apply(clone)
    clones = {_clone_name(number) for number in range(len(wanted))}
    for op in list(copy.body.operations):
        if "sym_name" not in op.attributes or ir.StringAttr(op.attributes["sym_name"]).value not in clones:
            op.operation.erase()
    try:
        for _ in target.lower(copy, after=BEFORE_TILES):
            pass
    except CompileError:
        if len(wanted) > 1:
            middle = len(wanted) // 2
            yield from _lowered(module, target, wanted[:middle])
            yield from _lowered(module, target, wanted[middle:])
        return
    functions = dict(kernels_of(copy))
    for number, (name, choice) in enumerate(wanted):
        function = functions[_clone_name(number)]
        grid = product(of_map(function.attributes["kernel.grid"]))
        function.attributes["sym_name"] = ir.StringAttr.get(name, copy.context)
        yield name, choice, grid, target.to_text(function)


def _clone_name(number: int) -> str:
    return f"__candidate{number}"
