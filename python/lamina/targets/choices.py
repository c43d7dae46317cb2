"""Choices of how a kernel is compiled: attributes that decide for it, schedules that hold measured ones, and which to try."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from lamina import cache
from lamina.errors import CompileError
from lamina.logging import get_logger
from lamina_runtime.schedule import Entries, ScheduleError, read_schedule

from .schedule import (
    DESCRIPTORS,
    ELEMENTS,
    FEWEST_WARPS,
    LEAST_TILE,
    PROGRAM_ELEMENTS,
    STAGES,
    TILE,
    WARPS,
    tile_of,
    uses_descriptors,
)

if TYPE_CHECKING:
    from .triton_pool import CompiledKernel
    from .triton_target import ChipDescription

log = get_logger("cuda")

_ATTRIBUTES = {"tile": TILE, "elements": ELEMENTS, "warps": WARPS, "stages": STAGES, "descriptors": DESCRIPTORS}
"""Attributes of a kernel that the fields of a Choice are."""

_LARGEST_TILE, _MOST_WARPS = 256, 16
_SUMS_PER_THREAD = range(4, 257)
_LEAST_BYTES = 1
"""Of an element of the operands: what would not fit shared memory even so is not tried."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """How a kernel is compiled; what is None is left to the cost model.

    Attributes:
        tile: rows, columns and depth of a program of a matrix product.
        elements: of a program of any other kernel.
        warps: of a program.
        stages: iterations of a loop around tt.dot whose operands are under way at once.
        descriptors: whether a matrix product's operands are read by tensor descriptors, where they can be.
    """

    tile: Optional[tuple[int, int, int]] = None
    elements: Optional[int] = None
    warps: Optional[int] = None
    stages: Optional[int] = None
    descriptors: Optional[bool] = None

    def to_json(self) -> dict[str, Any]:
        """What is not None."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    @staticmethod
    def of_json(data: Mapping[str, Any]) -> Choice:
        """A choice of a schedule.

        Raises:
            ValueError: there is no such choice.
        """
        unknown = set(data) - set(_ATTRIBUTES)
        if unknown:
            raise ValueError(f"there is no {sorted(unknown)[0]!r}")
        for name, value in data.items():
            if name == "descriptors":
                if not isinstance(value, bool):
                    raise ValueError(f"{name} is {value!r}")
                continue
            numbers = value if name == "tile" else [value]
            if not isinstance(numbers, (list, tuple)) or len(numbers) != (3 if name == "tile" else 1):
                raise ValueError(f"{name} is {value!r}")
            if any(type(number) is not int or number < 1 or number > 1 << 20 for number in numbers):
                raise ValueError(f"{name} is {value!r}")
            if name != "stages" and any(number & (number - 1) for number in numbers):
                raise ValueError(f"{name} is {value!r}, and no power of two")
        return Choice(**{**data, **({"tile": tuple(data["tile"])} if "tile" in data else {})})

    def apply(self, function: Any) -> None:
        """Sets the attributes of a `kernel.func` that is not tiled yet."""
        from mlir import ir

        context = function.context
        wide = ir.IntegerType.get_signless(64, context)
        for name, value in self.to_json().items():
            if name == "tile":
                attribute = ir.DenseI64ArrayAttr.get(list(value), context)
            elif name == "descriptors":
                attribute = ir.BoolAttr.get(value, context)
            else:
                attribute = ir.IntegerAttr.get(wide, value)
            function.attributes[_ATTRIBUTES[name]] = attribute


def kernel_key(function: Any) -> str:
    """What stands for a `kernel.func` in schedules: a digest of what it computes, whatever its name and line.

    Args:
        function: in the phase ``linalg``.
    """
    from mlir import ir

    kept = {name: function.attributes[name] for name in _ATTRIBUTES.values() if name in function.attributes}
    for name in kept:
        del function.attributes[name]
    text = function.get_asm(enable_debug_info=False, use_local_scope=True)
    for name, attribute in kept.items():
        function.attributes[name] = attribute
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return cache.digest_of("kernel", re.sub(rf"@(\"{re.escape(name)}\"|{re.escape(name)})", "@kernel", text, count=1))


def untiled_kernels(module: Any) -> list[tuple[str, Any]]:
    """Names and ops of the `kernel.func`s of a module."""
    from mlir import ir

    functions = [op.operation for op in module.body.operations if op.operation.name == "kernel.func"]
    return [(ir.StringAttr(function.attributes["sym_name"]).value, function) for function in functions]


class Schedule:
    """Measured choices, see lamina_runtime.schedule.

    Args:
        entries: by key of a kernel and chip.
        name: what to call it in messages.
    """

    def __init__(self, entries: Entries, name: str = "the schedule"):
        self._entries = entries
        self._name = name

    @staticmethod
    def read(path: Union[str, os.PathLike[str]]) -> Schedule:
        """Reads one from a file.

        Raises:
            CompileError: there is none, or it is damaged.
        """
        try:
            return Schedule(read_schedule(path), str(path))
        except ScheduleError as error:
            raise CompileError(str(error), hint="make one with python -m lamina_runtime.tune") from error
        except OSError as error:
            raise CompileError(f"the schedule {path} cannot be read: {error.strerror or error}") from error

    def apply(self, module: Any, chip: ChipDescription) -> int:
        """Sets the attributes of all kernels that it has choices for on a chip; returns how many those are.

        Args:
            module: in the phase ``linalg``.
            chip: the chip.

        Raises:
            CompileError: a choice of it is none.
        """
        kernels, found = untiled_kernels(module), 0
        for name, function in kernels:
            entry = self._entries.get(kernel_key(function), {}).get(chip.full_name)
            if entry is None:
                continue
            try:
                Choice.of_json(entry["choice"]).apply(function)
            except ValueError as error:
                raise CompileError(
                    f"{self._name} has a wrong choice for the kernel {name}: {error}",
                    hint="measure again, with python -m lamina_runtime.tune",
                ) from error
            found += 1
        log.info("%s has choices for %d of %d kernels on %s", self._name, found, len(kernels), chip.name)
        return found


def choice_of(function: Any, kernel: CompiledKernel) -> Choice:
    """How a kernel was compiled.

    Args:
        function: its `tt.func`.
        kernel: what it was compiled to.
    """
    from mlir import ir

    tile = tile_of(function)
    if tile is not None:
        return Choice((tile[0], tile[1], tile[2]), None, kernel.warps, kernel.stages, uses_descriptors(function))
    given = function.attributes[ELEMENTS] if ELEMENTS in function.attributes else None
    return Choice(elements=ir.IntegerAttr(given).value if given else PROGRAM_ELEMENTS, warps=kernel.warps)


def choices_around(default: Choice, chip: ChipDescription, most: int) -> list[Choice]:
    """Choices worth measuring beside the default: first those that differ from it in one way, then in two, and so on.

    Those of a matrix product have sides of the default's tile halved or doubled, half or twice the warps that give a thread as
    many sums as the default does, a stage more or less, and tensor descriptors or none.

    Args:
        default: the default.
        chip: the chip.
        most: how many at most.
    """
    tried = _products(default, chip) if default.tile is not None else _others(default, chip)
    return list(itertools.islice((choice for choice in dict.fromkeys(tried) if choice != default), most))


def _products(default: Choice, chip: ChipDescription) -> Iterator[Choice]:
    assert default.tile is not None and default.warps is not None and default.stages is not None
    factor, other = (0, 1, -1), (0, 1) if chip.descriptors else (0,)
    steps = itertools.product(factor, factor, factor, factor, (0, 1, -1), other)
    for step in sorted(steps, key=lambda step: 6 - step.count(0)):
        rows, columns, depth = (_scaled(side, by) for side, by in zip(default.tile, step))
        warps = _scaled(_scaled(default.warps, step[0] + step[1]), step[3])
        stages = default.stages + step[4]
        if (
            LEAST_TILE <= min(rows, columns, depth)
            and max(rows, columns) <= _LARGEST_TILE
            and FEWEST_WARPS <= warps <= min(_MOST_WARPS, chip.max_warps)
            and stages >= 1
            and rows * columns // (warps * chip.warp_size) in _SUMS_PER_THREAD
            and (rows + columns) * depth * _LEAST_BYTES * max(1, stages - 1) <= chip.shared_memory
        ):
            descriptors = bool(default.descriptors) != bool(step[5])
            yield Choice(tile=(rows, columns, depth), warps=warps, stages=stages, descriptors=descriptors)


def _scaled(value: int, power: int) -> int:
    return value << power if power >= 0 else value >> -power


def _others(default: Choice, chip: ChipDescription) -> Iterator[Choice]:
    assert default.elements is not None and default.warps is not None
    steps = itertools.product((0, 1, -1, 2, -2, 3), (0, 1, -1, 2, -2))
    for step in sorted(steps, key=lambda step: abs(step[0]) + abs(step[1])):
        elements, warps = _scaled(default.elements, step[0]), _scaled(default.warps, step[1])
        if 1 <= warps <= chip.max_warps and elements >= warps * chip.warp_size:
            yield Choice(elements=elements, warps=warps)
