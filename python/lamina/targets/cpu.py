"""The CPU target: MLIR to LLVM in process, run on the threads of PyTorch's own OpenMP runtime."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lamina import cache
from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.logging import get_logger, timed
from lamina.targets.phases import PhasedTarget, fused_passes

if TYPE_CHECKING:
    from lamina.frontend.program import Program

log = get_logger("cpu")


@dataclass(frozen=True)
class CPUDescription:
    """What the compiler knows of a processor.

    Attributes:
        name, features: as LLVM writes them.
        vector_bits: of its widest registers.
        cores: that this process may use.
        l1, l2, l3: bytes of data cache that one core sees.
        matrix_unit: whether it has AMX tiles for bf16.
        size_hint: the size assumed for a dimension of which nothing is known.
    """

    name: str
    features: str
    vector_bits: int
    cores: int
    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 8 << 20
    matrix_unit: bool = False
    size_hint: int = 128

    @staticmethod
    @functools.cache
    def host() -> CPUDescription:
        """The processor that runs this."""
        from lamina._lib import _lamina

        name, features = _lamina.host_cpu()
        return CPUDescription.of(name, features, cores=len(os.sched_getaffinity(0)), **_read_caches())

    @staticmethod
    def of(name: str, features: str, cores: int = 1, **sizes: int) -> CPUDescription:
        """A processor from LLVM's name and features of it."""
        have = set(features.split(","))
        bits = 512 if "+avx512f" in have else 256 if "+avx" in have else 128
        return CPUDescription(name, features, bits, cores, matrix_unit={"+amx-tile", "+amx-bf16"} <= have, **sizes)


def _read_caches() -> dict[str, int]:
    """Sizes of the data caches of core 0, as far as Linux tells them."""
    sizes = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = ((folder / item).read_text().strip() for item in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and (match := re.fullmatch(r"(\d+)([KM]?)", size)):
            sizes[f"l{level}"] = int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]]
    return {key: value for key, value in sizes.items() if key in ("l1", "l2", "l3")}


@dataclass
class Entry:
    """A host function of a compiled module.

    Attributes:
        arguments: of each argument that is no result, the key of the constant that it is, or None.
        sizes: bytes of each result, an expression over the symbols s0, s1, ... in Python's syntax.
        arena: bytes of temporary memory, an expression likewise.
        launches: the kernels that are launched, in the order of the text.
    """

    arguments: list[str | None]
    sizes: list[str]
    arena: str = "0"
    launches: list[str] = field(default_factory=list)


@dataclass
class CPUBinary:
    """Objects, and what the caller must know of them. It is plain data, and can be stored."""

    objects: list[bytes]
    entries: dict[str, Entry] = field(default_factory=dict)


def _to_python(expr: Any) -> str:
    """An affine expression over symbols in Python's syntax; all values are at least 0."""
    from mlir import ir

    expr = expr.maybe_downcast()
    if isinstance(expr, ir.AffineConstantExpr):
        return str(expr.value)
    if isinstance(expr, ir.AffineSymbolExpr):
        return f"s{expr.position}"
    if not isinstance(expr, ir.AffineBinaryExpr):
        raise ValueError(f"{expr} is no size expression")
    a, b = _to_python(expr.lhs), _to_python(expr.rhs)
    if isinstance(expr, ir.AffineCeilDivExpr):
        return f"(-(-{a} // {b}))"
    operators = {ir.AffineAddExpr: "+", ir.AffineMulExpr: "*", ir.AffineModExpr: "%", ir.AffineFloorDivExpr: "//"}
    return f"({a} {operators[type(expr)]} {b})"


def _evaluator(text: str) -> Callable[[Sequence[int]], int]:
    """The function of the symbols' values that `text` is."""
    if text.isdigit():
        value = int(text)
        return lambda symbols: value
    code = re.sub(r"\bs(\d+)\b", r"symbols[\1]", text)
    return eval(f"lambda symbols: {code}", {"__builtins__": {}})


def _read_entry(function: Any) -> Entry:
    """The Entry of a planned host function."""
    from mlir import ir

    attributes = function.attributes
    results = ir.IntegerAttr(attributes["kernel.results"]).value if "kernel.results" in attributes else 0
    arguments = list(function.arguments)
    inputs = len(arguments) - results
    dictionaries = list(function.arg_attrs) if "arg_attrs" in attributes else [{}] * len(arguments)
    constants = [
        ir.StringAttr(d["prim.constant"]).value if "prim.constant" in d else None for d in dictionaries[:inputs]
    ]
    sizes = []
    for argument, dictionary in zip(arguments[inputs:], dictionaries[inputs:]):
        tensor = ir.RankedTensorType(argument.type)
        exprs: Any = ir.AffineMapAttr(dictionary["prim.sizes"]).value.results if "prim.sizes" in dictionary else None
        count = [
            _to_python(exprs[i]) if tensor.is_dynamic_dim(i) else str(tensor.get_dim_size(i))
            for i in range(tensor.rank)
        ]
        sizes.append(" * ".join([str(_element_bytes(tensor.element_type)), *count]))
    arena = (
        _to_python(ir.AffineMapAttr(attributes["kernel.arena"]).value.results[0])
        if "kernel.arena" in attributes
        else "0"
    )
    return Entry(constants, sizes, arena, _launches(function))


def _launches(function: Any) -> list[str]:
    """The kernels that a host function launches."""
    from mlir import ir

    names: list[str] = []

    def visit(operation: Any) -> Any:
        if operation.name == "kernel.launch":
            names.append(ir.FlatSymbolRefAttr(operation.attributes["kernel"]).value)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return names


def _element_bytes(element: Any) -> int:
    from mlir import ir

    if isinstance(element, ir.ComplexType):
        return 2 * _element_bytes(element.element_type)
    return 8 if isinstance(element, ir.IndexType) else (element.width + 7) // 8


@contextlib.contextmanager
def _code_generation() -> Iterator[None]:
    """Turns the errors of LLVM into CompileError."""
    from lamina._lib import _lamina

    try:
        yield
    except _lamina.CompilerCrash as error:
        raise CompileError.from_crash(str(error), "obj") from error
    except _lamina.CompilerError as error:
        raise CompileError.from_diagnostics(str(error), "no code could be generated") from error


class CPUTarget(PhasedTarget):
    """The target named ``cpu``.

    Args:
        description: the processor; by default the host, the only one that can run what is compiled.
        level: LLVM's IR passes: 0 none, 1 the few that vector code needs, 2 and 3 all of -O2 and -O3.
    """

    name = "cpu"

    def __init__(self, description: CPUDescription | None = None, level: int = 1):
        if isinstance(description, str):
            raise ValueError("the target cpu has no variants")

        self.description = description or CPUDescription.host()
        self.level = level

    def phases(self) -> list[tuple[str, str]]:
        """Names of the phases from `prim` on, and the passes that make each from the one before."""
        d = self.description
        clean = "canonicalize,cse"
        lanes = d.vector_bits // 32
        tile = f"vector-lanes={lanes} l2-bytes={d.l2} threads={d.cores}"
        pack = f"pack-widths={','.join(str(lanes * n) for n in (3, 4, 2, 1))}"
        contract = f"vector-bits={d.vector_bits} block-bytes={d.l2 // 4}"
        if d.matrix_unit:
            pack += " pack-tile-widths=32,16"
            contract += " matrix-unit=true"
        return [
            ("fused", fused_passes(4 * d.cores, d.size_hint, pack)),
            ("planned", "lamina-plan-memory"),
            ("linalg", f"kernel.func(lamina-convert-prim-to-linalg,{clean})"),
            ("tiled", f"kernel.func(lamina-tile-kernels{{{tile}}},{clean})"),
            ("buffers", "lamina-bufferize-kernels"),
            (
                "loops",
                f"lamina-lower-contractions{{{contract}}},lamina-vectorize-loops{{vector-bits={d.vector_bits}}},{clean},"
                f"lamina-expand-math,lamina-expand-bf16,lamina-expand-bools,lamina-lower-grid,lamina-lower-host,{clean}",
            ),
            ("llvm", "lamina-cpu-to-llvm"),
        ]

    emits = ("llvm", "asm", "obj")

    def emit(self, module: Any, kind: str) -> str | bytes:
        """LLVM IR or assembly as text, or an object, of a prim module, which is changed.

        Raises:
            CompileError: a pass or code generation failed.
        """
        from lamina._lib import _lamina

        for _ in self.lower(module):
            pass
        with _code_generation():
            return _lamina.emit(module, kind, (self.description.name, self.description.features), self.level)

    def compile_module(self, module: Any, after: str = "prim") -> CPUBinary:
        """Compiles a module that is in the phase `after` (planned or earlier); the module ends in the LLVM dialect.

        Raises:
            CompileError: a pass or code generation failed.
        """
        from mlir import ir

        from lamina._lib import _lamina

        if after != "planned":
            for _ in self.lower(module, after, "planned"):
                pass
        entries = {
            ir.StringAttr(op.attributes["sym_name"]).value: _read_entry(op)
            for op in module.body.operations
            if op.operation.name == "func.func" and not op.is_external
        }
        for _ in self.lower(module, "planned", "llvm"):
            pass
        with timed(log, "code generation"), _code_generation():
            objects = _lamina.compile_objects(module, (self.description.name, self.description.features), self.level)
        return CPUBinary(objects, entries)

    def binary(self, module: Any) -> CPUBinary:
        """The binary of a prim module, which is left as it is: from the cache on disk, or made and kept there."""
        if not cache.enabled():
            return self.compile_module(copy_module(module))
        # Code generation deals the functions out to one object a hardware thread.
        key = cache.key_of(module, self.name, self.description, self.level, self.phases(), os.cpu_count())
        binary = cache.load(key)
        if binary is None:
            binary = self.compile_module(copy_module(module))
            cache.store(key, binary)
        return binary

    def compile(self, program: Program) -> CPUExecutable:
        """An executable of a program; its prim module is left as it is."""
        constants = {
            argument.constant: program.tensors[argument.constant].detach().permute(argument.permutation).contiguous()
            for argument in program.arguments
            if argument.constant is not None
        }
        return CPUExecutable(self.binary(program.module), constants)


class _State(threading.local):
    """What each thread has of its own."""

    def __init__(self) -> None:
        # PyTorch sets the number of OpenMP threads of a new thread only when it is asked for.
        self.threads = torch.get_num_threads()


_state = _State()


def _profile() -> Callable[[str, bool], None]:
    """A launch hook that shows each kernel to torch.profiler."""
    running: list[Any] = []

    def hook(name: str, begin: bool) -> None:
        if begin:
            record = torch._C._profiler._RecordFunctionFast(name)
            record.__enter__()
            running.append(record)
        else:
            running.pop().__exit__(None, None, None)

    return hook


class CPUExecutable:
    """A loaded binary with its constants. Threads may call it at the same time.

    Args:
        binary: what CPUTarget.compile_module returned.
        constants: contiguous tensors by the keys of the arguments that are constants.
    """

    def __init__(self, binary: CPUBinary, constants: dict[str, torch.Tensor] | None = None):
        from lamina._lib import _lamina

        self.binary = binary
        with timed(log, "load"):
            self._library = _lamina.Executable(binary.objects)
        self._arenas: list[torch.Tensor] = []
        constants = dict(constants or {})
        init = binary.entries.get("init")
        if init is not None:
            computed = {
                f"init.{i}": torch.empty(_evaluator(size)(()), dtype=torch.uint8) for i, size in enumerate(init.sizes)
            }
            pointers = [constants[key].data_ptr() for key in init.arguments if key is not None]
            pointers += [tensor.data_ptr() for tensor in computed.values()]
            arena = torch.empty(_evaluator(init.arena)(()), dtype=torch.uint8)
            with timed(log, "constants"):
                self._library.call("init", pointers, (), arena.data_ptr())
            constants.update(computed)
        with timed(log, "link"):
            self._library.address("main")
        _lamina.release_resident_pages()
        main = binary.entries["main"]
        self._keep = [constants[key] for key in main.arguments if key is not None]
        self._fixed = [None if key is None else constants[key].data_ptr() for key in main.arguments]
        self._arena_bytes = _evaluator(main.arena)
        self._has_constants = bool(self._keep)

    @property
    def kernels(self) -> list[str]:
        """The kernels of @main, each once."""
        return list(dict.fromkeys(self.binary.entries["main"].launches))

    @property
    def init_kernels(self) -> list[str]:
        """The kernels of @init, which have run, each once."""
        init = self.binary.entries.get("init")
        return list(dict.fromkeys(init.launches)) if init is not None else []

    def arena_bytes(self, symbols: Sequence[int]) -> int:
        """Bytes of temporary memory that a call needs.

        Args:
            symbols: the values of the index symbols.
        """
        return self._arena_bytes(symbols)

    def __call__(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], symbols: Sequence[int]) -> None:
        """Runs @main.

        Args:
            inputs: contiguous tensors, in the order of the arguments that are no constants.
            outputs: contiguous tensors to be written, one for each result.
            symbols: the values of the index symbols.
        """
        _ = _state.threads
        if self._has_constants:
            given = iter(inputs)
            pointers = [next(given).data_ptr() if p is None else p for p in self._fixed]
        else:
            pointers = [t.data_ptr() for t in inputs]
        pointers += [t.data_ptr() for t in outputs]
        hook = _profile() if torch.autograd._profiler_enabled() else None
        need = self._arena_bytes(symbols)
        if not need:
            self._library.call("main", pointers, symbols, 0, hook)
            return
        # An arena that is taken belongs to this call alone; popping and appending are atomic.
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = None
        if arena is None or arena.numel() < need:
            arena = torch.empty(need, dtype=torch.uint8)
        try:
            self._library.call("main", pointers, symbols, arena.data_ptr(), hook)
        finally:
            self._arenas.append(arena)
