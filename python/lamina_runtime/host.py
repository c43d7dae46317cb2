"""Host functions: their launches with all sizes known, on memory of torch."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .driver import BoundLaunch, Driver, Launcher
from .errors import PackageError
from .expressions import evaluate
from .plan import ARENA, SCALARS, Host, Kernel, chip_name

_KEPT = 256
_CACHE_LINE = 256
_LARGEST = 2**31 - 1


class _Step(NamedTuple):
    """A launch: what runs it, and base (-1 is the arena) and offset of each pointer."""

    run: Launcher
    places: tuple[tuple[int, int], ...]


class _Ready(NamedTuple):
    """A host function for some values of its symbols."""

    arena: int
    scratch: int  # where scratch memory begins in the arena
    bytes: int
    steps: tuple[_Step, ...]


class HostProgram:
    """A host function with its kernels loaded. Threads may run it at the same time.

    Args:
        host: the function.
        kernels: by name, with what the driver loaded.
        driver: the device.
    """

    def __init__(self, host: Host, kernels: Mapping[str, tuple[Kernel, Any]], driver: Driver):
        self.host = host
        self._kernels = kernels
        self._driver = driver
        self._ready: dict[tuple[int, ...], _Ready] = {}
        self._lock = threading.Lock()

    def arena_bytes(self, symbols: Sequence[int]) -> int:
        """Bytes of temporary memory of a call."""
        return self._prepared(tuple(symbols)).bytes

    def run(self, pointers: Sequence[int], symbols: tuple[int, ...]) -> None:
        """Launches everything on the current stream.

        Args:
            pointers: addresses of the arguments and then of the results.
            symbols: values of the index symbols.
        """
        driver = self._driver
        with driver.active(), self._lock:
            ready = self._prepared(symbols)
            arena = 0
            if ready.bytes:
                # Memory of the stream's own order: it may be given away as soon as all is launched.
                memory = torch.empty(ready.bytes, dtype=torch.uint8, device=driver.device)
                arena = memory.data_ptr()
            stream, scratch = driver.stream(), arena + ready.scratch
            for run, places in ready.steps:
                run([(pointers[base] if base >= 0 else arena) + offset for base, offset in places], scratch, stream)

    def _prepared(self, symbols: tuple[int, ...]) -> _Ready:
        ready = self._ready.get(symbols)
        if ready is None:
            if len(self._ready) >= _KEPT:
                self._ready.clear()
            ready = self._ready[symbols] = self._prepare(symbols)
        return ready

    def _prepare(self, symbols: tuple[int, ...]) -> _Ready:
        steps, scratch = [], 0
        for launch in self.host.launches:
            kernel, function = self._kernels[launch.kernel]
            programs = evaluate(launch.grid, symbols)
            if programs <= 0:
                continue
            values = tuple(evaluate(expr, symbols) for expr in launch.symbols[: len(kernel.scalars)])
            extents = tuple(evaluate(memory.extent, symbols) for memory in launch.arguments)
            _check_widths(kernel, values, extents)
            places = tuple(
                (-1 if memory.base == ARENA else int(memory.base), evaluate(memory.offset, symbols))
                for memory in launch.arguments
            )
            axes = launch.axes
            grid = (programs, 1, 1) if axes is None else tuple(evaluate(expr, symbols) for expr in axes)
            bound = BoundLaunch(kernel, programs, values, extents, grid)
            steps.append(_Step(self._driver.bind(function, bound), places))
            scratch = max(scratch, kernel.scratch * programs)
        arena = evaluate(self.host.arena, symbols)
        start = -(-arena // _CACHE_LINE) * _CACHE_LINE if scratch else arena
        return _Ready(arena, start, start + scratch, tuple(steps))


def _check_widths(kernel: Kernel, values: Sequence[int], extents: Sequence[int]) -> None:
    """A kernel that computes places in 32 bits must not be given more elements than those can count."""
    what = ""
    for kind, value in zip(kernel.scalars, values):
        if not -(1 << SCALARS[kind]) <= value < 1 << SCALARS[kind]:
            what = f"a size is {value}, too large for the kernel {kernel.name}, whose sizes have 32 bits"
    if "i32" in kernel.scalars and max(extents, default=0) > _LARGEST:
        elements = max(extents)
        what = f"a tensor has {elements} elements, too many for the kernel {kernel.name}, whose indices have 32 bits"
    if what:
        raise ValueError(
            f"{what}: compile with bounds for the open sizes (torch.export.Dim(..., max=...)) that allow as many"
        )


def load_kernels(kernels: Mapping[str, Kernel], images: Any, driver: Driver) -> dict[str, tuple[Kernel, Any]]:
    """Loads the kernels of a chip.

    Args:
        kernels: by name.
        images: an Archive.
        driver: the device.

    Raises:
        PackageError: a kernel needs more than the device has.
        DriverError: the driver refuses one.
    """
    loaded = {}
    with driver.active():
        for name, kernel in kernels.items():
            if kernel.shared > driver.shared_memory:
                raise PackageError(
                    f"the kernel {name} needs {kernel.shared} bytes of shared memory; this device has "
                    f"{driver.shared_memory}: compile the program for {chip_name(driver.capability)}"
                )
            loaded[name] = (kernel, driver.load(bytes(images[kernel.file]), kernel))
    return loaded
