"""Loggers of Lamina's phases, turned on by the environment: ``LAMINA_LOGS="frontend,fusion"``, or ``all``."""

from __future__ import annotations

import logging
import os


def get_logger(phase: str) -> logging.Logger:
    """The logger ``lamina.<phase>``; at level DEBUG with a handler of its own if LAMINA_LOGS names it."""
    logger = logging.getLogger(f"lamina.{phase}")
    wanted = {name.strip() for name in os.environ.get("LAMINA_LOGS", "").split(",")}
    if (phase in wanted or "all" in wanted) and not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    return logger
