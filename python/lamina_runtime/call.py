"""Calls: checks of the arguments, allocation of results, aliases and mutations as in eager, from a plan's ``call``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional, Union

import torch

from . import structure
from .driver import Driver
from .errors import PackageError
from .expressions import check, evaluate
from .host import HostProgram
from .operators import find_operator, read_argument, value_of
from .split import SplitHost

_ERRORS: dict[str, type[Exception]] = {
    "IndexError": IndexError,
    "RuntimeError": RuntimeError,
    "ValueError": ValueError,
    "TypeError": TypeError,
}
_ALIGNMENT = 16
"""Bytes: what kernels take for granted of the addresses of arguments and results."""
_KEPT = 256


class Outcomes:
    """The results of a call's checks, which say whether eager would have raised an error; each has 16 bytes of its own."""

    def __init__(self, messages: Sequence[str], device: torch.device):
        self.messages = messages
        self.memory = torch.empty(_ALIGNMENT * len(messages), dtype=torch.uint8, device=device)

    def pointers(self) -> list[int]:
        """Where the kernels write them."""
        start = self.memory.data_ptr()
        return [start + _ALIGNMENT * k for k in range(len(self.messages))]

    def raise_if_failed(self) -> None:
        """Waits for the results, and raises eager's error of the first that is false."""
        for message, outcome in zip(self.messages, self.memory[::_ALIGNMENT].tolist()):
            if not outcome:
                kind, _, text = message.partition(": ")
                raise _ERRORS.get(kind, RuntimeError)(text)


class _Shapes(NamedTuple):
    """All sizes of a call, for some values of the symbols.

    Attributes:
        inputs: of the arguments; None of those that have none.
        results: sizes and strides, as eager's.
        memory: dtype, sizes and strides of what main writes: the same, but without gaps.
    """

    inputs: tuple[Optional[tuple[int, ...]], ...]
    results: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    memory: tuple[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]], ...]


class Call:
    """Calls a program with the leaves of its arguments.

    Args:
        plan: the plan's ``call``.
        tensors: the program's own tensors, on the device.
        constants: by key, of the arguments of the host function that are constants.
        host: the host function, or that of a split program.
        driver: the device.
    """

    def __init__(
        self,
        plan: dict[str, Any],
        tensors: dict[str, torch.Tensor],
        constants: dict[str, torch.Tensor],
        host: Union[HostProgram, SplitHost],
        driver: Driver,
    ):
        self.plan, self.tensors, self.host, self.driver = plan, tensors, host, driver
        self.device = driver.device
        self.count = len(plan["symbols"])
        self.inputs = plan["inputs"]
        # Of each argument of main that is no constant: whether it is a leaf, which, and its order of dimensions in memory.
        self.arguments = [
            ("input" in source, source.get("input", source.get("tensor")), _order(source["order"]))
            for source in plan["sources"]
        ]
        self.gaps = [number for number, result in enumerate(plan["results"]) if not result["dense"]]
        self.results = plan["results"]
        self.checks: list[str] = plan["checks"]
        self.mutations = plan["mutations"]
        self.dtypes = [dtype_of(spec["dtype"]) if spec["kind"] == "tensor" else None for spec in self.inputs]
        self.result_dtypes = [dtype_of(result["dtype"]) for result in self.results]
        self.values = [
            value_of(spec["value"], self.device) if spec["kind"] == "value" else None for spec in self.inputs
        ]
        self.returned = [self._returned(each) for each in plan["returned"]]
        self.homes = self._find_homes()
        self.pending: Optional[Outcomes] = None
        self._shapes: dict[tuple[int, ...], _Shapes] = {}
        self._constants = constants  # kept alive: the pointers below are theirs
        if isinstance(host, SplitHost):
            return
        keys = host.host.constants
        self._fixed = [None if key is None else constants[key].data_ptr() for key in keys]
        if self._fixed.count(None) != len(self.arguments):
            raise PackageError("the plan has sources that do not fit the arguments of main")
        if len(host.host.results) != len(self.results) + len(self.checks):
            raise PackageError("the plan has results that do not fit those of main")

    # ---- the call

    def __call__(self, leaves: Sequence[Any], wait: bool = True) -> Any:
        """Runs the program; kernels are only launched, and not waited for.

        Args:
            leaves: of the arguments.
            wait: whether the results of checks, if there are any, are waited for, so that eager's error is raised here.

        Raises:
            TypeError, ValueError: an argument is wrong.
            Whatever eager raises, where the program itself fails.
        """
        symbols, shapes = self._bind(leaves)
        for mutation in self.mutations:
            if "input" in mutation and _overlaps(leaves, mutation["input"]):
                name = self.inputs[mutation["input"]]["name"]
                raise ValueError(f"argument '{name}' is written to and shares memory with another argument")
        given = [leaves[key] if kind else self.tensors[key] for kind, key, _ in self.arguments]
        if isinstance(self.host, SplitHost):
            results = [
                result if result.stride() == strides else _copy(result, sizes, strides)
                for result, (sizes, strides) in zip(self.host.run(given, symbols, wait), shapes.results)
            ]
        else:
            results = self._launched(self.host, given, symbols, shapes, wait)
        if self.mutations:
            with torch.no_grad():
                for mutation in self.mutations:
                    self._written(mutation, leaves).copy_(results[mutation["result"]])
        returned = [make(leaves, results, symbols) for make in self.returned]
        returns = self.plan["returns"]
        return returned[0] if returns is None else structure.unflatten(returns, iter(returned))

    def _launched(
        self, host: HostProgram, given: Sequence[torch.Tensor], symbols: tuple[int, ...], shapes: _Shapes, wait: bool
    ) -> list[torch.Tensor]:
        """The results of a host function's launches."""
        inputs = [_prepared(tensor, order) for tensor, (_, _, order) in zip(given, self.arguments)]
        results = [
            torch.empty_strided(sizes, strides, dtype=dtype, device=self.device)
            for dtype, sizes, strides in shapes.memory
        ]
        outcomes = Outcomes(self.checks, self.device) if self.checks else None
        pointers = self._pointers(inputs, results)
        if outcomes is not None:
            pointers += outcomes.pointers()
        host.run(pointers, symbols)
        if outcomes is not None:
            if wait and not self.driver.capturing():
                outcomes.raise_if_failed()
            else:
                self.pending = outcomes
        for number in self.gaps:
            results[number] = _copy(results[number], *shapes.results[number])
        return results

    def run_main(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], symbols: tuple[int, ...]
    ) -> None:
        """Runs the host function alone, on contiguous tensors; the outputs are aligned."""
        given = [_prepared(tensor, None) for tensor in inputs]  # copies live until all is launched
        assert isinstance(self.host, HostProgram), "of a program that is not split"
        self.host.run(self._pointers(given, outputs), symbols)

    def _pointers(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> list[int]:
        given = iter(inputs)
        pointers = [next(given).data_ptr() if fixed is None else fixed for fixed in self._fixed]
        return pointers + [output.data_ptr() for output in outputs]

    def _bind(self, leaves: Sequence[Any]) -> tuple[tuple[int, ...], _Shapes]:
        """The values of the symbols, and all sizes; the arguments have been checked then."""
        if len(leaves) != len(self.inputs):
            raise TypeError(f"expected {len(self.inputs)} arguments, got {len(leaves)}")
        for number, (spec, leaf) in enumerate(zip(self.inputs, leaves)):
            if spec["kind"] == "tensor":
                if not (
                    isinstance(leaf, torch.Tensor)
                    and leaf.dtype is self.dtypes[number]
                    and leaf.device == self.device
                    and leaf.layout is torch.strided
                    and leaf.dim() == len(spec["sizes"])
                ):
                    self._explain_type(number, leaf)
            elif spec["kind"] == "size":
                if not isinstance(leaf, int):
                    raise TypeError(f"argument '{spec['name']}' is a {type(leaf).__name__}, expected an int")
            elif type(leaf) is not type(self.values[number]) or leaf != self.values[number]:
                raise ValueError(
                    f"argument '{spec['name']}' is {leaf!r}, the program was compiled for {self.values[number]!r}"
                )
        values = [0] * self.count
        for number, find in self.homes:
            values[number] = find(leaves, values)
        symbols = tuple(values)
        shapes = self._shapes.get(symbols) or self._make_shapes(symbols, leaves)
        for number, expected in enumerate(shapes.inputs):
            if expected is None:
                continue
            leaf = leaves[number]
            if (leaf.shape if self.dtypes[number] is not None else (leaf,)) != expected:
                self._explain_sizes(number, leaf, expected)
        return symbols, shapes

    def _make_shapes(self, symbols: tuple[int, ...], leaves: Sequence[Any]) -> _Shapes:
        for number, (bounds, value) in enumerate(zip(self.plan["symbols"], symbols)):
            low, high = bounds["min"], bounds["max"]
            if value < low or (high is not None and value > high):
                expected = f"at least {low}" if high is None else f"from {low} to {high}"
                raise ValueError(f"{self._describe_home(number, leaves, value)}, expected {expected}")
        inputs: list[Optional[tuple[int, ...]]] = []
        for spec in self.inputs:
            exprs = spec["sizes"] if spec["kind"] == "tensor" else [spec["size"]] if spec["kind"] == "size" else None
            inputs.append(None if exprs is None else tuple(evaluate(expr, symbols) for expr in exprs))
        results = tuple(
            (
                tuple(evaluate(expr, symbols) for expr in result["sizes"]),
                tuple(evaluate(expr, symbols) for expr in result["strides"]),
            )
            for result in self.results
        )
        if len(self._shapes) >= _KEPT:
            self._shapes.clear()
        memory = tuple(
            (dtype, sizes, strides if result["dense"] else _contiguous(sizes))
            for result, dtype, (sizes, strides) in zip(self.results, self.result_dtypes, results)
        )
        shapes = self._shapes[symbols] = _Shapes(tuple(inputs), results, memory)
        return shapes

    def _written(self, mutation: dict[str, Any], leaves: Sequence[Any]) -> torch.Tensor:
        return leaves[mutation["input"]] if "input" in mutation else self.tensors[mutation["tensor"]]

    # ---- what is prepared once

    def _find_homes(self) -> list[tuple[int, Callable[[Sequence[Any], Sequence[int]], int]]]:
        """How each symbol is found: as a size of an argument, or from one that is a multiple of it and a constant."""
        places: list[tuple[Any, int, Optional[int]]] = []
        for i, spec in enumerate(self.inputs):
            if spec["kind"] == "tensor":
                places += [(expr, i, dim) for dim, expr in enumerate(spec["sizes"])]
            elif spec["kind"] == "size":
                places.append((spec["size"], i, None))
        homes: list[tuple[int, Callable[[Sequence[Any], Sequence[int]], int]]] = []
        self._home_places: dict[int, tuple[int, Optional[int]]] = {}
        for expr, i, dim in places:
            number = int(expr[1:]) if isinstance(expr, str) else None
            if number is not None and number not in self._home_places:
                self._home_places[number] = (i, dim)
                homes.append((number, _finder(i, dim)))
        for number in range(self.count):
            if number in self._home_places:
                continue
            for expr, i, dim in places:
                if _symbols(expr) - set(self._home_places) == {number}:
                    self._home_places[number] = (i, dim)
                    homes.append((number, _solver(expr, number, i, dim)))
                    break
            else:
                raise PackageError(f"the symbol s{number} is the size of no argument")
        return homes

    def _returned(self, data: dict[str, Any]) -> Callable[[Sequence[Any], Sequence[torch.Tensor], Sequence[int]], Any]:
        kind = data["kind"]
        if kind == "size":
            expr = check(data["size"], self.count)
            return lambda leaves, results, symbols: evaluate(expr, symbols)
        if kind == "value":
            value = value_of(data["value"], self.device)
            return lambda leaves, results, symbols: value
        views = [_view(step, self.count, self.device) for step in data["views"]]
        if kind == "tensor":
            tensor = self.tensors[data["key"]]
            return lambda leaves, results, symbols: _through(views, tensor, symbols)
        index = data["index"]
        if kind == "input":
            return lambda leaves, results, symbols: _through(views, leaves[index], symbols)
        return lambda leaves, results, symbols: _through(views, results[index], symbols)

    # ---- errors

    def _explain_type(self, number: int, leaf: Any) -> None:
        spec = self.inputs[number]
        what = f"argument '{spec['name']}'"
        if not isinstance(leaf, torch.Tensor):
            raise TypeError(f"{what} is a {type(leaf).__name__}, expected a tensor")
        if leaf.dtype is not self.dtypes[number]:
            raise TypeError(f"{what} has dtype {leaf.dtype}, expected {self.dtypes[number]}")
        if leaf.device != self.device:
            raise TypeError(f"{what} is on device {leaf.device}, expected {self.device}")
        if leaf.layout is not torch.strided:
            raise TypeError(f"{what} has layout {leaf.layout}, expected {torch.strided}")
        raise ValueError(f"{what} has {leaf.dim()} dimensions, expected {len(spec['sizes'])}")

    def _explain_sizes(self, number: int, leaf: Any, expected: Sequence[int]) -> None:
        spec = self.inputs[number]
        if spec["kind"] == "size":
            raise ValueError(f"argument '{spec['name']}' is {leaf}, expected {expected[0]}")
        for dim, (actual, size) in enumerate(zip(leaf.shape, expected)):
            if actual != size:
                raise ValueError(f"argument '{spec['name']}' has size {actual} in dimension {dim}, expected {size}")

    def _describe_home(self, number: int, leaves: Sequence[Any], value: int) -> str:
        i, dim = self._home_places[number]
        name = self.inputs[i]["name"]
        if dim is None:
            return f"argument '{name}' is {leaves[i]}"
        return f"argument '{name}' has size {leaves[i].shape[dim]} in dimension {dim}"


def _size(leaf: Any, dim: Optional[int]) -> int:
    return int(leaf if dim is None else leaf.shape[dim])


def _finder(i: int, dim: Optional[int]) -> Callable[[Sequence[Any], Sequence[int]], int]:
    return lambda leaves, values: _size(leaves[i], dim)


def _symbols(expr: Any) -> set[int]:
    if isinstance(expr, str):
        return {int(expr[1:])}
    return set().union(*(_symbols(operand) for operand in expr[1:])) if isinstance(expr, list) else set()


def _solver(expr: Any, number: int, i: int, dim: Optional[int]) -> Callable[[Sequence[Any], Sequence[int]], int]:
    """The value of a symbol in an expression that is linear in it; one that is not fails the check that comes after."""

    def solve(leaves: Sequence[Any], values: Sequence[int]) -> int:
        at = [list(values), list(values)]
        at[0][number], at[1][number] = 0, 1
        rest, next = evaluate(expr, at[0]), evaluate(expr, at[1])
        return (_size(leaves[i], dim) - rest) // (next - rest) if next != rest else 0

    return solve


def _overlaps(leaves: Sequence[Any], written: int) -> bool:
    """Whether a tensor shares memory with another one."""
    storage = leaves[written].untyped_storage().data_ptr()
    return storage != 0 and any(
        k != written and isinstance(leaf, torch.Tensor) and leaf.untyped_storage().data_ptr() == storage
        for k, leaf in enumerate(leaves)
    )


def _order(order: list[int]) -> Optional[list[int]]:
    """None of dimensions that are in order."""
    return None if order == sorted(order) else order


def _prepared(tensor: torch.Tensor, order: Optional[list[int]]) -> torch.Tensor:
    """What main reads: the tensor itself if it is contiguous in the order of its memory, and aligned; else a copy that is."""
    if order is not None:
        tensor = tensor.detach().permute(order)
    if tensor.is_contiguous() and not tensor.is_neg() and tensor.data_ptr() % _ALIGNMENT == 0:
        return tensor
    return tensor.detach().resolve_neg().clone(memory_format=torch.contiguous_format)


def _contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _copy(value: torch.Tensor, sizes: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """The value in memory of these strides, which may leave gaps or repeat elements."""
    result = torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
    place, source = result, value
    for dim, stride in enumerate(strides):
        if stride == 0 and sizes[dim] > 1:
            place, source = place.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
    place.copy_(source)
    return result


def dtype_of(name: str) -> torch.dtype:
    """The dtype that a plan names.

    Raises:
        PackageError: there is none of the name.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise PackageError(f"the plan has {name!r} where a dtype must be")
    return dtype


# ---- view ops


_View = Callable[[torch.Tensor, Sequence[int]], torch.Tensor]


def _view(step: dict[str, Any], count: int, device: torch.device) -> _View:
    """A view op of ATen with its arguments; its sizes may be expressions."""
    op = find_operator(step["op"]) if step["op"].startswith("aten.") else None
    if op is None or not op.is_view:
        raise PackageError(f"the plan has {step['op']!r} where a view op of ATen must be")
    arguments = [read_argument(data, count, device) for data in step["arguments"]]
    named = {name: read_argument(data, count, device) for name, data in step["named"].items()}
    item = step["item"]

    def apply(tensor: torch.Tensor, symbols: Sequence[int]) -> torch.Tensor:
        value = op(tensor, *(a((), symbols) for a in arguments), **{name: a((), symbols) for name, a in named.items()})
        return value if item is None else value[item]

    return apply


def _through(views: Sequence[_View], tensor: torch.Tensor, symbols: Sequence[int]) -> torch.Tensor:
    for view in views:
        tensor = view(tensor, symbols)
    return tensor
