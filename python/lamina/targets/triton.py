"""The installed Triton as a compiler of Triton IR text. Nothing here needs a GPU, and Triton is imported when it is first needed."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lamina.errors import CompileError


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel in machine code for one chip, and what a launch must know of it.

    Attributes:
        name: of its entry point.
        sm: the chip, 90 for sm_90.
        asm: text of the stages ``ttir``, ``ttgir``, ``llir`` and ``ptx``.
        cubin: the machine code.
        warps: of each program.
        shared: bytes of shared memory that a program needs.
        scratch: bytes of global memory that a program needs.
    """

    name: str
    sm: int
    asm: dict[str, str]
    cubin: bytes
    warps: int
    shared: int
    scratch: int


@contextlib.contextmanager
def _diagnostics(what: str) -> Iterator[None]:
    """Turns Triton's errors, whose text goes to file descriptor 2, into a CompileError.

    The descriptor belongs to the process: what other threads write to it meanwhile is taken for Triton's if this fails, and
    written out afterwards if it does not.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    failure = None
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        except Exception as error:
            failure = error
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        text = file.read().decode(errors="replace")
    if failure is None:
        sys.stderr.write(text)
        return
    lines = [line for line in text.splitlines() if "error:" in line] or text.splitlines()
    raise CompileError(
        f"Triton could not {what}: {lines[0] if lines else failure}",
        hint="This is a bug in Lamina, or a version of Triton that it does not know.",
    ) from failure


def _target(sm: int, **options: Any) -> tuple[Any, Any, Any]:
    """Triton's backend for a chip, its options, and a context that knows its dialects."""
    try:
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend
    except ImportError as error:
        raise CompileError(
            f"Triton is needed for CUDA kernels and cannot be imported: {error}", hint="pip install triton"
        ) from error
    backend = make_backend(GPUTarget("cuda", sm, 32))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return backend, backend.parse_options(options), context


def _parse(text: str, context: Any) -> Any:
    """Parses a module, which verifies it. Triton reads files only; this one has no name."""
    from triton._C.libtriton import ir

    descriptor = os.memfd_create("module.ttir")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(text.encode())
        module = ir.parse_mlir_module(f"/proc/self/fd/{descriptor}", context)
    finally:
        os.close(descriptor)
    module.context = context  # it does not keep its context alive by itself
    return module


def verify_ttir(text: str) -> None:
    """Has the installed Triton parse and verify a module.

    Raises:
        CompileError: it does not, or Triton is not installed.
    """
    _, _, context = _target(80)
    with _diagnostics("read the kernel"):
        module = _parse(text, context)
        if not module.verify():
            raise RuntimeError("the module does not verify")


def compile_ttir(text: str, sm: int, warps: int = 4, stages: int = 3) -> CompiledKernel:
    """Compiles a module with one kernel to machine code, through all of Triton's own stages.

    Args:
        text: Triton IR.
        sm: the chip, 90 for sm_90.
        warps: of each program, a power of two.
        stages: how many iterations of a loop around tt.dot have their operands under way at once.

    Raises:
        CompileError: a stage failed.
    """
    from lamina.logging import get_logger, timed

    # Products and sums round twice, as eager's do.
    backend, options, context = _target(sm, num_warps=warps, num_stages=stages, enable_fp_fusion=False)
    with _diagnostics("compile the kernel"):
        from triton.backends.compiler import GPUTarget, Language

        module: Any = _parse(text, context)
        metadata: dict[str, Any] = {"target": GPUTarget("cuda", sm, 32), **options.__dict__}
        stages_by_name: dict[str, Any] = {}
        backend.add_stages(stages_by_name, options, Language.TRITON)
        asm: dict[str, Any] = {}
        for name, stage in stages_by_name.items():
            with timed(get_logger("cuda"), f"Triton's {name}"):
                module = stage(module, metadata)
            asm[name] = module if isinstance(module, bytes) else str(module)
    cubin = asm.pop("cubin")
    return CompiledKernel(
        name=metadata["name"],
        sm=sm,
        asm=asm,
        cubin=cubin,
        warps=metadata["num_warps"],
        shared=metadata["shared"],
        scratch=metadata.get("global_scratch_size", 0),
    )
