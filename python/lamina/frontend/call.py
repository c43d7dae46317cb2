"""The call of a compiled program: checks of the arguments, allocation of results, aliases and mutations as in eager.

A call must cost microseconds, so the whole of it is written as the source of one Python function, made for the program,
in which every test and size expression is a literal. What fails a test there is explained by the slow path `explain`.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import sympy
import torch
import torch.utils._pytree as pytree
from torch.utils._sympy.printers import PythonPrinter

from lamina.errors import CompileError

from .frozen import Frozen, explain_change
from .program import Executable, Input, Program, Returned
from .sizes import Size

if TYPE_CHECKING:
    from lamina.census import Census

_ERRORS = {"IndexError": IndexError, "RuntimeError": RuntimeError, "ValueError": ValueError, "TypeError": TypeError}


class _Printer(PythonPrinter):
    def __init__(self, names: dict[sympy.Symbol, str]):
        super().__init__()
        self.names = names

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        if expr not in self.names:
            raise CompileError(
                f"the size {expr} of a tensor that the program reads or returns depends on data",
                hint='use torch.compile(model, backend="lamina"), which gives such parts of a program to PyTorch.',
            )
        return self.names[expr]


def _own_call(program: Program, executable: Executable) -> Optional[Callable[[Sequence[Any]], Any]]:
    """The executable's own way to check arguments and allocate results, if it has one that checks enough."""
    return None if any(argument.whole for argument in program.arguments) else getattr(executable, "call_leaves", None)


class CallableProgram:
    """A program with its executable, called like the model that it was made of.

    Args:
        program: the program.
        executable: what a target made of it.
        signature: the model's, to accept arguments by name or position alike; None if there is none.
        target: the name of the target that made the executable.
        schedule: the file of measured choices that it was compiled by, if any.
    """

    def __init__(
        self,
        program: Program,
        executable: Executable,
        signature: Optional[inspect.Signature] = None,
        target: Optional[str] = None,
        schedule: Optional[str] = None,
    ):
        self.target = target
        self.schedule = schedule
        self.program = program
        self.executable = executable
        self._signature = signature
        assert program.in_spec is not None, "a captured program has one"
        args_spec, kwargs_spec = program.in_spec.children()
        self._positional = args_spec.num_children
        self._keywords = list(kwargs_spec.context)
        # An executable may check its arguments and allocate its results itself.
        own_call = _own_call(program, executable)
        self._flat_call = _guarded(own_call, program.frozen) if own_call else generate(program, executable)
        self._flat = not self._keywords and all(child.is_leaf() for child in args_spec.children())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Raises:
            TypeError: an argument is missing, too many, or of another type, dtype, device or structure.
            ValueError: a size is not what the program was compiled for.
            RuntimeError: a weight that is a constant of the program (freeze=True) was written to since.
            Whatever eager raises, where the program itself fails.
        """
        if self._flat and not kwargs and len(args) == self._positional:
            return self._flat_call(args)
        return self._flat_call(self._leaves(args, kwargs))

    def ir(self, phase: str = "prim") -> Union[str, bytes]:
        """The program at one of its layers, as text (of ``obj``: bytes). It is made anew.

        Args:
            phase: ``fx``, ``prim``, ``linalg`` (the whole program in plain linalg), or a phase or a kind of code of the
                target, such as ``fused``, ``planned``, ``tiled``, ``llvm``, ``asm``.

        Raises:
            ValueError: there is no such phase.
            CompileError: the program is split around eager calls, or cannot be taken to the phase.
        """
        from lamina.compiler import emit
        from lamina.targets import get_target

        if phase == "fx" and self.program.graph is not None:
            return self.program.graph.print_readable(print_output=False, colored=False)
        if self.program.module is None:
            raise CompileError(
                "the program is split around calls that PyTorch runs, and has no module of its own",
                hint='Compile with fallback="error" to be told which call it is.',
            )
        return emit(self.program.module, phase, get_target(self.target or "cpu", self.schedule))

    def save(self, path: Union[str, os.PathLike[str]], **options: Any) -> None:
        """Writes a package, which lamina_runtime loads where Lamina is not installed.

        Args:
            path: its place, which is replaced; a folder, or a path that ends with a slash, is filled with files.
            options: ``ptx=False`` leaves out the PTX for chips that were not named; ``without=model.state_dict()`` leaves out
                those weights, which `lamina_runtime.load(path, weights=...)` is then given; ``candidates=32``
                adds each kernel compiled in other ways, for lamina_runtime.tune to measure.

        Raises:
            CompileError: the target makes no packages, or the program has something that they cannot hold.
            OSError: it cannot be written.
        """
        save = getattr(self.executable, "save", None)
        if save is None:
            raise CompileError(
                f"the target {self.target or 'cpu'!r} makes no packages", hint='use target="cuda:sm_90", for example.'
            )
        save(path, signature=self._signature, **options)

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels; none of a target that has no kernels."""
        return list(getattr(self.executable, "kernels", ()))

    def peak_memory(self, *args: Any, **kwargs: Any) -> int:
        """Bytes that a call allocates: its results and its temporary memory, less what the caller has.

        Args:
            args, kwargs: arguments as of a call; only their sizes matter. None are needed if all sizes are static.

        Raises:
            TypeError, ValueError: as a call does.
        """
        symbols = self._symbols(args, kwargs)
        values = dict(zip(self.program.symbols, symbols))
        total = len(self.program.checks)
        for result in self.program.results:
            count = 1
            for size in result.sizes:
                count *= int(size.subs(values)) if isinstance(size, sympy.Expr) else size
            assert result.dtype is not None, "results in memory are tensors"
            total += count * result.dtype.itemsize
        arena = getattr(self.executable, "arena_bytes", None)
        return total + (arena(symbols) if arena is not None else 0)

    def census(self, *args: Any, **kwargs: Any) -> dict[str, Census]:
        """What the kernels are made of, move and compute, for each chip that the program was compiled for.

        Args:
            args, kwargs: arguments as of a call; only their sizes matter. None are needed if all sizes are static.

        Raises:
            CompileError: the target has no machine code that can be counted.
            TypeError, ValueError: as a call does.
        """
        census = getattr(self.executable, "census", None)
        if census is None:
            raise CompileError(
                f"the target {self.target or 'cpu'!r} has no census", hint='use target="cuda:sm_90", for example.'
            )
        return census(self._symbols(args, kwargs))

    def _symbols(self, args: tuple, kwargs: dict) -> list[int]:
        """The values of the symbols in a call."""
        if not self.program.symbols:
            return []
        leaves = self._leaves(args, kwargs)
        explain(self.program, leaves)
        values: dict[sympy.Symbol, int] = {}
        for spec, leaf in zip(self.program.inputs, leaves):
            actual = leaf.shape if spec.kind == "tensor" else [leaf]
            values.update({s: int(n) for s, n in zip(spec.sizes, actual) if isinstance(s, sympy.Symbol)})
        for symbol in self.program.symbols:
            if symbol not in values:
                raise ValueError(f"the size {symbol} is no dimension of an argument")
        return [values[symbol] for symbol in self.program.symbols]

    def _leaves(self, args: tuple, kwargs: dict) -> list[Any]:
        """The leaves of the user's arguments, in the structure of the arguments that the program was compiled with."""
        if len(args) != self._positional or list(kwargs) != self._keywords:
            args, kwargs = self._rearranged(args, kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.program.in_spec:
            raise TypeError(f"the arguments have the structure {spec}, expected {self.program.in_spec}")
        return leaves

    def _rearranged(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if set(kwargs) == set(self._keywords) and len(args) == self._positional:
            return args, {name: kwargs[name] for name in self._keywords}
        if self._signature is None:
            inputs = ", ".join(spec.name for spec in self.program.inputs)
            raise TypeError(
                f"expected {self._positional} arguments by position and {self._keywords or 'none'} by name ({inputs}), "
                f"got {len(args)} and {list(kwargs) or 'none'}"
            )
        names = list(self._signature.parameters)
        bound = self._signature.bind(*args, **kwargs).arguments
        wanted = names[: self._positional] + self._keywords
        for name in bound:
            if name not in wanted:
                raise TypeError(f"argument '{name}' was not given when the program was compiled")
        for name in wanted:
            if name not in bound:
                raise TypeError(f"argument '{name}' is missing: the program was compiled with it")
        return tuple(bound[n] for n in names[: self._positional]), {n: bound[n] for n in self._keywords}


def _guarded(call: Callable[[Sequence[Any]], Any], frozen: list[Frozen]) -> Callable[[Sequence[Any]], Any]:
    """A call that first compares the frozen tensors' versions."""
    if not frozen:
        return call
    versions = [weight.version for weight in frozen]
    counters = [weight.counter for weight in frozen]

    def guarded(leaves: Sequence[Any]) -> Any:
        if [counter._version for counter in counters] != versions:
            explain_change(frozen)
        return call(leaves)

    return guarded


def explain(program: Program, leaves: Sequence[Any]) -> None:
    """Raises the error that says which argument is wrong, what was expected and what was given."""
    if len(leaves) != len(program.inputs):
        raise TypeError(f"expected {len(program.inputs)} arguments, got {len(leaves)}")
    values: dict[sympy.Symbol, int] = {}
    for spec, leaf in zip(program.inputs, leaves):
        _explain_type(program, spec, leaf)
    for spec, leaf in zip(program.inputs, leaves):
        sizes = leaf.shape if spec.kind == "tensor" else [leaf]
        for size, actual in zip(spec.sizes, sizes):
            if isinstance(size, sympy.Symbol):
                values.setdefault(size, int(actual))
    for spec, leaf in zip(program.inputs, leaves):
        if spec.kind == "value":
            continue
        for dim, (size, actual) in enumerate(zip(spec.sizes, leaf.shape if spec.kind == "tensor" else [leaf])):
            what = (
                f"argument '{spec.name}' has size {actual} in dimension {dim}"
                if spec.kind == "tensor"
                else f"argument '{spec.name}' is {actual}"
            )
            expected = (
                int(size.subs(values)) if isinstance(size, sympy.Expr) and size.free_symbols <= set(values) else size
            )
            if isinstance(expected, int) and expected != actual:
                relation = f" ({_name(program, size)})" if isinstance(size, sympy.Expr) else ""
                raise ValueError(f"{what}, expected {expected}{relation}")
            if isinstance(size, sympy.Symbol):
                low, high = program.ranges[program.symbols.index(size)]
                if actual < low or (high is not None and actual > high):
                    bounds = f"at least {low}" if high is None else f"from {low} to {high}"
                    raise ValueError(f"{what}, expected {bounds}")


def _name(program: Program, size: sympy.Expr) -> str:
    names = {symbol: sympy.Symbol(f"s{number}") for number, symbol in enumerate(program.symbols)}
    return str(size.subs(names))


def _explain_type(program: Program, spec: Input, leaf: Any) -> None:
    if spec.kind == "value":
        if type(leaf) is not type(spec.value) or leaf != spec.value:
            raise ValueError(f"argument '{spec.name}' is {leaf!r}, the program was compiled for {spec.value!r}")
        return
    if spec.kind == "size":
        if not isinstance(leaf, int):
            raise TypeError(f"argument '{spec.name}' is a {type(leaf).__name__}, expected an int")
        return
    if not isinstance(leaf, torch.Tensor):
        raise TypeError(f"argument '{spec.name}' is a {type(leaf).__name__}, expected a tensor")
    if leaf.dtype != spec.dtype:
        raise TypeError(f"argument '{spec.name}' has dtype {leaf.dtype}, expected {spec.dtype}")
    if leaf.device.type != program.device.type:
        raise TypeError(f"argument '{spec.name}' is on device {leaf.device}, expected {program.device}")
    if leaf.layout is not torch.strided:
        raise TypeError(f"argument '{spec.name}' has layout {leaf.layout}, expected {torch.strided}")
    if leaf.dim() != len(spec.sizes):
        raise ValueError(f"argument '{spec.name}' has {leaf.dim()} dimensions, expected {len(spec.sizes)}")


def _fail(checks: Sequence[str], outcomes: Sequence[torch.Tensor]) -> None:
    """Raises eager's error for the first check that does not hold."""
    for message, outcome in zip(checks, outcomes):
        if not outcome.item():
            kind, _, text = message.partition(": ")
            raise _ERRORS[kind](text)


def _misplaced(name: str) -> None:
    """Raises the error of an argument that as_strided would address otherwise than the program does."""
    raise ValueError(
        f"argument '{name}' does not start where its storage does; the program, which calls as_strided with an offset, "
        "was compiled for one that does"
    )


def _overlaps(tensors: Sequence[torch.Tensor], written: int) -> bool:
    """Whether tensor `written` shares memory with another one."""
    storage = tensors[written].untyped_storage().data_ptr()
    return storage != 0 and any(
        k != written and isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() == storage
        for k, t in enumerate(tensors)
    )


class _Source:
    """The text of the function being written, and the objects that it names."""

    def __init__(self, names: dict[sympy.Symbol, str]):
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._printer = _Printer(names)

    def emit(self, line: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + line)

    def bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def size(self, size: Size) -> str:
        return str(size) if isinstance(size, int) else f"({self._printer.doprint(size)})"

    def tuple(self, sizes: Sequence[Size]) -> str:
        return "(" + "".join(self.size(s) + ", " for s in sizes) + ")"


def generate(program: Program, executable: Executable, guard: bool = True) -> Callable[[Sequence[Any]], Any]:
    """Makes the function of the leaves of the user's arguments; its text is its docstring.

    Args:
        program: what to call.
        executable: what computes the results.
        guard: whether the arguments are checked; a graph that calls a part of itself knows that they are right.
    """
    source = _Source({symbol: f"s{number}" for number, symbol in enumerate(program.symbols)})
    source.names.update(
        torch_Tensor=torch.Tensor,
        empty_strided=torch.empty_strided,
        empty=torch.empty,
        no_grad=torch.no_grad,
        boolean=torch.bool,
        strided=torch.strided,
        execute=executable,
        plain=_plain,
        explain=functools.partial(explain, program),
        fail=_fail,
        misplaced=_misplaced,
        overlaps=_overlaps,
        copy=_copy,
        checks=program.checks,
        changed=functools.partial(explain_change, program.frozen),
    )
    _emit_unpacking(source, program)
    _emit_versions(source, program)
    if guard:
        _emit_guards(source, program)
    _emit_symbols(source, program, guard)
    _emit_inputs(source, program, guard)
    _emit_results(source, program)
    _emit_run(source, program)
    _emit_mutations(source, program)
    _emit_return(source, program)
    text = "def call(leaves):\n" + "\n".join(source.lines) + "\n"
    exec(compile(text, "<lamina call>", "exec"), source.names)
    function = source.names["call"]
    function.__doc__ = text
    return function


def _emit_unpacking(source: _Source, program: Program) -> None:
    count = len(program.inputs)
    source.emit(f"if len(leaves) != {count}: explain(leaves)")
    if count:
        source.emit("".join(f"a{i}, " for i in range(count)) + "= leaves")


def _emit_versions(source: _Source, program: Program) -> None:
    """The test that nobody has written to the frozen tensors, which the executable may have packed."""
    tests = [f"{source.bind('f', frozen.counter)}._version != {frozen.version}" for frozen in program.frozen]
    if tests:
        source.emit("if " + " or ".join(tests) + ": changed()")


def _emit_guards(source: _Source, program: Program) -> None:
    """One condition that holds for arguments of the right kinds."""
    conditions = []
    device = program.device.type
    for i, spec in enumerate(program.inputs):
        if spec.kind == "value":
            conditions.append(
                f"type(a{i}) is {source.bind('t', type(spec.value))} and a{i} == {source.bind('v', spec.value)}"
            )
        elif spec.kind == "size":
            conditions.append(f"isinstance(a{i}, int)")
        else:
            test = f"isinstance(a{i}, torch_Tensor) and a{i}.dtype is {source.bind('d', spec.dtype)} and a{i}.layout is strided and "
            test += f"a{i}.is_cpu" if device == "cpu" else f"a{i}.device.type == {device!r}"
            static = all(isinstance(size, int) for size in spec.sizes)
            test += (
                f" and a{i}.shape == {source.tuple(spec.sizes)}" if static else f" and a{i}.dim() == {len(spec.sizes)}"
            )
            conditions.append(test)
    if conditions:
        source.emit("if not (" + "\n        and ".join(conditions) + "): explain(leaves)")


def _emit_symbols(source: _Source, program: Program, guard: bool) -> None:
    """Values of the symbols, from the first size that each is; all other sizes must then be what they say."""
    places: list[tuple[Size, str]] = []
    dynamic = set()
    for i, spec in enumerate(program.inputs):
        if spec.kind == "tensor" and not all(isinstance(size, int) for size in spec.sizes):
            source.emit(f"h{i} = a{i}.shape")
            dynamic.add(f"h{i}")
        for dim, size in enumerate(spec.sizes):
            places.append((size, f"h{i}[{dim}]" if spec.kind == "tensor" else f"a{i}"))
    numbers = {symbol: number for number, symbol in enumerate(program.symbols)}
    homes: dict[Size, str] = {}
    for size, place in places:
        if size in numbers and size not in homes:
            homes[size] = place
            source.emit(f"s{numbers[size]} = {place}")
    for symbol, number in numbers.items():
        if symbol not in homes:
            source.emit(f"s{number} = {_solved(source, symbol, places, set(homes))}")
            homes[symbol] = ""
    if not guard:
        return
    # a tensor whose sizes are all known was compared whole
    whole = {i for i, spec in enumerate(program.inputs) if all(isinstance(size, int) for size in spec.sizes)}
    relations = []
    for i, spec in enumerate(program.inputs):
        if spec.kind == "tensor" and i not in whole:
            relations += [f"h{i}[{dim}] == {size}" for dim, size in enumerate(spec.sizes) if isinstance(size, int)]
        elif spec.kind == "size" and i in whole:
            relations += [f"a{i} == {spec.sizes[0]}"]
    for size, place in places:
        if isinstance(size, sympy.Expr) and homes.get(size) != place and size.free_symbols <= set(homes):
            relations.append(f"{place} == {source.size(size)}")
        elif isinstance(size, int) and place.partition("[")[0] in dynamic:
            relations.append(f"{place} == {size}")
    for (low, high), symbol in zip(program.ranges, program.symbols):
        name = f"s{numbers[symbol]}"
        if high is not None:
            relations.append(f"{low} <= {name} <= {high}")
        elif low > 0:
            relations.append(f"{name} >= {low}")
    if relations:
        source.emit("if not (" + " and ".join(relations) + "): explain(leaves)")


def _solved(source: _Source, symbol: sympy.Symbol, places, known: set) -> str:
    """The value of a symbol that is no dimension by itself, from one that is a * symbol + b."""
    for size, place in places:
        if isinstance(size, sympy.Expr) and symbol in size.free_symbols and size.free_symbols <= known | {symbol}:
            slope = size.diff(symbol) if size.is_polynomial(symbol) else None
            if slope is not None and slope.is_Integer and slope != 0:
                rest = size.subs(symbol, 0)
                rest = int(rest) if rest.is_Integer else rest
                return f"({place} - {source.size(rest)}) // {int(slope)}"
    raise CompileError(f"the size symbol {symbol} cannot be found from the sizes of the arguments")


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in contiguous memory that holds its elements, not their negatives."""
    return tensor.resolve_neg().contiguous()


def _emit_inputs(source: _Source, program: Program, guard: bool) -> None:
    arguments = [a for a in program.arguments if a.constant is None]
    for number, (argument, where) in enumerate(zip(arguments, program.sources)):
        name = f"a{where}" if isinstance(where, int) else source.bind("w", program.tensors[where])
        if argument.whole:
            source.emit(f"if {name}.storage_offset(): misplaced({argument.node.name!r})")
        if program.module is None:
            source.emit(f"i{number} = {name}")
            continue
        permuted = argument.permutation != tuple(range(len(argument.permutation)))
        if permuted:
            source.emit(f"i{number} = {name}.permute({argument.permutation})")
            name = f"i{number}"
        # A tensor may be a view whose memory holds the negatives of its elements; a graph's arguments say so themselves.
        fake = argument.node.meta.get("val")
        if isinstance(where, int) and (guard or (isinstance(fake, torch.Tensor) and fake.is_neg())):
            source.emit(f"i{number} = {name} if {name}.is_contiguous() and not {name}.is_neg() else plain({name})")
        else:
            source.emit(f"i{number} = {name} if {name}.is_contiguous() else {name}.contiguous()")


def _emit_results(source: _Source, program: Program) -> None:
    if program.module is None:
        return
    device = source.bind("device", program.device)
    for number, result in enumerate(program.results):
        dtype = source.bind("d", result.dtype)
        sizes = source.tuple(result.sizes)
        if result.dense:
            source.emit(
                f"r{number} = empty_strided({sizes}, {source.tuple(result.strides)}, dtype={dtype}, device={device})"
            )
            permuted = result.permutation != tuple(range(len(result.permutation)))
            source.emit(
                f"o{number} = r{number}.permute({result.permutation})" if permuted else f"o{number} = r{number}"
            )
        else:
            source.emit(f"o{number} = empty({sizes}, dtype={dtype}, device={device})")
    for number in range(len(program.checks)):
        source.emit(f"c{number} = empty((), dtype=boolean, device={device})")


def _emit_run(source: _Source, program: Program) -> None:
    inputs = ", ".join(f"i{k}" for k in range(len(program.sources)))
    if program.module is None:
        symbols = ", ".join(f"s{k}" for k in range(len(program.symbols)))
        source.emit(f"outputs = [None] * {len(program.results)}")
        source.emit(f"execute([{inputs}], outputs, [{symbols}])")
        if program.results:
            source.emit("".join(f"r{k}, " for k in range(len(program.results))) + "= outputs")
        return
    outputs = ", ".join([f"o{k}" for k in range(len(program.results))] + [f"c{k}" for k in range(len(program.checks))])
    symbols = ", ".join(f"s{k}" for k in range(len(program.symbols)))
    source.emit(f"execute([{inputs}], [{outputs}], [{symbols}])")
    if program.checks:
        outcomes = [f"c{k}" for k in range(len(program.checks))]
        source.emit(
            "if not (" + " and ".join(f"{c}.item()" for c in outcomes) + f"): fail(checks, [{', '.join(outcomes)}])"
        )
    for number, result in enumerate(program.results):
        if not result.dense:
            sizes, strides = source.tuple(result.sizes), source.tuple(result.strides)
            source.emit(f"r{number} = copy(o{number}, {sizes}, {strides})")


def _copy(value: torch.Tensor, sizes: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """The value in memory of these strides, which may leave gaps or repeat elements."""
    result = torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
    place, source = result, value
    for dim, stride in enumerate(strides):
        if stride == 0 and sizes[dim] > 1:
            place, source = place.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
    place.copy_(source)
    return result


def _emit_mutations(source: _Source, program: Program) -> None:
    if not program.mutations:
        return
    for mutation in program.mutations:
        if mutation.input is not None:
            message = f"argument '{program.inputs[mutation.input].name}' is written to and shares memory with another argument"
            source.emit(f"if overlaps(leaves, {mutation.input}): raise ValueError({message!r})")
    # the test must come before anything runs
    first = next(k for k, line in enumerate(source.lines) if line.lstrip().startswith("execute("))
    tests = [line for line in source.lines if "overlaps(" in line]
    source.lines = [line for line in source.lines if "overlaps(" not in line]
    source.lines[first:first] = tests
    source.emit("with no_grad():")
    for mutation in program.mutations:
        target = f"a{mutation.input}" if mutation.input is not None else source.bind("w", program.tensors[mutation.key])
        source.emit(f"{target}.copy_(r{mutation.index})", 2)


def _replayed(source: _Source, value: str, returned: Returned) -> str:
    """The expression that applies the view ops to a tensor."""
    for step in returned.views:
        op = source.bind("view", step.op)
        args = ", ".join([value, *(_argument(source, a) for a in step.args)])
        kwargs = "".join(f", {name}={_argument(source, a)}" for name, a in step.kwargs.items())
        value = f"{op}({args}{kwargs})"
        if step.item is not None:
            value += f"[{step.item}]"
    return value


def _argument(source: _Source, argument: Any) -> str:
    if isinstance(argument, sympy.Expr):
        return source.size(argument)
    if isinstance(argument, (list, tuple)):
        return "[" + ", ".join(_argument(source, a) for a in argument) + "]"
    return source.bind("v", argument)


def _emit_return(source: _Source, program: Program) -> None:
    leaves = []
    for returned in program.returned:
        if returned.kind == "result":
            leaves.append(_replayed(source, f"r{returned.index}", returned))
        elif returned.kind == "input":
            leaves.append(_replayed(source, f"a{returned.index}", returned))
        elif returned.kind == "tensor":
            leaves.append(_replayed(source, source.bind("w", program.tensors[returned.key]), returned))
        elif returned.kind == "size":
            leaves.append(source.size(returned.value))
        else:
            leaves.append(source.bind("v", returned.value))
    spec = program.out_spec
    if spec is None:
        source.emit(f"return [{', '.join(leaves)}]")
    elif spec.is_leaf():
        source.emit(f"return {leaves[0]}")
    elif spec.type in (tuple, list) and all(child.is_leaf() for child in spec.children()):
        text = "".join(leaf + ", " for leaf in leaves)
        source.emit(f"return ({text})" if spec.type is tuple else f"return [{text}]")
    else:
        source.emit(
            f"return {source.bind('unflatten', pytree.tree_unflatten)}([{', '.join(leaves)}], {source.bind('spec', spec)})"
        )
