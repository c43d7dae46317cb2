"""The form of an op's rule, and how rules read attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from .errors import InvalidModuleError
from .sizes import Symbols, evaluate_all
from .values import Array, get_shape


@dataclass(frozen=True)
class Call:
    """One op about to be executed.

    Attributes:
        op: the operation.
        symbols: values of the symbols of the function that it is in.
    """

    op: ir.Operation
    symbols: Symbols

    def integer(self, name: str) -> int:
        """Returns an integer attribute."""
        return int(ir.IntegerAttr(self.op.attributes[name]).value)

    def boolean(self, name: str) -> bool:
        """Returns a boolean attribute."""
        return bool(ir.BoolAttr(self.op.attributes[name]).value)

    def integers(self, name: str) -> list[int]:
        """Returns the elements of an array attribute."""
        return [int(i) for i in ir.DenseI64ArrayAttr(self.op.attributes[name])]

    def case(self, name: str) -> str:
        """Returns the case of an enum attribute: `sum` of `#prim.combiner<sum>`."""
        text = str(self.op.attributes[name])
        return text[text.index("<") + 1 : text.rindex(">")]

    def exprs(self, name: str) -> tuple[int, ...]:
        """Returns the values of a list of size expressions."""
        return evaluate_all(self.op.attributes[name], self.symbols)

    def result_type(self, number: int = 0) -> ir.Type:
        """Returns the type of a result."""
        return self.op.results[number].type

    def result_shape(self) -> tuple[int, ...]:
        """Returns the result's shape: `sizes` where the op has them, else those of the type."""
        if "sizes" in self.op.attributes:
            return self.exprs("sizes")
        shape = get_shape(self.result_type())
        if None in shape:
            raise InvalidModuleError(f"{self.op.name} has a result of dynamic size and no sizes")
        return tuple(n for n in shape if n is not None)


Rule = Callable[[Call, Sequence[Array]], "Array | tuple[Array, ...]"]
"""Computes an op's results from its operands."""
