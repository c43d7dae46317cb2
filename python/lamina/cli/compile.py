"""``lamina compile``: a program at one of its layers, or a summary of what it was compiled to."""

from __future__ import annotations

import sys
from typing import Any, Optional

import click

from lamina.targets import CENSUS, OF_PROGRAMS, PACKAGE, get_target

from .options import program_options, request_of
from .output import Progress, bytes_text, table, write_result
from .sources import Source, open_source

KINDS = (
    *("fx", "prim", "fused", "planned", "tiled", "linalg", "llvm", "asm", "obj"),
    *("ttir", "ttgir", "ptx", "cubin", "sass", "census", "package"),
)
"""What is documented; a target may have more phases."""


@click.command("compile")
@program_options
@click.option("--target", metavar="NAME", help="The target (see `lamina targets`); by default cpu.")
@click.option(
    "--emit",
    metavar="PHASE",
    help=f"The layer to print, one of {', '.join(KINDS)}, or another phase of the target. linalg is the whole "
    "program in plain linalg, for other compilers; census is a table of what the kernels are made of, move and compute, "
    "as JSON if -o FILE.json is given; package is a file that lamina-runtime runs, and needs -o.",
)
@click.option("--print-ir-after", multiple=True, metavar="PHASE", help="Prints the program after a phase to stderr.")
@click.option("-o", "--output", metavar="FILE", help="Where the result goes; by default to stdout.")
def compile_command(
    target: Optional[str], emit: Optional[str], print_ir_after: tuple[str, ...], output: Optional[str], **program: Any
) -> None:
    """Compiles the program of FILE.

    FILE is model.py:Name (a module, a class of one without arguments, or a function), a .pt2 file of torch.export, or a
    .mlir file of the prim dialect. Without --emit, says what it was compiled to.

    \b
    Examples:
      lamina compile model.py:Net --input f32[32,512]
      lamina compile model.py:Net --input f32[32,512] --dynamic x:0=batch --emit prim
      lamina compile model.pt2 --emit asm -o model.s
      lamina compile model.pt2 --target cuda:sm_80,sm_90 --emit package -o model.lamina
      lamina compile model.pt2 --target cuda:sm_80,sm_90 --emit census -o census.json
      lamina compile model.pt2 --target cuda:sm_90 --schedule net.schedule --emit package -o model.lamina
      lamina compile module.mlir --print-ir-after fused --print-ir-after tiled
    """
    name = target_for(target, emit)
    check_phases(name, [*print_ir_after, *([emit] if emit else [])])
    if PACKAGE in print_ir_after or emit == PACKAGE and output in (None, "-"):
        raise click.UsageError("a package is a file or a folder, and cannot be printed: give -o FILE", _context())
    if CENSUS in print_ir_after:
        raise click.UsageError("a census is no layer of the program; use --emit census", _context())
    progress = Progress()
    with progress.step("loading"):
        source = open_source(request_of(**program))
    instance = get_target(name, program["schedule"])
    if emit is None and not print_ir_after:
        write_result(_summary(source, name, progress), output)
        return
    with progress.step("capturing"):
        module, graph = source.import_()
    _print_phases(module, graph, instance, print_ir_after)
    if emit == PACKAGE:
        _write_package(source, name, output, progress)
    elif emit == CENSUS:
        _write_census(source, name, output, progress)
    elif emit is not None:
        with progress.step(f"compiling to {emit}"):
            result = _emit(module, graph, instance, emit)
        write_result(result, output)


def target_for(target: Optional[str], emit: Optional[str]) -> str:
    """The name of the target: the one that was asked for, or else one that can emit what was asked for.

    Raises:
        CompileError: there is none of the name.
        click.UsageError: no target emits that.
    """
    from lamina.targets import target_class, target_names, target_that_emits

    if target is not None:
        target_class(target)
        return target
    if emit is None or emit in _phases("cpu"):
        return "cpu"
    other = target_that_emits(emit)
    if other is None:
        if emit in KINDS:
            raise click.UsageError(
                f"no target that is installed makes {emit}; there are {', '.join(target_names())}", _context()
            )
        return "cpu"
    return other


def _context() -> Optional[click.Context]:
    return click.get_current_context(silent=True)


def _phases(target: str) -> list[str]:
    from lamina.compiler import phases_of

    instance = get_target(target)
    of_programs = [kind for kind, attribute in OF_PROGRAMS.items() if getattr(instance, attribute, False)]
    return ["fx", *phases_of(instance), *of_programs]


def check_phases(target: str, phases: list[str]) -> None:
    """Raises click.UsageError for a phase that the target does not have."""
    from lamina.targets import target_that_emits

    known = _phases(target)
    for phase in phases:
        if phase not in known:
            other = target_that_emits(phase)
            hint = f"; use --target {other}" if other else f"; it has {', '.join(known)}"
            raise click.UsageError(f"the target {target} has no phase {phase!r}{hint}", _context())


def _write_package(source: Source, target: str, output: Optional[str], progress: Progress) -> None:
    assert output is not None, "it was checked"
    with progress.step("compiling"):
        program = source.compile(target)
    with progress.step("writing the package"):
        program.save(output)


def _write_census(source: Source, target: str, output: Optional[str], progress: Progress) -> None:
    from lamina.census import to_json, to_text

    with progress.step("compiling"):
        program = source.compile(target)
    args, kwargs = source.arguments() if program.program.symbols else ((), {})
    with progress.step("reading the machine code"):
        censuses = program.census(*args, **kwargs)
    write_result(to_json(censuses) if (output or "").endswith(".json") else to_text(censuses), output)


def _emit(module: Any, graph: Any, target: Any, phase: str) -> Any:
    from lamina.compiler import emit

    if phase == "fx":
        return graph_text(graph)
    return emit(module, phase, target)


def graph_text(graph: Any) -> str:
    """An ATen graph as Python.

    Raises:
        CompileError: there is none.
    """
    from lamina.errors import CompileError

    if graph is None:
        raise CompileError("the program was given as prim and has no fx graph")
    return graph.print_readable(print_output=False, colored=False)


def _print_phases(module: Any, graph: Any, target: Any, phases: tuple[str, ...]) -> None:
    """Prints the phases to stderr in the order of compilation; those of the target are printed as it passes them."""
    from lamina.compiler import copy_module

    wanted = set(phases)

    def show(phase: str, text: str) -> None:
        print(f"// ---- after {phase}\n{text.rstrip()}\n", file=sys.stderr)

    for phase in ("fx", "prim"):
        if phase in wanted:
            show(phase, str(_emit(module, graph, target, phase)))
    own = [name for name, _ in target.phases() if name in wanted] if hasattr(target, "phases") else []
    if own:
        copy = copy_module(module)
        for phase in target.lower(copy, "prim", own[-1]):
            if phase in wanted:
                show(phase, str(copy))
    for phase in wanted - {"fx", "prim", *own}:
        text = _emit(module, graph, target, phase)
        if isinstance(text, bytes):
            raise click.UsageError(f"{phase} is binary and cannot be printed; use --emit {phase} -o FILE", _context())
        show(phase, text)


def _summary(source: Source, target: str, progress: Progress) -> str:
    with progress.step("compiling"):
        program = source.compile(target)
    executable: Any = program.executable
    rows = [["program", source.name], ["target", target]]
    binary = getattr(executable, "binary", None)
    if binary is not None:
        main = binary.entries["main"]
        rows.append(["kernels", str(len(program.kernels))])
        rows.append(["launches", str(len(main.launches))])
        if executable.init_kernels:
            rows.append(["kernels of init", f"{len(executable.init_kernels)}, run once, which fold or pack weights"])
        rows.append(["code", bytes_text(sum(map(len, binary.objects)))])
        rows.append(["arena", _size_text(main.arena)])
    for chip, kernels in getattr(executable, "report", {}).items():
        rows.append([chip, _chip_text(kernels)])
    steps = getattr(executable, "steps", None)
    if steps is not None:
        rows.append(["parts", f"{len(steps)}, between calls that PyTorch runs"])
    rows.append(["weights", bytes_text(program.program.own_bytes())])
    rows += [[f"time {what}", f"{seconds:.2f} s"] for what, seconds in progress.times]
    return table(rows)


def _chip_text(kernels: dict[str, dict[str, Any]]) -> str:
    """What a chip's kernels are: how many, their code, and which spill."""
    code = bytes_text(sum(facts["code"] for facts in kernels.values()))
    spilling = [name for name, facts in kernels.items() if facts["spills"]]
    return f"{len(kernels)} kernels, {code} of code" + (f"; {', '.join(spilling)} spill" if spilling else "")


def _size_text(expression: str) -> str:
    return bytes_text(int(expression)) if expression.isdigit() else f"{expression} B"
