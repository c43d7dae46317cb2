"""Runs math ops through lamina-expand-math and the JIT on arrays, and measures errors in units of the last place."""

import ctypes

import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.passmanager import PassManager
from mlir.runtime import get_ranked_memref_descriptor

from lamina._lib import _lamina  # noqa: F401  (registers the passes)

PIPELINE = (
    "builtin.module(lamina-expand-math,convert-scf-to-cf,convert-vector-to-llvm,convert-math-to-llvm,"
    "convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,"
    "reconcile-unrealized-casts)"
)

SIGMOID = """
  %low = arith.constant dense<0.0> : TYPE
  %one = arith.constant dense<1.0> : TYPE
  %abs = math.absf %a : TYPE
  %minus = arith.negf %abs : TYPE
  %exp = math.exp %minus : TYPE
  %negative = arith.cmpf olt, %a, %low : TYPE
  %numerator = arith.select %negative, %exp, %one : MASK, TYPE
  %sum = arith.addf %one, %exp : TYPE
  %quotient = arith.divf %numerator, %sum : TYPE
  %back = arith.subf %sum, %one : TYPE
  %lost = arith.subf %exp, %back : TYPE
  %rest = arith.subf %one, %quotient : TYPE
  %inverse = arith.maximumf %quotient, %rest : TYPE
  %part = arith.mulf %quotient, %lost : TYPE
  %correction = arith.mulf %part, %inverse : TYPE
  %r = arith.subf %quotient, %correction : TYPE"""
"""The body of a Loop, as the importer writes it."""


class Loop:
    """A compiled loop of one body over arrays of equal length.

    `body` is MLIR text that computes %r from %a, %b, ... of type TYPE, and i1 of type MASK; `lanes` = 0 makes the loop scalar.
    """

    def __init__(self, body: str, operands: int = 1, lanes: int = 16, element: str = "f32", pipeline: str = PIPELINE):
        kind = f"vector<{lanes}x{element}>" if lanes else element
        mask = f"vector<{lanes}xi1>" if lanes else "i1"
        step = lanes or 1
        names = "abc"[:operands]
        memref = f"memref<?x{element}>"
        if lanes:
            loads = "\n".join(f"%{n} = vector.load %m{n}[%i] : {memref}, {kind}" for n in names)
            store = f"vector.store %r, %mr[%i] : {memref}, {kind}"
        else:
            loads = "\n".join(f"%{n} = memref.load %m{n}[%i] : {memref}" for n in names)
            store = f"memref.store %r, %mr[%i] : {memref}"
        text = f"""
        func.func @loop({", ".join(f"%m{n}: {memref}" for n in names)}, %mr: {memref}, %n: index)
            attributes {{llvm.emit_c_interface}} {{
          %zero = arith.constant 0 : index
          %step = arith.constant {step} : index
          scf.for %i = %zero to %n step %step {{
            {loads}
            {body.replace("TYPE", kind).replace("MASK", mask)}
            {store}
          }}
          return
        }}"""
        with ir.Context():
            module = ir.Module.parse(text)
            PassManager.parse(pipeline).run(module.operation)
            self.engine = ExecutionEngine(module, opt_level=2)
        self.step = step
        self.function = self.engine.lookup("loop")

    def bind(self, *arrays: np.ndarray) -> ctypes.Array:
        """The packed arguments of a call on these arrays (the last is the result), for `self.function`."""
        descriptors = [get_ranked_memref_descriptor(a) for a in arrays]
        pointers = [ctypes.pointer(ctypes.pointer(d)) for d in descriptors]
        size = ctypes.c_int64(len(arrays[0]))
        packed = (ctypes.c_void_p * (len(pointers) + 1))(
            *[ctypes.cast(p, ctypes.c_void_p).value for p in pointers], ctypes.addressof(size)
        )
        packed.keep = (arrays, descriptors, pointers, size)
        return packed

    def __call__(self, *arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        size = len(arrays[0])
        padded = -(-size // self.step) * self.step
        if padded != size:
            arrays = tuple(np.resize(a, padded) for a in arrays)
        if out is None or len(out) != padded:
            out = np.empty(padded, arrays[0].dtype)
        self.function(self.bind(*arrays, out))
        return out[:size]


def unary(name: str, **options) -> Loop:
    """The loop of one unary math op."""
    return Loop(f"%r = math.{name} %a : TYPE", **options)


def ulp_errors(values: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|values - exact| in units of the last place of f32 at `exact` (f64), infinite where the kinds disagree.

    An infinity counts as 2^128, the next number that f32 would have, and so do exact values beyond it; NaN matches NaN,
    and a zero must have the sign of the exact value.
    """
    limit = 2.0**128
    with np.errstate(invalid="ignore"):  # raised by signalling NaNs
        values = values.astype(np.float64)
    wide = np.clip(values, -limit, limit)
    reference = np.clip(exact, -limit, limit)
    # frexp: |exact| = m 2^e, 1/2 <= m < 1; f32 has 24 bits, and at least 2^-149.
    _, exponent = np.frexp(reference)
    spacing = np.ldexp(1.0, np.clip(exponent - 24, -149, 104))
    with np.errstate(invalid="ignore"):
        errors = np.abs(wide - reference) / spacing
    both = np.isnan(values) & np.isnan(exact)
    errors = np.where(both, 0.0, np.where(np.isnan(values) | np.isnan(exact), np.inf, errors))
    wrong_sign = ~both & (np.signbit(values) != np.signbit(exact))
    return np.where(wrong_sign, np.inf, errors)
