"""Compiles structured ops on memrefs with lamina-lower-contractions and runs them on NumPy arrays of any strides."""

import ctypes
import dataclasses

import ml_dtypes
import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.passmanager import PassManager

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}


def descriptor(array: np.ndarray) -> ctypes.Array:
    """The array as MLIR's memref descriptor."""
    size = array.dtype.itemsize
    fields = [array.ctypes.data, array.ctypes.data, 0, *array.shape, *[s // size for s in array.strides]]
    return (ctypes.c_int64 * len(fields))(*fields)


def memref(array: np.ndarray, element: str, layout: str) -> str:
    """The array's memref type.

    `layout`: "static" (sizes and strides), "sizes" (static sizes), "dynamic" (nothing but unit strides), or "identity"
    (dynamic sizes of a contiguous array).
    """
    strides = [s // array.dtype.itemsize for s in array.strides]
    shape = "".join(f"{n if layout in ('static', 'sizes') else '?'}x" for n in array.shape)
    if layout == "identity" or array.ndim == 0:
        return f"memref<{shape}{element}>"
    if layout != "static":
        strides = [1 if s == 1 else "?" for s in strides]
    offset = "" if layout == "static" else ", offset: ?"
    return f"memref<{shape}{element}, strided<[{', '.join(map(str, strides))}]{offset}>>"


@dataclasses.dataclass
class Case:
    """One op: C += A * B over `loops`, with the index expressions of each operand."""

    loops: str  # names, reductions in capitals: "m n K"
    maps: tuple[str, str, str]  # "m, K"
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    elements: tuple[str, str, str]
    layouts: tuple[str, str, str] = ("static", "static", "static")
    fill: bool = True
    attributes: str = "lamina.contraction"

    def text(self, name: str) -> str:
        types = [memref(*x) for x in zip(self.arrays, self.elements, self.layouts, strict=True)]
        loops = self.loops.split()
        maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({m})>" for m in self.maps)
        kinds = ", ".join('"reduction"' if x.isupper() else '"parallel"' for x in loops)
        a, b, c = self.elements
        kind = "f" if "f" in c else "i"
        extend = "extf" if kind == "f" else "extsi"
        lines, product = [], []
        for value, element in (("%x", a), ("%y", b)):
            if element != c:
                lines.append(f"{value}w = arith.{extend} {value} : {element} to {c}")
                value += "w"
            product.append(value)
        zero = "0.0" if kind == "f" else "0"
        fill = f"linalg.fill ins(%zero : {c}) outs(%C : {types[2]})" if self.fill else ""
        return f"""
        func.func @{name}(%A: {types[0]}, %B: {types[1]}, %C: {types[2]}) attributes {{llvm.emit_c_interface}} {{
          %zero = arith.constant {zero} : {c}
          {fill}
          linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}], {self.attributes}}}
              ins(%A, %B : {types[0]}, {types[1]}) outs(%C : {types[2]}) {{
          ^bb0(%x: {a}, %y: {b}, %z: {c}):
            {chr(10).join(lines)}
            %p = arith.mul{kind} {", ".join(product)} : {c}
            %s = arith.add{kind} %z, %p : {c}
            linalg.yield %s : {c}
          }}
          return
        }}"""


class Program:
    """Cases compiled together."""

    def __init__(self, cases: list[Case], options: str = "", prepare: str = "", level: int = 2):
        text = "\n".join(case.text(f"case{i}") for i, case in enumerate(cases))
        with ir.Context():
            module = ir.Module.parse(text)
            PassManager.parse(f"builtin.module(lamina-lower-contractions{{{options}}})").run(module.operation)
            left = str(module).count("linalg.generic")  # fills may stay
            assert left == 0, f"{left} ops were not lowered"
            PassManager.parse(f"builtin.module({prepare}convert-linalg-to-loops,lamina-cpu-to-llvm)").run(
                module.operation
            )
            self.engine = ExecutionEngine(module, opt_level=level)
        self.functions = [self.engine.raw_lookup(f"_mlir_ciface_case{i}") for i in range(len(cases))]

    def bind(self, number: int, *arrays: np.ndarray):
        """A call of one case on these arrays, without arguments."""
        descriptors = [descriptor(x) for x in arrays]
        pointers = (ctypes.c_void_p * len(arrays))(*[ctypes.addressof(x) for x in descriptors])
        # The wrapper takes the address of each argument, and the arguments are addresses of descriptors.
        packed = (ctypes.c_void_p * len(arrays))(
            *[ctypes.addressof(pointers) + i * ctypes.sizeof(ctypes.c_void_p) for i in range(len(arrays))]
        )
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.functions[number])
        return lambda _keep=(self, descriptors, pointers, arrays): function(packed)

    def run(self, number: int, *arrays: np.ndarray) -> None:
        self.bind(number, *arrays)()


def random(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> np.ndarray:
    if "f" in element:
        return rng.standard_normal(shape).astype(DTYPES[element])
    return rng.integers(-100, 100, shape).astype(DTYPES[element])


def check(cases: list[Case], references: list, options: str = "") -> None:
    """Runs each case and compares it with `reference(a, b)`, in f64 or integers, plus C's values if there is no fill.

    The bound on the error of a floating-point sum is that of any order of summation: terms * eps * sum of magnitudes.
    """
    program = Program(cases, options)
    for number, (case, reference) in enumerate(zip(cases, references, strict=True)):
        a, b, c = case.arrays
        c = c.copy() if case.layouts[2] == "identity" else c
        before = c.copy()
        guard = None
        if c.base is not None and c.base.dtype == c.dtype:
            guard = c.base.copy()
        program.run(number, a, b, c)
        wide = np.float64 if "f" in case.elements[2] else c.dtype
        expected = reference(a.astype(wide), b.astype(wide)).astype(wide)
        magnitude = reference(np.abs(a.astype(wide)), np.abs(b.astype(wide)))
        if not case.fill:
            expected = expected + before
            magnitude = magnitude + np.abs(before)
        where = f"case {number}: {case.text('f')}"
        if wide is np.float64:
            bound = 64 * np.finfo(c.dtype).eps * magnitude + 1e-30
            error = np.abs(c - expected)
            assert np.all(error <= bound), f"{where}\n{np.max(error - bound)} at {np.argwhere(~(error <= bound))[:5]}"
        else:
            assert np.array_equal(c, expected), where
        if guard is not None:
            # Nothing outside C's own elements was written.
            after = c.base.copy()
            c[...] = before
            assert np.array_equal(c.base, guard, equal_nan=True), f"{where}\nwrites outside C"
            c.base[...] = after
