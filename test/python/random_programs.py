"""Checks that a random program means the same after each pass and as native code; run as a script, it looks for failures.

`python random_programs.py --examples 5000 --seed 7 --save DIR` tries many programs in processes of their own and keeps
those that fail; `python random_programs.py --run FILE` tries one again.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import pickle
import re
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from mlir import ir

from lamina import reference
from lamina._lib import _lamina
from lamina.reference.values import Array, get_dtype
from lamina.targets.cpu import CPUDescription, CPUExecutable, CPUTarget, _evaluator
from strategies import Program, prim_modules

SETTINGS = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=False
)


class SmallTarget(CPUTarget):
    """The host with options that small programs reach: many kernels, narrow panels, tiles of a few elements.

    Args:
        options: of passes, in place of what the processor's description gives.
    """

    def __init__(self, options: dict[str, str], vector_bits: int | None = None):
        description = CPUDescription.host()
        if vector_bits is not None:
            description = CPUDescription.of(description.name, description.features, description.cores)
            description = CPUDescription(description.name, description.features, vector_bits, description.cores)
        super().__init__(description)
        self.options = options

    def phases(self) -> list[tuple[str, str]]:
        def replace(passes: str) -> str:
            for name, options in self.options.items():
                passes = re.sub(rf"{name}{{[^}}]*}}", f"{name}{{{options}}}", passes)
            return passes

        return [(phase, replace(passes)) for phase, passes in super().phases()]


TARGETS: dict[str, Callable[[], CPUTarget]] = {
    "host": CPUTarget,
    "small tiles": lambda: SmallTarget(
        {
            "lamina-fuse-kernels": "min-parallelism=1 pack-widths=16,4,1",
            "lamina-tile-kernels": "pointwise-elements=4 reduce-elements=8 vector-lanes=1 l2-bytes=64 threads=4",
        }
    ),
    "narrow": lambda: SmallTarget(
        {
            "lamina-fuse-kernels": "min-parallelism=1000 size-hint=4 pack-widths=2,3",
            "lamina-tile-kernels": "pointwise-elements=32 reduce-elements=1 vector-lanes=4 l2-bytes=4096 threads=2",
            "lamina-lower-contractions": "vector-bits=128 block-bytes=256",
            "lamina-vectorize-loops": "vector-bits=128 unroll=2",
        },
        vector_bits=128,
    ),
}
"""Targets by name. What they differ in decides kernels, tiles and vectors, and nothing that a program can see."""


def split_passes(passes: str) -> list[str]:
    """Returns the passes of a pipeline, each as text."""
    parts, depth = [""], 0
    for letter in passes:
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def interpret(module: ir.Module, program: Program) -> list[Array]:
    """Runs the module that a pass made of a program, constants and destinations as that module has them."""
    interpreter = reference.Interpreter(module)
    arrays = {key: array for key, array in zip(program.constants, program.args, strict=True) if key is not None}
    functions = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in module.body.operations}
    if "init" in functions:
        for number, array in enumerate(_interpret(interpreter, functions["init"], "init", arrays, iter(()), [])):
            arrays[f"init.{number}"] = array
    inputs = (array for key, array in zip(program.constants, program.args, strict=True) if key is None)
    return _interpret(interpreter, functions["main"], "main", arrays, inputs, program.symbols)


def _interpret(
    interpreter: reference.Interpreter,
    function: ir.OpView,
    name: str,
    constants: dict[str, Array],
    inputs: Iterator[Array],
    symbols: list[int],
) -> list[Array]:
    results = (
        ir.IntegerAttr(function.attributes["kernel.results"]).value if "kernel.results" in function.attributes else 0
    )
    args: list[Array] = []
    block = function.regions[0].blocks[0]
    attrs = (
        list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else [{}] * len(block.arguments)
    )
    for number, (argument, attr) in enumerate(zip(block.arguments, attrs, strict=True)):
        if number >= len(block.arguments) - results:
            type = ir.RankedTensorType(argument.type)
            sizes = [type.get_dim_size(dim) if not type.is_dynamic_dim(dim) else None for dim in range(type.rank)]
            if None in sizes:
                sizes = list(reference.sizes.evaluate_all(attr["prim.sizes"], dict(enumerate(symbols))))
            args.append(
                np.frombuffer(b"\x5a" * (int(np.prod(sizes)) * 8), get_dtype(type))[: int(np.prod(sizes))]
                .reshape(sizes)
                .copy()
            )
        elif "prim.constant" in attr:
            args.append(constants[ir.StringAttr(attr["prim.constant"]).value])
        else:
            args.append(next(inputs))
    returned = interpreter.call(name, args)
    return args[len(args) - results :] if results else returned


def compare(actual: list[Array], expected: list[reference.Bounded], where: str) -> None:
    """Raises AssertionError where a result is not within its bounds."""
    assert len(actual) == len(expected), where
    for number, (array, wanted) in enumerate(zip(actual, expected, strict=True)):
        mismatch = reference.find_mismatch(array, wanted)
        assert mismatch is None, f"{where}: result {number}: {mismatch}"


class GuardedMemory:
    """Memory whose end is the end of what may be touched: the next byte is on a page without access.

    Bytes before its start are a pattern, which `check` reads again.
    """

    def __init__(self, count: int, alignment: int = 1):
        page = mmap.PAGESIZE
        pages = (count + alignment + 64 + page - 1) // page
        self._memory = mmap.mmap(-1, (pages + 1) * page)
        self._all = np.frombuffer(self._memory, np.uint8)
        self._all[: pages * page] = 0x5A
        start = (pages * page - count) // alignment * alignment
        self.bytes = self._all[start : start + count]
        self._before, self._after = self._all[:start], self._all[start + count : pages * page]
        self._page = self._all.ctypes.data + pages * page
        assert _libc.mprotect(ctypes.c_void_p(self._page), page, 0) == 0

    def check(self) -> None:
        """Raises AssertionError where bytes around were written."""
        assert (self._before == 0x5A).all(), "memory before the start was written"
        assert (self._after == 0x5A).all(), "memory after the end was written"

    def tensor(self) -> torch.Tensor:
        """The bytes as a tensor."""
        return torch.from_numpy(self.bytes)


_libc = ctypes.CDLL(None, use_errno=True)


def execute(binary: object, program: Program, expected: list[reference.Bounded]) -> list[Array]:
    """Runs native code, in memory whose neighbours are guarded."""

    def guard(array: Array) -> torch.Tensor:
        memory = GuardedMemory(array.nbytes)
        memory.bytes[...] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        guarded.append(memory)
        return memory.tensor()

    guarded: list[GuardedMemory] = []
    constants = {
        key: guard(array) for key, array in zip(program.constants, program.args, strict=True) if key is not None
    }
    executable = CPUExecutable(binary, constants)
    inputs = [guard(array) for key, array in zip(program.constants, program.args, strict=True) if key is None]
    outputs = [GuardedMemory(each.value.nbytes) for each in expected]
    sizes = [_evaluator(size)(program.symbols) for size in binary.entries["main"].sizes]
    assert sizes == [each.value.nbytes for each in expected], "sizes of the results"
    arena = GuardedMemory(executable.arena_bytes(program.symbols), alignment=64)
    executable._arenas.append(arena.tensor())
    executable(inputs, [each.tensor() for each in outputs], program.symbols)
    for memory in (*guarded, *outputs, arena):
        memory.check()
    for memory, array in zip(
        guarded,
        [a for k, a in zip(program.constants, program.args) if k is not None]
        + [a for k, a in zip(program.constants, program.args) if k is None],
        strict=True,
    ):
        assert memory.bytes.tobytes() == array.tobytes(), "an argument was written"
    return [
        np.frombuffer(memory.bytes.tobytes(), each.value.dtype).reshape(each.value.shape)
        for memory, each in zip(outputs, expected, strict=True)
    ]


def check(program: Program, target: str) -> None:
    """Checks a program, with the interpreter after each pass up to `planned`, and as native code.

    Raises:
        AssertionError: a result is not within its bounds.
        CompileError, _lamina.CompilerError: it cannot be compiled.
    """
    maker = TARGETS[target]()
    with ir.Context() as context:
        _lamina.register_dialects(context)
        module = _lamina.parse_module(program.text, context)
        expected = reference.run_with_bounds(module, *program.args)
        phases = dict(maker.phases())
        for passes in split_passes(f"{phases['fused']},{phases['planned']}"):
            _lamina.run_pipeline(module.operation, f"builtin.module({passes})")
            compare(interpret(module, program), expected, f"after {passes}")
        binary = maker.compile_module(module, after="planned")
    compare(execute(binary, program, expected), expected, "native code")


# ---- the search for failures --------------------------------------------------


def _describe(error: BaseException) -> str:
    """Returns the kind of a failure: what is the same in failures of one cause."""
    text = f"{type(error).__name__}: {error}"
    return re.sub(r"\s+", " ", re.sub(r"(?<![a-z])-?\d+(\.\d+)?(e[-+]\d+)?", "#", text))[:200]


def _search(start: int, examples: int, folder: Path) -> None:
    """Tries programs of one seed and keeps those that fail."""
    count = 0

    @seed(start)
    @settings(SETTINGS, max_examples=examples, database=None, phases=[Phase.generate])
    @given(prim_modules())
    def attempt(program: Program) -> None:
        nonlocal count
        count += 1
        for target in TARGETS:
            path = folder / f"{start}-{count}.{target.replace(' ', '-')}.pkl"
            path.write_bytes(pickle.dumps((program, target)))
            try:
                check(program, target)
            except Exception as error:
                path.with_suffix(".txt").write_text(
                    f"{_describe(error)}\n{program.text}\n{traceback.format_exc()}\n{program.args}"
                )
                print(f"{path.name}: {_describe(error)}", flush=True)
            else:
                path.unlink()

    attempt()
    print(f"tried {count}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=50, help="programs of one process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, default=Path("random_programs"))
    parser.add_argument("--only", action="store_true", help="this process is one batch")
    parser.add_argument("--run", type=Path, help="a kept program")
    args = parser.parse_args()
    if args.run is not None:
        program, target = pickle.loads(args.run.read_bytes())
        print(target, program)
        check(program, target)
        return
    args.save.mkdir(parents=True, exist_ok=True)
    if args.only:
        _search(args.seed, args.examples, args.save)
        return
    kinds: Counter[str] = Counter()
    for number in range(-(-args.examples // args.batch)):
        start = args.seed + number
        command = [
            sys.executable,
            __file__,
            "--only",
            "--seed",
            str(start),
            "--examples",
            str(args.batch),
            "--save",
            str(args.save),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"seed {start}: process ended by {done.returncode}: {done.stderr[-300:]}", flush=True)
            kinds[f"process ended by {done.returncode}"] += 1
        for line in done.stdout.splitlines():
            print(line, flush=True)
            kinds[line.split(": ", 1)[-1]] += 1
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")


if __name__ == "__main__":
    main()
