"""Triton kernels of the user's own: their calls, as PyTorch captures them, and their machine code for the chips of a target.

PyTorch has a call as the higher-order op triton_kernel_wrapper_functional; lamina.frontend.user_kernels tells how it is captured.
A kernel is compiled as Triton's own launcher would: an integer that is 1 is a constant, multiples of 16 are known as such, and
all memory is aligned to 16 bytes. Of the configurations of triton.autotune the first is taken, since nothing is measured here.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import torch
import torch.fx

from lamina.errors import CompileError
from lamina.frontend.locations import module_path, user_frame
from lamina.frontend.user_kernels import kernel_of
from lamina.targets.triton import Settings, ir_of_function
from lamina.targets.triton_pool import CompiledKernel, Request, compile_kernels
from lamina.targets.triton_target import TritonTarget

_TYPES = {
    torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8e4nv", torch.float8_e5m2: "fp8e5",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "i1",
}  # fmt: skip
"""Triton's names of dtypes."""

_POINTEES = {
    "fp64": "f64",
    "fp32": "f32",
    "fp16": "f16",
    "bf16": "bf16",
    "fp8e4nv": "f8E4M3FN",
    "fp8e5": "f8E5M2",
    "u8": "i8",
}
"""What they are called in plans, if otherwise."""

_ALIGNED = [["tt.divisibility", 16]]

Scalar = Union[int, torch.SymInt]


@dataclass(frozen=True)
class UserCall:
    """A call of a kernel.

    Attributes:
        name: the kernel's.
        function: that triton.jit decorated.
        signature, constants, attributes: see ir_of_function.
        tensors: parameters that are tensors, and the nodes that they are.
        scalars: types and values (of floats, their bits) of all others, in order.
        places: positions of the tensors among all parameters.
        axes: programs along each axis of the grid.
        written: the parameters that the kernel writes to; the call's results are copies of them.
        warps, stages, options: see Settings.
        location: the user's line.
        module: path of the module that it is in.
    """

    name: str
    function: Any
    signature: dict[str, str]
    constants: dict[tuple[int, ...], Any]
    attributes: dict[tuple[int, ...], Any]
    tensors: dict[str, torch.fx.Node]
    scalars: list[tuple[str, Scalar]]
    places: list[int]
    axes: list[Scalar]
    written: list[str]
    warps: int
    stages: int
    options: tuple[tuple[str, Any], ...]
    location: Optional[str]
    module: Optional[str]

    @property
    def pointees(self) -> list[str]:
        """Element types of the tensors, as plans have them."""
        types = [self.signature[name].removeprefix("*") for name in self.tensors]
        return [_POINTEES.get(type, type) for type in types]

    def settings(self, chip: str) -> Settings:
        """For a chip with its target's name."""
        return Settings(chip, self.warps, self.stages, options=self.options)


@dataclass(frozen=True)
class UserImages:
    """The user's kernels, compiled.

    Attributes:
        calls: by node.
        names: of each call's kernel; equal kernels have one.
        kernels: machine code by chip and name.
    """

    calls: dict[torch.fx.Node, UserCall]
    names: dict[torch.fx.Node, str]
    kernels: dict[str, dict[str, CompiledKernel]]


def build_user_images(
    nodes: Sequence[torch.fx.Node], target: TritonTarget, chips: Optional[Sequence[str]] = None
) -> UserImages:
    """Compiles the kernels that some nodes call, for chips of a target, by default all that it is for.

    Raises:
        CompileError: a call is of a form that no package can hold, or Triton cannot compile a kernel.
    """
    calls = {node: read_call(node) for node in nodes}
    wanted = [chip.name for chip in target.chips] if chips is None else list(chips)
    descriptions = [target.known[chip] for chip in wanted]
    names: dict[torch.fx.Node, str] = {}
    known: dict[tuple[Any, ...], str] = {}
    requests: list[Request] = []
    for node, call in calls.items():
        texts = tuple(_text(call, chip.full_name) for chip in descriptions)
        key = (texts, call.warps, call.stages, call.options)
        if key not in known:
            known[key] = _unique(call.name, known.values())
            requests += [
                Request(text, call.settings(chip.full_name), location=_as_mlir(call.location), name=call.name)
                for text, chip in zip(texts, descriptions)
            ]
        names[node] = known[key]
    outcomes = iter(compile_kernels(requests))
    kernels: dict[str, dict[str, CompiledKernel]] = {chip: {} for chip in wanted}
    for name in known.values():
        for chip in descriptions:
            outcome = next(outcomes)
            if isinstance(outcome, CompileError):
                raise outcome
            if outcome.shared > chip.shared_memory:
                call = next(call for node, call in calls.items() if names[node] == name)
                raise _error(
                    call.location,
                    call.module,
                    f"the Triton kernel {name} needs {outcome.shared} bytes of shared memory, {chip.name} has "
                    f"{chip.shared_memory}",
                    "give it smaller blocks or fewer stages.",
                )
            kernels[chip.name][name] = outcome
    return UserImages(calls, names, kernels)


def _as_mlir(location: Optional[str]) -> str:
    """A line as MLIR prints it."""
    file, _, line = (location or "").rpartition(":")
    return f'loc("{file}":{line}:1)' if file else ""


def _unique(name: str, taken: Any) -> str:
    taken, number, found = set(taken), 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def _error(location: Optional[str], module: Optional[str], message: str, hint: str) -> CompileError:
    return CompileError(message, location=location, module=module, hint=hint)


def _text(call: UserCall, chip: str) -> str:
    try:
        return ir_of_function(call.function, call.signature, call.constants, call.attributes, call.settings(chip))
    except Exception as error:
        raise _error(
            call.location,
            call.module,
            f"Triton cannot compile the kernel {call.name} for {chip}: {str(error).strip() or type(error).__name__}",
            "change the kernel, or how it is called.",
        ) from error


def read_call(node: torch.fx.Node) -> UserCall:
    """The call that a node is.

    Raises:
        CompileError: it is of a form that no package can hold.
    """
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    frame = user_frame(node)
    location, module = str(frame) if frame else None, module_path(node) or None
    name = str(kernel_of(node))

    def refuse(what: str, hint: str = "write it in another way.") -> CompileError:
        return _error(location, module, f"the Triton kernel {name} {what}, which no package can hold", hint)

    given: Any = node.kwargs
    if given.get("tma_descriptor_metadata"):
        raise refuse("takes a tensor descriptor", "make the descriptor in the kernel, by tl.make_tensor_descriptor.")
    kernel: Any = kernel_side_table.get_kernel(given["kernel_idx"])
    values = {**given["kwargs"], **kernel_side_table.get_constant_args(given["constant_args_idx"])}
    options: dict[str, Any] = {}
    if hasattr(kernel, "configs"):
        config = kernel.configs[0]
        if config.pre_hook is not None:
            raise refuse("has a hook that runs before it")
        values.update(config.kwargs)
        options.update({k: v for k, v in config.all_kwargs().items() if k not in config.kwargs and v is not None})
        kernel = kernel.fn
    if not hasattr(kernel, "params"):
        raise refuse(f"is wrapped in {type(kernel).__name__}", "give its arguments in the call.")
    for each in [each for each in values if each not in kernel.arg_names]:
        options[each] = values.pop(each)
    warps, stages = int(options.pop("num_warps", 4)), int(options.pop("num_stages", 3))
    if options.pop("num_ctas", 1) != 1:
        raise refuse("runs in clusters")
    options.setdefault("enable_fp_fusion", True)  # as when PyTorch runs it
    reader = _Parameters(refuse)
    for position, parameter in enumerate(kernel.params):
        if parameter.name in values:
            value = values[parameter.name]
        elif parameter.has_default:
            value = parameter.default
        else:
            raise refuse(f"is called without its argument {parameter.name}")
        reader.add(position, parameter, value)
    grid = list(given["grid"][0])
    return UserCall(
        name=name,
        function=kernel,
        signature=reader.signature,
        constants=reader.constants,
        attributes=reader.attributes,
        tensors=reader.tensors,
        scalars=reader.scalars,
        places=reader.places,
        axes=[_number(size) for size in [*grid, 1, 1][:3]],
        written=list(given["tensors_to_clone"]),
        warps=warps,
        stages=stages,
        options=tuple(sorted(options.items())),
        location=location,
        module=module,
    )


def _number(value: Any) -> Any:
    """The size that a node is."""
    return value.meta["val"] if isinstance(value, torch.fx.Node) else value


class _Parameters:
    """The parameters of a kernel, as its launcher would take them."""

    def __init__(self, refuse: Any):
        self._refuse = refuse
        self.signature: dict[str, str] = {}
        self.constants: dict[tuple[int, ...], Any] = {}
        self.attributes: dict[tuple[int, ...], Any] = {}
        self.tensors: dict[str, torch.fx.Node] = {}
        self.scalars: list[tuple[str, Scalar]] = []
        self.places: list[int] = []
        self._count = 0

    def add(self, position: int, parameter: Any, value: Any) -> None:
        name, number = parameter.name, _number(value)
        aligned = not (parameter.do_not_specialize or getattr(parameter, "do_not_specialize_on_alignment", False))
        if isinstance(number, torch.Tensor):
            self._tensor(position, name, value, aligned)
        elif parameter.is_constexpr or number is None:
            if isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                raise self._refuse(f"has the argument {name}, a constant, that depends on an open size")
            self._constant(position, name, number)
        elif isinstance(number, bool):
            self._scalar(name, "i1", "i1", int(number))
        elif isinstance(number, int):
            if number == 1 and not parameter.do_not_specialize:
                self._constant(position, name, 1)
                return
            if not -(2**63) <= number < 2**63:
                raise self._refuse(f"has the argument {name}, an integer of more than 64 bits")
            type = "i32" if -(2**31) <= number < 2**31 else "i64"
            self._scalar(name, type, type, number)
            if number % 16 == 0 and aligned:
                self.attributes[position,] = _ALIGNED
        elif isinstance(number, torch.SymInt):
            self._scalar(name, "i32", "i32", number)
        elif isinstance(number, float):
            self._scalar(name, "fp32", "f32", struct.unpack("<I", struct.pack("<f", _to_f32(number)))[0])
        else:
            raise self._refuse(f"has the argument {name}, a {type_name(number)}")

    def _constant(self, position: int, name: str, value: Any) -> None:
        self.signature[name] = "constexpr"
        self.constants[position,] = value

    def _scalar(self, name: str, type: str, plan_type: str, value: Scalar) -> None:
        self.signature[name] = type
        self.scalars.append((plan_type, value))
        self._count += 1

    def _tensor(self, position: int, name: str, node: torch.fx.Node, aligned: bool) -> None:
        dtype = node.meta["val"].dtype
        if dtype not in _TYPES:
            raise self._refuse(f"has the argument {name}, a tensor of {dtype}")
        self.signature[name] = f"*{_TYPES[dtype]}"
        self.tensors[name] = node
        self.places.append(self._count)
        self._count += 1
        if aligned:
            self.attributes[position,] = _ALIGNED


def type_name(value: Any) -> str:
    """What to call a value's type in messages."""
    return type(value).__name__ if not inspect.isclass(value) else value.__name__


def _to_f32(value: float) -> float:
    """The nearest number of 32 bits, or an infinity."""
    return torch.tensor(value, dtype=torch.float64).to(torch.float32).item()
