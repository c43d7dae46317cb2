"""The CPU target: from kernels on tensors to results, code generation, constants, the arena, profiling."""

import gc
import threading
import weakref

import pytest
import torch
from mlir import ir

import cpu_modules
import lamina
from lamina._lib import _lamina
from lamina.targets.cpu import (
    CPUBinary,
    CPUDescription,
    CPUExecutable,
    CPUTarget,
    Entry,
    _evaluator,
    _to_python,
)


class LoopTarget(CPUTarget):
    """The target with upstream's scalar loops, so that only the passes under test are Lamina's own."""

    def phases(self):
        return [
            ("planned", "canonicalize"),
            ("buffers", "lamina-bufferize-kernels"),
            ("loops", "convert-linalg-to-loops,lamina-lower-grid,lamina-lower-host"),
            ("llvm", "lamina-cpu-to-llvm"),
        ]


def parse(text):
    context = ir.Context()
    _lamina.register_dialects(context)
    return _lamina.parse_module(text, context)


@pytest.fixture(scope="module")
def binary():
    return LoopTarget().compile_module(parse(cpu_modules.PROGRAM), after="planned")


def expected(x, c):
    y = x * c + x
    return y / y.sum(1, keepdim=True)


def run(executable, m, n, seed=0):
    x = torch.rand(m, n, generator=torch.Generator().manual_seed(seed)) + 0.1
    out = torch.full((m, n), torch.nan)
    executable([x.reshape(-1)], [out], [m, n])
    torch.testing.assert_close(out, expected(x, 3.0))


@pytest.mark.parametrize("m,n", [(1, 1), (3, 5), (64, 2), (1, 128), (7, 129), (100, 1000), (0, 4), (4, 0)])
def test_sizes(binary, m, n):
    executable = CPUExecutable(binary, {"c": torch.tensor(3.0)})
    run(executable, m, n)


def test_entry(binary):
    entry = binary.entries["main"]
    assert entry.arguments == [None, "c"]
    assert eval(entry.sizes[0], {"s0": 3, "s1": 5}) == 60
    assert _evaluator(entry.arena)([3, 5]) == 60


def test_threads_have_their_own_arena(binary):
    executable = CPUExecutable(binary, {"c": torch.tensor(3.0)})
    failures = []

    def work(seed):
        try:
            for i in range(50):
                run(executable, 5 + (i + seed) % 7, 33, seed)
        except AssertionError as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_profiler_shows_kernels(binary):
    executable = CPUExecutable(binary, {"c": torch.tensor(3.0)})
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run(executable, 8, 8)
    names = {event.key for event in profile.key_averages()}
    assert {"rows", "chunks"} <= names


def lowered():
    module = parse(cpu_modules.PROGRAM)
    list(LoopTarget().lower(module, "planned"))
    return module


def test_objects_are_made_in_parallel():
    assert len(_lamina.compile_objects(lowered(), threads=1)) == 1
    assert len(_lamina.compile_objects(lowered(), threads=8)) == 3  # one for each function


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_levels(level, threads):
    objects = _lamina.compile_objects(lowered(), level=level, threads=threads)
    entry = Entry([None, "c"], ["4 * s0 * s1"], "s0 * s1 * 4")
    run(CPUExecutable(CPUBinary(objects, {"main": entry}), {"c": torch.tensor(3.0)}), 9, 17)


def test_products_and_sums_round_twice():
    # 1 + 2^-12 squared has a bit that f32 drops before the sum; fused, the sum would keep it.
    text = """
    llvm.func @f(%args: !llvm.ptr, %symbols: !llvm.ptr, %arena: !llvm.ptr) {
      %p = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %x = llvm.load %p : !llvm.ptr -> f32
      %m = llvm.mlir.constant(-1.0 : f32) : f32
      %a = llvm.fmul %x, %x : f32
      %b = llvm.fadd %a, %m : f32
      llvm.store %b, %p : f32, !llvm.ptr
      llvm.return
    }"""
    x = torch.tensor([1 + 2.0**-12])
    eager = x * x + -1.0
    for level in range(4):
        value = x.clone()
        _lamina.Executable(_lamina.compile_objects(parse(text), level=level)).call("f", [value.data_ptr()], [], 0)
        assert value.item() == eager.item()


def test_texts():
    module = lowered()
    assert "define void @main(" in _lamina.emit(module, "llvm")
    assert "rows:" in _lamina.emit(module, "asm")
    assert _lamina.emit(module, "obj").startswith(b"\x7fELF")
    with pytest.raises(ValueError):
        _lamina.emit(module, "wasm")


def test_another_processor():
    text = _lamina.emit(lowered(), "llvm", processor=("haswell", "+avx2,+fma"))
    assert '"target-cpu"="haswell"' in text
    assert "prefer-vector-width" not in text


def test_host_description():
    host = CPUDescription.host()
    assert host.vector_bits in (128, 256, 512)
    assert host.cores >= 1
    assert host.l1 < host.l2


def test_expressions():
    with ir.Context():
        s0, s1 = ir.AffineExpr.get_symbol(0), ir.AffineExpr.get_symbol(1)
        expr = ir.AffineExpr.get_ceil_div(s0 * s1 + 3, ir.AffineConstantExpr.get(4)) + ir.AffineExpr.get_mod(s0, 3) * 2
        assert _evaluator(_to_python(expr))([5, 7]) == -(-(5 * 7 + 3) // 4) + 2 * (5 % 3)


def test_errors_name_the_phase():
    from lamina.errors import CompileError

    module = parse("""
    kernel.func @k(%o: tensor<4xf32>) attributes {outs = 1 : i64, kernel.grid = affine_map<() -> (1)>} {
      kernel.return %o : tensor<4xf32>
    }
    func.func @main(%o: tensor<4xf32>) {
      %0 = kernel.launch @k [] -> tensor<4xf32>
      return
    }""")
    with pytest.raises(CompileError, match="phase 'loops'.*no memory for its outputs"):
        LoopTarget().compile_module(module, after="planned")


def test_bf16_rounds_as_pytorch_does():
    text = """
    func.func @f(%args: !llvm.ptr, %symbols: !llvm.ptr, %arena: !llvm.ptr) {
      %p = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %q = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %r = llvm.load %q : !llvm.ptr -> !llvm.ptr
      %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
      %y = arith.truncf %x : vector<16xf32> to vector<16xbf16>
      llvm.store %y, %r {alignment = 2 : i64} : vector<16xbf16>, !llvm.ptr
      return
    }"""
    module = parse(text)
    _lamina.run_pipeline(module.operation, "builtin.module(lamina-expand-bf16,lamina-cpu-to-llvm)")
    library = _lamina.Executable(_lamina.compile_objects(module))
    bits = torch.randint(-(2**31), 2**31, (4096, 16), generator=torch.Generator().manual_seed(0), dtype=torch.int64)
    x = bits.to(torch.int32).view(torch.float32)
    x[0] = torch.tensor([0.0, -0.0, 1e-39, -1e-45, 3.4e38, torch.inf, -torch.inf, torch.nan] * 2)
    for row in x:
        out = torch.empty(16, dtype=torch.bfloat16)
        library.call("f", [row.data_ptr(), out.data_ptr()], [], 0)
        eager = row.to(torch.bfloat16)
        assert torch.equal(out.isnan(), eager.isnan())
        assert torch.equal(out.view(torch.int16)[~eager.isnan()], eager.view(torch.int16)[~eager.isnan()])


def resident_bytes(*libraries):
    """Bytes of the clean pages of shared libraries that this process has mapped."""
    total = 0
    with open("/proc/self/smaps") as file:
        for line in file:
            fields = line.split()
            if not fields[0].endswith(":"):
                ours = fields[-1].endswith(libraries)
            elif ours and fields[0] == "Private_Clean:" or ours and fields[0] == "Shared_Clean:":
                total += 1024 * int(fields[1])
    return total


def test_compiler_leaves_no_pages():
    """A program that was compiled and loaded does not hold the compiler in memory, and the compiler still works."""
    for count in (2, 3):
        x = torch.rand(count, 7)
        program = lamina.compile(lambda x: torch.softmax(x, 1), (x,))
        assert resident_bytes("libLLVM.so", "libMLIRPythonCAPI.so", "libLamina.so") < 16 << 20
        torch.testing.assert_close(program(x), torch.softmax(x, 1))


def test_packed_weights_are_not_held_twice():
    """A weight that is read from its packed copy alone is freed when the user lets go of the model."""
    model = torch.nn.Sequential(torch.nn.Linear(96, 96), torch.nn.ReLU(), torch.nn.Linear(96, 48)).requires_grad_(False)
    x = torch.rand(32, 96)
    want = model(x)
    program = lamina.compile(model, (x,))
    assert program.program.own_bytes() == sum(p.nbytes for p in model.parameters())
    weights = [weakref.ref(model[k].weight.untyped_storage()) for k in (0, 2)]
    del model
    gc.collect()
    assert [weight() for weight in weights] == [None, None]
    torch.testing.assert_close(program(x), want)
