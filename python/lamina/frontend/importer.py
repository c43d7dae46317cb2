"""From a functional ATen FX graph to a prim module: one table look-up a node."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union, cast

import mlir.ir as ir
import sympy
import torch
import torch.fx
from mlir.dialects import func

from lamina import dialects
from lamina._lib import _lamina
from lamina.errors import CompileError, find_place
from lamina.logging import get_logger

from .blame import raise_what_eager_raises
from .bounds import Bounds
from .builder import DTYPES, Builder, Output, Value
from .locations import Locations, module_path, user_frame
from .sizes import EXTREMA, NotAffine, Size, SymbolTable, is_unbacked, same_sizes, to_size, to_sizes
from .table import Unsupported, lookup
from .user_kernels import kernel_of

log = get_logger("frontend")

REASON = "lamina_reason"
"""Key of a node's meta: why PyTorch must run the node, or None where it was found that it need not."""

WHOLE = "lamina_whole"
"""Key of a placeholder's meta: whether the program was made for a tensor that starts where its storage does."""

LARGEST_LITERAL = 1024
"""Elements of the largest tensor attribute of a graph that becomes a literal instead of a constant argument."""


class UnsupportedNode(CompileError):
    """A node that cannot be imported. `node` tells which."""

    def __init__(self, node: torch.fx.Node, reason: str):
        self.node = node
        op = str(node.target)
        place = user_frame(node)
        super().__init__(
            f"Lamina cannot compile {op}: {reason}",
            op=op,
            location=str(place) if place else None,
            hint='rewrite the line, or let PyTorch run it with fallback="eager" (of lamina.compile and torch.compile).',
            module=module_path(node) or None,
        )


@dataclass
class Argument:
    """An argument of the function: where it comes from and its physical form.

    Attributes:
        node: the placeholder or attribute.
        sizes: logical sizes.
        dtype: its torch dtype.
        permutation: the argument is contiguous with sizes ``sizes[permutation[k]]``.
        constant: the key of its value if it is frozen, else None.
        opaque: whether it is no tensor that prim knows (complex, sparse), for eager calls alone.
        whole: whether it must start where its storage does.
    """

    node: torch.fx.Node
    sizes: tuple[Size, ...]
    dtype: torch.dtype
    permutation: tuple[int, ...]
    constant: Optional[str] = None
    opaque: bool = False
    whole: bool = False


@dataclass
class Imported:
    """A prim module and what a caller must know of it.

    Attributes:
        module: the module; its function is @main.
        arguments: the function's arguments, in order.
        symbols: torch's symbol of each index symbol, in order.
        ranges: smallest and largest value of each symbol; None means unbounded.
        checks: eager's error for each trailing i1 result.
    """

    module: Optional[ir.Module]
    arguments: list[Argument]
    symbols: list[sympy.Symbol]
    ranges: dict[sympy.Symbol, tuple[int, Optional[int]]]
    checks: list[str] = field(default_factory=list)


Reasons = dict[torch.fx.Node, Optional[str]]
"""Why no prim values can be what a node gives, or None, of the nodes that were looked at: most are read several times."""


def unsupported_reason(node: torch.fx.Node, known: Reasons) -> Optional[str]:
    """Why the table has no way to import this node, or None; a lowering may still refuse its arguments."""
    if node.op != "call_function" or is_size_node(node):
        return None
    if node.target is operator.getitem:
        return None
    if node.target in IGNORED:
        return None
    if (kernel := kernel_of(node)) is not None:
        return f"it launches the Triton kernel {kernel}"
    if node.meta.get(REASON) is not None:
        return str(node.meta[REASON])
    if lookup(node.target) is None:
        return "the operator is not in the importer's table"
    inputs = node.all_input_nodes
    for part in (node, *inputs):
        if part not in known:
            reasons = (_unimportable(fake) for fake in _tensors(part.meta.get("val")))
            known[part] = next((reason for reason in reasons if reason is not None), None)
        if known[part] is not None:
            return known[part]
    for argument in inputs:
        if isinstance(argument.meta.get("val"), (torch.SymFloat, torch.SymBool)):
            return "an argument is a float or a truth computed from sizes"
    return None


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [v for v in value if isinstance(v, torch.Tensor)]
    return []


_SIZE_TYPES = (torch.SymInt, torch.SymBool, torch.SymFloat)
_SCALAR_TYPES = (*_SIZE_TYPES, bool, int, float)

IGNORED = {  # assertions, which hold by the checks of a call's arguments
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten._assert_tensor_metadata.default,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
    torch._check,
}


_SIZE_OPS = {
    torch.ops.aten.sym_size.int,
    torch.ops.aten.sym_stride.int,
    torch.ops.aten.sym_numel.default,
    torch.ops.aten.sym_storage_offset.default,
}


def is_size_node(node: torch.fx.Node) -> bool:
    """Whether a node is a size, or computed of sizes alone; its value is in its meta."""
    value = node.meta.get("val")
    if not isinstance(value, _SCALAR_TYPES):
        return False
    return (
        node.op != "call_function"
        or node.target in _SIZE_OPS
        or not any(isinstance(source.meta.get("val"), torch.Tensor) for source in node.all_input_nodes)
    )


def _depends_on_data(fake: torch.Tensor) -> bool:
    return any(is_unbacked(size) for size in to_sizes(fake.shape))


def _unimportable(fake: torch.Tensor) -> Optional[str]:
    """Why no prim value can be this tensor, or None."""
    if fake.layout is not torch.strided:
        return f"a tensor of layout {fake.layout}"
    if fake.dtype not in DTYPES:
        return f"prim has no element type for {fake.dtype}"
    if _depends_on_data(fake):
        return "a size depends on data"
    extrema = [size for size in to_sizes(fake.shape) if isinstance(size, sympy.Expr) and size.has(*EXTREMA)]
    return f"a size is {extrema[0]}, a maximum or minimum of sizes" if extrema else None


def physical_order(shape: Sequence[Any], stride: Sequence[Any]) -> tuple[int, ...]:
    """The order of dimensions, outermost first, in which a dense tensor lies contiguous in memory.

    The identity for tensors that are not dense: they are copied at the call.
    """
    identity = tuple(range(len(shape)))
    strides, sizes = _hints(stride), _hints(shape)
    if strides is None or sizes is None or 0 in sizes:
        return identity
    order = sorted(
        identity, key=lambda k: (-strides[k], k) if sizes[k] != 1 else (-_outer_stride(k, sizes, strides), k)
    )
    expected = 1
    for k in reversed(order):
        if sizes[k] != 1 and strides[k] != expected:
            return identity
        expected *= sizes[k]
    return tuple(order)


def _outer_stride(dim: int, sizes: Sequence[int], strides: Sequence[int]) -> float:
    """Where a dimension of size 1 is sorted: where it would be if memory were in logical order."""
    following = [strides[k] * sizes[k] for k in range(dim + 1, len(sizes)) if sizes[k] != 1]
    return following[0] - 0.5 if following else 0.5


def _hints(values: Sequence[Union[int, torch.SymInt]]) -> Optional[list[int]]:
    result = []
    for value in values:
        if isinstance(value, torch.SymInt):
            if not value.node.has_hint():
                return None
            value = value.node.hint
        result.append(int(value))
    return result


class Importer:
    """Imports one graph. Use `import_graph`."""

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        constants: Mapping[str, str],
        ranges: Mapping[sympy.Symbol, Any],
        bounds: Mapping[str, Bounds] = {},
    ):
        self.graph_module = graph_module
        self.constant_bounds = bounds
        self.constants = constants
        self.symbols = SymbolTable(ranges)
        self.builder = Builder(self.symbols)
        self.values: dict[torch.fx.Node, Any] = {}
        self.arguments: list[Argument] = []
        self._reasons: Reasons = {}

    def run(self, results: Sequence[tuple[torch.fx.Node, Sequence[int]]]) -> Imported:
        context = dialects.make_context()
        with context, ir.Location.unknown():
            module = ir.Module.create()
            self._find_arguments()
            self._number_symbols()
            b = self.builder
            types = [b.type([a.sizes[k] for k in a.permutation], a.dtype) for a in self.arguments]
            with ir.InsertionPoint(module.body):
                main = func.FuncOp("main", ir.FunctionType.get(types, []))
            locations = Locations(context)
            block = main.add_entry_block([locations.of(a.node) for a in self.arguments])
            with ir.InsertionPoint(block):
                self._bind_arguments(block)
                self._import_nodes(locations)
                values = []
                for node, permutation in results:
                    with locations.of(node):
                        values.append(b.transpose(self._tensor_result(node), permutation))
                values += [check for _, check in b.checks]
                func.ReturnOp([value.ir for value in values])
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [v.ir.type for v in values]))
            self._annotate(main)
            try:
                _lamina.run_pipeline(module.operation, "builtin.module(func.func(lamina-erase-dead))")
            except _lamina.CompilerError as error:
                self._blame(str(error))
                raise CompileError.from_diagnostics(str(error), "the imported program is wrong") from error
        symbols = self.symbols.symbols
        ranges = {symbol: self.symbols.range_of(symbol) for symbol in symbols}
        return Imported(module, self.arguments, symbols, ranges, [message for message, _ in b.checks])

    def interface(self) -> Imported:
        """Arguments and symbols alone, of a graph that is not imported; tensors of any kind may be arguments."""
        self._find_arguments(opaque=True)
        self._number_symbols()
        symbols = self.symbols.symbols
        return Imported(None, self.arguments, symbols, {symbol: self.symbols.range_of(symbol) for symbol in symbols})

    def _tensor_result(self, node: torch.fx.Node) -> Value:
        value = self.values[node]
        if not isinstance(value, Value):
            raise UnsupportedNode(node, "this result of the operator cannot be computed")
        return value

    # ---- arguments and symbols

    def _find_arguments(self, opaque: bool = False) -> None:
        for node in self.graph_module.graph.nodes:
            if node.op not in ("placeholder", "get_attr"):
                continue
            fake = node.meta.get("val")
            if node.op == "get_attr" and not isinstance(fake, torch.Tensor):
                fake = _attribute(self.graph_module, str(node.target))
            if not isinstance(fake, torch.Tensor):
                continue
            if node.op == "get_attr" and fake.numel() <= LARGEST_LITERAL and type(fake) is torch.Tensor:
                continue
            if not node.users and node.op == "get_attr":
                continue
            reason = _unimportable(fake)
            if reason is not None and not opaque:
                raise UnsupportedNode(node, reason)
            if reason is not None:
                self.arguments.append(Argument(node, (), fake.dtype, (), None, True))
                continue
            key = self.constants.get(node.name) if node.op == "placeholder" else node.target
            self.arguments.append(
                Argument(
                    node,
                    to_sizes(fake.shape),
                    fake.dtype,
                    physical_order(fake.shape, fake.stride()),
                    key,
                    whole=bool(node.meta.get(WHOLE)),
                )
            )

    def _number_symbols(self) -> None:
        for argument in self.arguments:
            for k in argument.permutation:
                size = argument.sizes[k]
                if isinstance(size, sympy.Symbol):
                    self.symbols.add(size)
        for node in self.graph_module.graph.nodes:
            if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt):
                size = to_size(node.meta["val"])
                if isinstance(size, sympy.Symbol):
                    self.symbols.add(size)
        for argument in self.arguments:
            for size in argument.sizes:
                if isinstance(size, sympy.Expr):
                    for symbol in sorted(size.free_symbols, key=str):
                        self.symbols.add(symbol)

    def _bind_arguments(self, block: ir.Block) -> None:
        b = self.builder
        for argument, value in zip(self.arguments, block.arguments):
            bounds = self.constant_bounds.get(argument.constant) if argument.constant is not None else None
            physical = Value(
                value, tuple(argument.sizes[k] for k in argument.permutation), argument.dtype, bounds=bounds
            )
            inverse = [argument.permutation.index(k) for k in range(len(argument.permutation))]
            with value.location:
                self.values[argument.node] = b.transpose(physical, inverse)

    def _annotate(self, main: func.FuncOp) -> None:
        attributes = []
        for argument in self.arguments:
            entry = {}
            sizes = [argument.sizes[k] for k in argument.permutation]
            if not all(isinstance(size, int) for size in sizes):
                entry["prim.sizes"] = self.builder.exprs(sizes)
            if argument.constant is not None:
                entry["prim.constant"] = ir.StringAttr.get(argument.constant)
            attributes.append(ir.DictAttr.get(entry))
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
        i64 = ir.IntegerType.get_signless(64)
        symbols = []
        for number, symbol in enumerate(self.symbols.symbols):
            low, high = self.symbols.range_of(symbol)
            entry = {"name": ir.StringAttr.get(f"s{number}"), "min": ir.IntegerAttr.get(i64, low)}
            if high is not None:
                entry["max"] = ir.IntegerAttr.get(i64, high)
            symbols.append(ir.DictAttr.get(entry))
        if symbols:
            main.attributes["prim.symbols"] = ir.ArrayAttr.get(symbols)
        if self.builder.checks:
            messages = [ir.StringAttr.get(message) for message, _ in self.builder.checks]
            main.attributes["prim.checks"] = ir.ArrayAttr.get(messages)

    # ---- nodes

    def _import_nodes(self, locations: Locations) -> None:
        for node in self.graph_module.graph.nodes:
            if node in self.values or node.op == "output":
                continue
            try:
                with locations.of(node):
                    self.values[node] = self._import_node(node)
            except NotAffine as error:
                raise UnsupportedNode(node, f"a size is no affine expression: {error}") from error
            except Unsupported as error:
                raise UnsupportedNode(node, str(error)) from error
            except CompileError:
                raise
            except Exception as error:
                raise_what_eager_raises(node)
                arguments = ", ".join(str(a) for a in (*node.args, *node.kwargs.items()))
                raise UnsupportedNode(node, f"{type(error).__name__}: {error} (arguments: {arguments})") from error

    def _blame(self, diagnostics: str) -> None:
        """Raises the error of the node of which an op was made that does not verify."""
        place = find_place(diagnostics)
        for node in self.graph_module.graph.nodes:
            if node.name == place.op:
                raise_what_eager_raises(node)
                raise UnsupportedNode(node, CompileError.from_diagnostics(diagnostics, "its lowering is wrong").message)

    def _import_node(self, node: torch.fx.Node) -> Any:
        meta = node.meta.get("val")
        if node.op == "placeholder":
            return to_size(meta) if isinstance(meta, torch.SymInt) else meta
        if node.op == "get_attr":
            value = _attribute(self.graph_module, str(node.target))
            return self.builder.literal(value.detach(), value.dtype) if isinstance(value, torch.Tensor) else value
        if node.op != "call_function":
            raise UnsupportedNode(node, f"a graph of ATen calls has no {node.op}")
        if node.target is operator.getitem:
            source, item = cast(tuple[torch.fx.Node, int], node.args)
            return self.values[source][item]
        if is_size_node(node):
            return to_size(meta) if isinstance(meta, (torch.SymInt, int)) and not isinstance(meta, bool) else meta
        if node.target in IGNORED:
            return None
        reason = unsupported_reason(node, self._reasons)
        if reason is not None:
            raise UnsupportedNode(node, reason)
        b = self.builder
        b.outputs = [Output(to_sizes(fake.shape), fake.dtype) for fake in _tensors(meta)]
        args = [self._argument(a) for a in node.args]
        kwargs = {name: self._argument(a) for name, a in node.kwargs.items()}
        lower = lookup(node.target)
        assert lower is not None, "unsupported_reason found one"
        result = lower(b, *args, **kwargs)
        self._check_result(node, result)
        return result

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            value = self.values[argument]
            if isinstance(value, (torch.SymFloat, torch.SymBool)):
                raise Unsupported("an argument is a float or a truth computed from sizes")
            return value
        if isinstance(argument, (list, tuple)):
            return [self._argument(a) for a in argument]
        return argument

    def _check_result(self, node: torch.fx.Node, result: Any) -> None:
        """The lowering must give just what torch says the call gives."""
        values = result if isinstance(result, tuple) else (result,) if self.builder.outputs else ()
        for value, output in zip(values, self.builder.outputs, strict=True):
            if value is None or (value.dtype == output.dtype and value.sizes == output.sizes):
                continue
            if value.dtype != output.dtype or not same_sizes(value.sizes, output.sizes):
                raise Unsupported(f"its lowering gave {value}, torch says {output.dtype} {list(output.sizes)}")
            value.sizes = output.sizes


def _attribute(module: torch.nn.Module, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def import_graph(
    graph_module: torch.fx.GraphModule,
    results: Sequence[tuple[torch.fx.Node, Sequence[int]]],
    constants: Mapping[str, str] = {},
    ranges: Mapping[sympy.Symbol, Any] = {},
    bounds: Mapping[str, Bounds] = {},
) -> Imported:
    """Imports a functional ATen graph.

    Args:
        graph_module: the graph; every node has a FakeTensor or SymInt in ``meta["val"]``.
        results: nodes that the function returns, each with the order of its dimensions in memory.
        constants: placeholder names that are frozen weights, with the keys of their values.
        ranges: value ranges of torch's symbols.
        bounds: smallest and largest elements of integer constants, by key.

    Raises:
        UnsupportedNode: naming the node that cannot be imported, and the user's line.
    """
    return Importer(graph_module, constants, ranges, bounds).run(results)
