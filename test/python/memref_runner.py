"""Compiles `func.func`s on memrefs through lamina-vectorize-loops and runs them on NumPy arrays."""

import ctypes

import ml_dtypes
import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.passmanager import PassManager

from lamina._lib import _lamina

LOWERING = (
    "convert-vector-to-scf,expand-strided-metadata,lower-affine,arith-expand,convert-scf-to-cf,"
    "convert-vector-to-llvm{enable-x86vector},convert-math-to-llvm,convert-math-to-libm,expand-strided-metadata,lower-affine,"
    "convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,"
    "convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse"
)

ELEMENT_TYPES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "i8",
    np.dtype(np.bool_): "i1",
}


def element_type(array):
    return ELEMENT_TYPES[array.dtype]


def memref_type(array, dynamic=False):
    """The memref type of an array: static sizes and strides, or `?` for all of them (identity layout where contiguous)."""
    strides = [s // array.itemsize for s in array.strides]
    sizes = "".join(("?" if dynamic else str(s)) + "x" for s in array.shape)
    layout = ""
    if not array.flags.c_contiguous:
        text = ", ".join("1" if s == 1 else "?" if dynamic else str(s) for s in strides)
        layout = f", strided<[{text}]>"
    return f"memref<{sizes}{element_type(array)}{layout}>"


def generic(maps, iterators, inputs, outputs, body, dynamic=False, attributes=""):
    """The text of a `func.func @f` with one linalg.generic over all the arrays.

    maps: results of each operand's map over d0.. as text, e.g. "d0, d1". body: text over %in0.., %out0.. ending in a yield
    of its own; `{t}` in it is not replaced.
    """
    dims = ", ".join(f"d{i}" for i in range(len(iterators)))
    names = {"p": '"parallel"', "r": '"reduction"'}
    arrays = [*inputs, *outputs]
    types = [memref_type(a, dynamic) for a in arrays]
    args = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    n = len(inputs)
    ins = ""
    if n:
        ins = f"ins({', '.join(f'%a{i}' for i in range(n))} : {', '.join(types[:n])})"
    outs = f"outs({', '.join(f'%a{i}' for i in range(n, len(arrays)))} : {', '.join(types[n:])})"
    blocks = [f"%in{i}: {element_type(a)}" for i, a in enumerate(inputs)]
    blocks += [f"%out{i}: {element_type(a)}" for i, a in enumerate(outputs)]
    return f"""
func.func @f({args}) attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{indexing_maps = [{", ".join(f"affine_map<({dims}) -> ({m})>" for m in maps)}],
    iterator_types = [{", ".join(names[i] for i in iterators)}]}} {ins} {outs} {attributes} {{
  ^bb0({", ".join(blocks)}):
{body}
  }}
  return
}}"""


def lower(text, options="", opt_level=2):
    """Text -> (module in the LLVM dialect, text after vectorizing)."""
    with ir.Context() as context:
        _lamina.register_dialects(context)
        module = ir.Module.parse(text)
        passes = f"lamina-vectorize-loops{{{options}}},canonicalize,cse,loop-invariant-code-motion"
        PassManager.parse(f"builtin.module({passes})").run(module.operation)
        loops = str(module)
        assert "linalg." not in loops
        PassManager.parse(f"builtin.module({LOWERING})").run(module.operation)
        engine = ExecutionEngine(module, opt_level=opt_level)
        return engine, loops


def descriptor(array):
    rank = array.ndim

    class Descriptor(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * rank),
            ("strides", ctypes.c_int64 * rank),
        ]

    strides = [s // array.itemsize for s in array.strides]
    return Descriptor(
        array.ctypes.data,
        array.ctypes.data,
        0,
        (ctypes.c_int64 * rank)(*array.shape),
        (ctypes.c_int64 * rank)(*strides),
    )


def run(text, *arrays, options=""):
    """Runs @f on the arrays, in place; returns the text after vectorizing."""
    engine, loops = lower(text, options)
    pointers = [ctypes.pointer(ctypes.pointer(descriptor(a))) for a in arrays]
    engine.invoke("f", *pointers)
    return loops
