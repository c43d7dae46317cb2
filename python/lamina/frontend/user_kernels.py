"""Triton kernels of the user's own in a program: capturing their calls where there is no GPU, and naming them in errors.

PyTorch captures a call of a kernel as the higher-order op triton_kernel_wrapper_functional, whose grid and arguments are nodes
and sizes. It asks Triton's driver which GPU there is, though it wants no more than Triton IR of the kernel, to see which
tensors it writes to; where there is no driver, another answers.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Optional
from unittest import mock

import torch
import torch.fx

from lamina.errors import CompileError

from .locations import module_path, user_frame

_OPS = ("triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation")


def kernel_of(node: torch.fx.Node) -> Optional[str]:
    """The name of the kernel that a node launches, or None."""
    if getattr(node.target, "namespace", None) != "higher_order" or getattr(node.target, "_name", "") not in _OPS:
        return None
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernel: Any = kernel_side_table.get_kernel(node.kwargs["kernel_idx"])  # type: ignore[arg-type]
    while not hasattr(kernel, "__name__"):
        kernel = kernel.fn  # what tunes a kernel, or chooses its arguments
    return kernel.__name__


def check_kernels(graph_module: torch.fx.GraphModule, target: str) -> None:
    """Raises the error of a program with kernels of the user's own for a target that is no GPU, where PyTorch cannot run them
    either; GPUs are what packages are made for."""
    for node in graph_module.graph.nodes:
        name = kernel_of(node)
        if name is None:
            continue
        from lamina.targets import get_target

        if getattr(get_target(target), "makes_packages", False):
            return
        place = user_frame(node)
        raise CompileError(
            f"the program launches the Triton kernel {name}, which needs a GPU, and is compiled for {target!r}",
            location=str(place) if place else None,
            hint="write it in PyTorch's ops for this target, or compile for a GPU.",
            module=module_path(node) or None,
        )


@contextlib.contextmanager
def captured_kernels() -> Iterator[None]:
    """Has torch.export capture calls of Triton kernels, written as Triton has them, with or without a GPU."""
    if "triton" not in sys.modules:
        yield
        return
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    with contextlib.ExitStack() as stack:
        for kind in (JITFunction, Autotuner):
            stack.enter_context(mock.patch.object(kind, "run", _captured(kind.run)))
        try:
            driver.active.get_current_target()
        except RuntimeError:
            stack.enter_context(mock.patch.object(driver, "_active", _AnyGPU()))
        yield


def _captured(run: Any) -> Any:
    def captured(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        from torch.fx.experimental.proxy_tensor import get_proxy_mode

        if warmup or get_proxy_mode() is None:
            return run(self, *args, grid=grid, warmup=warmup, **kwargs)
        return torch.library.wrap_triton(self)[grid](*args, **kwargs)

    return captured


class _AnyGPU:
    """What Triton's driver says of a GPU. Any will do: no machine code is made here."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0
