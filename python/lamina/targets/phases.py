"""What targets that lower through MLIR have in common: a list of phases, and the way through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from lamina.compiler import run_passes
from lamina.logging import get_logger, timed

_LOGS = {"fused": "fusion", "planned": "planning", "tiled": "tiling"}
"""Loggers of phases that are the same for all targets; the others log as their target."""


def fused_passes(
    min_parallelism: int, size_hint: int, pack: str = "", product_tile: int = 0, parallel_scatters: bool = False
) -> str:
    """The passes from `prim` to `fused`.

    Args:
        min_parallelism: programs that keep the target busy.
        size_hint: the size assumed for a dimension of which nothing is known.
        pack: how constant operands of contractions are laid out once, as options of lamina-fuse-kernels.
        product_tile: rows and columns of the least tiles of a matrix product that make programs of their own; 0 if a product
            of few of them is not to be split along its depth.
        parallel_scatters: whether programs may apply the updates of a scatter by atomic operations.
    """
    sizes = f"min-parallelism={min_parallelism} size-hint={size_hint}"
    scatters = f",lamina-parallel-scatters{{size-hint={size_hint}}}" if parallel_scatters else ""
    return (
        # No canonicalisation after the split: it would join the parts again.
        "func.func(lamina-simplify-reshapes,lamina-sink-below-concatenates,lamina-derive-attention),canonicalize,cse,"
        f"lamina-hoist-constants,func.func(lamina-split-reductions{{{sizes} product-tile={product_tile}}}{scatters}),"
        f"lamina-fuse-kernels{{{sizes} {pack}}}"
    )


class PhasedTarget:
    """A target with phases."""

    name: str

    def phases(self) -> list[tuple[str, str]]:
        """Names of the phases from `prim` on, and the passes that make each from the one before."""
        raise NotImplementedError

    def lower(self, module: Any, after: str = "prim", until: Optional[str] = None) -> Iterator[str]:
        """Takes a module from the phase `after` to the phase `until`, in place; yields the name of each phase reached.

        Args:
            module: the module.
            after: the phase that it is in.
            until: the last one to reach; by default the target's last.

        Raises:
            CompileError: a pass failed; after a crash the module's context is lost.
        """
        phases = self.phases()
        names = ["prim", *(name for name, _ in phases)]
        last = len(phases) if until is None else names.index(until)
        for name, passes in phases[names.index(after) : last]:
            with timed(get_logger(_LOGS.get(name, self.name)), f"phase {name}"):
                run_passes(module, passes, name)
            yield name
