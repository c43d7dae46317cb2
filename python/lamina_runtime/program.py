"""Loaded programs: a package on a device, called like the model that it was made of."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Optional, Union

import torch

from . import structure
from .archive import CONSTANTS, Archive
from .call import Call, dtype_of
from .driver import CudaDriver, Driver
from .errors import DriverError, PackageError
from .expressions import evaluate
from .host import HostProgram, load_kernels
from .plan import Image, Package, checking, choose_image, contents, is_cuda, read_package
from .split import SplitHost
from .tensors import read_tensors


def read(path: Union[str, os.PathLike[str]], verify: bool = True) -> Package:
    """Reads a package, for which no device is needed.

    Args:
        path: a file, or a folder.
        verify: whether its contents are compared with their hashes.

    Raises:
        PackageError: it is none, is damaged, not complete, or of another format.
        OSError: it cannot be read.
    """
    return read_package(Archive.open(path, verify))


def load(
    path: Union[str, os.PathLike[str]],
    device: Union[str, torch.device, None] = None,
    driver: Optional[Driver] = None,
    verify: bool = True,
    weights: Optional[Mapping[str, torch.Tensor]] = None,
    libraries: Collection[str] = (),
) -> Program:
    """Loads a package on a device.

    Args:
        path: a file, or a folder.
        device: a CUDA device of torch; by default the current one.
        driver: what runs the kernels instead of the CUDA driver, or on chips that are not CUDA's; see
            lamina_runtime.driver.Driver.
        verify: whether the package's contents are compared with their hashes.
        weights: by name, those that were left out of the package (``save(without=...)``), such as a ``state_dict()``; others
            are of no matter. They are copied.
        libraries: namespaces of operators that it may call beside PyTorch's own, where PyTorch runs a part of the program;
            what registers them must have been imported.

    Returns:
        An object that is called as the model is.

    Raises:
        PackageError: the package is damaged, has nothing that runs on the device, or lacks a weight.
        DriverError: there is no CUDA driver, or it refuses a kernel; or the package is for other chips alone.
        OSError: the package cannot be read.
    """
    package = read(path, verify)
    return Program(package, driver if driver is not None else default_driver(package, device), weights, libraries)


def default_driver(package: Package, device: Union[str, torch.device, None] = None) -> Driver:
    """What runs a package where nothing else was given: the CUDA driver.

    Raises:
        DriverError: there is none, or the package is for other chips alone.
    """
    if not is_cuda(package):
        raise DriverError(
            f"{contents(package)}, which lamina-runtime has no launcher for: it launches on CUDA devices; give "
            "lamina_runtime.load a driver= for others"
        )
    return CudaDriver(_indexed(device) if device is not None else None)


def _indexed(device: Union[str, torch.device]) -> torch.device:
    device = torch.device(device)
    if device.type != "cuda":
        raise ValueError(f"the device is {device}, expected a CUDA device")
    return device if device.index is not None else torch.device("cuda", torch.cuda.current_device())


class Program:
    """A package on a device. Threads may call it at the same time.

    Args:
        package: what was read.
        driver: the device.
        weights: those that the package does not hold.
        libraries: see load.

    Attributes:
        wait: whether a call waits for the results of its checks, such as of indices, if the program has any, and raises
            eager's error. If not, and while a CUDA graph is recorded, `raise_if_failed` does so.
    """

    def __init__(
        self,
        package: Package,
        driver: Driver,
        weights: Optional[Mapping[str, torch.Tensor]] = None,
        libraries: Collection[str] = (),
    ):
        self.package = package
        self.driver = driver
        self.wait = True
        self.image: Image = choose_image(package, driver.capability)
        kernels = load_kernels(self.image.kernels, package.archive, driver)
        stored = read_tensors(package.archive[CONSTANTS], driver.device)
        constants = {**_named(stored, "constant/"), **_outside(package, weights or {}, driver.device)}
        hosts = {name: HostProgram(host, kernels, driver) for name, host in self.image.hosts.items()}
        if "init" in hosts:
            constants.update(_run_init(hosts["init"], constants, driver))
        main: Union[HostProgram, SplitHost]
        self._parts: list[Program] = []
        if package.parts is not None:
            self._parts = [Program(part, driver) for part in package.parts]
            with checking(package.archive.name):
                literals = _named(stored, "literal/")
                count, device = package.symbols, driver.device
                main = SplitHost(package.archive, self._parts, hosts, literals, count, libraries, device)
            used = set()
        else:
            main = hosts["main"]
            used = {key for key in main.host.constants if key is not None}
        if not used <= set(constants):
            raise PackageError(f"{package.archive.name} has no constant {sorted(used - set(constants))[0]}")
        with checking(package.archive.name):
            tensors = {
                key: tensor.permute(_inverse(package.call["tensors"][key]["order"]))
                for key, tensor in _named(stored, "tensor/").items()
            }
        call = package.call
        with checking(package.archive.name):
            self._call = Call(call, tensors, {key: constants[key] for key in used}, main, driver)
            positional, named = call["arguments"]["children"]
            self._positional = len(positional["children"])
            self._names: list[str] = list(named["keys"])
        self._flat = not self._names and all(child is None for child in positional["children"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program on torch's current stream.

        Raises:
            TypeError: an argument is missing, too many, or of another type, dtype, device or structure.
            ValueError: a size is not what the program was compiled for.
            Whatever eager raises, where the program itself fails (see `wait`).
        """
        if self._flat and not kwargs and len(args) == self._positional:
            return self._call(args, self.wait)
        if len(args) != self._positional or set(kwargs) != set(self._names):
            args, kwargs = self._rearranged(args, kwargs)
        tree = self.package.call["arguments"]
        return self.call_leaves(list(structure.flatten(tree, (args, kwargs))))

    def call_leaves(self, leaves: Sequence[Any]) -> Any:
        """Runs the program with the leaves of its arguments."""
        return self._call(leaves, self.wait)

    def call_part(self, leaves: Sequence[Any], wait: bool) -> list[Any]:
        """Runs the program as a part of another, see lamina_runtime.split."""
        return self._call(leaves, wait)

    def run_main(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], symbols: Sequence[int]) -> None:
        """Runs the host function main alone: nothing is checked.

        Args:
            inputs: its arguments that are no constants, contiguous.
            outputs: its results, to be written, contiguous and aligned to 16 bytes.
            symbols: values of the index symbols.
        """
        self._call.run_main(inputs, outputs, tuple(symbols))

    def raise_if_failed(self) -> None:
        """Waits for the checks of the last call that did not wait for them, and raises eager's error if one failed."""
        outcomes = self._call.pending
        if outcomes is not None:
            outcomes.raise_if_failed()
        for part in self._parts:
            part.raise_if_failed()

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels."""
        return [*self.image.kernels, *(name for part in self._parts for name in part.kernels)]

    def _rearranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        parameters = self.package.call["parameters"]
        if parameters is None or len(args) > len(parameters):
            raise TypeError(
                f"expected {self._positional} arguments by position and {self._names or 'none'} by name, "
                f"got {len(args)} and {list(kwargs) or 'none'}"
            )
        bound = dict(zip(parameters, args))
        for name, value in kwargs.items():
            if name in bound:
                raise TypeError(f"argument '{name}' is given twice")
            bound[name] = value
        wanted = parameters[: self._positional] + self._names
        for name in bound:
            if name not in wanted:
                raise TypeError(f"argument '{name}' was not given when the program was compiled")
        for name in wanted:
            if name not in bound:
                raise TypeError(f"argument '{name}' is missing: the program was compiled with it")
        return tuple(bound[n] for n in wanted[: self._positional]), {n: bound[n] for n in self._names}


def _named(stored: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in stored.items() if name.startswith(prefix)}


def _outside(package: Package, weights: Mapping[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """The constants that the package does not hold, on the device, in the order of their memory."""
    found = {}
    for name, facts in package.weights.items():
        if name not in weights:
            raise PackageError(
                f"{package.archive.name} was saved without the weight {name}: give it by load(weights=...)"
            )
        weight, sizes = weights[name].detach(), tuple(facts["sizes"])
        with checking(package.archive.name):
            dtype = dtype_of(facts["dtype"])
        if weight.dtype is not dtype or tuple(weight.shape) != sizes:
            raise PackageError(
                f"{package.archive.name}: the weight {name} is {weight.dtype} of sizes {tuple(weight.shape)}, expected "
                f"{dtype} of sizes {sizes}"
            )
        # A copy: what happens to the caller's tensor must not change a program that is loaded.
        placed = torch.empty([sizes[k] for k in facts["order"]], dtype=dtype, device=device)
        found[name] = placed.copy_(weight.permute(facts["order"]))
    return found


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(k) for k in range(len(order))]


def _run_init(init: HostProgram, constants: dict[str, torch.Tensor], driver: Driver) -> dict[str, torch.Tensor]:
    """The constants that are computed once."""
    missing = [key for key in init.host.constants if key not in constants]
    if missing:
        raise PackageError(f"the package has no constant {missing[0]}")
    made = [torch.empty(evaluate(size, ()), dtype=torch.uint8, device=driver.device) for size in init.host.results]
    init.run([constants[str(key)].data_ptr() for key in init.host.constants] + [t.data_ptr() for t in made], ())
    return {f"init.{number}": tensor for number, tensor in enumerate(made)}
