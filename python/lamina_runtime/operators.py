"""Operators of PyTorch that a plan names, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Optional

import torch

from .errors import PackageError
from .expressions import check, evaluate

Argument = Callable[[Sequence[Any], Sequence[int]], Any]
"""Makes an argument of the values of a program's slots, and of its symbols."""

_NAMESPACES = ("aten", "prims")
_FORBIDDEN = frozenset({"aten.from_file"})
"""Operators that touch what is outside of the process."""


def find_operator(name: str, libraries: Collection[str] = ()) -> torch._ops.OpOverload:
    """The overload of a name such as ``aten.permute.default``.

    Args:
        name: of the overload.
        libraries: namespaces beside PyTorch's own that are allowed.

    Raises:
        PackageError: there is none, or it is not allowed.
    """
    namespace, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    if namespace not in _NAMESPACES and namespace not in libraries:
        raise PackageError(
            f"the program calls the operator {name} of a library: import it, and allow it by "
            f"lamina_runtime.load(..., libraries=[{namespace!r}])"
        )
    if f"{namespace}.{packet}" in _FORBIDDEN:
        raise PackageError(f"the plan has {name}, which no package may call")
    op = getattr(getattr(getattr(torch.ops, namespace), packet, None), overload or "default", None)
    if not isinstance(op, torch._ops.OpOverload):
        raise PackageError(f"the program calls the operator {name}, which is not registered here")
    return op


def read_argument(
    data: dict[str, Any],
    symbols: int,
    device: torch.device,
    special: Callable[[dict[str, Any]], Optional[Argument]] = lambda data: None,
) -> Argument:
    """An argument from its JSON: a size, a list, a value, or what `special` makes of it.

    Raises:
        PackageError: it is none of these.
    """
    found = special(data)
    if found is not None:
        return found
    if "size" in data:
        expr = check(data["size"], symbols)
        return lambda slots, values: evaluate(expr, values)
    if "list" in data:
        parts = [read_argument(part, symbols, device, special) for part in data["list"]]
        return lambda slots, values: [part(slots, values) for part in parts]
    value = value_of(data["value"], device)
    return lambda slots, values: value


def value_of(data: Any, device: torch.device) -> Any:
    """A value that is no tensor, from its JSON.

    Raises:
        PackageError: it is none.
    """
    if not isinstance(data, dict):
        return data
    ((kind, text),) = data.items()
    if kind == "float":
        return float(text)
    if kind == "complex":
        return complex(*(value_of(part, device) for part in text))
    if kind == "device":
        return device
    if kind in ("dtype", "layout", "memory_format"):
        value = getattr(torch, str(text), None)
        if isinstance(value, getattr(torch, kind)):
            return value
    raise PackageError(f"the plan has {data!r} where a value must be")
