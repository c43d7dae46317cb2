"""The CPU runtime: threads, scratch memory, calls of compiled host functions, recovery from crashes."""

import ctypes
import re
import subprocess
import sys
import threading

import pytest
import torch
from mlir import ir

from lamina._lib import _lamina

# Every program writes its thread's scratch pointer and number of programs of its range to out[program].
THREADS = """
llvm.func @lamina_launch(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
llvm.func @lamina_scratch(i64) -> !llvm.ptr
llvm.mlir.global private constant @name("ranges\\00")
llvm.func @ranges(%block: !llvm.ptr, %begin: i64, %end: i64) {
  %out = llvm.load %block : !llvm.ptr -> !llvm.ptr
  %one = llvm.mlir.constant(1 : i64) : i64
  %bytes = llvm.mlir.constant(100 : i64) : i64
  %scratch = llvm.call @lamina_scratch(%bytes) : (i64) -> !llvm.ptr
  %address = llvm.ptrtoint %scratch : !llvm.ptr to i64
  %count = llvm.sub %end, %begin : i64
  llvm.br ^head(%begin : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %end : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %p = llvm.getelementptr %out[%i, 0] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  llvm.store %address, %p : i64, !llvm.ptr
  %q = llvm.getelementptr %out[%i, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  llvm.store %count, %q : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^done:
  llvm.return
}
llvm.func @main(%args: !llvm.ptr, %symbols: !llvm.ptr, %arena: !llvm.ptr) {
  %n = llvm.load %symbols : !llvm.ptr -> i64
  %k = llvm.mlir.addressof @ranges : !llvm.ptr
  %name = llvm.mlir.addressof @name : !llvm.ptr
  llvm.call @lamina_launch(%k, %args, %n, %name) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
  llvm.return
}
"""


@pytest.fixture(scope="module")
def context():
    context = ir.Context()
    _lamina.register_dialects(context)
    return context


@pytest.fixture(scope="module")
def ranges(context):
    return _lamina.Executable(_lamina.compile_objects(_lamina.parse_module(THREADS, context)))


def run(executable, programs):
    out = torch.zeros(max(programs, 1), 2, dtype=torch.int64)
    executable.call("main", [out.data_ptr()], [programs], 0)
    return out


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("programs", [1, 2, 7, 64])
def test_ranges_follow_torchs_number_of_threads(ranges, threads, count, programs):
    threads(count)
    assert _lamina.num_threads() == torch.get_num_threads() == count
    out = run(ranges, programs)
    used = min(count, programs)
    assert len(out[:, 0].unique()) == used  # one scratch block for each thread
    expected = [programs // used + (i < programs % used) for i in range(used)]
    assert out[:, 1].tolist() == [size for size in expected for _ in range(size)]


def test_empty_grid_runs_nothing(ranges):
    assert run(ranges, 0).eq(0).all()


def test_scratch_is_aligned(ranges):
    assert (run(ranges, 8)[:, 0] % 64).eq(0).all()


def test_scratch_grows_and_is_reused(ranges):
    from pathlib import Path

    import lamina

    library = ctypes.CDLL(str(Path(lamina.__file__).parent / "_lib" / "libLamina.so"))
    library.lamina_scratch.restype = ctypes.c_void_p
    library.lamina_scratch.argtypes = [ctypes.c_int64]
    large = library.lamina_scratch(1 << 20)
    assert large % 64 == 0
    assert library.lamina_scratch(10) == large
    ctypes.memset(library.lamina_scratch(4 << 20), 1, 4 << 20)


def test_hook_sees_each_launch(ranges):
    out = torch.zeros(4, 2, dtype=torch.int64)
    seen = []
    ranges.call("main", [out.data_ptr()], [4], 0, lambda name, begin: seen.append((name, begin)))
    assert seen == [("ranges", True), ("ranges", False)]
    ranges.call("main", [out.data_ptr()], [4], 0)
    assert len(seen) == 2


def test_calls_from_many_threads(ranges):
    failures = []

    def work():
        for _ in range(200):
            if run(ranges, 5)[:, 0].eq(0).any():
                failures.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_unknown_function(ranges):
    with pytest.raises(_lamina.CompilerError, match="nothing"):
        ranges.call("nothing", [], [], 0)


def test_arguments_must_be_integers(ranges):
    with pytest.raises(TypeError):
        ranges.call("main", ["a"], [1], 0)


@pytest.mark.parametrize("kind", ["assert", "segfault", "fatal", "overflow"])
def test_a_crash_in_a_pass_is_an_exception(kind):
    context = ir.Context()
    module = _lamina.parse_module("module @m {}", context)
    with pytest.raises(_lamina.CompilerCrash, match="'lamina-crash-for-test' on builtin.module @m"):
        _lamina.run_pipeline(module.operation, f"builtin.module(lamina-crash-for-test{{kind={kind}}})")
    # Other contexts still work.
    other = ir.Context()
    _lamina.run_pipeline(_lamina.parse_module("module {}", other).operation, "builtin.module(canonicalize)")


def test_a_crash_in_a_nested_pass_is_an_exception():
    context = ir.Context()
    module = _lamina.parse_module("func.func @f() { return }\nfunc.func @g() { return }", context)
    with pytest.raises(_lamina.CompilerCrash, match="on func.func @f"):
        _lamina.run_pipeline(module.operation, "builtin.module(func.func(lamina-crash-for-test))")


def test_an_error_in_a_pass_has_its_location():
    context = ir.Context()
    module = _lamina.parse_module("module {}", context, "net.py")
    with pytest.raises(_lamina.CompilerError, match='"net.py":1:1.*is refused') as caught:
        _lamina.run_pipeline(module.operation, "builtin.module(lamina-crash-for-test{kind=error})")
    assert caught.type is _lamina.CompilerError


def test_errors_of_parsing():
    context = ir.Context()
    with pytest.raises(_lamina.CompilerError, match='"a.mlir":1:12'):
        _lamina.parse_module("func.func @", context, "a.mlir")
    module = _lamina.parse_module("module {}", context)
    with pytest.raises(_lamina.CompilerError, match="no-such-pass"):
        _lamina.run_pipeline(module.operation, "builtin.module(no-such-pass)")


@pytest.mark.parametrize(
    "text",
    ["module {" * 100000 + "}" * 100000, "module attributes {a.b = " + "[" * 100000 + "]" * 100000 + "} {}"],
    ids=["regions", "attributes"],
)
def test_deep_nesting_is_an_error(text):
    with pytest.raises(_lamina.CompilerError, match="nested too deeply"):
        _lamina.parse_module(text, ir.Context(), "a.mlir")


def test_brackets_that_do_not_nest_are_no_error(context):
    lines = [f'func.func private @f{i}() -> () attributes {{a.b = "((((["}} // ((((' for i in range(1001)]
    _lamina.parse_module("\n".join(lines), context)


def test_a_long_chain_of_operations_is_compiled(context):
    lines = [f"%{i + 1} = prim.{('add', 'mul')[i % 2]} %{i}, %0 : tensor<8xf32>" for i in range(20000)]
    body = "\n".join(lines)
    text = f"func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {{ {body}\nreturn %20000 : tensor<8xf32> }}"
    text = re.sub(r"%(\d)", r"%v\1", text)
    module = _lamina.parse_module(text, context)
    _lamina.run_pipeline(module.operation, "builtin.module(func.func(lamina-convert-prim-to-linalg))")
    assert "linalg.generic" in str(module)


def test_errors_of_code_generation_are_exceptions(context):
    assembly = 'llvm.inline_asm "no_such_instruction", "" : () -> ()'
    module = _lamina.parse_module(
        f"llvm.func @f() {{ {assembly}\n llvm.return }}\nllvm.func @g() {{ llvm.return }}", context
    )
    for compile in (lambda: _lamina.emit(module, "obj"), lambda: _lamina.compile_objects(module, threads=2)):
        with pytest.raises(_lamina.CompilerError, match="no_such_instruction"):
            compile()
    # LLVM would exit.
    with pytest.raises(_lamina.CompilerError, match="64-bit"):
        _lamina.emit(module, "obj", ("no-such-processor", ""))


def test_what_is_not_in_the_llvm_dialect_has_no_code(context):
    module = _lamina.parse_module("func.func @f() { return }", context)
    with pytest.raises(_lamina.CompilerError, match="func.func"):
        _lamina.compile_objects(module)


def test_a_crash_while_a_pass_changes_the_module_does_not_end_the_process():
    # In a process of its own: whatever the garbage collector and the exit do with the lost context shows in the exit code.
    code = f"""
import gc
from mlir import ir
from lamina._lib import _lamina
for kind in ("assert", "segfault", "fatal", "overflow"):
    context = ir.Context()
    module = _lamina.parse_module("func.func @f() {{ return }}", context)
    try:
        _lamina.run_pipeline(module.operation, f"builtin.module(func.func(lamina-crash-for-test{{{{kind={{kind}}}}}}))")
    except _lamina.CompilerCrash:
        print("caught")
    del module, context
    gc.collect()
executable = _lamina.Executable(_lamina.compile_objects(_lamina.parse_module({THREADS!r}, ir.Context())))
memory = (__import__("ctypes").c_int64 * 16)()
executable.call("main", [__import__("ctypes").addressof(memory)], [8], 0)
print(memory[0] != 0, _lamina.num_threads() >= 1)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["caught"] * 4 + ["True", "True"]
