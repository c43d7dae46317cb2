"""Schedules as files: for kernels, by what they compute, how each is best compiled for a chip, as it was measured.

`lamina_runtime.tune` writes them; `lamina.compile(schedule=...)` and ``lamina compile --schedule`` compile by them.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Union

SCHEDULE_FORMAT = 1
"""Of schedules; others are not read."""

_LARGEST = 64 << 20

Entries = dict[str, dict[str, dict[str, Any]]]
"""By key of a kernel, then by chip with its target: ``kernel`` (its name), ``choice``, and the times in ``seconds`` and
``default_seconds``."""


class ScheduleError(ValueError):
    """A file that is no schedule, or one of another format."""


def read_schedule(path: Union[str, os.PathLike[str]]) -> Entries:
    """Reads a schedule.

    Raises:
        ScheduleError: it is none, is damaged, or of another format.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ScheduleError(f"{path} is too large for a schedule")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ScheduleError(f"{path} is no schedule: {error}") from error
    if not isinstance(content, dict) or "format" not in content:
        raise ScheduleError(f"{path} is no schedule")
    if content["format"] != SCHEDULE_FORMAT:
        raise ScheduleError(f"{path} has the format {content['format']!r}, expected {SCHEDULE_FORMAT}")
    kernels = content.get("kernels")
    if not isinstance(kernels, dict) or not all(
        isinstance(chips, dict)
        and all(isinstance(entry, dict) and isinstance(entry.get("choice"), dict) for entry in chips.values())
        for chips in kernels.values()
    ):
        raise ScheduleError(f"{path} is damaged: it has no choices of kernels")
    return kernels


def merge_schedules(old: Entries, new: Entries) -> Entries:
    """All entries of both; of a kernel on a chip that both have, the new one."""
    merged = {key: dict(chips) for key, chips in old.items()}
    for key, chips in new.items():
        merged.setdefault(key, {}).update(chips)
    return merged


def write_schedule(path: Union[str, os.PathLike[str]], entries: Entries) -> None:
    """Writes a schedule, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    place = Path(path)
    text = json.dumps({"format": SCHEDULE_FORMAT, "kernels": entries}, sort_keys=True, indent=1) + "\n"
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
    try:
        with open(descriptor, "w") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
