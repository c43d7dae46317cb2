"""Drivers for packages on a machine without a GPU: one that interprets each kernel's Triton IR, one that only records, a stub."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mlir import ir
from triton.runtime.interpreter import InterpretedFunction

from lamina.compiler import copy_module
from lamina.reference.triton import launch as interpret
from lamina.reference.values import ELEMENT_TYPES
from lamina.targets import get_target
from lamina.targets.triton_target import kernels_of
from lamina_runtime.driver import BoundLaunch, Launcher
from lamina_runtime.plan import Kernel


class HostDriver:
    """A device whose memory is the host's. It remembers what was loaded and launched.

    Attributes:
        images: what was loaded, by the kernel's name.
        launches: kernel, programs, pointers, symbols, of each launch.
    """

    device = torch.device("cpu")

    def __init__(self, capability: int | str = 90, shared_memory: int = 227 << 10):
        self.capability = capability
        self.shared_memory = shared_memory
        self.images: dict[str, bytes] = {}
        self.launches: list[tuple[str, int, list[int], tuple[int, ...]]] = []
        self.is_capturing = False

    def load(self, image: bytes, kernel: Kernel) -> str:
        self.images[kernel.name] = image
        return kernel.name

    def bind(self, function: str, launch: BoundLaunch) -> Launcher:
        def run(pointers: Sequence[int], scratch: int, stream: int) -> None:
            self.launches.append((function, launch.programs, list(pointers), launch.symbols))
            self.execute(launch, pointers)

        return run

    def execute(self, launch: BoundLaunch, pointers: Sequence[int]) -> None:
        """Runs the kernel; nothing here."""

    def stream(self) -> int:
        return 0

    def capturing(self) -> bool:
        return self.is_capturing

    def active(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class InterpreterDriver(HostDriver):
    """Runs kernels in the interpreter of Triton IR, with each address checked against what the plan says lies there.

    Args:
        module: the prim module that the package was made of.
        chip: whose kernels these are, with its target.
        schedule: a file of choices that it was compiled by.
    """

    def __init__(self, module: ir.Module, chip: str = "cuda:sm_90", schedule: Any = None):
        target = get_target(chip, schedule)
        super().__init__(target.description.arch, target.description.shared_memory)
        self._module = copy_module(module)
        for _ in target.lower(self._module):
            pass
        self._functions = dict(kernels_of(self._module))

    def execute(self, launch: BoundLaunch, pointers: Sequence[int]) -> None:
        kernel = launch.kernel
        function = self._functions[kernel.name]
        for address, attributes in zip(pointers, function.attributes["arg_attrs"]):
            if "tt.divisibility" in attributes:
                assert address % ir.IntegerAttr(attributes["tt.divisibility"]).value == 0, kernel.name
        interpret(function, self.memory_of(launch, pointers), launch.symbols, launch.programs)

    def memory_of(self, launch: BoundLaunch, pointers: Sequence[int]) -> list[Any]:
        """The memory of a launch's arguments, as arrays that share it."""
        return [
            _memory(address, count, element)
            for address, count, element in zip(pointers, launch.extents, launch.kernel.pointers)
        ]


class SplitDriver(HostDriver):
    """Runs a split program: parts in the interpreter of Triton IR, the user's kernels in Triton's own.

    Args:
        split: the executable of the program.
        chip: whose kernels these are.
    """

    def __init__(self, split: Any, chip: str = "sm_90"):
        super().__init__(get_target(f"cuda:{chip}").description.arch)
        self._runs: dict[bytes, Any] = {}
        for step in split.steps:
            if step.part is not None:
                inner = InterpreterDriver(step.part.program.module, f"cuda:{chip}")
                for kernel in step.part.executable.images[chip].kernels.values():
                    self._runs[kernel.binary] = inner.execute
        if split.user_images is not None:
            for node, call in split.user_images.calls.items():
                binary = split.user_images.kernels[chip][split.user_images.names[node]].binary
                self._runs[binary] = functools.partial(self._run_user, call)

    def load(self, image: bytes, kernel: Kernel) -> bytes:
        super().load(image, kernel)
        return bytes(image)

    def bind(self, function: Any, launch: BoundLaunch) -> Launcher:
        def run(pointers: Sequence[int], scratch: int, stream: int) -> None:
            self.launches.append((launch.kernel.name, launch.programs, list(pointers), launch.symbols))
            self._runs[function](launch, pointers)

        return run

    def _run_user(self, call: Any, launch: BoundLaunch, pointers: Sequence[int]) -> None:
        """Arguments are put in their places by the plan alone; constants are those that the kernel was compiled for."""
        kernel, count = launch.kernel, len(launch.kernel.pointers) + len(launch.symbols)
        memory = InterpreterDriver.memory_of(self, launch, pointers)  # type: ignore[arg-type]
        tensors = [
            torch.from_numpy(each.view(np.uint8)).view(_TORCH[name]) for each, name in zip(memory, kernel.pointers)
        ]
        places = kernel.places if kernel.places is not None else range(len(tensors))
        numbers = [
            struct.unpack("<f", struct.pack("<I", value))[0] if kind == "f32" else value
            for kind, value in zip(kernel.scalars, launch.symbols)
        ]
        rest = iter(numbers)
        at = dict(zip(places, tensors))
        parameters = iter([at[k] if k in at else next(rest) for k in range(count)])
        names = list(call.function.arg_names)
        given = {
            name: call.constants[(k,)] if (k,) in call.constants else next(parameters) for k, name in enumerate(names)
        }
        InterpretedFunction(call.function.fn)[launch.grid](**given)


_TORCH = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "i1": torch.bool,
}  # fmt: skip


def _memory(address: int, count: int, element: str) -> Any:
    dtype = np.dtype(ELEMENT_TYPES[element])
    buffer = (ctypes.c_byte * (count * dtype.itemsize)).from_address(address if count else ctypes.addressof(_NOTHING))
    return np.frombuffer(buffer, np.uint8).view(dtype)


_NOTHING = (ctypes.c_byte * 1)()


def build_stub(folder: Path) -> str:
    """Compiles stub_driver.c, a CUDA driver that executes nothing; returns the library."""
    library = folder / "libcuda.so.1"
    source = Path(__file__).with_name("stub_driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    return str(library)
