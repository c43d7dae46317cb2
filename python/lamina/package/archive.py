"""Writes packages, whole or not at all; lamina_runtime.archive reads them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from lamina_runtime.archive import FORMAT, MANIFEST, checksum

Contents = Union[bytes, Path]
"""Of an entry: bytes, or a file that has them."""

_BLOCK = 1 << 20
# Archives of equal contents are equal.
_DATE = (1980, 1, 1, 0, 0, 0)


def make_manifest(entries: Mapping[str, Contents], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a package.

    Args:
        entries: all others.
        facts: what else it says, such as versions and chips.
    """
    manifest: dict[str, Any] = {"format": FORMAT, **facts, "entries": {}}
    for name, contents in sorted(entries.items()):
        digest, size = hashlib.sha256(), 0
        for block in _blocks(contents):
            digest.update(block)
            size += len(block)
        manifest["entries"][name] = {"bytes": size, "sha256": digest.hexdigest()}
    manifest["checksum"] = checksum(manifest)
    return manifest


def write_package(path: Path, entries: Mapping[str, Contents], facts: Mapping[str, Any], folder: bool = False) -> None:
    """Writes a package beside its place, and puts it there.

    Args:
        path: its place; what was there is replaced, but a folder only by a package, and only if it is one itself.
        entries: its entries without the manifest.
        facts: see make_manifest.
        folder: whether it is a folder; else it is a zip archive without compression.

    Raises:
        OSError: it cannot be written.
    """
    manifest = json.dumps(make_manifest(entries, facts), sort_keys=True, indent=1).encode()
    everything: dict[str, Contents] = {MANIFEST: manifest, **dict(sorted(entries.items()))}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    (_write_folder if folder else _write_zip)(path, everything)


def _blocks(contents: Contents):
    if isinstance(contents, bytes):
        yield contents
        return
    with open(contents, "rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _write_zip(path: Path, entries: Mapping[str, Contents]) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                for name, contents in entries.items():
                    info = zipfile.ZipInfo(name, _DATE)
                    with archive.open(info, "w", force_zip64=isinstance(contents, Path)) as entry:
                        for block in _blocks(contents):
                            entry.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _write_folder(path: Path, entries: Mapping[str, Contents]) -> None:
    if path.exists() and not (
        path.is_dir() and (path / MANIFEST).exists() or path.is_dir() and not any(path.iterdir())
    ):
        raise FileExistsError(f"{path} exists and is no package; it is left as it is")
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
    try:
        for name, contents in entries.items():
            place = temporary / "new" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with open(place, "wb") as file:
                for block in _blocks(contents):
                    file.write(block)
        if path.exists():
            os.rename(path, temporary / "old")
        os.rename(temporary / "new", path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
