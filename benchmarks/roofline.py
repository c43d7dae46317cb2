"""The least time a workload can take on a machine: its FLOPs over the peak, its bytes over the bandwidth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .workloads import Workload, as_tuple, train_step

MACHINE = {
    # GFLOP/s of all threads: fused multiply-adds in registers, and raw matrix-unit products.
    "f32": 490.0,
    "bf16": 7466.0,
    # GB/s of all threads for working sets of up to so many MB.
    "4MB": 128.0,
    "100MB": 59.5,
    "infMB": 45.7,
}
"""Measured on two cores of a Xeon with AVX-512 and AMX; for another machine give its own figures."""


@dataclass(frozen=True)
class Machine:
    """Peaks of a machine, as in MACHINE."""

    figures: dict[str, float] = field(default_factory=lambda: dict(MACHINE))

    @staticmethod
    def of(texts: Iterable[str]) -> Machine:
        """The default figures with those replaced that ``key=value`` texts name; bandwidths may be at any ``<n>MB``.

        Raises:
            ValueError: a text is not of that form.
        """
        figures = dict(MACHINE)
        for text in texts:
            key, equals, value = text.partition("=")
            try:
                if not equals or (key not in ("f32", "bf16") and not (key.endswith("MB") and float(key[:-2]) > 0)):
                    raise ValueError(key)
                figures[key] = float(value)
            except ValueError:
                raise ValueError(f"{text!r} is not f32=<GFLOP/s>, bf16=<GFLOP/s> or <n>MB=<GB/s>") from None
        return Machine(figures)

    def bandwidth(self, size: float) -> float:
        """Bytes per second for a working set of `size` bytes."""
        steps = sorted((float(key[:-2]) * 1e6, value) for key, value in self.figures.items() if key.endswith("MB"))
        return 1e9 * next((value for limit, value in steps if size <= limit), steps[-1][1])

    def limit(self, cost: dict[str, Any]) -> tuple[float, str]:
        """Seconds, and which resource sets them: "flop" or "mem"."""
        compute = cost["flops"] / (1e9 * self.figures[cost["peak"]])
        memory = cost["bytes"] / self.bandwidth(cost["bytes"])
        return (compute, "flop") if compute >= memory else (memory, "mem")


def cost(workload: Workload) -> dict[str, Any]:
    """FLOPs of products and convolutions, bytes of inputs, results and weights, each touched once."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    module, inputs = workload.build()
    with FlopCounterMode(display=False) as counter:
        if workload.training:
            results = train_step(module, module, inputs)
        else:
            with torch.no_grad():
                results = as_tuple(module(*inputs))
    flops = counter.get_total_flops()
    tensors = [*inputs, *results, *module.parameters(), *module.buffers()]
    return {
        "flops": flops // 2 if workload.causal else flops,
        "bytes": sum(tensor.numel() * tensor.element_size() for tensor in tensors),
        "peak": "bf16" if "bf16" in workload.groups else "f32",
    }
