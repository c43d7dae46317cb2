"""Targets: what makes an executable of a program. Any package may add one, by an entry point of `lamina.targets`.

A target is a class that is called without arguments and has:

* ``name``;
* ``compile(program)``, which returns what lamina.frontend.program.Executable describes;
* optionally ``phases()`` and ``lower(module, after, until)``, the phases that it takes a prim module through;
* optionally ``emits``, kinds of code such as ``asm``, and ``emit(module, kind)``, which makes one of a prim module (it
  may change the module) as text or bytes;
* optionally ``makes_packages``, if what ``compile`` returns has ``save(path, signature=...)``;
* optionally ``schedule``, which is set to measured choices of how kernels are compiled, see lamina.targets.choices;
* optionally ``has_census``, if what ``compile`` returns has ``census(symbols)``, see lamina.census.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
from typing import Any, Optional

from lamina.errors import CompileError

PACKAGE = "package"
"""A file or folder that lamina_runtime runs."""

CENSUS = "census"
"""A table of what the kernels are made of, move and compute."""

OF_PROGRAMS = {PACKAGE: "makes_packages", CENSUS: "has_census"}
"""What is made of a whole program, not of its module alone; and the attribute of a target that makes it."""

# They are found without the package's metadata too, in a source tree.
_BUILT_IN = {
    "cpu": "lamina.targets.cpu:CPUTarget",
    "cuda": "lamina.targets.cuda:CUDATarget",
    "reference": "lamina.targets.reference:ReferenceTarget",
}


_ELSEWHERE = {"hip": "lamina-target-hip"}
"""Distributions of targets that are known not to come with Lamina."""


@functools.cache
def _registered() -> dict[str, str]:
    """The classes of all targets by name, as "module:attribute"."""
    found = {entry.name: entry.value for entry in importlib.metadata.entry_points(group="lamina.targets")}
    return {**found, **_BUILT_IN}


def target_names() -> list[str]:
    """The names of the targets that are installed."""
    return sorted(_registered())


def target_class(name: str) -> Any:
    """The class of a target's name such as ``cpu`` or ``cuda:sm_90``.

    Raises:
        CompileError: there is none of that name, or what it needs is not installed.
    """
    base = name.partition(":")[0]
    # Those that are built in are found without reading what is installed.
    place = _BUILT_IN.get(base) or _registered().get(base)
    if place is None:
        known = f"Targets: {', '.join(target_names())}."
        if base in _ELSEWHERE:
            hint = f"pip install {_ELSEWHERE[base]}, a package of its own. {known}"
            raise CompileError(f"the target {name!r} is not installed", hint=hint)
        raise CompileError(f"there is no target {name!r}", hint=known)
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise CompileError(f"the target {name!r} cannot be loaded: {error}") from error


def get_target(name: str, schedule: Optional[str] = None) -> Any:
    """The target of a name such as ``cpu`` or ``cuda:sm_90``.

    Args:
        name: the name.
        schedule: a file of measured choices, by which it compiles kernels.

    Raises:
        CompileError: there is none of that name, it takes no schedule, or there is none in the file.
    """
    found = _instance(name)
    if schedule is None:
        return found
    if not hasattr(found, "schedule"):
        raise CompileError(f"the target {found.name!r} takes no schedule", hint="leave it out, or compile for a GPU.")
    from .choices import Schedule

    found.schedule = Schedule.read(schedule)
    return found


def _instance(name: str) -> Any:
    target = target_class(name)
    device = name.partition(":")[2]
    try:
        return target(device) if device else target()
    except (TypeError, ValueError) as error:
        if not device:
            raise
        raise CompileError(f"the target {name!r} does not exist: {error}") from error


def target_that_emits(kind: str) -> Optional[str]:
    """The name of a target that makes this kind of code, or packages, or None."""
    for name in target_names():
        try:
            target = target_class(name)
            if kind in getattr(target, "emits", ()) or getattr(target, OF_PROGRAMS.get(kind, ""), False):
                return name
        except CompileError:
            continue
    return None
