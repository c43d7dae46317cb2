"""The CUDA target: kernels as Triton IR, compiled for named chips on a machine that need not have a GPU, and packaged."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.targets.phases import PhasedTarget, fused_passes
from lamina.targets.schedule import Job, compile_scheduled, settings_of
from lamina.targets.triton import verify_ttir
from lamina.targets.triton_pool import CompiledKernel, Request, compile_ttir

if TYPE_CHECKING:
    import torch

    from lamina.frontend.program import Program
    from lamina.package.build import CUDAExecutable

__all__ = ["CUDADescription", "CUDATarget", "CompiledKernel", "InterpretedExecutable", "compile_ttir", "verify_ttir"]


@dataclass(frozen=True)
class CUDADescription:
    """What the compiler knows of a chip.

    Attributes:
        name: such as ``sm_90``.
        sm: its compute capability, 90 for sm_90.
        shared_memory: bytes of it that one program may have.
        multiprocessors: of the largest product with this chip.
        max_warps: that one program may have.
        size_hint: the size assumed for a dimension of which nothing is known.
    """

    name: str
    sm: int
    shared_memory: int
    multiprocessors: int
    max_warps: int = 32
    size_hint: int = 128

    @staticmethod
    def of(name: str) -> CUDADescription:
        """The chip of a name such as ``sm_90``.

        Raises:
            ValueError: it is not known.
        """
        if name not in CHIPS:
            raise ValueError(f"the chips are {', '.join(CHIPS)}")
        return CHIPS[name]


CHIPS = {
    "sm_80": CUDADescription("sm_80", 80, 163 << 10, 108),
    "sm_86": CUDADescription("sm_86", 86, 99 << 10, 84),
    "sm_89": CUDADescription("sm_89", 89, 99 << 10, 142),
    "sm_90": CUDADescription("sm_90", 90, 227 << 10, 132),
    "sm_100": CUDADescription("sm_100", 100, 227 << 10, 148),
    "sm_120": CUDADescription("sm_120", 120, 99 << 10, 188),
}


class CUDATarget(PhasedTarget):
    """The target named ``cuda``.

    Args:
        chip: its name, such as ``sm_90``; or several with commas between them, all of which a package is then for.

    Attributes:
        chips: all of them.
        description: the first, which the phases are for.
    """

    name = "cuda"
    makes_packages = True
    has_census = True
    emits = ("ttir", "ttgir", "ptx", "cubin", "sass")

    def __init__(self, chip: str = "sm_90"):
        names = list(dict.fromkeys(name.strip() for name in chip.split(",")))
        self.chips = [CUDADescription.of(name) for name in names]
        self.description = self.chips[0]

    def phases(self) -> list[tuple[str, str]]:
        """Names of the phases from `prim` on, and the passes that make each from the one before."""
        clean = "canonicalize,cse"
        return [
            # Fewer programs than this leave multiprocessors without one.
            ("fused", fused_passes(2 * self.description.multiprocessors, self.description.size_hint)),
            ("planned", "lamina-plan-memory"),
            ("linalg", f"kernel.func(lamina-convert-prim-to-linalg{{parallel-scatters=true}},{clean})"),
            (
                "tiled",
                "kernel.func(lamina-tile-kernels{block-tiles=true pointwise-elements=1024 reduce-elements=1024 online-elements=64 "
                f"vector-lanes=16}},{clean})",
            ),
            ("ttir", f"lamina-convert-tiled-to-triton,tt.func({clean},loop-invariant-code-motion)"),
        ]

    def emit_ttir(self, module: Any, after: str = "prim") -> dict[str, str]:
        """Kernels of a module, which is changed, by their names: each a module in generic form, which Triton reads.

        Raises:
            CompileError: a pass failed.
        """
        for _ in self.lower(module, after):
            pass
        return {name: _to_text(function) for name, function in kernels_of(module)}

    def emit(self, module: Any, kind: str) -> str | bytes:
        """The kernels of a prim module, which is changed: in order, as text of a stage; one kernel alone as a cubin.

        Raises:
            CompileError: a pass or Triton failed; or there is not one kernel for a cubin.
        """
        for _ in self.lower(module):
            pass
        if kind == "ttir":
            return "\n".join(_to_text(function) for _, function in kernels_of(module))
        kernels = self.compile_kernels(module, after="ttir")
        if kind == "sass":
            from lamina.census import disassemble

            return "\n".join(disassemble(kernel.cubin) for kernel in kernels.values())
        if kind != "cubin":
            return "\n".join(kernel.asm[kind] for kernel in kernels.values())
        if len(kernels) != 1:
            raise CompileError(
                f"the program has {len(kernels)} kernels, and a cubin holds one", hint="use --emit package."
            )
        return next(iter(kernels.values())).cubin

    def compile_kernels(self, module: Any, after: str = "prim") -> dict[str, CompiledKernel]:
        """Machine code of all kernels of a module, which is changed.

        Raises:
            CompileError: a pass or Triton failed, or a kernel needs more shared memory than the chip has.
        """
        for _ in self.lower(module, after):
            pass
        jobs = self.jobs(module)
        return {job.request.name: kernel for job, kernel in zip(jobs, compile_scheduled(jobs))}

    def jobs(self, module: Any) -> list[Job]:
        """What Triton has to compile of a module in the phase ``ttir``."""
        result = []
        for name, function in kernels_of(module):
            settings = settings_of(function, self.description)
            located = functools.partial(_to_text, function, True)
            request = Request(_to_text(function), settings[0], located, str(function.location), name)
            result.append(Job(request, self.description, settings))
        return result

    def compile(self, program: Program) -> CUDAExecutable:
        """The program's machine code for all chips, with its launch plan; its prim module is left as it is.

        Raises:
            CompileError: a pass or Triton failed, or a kernel needs more shared memory than the chip has.
        """
        from lamina.package.build import CUDAExecutable, build_images

        return CUDAExecutable(program, build_images(program.module, [chip.name for chip in self.chips]))

    def interpret(self, program: Program) -> InterpretedExecutable:
        """An executable that runs the program's Triton IR in the interpreter; its prim module is left as it is."""
        module = copy_module(program.module)
        for _ in self.lower(module):
            pass
        constants = {
            argument.constant: program.tensors[argument.constant].detach().permute(argument.permutation).contiguous()
            for argument in program.arguments
            if argument.constant is not None
        }
        return InterpretedExecutable(module, constants)


def kernels_of(module: Any) -> list[tuple[str, Any]]:
    """Names and ops of a module's kernels."""
    from mlir import ir

    functions = [op.operation for op in module.body.operations if op.operation.name == "tt.func"]
    return [(ir.StringAttr(function.attributes["sym_name"]).value, function) for function in functions]


def _to_text(function: Any, locations: bool = False) -> str:
    """One kernel as a module in generic form, without the attributes that are for launches; with locations if asked for."""
    from mlir import ir

    with function.context, ir.Location.unknown():
        module = ir.Module.create()
        copy = function.clone(ir.InsertionPoint(module.body)).operation
        for name in list(copy.attributes):
            key = name if isinstance(name, str) else name.name
            if key.startswith("kernel."):
                del copy.attributes[key]
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=locations)


class InterpretedExecutable:
    """Runs @main of a module of Triton kernels in the interpreter, which checks every address.

    Args:
        module: in the phase ``ttir``.
        constants: tensors by the keys of the arguments that are constants.
    """

    def __init__(self, module: Any, constants: dict[str, torch.Tensor]):
        from lamina.reference.triton import TritonInterpreter
        from lamina.reference.values import from_torch
        from lamina.targets.cpu import _evaluator, _read_entry

        self.module = module
        self._interpreter = TritonInterpreter(module)
        entries = {name: _read_entry(op) for name, op in _functions(module)}
        known = {key: from_torch(tensor) for key, tensor in constants.items()}
        if "init" in entries:
            entry = entries["init"]
            results = _allocate(
                self.module, "init", len(entry.arguments), [_evaluator(size)(()) for size in entry.sizes]
            )
            self._interpreter.call("init", [known[key] for key in entry.arguments if key is not None] + results)
            known.update({f"init.{i}": result for i, result in enumerate(results)})
        self._constants = [None if key is None else known[key] for key in entries["main"].arguments]

    def __call__(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], symbols: Sequence[int]) -> None:
        """Runs @main: inputs are the arguments that are no constants, outputs are written."""
        from lamina.reference.values import from_torch, to_torch

        given = iter(inputs)
        arrays = [from_torch(next(given)) if constant is None else constant for constant in self._constants]
        results = [from_torch(output) for output in outputs]
        self._interpreter.call("main", [*arrays, *results])
        for output, result in zip(outputs, results, strict=True):
            output.detach().copy_(to_torch(result).reshape(output.shape))


def _functions(module: Any) -> list[tuple[str, Any]]:
    from mlir import ir

    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    return [(ir.StringAttr(op.attributes["sym_name"]).value, op) for op in functions]


def _allocate(module: Any, function: str, first: int, sizes: Sequence[int]) -> list[Any]:
    """Arrays for the results of a host function, whose arguments they are from `first` on; all sizes are static."""
    import numpy as np

    from lamina.reference.values import get_dtype

    (op,) = [op for name, op in _functions(module) if name == function]
    types = [argument.type for argument in list(op.arguments)[first:]]
    return [np.empty(tuple(type.shape), get_dtype(type)) for type in types[: len(sizes)]]
