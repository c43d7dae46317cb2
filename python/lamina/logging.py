"""Loggers of Lamina's phases, turned on by the environment: ``LAMINA_LOGS="frontend,fusion"``, or ``all``.

The loggers are ``lamina.frontend`` (capture and import), ``lamina.fallback``, ``lamina.fusion``, ``lamina.planning``,
``lamina.tiling``, ``lamina.cpu`` (the phases of the CPU target and code generation), ``lamina.cache``, and one of each other
target's name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator

PHASES = ("frontend", "fallback", "fusion", "planning", "tiling", "cpu", "cuda", "cache")


class _StandardError(logging.StreamHandler):
    """Writes to whatever sys.stderr is at the time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self):  # type: ignore[override]
        import sys

        return sys.stderr


class _Formatter(logging.Formatter):
    """Lines begin with the seconds since the process started logging, and the phase."""

    def format(self, record: logging.LogRecord) -> str:
        phase = record.name.removeprefix("lamina.")
        lines = super().format(record).splitlines() or [""]
        return "\n".join(f"{record.relativeCreated / 1000:9.3f}s {phase}: {line}" for line in lines)


def _wanted() -> set[str]:
    return {name for part in os.environ.get("LAMINA_LOGS", "").split(",") if (name := part.strip())}


def unknown_phases() -> list[str]:
    """The names in LAMINA_LOGS that no logger has."""
    unknown = _wanted() - {"all", *PHASES}
    if unknown:
        from lamina.targets import target_names

        unknown -= set(target_names())
    return sorted(unknown)


def get_logger(phase: str) -> logging.Logger:
    """The logger ``lamina.<phase>``; at level DEBUG with a handler of its own if LAMINA_LOGS names it."""
    logger = logging.getLogger(f"lamina.{phase}")
    wanted = _wanted()
    if (phase in wanted or "all" in wanted) and not logger.handlers:
        handler = _StandardError()
        handler.setFormatter(_Formatter())
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    return logger


@contextlib.contextmanager
def timed(logger: logging.Logger, what: str) -> Iterator[None]:
    """Logs how long the body took, at level DEBUG; the record has the attributes `what`, `seconds` and `cpu_seconds`."""
    start, cpu = time.perf_counter(), time.process_time()
    yield
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    figures = {"what": what, "seconds": seconds, "cpu_seconds": cpu}
    logger.debug("%s: %.1f ms (%.1f ms of CPU)", what, 1e3 * seconds, 1e3 * cpu, extra=figures)
