"""How Lamina's own part of compiling grows with a model: GPT-2 of 12 and of 48 layers, phase by phase.

From the functional FX graph to loaded code; PyTorch's capture and decomposition are shown but not counted. Equal layers
share their kernels, so four times the layers should cost much less than four times the work.
"""

from __future__ import annotations

import logging
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Optional

import click
import torch

from .workloads import Transformer, gpt2_config

TORCH = ("capture", "decomposition")
"""Phases that are PyTorch's."""
LIMIT = 2.0


class _Times(logging.Handler):
    """Sums what `lamina.logging.timed` logs, by what was timed: [seconds, CPU seconds]."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def emit(self, record: logging.LogRecord) -> None:
        figures = vars(record)
        if "cpu_seconds" in figures:
            for place, value in enumerate((figures["seconds"], figures["cpu_seconds"])):
                self.sums[figures["what"]][place] += value


def split(pipeline: str) -> list[str]:
    """The passes of a textual pipeline one by one, nested ones each in its own anchor."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(pipeline + ","):
        depth += (character in "({") - (character in ")}")
        if character == "," and not depth:
            parts.append(pipeline[start:place])
            start = place + 1
    passes = []
    for part in parts:
        nested = re.fullmatch(r"([\w.]+)\((.*)\)", part)
        passes += [f"{nested[1]}({inner})" for inner in split(nested[2])] if nested else [part]
    return passes


def _model(layers: int, width: int) -> tuple[Any, tuple]:
    from transformers import GPT2LMHeadModel

    config = gpt2_config(layers)
    config.n_embd, config.n_head, config.vocab_size = width, max(1, width // 64), 5000
    model = GPT2LMHeadModel(config).eval()
    return Transformer(model, "input_ids", "logits", use_cache=False), (torch.randint(0, 5000, (1, 128)),)


def compile_times(layers: int, width: int, freeze: bool, passes: bool) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Compiles the model; [seconds, CPU seconds] by phase in order, and counts of what was compiled."""
    import lamina
    from lamina.targets.cpu import CPUTarget

    model, inputs = _model(layers, width)
    times = _Times()
    root = logging.getLogger("lamina")
    level, lower = root.level, CPUTarget.lower
    root.addHandler(times)
    root.setLevel(logging.DEBUG)
    if passes:
        CPUTarget.lower = _lower_by_pass  # type: ignore[method-assign]
    try:
        with torch.no_grad():
            program = lamina.compile(model, inputs, freeze=freeze)
            program(*inputs)
    finally:
        CPUTarget.lower = lower  # type: ignore[method-assign]
        root.setLevel(level)
        root.removeHandler(times)
    counts = {
        "prim ops": str(program.program.module).count(" = prim."),
        "kernels": len(program.executable.kernels) + len(program.executable.init_kernels),
        "launches": sum(len(entry.launches) for entry in program.executable.binary.entries.values()),
    }
    return dict(times.sums), counts


def _lower_by_pass(self: Any, module: Any, after: str = "prim", until: Optional[str] = None) -> Iterator[str]:
    """CPUTarget.lower, with each pass run and timed alone."""
    from lamina._lib import _lamina
    from lamina.logging import get_logger, timed

    log = get_logger("cpu")
    phases = self.phases()
    names = ["prim", *(name for name, _ in phases)]
    for name, passes in phases[names.index(after) : names.index(until) if until else None]:
        for one in split(passes):
            with timed(log, f"phase {name}: {re.sub(r'{.*?}', '', one)}"):
                _lamina.run_pipeline(module.operation, f"builtin.module({one})")
        yield name


def _median(runs: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    return {what: [statistics.median(run[what][k] for run in runs) for k in (0, 1)] for what in runs[0]}


@click.command(help=__doc__, epilog="Exit code 1: the larger model took twice as long (in CPU seconds) as the smaller.")
@click.option("--layers", default="12,48", help="Two numbers of layers.")
@click.option("--width", default=768, help="Of the model; it matters little to the compiler, and much to the weights.")
@click.option("--freeze/--no-freeze", default=False, help="Whether weights are constants, folded and packed by @init.")
@click.option("--passes", is_flag=True, help="Time each pass alone.")
@click.option("--repeat", default=1, help="Medians of so many compilations.")
def main(layers: str, width: int, freeze: bool, passes: bool, repeat: int) -> None:
    import os

    os.environ["LAMINA_CACHE"] = "0"
    sizes = [int(text) for text in layers.split(",")]
    start = time.perf_counter()
    compile_times(1, 64, freeze, passes)  # imports and first uses
    click.echo(f"ready after {time.perf_counter() - start:.1f} s")
    found = []
    for size in sizes:
        runs = [compile_times(size, width, freeze, passes) for _ in range(repeat)]
        found.append((_median([times for times, _ in runs]), runs[0][1]))
        click.echo(f"{size} layers: " + ", ".join(f"{value} {what}" for what, value in runs[0][1].items()))
    (small, _), (large, _) = found[0], found[-1]
    click.echo(f"\n{'ms (CPU ms)':44}{f'{sizes[0]} layers':>20}{f'{sizes[-1]} layers':>20}{'ratio (CPU)':>14}")
    for what in large:
        _print(what + (" (PyTorch)" if what in TORCH else ""), small.get(what, [0.0, 0.0]), large[what])
    totals = [[sum(v[k] for what, v in times.items() if what not in TORCH) for k in (0, 1)] for times in (small, large)]
    _print("Lamina's own part", *totals)
    ratio = totals[1][1] / totals[0][1]
    click.echo(f"Lamina's own part grows {ratio:.2f} times in CPU seconds; the limit is {LIMIT:g} times.")
    sys.exit(ratio >= LIMIT)


def _print(what: str, small: list[float], large: list[float]) -> None:
    cells = "".join(f"{f'{1e3 * wall:.0f} ({1e3 * cpu:.0f})':>20}" for wall, cpu in (small, large))
    click.echo(f"{what:44}{cells}{large[1] / max(small[1], 1e-4):14.2f}")


if __name__ == "__main__":
    main()
