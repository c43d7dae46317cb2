"""Random valid `prim` programs with inputs, as a hypothesis strategy: `prim_modules()`.

A program is built forwards: each step draws a family of ops and applies one of them to values that exist, or to new
arguments. Sizes are static or polynomials over index symbols whose values are drawn first, so that every step knows
what its sizes will be. What an op leaves undefined is avoided: integer divisors are constants that are not 0 or -1,
floats are clamped before they become integers, indices are in range, dimensions of arg_reduce are not empty.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lamina.reference.values import ELEMENT_TYPES, Array

FLOATS = ["f32", "f64", "f16", "bf16"]
INTS = ["i64", "i32", "i16", "i8", "ui8"]
NUMBERS = FLOATS + INTS
ALL = [*NUMBERS, "i1"]

MAX_RANK = 4
SIZES = (2, 3, 1, 4, 5, 7, 6, 0)
MAX_SIZE = 16
MAX_ELEMENTS = 3000
LARGE_SIZES = (2, 3, 1, 17, 0, 33, 64, 16, 130, 48)
LARGE_MAX_SIZE = 300
LARGE_MAX_ELEMENTS = 20000
MAX_ARGUMENTS = 8

FLOAT_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf"
    " ceil floor round trunc neg abs sign"
).split()
FLOAT_BINARY = "add sub mul div max min rem pow atan2".split()
INT_BINARY = "add sub mul max min and or xor shl shr pow div rem".split()
BOOL_BINARY = "and or xor max min".split()
COMPARISONS = "eq ne lt le gt ge".split()
NEGATIVE_INFINITY = {"f64": "0xFFF0000000000000", "f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}


# ---- sizes --------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """A polynomial over symbols and quotients, and its value in this program.

    Attributes:
        terms: coefficient of each product of atoms, without zeros; an atom is `s0` or a quotient in parentheses.
        value: the value for the program's inputs.
    """

    terms: tuple[tuple[tuple[str, ...], int], ...]
    value: int

    @staticmethod
    def make(terms: dict[tuple[str, ...], int], value: int) -> Size:
        """Returns the polynomial in its one form."""
        return Size(tuple(sorted((atoms, n) for atoms, n in terms.items() if n)), value)

    @staticmethod
    def constant(value: int) -> Size:
        """Returns a static size."""
        return Size.make({(): value}, value)

    @property
    def is_static(self) -> bool:
        """Whether no symbol is in it."""
        return all(not atoms for atoms, _ in self.terms)

    def __str__(self) -> str:
        products = [" * ".join([*atoms, str(n)] if n != 1 or not atoms else atoms) for atoms, n in self.terms]
        return " + ".join(reversed(products)) or "0"

    def __add__(self, other: Size | int) -> Size:
        other = other if isinstance(other, Size) else Size.constant(other)
        terms = dict(self.terms)
        for atoms, n in other.terms:
            terms[atoms] = terms.get(atoms, 0) + n
        return Size.make(terms, self.value + other.value)

    def __mul__(self, other: Size | int) -> Size:
        other = other if isinstance(other, Size) else Size.constant(other)
        terms: dict[tuple[str, ...], int] = {}
        for left, n in self.terms:
            for right, m in other.terms:
                atoms = tuple(sorted(left + right))
                terms[atoms] = terms.get(atoms, 0) + n * m
        return Size.make(terms, self.value * other.value)

    def __sub__(self, other: Size | int) -> Size:
        return self + (other if isinstance(other, Size) else Size.constant(other)) * -1

    def divide(self, kind: str, divisor: int) -> Size:
        """Returns the quotient, `floordiv` or `ceildiv`; terms that the divisor divides are taken out."""
        value = self.value // divisor if kind == "floordiv" else -(-self.value // divisor)
        if divisor == 1 or self.is_static:
            return self if divisor == 1 else Size.constant(value)
        whole = {atoms: n // divisor for atoms, n in self.terms if n % divisor == 0}
        rest = {atoms: n for atoms, n in self.terms if n % divisor}
        if rest and set(rest) != {()}:
            whole[(f"(({Size.make(rest, 0)}) {kind} {divisor})",)] = 1
        elif rest:
            quotient = rest[()] // divisor if kind == "floordiv" else -(-rest[()] // divisor)
            whole[()] = whole.get((), 0) + quotient
        return Size.make(whole, value)


def get_exprs(sizes: Sequence[Size]) -> str:
    """Returns a list of size expressions as ops print it."""
    return "[" + ", ".join(map(str, sizes)) + "]"


def count_elements(sizes: Sequence[Size]) -> int:
    """Returns the number of elements of a shape in this program."""
    return int(np.prod([size.value for size in sizes], dtype=np.int64))


# ---- programs -----------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """An SSA value: name, element type, sizes."""

    name: str
    dtype: str
    sizes: tuple[Size, ...]

    @property
    def type(self) -> str:
        """The MLIR type."""
        return get_type(self.dtype, self.sizes)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)


def get_type(dtype: str, sizes: Sequence[Size]) -> str:
    """Returns a tensor type; sizes that are not static are `?`."""
    return "tensor<" + "".join(f"{size if size.is_static else '?'}x" for size in sizes) + f"{dtype}>"


def has_dynamic(sizes: Sequence[Size]) -> bool:
    """Whether the type has a `?`, so that some ops must carry sizes."""
    return not all(size.is_static for size in sizes)


@dataclass(frozen=True)
class Program:
    """A module with one function @main, and inputs for it.

    Attributes:
        text: the module.
        args: one array an argument.
        constants: of each argument, the key of the constant that it is, or None.
        symbols: values of the index symbols.
    """

    text: str
    args: list[Array]
    constants: list[str | None]
    symbols: list[int]

    def __repr__(self) -> str:
        return f"Program:\n{self.text}\nargs = {self.args}"


Draw = Callable[[st.SearchStrategy[Any]], Any]


class InapplicableError(Exception):
    """A step cannot be applied to this program."""


@dataclass
class Builder:
    """A program in the making."""

    draw: Draw
    dynamic: bool
    dtypes: Sequence[str]
    large: bool = False
    values: list[Value] = field(default_factory=list)
    args: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    symbols: list[Size] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    # ---- choices ----

    def choose(self, options: Sequence[Any]) -> Any:
        """Draws one of the options; the first is the simplest."""
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        """Draws an integer, bounds included."""
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        """Draws a bool; false is simpler."""
        return bool(self.draw(st.booleans()))

    def size(self, low: int = 0) -> Size:
        """Draws a size: static, or a symbol, whose value is at least `low`."""
        symbols = [symbol for symbol in self.symbols if symbol.value >= low]
        options = [size for size in (LARGE_SIZES if self.large else SIZES) if size >= low]
        if self.dynamic and self.flag():
            if len(self.symbols) < 3 and self.flag():
                value = self.choose(options)
                symbols = [Size.make({(f"s{len(self.symbols)}",): 1}, value)]
                self.symbols += symbols
            if symbols:
                return self.choose(symbols)
        return Size.constant(self.choose(options))

    def sizes(self, low_rank: int = 0, high_rank: int = MAX_RANK) -> tuple[Size, ...]:
        """Draws a shape."""
        return tuple(self.size() for _ in range(self.integer(low_rank, high_rank)))

    def fits(self, sizes: Sequence[Size]) -> bool:
        """Whether a shape is small enough to go on with."""
        most, size = (LARGE_MAX_ELEMENTS, LARGE_MAX_SIZE) if self.large else (MAX_ELEMENTS, MAX_SIZE)
        return count_elements(sizes) <= most and all(0 <= each.value <= size for each in sizes)

    def kind(self, allowed: Sequence[str]) -> str:
        """Draws an element type of those allowed here and in this program."""
        return self.choose([dtype for dtype in self.dtypes if dtype in allowed] or allowed)

    # ---- values ----

    def argument(self, dtype: str, sizes: Sequence[Size]) -> Value:
        """Adds an argument, or an equal value made of a constant if there are many."""
        if len(self.args) >= MAX_ARGUMENTS:
            return self.splat(dtype, sizes, 2)
        value = Value(f"%a{len(self.args)}", dtype, tuple(sizes))
        self.args.append(value)
        self.values.append(value)
        return value

    def operand(self, dtypes: Sequence[str] = ALL, where: Callable[[Value], bool] = lambda value: True) -> Value:
        """Draws a value that exists, or a new argument.

        Raises:
            InapplicableError: neither has the property.
        """
        found = [value for value in self.values if value.dtype in dtypes and where(value)][::-1]
        if found and (len(found) >= 4 or not self.flag()):
            return self.choose(found)
        value = Value("", self.kind(dtypes), self.sizes())
        if self.fits(value.sizes) and where(value):
            return self.argument(value.dtype, value.sizes)
        if not found:
            raise InapplicableError
        return self.choose(found)

    def like(self, dtype: str, sizes: Sequence[Size]) -> Value:
        """Draws a value of exactly this type."""
        found = [value for value in self.values if value.dtype == dtype and value.sizes == tuple(sizes)]
        if found and self.flag():
            return self.choose(found)
        return self.argument(dtype, sizes)

    def emit(self, op: str, operands: Sequence[Value], dtype: str, sizes: Sequence[Size]) -> Value:
        """Adds an op with one result."""
        value = Value(f"%{len(self.lines)}", dtype, tuple(sizes))
        self.used.update(operand.name for operand in operands)
        self.lines.append(f"{value.name} = {op}")
        self.values.append(value)
        return value

    def elementwise(self, name: str, *operands: Value) -> Value:
        """Adds an elementwise op with operands and result of one type."""
        first = operands[0]
        names = ", ".join(operand.name for operand in operands)
        return self.emit(f"prim.{name} {names} : {first.type}", operands, first.dtype, first.sizes)

    def constant(self, dtype: str, literal: str, shape: Sequence[int] = ()) -> Value:
        """Adds a constant; `literal` is what is inside `dense<>`."""
        sizes = [Size.constant(size) for size in shape]
        return self.emit(f"prim.constant dense<{literal}> : {get_type(dtype, sizes)}", [], dtype, sizes)

    def splat(self, dtype: str, sizes: Sequence[Size], number: float) -> Value:
        """Adds a tensor of one number."""
        return self.broadcast(self.constant(dtype, get_literal(dtype, number)), [], sizes)

    def broadcast(self, operand: Value, dims: Sequence[int], sizes: Sequence[Size]) -> Value:
        """Adds a broadcast."""
        attr = f" sizes {get_exprs(sizes)}" if has_dynamic(sizes) else ""
        result = get_type(operand.dtype, sizes)
        op = f"prim.broadcast {operand.name} dims {list(dims)}{attr} : {operand.type} to {result}"
        return self.emit(op, [operand], operand.dtype, sizes)

    def convert(self, operand: Value, dtype: str) -> Value:
        """Adds a conversion, after a clamp where floats become integers."""
        if operand.dtype in FLOATS and dtype in INTS:
            is_number = self.compare("eq", operand, operand)
            operand = self.select(is_number, operand, self.splat(operand.dtype, operand.sizes, 0))
            operand = self.elementwise(
                "max", operand, self.splat(operand.dtype, operand.sizes, 0 if dtype == "ui8" else -99)
            )
            operand = self.elementwise("min", operand, self.splat(operand.dtype, operand.sizes, 99))
        op = f"prim.convert {operand.name} : {operand.type} to {get_type(dtype, operand.sizes)}"
        return self.emit(op, [operand], dtype, operand.sizes)

    def compare(self, comparison: str, lhs: Value, rhs: Value) -> Value:
        """Adds a comparison."""
        op = f"prim.compare <{comparison}> {lhs.name}, {rhs.name} : {lhs.type}"
        return self.emit(op, [lhs, rhs], "i1", lhs.sizes)

    def select(self, predicate: Value, on_true: Value, on_false: Value) -> Value:
        """Adds a select."""
        op = f"prim.select {predicate.name}, {on_true.name}, {on_false.name} : {predicate.type}, {on_true.type}"
        return self.emit(op, [predicate, on_true, on_false], on_true.dtype, on_true.sizes)

    def finish(self, data: np.random.Generator, special: bool) -> Program:
        """Returns the program.

        It returns every value that nothing uses, binds every symbol by an argument, and some of its arguments with
        static sizes are constants.
        """
        for symbol in self.symbols:
            if not any(symbol in arg.sizes for arg in self.args):
                self.args.append(Value(f"%a{len(self.args)}", "i8", (symbol,)))
        results = [value for value in self.values if value.name not in self.used and value.name.startswith("%")]
        results = [value for value in results if value not in self.args][-4:] or self.values[-1:]
        names = ", ".join(value.name for value in results)
        types = ", ".join(value.type for value in results)
        some = self.flag()
        constants = [arg.name[1:] if some and not has_dynamic(arg.sizes) and self.flag() else None for arg in self.args]
        attrs = [_get_attrs(arg, constant) for arg, constant in zip(self.args, constants, strict=True)]
        args = ", ".join(f"{arg.name}: {arg.type}{attr}" for arg, attr in zip(self.args, attrs, strict=True))
        body = "\n".join(f"    {line}" for line in self.lines)
        text = f"module {{\n  func.func @main({args}) -> ({types}) {{\n{body}\n    return {names} : {types}\n  }}\n}}\n"
        shapes = [tuple(size.value for size in arg.sizes) for arg in self.args]
        arrays = [make_data(data, arg.dtype, shape, special) for arg, shape in zip(self.args, shapes, strict=True)]
        return Program(text, arrays, constants, [symbol.value for symbol in self.symbols])


def _get_attrs(arg: Value, constant: str | None) -> str:
    """Returns the attributes of an argument as text."""
    if constant is not None:
        return f' {{prim.constant = "{constant}"}}'
    if not has_dynamic(arg.sizes):
        return ""
    exprs = ", ".join(map(str, arg.sizes))
    count = 1 + max(int(number) for number in re.findall(r"s(\d+)", exprs))
    symbols = ", ".join(f"s{number}" for number in range(count))
    return f" {{prim.sizes = affine_map<()[{symbols}] -> ({exprs})>}}"


def get_literal(dtype: str, number: float) -> str:
    """Returns a number as it is written in a dense attribute."""
    if dtype == "i1":
        return "true" if number else "false"
    return str(float(number)) if dtype in FLOATS else str(int(number))


def make_data(random: np.random.Generator, dtype: str, shape: tuple[int, ...], special: bool) -> Array:
    """Returns random elements: small numbers, some of them equal; with `special` also extremes, NaN and infinities."""
    if dtype == "i1":
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype in FLOATS:
        values = np.where(random.random(shape) < 0.5, random.standard_normal(shape), random.integers(-6, 7, shape) / 2)
        extremes = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e4, 1e-4])
    else:
        low, high = (0, 9) if dtype == "ui8" else (-6, 7)
        values = random.integers(low, high, shape)
        info = np.iinfo(ELEMENT_TYPES[dtype])
        extremes = np.array([info.min, info.max, 0, 1])
    if special:
        values = np.where(random.random(shape) < 0.2, random.choice(extremes, shape), values)
    return np.asarray(values).astype(ELEMENT_TYPES[dtype])


# ---- families of ops ----------------------------------------------------------


def unary(b: Builder) -> None:
    x = b.operand()
    if x.dtype == "i1":
        b.elementwise("not", x)
    else:
        b.elementwise(b.choose(FLOAT_UNARY if x.dtype in FLOATS else ["neg", "abs", "sign", "not"]), x)


def binary(b: Builder) -> None:
    x = b.operand()
    name = b.choose(FLOAT_BINARY if x.dtype in FLOATS else BOOL_BINARY if x.dtype == "i1" else INT_BINARY)
    if name in ("div", "rem") and x.dtype in INTS:
        b.elementwise(name, x, b.splat(x.dtype, x.sizes, b.choose([2, 3, 1, 7, 100] + [-2, -5] * (x.dtype != "ui8"))))
    elif b.flag():
        y = b.like(x.dtype, x.sizes)
        b.elementwise(name, *((x, y) if b.flag() else (y, x)))
    else:
        b.elementwise(name, x, b.splat(x.dtype, x.sizes, b.choose([2, 0, 1, 3])))


def comparison(b: Builder) -> None:
    x = b.operand()
    b.compare(b.choose(COMPARISONS), x, b.like(x.dtype, x.sizes))


def selection(b: Builder) -> None:
    x = b.operand()
    b.select(b.like("i1", x.sizes), x, b.like(x.dtype, x.sizes))


def conversion(b: Builder) -> None:
    x = b.operand()
    b.convert(x, b.kind([dtype for dtype in ALL if dtype != x.dtype]))


BITCASTS = {"i64": "f64", "i32": "f32", "i16": "f16", "i8": "ui8", "ui8": "i8"}


def bitcast(b: Builder) -> None:
    """From integers only: arithmetic does not say which NaN it makes."""
    x = b.operand(list(BITCASTS))
    to = "bf16" if x.dtype == "i16" and b.flag() else BITCASTS[x.dtype]
    b.emit(f"prim.bitcast {x.name} : {x.type} to {get_type(to, x.sizes)}", [x], to, x.sizes)


def iota(b: Builder) -> None:
    sizes, dtype = b.sizes(low_rank=1), b.kind(NUMBERS)
    if b.fits(sizes):
        attr = f" sizes {get_exprs(sizes)}" if has_dynamic(sizes) else ""
        b.emit(f"prim.iota {b.integer(0, len(sizes) - 1)}{attr} : {get_type(dtype, sizes)}", [], dtype, sizes)


def constant(b: Builder) -> None:
    dtype = b.kind(ALL)
    if dtype in FLOATS and b.flag():
        b.constant(dtype, NEGATIVE_INFINITY[dtype])
    elif dtype == "i64" and b.symbols and b.flag():
        b.emit(f"prim.size [{b.choose(b.symbols) * 2 + 1}] : tensor<i64>", [], "i64", [])
    else:
        count = b.integer(1, 4)
        numbers = [b.integer(0 if dtype in ("ui8", "i1") else -3, 1 if dtype == "i1" else 3) for _ in range(count)]
        b.constant(
            dtype, "[" + ", ".join(get_literal(dtype, n / 2 if dtype in FLOATS else n) for n in numbers) + "]", [count]
        )


def broadcast(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank < MAX_RANK)
    rank = b.integer(x.rank + 1, MAX_RANK)
    dims = sorted(b.draw(st.permutations(range(rank)))[: x.rank])
    sizes = [x.sizes[dims.index(dim)] if dim in dims else b.size() for dim in range(rank)]
    if b.fits(sizes):
        b.broadcast(x, dims, sizes)


def transpose(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank > 0)
    permutation = b.draw(st.permutations(range(x.rank)))
    sizes = [x.sizes[dim] for dim in permutation]
    b.emit(f"prim.transpose {x.name} {list(permutation)} : {x.type} to {get_type(x.dtype, sizes)}", [x], x.dtype, sizes)


def reshape(b: Builder) -> None:
    x = b.operand()
    sizes = list(x.sizes)
    change = b.choose(["flatten", "insert", "drop", "merge", "split", "regroup"])
    if change == "flatten":
        total = Size.constant(1)
        for size in sizes:
            total = total * size
        sizes = [total]
    elif change == "insert":
        sizes.insert(b.integer(0, len(sizes)), Size.constant(1))
    elif change == "drop":
        sizes = [size for size in sizes if size != Size.constant(1)]
    elif change == "merge" and len(sizes) > 1:
        dim = b.integer(0, len(sizes) - 2)
        sizes[dim : dim + 2] = [sizes[dim] * sizes[dim + 1]]
    elif change == "split":
        splits = [
            (dim, factor)
            for dim, size in enumerate(sizes)
            for factor in (2, 3, 5, 7)
            if size.value and all(n % factor == 0 for _, n in size.terms)
        ]
        if splits:
            dim, factor = b.choose(splits)
            sizes[dim : dim + 1] = [sizes[dim].divide("floordiv", factor), Size.constant(factor)][:: b.choose([1, -1])]
    elif change == "regroup" and all(size.is_static for size in sizes):
        # Often without common factors, as 6x4 and 8x3.
        count = math.prod(size.value for size in sizes)
        inner = b.choose([n for n in range(1, count + 1) if count % n == 0] or [1])
        sizes = [Size.constant(count // inner), Size.constant(inner)]
    if len(sizes) <= MAX_RANK:
        attr = f" sizes {get_exprs(sizes)}" if has_dynamic(sizes) else ""
        b.emit(f"prim.reshape {x.name}{attr} : {x.type} to {get_type(x.dtype, sizes)}", [x], x.dtype, sizes)


def slicing(b: Builder) -> None:
    x = b.operand()
    starts, limits, steps, sizes = [], [], [], []
    for size in x.sizes:
        start, limit, step = Size.constant(0), size, 1
        change = b.choose(["none", "front", "back", "step", "constant"])
        if change in ("front", "step"):
            start = Size.constant(b.integer(0, min(2, size.value)))
        if change == "back" or (change == "step" and b.flag()):
            limit = size - b.integer(0, min(2, size.value))
        if change == "step":
            step = b.integer(1, 3)
        if change == "constant":
            start = Size.constant(b.integer(0, size.value))
            limit = Size.constant(b.integer(start.value, size.value))
        if limit.value < start.value:
            start = Size.constant(0)
        starts.append(start)
        limits.append(limit)
        steps.append(step)
        sizes.append((limit - start).divide("ceildiv", step))
    bounds = f"{get_exprs(starts)} to {get_exprs(limits)} step {steps}"
    b.emit(f"prim.slice {x.name} {bounds} : {x.type} to {get_type(x.dtype, sizes)}", [x], x.dtype, sizes)


def pad(b: Builder) -> None:
    x = b.operand()
    amounts = [Size.constant(n) for n in (0, 1, 2)] + b.symbols
    low, high = [b.choose(amounts) for _ in x.sizes], [b.choose(amounts) for _ in x.sizes]
    sizes = [before + size + after for before, size, after in zip(low, x.sizes, high, strict=True)]
    if b.fits(sizes):
        value = b.like(x.dtype, []) if b.flag() else b.constant(x.dtype, get_literal(x.dtype, 0))
        op = f"prim.pad {x.name}, {value.name} low {get_exprs(low)} high {get_exprs(high)}"
        b.emit(f"{op} : {x.type}, {value.type} to {get_type(x.dtype, sizes)}", [x, value], x.dtype, sizes)


def concatenate(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank > 0)
    dim = b.integer(0, x.rank - 1)
    operands = [x]
    for _ in range(b.integer(1, 2)):
        sizes = list(x.sizes)
        if b.flag():
            sizes[dim] = b.size()
        operands.append(b.like(x.dtype, sizes))
    if b.flag():
        operands.reverse()
    sizes = list(x.sizes)
    sizes[dim] = sum((operand.sizes[dim] for operand in operands), Size.constant(0))
    if b.fits(sizes):
        names, types = (", ".join(parts) for parts in zip(*((each.name, each.type) for each in operands), strict=True))
        op = f"prim.concatenate {names} dim {dim} : ({types}) -> {get_type(x.dtype, sizes)}"
        b.emit(op, operands, x.dtype, sizes)


def reverse(b: Builder) -> None:
    x = b.operand()
    dims = sorted(b.draw(st.sets(st.integers(0, x.rank - 1)))) if x.rank else []
    b.emit(f"prim.reverse {x.name} dims {dims} : {x.type}", [x], x.dtype, x.sizes)


def index_tensor(b: Builder, size: Size, batch: Sequence[Size]) -> Value:
    """Adds an i64 tensor of indices into a dimension of this size, which is not empty."""
    way = b.choose(["clamp", "iota", "constant"])
    if way == "constant" and not has_dynamic(batch) and len(batch) == 1 and batch[0].value:
        numbers = [b.integer(0, size.value - 1) for _ in range(batch[0].value)]
        return b.constant("i64", str(numbers), [batch[0].value])
    if way == "iota" and batch and any(each.value <= size.value for each in batch):
        dim = next(dim for dim, each in enumerate(batch) if each.value <= size.value)
        attr = f" sizes {get_exprs(batch)}" if has_dynamic(batch) else ""
        return b.emit(f"prim.iota {dim}{attr} : {get_type('i64', batch)}", [], "i64", batch)
    raw = b.like("i64", batch)
    low = b.elementwise("max", raw, b.splat("i64", batch, 0))
    last = b.emit(f"prim.size [{size - 1}] : tensor<i64>", [], "i64", [])
    return b.elementwise("min", low, b.broadcast(last, [], batch))


def draw_indices(b: Builder, x: Value) -> tuple[list[int], list[Value], list[Size]] | None:
    """Draws the dimensions, the indices and the shape of the result of a gather from x."""
    dims = [dim for dim, size in enumerate(x.sizes) if size.value > 0]
    dims = list(b.draw(st.permutations(dims))[: b.integer(1, 2)])
    batch = b.sizes(0, 2)
    sizes = [*batch, *(size for dim, size in enumerate(x.sizes) if dim not in dims)]
    if len(sizes) > MAX_RANK or not b.fits(sizes):
        return None
    return dims, [index_tensor(b, x.sizes[dim], batch) for dim in dims], sizes


def gather(b: Builder) -> None:
    x = b.operand(where=lambda x: any(size.value for size in x.sizes))
    if (drawn := draw_indices(b, x)) is not None:
        dims, indices, sizes = drawn
        names, types = ", ".join(each.name for each in indices), ", ".join(each.type for each in (x, *indices))
        op = f"prim.gather {x.name}[{names}] dims {dims} : ({types}) -> {get_type(x.dtype, sizes)}"
        b.emit(op, [x, *indices], x.dtype, sizes)


def scatter(b: Builder) -> None:
    x = b.operand(NUMBERS, where=lambda x: any(size.value for size in x.sizes))
    if (drawn := draw_indices(b, x)) is not None:
        dims, indices, sizes = drawn
        updates, mode = b.like(x.dtype, sizes), b.choose(["assign", "sum", "prod", "max", "min"])
        names, types = ", ".join(each.name for each in indices), ", ".join(each.type for each in (x, updates, *indices))
        op = f"prim.scatter <{mode}> {x.name}, {updates.name}[{names}] dims {dims} : ({types}) -> {x.type}"
        b.emit(op, [x, updates, *indices], x.dtype, x.sizes)


def draw_combiner(b: Builder, dtype: str) -> str:
    return b.choose(["any", "all", "max", "min"] if dtype == "i1" else ["sum", "max", "min", "prod"])


def reduce(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank > 0)
    dims = sorted(b.draw(st.sets(st.integers(0, x.rank - 1), min_size=1)))
    sizes = [size for dim, size in enumerate(x.sizes) if dim not in dims]
    op = f"prim.reduce <{draw_combiner(b, x.dtype)}> {x.name} dims {dims} : {x.type} to {get_type(x.dtype, sizes)}"
    b.emit(op, [x], x.dtype, sizes)


def arg_reduce(b: Builder) -> None:
    x = b.operand(where=lambda x: any(size.value for size in x.sizes))
    dim = b.choose([dim for dim, size in enumerate(x.sizes) if size.value])
    sizes = [size for each, size in enumerate(x.sizes) if each != dim]
    op = f"prim.arg_reduce <{b.choose(['max', 'min'])}> {x.name} dim {dim} : {x.type} to {get_type('i64', sizes)}"
    b.emit(op, [x], "i64", sizes)


def scan(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank > 0)
    op = f"prim.scan <{draw_combiner(b, x.dtype)}> {x.name} dim {b.integer(0, x.rank - 1)} : {x.type}"
    b.emit(op, [x], x.dtype, x.sizes)


def sort(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank > 0)
    descending = "true" if b.flag() else "false"
    op = f"prim.sort {x.name} dim {b.integer(0, x.rank - 1)} descending {descending} : {x.type}"
    name = f"%{len(b.lines)}"
    b.used.add(x.name)
    b.lines.append(f"{name}:2 = {op}")
    b.values += [Value(f"{name}#0", x.dtype, x.sizes), Value(f"{name}#1", "i64", x.sizes)]


def get_windows(size: Size, window: int, stride: int, dilation: int, low: int, high: int) -> Size | None:
    """Returns the number of windows over a padded dimension; None where not one fits."""
    rest = size + (low + high - (window - 1) * dilation - 1)
    return rest.divide("floordiv", stride) + 1 if rest.value >= 0 else None


def reduce_window(b: Builder) -> None:
    x = b.operand(where=lambda x: x.rank > 0)
    rows = [(b.integer(1, 3), b.integer(1, 2), b.integer(1, 2), b.integer(0, 1), b.integer(0, 1)) for _ in x.sizes]
    sizes = [get_windows(size, *row) for size, row in zip(x.sizes, rows, strict=True)]
    if None not in sizes:
        lists = (
            f"{name} {list(column)}"
            for name, column in zip(
                ("window", "strides", "dilations", "low", "high"), zip(*rows, strict=True), strict=True
            )
        )
        op = f"prim.reduce_window <{draw_combiner(b, x.dtype)}> {x.name} {' '.join(lists)}"
        b.emit(f"{op} : {x.type} to {get_type(x.dtype, sizes)}", [x], x.dtype, sizes)


def dot_general(b: Builder) -> None:
    x = b.operand(NUMBERS)
    roles = [b.choose(["contract", "free", "batch"]) for _ in x.sizes]
    batch, contract = ([dim for dim, each in enumerate(roles) if each == role] for role in ("batch", "contract"))
    free = [b.size() for _ in range(b.integer(0, 2))]
    places = (
        [("batch", dim) for dim in batch]
        + [("contract", dim) for dim in contract]
        + [("free", n) for n in range(len(free))]
    )
    places = list(b.draw(st.permutations(places)))
    free_order = [n for role, n in places if role == "free"]
    rhs_sizes = [free[n] if role == "free" else x.sizes[n] for role, n in places]
    sizes = [x.sizes[dim] for dim in batch]
    sizes += [size for size, role in zip(x.sizes, roles, strict=True) if role == "free"] + [free[n] for n in free_order]
    if not b.fits(sizes) or not b.fits(rhs_sizes) or len(sizes) > MAX_RANK or len(rhs_sizes) > MAX_RANK:
        return
    y = b.like(x.dtype, rhs_sizes)
    dtype = "f32" if x.dtype in ("f16", "bf16") and b.flag() else x.dtype
    lists = f"batch {batch} x {[places.index(('batch', dim)) for dim in batch]}"
    lists += f" contract {contract} x {[places.index(('contract', dim)) for dim in contract]}"
    op = f"prim.dot_general {x.name}, {y.name} {lists} : ({x.type}, {y.type}) -> {get_type(dtype, sizes)}"
    b.emit(op, [x, y], dtype, sizes)


def convolution(b: Builder) -> None:
    inputs = [x for x in b.values if x.dtype in FLOATS and x.rank in (3, 4) and all(size.value for size in x.sizes[1:])]
    if inputs and b.flag():
        x = b.choose(inputs)
    else:
        sizes = [b.size(), b.size(low=1), *(b.size(low=1) for _ in range(b.integer(1, 2)))]
        if not b.fits(sizes):
            return
        x = b.argument(b.kind(FLOATS), sizes)
    channels = x.sizes[1]
    groups = channels.value if channels.is_static and b.flag() else 1
    rows, sizes = [], []
    for size in x.sizes[2:]:
        window, stride, dilation, low, high = (
            b.integer(1, 3),
            b.integer(1, 2),
            b.integer(1, 2),
            b.integer(0, 2),
            b.integer(0, 2),
        )
        spread = b.integer(1, 2)
        rows.append((window, stride, low, high, spread, dilation))
        sizes.append(get_windows((size - 1) * spread + 1, window, stride, dilation, low, high))
    if None in sizes:
        return
    outputs = Size.constant(groups * b.integer(1, 2)) if groups > 1 or b.flag() else b.size()
    inputs = Size.constant(channels.value // groups) if groups > 1 else channels
    windows, *lists = (list(column) for column in zip(*rows, strict=True))
    y = b.like(x.dtype, [outputs, inputs, *(Size.constant(window) for window in windows)])
    sizes = [x.sizes[0], outputs, *sizes]
    if not b.fits(sizes):
        return
    dtype = "f32" if x.dtype in ("f16", "bf16") and b.flag() else x.dtype
    names = ("strides", "low", "high", "lhs_dilations", "dilations")
    attrs = " ".join(f"{name} {values}" for name, values in zip(names, lists, strict=True))
    op = f"prim.convolution {x.name}, {y.name} {attrs} groups {groups} : ({x.type}, {y.type}) -> {get_type(dtype, sizes)}"
    b.emit(op, [x, y], dtype, sizes)


FAMILIES: dict[str, Callable[[Builder], None]] = {
    "unary": unary,
    "binary": binary,
    "compare": comparison,
    "select": selection,
    "convert": conversion,
    "bitcast": bitcast,
    "iota": iota,
    "constant": constant,
    "broadcast": broadcast,
    "transpose": transpose,
    "reshape": reshape,
    "slice": slicing,
    "pad": pad,
    "concatenate": concatenate,
    "reverse": reverse,
    "gather": gather,
    "scatter": scatter,
    "reduce": reduce,
    "arg_reduce": arg_reduce,
    "scan": scan,
    "sort": sort,
    "reduce_window": reduce_window,
    "dot_general": dot_general,
    "convolution": convolution,
}
"""What a step of a program may do; a family that cannot be applied does nothing."""


@st.composite
def prim_modules(
    draw: Draw,
    families: Collection[str] = tuple(FAMILIES),
    dtypes: Sequence[str] = tuple(ALL),
    min_steps: int = 3,
    max_steps: int = 12,
    dynamic: bool | None = None,
    special: bool | None = None,
    large: bool | None = None,
) -> Program:
    """Random valid `prim` programs with inputs.

    Args:
        draw: given by hypothesis.
        families: keys of FAMILIES that may occur.
        dtypes: element types of arguments and conversions; index tensors are i64 and predicates i1 all the same.
        min_steps: least number of steps; a step is one op, or a few that make it well defined.
        max_steps: greatest number of steps.
        dynamic: whether sizes may be symbols; drawn if None.
        special: whether inputs hold extremes, NaN and infinities; drawn if None.
        large: whether sizes may be greater than a vector register and its unrolled loop, too; drawn if None.
    """
    dynamic = draw(st.booleans()) if dynamic is None else dynamic
    large = draw(st.booleans()) if large is None else large
    builder = Builder(draw, dynamic, dtypes, large)
    names = [name for name in FAMILIES if name in families]
    for _ in range(draw(st.integers(min_steps, max_steps))):
        with contextlib.suppress(InapplicableError):
            FAMILIES[draw(st.sampled_from(names))](builder)
    if not builder.values:
        builder.elementwise("neg", builder.argument(builder.kind(NUMBERS), []))
    special = draw(st.booleans()) if special is None else special
    return builder.finish(np.random.default_rng(draw(st.integers(0, 1000))), special)
