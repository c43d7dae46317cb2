"""Nested arguments and results: trees of tuples, lists and dictionaries, as a plan says them. A leaf is None."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import PackageError

KINDS = ("tuple", "list", "dict", "namedtuple", "fields")


class Fields(collections.OrderedDict):
    """What stands for a result of a class of the model's own: a dictionary whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


def check(tree: Any) -> int:
    """The number of leaves of a tree.

    Raises:
        PackageError: it is none.
    """
    if tree is None:
        return 1
    try:
        if tree["kind"] not in KINDS or len(tree.get("keys", tree["children"])) != len(tree["children"]):
            raise PackageError(f"the plan has a structure of the kind {tree['kind']!r}")
        return sum(check(child) for child in tree["children"])
    except (TypeError, KeyError) as error:
        raise PackageError("the plan has a structure that cannot be read") from error


def flatten(tree: Any, value: Any, what: str = "the arguments") -> Iterator[Any]:
    """The leaves of a value.

    Raises:
        TypeError: the value has another structure.
    """
    if tree is None:
        yield value
        return
    kind, children = tree["kind"], tree["children"]
    if kind in ("dict", "fields"):
        if not isinstance(value, dict) or set(value) != set(tree["keys"]):
            got = f"keys {list(value)}" if isinstance(value, dict) else f"a {type(value).__name__}"
            raise TypeError(f"{what}: expected a dictionary with the keys {tree['keys']}, got {got}")
        parts: Sequence[Any] = [value[key] for key in tree["keys"]]
        names: Sequence[Any] = tree["keys"]
    else:
        expected = list if kind == "list" else tuple
        if not isinstance(value, expected) or len(value) != len(children):
            got = f"{len(value)} of them" if isinstance(value, expected) else f"a {type(value).__name__}"
            raise TypeError(f"{what}: expected a {expected.__name__} of {len(children)}, got {got}")
        parts, names = value, range(len(children))
    for name, child, part in zip(names, children, parts):
        yield from flatten(child, part, f"{what}[{name!r}]")


def unflatten(tree: Any, leaves: Iterator[Any]) -> Any:
    """The value of a structure with these leaves."""
    if tree is None:
        return next(leaves)
    parts = [unflatten(child, leaves) for child in tree["children"]]
    kind = tree["kind"]
    if kind == "tuple":
        return tuple(parts)
    if kind == "list":
        return parts
    if kind == "namedtuple":
        return collections.namedtuple(tree["name"], tree["keys"], rename=True)(*parts)  # type: ignore[misc]
    items = zip(tree["keys"], parts)
    return Fields(items) if kind == "fields" else dict(items)
