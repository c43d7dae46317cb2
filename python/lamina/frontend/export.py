"""Ahead of time: a model and example arguments to a Program, through torch.export; and `lamina.compile`."""

from __future__ import annotations

import functools
import inspect
import os
import types
import warnings
from collections.abc import Callable
from typing import Any, Optional, Union

import torch
import torch.utils._pytree as pytree
from torch.export.graph_signature import InputKind, OutputKind, SymIntArgument, TensorArgument

from lamina import settings
from lamina.errors import CompileError
from lamina.logging import get_logger, timed
from lamina.options import Options

from .build import Built, build
from .call import CallableProgram
from .decompositions import decompositions
from .effects import erase_tokens
from .importer import physical_order
from .locations import last_user_frame, recorded_lines
from .program import Input, Mutation, Program, Returned
from .results import Place, ResultPlan
from .sizes import to_size, to_sizes
from .user_kernels import captured_kernels

log = get_logger("frontend")


def compile(
    model: Callable[..., Any],
    args: tuple = (),
    kwargs: Optional[dict[str, Any]] = None,
    *,
    dynamic_shapes: Any = None,
    target: str = "cpu",
    freeze: bool = True,
    fallback: str = "error",
    schedule: Union[str, os.PathLike[str], None] = None,
) -> CallableProgram:
    """Compiles a model ahead of time.

    Args:
        model: an nn.Module, a function of tensors, or a program of torch.export (then there are no example arguments).
        args, kwargs: example arguments; sizes are fixed to theirs unless dynamic_shapes says otherwise.
        dynamic_shapes: as in torch.export.export.
        target: the target's name, such as "cpu" or "reference".
        freeze: whether parameters and buffers become constants, folded and packed once. A call after one of them was
            written to in place (also by an optimizer or load_state_dict) raises RuntimeError: compile again, or with
            freeze=False. What PyTorch does not count as a write is not noticed, and they are not to be written to that
            way: through `.data` or NumPy, or to tensors made in inference mode. A tensor that the model was given
            instead has no effect. Buffers that the model writes to are never frozen.
        fallback: "error" to raise CompileError for what cannot be compiled, "eager" to let PyTorch run it.
        schedule: a file of choices that lamina_runtime.tune measured, by which kernels for a GPU are compiled.

    Returns:
        An object that is called as the model is. It computes no gradients: its results never require them.

    Raises:
        CompileError: naming the user's line, the op and what to do.
        Whatever eager raises, where the model is wrong for these arguments.
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args is a {type(args).__name__}, expected a tuple of example arguments, such as (x,)")
    if not isinstance(target, str):
        raise TypeError(f'target is a {type(target).__name__}, expected a name such as "cpu"')
    settings.check()
    place = None if schedule is None else os.fspath(schedule)
    options = Options.of({"target": target, "freeze": freeze, "fallback": fallback, "schedule": place})
    captured, exported = capture(model, tuple(args), kwargs, dynamic_shapes)
    with timed(log, "import"):
        built = _Front(captured, exported, model, options).built()
    return CallableProgram(built.program, built.executable(), signature_of(model), target, place)


def signature_of(model: Callable[..., Any]) -> Optional[inspect.Signature]:
    """The signature of a model; None of what has none: a program of torch.export, a function written in C."""
    if isinstance(model, torch.export.ExportedProgram):
        return None
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except ValueError:
        return None


def capture(model: Callable[..., Any], args: tuple, kwargs: Optional[dict[str, Any]], dynamic_shapes: Any):
    """The ExportedProgram of a model as it was captured, and after decomposition."""
    if isinstance(model, torch.export.ExportedProgram):
        captured = model
    else:
        module = model if isinstance(model, torch.nn.Module) else _Function(model)
        with timed(log, "capture"), captured_kernels():
            captured = _export(module, args, kwargs, dynamic_shapes)
    with timed(log, "decomposition"), warnings.catch_warnings(), captured_kernels():
        # torch.export copies its own tree specs in a way that it warns of.
        warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)`", category=FutureWarning)
        return captured, captured.run_decompositions(decompositions(), decompose_custom_triton_ops=True)


class _Function(torch.nn.Module):
    """A callable as a module; torch.export takes functions in Python alone, so that others are called by one."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        if isinstance(function, (types.FunctionType, types.MethodType, functools.partial)) and signature_of(function):
            self.forward = function
            return

        def forward(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        if signature := signature_of(function):
            forward.__signature__ = signature  # type: ignore[attr-defined]
        self.forward = forward


def _export(module: torch.nn.Module, args: tuple, kwargs: Optional[dict[str, Any]], dynamic_shapes: Any):
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        with recorded_lines():
            return torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    except GuardOnDataDependentSymNode as error:
        frame = last_user_frame(error.__traceback__)
        raise CompileError(
            f"the program branches on a value that is known only when it runs ({error.cond})",
            location=str(frame) if frame else None,
            hint='use torch.where or torch.cond, or torch.compile(model, backend="lamina"), which splits it there.',
        ) from error


def import_program(
    model: Callable[..., Any],
    args: tuple = (),
    kwargs: Optional[dict[str, Any]] = None,
    *,
    dynamic_shapes: Any = None,
    freeze: bool = True,
) -> Program:
    """Captures a model and imports it to prim; the front half of `compile`, with the same arguments."""
    captured, exported = capture(model, tuple(args), kwargs, dynamic_shapes)
    options = Options(freeze=freeze, fallback="error")
    return _Front(captured, exported, model, options).built().program


class _Front:
    """Makes a Program of an ExportedProgram."""

    def __init__(self, captured, exported, model: Callable[..., Any], options: Options):
        self.exported = exported
        self.signature = exported.graph_signature
        self.graph_module = exported.graph_module
        erase_tokens(self.graph_module)
        self.options = options
        self.nodes = {node.name: node for node in self.graph_module.graph.nodes}
        self.eager_outputs = _user_outputs(captured)
        self.own = self._own_tensors(model)
        self.inputs: list[Input] = []
        self.places: dict[str, Place] = {}
        self.constants: dict[str, str] = {}

    def _own_tensors(self, model: Callable[..., Any]) -> dict[str, torch.Tensor]:
        """The live parameters, buffers and constants by their names: what eager would read and write."""
        tensors = {**self.exported.constants, **self.exported.state_dict}
        tensors = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
        if isinstance(model, torch.nn.Module):
            tensors.update(model.named_parameters(remove_duplicate=False))
            tensors.update(model.named_buffers(remove_duplicate=False))
        return tensors

    def built(self) -> Built:
        written = self._written()
        self._read_inputs(written)
        plan = ResultPlan(self.places, written)
        mutations = self._mutations(plan)
        returned = [self._returned(plan, k, spec) for k, spec in enumerate(self._specs(OutputKind.USER_OUTPUT))]
        call_spec = self.exported.call_spec
        return build(
            self.graph_module,
            plan,
            self.options,
            places=self.places,
            constants=self.constants,
            tensors=self.own,
            inputs=self.inputs,
            returned=returned,
            mutations=mutations,
            ranges=self.exported.range_constraints,
            in_spec=call_spec.in_spec,
            out_spec=call_spec.out_spec,
        )

    # ---- inputs

    def _written(self) -> frozenset[str]:
        """Placeholders whose tensors the program writes to."""
        targets, leaves = set(), set()
        for spec in self.signature.output_specs:
            if spec.kind is OutputKind.USER_INPUT_MUTATION:
                leaves.add(spec.target)
            elif spec.kind is not OutputKind.USER_OUTPUT and spec.target is not None:
                targets.add(spec.target)
        owners = {spec.arg.name for spec in self.signature.input_specs if spec.target in targets and spec.target}
        return frozenset(leaves | owners)

    def _read_inputs(self, written: frozenset[str]) -> None:
        """Sorts the placeholders: the user's leaves, frozen constants, tensors read at each call."""
        names = _leaf_names(self.exported.call_spec.in_spec, self.exported)
        for spec in self.signature.input_specs:
            name: Any = getattr(spec.arg, "name", None)
            if spec.kind is InputKind.USER_INPUT:
                self.places[name] = ("input", len(self.inputs))
                self.inputs.append(self._input(names[len(self.inputs)], spec.arg))
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                self.places[name] = ("tensor", spec.target)
                frozen = self.options.freeze or spec.kind is InputKind.CONSTANT_TENSOR
                if frozen and name not in written:
                    self.constants[name] = spec.target
            elif spec.kind is not InputKind.TOKEN:
                raise CompileError(
                    f"the model holds {spec.target}, a {spec.kind.name.lower()} that Lamina cannot compile"
                )

    def _input(self, name: str, argument: Any) -> Input:
        if isinstance(argument, TensorArgument):
            fake = self.nodes[argument.name].meta["val"]
            return Input(name, "tensor", to_sizes(fake.shape), fake.dtype, physical_order(fake.shape, fake.stride()))
        if isinstance(argument, SymIntArgument):
            return Input(name, "size", (to_size(self.nodes[argument.name].meta["val"]),))
        return Input(name, "value", value=getattr(argument, "value", None))

    # ---- results

    def _specs(self, kind: OutputKind) -> list[Any]:
        return [spec for spec in self.signature.output_specs if spec.kind is kind]

    def _mutations(self, plan: ResultPlan) -> list[Mutation]:
        mutations = []
        for spec in self.signature.output_specs:
            if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.TOKEN):
                continue
            node = self.nodes[spec.arg.name]
            if spec.kind is OutputKind.USER_INPUT_MUTATION:
                place: Place = self.places[spec.target]
            elif spec.kind in _OWN_MUTATIONS:
                place = ("tensor", spec.target)
            else:
                raise CompileError(f"the program returns a {spec.kind.name.lower()}, which Lamina cannot compile")
            kind, where = place
            number = plan.result(node)
            mutations.append(
                Mutation(number, input=int(where)) if kind == "input" else Mutation(number, key=str(where))
            )
            plan.mutated.setdefault(node, place)
        return mutations

    def _returned(self, plan: ResultPlan, position: int, spec: Any) -> Returned:
        argument = spec.arg
        if not isinstance(argument, (TensorArgument, SymIntArgument)):
            return Returned("value", value=getattr(argument, "value", None))
        eager = self.eager_outputs[position]
        # the graph as captured has eager's strides; decompositions may have changed them
        strides = eager.stride() if isinstance(eager, torch.Tensor) else None
        return plan.returned(self.nodes[argument.name], strides)


_OWN_MUTATIONS = tuple(
    getattr(OutputKind, name) for name in ("BUFFER_MUTATION", "PARAMETER_MUTATION") if hasattr(OutputKind, name)
)


def _user_outputs(captured) -> list[Any]:
    """FakeTensors of the captured graph's user outputs."""
    nodes = {node.name: node for node in captured.graph.nodes}
    outputs = []
    for spec in captured.graph_signature.output_specs:
        if spec.kind is OutputKind.USER_OUTPUT:
            node = nodes.get(getattr(spec.arg, "name", None))
            outputs.append(node.meta.get("val") if node is not None else None)
    return outputs


def _leaf_names(spec: pytree.TreeSpec, exported) -> list[str]:
    """Names of the leaves of (args, kwargs), as a user would write them."""
    paths = pytree.tree_flatten_with_path(pytree.tree_unflatten(list(range(spec.num_leaves)), spec))[0]
    try:
        names = exported.module_call_graph[0].signature.forward_arg_names
    except (AttributeError, IndexError):
        names = None
    result = []
    path: Any
    for path, _ in paths:
        part, first, rest = path[0].idx, path[1], path[2:]
        if part == 0:
            name = names[first.idx] if names and first.idx < len(names) else f"args[{first.idx}]"
        else:
            name = str(first.key)
        result.append(name + pytree.keystr(rest))
    return result
