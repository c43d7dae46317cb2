"""Kernels compiled by Triton in processes of their own, as many at once as there are CPUs, and kept in Lamina's cache."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from lamina import cache
from lamina.errors import CompileError, CompilerCrash, find_place
from lamina.logging import get_logger

from .triton import Settings, find_chip

log = get_logger("cuda")


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel in machine code for one chip, and what a launch must know of it.

    Attributes:
        name: of its entry point.
        chip: with its target, such as ``cuda:sm_90``.
        asm: text of the stages before it, such as ``ttir``, ``ttgir``, ``llir`` and ``ptx``.
        binary: the machine code; empty if it was not made.
        warps: of each program.
        stages: see Settings.
        shared: bytes of shared memory that a program needs.
        scratch: bytes of global memory that a program needs.
        scratch_alignment: of that memory.
        clusters: programs that run together.
        parameters: bytes of each parameter of the entry point.
        registers: of a thread; None if its tools did not say.
        spills: bytes that a thread stores and loads for want of registers; None likewise.
        triton: the version.
        tools: versions of the others that made it, by name.
    """

    name: str
    chip: str
    asm: dict[str, str]
    binary: bytes
    warps: int
    stages: int
    shared: int
    scratch: int = 0
    scratch_alignment: int = 1
    clusters: int = 1
    parameters: tuple[int, ...] = ()
    registers: Optional[int] = None
    spills: Optional[int] = None
    triton: str = ""
    tools: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclass
class Request:
    """A kernel to compile.

    Attributes:
        text: its module, without locations; what counts for the cache.
        settings: how.
        located: makes the text with locations, for the diagnostics of a failure.
        location: the location of the kernel as MLIR prints it.
        name: what to call it in errors.
    """

    text: str
    settings: Settings
    located: Optional[Callable[[], str]] = None
    location: str = ""
    name: str = "kernel"


Outcome = Union["CompiledKernel", CompileError]


def compile_kernels(requests: Sequence[Request]) -> list[Outcome]:
    """Compiles kernels: each from the cache, or by a worker. No process is started if all are kept.

    Returns:
        Of each request the kernel; or a CompileError, which has the line of the program that the kernel came from, and
        is a CompilerCrash if its worker died.
    """
    results: dict[str, Outcome] = {}
    keys = [_key(request) for request in requests]
    missing: dict[str, Request] = {}
    for key, request in zip(keys, requests):
        if key in results or key in missing:
            continue
        kept = cache.load_entry(key, _unpack) if cache.enabled() else None
        if kept is None:
            missing[key] = request
        else:
            results[key] = kept
    if missing:
        for key, outcome in zip(missing, _run(list(missing.values()))):
            results[key] = outcome
            if cache.enabled() and isinstance(outcome, CompiledKernel):
                cache.store_entry(key, _pack(outcome))
    return [results[key] for key in keys]


def compile_ttir(text: str, chip: str, warps: int = 4, stages: int = 3) -> CompiledKernel:
    """Compiles a module with one kernel to machine code.

    Args:
        text: Triton IR.
        chip, warps, stages: see Settings.

    Raises:
        CompileError: a stage failed, or Triton is not installed.
    """
    (outcome,) = compile_kernels([Request(text, Settings(chip, warps, stages))])
    if isinstance(outcome, CompileError):
        raise outcome
    return outcome


# ---- the cache


@functools.cache
def _identity() -> str:
    """What stands for Triton in a key."""
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError as error:
        raise CompileError(
            "Triton is needed for GPU kernels and is not installed", hint="pip install triton"
        ) from error
    return "\n".join([cache.FORMAT, "triton", version])


def _key(request: Request) -> str:
    tools, chip = find_chip(request.settings.chip)
    variables = [os.environ.get(name, "") for name in tools.variables]
    return cache.digest_of(_identity(), "\n".join(variables), repr(chip), repr(request.settings), request.text)


def _pack(kernel: CompiledKernel) -> bytes:
    header = {f.name: getattr(kernel, f.name) for f in dataclasses.fields(kernel) if f.name not in ("asm", "binary")}
    header["asm"] = list(kernel.asm)
    return cache.pack_parts(header, [kernel.binary, *(text.encode() for text in kernel.asm.values())])


def _unpack(data: bytes) -> CompiledKernel:
    header, (binary, *texts) = cache.unpack_parts(data)
    try:
        asm = {name: text.decode() for name, text in zip(header.pop("asm"), texts, strict=True)}
        return CompiledKernel(asm=asm, binary=binary, **{**header, "parameters": tuple(header["parameters"])})
    except (KeyError, TypeError) as error:
        raise ValueError(f"its header is wrong: {error}") from error


# ---- workers


def _run(requests: list[Request]) -> list[Outcome]:
    """Compiles by workers, each of which a thread waits for."""
    work: queue.SimpleQueue[tuple[int, Request]] = queue.SimpleQueue()
    for item in enumerate(requests):
        work.put(item)
    results: dict[int, Outcome] = {}
    broken: list[BaseException] = []
    workers = [_Worker() for _ in range(min(len(requests), len(os.sched_getaffinity(0))))]
    log.debug("%d kernels for Triton, %d workers", len(requests), len(workers))

    def serve(worker: _Worker) -> None:
        while True:
            try:
                number, request = work.get_nowait()
            except queue.Empty:
                return
            try:
                results[number] = worker.compile(request)
            except CompileError as error:
                results[number] = error
            except BaseException as error:
                broken.append(error)
                return

    try:
        threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for worker in workers:
            worker.close()
    if broken:
        raise broken[0]
    return [results[number] for number in range(len(requests))]


_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from lamina.targets.triton_worker import main
main()
"""


class _Worker:
    """A process of triton_worker; a new one takes the place of one that died."""

    def __init__(self) -> None:
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._log = tempfile.TemporaryFile()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._log.truncate(0)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
            )
        return self._process

    def compile(self, request: Request) -> CompiledKernel:
        header, made = self._ask(request, request.text)
        if "error" in header and request.located is not None:
            # The same again, so that the diagnostics tell where in the program they are.
            again, _ = self._ask(request, request.located())
            header = again if "error" in again else header
        if "error" in header:
            raise _failure(request, header["error"], header["log"])
        binary = made.pop(find_chip(request.settings.chip)[0].binary, b"")
        asm = {name: text.decode() for name, text in made.items()}
        header["parameters"] = tuple(header["parameters"])
        return CompiledKernel(
            chip=request.settings.chip, stages=request.settings.stages, asm=asm, binary=binary, **header
        )

    def _ask(self, request: Request, text: str) -> tuple[dict[str, Any], dict[str, bytes]]:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        message = json.dumps({"text": text, "settings": dataclasses.asdict(request.settings)})
        try:
            process.stdin.write(message.encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            header = json.loads(line)
            made = {}
            for name, size in header.pop("made").items():
                made[name] = process.stdout.read(size)
                if len(made[name]) != size:
                    raise EOFError
        except (OSError, EOFError, ValueError) as error:
            raise self._died(request) from error
        return header, made

    def _died(self, request: Request) -> CompilerCrash:
        assert self._process is not None
        code = self._process.wait()
        self._process = None
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        place = find_place(text)
        if place.location is None:
            place = find_place(request.location)
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return CompilerCrash(
            f"the kernel {request.name} ended its compiler, Triton, {how}",
            op=place.op,
            location=place.location,
            hint="This is a bug in Lamina or Triton; the program and this message are worth a report.",
            module=place.module,
            details="\n".join(text.splitlines()[-20:]) or None,
        )

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            if self._process.poll() is None:
                self._process.kill()  # it has nothing to clean up
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()
        self._log.close()


# Of MLIR and of ptxas.
_SEVERE = re.compile(r"\berror:|^ptxas (?:fatal|error|.*; error)\s*:")


def _failure(request: Request, error: str, text: str) -> CompileError:
    """The error of a kernel that Triton did not compile, from what was printed meanwhile."""
    # A place in Triton's own input is none in the program.
    text = re.sub(r'loc\("/proc/self/fd/\d+":(\d+):(\d+)\)', r"line \1, column \2 of the kernel", text)
    place = find_place(text)
    if place.location is None:
        place = find_place(request.location)
    # Diagnostics of passes are followed by the whole module.
    lines = [line for line in text.splitlines() if _SEVERE.search(line)]
    first = _SEVERE.split(lines[0])[-1].strip() if lines else error.strip().splitlines()[0]
    return CompileError(
        f"Triton could not compile the kernel {request.name}: {first}",
        op=place.op,
        location=place.location,
        hint="This is a bug in Lamina, or a version of Triton that it does not know.",
        module=place.module,
        details="\n".join(lines) if len(lines) > 1 else None,
    )
