"""The reference interpreter: runs any `prim` or `fused` module on NumPy arrays, slowly and obviously right.

It is written from the ops' descriptions, one small function an op, and is what passes are checked against.

>>> from lamina import dialects, reference
>>> module = dialects.parse('''
...   func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
...     %0 = prim.mul %x, %x : tensor<3xf32>
...     return %0 : tensor<3xf32>
...   }''')
>>> reference.run(module, numpy.array([1, 2, 3], numpy.float32))
[array([1., 4., 9.], dtype=float32)]
"""

from .bounds import Bounded, find_mismatch, run_with_bounds
from .errors import ArgumentError, InterpreterError, InvalidModuleError, ProgramError
from .interpreter import RULES, Interpreter, run
from .values import Array, from_torch, to_torch

__all__ = [
    "RULES",
    "ArgumentError",
    "Array",
    "Bounded",
    "Interpreter",
    "InterpreterError",
    "InvalidModuleError",
    "ProgramError",
    "find_mismatch",
    "from_torch",
    "run",
    "run_with_bounds",
    "to_torch",
]
