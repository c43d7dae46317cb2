"""What targets have in common whose kernels Triton compiles: chips, the tools behind Triton, phases, packages.

A target of this kind is a subclass of TritonTarget with a table of chips and a Toolchain; docs/targets.md makes one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union

from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.targets.phases import PhasedTarget, fused_passes
from lamina.targets.schedule import PROGRAM_ELEMENTS, Job, compile_scheduled, other_attributes, settings_of
from lamina.targets.triton_pool import CompiledKernel, Request

if TYPE_CHECKING:
    from lamina.frontend.program import Program
    from lamina.package.build import PackageExecutable
    from lamina.targets.choices import Schedule
    from lamina.targets.interpreted import InterpretedExecutable

_LIBDEVICE = "__nv_"

BEFORE_TILES = "linalg"
"""The phase in which attributes of kernels decide for them."""


@dataclass(frozen=True)
class ChipDescription:
    """What the compiler knows of a chip.

    Attributes:
        name: such as ``sm_90``.
        arch: as Triton's backend calls it, 90 for sm_90.
        shared_memory: bytes of it that one program may have.
        multiprocessors: of the largest product with this chip.
        target: the name of its target.
        max_warps: that one program may have.
        warp_size: threads of a warp.
        stages: how many iterations of a loop around tt.dot have their operands under way at once, unless they do not fit.
        matrix_rate: multiply-adds of 16-bit floats that a multiprocessor's matrix units do in a nanosecond.
        vector_rate: multiply-adds of f32 that it does without them.
        load_rate: bytes that it loads from the L2 cache in a nanosecond.
        descriptors: whether operands of long matrix products are read by tensor descriptors.
        size_hint: the size assumed for a dimension of which nothing is known.
        options: of Triton's backend, beside those that a kernel's settings are.
    """

    name: str
    arch: Union[int, str]
    shared_memory: int
    multiprocessors: int
    target: str = field(kw_only=True)
    max_warps: int = field(default=32, kw_only=True)
    warp_size: int = field(default=32, kw_only=True)
    stages: int = field(default=3, kw_only=True)
    matrix_rate: int = field(default=3750, kw_only=True)
    vector_rate: int = field(default=250, kw_only=True)
    load_rate: int = field(default=40, kw_only=True)
    descriptors: bool = field(default=False, kw_only=True)
    size_hint: int = field(default=128, kw_only=True)
    options: tuple[tuple[str, Any], ...] = field(default=(), kw_only=True)

    @property
    def full_name(self) -> str:
        """With its target, such as ``cuda:sm_90``."""
        return f"{self.target}:{self.name}"


class Toolchain:
    """One of Triton's backends, and what must be known of its tools. Its methods are called in worker processes.

    Attributes:
        backend: the name of the backend.
        stages: what it makes of a kernel, in order: at the end an assembly, then machine code.
        variables: names of environment variables that change what it makes.
        disassembly: what the machine code is called as text; empty if nothing here reads it.
    """

    backend: str
    stages: tuple[str, ...]
    variables: tuple[str, ...] = ()
    disassembly: str = ""

    @property
    def assembly(self) -> str:
        """The stage that is text of the machine code."""
        return self.stages[-2]

    @property
    def binary(self) -> str:
        """The stage that is machine code."""
        return self.stages[-1]

    def prepare(self) -> None:
        """Called before each kernel, to set what Triton reads from the environment."""

    def disassemble(self, binary: bytes) -> str:
        """Machine code as text; only where it is called something.

        Raises:
            CompileError: it cannot be read.
        """
        raise NotImplementedError

    def device_function(self, function: str, bits: int) -> str:
        """The name in the backend's device library of a function such as ``exp`` on floats of so many bits."""
        return _LIBDEVICE + function + ("f" if bits == 32 else "")

    def facts(self, assembly: str, name: str, arch: Union[int, str], log: str) -> dict[str, Any]:
        """What a compiled kernel's tools say of it.

        Args:
            assembly: the kernel in that stage.
            name: of its entry point.
            arch: the chip.
            log: what the tools printed.

        Returns:
            CompiledKernel's ``parameters`` and ``tools``, and where they are known ``registers`` and ``spills``.

        Raises:
            ValueError: the assembly is not understood.
        """
        raise NotImplementedError


class TritonTarget(PhasedTarget):
    """A target whose kernels Triton compiles for named chips, on a machine that need not have one, and which are packaged.

    Args:
        chip: its name; or several with commas between them, all of which a package is then for. By default the class's.

    Attributes:
        known: all chips, by name.
        default_chip: the name of one.
        toolchain: what compiles for them.
        portable_chip: the chip whose assembly a package has for chips that are not named; None if no device reads assembly.
        chips: those that were named.
        description: the first, which the phases are for.
        schedule: measured choices, by which kernels are compiled where it has some.

    Raises:
        ValueError: a chip is not known.
    """

    known: Mapping[str, ChipDescription]
    default_chip: str
    toolchain: Toolchain
    portable_chip: Optional[str] = None
    makes_packages = True

    def __init__(self, chip: Optional[str] = None):
        names = list(dict.fromkeys(name.strip() for name in (chip or self.default_chip).split(",")))
        if not self.known.keys() >= set(names):
            raise ValueError(f"the chips are {', '.join(self.known)}")
        self.chips = [self.known[name] for name in names]
        self.description = self.chips[0]
        self.schedule: Optional[Schedule] = None

    def on(self, chip: str) -> TritonTarget:
        """The same for one chip."""
        one = type(self)(chip)
        one.schedule = self.schedule
        return one

    def phases(self) -> list[tuple[str, str]]:
        """Names of the phases from `prim` on, and the passes that make each from the one before."""
        clean = "canonicalize,cse"
        chip = self.description
        machine = (
            f"multiprocessors={chip.multiprocessors} matrix-ops={chip.matrix_rate} vector-ops={chip.vector_rate} "
            f"load-bytes={chip.load_rate} shared-bytes={chip.shared_memory}"
        )
        return [
            # Fewer programs than this leave multiprocessors without one.
            (
                "fused",
                fused_passes(2 * chip.multiprocessors, chip.size_hint, product_tile=32, parallel_scatters=True),
            ),
            ("planned", "lamina-plan-memory"),
            ("linalg", f"kernel.func(lamina-convert-prim-to-linalg{{parallel-scatters=true}},{clean})"),
            (
                "tiled",
                "kernel.func(lamina-tile-kernels{block-tiles=true online-elements=64 vector-lanes=16 "
                f"pointwise-elements={PROGRAM_ELEMENTS} reduce-elements={PROGRAM_ELEMENTS} {machine}}},{clean})",
            ),
            (
                "ttir",
                f"lamina-convert-tiled-to-triton{{descriptors={str(chip.descriptors).lower()}}},tt.func({clean})",
            ),
        ]

    def lower(self, module: Any, after: str = "prim", until: Optional[str] = None) -> Iterator[str]:
        """See PhasedTarget; kernels get the schedule's choices before they are tiled."""
        for phase in super().lower(module, after, until):
            if phase == BEFORE_TILES and self.schedule is not None:
                self.schedule.apply(module, self.description)
            yield phase

    def emit_ttir(self, module: Any, after: str = "prim") -> dict[str, str]:
        """Kernels of a module, which is changed, by their names: each a module in generic form, which Triton reads.

        Raises:
            CompileError: a pass failed.
        """
        for _ in self.lower(module, after):
            pass
        return {name: self.to_text(function) for name, function in kernels_of(module)}

    def emit(self, module: Any, kind: str) -> str | bytes:
        """The kernels of a prim module, which is changed: in order, as text of a stage; one kernel alone as machine code.

        Raises:
            CompileError: a pass or Triton failed; or there is not one kernel for a file of machine code.
        """
        if kind == "ttir":
            return "\n".join(self.emit_ttir(module).values())
        kernels = self.compile_kernels(module)
        if kind == self.toolchain.disassembly:
            return "\n".join(self.toolchain.disassemble(kernel.binary) for kernel in kernels.values())
        if kind != self.toolchain.binary:
            return "\n".join(kernel.asm[kind] for kernel in kernels.values())
        if len(kernels) != 1:
            raise CompileError(
                f"the program has {len(kernels)} kernels, and a {kind} holds one", hint="use --emit package."
            )
        return next(iter(kernels.values())).binary

    def compile_kernels(self, module: Any, after: str = "prim") -> dict[str, CompiledKernel]:
        """Machine code of all kernels of a module, which is changed.

        Raises:
            CompileError: a pass or Triton failed, or a kernel needs more shared memory than the chip has.
        """
        jobs = self.jobs(module, after)
        return {job.request.name: kernel for job, kernel in zip(jobs, compile_scheduled(jobs))}

    def jobs(self, module: Any, after: str = "prim", reached: Optional[Callable[[str], None]] = None) -> list[Job]:
        """Lowers a module, in place, to the last phase: what Triton has to compile of it.

        The module's kernels are those of the schedule only after `compile_scheduled`, which may cut them into smaller tiles.

        Args:
            module: the module.
            after: the phase that it is in.
            reached: called with the name of each phase.

        Raises:
            CompileError: a pass failed.
        """
        before_tiles = copy_module(module) if after == BEFORE_TILES else None
        for phase in self.lower(module, after):
            if phase == BEFORE_TILES:
                before_tiles = copy_module(module)
            if reached is not None:
                reached(phase)
        return [self._job(name, function, before_tiles) for name, function in kernels_of(module)]

    def _job(self, name: str, function: Any, before_tiles: Optional[Any]) -> Job:
        settings = settings_of(function, self.description)
        located = functools.partial(self.to_text, function, True)
        request = Request(self.to_text(function), settings[0], located, str(function.location), name)
        other = other_attributes(function)
        shrink = None
        if other is not None and before_tiles is not None:
            shrink = functools.partial(self._remake, name, function, before_tiles, other)
        return Job(request, self.description, settings, shrink)

    def _remake(self, name: str, function: Any, before_tiles: Any, attributes: Mapping[str, Any]) -> Job:
        """The kernel with other attributes, which takes the place of `function` in its module."""
        from mlir import ir

        module = copy_module(before_tiles)
        for op in module.body.operations:
            if op.operation.name == "kernel.func" and ir.StringAttr(op.attributes["sym_name"]).value == name:
                with module.context:
                    for attribute, value in attributes.items():
                        op.attributes[attribute] = ir.Attribute.parse(value)
        for _ in self.lower(module, after=BEFORE_TILES):
            pass
        (made,) = [made for found, made in kernels_of(module) if found == name]
        module = copy_module(module, function.context)
        (made,) = [made for found, made in kernels_of(module) if found == name]
        replacement = made.clone(ir.InsertionPoint(function))
        function.erase()
        return self._job(name, replacement.operation, before_tiles)

    def compile(self, program: Program) -> PackageExecutable:
        """The program's machine code for all chips, with its launch plan; its prim module is left as it is.

        Raises:
            CompileError: a pass or Triton failed, or a kernel needs more shared memory than the chip has.
        """
        from lamina.package.build import PackageExecutable

        return PackageExecutable(program, self)

    def interpret(self, program: Program) -> InterpretedExecutable:
        """An executable that runs the program's Triton IR in the interpreter; its prim module is left as it is."""
        from lamina.targets.interpreted import InterpretedExecutable

        module = copy_module(program.module)
        for _ in self.lower(module):
            pass
        constants = {
            argument.constant: program.tensors[argument.constant].detach().permute(argument.permutation).contiguous()
            for argument in program.arguments
            if argument.constant is not None
        }
        return InterpretedExecutable(module, constants)

    def to_text(self, function: Any, locations: bool = False) -> str:
        """One kernel as a module in generic form, as Triton's backend takes it; with locations if asked for.

        It has no attributes that are for launches, and the functions of the backend's own device library; in Lamina's IR they
        are those of libdevice.
        """
        from mlir import ir

        def rename(op: Any) -> Any:
            if op.name == "tt.extern_elementwise":
                bits = getattr(op.results[0].type, "element_type", op.results[0].type).width
                symbol = ir.StringAttr(op.attributes["symbol"]).value.removeprefix(_LIBDEVICE)
                function = symbol.removesuffix("f") if bits == 32 else symbol
                op.attributes["symbol"] = ir.StringAttr.get(self.toolchain.device_function(function, bits))
            return ir.WalkResult.ADVANCE

        with function.context, ir.Location.unknown():
            module = ir.Module.create()
            copy = function.clone(ir.InsertionPoint(module.body)).operation
            for name in list(copy.attributes):
                key = name if isinstance(name, str) else name.name
                if key.startswith("kernel."):
                    del copy.attributes[key]
            copy.walk(rename)
            return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=locations)


def kernels_of(module: Any) -> list[tuple[str, Any]]:
    """Names and ops of a module's kernels."""
    from mlir import ir

    functions = [op.operation for op in module.body.operations if op.operation.name == "tt.func"]
    return [(ir.StringAttr(function.attributes["sym_name"]).value, function) for function in functions]
