"""From a program to a package: kernels for each chip, the launch plan, constants; and its executable in this process."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import json
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Optional, Union

import torch

from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.frontend.importer import Argument
from lamina.frontend.program import Program
from lamina.logging import get_logger, timed
from lamina.targets.choices import Choice, choice_of
from lamina.targets.schedule import compile_scheduled
from lamina.targets.triton_pool import CompiledKernel
from lamina.targets.triton_target import TritonTarget, kernels_of
from lamina_runtime.archive import CONSTANTS, MANIFEST, PLAN, Archive
from lamina_runtime.driver import Driver
from lamina_runtime.expressions import evaluate

from .archive import Contents, make_manifest, write_package
from .candidates import Progress, Tunable, build_candidates
from .hosts import read_extents, read_hosts, read_signature
from .interface import own_tensors, read_interface

if TYPE_CHECKING:
    from lamina.census import Census

log = get_logger("cuda")

_POINTER_BYTES = 8
_SCALAR_BYTES = {"i32": 4, "i64": 8}


@dataclass(frozen=True)
class Image:
    """A program for one chip.

    Attributes:
        chip: its name.
        hosts: the launch plan of each host function.
        kernels: machine code by name.
        signatures: of each kernel, see read_signature.
        choices: how each kernel was compiled.
    """

    chip: str
    hosts: dict[str, dict[str, Any]]
    kernels: dict[str, CompiledKernel]
    signatures: dict[str, dict[str, Any]]
    choices: dict[str, Choice]


def build_images(module: Any, target: TritonTarget, chips: Sequence[str]) -> dict[str, Image]:
    """Compiles a prim module, which is left as it is, for some chips of a target.

    Every chip has a launch plan of its own, since what shares a kernel depends on it; all kernels are compiled at once.

    Raises:
        CompileError: a pass or Triton failed, a kernel does not fit a chip, or the plan cannot be said.
    """
    parts, jobs = [], []
    for chip in chips:
        one, copy = target.on(chip), copy_module(module)
        extents: dict[str, Any] = {}

        def read(phase: str, module: Any = copy, into: dict[str, Any] = extents) -> None:
            if phase == "planned":
                into.update(read_extents(module))

        mine = one.jobs(copy, reached=read)
        parts.append((chip, copy, extents, len(mine)))
        jobs += mine
    with timed(log, f"Triton: {len(jobs)} kernels"):
        compiled = iter(compile_scheduled(jobs))
    names = iter([job.request.name for job in jobs])
    images = {}
    for chip, lowered, extents, count in parts:
        kernels = {next(names): next(compiled) for _ in range(count)}
        functions = dict(kernels_of(lowered))
        signatures = {name: read_signature(op) for name, op in functions.items()}
        choices = {name: choice_of(functions[name], kernel) for name, kernel in kernels.items()}
        for name, kernel in kernels.items():
            _check_parameters(name, kernel, signatures[name])
        images[chip] = Image(chip, read_hosts(lowered, extents), kernels, signatures, choices)
    return images


def _check_parameters(name: str, kernel: CompiledKernel, signature: dict[str, Any]) -> None:
    """The entry point must take what the plan passes: pointers, scalars, and Triton's own two pointers or fewer."""
    expected = [_POINTER_BYTES] * len(signature["pointers"])
    expected += [_SCALAR_BYTES.get(type, 0) for type in signature["scalars"]]
    hidden = kernel.parameters[len(expected) :]
    if list(kernel.parameters[: len(expected)]) != expected or any(width != _POINTER_BYTES for width in hidden):
        raise CompileError(
            f"Triton gave the kernel {name} parameters of {kernel.parameters} bytes, expected {expected}"
        )
    if kernel.clusters != 1:
        raise CompileError(f"the kernel {name} runs in clusters, which a package cannot launch yet")


class PackageExecutable:
    """A program in this process that can be a package.

    Args:
        program: what is compiled.
        target: for which chips.

    Attributes:
        images: by chip.
        driver: what runs the kernels, if set before the first call; by default the current CUDA device.

    Raises:
        CompileError: see build_images.
    """

    def __init__(self, program: Program, target: TritonTarget):
        self.program = program
        self.target = target
        self.constants = {
            argument.constant: program.tensors[argument.constant]
            for argument in program.arguments
            if argument.constant is not None
        }
        self.images = build_images(program.module, target, [chip.name for chip in target.chips])
        self.driver: Optional[Driver] = None

    # ---- what it is

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels, those of the first chip first."""
        return list(dict.fromkeys(name for image in self.images.values() for name in image.kernels))

    @property
    def report(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Of each chip and kernel: warps, stages, registers, bytes of shared memory and of what is spilt, and of code."""
        return {
            chip: {
                name: {
                    "warps": kernel.warps,
                    "stages": kernel.stages,
                    "registers": kernel.registers,
                    "spills": kernel.spills,
                    "shared": kernel.shared,
                    "code": len(kernel.binary),
                }
                for name, kernel in image.kernels.items()
            }
            for chip, image in self.images.items()
        }

    def census(self, symbols: Sequence[int] = (), instructions: bool = True) -> dict[str, Census]:
        """What the kernels of each chip are made of, move and compute.

        Args:
            symbols: values of the program's symbols, for bytes, operations and times.
            instructions: whether the machine code is read, which takes tenths of a second for each kernel.

        Raises:
            CompileError: the target's machine code cannot be read.
        """
        if not getattr(self.target, "has_census", False):
            raise CompileError(
                f"the target {self.target.name!r} has no census", hint='use target="cuda:sm_90", for example.'
            )
        from lamina.census import build_census, count_work

        return {
            chip: build_census(image, count_work(self.program.module, self.target.on(chip)), symbols, instructions)
            for chip, image in self.images.items()
        }

    def arena_bytes(self, symbols: Sequence[int]) -> int:
        """Bytes of temporary memory that a call needs on the first chip."""
        image = next(iter(self.images.values()))
        return evaluate(image.hosts["main"]["arena"], symbols)

    # ---- calls

    @functools.cached_property
    def _loaded(self) -> Any:
        from lamina_runtime.plan import read_package
        from lamina_runtime.program import Program, default_driver

        entries = _in_memory(self.entries(None, ptx=False), self._facts(ptx=False))
        package = read_package(Archive(entries, "the program", verify=False))
        return Program(package, self.driver if self.driver is not None else default_driver(package))

    def call_leaves(self, leaves: Sequence[Any]) -> Any:
        """Calls the program with the leaves of its arguments, which are on the current device.

        Raises:
            lamina_runtime.DriverError: there is no CUDA driver, or the program is for no chip of CUDA.
            lamina_runtime.PackageError: the program was not compiled for the device.
            Whatever else a call of a program raises.
        """
        return self._loaded.call_leaves(leaves)

    def __call__(self, inputs: list[torch.Tensor], outputs: list[Any], symbols: list[int]) -> None:
        """Runs @main on tensors of the device; see lamina.frontend.program.Executable."""
        self._loaded.run_main(inputs, outputs, symbols)

    # ---- packages

    def save(
        self,
        path: Union[str, os.PathLike[str]],
        signature: Optional[inspect.Signature] = None,
        ptx: bool = True,
        folder: Optional[bool] = None,
        without: Collection[str] = (),
        candidates: int = 0,
        progress: Optional[Progress] = None,
    ) -> None:
        """Writes the package that lamina_runtime.load reads.

        Args:
            path: its place, which is replaced.
            signature: the model's, so that arguments may be given by name.
            ptx: whether it also holds PTX, for chips of CUDA that it has no machine code for.
            folder: whether it is a folder of files instead of one; by default, if `path` is a folder or ends with a slash.
            without: names of weights that are left out, as in the model's ``state_dict()``; `load` must be given them.
            candidates: in how many other ways, at most, it also holds each kernel, for lamina_runtime.tune to measure.
            progress: told how many of these are compiled, of how many.

        Raises:
            CompileError: the program has something that a package cannot hold.
            OSError: it cannot be written.
        """
        tunables = {
            chip: build_candidates(self.program.module, self.target.on(chip), image.choices, candidates, progress)
            for chip, image in (self.images.items() if candidates else ())
        }
        entries = self.entries(signature, ptx, constants=False, without=without, tunables=tunables)
        with tempfile.TemporaryDirectory(prefix="lamina-") as temporary:
            constants = Path(temporary) / CONSTANTS
            save_tensors(self._tensors(ptx, without), constants)
            write_package(Path(path), {**entries, CONSTANTS: constants}, self._facts(ptx), is_folder(path, folder))

    def _all_images(self, ptx: bool) -> dict[str, Image]:
        return {**self.images, "ptx": self._ptx} if ptx and self.target.portable_chip else self.images

    @functools.cached_property
    def _ptx(self) -> Image:
        chip = self.target.portable_chip
        assert chip is not None, "of a target that has one"
        return self.images.get(chip) or build_images(self.program.module, self.target, [chip])[chip]

    def entries(
        self,
        signature: Optional[inspect.Signature],
        ptx: bool,
        constants: bool = True,
        without: Collection[str] = (),
        tunables: Mapping[str, Mapping[str, Tunable]] = MappingProxyType({}),
    ) -> dict[str, Contents]:
        """The entries of a package but the manifest."""
        entries: dict[str, Contents] = {}
        programs: list[dict[str, Any]] = []
        chips = {}
        for key, image in self._all_images(ptx).items():
            if image.hosts not in programs:
                programs.append(image.hosts)
            kernels = {}
            suffix = key if key == "ptx" else self.target.toolchain.binary

            def add(
                name: str, kernel: CompiledKernel, file: str, image: Image = image, is_text: bool = key == "ptx"
            ) -> dict[str, Any]:
                entries[file] = kernel.asm["ptx"].encode() if is_text else kernel.binary
                warp_size = self.target.known[image.chip].warp_size
                return {**kernel_facts(kernel, image.signatures[name], file), "warp_size": warp_size}

            for name, kernel in image.kernels.items():
                place = f"kernels/{key}/{name}"
                kernels[name] = add(name, kernel, f"{place}.{suffix}")
                if tunable := tunables.get(key, {}).get(name):
                    kernels[name]["tuning"] = {
                        "key": tunable.key,
                        "chip": kernel.chip,
                        "choice": image.choices[name].to_json(),
                        "candidates": [
                            {
                                **add(name, each.kernel, f"{place}.{number}.{suffix}"),
                                "choice": each.choice.to_json(),
                                "grid": each.grid,
                            }
                            for number, each in enumerate(tunable.candidates)
                        ],
                    }
            chips[key] = {"program": programs.index(image.hosts), "kernels": kernels}
            if key == "ptx":
                chips[key]["chip"] = image.chip
        plan: dict[str, Any] = {
            "call": read_interface(self.program, signature),
            "programs": programs,
            "chips": chips,
        }
        weights = {
            key: {
                "dtype": str(argument.dtype).removeprefix("torch."),
                "sizes": list(self.constants[key].shape),
                "order": list(argument.permutation),
            }
            for key, argument in self._used(ptx).items()
            if key in without
        }
        if weights:
            plan["weights"] = weights
        entries[PLAN] = json.dumps(plan, sort_keys=True).encode()
        if constants:
            entries[CONSTANTS] = _tensors_as_bytes(self._tensors(ptx))
        return entries

    def _facts(self, ptx: bool) -> dict[str, Any]:
        kernels = [kernel for image in self.images.values() for kernel in image.kernels.values()]
        return package_facts(self.target, kernels, ptx)

    def _used(self, ptx: bool) -> dict[str, Argument]:
        """The constants that host functions take, by their keys."""
        used = {
            key
            for image in self._all_images(ptx).values()
            for host in image.hosts.values()
            for key in host["constants"]
            if key is not None
        }
        return {
            argument.constant: argument
            for argument in self.program.arguments
            if argument.constant is not None and argument.constant in used
        }

    def _tensors(self, ptx: bool, without: Collection[str] = ()) -> dict[str, torch.Tensor]:
        """What the host functions take as constants, in the order of their memory, and the program's own tensors."""
        tensors = {
            f"constant/{key}": self.constants[key].detach().permute(argument.permutation).contiguous()
            for key, argument in self._used(ptx).items()
            if key not in without
        }
        return {**tensors, **{f"tensor/{key}": tensor for key, tensor in own_tensors(self.program).items()}}


def is_folder(path: Union[str, os.PathLike[str]], folder: Optional[bool]) -> bool:
    """Whether a package becomes a folder: if asked for, and else if its place is one or ends with a slash."""
    return folder if folder is not None else Path(path).is_dir() or str(path).endswith(("/", os.sep))


def package_facts(target: TritonTarget, kernels: Sequence[CompiledKernel], ptx: bool) -> dict[str, Any]:
    """What a manifest says beside its entries: versions and chips."""
    versions = {"lamina": _version("lamina"), "torch": torch.__version__}
    if kernels:
        versions["triton"] = kernels[0].triton
    tools = sorted({item for kernel in kernels for item in kernel.tools.items()})
    for tool, version in tools:
        versions[tool] = f"{versions[tool]}, {version}" if tool in versions else version
    chip = target.portable_chip if ptx else None
    if chip is not None:
        major, minor = divmod(dict(target.known[chip].options)["ptx_version"], 10)
        versions["ptx"] = f"{major}.{minor}"
    return {"versions": versions, "chips": [chip.name for chip in target.chips], "ptx": chip}


def kernel_facts(kernel: CompiledKernel, signature: dict[str, Any], file: str) -> dict[str, Any]:
    """What a plan says of a kernel."""
    return {
        "entry": kernel.name,
        "file": file,
        "warps": kernel.warps,
        "shared": kernel.shared,
        "scratch": kernel.scratch,
        "scratch_alignment": kernel.scratch_alignment,
        "pointers": signature["pointers"],
        "scalars": signature["scalars"],
        "hidden": len(kernel.parameters) - len(signature["pointers"]) - len(signature["scalars"]),
        "registers": kernel.registers,
        "spills": kernel.spills,
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _in_memory(entries: dict[str, Contents], facts: dict[str, Any]) -> dict[str, bytes]:
    return {
        **{name: data for name, data in entries.items() if isinstance(data, bytes)},
        MANIFEST: json.dumps(make_manifest(entries, facts)).encode(),
    }


def _apart(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors on the CPU, none of which shares memory with another, as safetensors wants them."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        tensor = tensor.cpu()
        place = tensor.untyped_storage().data_ptr()
        result[name] = tensor.clone() if place in seen else tensor
        seen.add(place)
    return result


def save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Writes a file of safetensors.

    Raises:
        OSError: it cannot be written.
    """
    from safetensors.torch import save_file

    save_file(_apart(tensors), path)


def _tensors_as_bytes(tensors: dict[str, torch.Tensor]) -> bytes:
    from safetensors.torch import save

    return save(_apart(tensors))
