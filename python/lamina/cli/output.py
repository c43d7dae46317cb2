"""Files that are written whole or not at all, aligned tables, and progress on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Union

from .errors import UserError


def write_file(path: Path, data: Union[str, bytes]) -> None:
    """Writes a file whole, or leaves what was there.

    Raises:
        UserError: it cannot be written.
    """
    content = data.encode() if isinstance(data, str) else data
    temporary = ""
    try:
        if path.exists() and not path.is_file():
            # a pipe or a device, such as /dev/stdout, cannot be replaced
            path.write_bytes(content)
            return
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        place = path.resolve()
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}-", delete=False) as file:
            temporary = file.name
            file.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, place)
        temporary = ""
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_result(data: Union[str, bytes], path: Union[str, None]) -> None:
    """Writes a result to a file, or to stdout; bytes are not written to a terminal.

    Raises:
        UserError: it cannot be written.
    """
    if path is not None and path != "-":
        write_file(Path(path), data)
    elif isinstance(data, str):
        print(data if data.endswith("\n") else data + "\n", end="")
    elif sys.stdout.isatty() and path is None:
        raise UserError("the result is binary; give a file with -o, or -o - for the terminal")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Rows as aligned columns."""
    widths = [max(len(row[k]) for row in rows if k < len(row)) for k in range(max(len(row) for row in rows))]
    return "\n".join(indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def bytes_text(count: int) -> str:
    """A number of bytes for people."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


class Progress:
    """What is being done and for how long it took; shown on stderr while it runs, if that is a terminal."""

    def __init__(self) -> None:
        self.times: list[tuple[str, float]] = []
        self._terminal = sys.stderr.isatty()

    def show(self, what: str) -> None:
        """Shows how far the step is."""
        if self._terminal:
            print(f"\r\033[K{what} ...", end="", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        self.show(what)
        try:
            yield
        finally:
            if self._terminal:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
        self.times.append((what, time.perf_counter() - start))
