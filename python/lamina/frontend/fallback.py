"""Graphs that cannot be compiled whole: maximal compiled parts around calls that PyTorch runs itself."""

from __future__ import annotations

import dataclasses
import operator
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union, cast

import sympy
import torch
import torch.fx

from lamina.errors import CompileError
from lamina.logging import get_logger
from lamina.options import Options
from lamina.targets import get_target

from .effects import is_ordered
from .importer import IGNORED, Argument, Reasons, UnsupportedNode, is_size_node, unsupported_reason
from .locations import user_frame
from .program import Input, Program
from .results import ResultPlan
from .sizes import is_unbacked, to_size, to_sizes
from .user_kernels import kernel_of

log = get_logger("frontend")


@dataclass
class Step:
    """A compiled part, or one eager call, in the order of execution.

    Attributes:
        run: called with the values of `reads`.
        reads, writes: nodes of the whole graph.
        part: what was compiled; None of an eager call, which is the one node of `writes`.
    """

    run: Callable[..., Any]
    reads: list[torch.fx.Node]
    writes: list[torch.fx.Node]
    part: Optional[Part] = None


@dataclass
class Part:
    """A compiled part: its program, whose arguments are tensors and then the values of `symbols`; and its executable."""

    program: Program
    executable: Any
    symbols: list[sympy.Symbol]


class SplitExecutable:
    """Runs a graph as compiled parts and calls that PyTorch runs: of operators, or of Triton kernels of the user's own.

    It is an Executable once `bound` to its program.

    Args:
        graph_module: the whole graph.
        results: nodes to return, with the order of their dimensions in memory.
        error: the first node found that cannot be imported.
        options: those of the whole; every part is compiled with them.
        ranges: value ranges of torch's symbols.

    Attributes:
        eager: calls of operators that are not compiled, with the reason.
        launches: calls of the user's own kernels.
        buffers: memory without contents that only those read, which PyTorch allocates.

    Raises:
        UnsupportedNode: there is an eager call, and the options allow none.
    """

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        results: Sequence[tuple[torch.fx.Node, Sequence[int]]],
        error: UnsupportedNode,
        options: Options,
        ranges: Mapping[sympy.Symbol, Any],
    ):
        self.graph_module = graph_module
        self.results = list(results)
        self.options = options
        self.ranges = ranges
        self.eager: dict[torch.fx.Node, str] = {}
        self.launches = [node for node in graph_module.graph.nodes if kernel_of(node) is not None]
        self.buffers = [node for node in graph_module.graph.nodes if _is_buffer(node)]
        known: Reasons = {}
        for node in graph_module.graph.nodes:
            reason = unsupported_reason(node, known)
            if reason is not None and node not in self.launches:
                self._run_eagerly(node, UnsupportedNode(node, reason))
        if error.node.op == "call_function" and error.node not in self.launches:
            self._run_eagerly(error.node, error)
        self.steps = self._compile()
        self.user_images = self._compile_kernels()
        self._warn()

    def _run_eagerly(self, node: torch.fx.Node, error: UnsupportedNode) -> None:
        if self.options.fallback == "error":
            raise error
        self.eager.setdefault(node, error.message)

    def _compile_kernels(self) -> Any:
        """The machine code of the user's kernels for the target's chips."""
        target = get_target(self.options.target)
        if not (self.launches and getattr(target, "makes_packages", False)):
            return None
        from lamina.package.user_kernels import build_user_images

        return build_user_images(self.launches, target)

    def _warn(self) -> None:
        seen = set()
        for node in self.eager:
            place = user_frame(node)
            key = (str(node.target), str(place))
            if key not in seen:
                seen.add(key)
                warnings.warn(
                    f"Lamina cannot compile {node.target}; PyTorch runs it ({place or 'unknown line'})", stacklevel=2
                )

    # ---- splitting

    def _compile(self) -> list[Step]:
        """Compiles all parts; each node found out to be unsupported makes the split finer."""
        while True:
            try:
                return self._steps()
            except _PartError as error:
                if error.node in self.eager:
                    raise error.cause from None
                self._run_eagerly(error.node, error.cause)

    def _levels(self) -> dict[torch.fx.Node, int]:
        """A number for each call: even ones are compiled, odd ones eager, and nothing reads a higher number.

        Those of calls whose order matters never fall, so these run as the program has them.
        """
        levels: dict[torch.fx.Node, int] = {}
        apart = {*self.eager, *self.launches, *self.buffers}
        ordered = 0
        for node in self.graph_module.graph.nodes:
            if node.op != "call_function" or node.target in IGNORED or (is_size_node(node) and not is_late(node)):
                continue
            if node.target is operator.getitem and node.args[0] in levels:
                levels[node] = levels[node.args[0]]
                continue
            parity = 1 if node in apart or is_size_node(node) else 0
            level = parity
            below = [levels[source] for source in node.all_input_nodes if source in levels]
            keeps_order = is_ordered(node)
            for lowest in [*below, ordered] if keeps_order else below:
                level = max(level, lowest if lowest % 2 == parity else lowest + 1)
            if keeps_order:
                ordered = level
            levels[node] = level
        return levels

    def _steps(self) -> list[Step]:
        levels = self._levels()
        steps: list[Step] = []
        for level in sorted(set(levels.values())):
            nodes = [node for node in self.graph_module.graph.nodes if levels.get(node) == level]
            if level % 2:
                steps += [_eager_step(node) for node in nodes]
            else:
                steps.append(self._part(nodes))
        return steps

    def _part(self, nodes: list[torch.fx.Node]) -> Step:
        """Compiles some nodes as a graph of their own, whose inputs are the tensors that it reads from outside."""
        inside, graph = set(nodes), torch.fx.Graph()
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        reads: list[torch.fx.Node] = []
        wanted = _closure(nodes)

        for node in wanted:
            if node in inside or is_size_node(node) or node.op == "get_attr":
                continue
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
            reads.append(node)
        for node in wanted:
            if node in copies:
                continue
            if is_size_node(node):
                # its value is an expression of the symbols, in its meta
                copies[node] = graph.placeholder(node.name)
            else:
                copies[node] = graph.node_copy(node, lambda n: copies[n])
            copies[node].meta = dict(node.meta)
        returned = {node for node, _ in self.results}
        writes = [n for n in nodes if _is_tensor(n) and (n in returned or any(user not in inside for user in n.users))]
        graph.output([copies[node] for node in writes])
        part = torch.fx.GraphModule(self.graph_module, graph)
        origin = {copy: node for node, copy in copies.items()}
        try:
            run, compiled = compile_part(part, self.options, self.ranges, self.part_symbols())
        except UnsupportedNode as error:
            raise _PartError(origin[error.node], error) from error
        return Step(run, reads, writes, compiled)

    def part_symbols(self) -> list[sympy.Symbol]:
        symbols: set[sympy.Symbol] = set()
        for node in self.graph_module.graph.nodes:
            value = node.meta.get("val")
            if node.op == "placeholder":
                sizes = (
                    value.shape
                    if isinstance(value, torch.Tensor)
                    else [value]
                    if isinstance(value, torch.SymInt)
                    else []
                )
                for size in to_sizes(sizes):
                    symbols |= size.free_symbols if isinstance(size, sympy.Expr) else set()
        return sorted(symbols, key=str)

    # ---- what it is

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels of all parts, and of the user's own."""
        own = [name for step in self.steps if step.part for name in getattr(step.part.executable, "kernels", ())]
        return own + list(dict.fromkeys(str(kernel_of(node)) for node in self.launches))

    def save(self, path: Union[str, os.PathLike[str]], **options: Any) -> None:
        """Writes a package; see lamina.package.split.save_split.

        Raises:
            CompileError: the target makes no packages, or the program has something that they cannot hold.
            OSError: it cannot be written.
        """
        if not getattr(get_target(self.options.target), "makes_packages", False):
            raise CompileError(
                f"the target {self.options.target!r} makes no packages", hint='use target="cuda:sm_90", for example.'
            )
        from lamina.package.split import save_split

        save_split(self, path, **options)

    # ---- execution

    def bound(self, program: Program) -> SplitExecutable:
        """Fixes the order of arguments and symbols to the program's."""
        self.program = program
        self.arguments: list[Argument] = program.arguments
        self.symbols = program.symbols
        return self

    def __call__(self, inputs: list[torch.Tensor], outputs: list[Any], symbols: list[int]) -> None:
        values: dict[torch.fx.Node, Any] = {}
        environment = dict(zip(self.symbols, symbols))
        for argument, tensor in zip(self.arguments, inputs):
            values[argument.node] = tensor
        for node in self.graph_module.graph.nodes:
            if is_size_node(node) and not is_late(node):
                values[node] = _evaluated(node.meta["val"], environment)
            elif node.op == "get_attr" and node not in values:
                values[node] = operator.attrgetter(node.target)(self.graph_module)
            elif node.op == "placeholder" and node not in values:
                values[node] = None
        numbers = [environment[symbol] for symbol in self.part_symbols()]
        with torch.no_grad():
            for step in self.steps:
                results = step.run(values, numbers, [values[node] for node in step.reads])
                values.update(zip(step.writes, results))
        outputs[:] = [values[node] for node, _ in self.results]


class _PartError(Exception):
    def __init__(self, node: torch.fx.Node, cause: UnsupportedNode):
        self.node, self.cause = node, cause


_EMPTY = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})


def _is_buffer(node: torch.fx.Node) -> bool:
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    return name in _EMPTY and bool(node.users) and all(kernel_of(user) is not None for user in node.users)


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _closure(nodes: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
    """The nodes and all that they read, in the graph's order."""
    wanted = set(nodes)
    for node in nodes:
        wanted |= set(node.all_input_nodes)
    return [node for node in nodes[0].graph.nodes if node in wanted]


def is_late(node: torch.fx.Node) -> bool:
    """Whether a size, or what is computed from sizes, is known only when the program has run that far."""
    value = node.meta["val"]
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) and is_unbacked(value.node.expr)


def _evaluated(value: Any, environment: Mapping[sympy.Symbol, int]) -> Any:
    """The number that an expression of sizes is: an int, a float or a truth."""
    if isinstance(value, torch.SymInt):
        size = to_size(value)
        return size if isinstance(size, int) else int(size.subs(environment))
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        numbers = {symbol.name: number for symbol, number in environment.items()}
        known = value.node.expr.subs({symbol: numbers[symbol.name] for symbol in value.node.expr.free_symbols})
        return float(known) if isinstance(value, torch.SymFloat) else bool(known)
    return value


def _eager_step(node: torch.fx.Node) -> Step:
    def run(values: Mapping[torch.fx.Node, Any], numbers: Sequence[int], reads: Sequence[Any]) -> list[Any]:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
        return [cast(Callable[..., Any], node.target)(*args, **kwargs)]

    return Step(run, [], [node])


def compile_part(
    part: torch.fx.GraphModule, options: Options, ranges: Mapping[sympy.Symbol, Any], symbols: Sequence[sympy.Symbol]
) -> tuple[Callable[..., list[Any]], Part]:
    """Compiles a part; its inputs are its tensors and then the value of each symbol."""
    from .build import build
    from .call import generate

    inputs: list[Any] = []
    places: dict[Any, Any] = {}
    for node in part.graph.nodes:
        if node.op == "placeholder" and not is_size_node(node):
            value = node.meta.get("val")
            places[node.name] = ("input", len(inputs))
            inputs.append(graph_input(node.name, value))
    inputs += [Input(str(symbol), "size", (symbol,)) for symbol in symbols]
    plan = ResultPlan({})
    output = next(node for node in part.graph.nodes if node.op == "output")
    returned = [plan.returned(node) for node in output.args[0]]
    options = dataclasses.replace(options, fallback="error")  # a part is not split again: the whole is split anew
    built = build(
        part,
        plan,
        options,
        places=places,
        constants={},
        tensors={},
        inputs=inputs,
        returned=returned,
        mutations=[],
        ranges=ranges,
        in_spec=None,
        out_spec=None,
    )
    # Not every part has all symbols.
    used = [number for number, symbol in enumerate(symbols) if symbol in built.program.symbols]
    tensors = len(inputs) - len(symbols)
    built.program.inputs = inputs[:tensors] + [inputs[tensors + number] for number in used]
    compiled = Part(built.program, built.executable(), [symbols[number] for number in used])
    call = generate(compiled.program, compiled.executable, guard=False)
    return lambda values, numbers, reads: call([*reads, *(numbers[k] for k in used)]), compiled


def graph_input(name: str, value: Any) -> Input:
    """A placeholder as a leaf of the arguments; nothing checks it where its caller is a graph."""
    from .importer import physical_order

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return Input(name, "tensor")
        return Input(name, "tensor", to_sizes(value.shape), value.dtype, physical_order(value.shape, value.stride()))
    if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
        return Input(name, "size", (to_size(value),))
    return Input(name, "value", value=value)
