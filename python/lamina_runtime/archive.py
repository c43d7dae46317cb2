"""Packages as files: a zip archive without compression, or a folder. Everything that is read has been checked.

A manifest lists every entry with its size and SHA-256, and has a checksum of its own.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from .errors import PackageError

FORMAT = 1
"""Of packages; others are not read."""

PARTS = "parts"
"""The folder of the parts of a split program."""

MANIFEST, PLAN, CONSTANTS = "manifest.json", "plan.json", "constants.safetensors"
_LARGEST_TEXT = 256 << 20

Data = Union[bytes, memoryview]


def part_folder(number: int) -> str:
    """Where the entries of a part of a split program are."""
    return f"{PARTS}/{number}/"


def checksum(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of all of a manifest but its checksum."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_json(data: Data, name: str) -> Any:
    """An entry as JSON.

    Raises:
        PackageError: it is none.
    """
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise PackageError(f"{name} is damaged: {error}") from error


class Archive:
    """The entries of a package.

    Args:
        entries: their bytes by name, the manifest among them.
        name: what to call the package in messages.
        verify: whether the contents are compared with their hashes.

    Attributes:
        manifest: who made it, for which chips, and its entries.

    Raises:
        PackageError: it is damaged, not complete, or of another format.
    """

    def __init__(self, entries: Mapping[str, Data], name: str, verify: bool = True):
        self.name = name
        self._entries = entries
        if MANIFEST not in entries:
            raise PackageError(f"{name} is no package of Lamina: it has no {MANIFEST}")
        try:
            self.manifest = read_json(entries[MANIFEST], MANIFEST)
            self._check(verify)
        except PackageError as error:
            raise PackageError(f"{name}: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise PackageError(f"{name}: {MANIFEST} is damaged: {error!r}") from error

    @staticmethod
    def open(path: Union[str, os.PathLike[str]], verify: bool = True) -> Archive:
        """Reads a package.

        Raises:
            PackageError: it is none, is damaged, not complete, or of another format.
            OSError: it cannot be read.
        """
        place = Path(path)
        return Archive(_folder(place) if place.is_dir() else _zip(place), str(place), verify)

    def __getitem__(self, name: str) -> Data:
        if name not in self._entries:
            raise PackageError(f"{self.name} has no entry {name}")
        return self._entries[name]

    def under(self, folder: str) -> Archive:
        """The entries of a folder, which have been checked, as an archive of the same manifest."""
        inner = object.__new__(Archive)
        inner.name, inner.manifest = self.name, self.manifest
        inner._entries = {k.removeprefix(folder): v for k, v in self._entries.items() if k.startswith(folder)}
        return inner

    def json(self, name: str) -> Any:
        """An entry as JSON."""
        if len(self[name]) > _LARGEST_TEXT:
            raise PackageError(f"{self.name}: {name} is too large")
        return read_json(self[name], f"{self.name}: {name}")

    def _check(self, verify: bool) -> None:
        if self.manifest["format"] != FORMAT:
            raise PackageError(
                f"its format is {self.manifest['format']!r}, this lamina-runtime reads {FORMAT}; "
                "install the version that belongs to the Lamina that made it"
            )
        if self.manifest["checksum"] != checksum(self.manifest):
            raise PackageError(f"{MANIFEST} is damaged: its checksum is wrong")
        listed = self.manifest["entries"]
        dict(self.manifest["versions"].items())
        for name in sorted(set(self._entries) - set(listed) - {MANIFEST}):
            raise PackageError(f"the entry {name} is not in {MANIFEST}")
        for name, facts in listed.items():
            if name not in self._entries:
                raise PackageError(f"the entry {name} is missing")
            if len(self._entries[name]) != facts["bytes"]:
                raise PackageError(f"{name} has {len(self._entries[name])} bytes, expected {facts['bytes']}")
            if verify and hashlib.sha256(self._entries[name]).hexdigest() != facts["sha256"]:
                raise PackageError(f"{name} is damaged: its SHA-256 is wrong")


def _folder(path: Path) -> dict[str, Data]:
    return {str(file.relative_to(path).as_posix()): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def _zip(path: Path) -> dict[str, Data]:
    """Entries as views of the file, which is mapped into memory: nothing is copied."""
    try:
        with open(path, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            with zipfile.ZipFile(file) as archive:
                return {info.filename: _view(data, info) for info in archive.infolist() if not info.is_dir()}
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
        if isinstance(error, PackageError):
            raise PackageError(f"{path}: {error}") from error
        raise PackageError(f"{path} is no package of Lamina, or is truncated: {error}") from error


def _view(data: memoryview, info: zipfile.ZipInfo) -> memoryview:
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise PackageError(f"the entry {info.filename} is compressed")
    header = data[info.header_offset : info.header_offset + 30]
    if bytes(header[:4]) != b"PK\x03\x04":
        raise PackageError(f"the header of {info.filename} is damaged")
    start = info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    if start + info.file_size > len(data):
        raise PackageError(f"the entry {info.filename} is truncated")
    return data[start : start + info.file_size]
