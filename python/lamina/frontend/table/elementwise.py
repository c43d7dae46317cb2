"""Elementwise ATen ops: a row each where prim has the op, a formula where it has not.

Numbers: eager computes f16 and bf16 in f32 and rounds once an op. A row of a single prim op does the same (prim ops
round once); formulas compute in the "opmath" dtype and convert at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional, Union

import mlir.ir as ir
import torch

from ..builder import FLOATS, HALVES, Builder, Scalar, Value
from . import Unsupported, lowers

aten = torch.ops.aten
Operand = Union[Value, Scalar]


def opmath(dtype: torch.dtype) -> torch.dtype:
    """The dtype that eager computes in."""
    return torch.float32 if dtype in HALVES else dtype


def operand(b: Builder, x: Operand, dtype: torch.dtype, sizes: Optional[Sequence] = None) -> Value:
    """An argument as a value of the dtype, broadcast to the sizes (the call's result's, if None)."""
    sizes = b.out.sizes if sizes is None else sizes
    if not isinstance(x, Value):
        x = b.size(x) if not isinstance(x, (bool, int, float)) else b.scalar(x, dtype)
    return b.broadcast(b.convert(x, dtype), sizes)


def operands(b: Builder, dtype: torch.dtype, *args: Operand) -> list[Value]:
    return [operand(b, x, dtype) for x in args]


_C_TYPES = {
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int",
    torch.int64: "int64_t",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.float32: "float",
}


def filler(b: Builder, x: Operand, dtype: torch.dtype) -> Value:
    """An argument that fills a tensor; a number that the dtype cannot hold is an error, as in eager."""
    if isinstance(x, (bool, int, float)) and dtype in _C_TYPES and _overflows(x, dtype):
        holds = b.scalar(False, torch.bool)
        b.check(holds, f"RuntimeError: value cannot be converted to type {_C_TYPES[dtype]} without overflow")
        x = 0
    return operand(b, x, dtype)


def _overflows(x: Scalar, dtype: torch.dtype) -> bool:
    """c10::overflows: unsigned types take the negative of what they hold."""
    if dtype in FLOATS:
        return math.isfinite(x) and abs(x) > torch.finfo(dtype).max
    if not math.isfinite(x):
        return True
    limits = torch.iinfo(dtype)
    return abs(x) > limits.max if limits.min == 0 else not limits.min <= x <= limits.max


def promoted(*args: Operand) -> torch.dtype:
    """torch's common dtype of the arguments (dimensions count: 0-d tensors and scalars yield to others)."""
    kind = torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH
    fakes = [torch.empty([1] * x.rank, dtype=x.dtype, device="meta") if isinstance(x, Value) else x for x in args]
    return torch._prims_common.elementwise_dtypes(*fakes, type_promotion_kind=kind)[1]


def finish(b: Builder, x: Value) -> Value:
    return b.convert(x, b.out.dtype)


# ---- rows: unary ops of prim, computed in the result's dtype (ints become floats first where torch says so)

UNARY = {
    aten.abs.default: "abs",
    aten.acos.default: "acos",
    aten.acosh.default: "acosh",
    aten.asin.default: "asin",
    aten.asinh.default: "asinh",
    aten.atan.default: "atan",
    aten.atanh.default: "atanh",
    aten.bitwise_not.default: "not",
    aten.ceil.default: "ceil",
    aten.cos.default: "cos",
    aten.cosh.default: "cosh",
    aten.erf.default: "erf",
    aten.erfc.default: "erfc",
    aten.exp.default: "exp",
    aten.exp2.default: "exp2",
    aten.expm1.default: "expm1",
    aten.floor.default: "floor",
    aten.log.default: "log",
    aten.log10.default: "log10",
    aten.log1p.default: "log1p",
    aten.log2.default: "log2",
    aten.neg.default: "neg",
    aten.round.default: "round",
    aten.rsqrt.default: "rsqrt",
    aten.sign.default: "sign",
    aten.sin.default: "sin",
    aten.sinh.default: "sinh",
    aten.sqrt.default: "sqrt",
    aten.tan.default: "tan",
    aten.tanh.default: "tanh",
    aten.trunc.default: "trunc",
}
_IDENTITY_ON_INTEGERS = ("ceil", "floor", "round", "trunc")
_NOT_OF_TRUTHS = (*_IDENTITY_ON_INTEGERS, "abs", "neg")


def _unary_row(name: str):
    def lower(b: Builder, x: Value) -> Value:
        dtype = b.out.dtype
        if x.dtype is torch.bool and name in _NOT_OF_TRUTHS:
            raise Unsupported(f"{name} of truths, which is an error in eager")
        x = b.convert(x, dtype)
        if dtype not in FLOATS and name in _IDENTITY_ON_INTEGERS:
            return x
        if dtype is torch.bool and name == "sign":
            return x
        if dtype is torch.uint8 and name == "abs":
            return x
        return b.unary(name, x)

    return lower


for _op, _name in UNARY.items():
    lowers(_op)(_unary_row(_name))

# ---- rows: binary ops of prim

BINARY = {
    aten.atan2.default: "atan2",
    aten.bitwise_and.Tensor: "and",
    aten.bitwise_and.Scalar: "and",
    aten.bitwise_and.Scalar_Tensor: "and",
    aten.bitwise_or.Tensor: "or",
    aten.bitwise_or.Scalar: "or",
    aten.bitwise_or.Scalar_Tensor: "or",
    aten.bitwise_xor.Tensor: "xor",
    aten.bitwise_xor.Scalar: "xor",
    aten.bitwise_xor.Scalar_Tensor: "xor",
    aten.maximum.default: "max",
    aten.minimum.default: "min",
}


def _binary_row(name: str):
    def lower(b: Builder, x: Operand, y: Operand) -> Value:
        return b.binary(name, *operands(b, b.out.dtype, x, y))

    return lower


for _op, _name in BINARY.items():
    lowers(_op)(_binary_row(_name))

COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def _compare_row(name: str):
    def lower(b: Builder, x: Operand, y: Operand) -> Value:
        return b.compare(name, *operands(b, promoted(x, y), x, y))

    return lower


for _aten, _name in COMPARISONS.items():
    lowers(getattr(aten, _aten).Tensor, getattr(aten, _aten).Scalar)(_compare_row(_name))


def truth(b: Builder, x: Operand) -> Value:
    """The argument as i1, broadcast."""
    return operand(b, x, torch.bool)


for _aten, _name in {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}.items():
    lowers(getattr(aten, _aten).default)(lambda b, x, y, name=_name: b.binary(name, truth(b, x), truth(b, y)))
lowers(aten.logical_not.default)(lambda b, x: b.unary("not", truth(b, x)))

# ---- arithmetic


def _opmath_operands(b: Builder, x: Operand, y: Operand, exact: bool) -> list[Value]:
    """Two operands in the dtype that eager computes in.

    In 16 bits, eager first rounds what is of another dtype to the result's. Where `exact`, its kernel does not round a second
    operand of one element.
    """
    dtype = b.out.dtype
    if dtype in HALVES:
        single = not isinstance(y, Value) or all(size == 1 for size in y.sizes)
        x = operand(b, x, dtype)
        y = y if exact and single else operand(b, y, dtype)
    return operands(b, opmath(dtype), x, y)


def _arithmetic(b: Builder, name: str, x: Operand, y: Operand) -> Value:
    """One binary op as eager rounds it."""
    dtype = b.out.dtype
    if dtype in HALVES and not all(isinstance(v, Value) and v.dtype is dtype for v in (x, y)):
        return b.convert(b.binary(name, *_opmath_operands(b, x, y, True)), dtype)
    if dtype is torch.bool:
        name = {"add": "or", "mul": "and"}[name]
    return b.binary(name, *operands(b, dtype, x, y))


def _scaled(b: Builder, name: str, x: Operand, y: Operand, alpha: Scalar) -> Value:
    if not isinstance(alpha, (bool, int, float)):
        raise Unsupported("alpha depends on a size")
    if alpha == 1:
        return _arithmetic(b, name, x, y)
    dtype = opmath(b.out.dtype)
    x, y = _opmath_operands(b, x, y, True)
    factor = operand(b, alpha, dtype)
    if dtype is torch.bool:
        return b.binary("or", x, b.binary("and", y, factor))
    return finish(b, b.binary(name, x, b.binary("mul", y, factor)))


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(b: Builder, x: Operand, y: Operand, alpha: Scalar = 1) -> Value:
    return _scaled(b, "add", x, y, alpha)


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def sub(b: Builder, x: Operand, y: Operand, alpha: Scalar = 1) -> Value:
    return _scaled(b, "sub", x, y, alpha)


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(b: Builder, x: Operand, y: Operand, alpha: Scalar = 1) -> Value:
    return _scaled(b, "sub", y, x, alpha)


@lowers(aten.mul.Tensor, aten.mul.Scalar)
def mul(b: Builder, x: Operand, y: Operand) -> Value:
    return _arithmetic(b, "mul", x, y)


def _nonzero_divisor(b: Builder, y: Value, original: Operand) -> Value:
    """The integer divisor, made safe: zeros fail the program as they do in eager, and divide as 1."""
    if (isinstance(original, int) and original != 0) or (y.bounds is not None and b.bounds.is_at_most(1, y.bounds[0])):
        return y
    zero = b.with_scalar("eq", y, 0)
    b.check(b.unary("not", zero), "RuntimeError: ZeroDivisionError")
    return b.select(zero, b.full(1, y.sizes, y.dtype), y)


def _opposite_signs(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("xor", b.with_scalar("lt", x, 0), b.with_scalar("lt", y, 0))


def _floor_divide(b: Builder, x: Operand, y: Operand, dtype: torch.dtype) -> Value:
    u, v = _opmath_operands(b, x, y, True)
    one = b.full(1, u.sizes, dtype)
    if dtype not in FLOATS:
        v = _nonzero_divisor(b, v, y)
        quotient, remainder = b.binary("div", u, v), b.binary("rem", u, v)
        down = b.binary("and", b.with_scalar("ne", remainder, 0), _opposite_signs(b, remainder, v))
        return b.select(down, b.binary("sub", quotient, one), quotient)
    # ATen's div_floor_floating (c10/util/generic_math.h)
    exact = b.binary("div", u, v)
    remainder = b.binary("rem", u, v)
    quotient = b.binary("div", b.binary("sub", u, remainder), v)
    down = b.binary("and", b.with_scalar("ne", remainder, 0), _opposite_signs(b, remainder, v))
    quotient = b.select(down, b.binary("sub", quotient, one), quotient)
    floor = b.unary("floor", quotient)
    far = b.with_scalar("gt", b.binary("sub", quotient, floor), 0.5)
    floor = b.select(far, b.binary("add", floor, one), floor)
    signed_zero = b.binary("mul", exact, b.full(0.0, u.sizes, dtype))
    result = b.select(b.with_scalar("eq", quotient, 0), signed_zero, floor)
    return b.select(b.with_scalar("eq", v, 0), exact, result)


@lowers(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(b: Builder, x: Operand, y: Operand) -> Value:
    return _arithmetic(b, "div", x, y)


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(b: Builder, x: Operand, y: Operand, rounding_mode: Optional[str] = None) -> Value:
    if rounding_mode is None:
        return div(b, x, y)
    dtype = opmath(b.out.dtype)
    if rounding_mode == "floor":
        return finish(b, _floor_divide(b, x, y, dtype))
    if dtype in FLOATS:
        return b.unary("trunc", _arithmetic(b, "div", x, y))  # the quotient is rounded first
    u, v = operands(b, dtype, x, y)
    return b.binary("div", u, _nonzero_divisor(b, v, y))


@lowers(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(b: Builder, x: Operand, y: Operand) -> Value:
    return finish(b, _floor_divide(b, x, y, opmath(b.out.dtype)))


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(b: Builder, x: Operand, y: Operand) -> Value:
    dtype = opmath(b.out.dtype)
    u, v = _opmath_operands(b, x, y, False)
    if dtype not in FLOATS:
        v = _nonzero_divisor(b, v, y)
    return finish(b, b.binary("rem", u, v))


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(b: Builder, x: Operand, y: Operand) -> Value:
    dtype = opmath(b.out.dtype)
    u, v = _opmath_operands(b, x, y, False)
    if dtype not in FLOATS:
        v = _nonzero_divisor(b, v, y)
    rem = b.binary("rem", u, v)
    wrong = b.binary("and", b.with_scalar("ne", rem, 0), _opposite_signs(b, rem, v))
    return finish(b, b.select(wrong, b.binary("add", rem, v), rem))


@lowers(aten.reciprocal.default)
def reciprocal(b: Builder, x: Value) -> Value:
    x = operand(b, x, opmath(b.out.dtype))
    return finish(b, b.binary("div", b.full(1.0, x.sizes, x.dtype), x))


@lowers(aten.pow.Tensor_Tensor)
def pow_tensor(b: Builder, x: Operand, y: Operand) -> Value:
    return b.binary("pow", *operands(b, b.out.dtype, x, y))


@lowers(aten.pow.Scalar)
def pow_scalar(b: Builder, x: Scalar, y: Value) -> Value:
    if x == 1:
        return b.full(1, b.out.sizes, b.out.dtype)
    return b.binary("pow", *operands(b, b.out.dtype, x, y))


@lowers(aten.ldexp.Tensor)
def ldexp(b: Builder, x: Value, exponent: Value) -> Value:
    """x * 2^exponent, rounded once if x is a float and the exponent an integer; else eager rounds the power as well."""
    if x.dtype not in FLOATS or exponent.dtype in FLOATS:
        power_dtype = exponent.dtype if exponent.dtype in FLOATS else torch.float32
        power = b.binary("pow", b.full(2.0, exponent.sizes, power_dtype), b.convert(exponent, power_dtype))
        return finish(b, b.binary("mul", *_opmath_operands(b, x, power, True)))
    if exponent.dtype is torch.bool:
        raise Unsupported("an exponent that is a truth, which is an error in eager")
    wide, rest = operand(b, x, torch.float64), operand(b, exponent, torch.int64)
    # Two steps take any number to a limit. Those down leave 53 bits, so that only the last product rounds.
    for _ in range(2):
        for comparison, limit, step in (("gt", 1023, 1023), ("lt", -1022, 53 - 1022)):
            beyond = b.with_scalar(comparison, rest, limit)
            wide = b.select(beyond, b.with_scalar("mul", wide, 2.0**step), wide)
            rest = b.select(beyond, b.with_scalar("sub", rest, step), rest)
    rest = b.with_scalar("max", b.with_scalar("min", rest, 1023), -1022)
    power = b.bitcast(b.with_scalar("shl", b.with_scalar("add", rest, 1023), 52), torch.float64)
    return finish(b, b.binary("mul", wide, power))


@lowers(aten.pow.Tensor_Scalar)
def power(b: Builder, x: Value, exponent: Scalar) -> Value:
    """ATen replaces these exponents by products and roots (pow_tensor_scalar_optimized_kernel)."""
    dtype = b.out.dtype
    if exponent == 0:
        return b.full(1, b.out.sizes, dtype)
    if exponent == 1:
        return operand(b, x, dtype)
    u = operand(b, x, dtype)
    if exponent in (2, 3):
        # the products round to the dtype one by one in eager as well
        square = b.binary("mul", u, u)
        return square if exponent == 2 else b.binary("mul", square, u)
    if dtype in FLOATS:
        if exponent in (0.5, -0.5):
            if dtype is torch.float16:
                # eager calls pow, to which -0 is 0 and -inf is inf
                infinity = b.full(math.inf, u.sizes, dtype)
                u = b.select(b.with_scalar("eq", u, -math.inf), infinity, b.with_scalar("add", u, 0.0))
            return b.unary("sqrt" if exponent > 0 else "rsqrt", u)
        wide = b.convert(u, opmath(dtype))
        one = b.full(1.0, wide.sizes, wide.dtype)
        if exponent == -1:
            return finish(b, b.binary("div", one, wide))
        if exponent == -2:
            return finish(b, b.binary("div", one, b.binary("mul", wide, wide)))
    elif isinstance(exponent, int) and exponent < 0:
        raise Unsupported("Integers to negative integer powers are not allowed.")
    return b.binary("pow", u, b.full(exponent, u.sizes, dtype))


for _aten, _name in {
    "bitwise_left_shift": "shl",
    "bitwise_right_shift": "shr",
    "__lshift__": "shl",
    "__rshift__": "shr",
}.items():
    for _overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor", "Scalar"):
        if hasattr(getattr(aten, _aten), _overload):
            lowers(getattr(getattr(aten, _aten), _overload))(_binary_row(_name))

# ---- predicates


@lowers(aten.isnan.default)
def isnan(b: Builder, x: Value) -> Value:
    return b.compare("ne", x, x)


@lowers(aten.isinf.default)
def isinf(b: Builder, x: Value) -> Value:
    if x.dtype not in FLOATS:
        return b.full(False, x.sizes, torch.bool)
    return b.with_scalar("eq", b.unary("abs", x), math.inf)


@lowers(aten.signbit.default)
def signbit(b: Builder, x: Value) -> Value:
    integers = {
        torch.float64: torch.int64,
        torch.float32: torch.int32,
        torch.float16: torch.int16,
        torch.bfloat16: torch.int16,
    }
    if x.dtype in FLOATS:
        x = b.bitcast(x, integers[x.dtype])
    if x.dtype is torch.bool:
        return b.full(False, x.sizes, torch.bool)
    return b.with_scalar("lt", x, 0)


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(b: Builder, x: Operand, y: Operand) -> Value:
    return copysign_of(b, *operands(b, b.out.dtype, x, y))


def copysign_of(b: Builder, x: Value, y: Value) -> Value:
    magnitude = b.unary("abs", x)
    return b.select(signbit(b, y), b.unary("neg", magnitude), magnitude)


@lowers(aten.angle.default)
def angle(b: Builder, x: Value) -> Value:
    """Of real numbers: pi of the negative ones, 0 of the others, NaN of NaN."""
    x = b.convert(x, b.out.dtype)
    zero, half_turn = b.full(0.0, x.sizes, x.dtype), b.full(math.pi, x.sizes, x.dtype)
    return b.select(isnan(b, x), x, b.select(b.with_scalar("lt", x, 0), half_turn, zero))


@lowers(aten.round.decimals)
def round_decimals(b: Builder, x: Value, decimals: int = 0) -> Value:
    """round(x * 10^d) / 10^d; for negative d the division comes first."""
    if x.dtype not in FLOATS:
        return x
    wide = b.convert(x, opmath(x.dtype))
    first, last = ("mul", "div") if decimals >= 0 else ("div", "mul")
    scaled = b.with_scalar(first, wide, 10.0 ** abs(decimals))
    return finish(b, b.with_scalar(last, b.unary("round", scaled), 10.0 ** abs(decimals)))


@lowers(aten.erfinv.default)
def erfinv(b: Builder, x: Value) -> Value:
    """A rational approximation in the centre and one in the tails, then two Newton steps on erf."""
    y = operand(b, x, opmath(b.out.dtype))

    def polynomial(z: Value, *coefficients: float) -> Value:
        result = b.full(coefficients[0], z.sizes, z.dtype)
        for c in coefficients[1:]:
            result = b.with_scalar("add", b.binary("mul", result, z), c)
        return result

    one = b.full(1.0, y.sizes, y.dtype)
    size = b.unary("abs", y)
    square = b.binary("mul", y, y)
    top = polynomial(square, -0.140543331, 0.914624893, -1.645349621, 0.886226899)
    bottom = polynomial(square, 0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0)
    centre = b.binary("mul", y, b.binary("div", top, bottom))
    half = b.with_scalar("div", b.binary("sub", one, size), 2.0)
    z = b.unary("sqrt", b.unary("neg", b.unary("log", half)))
    tail = b.binary(
        "div",
        polynomial(z, 1.641345311, 3.429567803, -1.624906493, -1.970840454),
        polynomial(z, 1.637067800, 3.543889200, 1.0),
    )
    guess = b.select(b.with_scalar("le", size, 0.7), centre, copysign_of(b, tail, y))
    for _ in range(2):
        slope = b.with_scalar(
            "mul", b.unary("exp", b.unary("neg", b.binary("mul", guess, guess))), 2.0 / math.sqrt(math.pi)
        )
        error = b.binary("sub", b.unary("erf", guess), y)
        guess = b.binary("sub", guess, b.binary("div", error, slope))
    ends = copysign_of(b, b.full(math.inf, y.sizes, y.dtype), y)
    return finish(b, b.select(b.with_scalar("eq", size, 1), ends, guess))


# ---- choice


@lowers(aten.where.self)
def where(b: Builder, condition: Value, x: Operand, y: Operand) -> Value:
    return b.select(truth(b, condition), *operands(b, b.out.dtype, x, y))


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(b: Builder, x: Value, mask: Value, value: Operand) -> Value:
    return b.select(truth(b, mask), filler(b, value, b.out.dtype), operand(b, x, b.out.dtype))


@lowers(aten.clamp.default, aten.clamp.Tensor)
def clamp(b: Builder, x: Value, min: Optional[Operand] = None, max: Optional[Operand] = None) -> Value:
    result = operand(b, x, b.out.dtype)
    for comparison, bound in (("lt", min), ("gt", max)):
        if bound is not None:
            result = _bounded(b, comparison, result, operand(b, bound, b.out.dtype))
    return result


def _bounded(b: Builder, comparison: str, x: Value, bound: Value) -> Value:
    """The bound where x is beyond it. Unlike a maximum this keeps -0.0 at a bound of 0, as eager does; NaN stays NaN."""
    beyond = b.compare(comparison, x, bound)
    if x.dtype in FLOATS and not _is_number(bound):
        beyond = b.binary("or", beyond, isnan(b, bound))
    return b.select(beyond, bound, x)


def _is_number(x: Value) -> bool:
    """Whether a value is a constant, spread or not, that is not NaN."""
    owner = x.ir.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "prim.broadcast":
        owner = owner.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != "prim.constant":
        return False
    value = ir.DenseElementsAttr(owner.attributes["value"])
    return value.is_splat and not math.isnan(value.get_splat_value().value)


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(b: Builder, x: Value, min: Operand) -> Value:
    return clamp(b, x, min)


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(b: Builder, x: Value, max: Operand) -> Value:
    return clamp(b, x, None, max)


@lowers(aten.fmax.default)
def fmax(b: Builder, x: Operand, y: Operand) -> Value:
    return _ignore_nan(b, "max", x, y)


@lowers(aten.fmin.default)
def fmin(b: Builder, x: Operand, y: Operand) -> Value:
    return _ignore_nan(b, "min", x, y)


def _ignore_nan(b: Builder, name: str, x: Operand, y: Operand) -> Value:
    u, v = operands(b, b.out.dtype, x, y)
    result = b.binary(name, u, v)
    if u.dtype not in FLOATS:
        return result
    return b.select(isnan(b, u), v, b.select(isnan(b, v), u, result))


# ---- activations, as ATen's kernels compute them


@lowers(aten.relu.default)
def relu(b: Builder, x: Value) -> Value:
    return clamp(b, x, 0)


@lowers(aten.hardtanh.default)
def hardtanh(b: Builder, x: Value, min_val: Scalar = -1, max_val: Scalar = 1) -> Value:
    return clamp(b, x, min_val, max_val)


@lowers(aten.sigmoid.default)
def sigmoid(b: Builder, x: Value) -> Value:
    return finish(b, _sigmoid(b, b.convert(x, opmath(b.out.dtype))))


def _sigmoid(b: Builder, x: Value) -> Value:
    # 1 / (1 + e^-x), or for negative x e^x / (1 + e^x): nothing overflows, and results may be denormal.
    one = b.full(1.0, x.sizes, x.dtype)
    power = b.unary("exp", b.unary("neg", b.unary("abs", x)))
    numerator = b.select(b.with_scalar("lt", x, 0), power, one)
    total = b.binary("add", one, power)
    quotient = b.binary("div", numerator, total)
    # What was lost in the sum, times the quotient and 1 / (1 + e^-|x|), which is the larger of it and what it lacks to 1.
    lost = b.binary("sub", power, b.binary("sub", total, one))
    inverse = b.binary("max", quotient, b.binary("sub", one, quotient))
    return b.binary("sub", quotient, b.binary("mul", b.binary("mul", quotient, lost), inverse))


@lowers(aten.silu.default)
def silu(b: Builder, x: Value) -> Value:
    wide = b.convert(x, opmath(x.dtype))
    one = b.full(1.0, x.sizes, wide.dtype)
    return finish(b, b.binary("div", wide, b.binary("add", one, b.unary("exp", b.unary("neg", wide)))))


@lowers(aten.gelu.default)
def gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    wide = b.convert(x, opmath(x.dtype))
    one, half = b.full(1.0, x.sizes, wide.dtype), b.full(0.5, x.sizes, wide.dtype)
    if approximate == "tanh":
        cube = b.binary("mul", b.binary("mul", wide, wide), wide)
        inner = b.binary("add", wide, b.with_scalar("mul", cube, 0.044715))
        factor = b.unary("tanh", b.with_scalar("mul", inner, math.sqrt(2.0) * (2.0 / math.sqrt(math.pi)) * 0.5))
    else:
        factor = b.unary("erf", b.with_scalar("mul", wide, math.sqrt(0.5)))
    return finish(b, b.binary("mul", b.binary("mul", half, wide), b.binary("add", one, factor)))


@lowers(aten.leaky_relu.default)
def leaky_relu(b: Builder, x: Value, negative_slope: Scalar = 0.01) -> Value:
    wide = b.convert(x, opmath(x.dtype))
    scaled = b.with_scalar("mul", wide, negative_slope)
    return finish(b, b.select(b.with_scalar("gt", wide, 0), wide, scaled))


@lowers(aten.elu.default)
def elu(b: Builder, x: Value, alpha: Scalar = 1, scale: Scalar = 1, input_scale: Scalar = 1) -> Value:
    wide = b.convert(x, opmath(x.dtype))
    positive = b.with_scalar("mul", wide, scale)
    negative = b.with_scalar("mul", b.unary("expm1", b.with_scalar("mul", wide, input_scale)), alpha * scale)
    return finish(b, b.select(b.with_scalar("gt", wide, 0), positive, negative))


# ---- conversions and copies


@lowers(aten._to_copy.default, torch.ops.prims.convert_element_type.default)
def to_copy(b: Builder, x: Value, *args: Any, **kwargs: Any) -> Value:
    return finish(b, x)


@lowers(
    aten.clone.default,
    aten.detach.default,
    aten.alias.default,
    aten.lift_fresh_copy.default,
    aten.contiguous.default,
    aten.positive.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def identity(b: Builder, x: Value, **kwargs: Any) -> Value:
    return x


@lowers(aten.view.dtype)
def view_dtype(b: Builder, x: Value, dtype: torch.dtype) -> Value:
    if x.dtype.itemsize != dtype.itemsize or torch.bool in (x.dtype, dtype):
        raise Unsupported(f"a view of {x.dtype} as {dtype}")
    return b.bitcast(x, dtype) if x.dtype != dtype else x


@lowers(aten.copy.default)
def copy(b: Builder, x: Value, source: Value, non_blocking: bool = False) -> Value:
    return operand(b, source, b.out.dtype)
