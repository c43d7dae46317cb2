"""``lamina tune``: a package of a program whose kernels are compiled in several ways, for a machine with the GPU to measure."""

from __future__ import annotations

from typing import Any

import click

from .options import program_options, request_of
from .output import Progress, table
from .sources import open_source


@click.command("tune")
@program_options
@click.option(
    "--target", metavar="NAME", default="cuda", show_default=True, help="The target, such as cuda:sm_80,sm_90."
)
@click.option(
    "--candidates",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="In how many other ways, at most, each kernel is compiled: tiles, warps and stages around what the cost model chose.",
)
@click.option("-o", "--output", metavar="FILE", required=True, help="Where the package goes.")
def tune_command(target: str, candidates: int, output: str, **program: Any) -> None:
    """Compiles the program of FILE, which is as for `lamina compile`, with other ways to compile each kernel.

    No GPU is needed. Where one is, with torch and lamina-runtime, the ways are measured; then any machine compiles by what
    was the fastest:

    \b
      lamina tune model.py:Net --input f32[32,512] --target cuda:sm_90 -o net.candidates
      python -m lamina_runtime.tune net.candidates -o net.schedule
      lamina compile model.py:Net --input f32[32,512] --target cuda:sm_90 --schedule net.schedule --emit package -o net.lamina

    A schedule is of kernels, whichever program they are in. It can hold those of many programs and chips: what is measured is
    added to the file.
    """
    from lamina.targets import OF_PROGRAMS, PACKAGE, get_target

    if not getattr(get_target(target, program["schedule"]), OF_PROGRAMS[PACKAGE], False):
        raise click.BadParameter(
            f"the target {target} has no candidates; use cuda:sm_90, for example", param_hint="--target"
        )
    progress = Progress()
    with progress.step("loading"):
        source = open_source(request_of(**program))
    with progress.step("compiling"):
        compiled = source.compile(target)
    counts: dict[str, int] = {}

    def show(chip: str, done: int, count: int) -> None:
        counts[chip] = count
        progress.show(f"compiling candidates for {chip}: {done} of {count}")

    with progress.step("compiling candidates"):
        compiled.save(output, candidates=candidates, progress=show)
    rows = [["program", source.name], *([chip, f"{count} candidates"] for chip, count in counts.items())]
    print(table([*rows, ["next", f"python -m lamina_runtime.tune {output} -o SCHEDULE, where the GPU is"]]))
