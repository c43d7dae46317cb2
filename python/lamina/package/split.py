"""Packages of programs that are split: compiled parts, the user's own Triton kernels, and operators that PyTorch runs.

Each part is a package of its own inside of the package, in a folder ``parts/<number>``. The plan has ``steps`` instead of host
functions ``main`` and ``init``; its kernels are the user's. See docs/package.md.
"""

from __future__ import annotations

import inspect
import json
import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Optional, Union

import sympy
import torch
import torch.fx

from lamina.errors import CompileError
from lamina.frontend.fallback import SplitExecutable, Step, is_late
from lamina.frontend.importer import is_size_node
from lamina.frontend.locations import module_path, user_frame
from lamina.frontend.sizes import to_size, to_sizes
from lamina.targets import get_target
from lamina.targets.triton_pool import CompiledKernel
from lamina_runtime.archive import CONSTANTS, PLAN, part_folder

from .archive import Contents, write_package
from .build import PackageExecutable, is_folder, kernel_facts, package_facts, save_tensors
from .expressions import Expr, make, of_size, product
from .interface import argument_reader, own_tensors, read_interface
from .user_kernels import UserCall, UserImages, build_user_images


def save_split(
    split: SplitExecutable,
    path: Union[str, os.PathLike[str]],
    signature: Optional[inspect.Signature] = None,
    ptx: bool = True,
    folder: Optional[bool] = None,
    without: Collection[str] = (),
    candidates: int = 0,
    progress: Any = None,
) -> None:
    """Writes the package of a split program; see PackageExecutable.save.

    Raises:
        CompileError: the program has something that a package cannot hold.
        OSError: it cannot be written.
    """
    if without:
        raise CompileError("the weights of a program that is split cannot be left out of its package")
    if candidates:
        raise CompileError("a program that is split has no candidates", hint="tune its parts as programs of their own.")
    writer = _Writer(split, ptx)
    entries = writer.entries(signature)
    with tempfile.TemporaryDirectory(prefix="lamina-") as temporary:
        constants = Path(temporary) / CONSTANTS
        save_tensors(writer.tensors(), constants)
        write_package(Path(path), {**entries, CONSTANTS: constants}, writer.facts(), is_folder(path, folder))


class _Writer:
    """The entries of a package.

    Args:
        split: the program.
        ptx: whether it also runs on chips of CUDA that were not named.
    """

    def __init__(self, split: SplitExecutable, ptx: bool):
        self.split = split
        self.target = get_target(split.options.target)
        self.ptx = ptx and self.target.portable_chip is not None
        self.names: dict[sympy.Symbol, int] = {symbol: k for k, symbol in enumerate(split.program.symbols)}
        self.slots: dict[torch.fx.Node, int] = {a.node: k for k, a in enumerate(split.arguments)}
        self.literals: dict[str, torch.Tensor] = {}
        self.parts: list[PackageExecutable] = []
        self.hosts: dict[str, dict[str, Any]] = {}

    def entries(self, signature: Optional[inspect.Signature]) -> dict[str, Contents]:
        """All but the manifest and the tensors."""
        for node in self.split.graph_module.graph.nodes:
            if node.op == "get_attr" and node not in self.slots:
                value = torch.fx.graph_module._get_attr(self.split.graph_module, str(node.target))
                if isinstance(value, torch.Tensor):
                    self.literals[str(len(self.slots))] = value.detach()
                    self._slot(node)
        steps = [self._step(step) for step in self.split.steps]
        entries: dict[str, Contents] = {}
        chips = self._chips(entries)
        plan = {
            "call": read_interface(self.split.program, signature),
            "programs": [self.hosts],
            "chips": chips,
            "steps": steps,
            "parts": len(self.parts),
            "slots": len(self.slots),
            "outputs": [self._read(node) for node, _ in self.split.results],
        }
        entries[PLAN] = json.dumps(plan, sort_keys=True).encode()
        for number, part in enumerate(self.parts):
            for name, contents in part.entries(None, self.ptx).items():
                entries[part_folder(number) + name] = contents
        return entries

    def tensors(self) -> dict[str, torch.Tensor]:
        """The program's own, and those that stand in its graph."""
        own = {f"tensor/{key}": tensor for key, tensor in own_tensors(self.split.program).items()}
        return {**own, **{f"literal/{slot}": tensor for slot, tensor in self.literals.items()}}

    def facts(self) -> dict[str, Any]:
        """What the manifest says."""
        kernels = [kernel for part in self.parts for image in part.images.values() for kernel in image.kernels.values()]
        images = self.split.user_images
        if images is not None:
            kernels += [kernel for each in images.kernels.values() for kernel in each.values()]
        return package_facts(self.target, kernels, self.ptx)

    # ---- steps

    def _slot(self, node: torch.fx.Node) -> int:
        return self.slots.setdefault(node, len(self.slots))

    def _read(self, node: torch.fx.Node) -> int:
        if node not in self.slots:
            raise _refused(node, "whose value is no tensor")
        return self.slots[node]

    def _size(self, size: Any) -> Expr:
        return of_size(to_size(size), self.names)

    def _step(self, step: Step) -> dict[str, Any]:
        if step.part is not None:
            self.parts.append(step.part.executable)
            reads = [self._read(node) for node in step.reads]
            numbers = [of_size(symbol, self.names) for symbol in step.part.symbols]
            writes = [self._slot(node) for node in step.writes]
            return {"part": len(self.parts) - 1, "reads": reads, "numbers": numbers, "writes": writes}
        (node,) = step.writes
        if is_late(node):
            raise _refused(node, "whose result is a size that depends on data")
        call = self.split.user_images.calls.get(node) if self.split.user_images is not None else None
        return self._launch(node, call) if call is not None else self._operator(node)

    def _operator(self, node: torch.fx.Node) -> dict[str, Any]:
        """A call that PyTorch runs, or the choice of one of several results."""
        if isinstance(node.target, torch._ops.OpOverload):
            name = str(node.target)
        elif getattr(node.target, "__name__", "") == "getitem":
            name = "getitem"
        else:
            raise _refused(node, "which is no operator")
        read = argument_reader(self._argument)
        data = {
            "op": name,
            "arguments": [read(argument) for argument in node.args],
            "named": {key: read(argument) for key, argument in node.kwargs.items()},
        }
        return {**data, "writes": [self._slot(node)]}

    def _argument(self, argument: Any) -> Optional[dict[str, Any]]:
        """A node as an argument of an operator."""
        if not isinstance(argument, torch.fx.Node):
            return None
        if is_size_node(argument) and argument not in self.slots:
            value = argument.meta["val"]
            if not isinstance(value, (torch.SymInt, int)) or is_late(argument):
                raise _refused(argument, "a number that is computed from sizes, or depends on data")
            return {"size": self._size(value)}
        if argument.op == "placeholder" and argument not in self.slots:
            return {"value": None}
        return {"slot": self._read(argument)}

    def _launch(self, node: torch.fx.Node, call: UserCall) -> dict[str, Any]:
        """A kernel of the user's; its host function takes the tensors."""
        images: UserImages = self.split.user_images
        host = f"launch{len(self.hosts)}"
        places, tensors = [], []
        for number, source in enumerate(call.tensors.values()):
            fake = source.meta["val"]
            sizes = [of_size(size, self.names) for size in to_sizes(fake.shape)]
            strides = [of_size(stride, self.names) for stride in to_sizes(fake.stride())]
            steps = [product([make("+", size, -1), stride]) for size, stride in zip(sizes, strides)]
            extent = make("max", 0, make("+", 1, *steps)) if steps else 1
            places.append({"base": number, "offset": 0, "extent": extent})
            tensors.append(
                {"slot": self._read(source), "sizes": sizes, "strides": strides, "own": self._is_own(source)}
            )
        axes = [self._size(axis) for axis in call.axes]
        launch = {
            "kernel": images.names[node],
            "grid": product(axes),
            "axes": axes,
            "arguments": places,
            "symbols": [self._size(value) for _, value in call.scalars],
            "line": call.location,
        }
        self.hosts[host] = {"constants": [None] * len(tensors), "results": [], "arena": 0, "launches": [launch]}
        names = list(call.tensors)
        written = {name: names.index(name) for name in call.written}
        return {"host": host, "tensors": tensors, "written": written, "writes": [self._slot(node)]}

    def _is_own(self, source: torch.fx.Node) -> bool:
        """Whether nothing but one call sees a value's memory, so that a kernel may write to it."""
        made = {node for step in self.split.steps if step.part is not None for node in step.writes}
        returned = {node for node, _ in self.split.results}
        return source in made.union(self.split.buffers) - returned and len(source.users) == 1

    # ---- kernels

    def _chips(self, entries: dict[str, Contents]) -> dict[str, Any]:
        """The user's kernels for each chip; their code becomes entries."""
        chips: dict[str, Any] = {}
        images = self.split.user_images
        for chip in self.target.chips:
            suffix = self.target.toolchain.binary
            kernels = images.kernels[chip.name] if images is not None else {}
            chips[chip.name] = {"program": 0, "kernels": self._kernels(chip.name, kernels, suffix, entries)}
        if self.ptx:
            portable = self.target.portable_chip
            kernels = {}
            if images is not None:
                made = build_user_images(list(images.calls), self.target, [portable])
                kernels = made.kernels[portable]
            chips["ptx"] = {"program": 0, "kernels": self._kernels("ptx", kernels, "ptx", entries), "chip": portable}
        return chips

    def _kernels(
        self, key: str, kernels: Mapping[str, CompiledKernel], suffix: str, entries: dict[str, Contents]
    ) -> dict[str, Any]:
        images = self.split.user_images
        facts = {}
        for name, kernel in kernels.items():
            file = f"kernels/{key}/{name}.{suffix}"
            entries[file] = kernel.asm["ptx"].encode() if key == "ptx" else kernel.binary
            call = next(call for node, call in images.calls.items() if images.names[node] == name)
            signature = {"pointers": call.pointees, "scalars": [type for type, _ in call.scalars]}
            facts[name] = {
                **kernel_facts(kernel, signature, file),
                "warp_size": self.target.known[self.target.portable_chip if key == "ptx" else key].warp_size,
                "places": call.places,
            }
        return facts


def _refused(node: torch.fx.Node, why: str) -> CompileError:
    frame = user_frame(node)
    return CompileError(
        f"a package cannot hold {node.target}, {why}",
        op=str(node.target),
        location=str(frame) if frame else None,
        hint="rewrite the line so that it can be compiled.",
        module=module_path(node) or None,
    )
