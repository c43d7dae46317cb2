"""The installed Triton as a compiler of Triton IR text, in this process. Nothing here needs a GPU or imports more than Triton.

Triton can abort the process that it compiles in, so `compile_stages` is for workers (triton_worker.py); the compiler calls
triton_pool.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from lamina.errors import CompileError

from .triton_versions import spelled_for


@dataclass(frozen=True)
class Settings:
    """How a kernel is compiled.

    Attributes:
        sm: the chip, 90 for sm_90.
        warps: of each program, a power of two.
        stages: how many iterations of a loop around tt.dot have their operands under way at once.
        ptx_version: of the PTX, 80 for 8.0; None for the newest that the assembler knows. Older drivers read older ones.
        until: the last stage, ``ptx`` or ``cubin``.
    """

    sm: int
    warps: int = 4
    stages: int = 3
    ptx_version: Optional[int] = None
    until: str = "cubin"


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


def _backend(sm: int, **options: Any) -> tuple[Any, Any, Any]:
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
    import triton
    from triton._C.libtriton import ir

    text = spelled_for(triton.__version__, text)
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
    _, _, context = _backend(80, enable_fp_fusion=False)
    with _diagnostics("read the kernel"):
        module = _parse(text, context)
        if not module.verify():
            raise RuntimeError("the module does not verify")


def use_one_assembler() -> None:
    """Makes Triton assemble for every chip with a ptxas of CUDA 12: what that of CUDA 13 makes no 12.x driver loads."""
    from triton import knobs

    blackwell = getattr(knobs.nvidia, "ptxas_blackwell", None)
    if blackwell is None or "TRITON_PTXAS_BLACKWELL_PATH" in os.environ:
        return
    major = lambda tool: int(tool.version.partition(".")[0])  # noqa: E731
    if major(blackwell) > 12 >= major(knobs.nvidia.ptxas):
        os.environ["TRITON_PTXAS_BLACKWELL_PATH"] = knobs.nvidia.ptxas.path


def versions(sm: int) -> dict[str, str]:
    """The versions of Triton and of the assembler that it uses for a chip."""
    import triton
    from triton import knobs

    tool = knobs.nvidia.ptxas
    if sm >= 90:
        tool = getattr(knobs.nvidia, "ptxas_blackwell", tool)
    return {"triton": triton.__version__, "ptxas": tool.version}


def compile_stages(text: str, settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compiles a module with one kernel through Triton's own stages.

    Args:
        text: Triton IR.
        settings: how.

    Returns:
        What each stage made (``ttir``, ``ttgir``, ``llir``, ``ptx`` as text, ``cubin`` as bytes), and what a launch must
        know: name, warps, shared and scratch memory, widths of the parameters in bytes.

    Raises:
        Exception: a stage failed; its diagnostics are on file descriptors 1 and 2.
    """
    from triton.backends.compiler import GPUTarget, Language

    # Products and sums round twice, as eager's do.
    backend, options, context = _backend(
        settings.sm,
        num_warps=settings.warps,
        num_stages=settings.stages,
        ptx_version=settings.ptx_version,
        enable_fp_fusion=False,
    )
    module: Any = _parse(text, context)
    metadata: dict[str, Any] = {"target": GPUTarget("cuda", settings.sm, 32), **options.__dict__}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    made: dict[str, Any] = {}
    for name, stage in stages.items():
        module = stage(module, metadata)
        made[name] = module if isinstance(module, bytes) else str(module)
        if name == settings.until:
            break
    facts = {
        "name": metadata["name"],
        "warps": metadata["num_warps"],
        "shared": metadata["shared"],
        "scratch": metadata.get("global_scratch_size", 0) or 0,
        "scratch_alignment": metadata.get("global_scratch_align", 1) or 1,
        "clusters": metadata.get("num_ctas", 1) or 1,
        "parameters": parameter_widths(made["ptx"], metadata["name"]),
        **versions(settings.sm),
    }
    return made, facts


def parameter_widths(ptx: str, name: str) -> list[int]:
    """Bytes of each parameter of an entry point; the last two are Triton's own scratch memory."""
    match = re.search(rf"\.entry\s+{re.escape(name)}\s*\((.*?)\)", ptx, re.DOTALL)
    if match is None:
        raise ValueError(f"the PTX has no entry point {name}")
    return [int(bits) // 8 for bits in re.findall(r"\.param\s+\.[a-z](\d+)\b", match[1])]


def resources(log: str) -> dict[str, int]:
    """Registers of a thread, and bytes that it spills, from what ``ptxas -v`` says; empty if it says nothing."""
    found: dict[str, int] = {}
    if match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log):
        found["spills"] = int(match[1]) + int(match[2])
    if match := re.search(r"Used (\d+) registers", log):
        found["registers"] = int(match[1])
    return found
