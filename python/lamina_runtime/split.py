"""Programs that are split: parts that are packages of their own, kernels of the user's, and operators that PyTorch runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Optional, Protocol

import torch

from .archive import PLAN, Archive
from .errors import PackageError
from .expressions import check, evaluate
from .host import HostProgram
from .operators import Argument, find_operator, read_argument

_ALIGNMENT = 16

Step = Callable[[list[Any], Sequence[int], bool], None]
"""Reads and fills slots: with their values, those of the symbols, and whether errors of checks are waited for."""


class Part(Protocol):
    """What a step calls of a part: a loaded program."""

    def call_part(self, leaves: Sequence[Any], wait: bool) -> list[Any]:
        """Runs it."""


class SplitHost:
    """Runs a split program, as HostProgram does one that is not.

    Args:
        archive: the package.
        parts: its parts, loaded.
        hosts: of the user's kernels.
        literals: tensors by the number of their slot.
        symbols: how many there are.
        libraries: namespaces of operators, beside ATen's, that it may call.
        device: where its tensors are.

    Raises:
        PackageError: a step is damaged, or calls an operator that it may not, or that there is not.
    """

    def __init__(
        self,
        archive: Archive,
        parts: Sequence[Part],
        hosts: Mapping[str, HostProgram],
        literals: Mapping[str, torch.Tensor],
        symbols: int,
        libraries: Collection[str],
        device: torch.device,
    ):
        plan = archive.json(PLAN)
        self._parts, self._hosts, self._device = parts, hosts, device
        self._symbols, self._libraries = symbols, libraries
        self._slots = int(plan["slots"])
        self._literals = {self._slot(int(slot)): tensor for slot, tensor in literals.items()}
        self._steps = [self._step(step) for step in plan["steps"]]
        self._outputs = [self._slot(slot) for slot in plan["outputs"]]

    def run(self, inputs: Sequence[Any], symbols: Sequence[int], wait: bool) -> list[Any]:
        """The results.

        Args:
            inputs: tensors, as the caller has them.
            symbols: values of the index symbols.
            wait: whether parts wait for the results of their checks, and raise eager's errors.
        """
        slots: list[Any] = [None] * self._slots
        slots[: len(inputs)] = inputs
        for slot, tensor in self._literals.items():
            slots[slot] = tensor
        with torch.no_grad():
            for step in self._steps:
                step(slots, symbols, wait)
        return [slots[slot] for slot in self._outputs]

    # ---- steps, prepared

    def _slot(self, slot: Any) -> int:
        if type(slot) is not int or not 0 <= slot < self._slots:
            raise PackageError(f"the plan has {slot!r} where the number of a value must be")
        return slot

    def _step(self, data: dict[str, Any]) -> Step:
        writes = [self._slot(slot) for slot in data["writes"]]
        if "part" in data:
            return self._part(data, writes)
        if len(writes) != 1:
            raise PackageError("the plan has a step with several values")
        return self._launch(data, writes[0]) if "host" in data else self._operator(data, writes[0])

    def _part(self, data: dict[str, Any], writes: Sequence[int]) -> Step:
        part = self._parts[data["part"]]
        reads = [self._slot(slot) for slot in data["reads"]]
        numbers = [check(expr, self._symbols) for expr in data["numbers"]]

        def run(slots: list[Any], symbols: Sequence[int], wait: bool) -> None:
            leaves = [slots[slot] for slot in reads] + [evaluate(expr, symbols) for expr in numbers]
            for slot, value in zip(writes, part.call_part(leaves, wait)):
                slots[slot] = value

        return run

    def _operator(self, data: dict[str, Any], write: int) -> Step:
        op = operator.getitem if data["op"] == "getitem" else find_operator(data["op"], self._libraries)
        positional = [self._argument(each) for each in data["arguments"]]
        named = {name: self._argument(each) for name, each in data["named"].items()}

        def run(slots: list[Any], symbols: Sequence[int], wait: bool) -> None:
            given = {name: argument(slots, symbols) for name, argument in named.items()}
            slots[write] = op(*(argument(slots, symbols) for argument in positional), **given)

        return run

    def _argument(self, data: dict[str, Any]) -> Argument:
        def special(each: dict[str, Any]) -> Optional[Argument]:
            if "slot" not in each:
                return None
            slot = self._slot(each["slot"])
            return lambda slots, symbols: slots[slot]

        return read_argument(data, self._symbols, self._device, special)

    def _launch(self, data: dict[str, Any], write: int) -> Step:
        host = self._hosts[data["host"]]
        tensors = [
            (
                self._slot(each["slot"]),
                [check(size, self._symbols) for size in each["sizes"]],
                [check(stride, self._symbols) for stride in each["strides"]],
                not each["own"],
            )
            for each in data["tensors"]
        ]
        written = {str(name): int(number) for name, number in data["written"].items()}
        if len(tensors) != len(host.host.constants) or not all(0 <= k < len(tensors) for k in written.values()):
            raise PackageError("the plan has a launch that does not fit its kernel")

        def run(slots: list[Any], symbols: Sequence[int], wait: bool) -> None:
            given = [
                _placed(
                    slots[slot], _all(sizes, symbols), _all(strides, symbols), shared and number in written.values()
                )
                for number, (slot, sizes, strides, shared) in enumerate(tensors)
            ]
            host.run([tensor.data_ptr() for tensor in given], tuple(symbols))
            slots[write] = {name: given[number] for name, number in written.items()}

        return run


def _all(exprs: Sequence[Any], symbols: Sequence[int]) -> list[int]:
    return [evaluate(expr, symbols) for expr in exprs]


def _placed(tensor: torch.Tensor, sizes: list[int], strides: list[int], copies: bool) -> torch.Tensor:
    """The tensor with the strides that the kernel's arguments are made for, aligned; a copy if asked for."""
    fits = all(size < 2 or a == b for size, a, b in zip(sizes, tensor.stride(), strides)) and not tensor.is_neg()
    if fits and not copies and tensor.data_ptr() % _ALIGNMENT == 0:
        return tensor
    # Gaps between elements are part of what a kernel may touch.
    result = torch.empty_strided(sizes, strides, dtype=tensor.dtype, device=tensor.device)
    place, source = result, tensor.detach().resolve_neg()
    for dim, stride in enumerate(strides):
        if stride == 0 and sizes[dim] > 1:
            place, source = place.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
    place.copy_(source)
    return result
