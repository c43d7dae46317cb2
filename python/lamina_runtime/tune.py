"""``python -m lamina_runtime.tune FILE -o SCHEDULE``: measures a package's candidates on the device, and writes what is fastest.

The program is run once. At the first launch of each kernel that there are candidates of, all of them are run on that launch's
own memory: their results are compared with the kernel's, and then they are timed in turns. Nothing but torch and the driver is
needed. The schedule is for ``lamina compile --schedule`` or ``lamina.compile(schedule=...)``, on any machine.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import torch

from .archive import PLAN
from .call import dtype_of
from .driver import BoundLaunch, Driver, Launcher
from .errors import DriverError, PackageError
from .expressions import check, evaluate
from .host import load_kernels
from .operators import value_of
from .plan import Kernel, Package, checking, choose_image, read_kernel
from .program import Program, default_driver, read
from .schedule import Entries, ScheduleError, merge_schedules, read_schedule, write_schedule

Timer = Callable[[Callable[[], None]], float]
"""Runs something several times, and returns the seconds of one."""

ROUNDS = 7
"""In which each candidate is timed once; its time is the median."""

GAIN = 0.02
"""What is faster than the kernel as it is by less than this is noise."""

_TOLERANCE = {"f64": 1e-6, "f32": 1e-3, "f16": 1e-2, "bf16": 5e-2}
"""How far results may be from each other, as a part of the largest: sums in another order, products of TF32."""
_DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_BITS = 8
_UNKNOWN_SIZE = 128


@dataclass(frozen=True)
class Candidate:
    """A kernel compiled in some way: how, over how many programs it runs, and the kernel."""

    choice: dict[str, Any]
    grid: Any
    kernel: Kernel


@dataclass(frozen=True)
class Tunable:
    """A kernel of a package that has candidates.

    Attributes:
        key: what stands for it in schedules.
        chip: what it is compiled for, with its target.
        choice: how it is compiled.
        candidates: other ways.
    """

    key: str
    chip: str
    choice: dict[str, Any]
    candidates: list[Candidate]


@dataclass(frozen=True)
class Measured:
    """What was measured of a kernel.

    Attributes:
        kernel: its name.
        default: seconds of it as it is.
        seconds: of the fastest way.
        choice: that way.
        candidates: how many were measured beside it.
        wrong: choices whose results differ from the kernel's, or that cannot be run; those are never chosen.
    """

    kernel: str
    default: float
    seconds: float
    choice: dict[str, Any]
    candidates: int
    wrong: list[dict[str, Any]]


def read_tunables(package: Package, capability: Union[int, str]) -> dict[str, Tunable]:
    """The kernels of a package that have candidates for a device, by name.

    Raises:
        PackageError: there are none, or they are damaged.
    """
    image = choose_image(package, capability)
    plan = package.archive.json(PLAN)
    found = {}
    with checking(package.archive.name):
        for name, data in plan["chips"].get(image.chip, {"kernels": {}})["kernels"].items():
            if "tuning" not in data:
                continue
            tuning, symbols = data["tuning"], len(image.kernels[name].scalars)
            candidates = [
                Candidate(dict(each["choice"]), check(each["grid"], symbols), read_kernel(package.archive, name, each))
                for each in tuning["candidates"]
            ]
            found[name] = Tunable(str(tuning["key"]), str(tuning["chip"]), dict(tuning["choice"]), candidates)
    if not found:
        raise PackageError(f"{package.archive.name} has no candidates for {image.chip}: make it with lamina tune")
    return found


def tune(
    path: Union[str, os.PathLike[str]],
    args: Optional[Sequence[Any]] = None,
    kwargs: Optional[Mapping[str, Any]] = None,
    *,
    device: Union[str, torch.device, None] = None,
    driver: Optional[Driver] = None,
    weights: Optional[Mapping[str, torch.Tensor]] = None,
    timer: Optional[Timer] = None,
    sizes: Optional[Mapping[tuple[str, int], int]] = None,
    progress: Optional[Callable[[str, int, int], None]] = None,
) -> tuple[Entries, list[Measured]]:
    """Measures the candidates of a package.

    Args:
        path: a package with candidates (``lamina tune``, ``save(candidates=...)``).
        args, kwargs: what to call the program with; by default random floats, and zeros, which are valid indices.
        device, driver, weights: see lamina_runtime.load.
        timer: by default, events of torch on the current stream.
        sizes: of the default arguments, by name and dimension, where a size is open.
        progress: told the name of each kernel before it is measured, how many were before, and of how many.

    Returns:
        The entries of a schedule (see lamina_runtime.schedule), and what was measured, the most time first.

    Raises:
        PackageError: the package is damaged, or has no candidates for the device.
        DriverError: there is no CUDA driver, or a launch failed.
        ValueError, TypeError: the arguments do not fit.
        OSError: the package cannot be read.
    """
    package = read(path)
    inner = driver if driver is not None else default_driver(package, device)
    tunables = read_tunables(package, inner.capability)
    tuner = _Tuner(inner, package, tunables, timer or _event_timer, progress)
    program = Program(package, tuner, weights)
    current = torch.cuda.device(inner.device) if inner.device.type == "cuda" else contextlib.nullcontext()
    with torch.no_grad(), current:
        if args is None and kwargs is None:
            program.call_leaves(_arguments(package, inner.device, sizes or {}))
        else:
            program(*(args or ()), **(kwargs or {}))
    entries = {
        tunables[m.kernel].key: {
            tunables[m.kernel].chip: {
                "kernel": m.kernel,
                "choice": m.choice,
                "seconds": m.seconds,
                "default_seconds": m.default,
            }
        }
        for m in tuner.measured
    }
    return entries, sorted(tuner.measured, key=lambda m: -m.default)


class _Tuner:
    """A driver that measures candidates at the first launch of their kernel; all else is another driver's."""

    def __init__(
        self,
        driver: Driver,
        package: Package,
        tunables: dict[str, Tunable],
        timer: Timer,
        progress: Optional[Callable[[str, int, int], None]],
    ):
        self._driver, self._package, self._tunables = driver, package, tunables
        self._timer, self._progress = timer, progress
        self.device, self.capability, self.shared_memory = driver.device, driver.capability, driver.shared_memory
        self.measured: list[Measured] = []
        self.load, self.stream = driver.load, driver.stream
        self.capturing, self.active = driver.capturing, driver.active

    def bind(self, function: Any, launch: BoundLaunch) -> Launcher:
        run = self._driver.bind(function, launch)
        tunable = self._tunables.get(launch.kernel.name)
        if tunable is None:
            return run

        def first(pointers: Sequence[int], scratch: int, stream: int) -> None:
            if all(m.kernel != launch.kernel.name for m in self.measured):
                if self._progress is not None:
                    self._progress(launch.kernel.name, len(self.measured), len(self._tunables))
                self.measured.append(self._measure(tunable, run, launch, pointers, scratch, stream))
            run(pointers, scratch, stream)

        return first

    def _measure(
        self,
        tunable: Tunable,
        run: Launcher,
        launch: BoundLaunch,
        pointers: Sequence[int],
        scratch: int,
        stream: int,
    ) -> Measured:
        """Afterwards memory is as it was."""
        memory = [
            _bytes_at(self.device, address, extent * element_bytes(element))
            for address, extent, element in zip(pointers, launch.extents, launch.kernel.pointers)
        ]
        before = [each.clone() for each in memory]

        def results(runner: Callable[[], None]) -> list[torch.Tensor]:
            for each, kept in zip(memory, before):
                each.copy_(kept)
            runner()
            return [each.clone() for each in memory]

        def default() -> None:
            run(pointers, scratch, stream)

        expected = results(default)
        runners: list[tuple[dict[str, Any], Callable[[], None]]] = [(tunable.choice, default)]
        wrong = []
        for candidate in tunable.candidates:
            runner = self._runner(candidate, launch, pointers, stream)
            if runner is None or not _close(results(runner), expected, launch.kernel.pointers):
                wrong.append(candidate.choice)
            else:
                runners.append((candidate.choice, runner))
        times: list[list[float]] = [[] for _ in runners]
        for _ in range(ROUNDS):
            for each, (_, runner) in zip(times, runners):
                each.append(self._timer(runner))
        for place, kept in zip(memory, before):
            place.copy_(kept)
        medians = [statistics.median(each) for each in times]
        best = min(range(len(medians)), key=medians.__getitem__)
        if medians[best] > (1 - GAIN) * medians[0]:
            best = 0
        return Measured(launch.kernel.name, medians[0], medians[best], runners[best][0], len(tunable.candidates), wrong)

    def _runner(
        self, candidate: Candidate, launch: BoundLaunch, pointers: Sequence[int], stream: int
    ) -> Optional[Callable[[], None]]:
        """What runs a candidate; None if the device refuses it."""
        kernel = candidate.kernel
        programs = evaluate(candidate.grid, launch.symbols)
        try:
            _, function = load_kernels({kernel.name: kernel}, self._package.archive, self._driver)[kernel.name]
            run = self._driver.bind(function, BoundLaunch(kernel, programs, launch.symbols, launch.extents))
        except (DriverError, PackageError):
            return None
        # As long as the runner lives.
        memory = torch.empty(max(1, kernel.scratch * programs), dtype=torch.uint8, device=self.device)
        return lambda: run(pointers, memory.data_ptr(), stream)


def element_bytes(element: str) -> int:
    """Bytes in memory of an element of a pointer's type, such as ``f32``, ``bf16``, ``i1`` or ``f8E4M3FN``."""
    digits = "".join(c if c.isdigit() else " " for c in element).split()
    return -(-int(digits[0]) // _BITS)


class _Raw:
    """Memory of a device, as __cuda_array_interface__ describes it."""

    def __init__(self, address: int, count: int):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3}


def _bytes_at(device: torch.device, address: int, count: int) -> torch.Tensor:
    """Memory of a device as a tensor of bytes, which shares it."""
    if count == 0:
        return torch.empty(0, dtype=torch.uint8, device=device)
    if device.type == "cpu":
        return torch.frombuffer((ctypes.c_uint8 * count).from_address(address), dtype=torch.uint8)
    return torch.as_tensor(_Raw(address, count), device=device)


def _close(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], elements: Sequence[str]) -> bool:
    """Whether memory holds the same: integers to the bit, floats up to the order of sums."""
    for a, b, element in zip(actual, expected, elements):
        if torch.equal(a, b):
            continue
        if element not in _TOLERANCE:
            return False
        x, y = a.view(_DTYPES[element]).double(), b.view(_DTYPES[element]).double()
        finite = y.isfinite()
        if not torch.equal(x[~finite].nan_to_num(1.5), y[~finite].nan_to_num(1.5)):
            return False
        scale = y[finite].abs().max() if finite.any() else y.new_zeros(())
        if bool(((x[finite] - y[finite]).abs() > _TOLERANCE[element] * scale).any()) or not x[finite].isfinite().all():
            return False
    return True


def _event_timer(run: Callable[[], None]) -> float:
    """Seconds of one run, by events on torch's current stream.

    The device is kept waiting while runs are enqueued, so that what is measured is not how fast they can be.
    """
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    end.synchronize()
    repeats = max(1, min(50, int(2e-3 / max(1e-6, start.elapsed_time(end) * 1e-3))))
    torch.cuda._sleep(2_000_000)
    start.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / repeats


def _arguments(package: Package, device: torch.device, sizes: Mapping[tuple[str, int], int]) -> list[Any]:
    """Leaves to call a program with: random floats, and zeros of all else."""
    call = package.call
    symbols = [min(max(_UNKNOWN_SIZE, s["min"]), s["max"] or max(_UNKNOWN_SIZE, s["min"])) for s in call["symbols"]]
    known = {(spec["name"], dim) for spec in call["inputs"] for dim in range(len(spec.get("sizes", [])))}
    for place, size in sizes.items():
        if place not in known:
            names = ", ".join(spec["name"] for spec in call["inputs"])
            raise ValueError(
                f"there is no argument {place[0]!r} with a dimension {place[1]}; the arguments are {names}"
            )
        (spec,) = [spec for spec in call["inputs"] if spec["name"] == place[0]]
        expr = spec["sizes"][place[1]]
        if not isinstance(expr, str):
            raise ValueError(f"the size of {place[0]!r} in dimension {place[1]} is not open")
        symbols[int(expr[1:])] = size
    generator = torch.Generator().manual_seed(0)
    return [_argument(spec, symbols, device, generator) for spec in call["inputs"]]


def _argument(spec: dict[str, Any], symbols: Sequence[int], device: torch.device, generator: torch.Generator) -> Any:
    if spec["kind"] == "size":
        return evaluate(spec["size"], symbols)
    if spec["kind"] == "value":
        return value_of(spec["value"], device)
    shape, dtype = [evaluate(size, symbols) for size in spec["sizes"]], dtype_of(spec["dtype"])
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype).to(device)
    return torch.zeros(shape, dtype=dtype, device=device)


# ---- the command


def _parse_sizes(texts: Sequence[str]) -> dict[tuple[str, int], int]:
    sizes = {}
    for text in texts:
        place, _, size = text.partition("=")
        name, _, dim = place.rpartition(":")
        if not (name and dim.isdecimal() and size.isdecimal()):
            raise ValueError(f"--size {text}: expected ARGUMENT:DIMENSION=SIZE, such as x:0=64")
        sizes[name, int(dim)] = int(size)
    return sizes


def report(measured: Sequence[Measured]) -> str:
    """A table: of each kernel the time as it is, the best time and how it is reached."""
    rows = [["kernel", "now, us", "best, us", "ratio", "candidates", "choice"]]
    for m in measured:
        choice = ", ".join(f"{name} {value}" for name, value in m.choice.items())
        ratio = m.seconds / m.default if m.default else 1.0
        counted = f"{m.candidates}" + (f" ({len(m.wrong)} refused)" if m.wrong else "")
        rows.append([m.kernel, f"{m.default * 1e6:.1f}", f"{m.seconds * 1e6:.1f}", f"{ratio:.2f}", counted, choice])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures; the exit code is 1 if that cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m lamina_runtime.tune",
        description="Measures the candidates of a package, which `lamina tune` makes, on this machine's GPU, and writes a "
        "schedule for `lamina compile --schedule`. Arguments are random floats, and zeros of all other types; "
        "lamina_runtime.tune.tune takes others.",
        epilog="example: python -m lamina_runtime.tune net.candidates -o net.schedule --size x:0=64",
    )
    parser.add_argument("file", metavar="FILE", help="a package with candidates")
    parser.add_argument(
        "-o",
        "--output",
        metavar="SCHEDULE",
        required=True,
        help="where the choices go; they are added to what is there",
    )
    parser.add_argument("--device", help="a CUDA device of torch, by default the current one")
    parser.add_argument(
        "--size", action="append", default=[], metavar="ARG:DIM=N", help="an open size; by default 128, or the nearest"
    )
    given = parser.parse_args(arguments)

    def progress(kernel: str, number: int, count: int) -> None:
        print(f"\r\033[K{number + 1}/{count} {kernel}", end="", file=sys.stderr, flush=True)

    shown = progress if sys.stderr.isatty() else None
    try:
        old: Entries = {}
        with contextlib.suppress(FileNotFoundError):
            old = read_schedule(given.output)
        entries, measured = tune(given.file, device=given.device, sizes=_parse_sizes(given.size), progress=shown)
        write_schedule(given.output, merge_schedules(old, entries))
    except (PackageError, DriverError, ScheduleError, OSError, ValueError, TypeError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        if shown is not None:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(report(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
