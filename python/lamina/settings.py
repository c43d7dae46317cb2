"""The environment variables that change what Lamina does, checked before anything depends on them."""

from __future__ import annotations

from lamina import cache, logging
from lamina.options import environment_fallback


def check() -> None:
    """Warns, once a process, of what would be ignored.

    Raises:
        SettingError: a value that decides what is compiled is not allowed.
    """
    environment_fallback()
    cache.limit()
    unknown = logging.unknown_phases()
    if unknown:
        cache.warn_once(f"LAMINA_LOGS names {', '.join(unknown)}, expected some of {', '.join(logging.PHASES)}, or all")
