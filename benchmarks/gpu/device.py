"""Where programs run and how they are timed: a GPU by CUDA events, or a driver that is a stub and executes nothing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Optional, Protocol

import torch

from lamina_runtime.driver import CudaDriver

Call = Callable[[], Any]
BLOCK_SECONDS = 0.01
"""Of the calls between two events."""
ROUNDS = 25


class Device(Protocol):
    """What programs run on.

    Attributes:
        device: where their tensors are.
        executes: whether results mean anything.
        driver: what lamina_runtime.load is given; None is its own.
    """

    device: torch.device
    executes: bool
    driver: Optional[CudaDriver]

    def seconds(self, call: Call, count: int) -> float:
        """Seconds of a call, of `count` in a row."""

    def captured(self, call: Call) -> Optional[Call]:
        """A replay of the call's launches as a CUDA graph; None if there are no graphs."""

    def describe(self) -> dict[str, Any]:
        """Facts for people."""


class GPU:
    """The current CUDA device."""

    executes = True
    driver = None

    def __init__(self) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())

    def seconds(self, call: Call, count: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / count

    def captured(self, call: Call) -> Optional[Call]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call()

        def replay() -> Any:
            graph.replay()
            return result

        return replay

    def describe(self) -> dict[str, Any]:
        facts = torch.cuda.get_device_properties(self.device)
        return {
            "name": facts.name,
            "chip": f"sm_{facts.major}{facts.minor}",
            "multiprocessors": facts.multi_processor_count,
            "memory_bytes": facts.total_memory,
            "cuda": torch.version.cuda,
        }


class Stub:
    """A library that answers as the CUDA driver does and executes nothing; tensors are the host's.

    Args:
        library: its path.
    """

    executes = False

    def __init__(self, library: str):
        self.device = torch.device("cpu")
        self.driver = CudaDriver(self.device, library)

    def seconds(self, call: Call, count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    def captured(self, call: Call) -> Optional[Call]:
        return None

    def describe(self) -> dict[str, Any]:
        return {"name": "no GPU: a stub of the driver", "chip": f"sm_{self.driver.capability}"}


def find_device(stub: Optional[str]) -> Device:
    """The GPU, or a stub if one is named.

    Raises:
        RuntimeError: there is no GPU.
        lamina_runtime.DriverError: the stub is none.
    """
    if stub is not None:
        return Stub(stub)
    if not torch.cuda.is_available():
        why = "is built without CUDA" if torch.version.cuda is None else "finds no CUDA device"
        raise RuntimeError(f"torch {torch.__version__} {why}")
    return GPU()


def interleave(device: Device, calls: Mapping[str, Call], budget: float) -> dict[str, float]:
    """Median seconds of each call: of blocks that take turns, so that all see the same machine.

    Args:
        device: what times them.
        calls: by name; they have run before.
        budget: seconds for all, after which no round begins.
    """
    end = time.perf_counter() + budget
    counts = {}
    for name, call in calls.items():
        once = min(device.seconds(call, 1) for _ in range(2))
        counts[name] = max(1, min(1000, int(BLOCK_SECONDS / max(once, 1e-7))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(device.seconds(call, counts[name]))
        if turn >= 2 and time.perf_counter() > end:
            break
    return {name: statistics.median(each) for name, each in times.items()}
