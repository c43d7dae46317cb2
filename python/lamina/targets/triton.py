"""The installed Triton as a compiler of Triton IR text, in this process. Nothing here needs a GPU or imports more than Triton.

Triton can abort the process that it compiles in, so `compile_stages` is for workers (triton_worker.py); the compiler calls
triton_pool.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from lamina.errors import CompileError

from . import get_target
from .triton_versions import spelled_for

if TYPE_CHECKING:
    from .triton_target import ChipDescription, Toolchain


@dataclass(frozen=True)
class Settings:
    """How a kernel is compiled.

    Attributes:
        chip: with its target, such as ``cuda:sm_90``.
        warps: of each program, a power of two.
        stages: how many iterations of a loop around tt.dot have their operands under way at once.
        until: the last stage that is made, by default the machine code.
        options: of Triton's backend, beside these and the chip's.
    """

    chip: str
    warps: int = 4
    stages: int = 3
    until: Optional[str] = None
    options: tuple[tuple[str, Any], ...] = ()


def find_chip(name: str) -> tuple[Toolchain, ChipDescription]:
    """What compiles for a chip such as ``cuda:sm_90``, and its description.

    Raises:
        CompileError: there is none.
    """
    target = get_target(name)
    return target.toolchain, target.description


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


def _context() -> Any:
    """A context that knows the dialects that all backends have."""
    try:
        from triton._C.libtriton import ir
    except ImportError as error:
        raise CompileError(
            f"Triton is needed for GPU kernels and cannot be imported: {error}", hint="pip install triton"
        ) from error
    context = ir.context()
    ir.load_dialects(context)
    return context


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
    context = _context()
    with _diagnostics("read the kernel"):
        module = _parse(text, context)
        if not module.verify():
            raise RuntimeError("the module does not verify")


def _backend(settings: Settings) -> tuple[Any, Any, Any, Any]:
    """Triton's backend, target, options and a context with all dialects."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    tools, chip = find_chip(settings.chip)
    gpu = GPUTarget(tools.backend, chip.arch, chip.warp_size)
    backend, context = make_backend(gpu), _context()
    backend.load_dialects(context)
    # Products and sums round twice, as eager's do.
    options = {
        "num_warps": settings.warps,
        "num_stages": settings.stages,
        "enable_fp_fusion": False,
        **dict(chip.options),
        **dict(settings.options),
    }
    return backend, gpu, backend.parse_options(options), context


def ir_of_function(
    function: Any,
    signature: dict[str, str],
    constants: dict[tuple[int, ...], Any],
    attributes: dict[tuple[int, ...], Any],
    settings: Settings,
) -> str:
    """Triton IR of a function that is decorated by triton.jit.

    Args:
        function: the function.
        signature: the type of each parameter, as Triton calls it.
        constants: values of those whose type is ``constexpr``, by position.
        attributes: of other parameters, by position, such as their divisibility.
        settings: for which chip, and how it will be compiled.

    Raises:
        Exception: Triton cannot compile it.
    """
    from triton.compiler import ASTSource

    backend, gpu, options, context = _backend(settings)
    source = ASTSource(function, signature, constants, attributes)
    implementation = backend.get_codegen_implementation(options)
    return str(source.make_ir(gpu, options, implementation, backend.get_module_map(), context))


def compile_stages(text: str, settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compiles a module with one kernel through Triton's own stages.

    Args:
        text: Triton IR.
        settings: how.

    Returns:
        What each stage made (text; the last, bytes), and what a launch must know that Triton says: name, warps, shared and
        scratch memory.

    Raises:
        Exception: a stage failed; its diagnostics are on file descriptors 1 and 2.
    """
    import triton
    from triton.backends.compiler import Language

    backend, gpu, options, context = _backend(settings)
    module: Any = _parse(text, context)
    metadata: dict[str, Any] = {"target": gpu, **options.__dict__}
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
        "triton": triton.__version__,
    }
    return made, facts
