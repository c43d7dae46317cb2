"""Ahead of time: a model and example arguments to a Program, through torch.export; and `lamina.compile`."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, Optional, Union

import sympy
import torch
import torch.fx
import torch.utils._pytree as pytree
from torch.export.graph_signature import InputKind, OutputKind, SymIntArgument, TensorArgument

from lamina.errors import CompileError
from lamina.logging import get_logger

from .call import CallableProgram
from .decompositions import decompositions
from .importer import import_graph, physical_order
from .program import Input, Mutation, Program, Result, Returned, ViewStep
from .sizes import to_size, to_sizes

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
) -> CallableProgram:
    """Compiles a model ahead of time.

    Args:
        model: an nn.Module, or a function of tensors.
        args, kwargs: example arguments; sizes are fixed to theirs unless dynamic_shapes says otherwise.
        dynamic_shapes: as in torch.export.export.
        target: the target's name, such as "cpu" or "reference".
        freeze: whether parameters and buffers become constants, folded and packed once; a later change of them then has
            no effect. Buffers that the model writes to are never frozen.
        fallback: "error" to raise CompileError for what cannot be compiled, "eager" to let PyTorch run it.

    Returns:
        An object that is called as the model is.

    Raises:
        CompileError: naming the user's line, the op and what to do.
    """
    program = import_program(model, args, kwargs, dynamic_shapes=dynamic_shapes, freeze=freeze)
    from lamina.targets import get_target

    executable = get_target(target).compile(program)
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    return CallableProgram(program, executable, inspect.signature(forward))


def capture(model: Callable[..., Any], args: tuple, kwargs: Optional[dict[str, Any]], dynamic_shapes: Any):
    """The ExportedProgram of a model as it was captured, and after decomposition."""
    module = model
    if not isinstance(model, torch.nn.Module):
        module = torch.nn.Module()
        module.forward = model
    captured = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    return captured, captured.run_decompositions(decompositions())


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
    return _Front(captured, exported, model, freeze).program()


class _Front:
    """Makes a Program of an ExportedProgram."""

    def __init__(self, captured, exported, model: Callable[..., Any], freeze: bool):
        self.exported = exported
        self.signature = exported.graph_signature
        self.graph_module = exported.graph_module
        self.freeze = freeze
        self.nodes = {node.name: node for node in self.graph_module.graph.nodes}
        self.eager_outputs = _user_outputs(captured)
        self.own = self._own_tensors(model)
        self.results: list[Result] = []
        self.result_nodes: list[tuple[torch.fx.Node, tuple[int, ...]]] = []
        self.result_index: dict[torch.fx.Node, int] = {}

    def _own_tensors(self, model: Callable[..., Any]) -> dict[str, torch.Tensor]:
        """The live parameters, buffers and constants by their names: what eager would read and write."""
        tensors = {**self.exported.constants, **self.exported.state_dict}
        tensors = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
        if isinstance(model, torch.nn.Module):
            tensors.update(model.named_parameters(remove_duplicate=False))
            tensors.update(model.named_buffers(remove_duplicate=False))
        return tensors

    def program(self) -> Program:
        self._read_inputs()
        self._read_mutations()
        returned = [self._returned(position, spec) for position, spec in enumerate(self._user_output_specs())]
        ranges = self.exported.range_constraints
        imported = import_graph(self.graph_module, self.result_nodes, self.constants, ranges)
        sources = [self.leaf_of.get(a.node.name, self.key_of.get(a.node.name)) for a in imported.arguments if a.constant is None]
        keys = {a.constant for a in imported.arguments} | {s for s in sources if isinstance(s, str)}
        keys |= {m.key for m in self.mutations} | {r.key for r in returned}
        return Program(
            module=imported.module,
            arguments=imported.arguments,
            sources=sources,
            tensors={key: self._tensor(key) for key in keys if key},
            inputs=self.inputs,
            results=self.results,
            returned=returned,
            mutations=self.mutations,
            checks=imported.checks,
            symbols=imported.symbols,
            ranges=[imported.ranges[s] for s in imported.symbols],
            in_spec=self.exported.call_spec.in_spec,
            out_spec=self.exported.call_spec.out_spec,
        )

    def _tensor(self, key: str) -> torch.Tensor:
        if key in self.own:
            return self.own[key]
        return operator.attrgetter(key)(self.graph_module)

    # ---- inputs

    def _read_inputs(self) -> None:
        """Sorts the placeholders: the user's leaves, frozen constants, tensors read at each call."""
        self.inputs: list[Input] = []
        self.leaf_of: dict[str, int] = {}
        self.key_of: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        written = set(self.signature.buffers_to_mutate.values()) | set(getattr(self.signature, "parameters_to_mutate", {}).values())
        names = _leaf_names(self.exported.call_spec.in_spec, self.exported)
        for spec in self.signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                position = len(self.inputs)
                self.inputs.append(self._input(names[position], spec.arg))
                self.leaf_of[getattr(spec.arg, "name", "")] = position
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                self.key_of[spec.arg.name] = spec.target
                frozen = self.freeze or spec.kind is InputKind.CONSTANT_TENSOR
                if frozen and spec.target not in written:
                    self.constants[spec.arg.name] = spec.target
            elif spec.kind is not InputKind.TOKEN:
                raise CompileError(f"the model holds {spec.target}, a {spec.kind.name.lower()} that Lamina cannot compile")

    def _input(self, name: str, argument: Any) -> Input:
        if isinstance(argument, TensorArgument):
            fake = self.nodes[argument.name].meta["val"]
            return Input(name, "tensor", to_sizes(fake.shape), fake.dtype, physical_order(fake))
        if isinstance(argument, SymIntArgument):
            return Input(name, "size", (to_size(self.nodes[argument.name].meta["val"]),))
        return Input(name, "value", value=getattr(argument, "value", None))

    # ---- results

    def _result(self, node: torch.fx.Node, sizes=None, strides=None) -> int:
        """The number of the function's result that is this node's value, in memory of eager's strides."""
        if node in self.result_index:
            return self.result_index[node]
        fake = node.meta["val"]
        sizes = tuple(fake.shape) if sizes is None else sizes
        strides = tuple(fake.stride()) if strides is None else strides
        permutation, dense = _layout(sizes, strides)
        self.result_index[node] = len(self.results)
        self.results.append(Result(to_sizes(sizes), to_sizes(strides), fake.dtype, permutation, dense))
        self.result_nodes.append((node, permutation))
        return self.result_index[node]

    def _read_mutations(self) -> None:
        self.mutations: list[Mutation] = []
        self.mutated: dict[torch.fx.Node, tuple[str, Union[int, str]]] = {}
        self.mutated_placeholders: set[str] = set()
        for spec in self.signature.output_specs:
            if spec.kind is OutputKind.USER_OUTPUT:
                continue
            node = self.nodes[spec.arg.name]
            if spec.kind in (OutputKind.BUFFER_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None)):
                self.mutations.append(Mutation(self._result(node), key=spec.target))
                self.mutated.setdefault(node, ("tensor", spec.target))
                self.mutated_placeholders |= {name for name, key in self.key_of.items() if key == spec.target}
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                leaf = self.leaf_of[spec.target]
                self.mutations.append(Mutation(self._result(node), input=leaf))
                self.mutated.setdefault(node, ("input", leaf))
                self.mutated_placeholders.add(spec.target)
            elif spec.kind is not OutputKind.TOKEN:
                raise CompileError(f"the program returns a {spec.kind.name.lower()}, which Lamina cannot compile")

    def _user_output_specs(self) -> list[Any]:
        return [spec for spec in self.signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]

    def _returned(self, position: int, spec: Any) -> Returned:
        argument = spec.arg
        if isinstance(argument, SymIntArgument):
            return Returned("size", value=to_size(self.nodes[argument.name].meta["val"]))
        if not isinstance(argument, TensorArgument):
            return Returned("value", value=getattr(argument, "value", None))
        node = self.nodes[argument.name]
        eager = self.eager_outputs[position] if position < len(self.eager_outputs) else None
        eager = eager if isinstance(eager, torch.Tensor) else node.meta["val"]
        steps: list[ViewStep] = []
        base = node
        while True:
            if base in self.mutated:
                kind, where = self.mutated[base]
                return self._alias(kind, where, steps)
            if base.op == "placeholder":
                if base.name not in self.mutated_placeholders:
                    if base.name in self.leaf_of:
                        return self._alias("input", self.leaf_of[base.name], steps)
                    return self._alias("tensor", self.key_of[base.name], steps)
                break
            step = _view_step(base)
            if step is None:
                break
            steps.append(step[1])
            base = step[0]
        if steps and base in self.result_index:
            return Returned("result", self.result_index[base], views=tuple(reversed(steps)))
        return Returned("result", self._result(node, tuple(eager.shape) and tuple(node.meta["val"].shape), _strides_like(eager, node)))

    def _alias(self, kind: str, where: Union[int, str], steps: list[ViewStep]) -> Returned:
        views = tuple(reversed(steps))
        if kind == "input":
            return Returned("input", int(where), views=views)
        return Returned("tensor", key=str(where), views=views)


def _strides_like(eager: torch.Tensor, node: torch.fx.Node) -> tuple:
    """Eager's strides, from the graph as captured; symbols are the same in both graphs."""
    return tuple(eager.stride())


def _layout(sizes, strides) -> tuple[tuple[int, ...], bool]:
    """The physical order of dimensions, and whether the strides are those of a dense tensor in that order."""
    fake = _Shape(sizes, strides)
    order = physical_order(fake)
    expected = 1
    for k in reversed(order):
        size, stride = to_size(sizes[k]), to_size(strides[k])
        if size != 1 and not _same(stride, expected):
            return tuple(range(len(sizes))), False
        expected = expected * size
    return order, True


def _same(a, b) -> bool:
    return a == b or sympy.simplify(_without_maxima(sympy.sympify(a) - b)) == 0


def _without_maxima(expr: sympy.Expr) -> sympy.Expr:
    """torch writes max(1, s) in contiguous strides, which only matters for empty tensors."""
    from torch.utils._sympy.functions import Max

    return expr.replace(lambda e: isinstance(e, (Max, sympy.Max)) and 1 in e.args and len(e.args) == 2, lambda e: next(a for a in e.args if a != 1))


class _Shape:
    """Sizes and strides that look like a tensor's."""

    def __init__(self, sizes, strides):
        self.shape, self._strides = sizes, strides

    def stride(self):
        return self._strides

    def dim(self) -> int:
        return len(self.shape)


def _view_step(node: torch.fx.Node) -> Optional[tuple[torch.fx.Node, ViewStep]]:
    """If the node is a view of its first argument, that argument and the op to replay."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        source = node.args[0]
        step = _view_step(source) if isinstance(source, torch.fx.Node) else None
        if step is None:
            return None
        base, view = step
        return base, ViewStep(view.op, view.args, view.kwargs, node.args[1])
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target.is_view:
        return None
    if not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    args = pytree.tree_map_only(torch.fx.Node, _node_size, list(node.args[1:]))
    kwargs = pytree.tree_map_only(torch.fx.Node, _node_size, dict(node.kwargs))
    return node.args[0], ViewStep(node.target, tuple(args), kwargs)


def _node_size(node: torch.fx.Node) -> Any:
    return to_size(node.meta["val"])


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
    for path, _ in paths:
        part, first, rest = path[0].idx, path[1], path[2:]
        if part == 0:
            name = names[first.idx] if names and first.idx < len(names) else f"args[{first.idx}]"
        else:
            name = str(first.key)
        result.append(name + pytree.keystr(rest))
    return result
