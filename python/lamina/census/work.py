"""What the launches of a program read, write and compute: lamina-count-work's attributes, in terms of the program's sizes.

This is the one place that counts bytes and operations, for every target that has kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.compiler import copy_module, run_passes
from lamina.package.expressions import Expr, evaluate, make, of_map, product, substitute


@dataclass(frozen=True)
class LaunchWork:
    """The work of one launch; sizes are expressions over the host function's symbols.

    Attributes:
        kernel: its name.
        read: bytes of its inputs, each touched once; of a table that is gathered from no more than is looked up.
        written: bytes of its outputs.
        products: multiplications and additions of contractions and convolutions, by the operands' element type.
        operations: those of elementwise ops and reductions.
    """

    kernel: str
    read: Expr
    written: Expr
    products: Mapping[str, Expr]
    operations: Expr

    def at(self, symbols: Sequence[int]) -> LaunchWork:
        """The same with numbers instead of expressions."""
        return LaunchWork(
            self.kernel,
            evaluate(self.read, symbols),
            evaluate(self.written, symbols),
            {element: evaluate(number, symbols) for element, number in self.products.items()},
            evaluate(self.operations, symbols),
        )


def count_work(module: Any, target: Any) -> dict[str, list[LaunchWork]]:
    """The work of every launch of each host function, in order.

    Args:
        module: a prim module, which is left as it is.
        target: what it is fused for; from lamina.targets.get_target.

    Raises:
        CompileError: a pass failed.
    """
    copy = copy_module(module)
    for _ in target.lower(copy, "prim", "planned"):
        pass
    return read_work(copy)


def read_work(module: Any) -> dict[str, list[LaunchWork]]:
    """The same of a module in the phase ``planned``, which gets attributes."""
    run_passes(module, "kernel.func(lamina-count-work)", "planned")
    operations = [op.operation for op in module.body.operations]
    kernels = {_name(op): op for op in operations if op.name == "kernel.func"}
    hosts = {_name(op): op for op in operations if op.name == "func.func" and len(op.regions[0].blocks)}
    return {
        name: [
            _work(op.operation, kernels) for op in host.regions[0].blocks[0].operations if op.name == "kernel.launch"
        ]
        for name, host in hosts.items()
    }


def _name(op: Any) -> str:
    from mlir import ir

    return ir.StringAttr(op.attributes["sym_name"]).value


def _work(launch: Any, kernels: Mapping[str, Any]) -> LaunchWork:
    from mlir import ir

    name = ir.FlatSymbolRefAttr(launch.attributes["kernel"]).value
    symbols = of_map(launch.attributes["symbols"])
    work = ir.DictAttr(kernels[name].attributes["kernel.work"])
    elements = [of_map(bounds) for bounds in ir.ArrayAttr(work["elements"])]
    inputs = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))[0]
    # A tensor that is passed twice is read once.
    seen: set[Any] = set()
    read: list[Expr] = []
    written: list[Expr] = []
    for number, (value, bounds) in enumerate(zip(launch.operands, elements, strict=True)):
        if number < inputs and value in seen:
            continue
        seen.add(value)
        size = product([_element_bytes(value.type.element_type), make("min", *bounds) if bounds else 0])
        (read if number < inputs else written).append(substitute(size, symbols))
    return LaunchWork(
        name,
        make("+", *read) if read else 0,
        make("+", *written) if written else 0,
        {
            named.name: substitute(of_map(named.attr)[0], symbols) if of_map(named.attr) else 0
            for named in ir.DictAttr(work["products"])
        },
        substitute(of_map(work["operations"])[0], symbols),
    )


def _element_bytes(element: Any) -> int:
    from lamina.package.hosts import element_bytes

    return element_bytes(element)
