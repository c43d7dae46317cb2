"""Devices. `Driver` is the seam between a program and what runs its kernels; `CudaDriver` calls the CUDA driver.

Any object with the attributes and methods of `Driver` can be given to `lamina_runtime.load(path, driver=...)`: a recorder of
launches, or something that runs kernels without a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Protocol, Union

import torch

from .errors import DriverError
from .plan import Kernel


@dataclass(frozen=True)
class BoundLaunch:
    """A launch whose sizes are known.

    Attributes:
        kernel: the kernel.
        programs: of its grid, at least 1.
        grid: programs along each axis; by default all along the first.
        symbols: values of its scalar arguments.
        extents: elements that lie at each of its pointers.
    """

    kernel: Kernel
    programs: int
    symbols: tuple[int, ...]
    extents: tuple[int, ...]
    grid: Optional[tuple[int, ...]] = None


Launcher = Callable[[Sequence[int], int, int], None]
"""Runs a bound launch; called with the addresses of the pointer arguments, that of the scratch memory, and the stream."""


class Driver(Protocol):
    """What runs kernels.

    Attributes:
        device: where the tensors of a call are.
        capability: 90 for 9.0; of a device that is not CUDA's, the chip's name as packages have it.
        shared_memory: the most bytes of it that a program may have.
    """

    device: torch.device
    capability: Union[int, str]
    shared_memory: int

    def load(self, image: bytes, kernel: Kernel) -> Any:
        """Loads an image of one kernel; the result is for `bind`."""

    def bind(self, function: Any, launch: BoundLaunch) -> Launcher:
        """Prepares a launch. Two threads never call what this returns at the same time."""

    def stream(self) -> int:
        """The handle of the current stream."""

    def capturing(self) -> bool:
        """Whether the current stream records a graph, so that nothing may wait for it."""

    def active(self) -> contextlib.AbstractContextManager[None]:
        """Makes the device's context current in this thread."""


class _LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    ]


_MAX_GRID = (2**31 - 1, 65535, 65535)
"""Programs along each axis."""
_SHARED_MEMORY_OPTIN = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_SHARED_MEMORY_ALWAYS = 48 << 10  # more must be asked for


class CudaDriver:
    """A device of the CUDA driver, by ctypes.

    Args:
        device: a CUDA device of torch; by default the current one.
        library: the driver's library; by default LAMINA_LIBCUDA, or ``libcuda.so.1``.

    Raises:
        DriverError: there is no driver, no such device, or torch cannot use it.
    """

    def __init__(self, device: Optional[torch.device] = None, library: Optional[str] = None):
        self._library = _open(library or os.environ.get("LAMINA_LIBCUDA") or "libcuda.so.1")
        self._call("cuInit", 0)
        self.device = device if device is not None else _current_device()
        handle = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(handle), self.device.index or 0)
        self.capability: Union[int, str] = 10 * self._attribute(_CAPABILITY_MAJOR, handle) + self._attribute(
            _CAPABILITY_MINOR, handle
        )
        self.shared_memory = self._attribute(_SHARED_MEMORY_OPTIN, handle)
        # The context that torch uses too.
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), handle)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise DriverError(f"{name} failed: {self._describe(code)}")

    def _describe(self, code: int) -> str:
        texts = []
        for query in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if not getattr(self._library, query)(code, ctypes.byref(text)) and text.value:
                texts.append(text.value.decode())
        return ": ".join(texts) or f"error {code}"

    def _attribute(self, attribute: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value

    def load(self, image: bytes, kernel: Kernel) -> ctypes.c_void_p:
        """The function of a cubin, or of PTX, which the driver then compiles.

        Raises:
            DriverError: the driver does not take it.
        """
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            # PTX ends with a zero byte, which does a cubin no harm.
            self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image + b"\0"))
            self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.entry.encode())
            if kernel.shared > _SHARED_MEMORY_ALWAYS:
                self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, kernel.shared)
        except DriverError as error:
            raise DriverError(f"the kernel {kernel.name} cannot be loaded: {error}") from error
        return function

    def bind(self, function: ctypes.c_void_p, launch: BoundLaunch) -> Launcher:
        """Prepares a launch: all but addresses and stream is written once."""
        kernel = launch.kernel
        for programs, most in zip(launch.grid or (launch.programs,), _MAX_GRID):
            if programs > most:
                raise DriverError(f"{kernel.name} needs {programs} programs; a grid has at most {most} along this axis")
        pointers = len(kernel.pointers)
        scratch = pointers + len(kernel.scalars)
        # A slot of 8 bytes each; the smaller types are the first bytes of it.
        values = (ctypes.c_uint64 * max(1, scratch + kernel.hidden))()
        places = kernel.places if kernel.places is not None else tuple(range(pointers))
        rest = [slot for slot in range(scratch) if slot not in places]
        for slot, symbol in zip(rest, launch.symbols):
            values[slot] = symbol & (2**64 - 1)
        in_order = places == tuple(range(pointers))
        start = ctypes.addressof(values)
        addresses = (ctypes.c_void_p * len(values))(*(start + 8 * i for i in range(len(values))))
        config = _LaunchConfig()
        config.grid[:] = launch.grid or [launch.programs, 1, 1]
        config.block[:] = [kernel.threads, 1, 1]
        config.shared = kernel.shared
        config_pointer = ctypes.byref(config)
        call = self._library.cuLaunchKernelEx

        def run(given: Sequence[int], scratch_address: int, stream: int) -> None:
            if in_order:
                values[:pointers] = given  # type: ignore[call-overload]
            else:
                for slot, address in zip(places, given):
                    values[slot] = address
            if kernel.hidden:
                values[scratch] = scratch_address
            config.stream = stream
            code = call(config_pointer, function, addresses, None)
            if code:
                raise DriverError(f"the launch of {kernel.name} failed: {self._describe(code)}")

        return run

    def stream(self) -> int:
        """torch's current stream."""
        if self.device.type != "cuda":
            return 0
        return torch.cuda.current_stream(self.device).cuda_stream

    def capturing(self) -> bool:
        """Whether torch records a CUDA graph."""
        return self.device.type == "cuda" and torch.cuda.is_current_stream_capturing()

    def active(self) -> contextlib.AbstractContextManager[None]:
        """A thread that has not used CUDA has no context, and one may be using another device."""
        current = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(current))
        return _ACTIVE if current.value == self._context.value else self._pushed()

    @contextlib.contextmanager
    def _pushed(self) -> Iterator[None]:
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


_ACTIVE = contextlib.nullcontext()


def _open(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise DriverError(
            f"{name}, the CUDA driver, cannot be loaded ({error}): programs for CUDA run only where an NVIDIA GPU and its "
            "driver are installed"
        ) from error


def _current_device() -> torch.device:
    if torch.version.cuda is None:
        raise DriverError(
            f"this torch ({torch.__version__}) is built without CUDA; install a build with it to run programs for CUDA"
        )
    if not torch.cuda.is_available():
        raise DriverError("torch finds no CUDA device")
    return torch.device("cuda", torch.cuda.current_device())
