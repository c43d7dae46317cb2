"""The backend of torch.compile: ``torch.compile(model, backend="lamina")``, through AOTAutograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import torch
import torch.fx

from lamina import settings
from lamina.errors import CompileError
from lamina.logging import get_logger
from lamina.options import Options

from .blame import eager_note
from .build import build
from .call import generate
from .decompositions import decompositions
from .effects import erase_tokens
from .fallback import graph_input
from .program import Input
from .results import Place, ResultPlan

log = get_logger("frontend")


def backend(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: Optional[str] = None,
    options: Optional[Mapping[str, Any]] = None,
) -> Callable[..., Any]:
    """Compiles a graph that TorchDynamo captured.

    Args:
        graph_module: the graph, of torch functions.
        example_inputs: fake inputs.
        mode: torch.compile's mode; there is only the default one.
        options: see lamina.options.Options.
    """
    if mode not in (None, "default"):
        raise ValueError(f"the lamina backend has no mode {mode!r}; use options instead")
    settings.check()
    bound = Options.of(options)
    weights = _weights(graph_module) if bound.freeze and not torch.is_grad_enabled() else {}

    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    def compile_training(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        with unset_fake_temporarily():
            return compile_aot_graph(gm, bound)

    def compile_inference(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        with unset_fake_temporarily():
            return compile_aot_graph(gm, bound, _frozen(gm, weights, len(example_inputs)))

    compiler = aot_autograd(
        fw_compiler=compile_training,
        bw_compiler=compile_training,
        inference_compiler=compile_inference,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions(),
    )
    try:
        return compiler(graph_module, example_inputs)
    except CompileError as error:
        raise _unwrapped(error) from None
    except Exception as error:
        if eager_note(error) is None:
            raise
        raise _handed_on(error) from None


def _handed_on(error: Exception) -> Exception:
    """An error of eager's as one of its own type that TorchDynamo does not wrap."""
    from torch._dynamo.exc import ShortenTraceback

    kind = type(error)

    class UserError(ShortenTraceback, kind):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            kind.__init__(self, *error.args)

    UserError.__name__, UserError.__qualname__, UserError.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    result = UserError()
    result.__dict__.update(
        error.__dict__, first_useful_frame=None, _torch_dynamo_tracer_output=None, frame_exec_strategy=None
    )
    return result


def _unwrapped(error: CompileError) -> CompileError:
    """The error as one that TorchDynamo hands to the user as it is, instead of as its own BackendCompilerFailed."""
    from torch._dynamo.exc import ShortenTraceback

    class UserError(CompileError, ShortenTraceback):
        def __init__(self) -> None:
            RuntimeError.__init__(self, str(error))

    UserError.__name__ = UserError.__qualname__ = "CompileError"
    UserError.__module__ = "lamina"
    result = UserError()
    result.__dict__.update(
        error.__dict__, first_useful_frame=None, _torch_dynamo_tracer_output=None, frame_exec_strategy=None
    )
    return result


def compile_aot_graph(
    graph_module: torch.fx.GraphModule, options: Options, frozen: Mapping[str, torch.Tensor] = {}
) -> Callable[[list[Any]], list[Any]]:
    """Compiles a functional ATen graph of AOTAutograd, which itself keeps the user's mutations and aliases.

    Args:
        graph_module: the graph.
        options: how to compile.
        frozen: values of placeholders that never change, by name.

    Returns:
        A function of the list of the graph's inputs, which it empties ("boxed"), to the list of its outputs.
    """
    erase_tokens(graph_module)
    inputs: list[Input] = []
    places: dict[str, Place] = {}
    for node in graph_module.graph.nodes:
        if node.op == "placeholder":
            places[node.name] = ("input", len(inputs))
            inputs.append(graph_input(node.name, node.meta.get("val")))
    plan = ResultPlan(places)
    output = next(node for node in graph_module.graph.nodes if node.op == "output")
    returned = [plan.returned(node) for node in output.args[0]]
    built = build(
        graph_module,
        plan,
        options,
        places=places,
        constants={name: name for name in frozen},
        tensors=frozen,
        inputs=inputs,
        returned=returned,
        mutations=[],
        ranges=_ranges(graph_module),
        in_spec=None,
        out_spec=None,
    )
    call = generate(built.program, built.executable(), guard=False)

    def run(args: list[Any]) -> list[Any]:
        results = call(args)
        args.clear()
        return results

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _ranges(graph_module: torch.fx.GraphModule) -> Mapping[Any, Any]:
    """Value ranges of the graph's shape symbols."""
    for node in graph_module.graph.nodes:
        value = node.meta.get("val")
        sizes = value.shape if isinstance(value, torch.Tensor) else [value]
        for size in sizes:
            if isinstance(size, torch.SymInt):
                return size.node.shape_env.var_to_range
    return {}


# ---- freezing


def _weights(graph_module: torch.fx.GraphModule) -> dict[int, torch.Tensor]:
    """The parameters and buffers among the inputs of a graph of TorchDynamo, by the number of the input."""
    weights = {}
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    for number, node in enumerate(placeholders):
        argument = node.meta.get("grapharg")
        static = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None
        example = argument.example if static and argument is not None else None
        if isinstance(example, torch.Tensor):
            weights[number] = example.detach()
    return weights


def _frozen(
    graph_module: torch.fx.GraphModule, weights: Mapping[int, torch.Tensor], count: int
) -> dict[str, torch.Tensor]:
    """Values of the placeholders that are weights and are not written to, by name.

    None are, where AOTAutograd has changed the number of inputs (duplicates removed): the numbers then mean others.
    """
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    context = torch._guards.TracingContext.try_get()
    if not weights or len(placeholders) != count or context is None or context.fw_metadata is None:
        return {}
    written = {k for k, info in enumerate(context.fw_metadata.input_info) if info.mutates_data or info.mutates_metadata}
    return {placeholders[k].name: tensor for k, tensor in weights.items() if k not in written}
