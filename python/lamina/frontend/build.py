"""From a functional graph and its plan of results to a Program and an executable, whole or split around eager calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import sympy
import torch
import torch.fx
import torch.utils._pytree as pytree

from lamina.logging import get_logger
from lamina.options import Options

from .bounds import Bounds
from .frozen import Frozen
from .importer import Importer, UnsupportedNode, import_graph
from .program import Executable, Input, Mutation, Program, Returned
from .results import Place, ResultPlan
from .storage import resolve_storage
from .user_kernels import check_kernels, kernel_of

log = get_logger("frontend")


@dataclass
class Built:
    """A program, and how to make its executable; it can be made once, as the program's constants are then dropped."""

    program: Program
    executable: Callable[[], Executable]


def build(
    graph_module: torch.fx.GraphModule,
    plan: ResultPlan,
    options: Options,
    *,
    places: Mapping[str, Place],
    constants: Mapping[str, str],
    tensors: Mapping[str, torch.Tensor],
    inputs: Sequence[Input],
    returned: Sequence[Returned],
    mutations: Sequence[Mutation],
    ranges: Mapping[sympy.Symbol, Any],
    in_spec: Optional[pytree.TreeSpec],
    out_spec: Optional[pytree.TreeSpec],
) -> Built:
    """Imports the graph; what cannot be imported is run by PyTorch if the options say so.

    Raises:
        CompileError: if they do not.
    """
    check_kernels(graph_module, options.target)
    resolve_storage(graph_module)
    split = None
    try:
        imported = import_graph(graph_module, plan.nodes, constants, ranges, _bounds(constants, tensors))
    except UnsupportedNode as error:
        if options.fallback == "error" and kernel_of(error.node) is None:
            raise
        from .fallback import SplitExecutable

        split = SplitExecutable(graph_module, plan.nodes, error, options, ranges)
        # all tensors are arguments of the split program: eager calls may read any
        constants = {}
        imported = Importer(graph_module, constants, ranges).interface()
    sources = []
    for argument in imported.arguments:
        if argument.constant is None:
            sources.append(places[argument.node.name][1] if argument.node.name in places else str(argument.node.target))
    keys = {a.constant for a in imported.arguments} | {s for s in sources if isinstance(s, str)}
    frozen_keys = [a.constant for a in imported.arguments if a.constant is not None and a.constant in tensors]
    keys |= {m.key for m in mutations} | {r.key for r in returned}
    program = Program(
        module=imported.module,
        arguments=imported.arguments,
        sources=sources,
        tensors={key: _tensor(key, tensors, graph_module) for key in keys if key},
        inputs=list(inputs),
        results=plan.results,
        returned=list(returned),
        mutations=list(mutations),
        checks=imported.checks,
        symbols=imported.symbols,
        ranges=[imported.ranges[symbol] for symbol in imported.symbols],
        in_spec=in_spec,
        out_spec=out_spec,
        graph=graph_module,
        frozen=[frozen for key in frozen_keys if (frozen := Frozen.of(key, tensors[key])) is not None],
    )
    if split is not None:
        return Built(program, lambda: split.bound(program))
    return Built(program, lambda: _compiled(program, options))


def _compiled(program: Program, options: Options) -> Executable:
    from lamina.targets import get_target

    executable = get_target(options.target, options.schedule).compile(program)
    program.drop_constants()
    return executable


def _bounds(constants: Mapping[str, str], tensors: Mapping[str, torch.Tensor]) -> dict[str, Bounds]:
    """Smallest and largest elements of the integer constants, such as positions."""
    result: dict[str, Bounds] = {}
    for key in constants.values():
        tensor = tensors.get(key)
        if tensor is not None and tensor.dtype in (torch.int64, torch.int32) and tensor.numel():
            result[key] = (int(tensor.min()), int(tensor.max()))
    return result


def _tensor(key: str, tensors: Mapping[str, torch.Tensor], graph_module: torch.fx.GraphModule) -> torch.Tensor:
    if key in tensors:
        return tensors[key]
    value: Any = graph_module
    for name in key.split("."):
        value = getattr(value, name)
    return value
