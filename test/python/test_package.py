"""Packages for CUDA: what they hold, what cannot be packaged, damage; and Triton in worker processes."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile

import pytest
import torch
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import DYNAMIC, PROGRAMS, get_model, seeded
from lamina.errors import CompileError, CompilerCrash
from lamina.targets import schedule, triton_pool
from lamina.targets.cuda import CHIPS, CUDATarget, parameter_widths
from lamina.targets.triton import Settings
from lamina.targets.triton_pool import CompiledKernel, Request
from lamina_runtime.archive import checksum
from package_harness import HostDriver, InterpreterDriver

pytest.importorskip("triton")

KERNEL = """
tt.func public @f(%x: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %s = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %p = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %v = tt.load %p : tensor<128x!tt.ptr<f32>>
  %w = arith.OP %v, %v : tensor<128xf32>
  tt.store %p, %w : tensor<128x!tt.ptr<f32>>
  tt.return
}"""


def kernel(op="addf"):
    return KERNEL.replace("OP", op)


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LAMINA_CACHE", raising=False)


@pytest.fixture
def started(monkeypatch):
    """The worker processes that were started."""
    found = []
    original = subprocess.Popen
    monkeypatch.setattr(
        triton_pool.subprocess, "Popen", lambda *args, **kwargs: found.append(1) or original(*args, **kwargs)
    )
    return found


# ---- workers


def test_what_is_kept_starts_no_process(fresh_cache, started):
    requests = [Request(kernel(op), Settings(f"cuda:sm_{sm}")) for op in ("addf", "mulf", "addf") for sm in (80, 90)]
    first = triton_pool.compile_kernels(requests)
    assert 1 <= len(started) <= len(os.sched_getaffinity(0))
    assert first[0] == first[4] and first[0] != first[2] and first[0] != first[1]
    count = len(started)
    assert triton_pool.compile_kernels(requests) == first
    assert len(started) == count


def test_a_damaged_entry_is_made_again(fresh_cache, started):
    from lamina import cache

    request = Request(kernel(), Settings("cuda:sm_90"))
    (first,) = triton_pool.compile_kernels([request])
    ((path, _, _),) = cache.entries()
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    assert triton_pool.compile_kernels([request]) == [first]
    assert len(started) == 2


def test_facts_of_a_kernel(fresh_cache):
    (made,) = triton_pool.compile_kernels([Request(kernel(), Settings("cuda:sm_90", warps=8))])
    assert isinstance(made, CompiledKernel)
    assert (made.name, made.warps, made.shared, made.spills, made.tools["ptxas"]) == ("f", 8, 0, 0, "12.9")
    assert made.registers > 0 and made.parameters == (8, 8, 8) and made.binary.startswith(b"\x7fELF")
    assert ".version 8.8" in made.asm["ptx"] and ".target sm_90a" in made.asm["ptx"]
    (old,) = triton_pool.compile_kernels([Request(kernel(), Settings("cuda:sm_80", until="ptx"))])
    assert ".version 8.0" in old.asm["ptx"] and old.binary == b"" and set(old.asm) == {"ttir", "ttgir", "llir", "ptx"}
    with pytest.raises(ValueError, match="no entry point g"):
        parameter_widths(made.asm["ptx"], "g")


def test_errors_name_the_line_of_the_program(fresh_cache):
    location = 'loc("add_3"("layers.0"("model.py":17:0)))'
    (error,) = triton_pool.compile_kernels(
        [Request(kernel("nonsense"), Settings("cuda:sm_90"), location=location, name="k_add")]
    )
    assert isinstance(error, CompileError) and not isinstance(error, CompilerCrash)
    assert (error.location, error.op, error.module) == ("model.py:17", "add_3", "layers.0")
    assert "could not compile the kernel k_add: " in str(error) and "arith.nonsense" in str(error)


def test_diagnostics_of_triton_are_more_exact(fresh_cache):
    wrong = kernel().replace("end = 128", "end = 64")
    located = wrong.replace(
        "end = 64 : i32} : tensor<128xi32>", 'end = 64 : i32} : tensor<128xi32> loc("iota"("model.py":18:0))'
    )
    location = 'loc(fused["add_3"("model.py":17:0), "iota"("model.py":18:0)])'
    for request, line in [
        (Request(wrong, Settings("cuda:sm_90"), None, location), "model.py:17"),
        (Request(wrong, Settings("cuda:sm_90"), lambda: located, location), "model.py:18"),
    ]:
        (error,) = triton_pool.compile_kernels([request])
        assert isinstance(error, CompileError) and error.location == line
        assert "number of elements" in str(error)


def test_a_worker_that_dies_costs_its_kernel_alone(fresh_cache, tmp_path, monkeypatch):
    # What libtriton does when LLVM cannot go on.
    monkeypatch.setattr(
        triton_pool,
        "_START",
        triton_pool._START.replace(
            "main()",
            """
import lamina.targets.triton as t
compile = t.compile_stages
def dying(text, settings):
    if "mulf" in text:
        import os, sys
        print('LLVM ERROR: Cannot select: loc("mul"("model.py":5:0))', file=sys.stderr, flush=True)
        os.abort()
    return compile(text, settings)
t.compile_stages = dying
main()""",
        ),
    )
    requests = [Request(kernel(op), Settings("cuda:sm_90"), name=f"k_{op}") for op in ("mulf", "addf", "mulf", "subf")]
    outcomes = triton_pool.compile_kernels(requests)
    assert isinstance(outcomes[0], CompilerCrash) and outcomes[2] is outcomes[0]
    assert "the kernel k_mulf ended its compiler, Triton, by signal 6" in str(outcomes[0])
    assert "Cannot select" in outcomes[0].details and outcomes[0].location == "model.py:5"
    assert isinstance(outcomes[1], CompiledKernel) and isinstance(outcomes[3], CompiledKernel)


# ---- schedules


def outcome(warps, stages, spills=0, shared=0):
    return CompiledKernel("k", "cuda:sm_90", {}, b"", warps, stages, shared, spills=spills, registers=1)


def scheduled(monkeypatch, results, chip="sm_90"):
    """The kernel that is chosen where settings have these results."""
    tried = []

    def compile(requests):
        (request,) = requests
        key = (request.settings.warps, request.settings.stages)
        tried.append(key)
        value = results.get(key, {})
        return [value if isinstance(value, CompileError) else outcome(*key, **value)]

    monkeypatch.setattr(schedule, "compile_kernels", compile)
    settings = [Settings("cuda:sm_90", *key) for key in [(8, 3), (16, 3), (4, 3), (8, 2)]]
    job = schedule.Job(Request("", settings[0], location='loc("mm"("model.py":3:0))', name="k"), CHIPS[chip], settings)
    (kernel,) = schedule.compile_scheduled([job])
    return (kernel.warps, kernel.stages), tried


def test_what_does_not_fit_is_scheduled_again(monkeypatch):
    spills, big, broken = {"spills": 8}, {"shared": 1 << 20}, CompileError("no registers")
    assert scheduled(monkeypatch, {}) == ((8, 3), [(8, 3)])
    assert scheduled(monkeypatch, {(8, 3): spills}) == ((16, 3), [(8, 3), (16, 3)])
    assert scheduled(monkeypatch, {(8, 3): broken, (16, 3): spills})[0] == (4, 3)
    assert scheduled(monkeypatch, {(8, 3): big, (16, 3): big, (4, 3): big})[0] == (8, 2)
    # The fewest bytes, if all spill.
    everywhere = {key: {"spills": 100 - key[0]} for key in [(8, 3), (16, 3), (4, 3), (8, 2)]}
    assert scheduled(monkeypatch, everywhere)[0] == (16, 3)
    with pytest.raises(CompileError, match="no registers"):
        scheduled(monkeypatch, {key: broken for key in everywhere})
    with pytest.raises(
        CompileError, match=r"model.py:3: mm: the kernel k needs 1048576 bytes of shared memory, sm_90 has"
    ):
        scheduled(monkeypatch, {key: big for key in everywhere})


def test_attributes_decide(fresh_cache):
    from mlir import ir

    program = lamina.import_program(lambda x: x + 1, (seeded(4096),))
    target = CUDATarget("sm_90")
    (job,) = target.jobs(program.module)
    assert len(job.settings) > 1
    (function,) = [op for op in program.module.body.operations if op.operation.name == "tt.func"]
    with program.module.context:
        function.operation.attributes["kernel.num_warps"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)
    (job,) = target.jobs(program.module, after="ttir")
    assert [(s.warps, s.stages) for s in job.settings] == [(2, 3)]
    assert "num_warps" not in job.request.text


def test_a_kernel_that_needs_smaller_tiles(fresh_cache):
    from mlir import ir

    from lamina.targets.schedule import compile_scheduled, tile_of
    from lamina.targets.triton_target import kernels_of

    # Of f32, 128 x 256 sums and their operands are more than a thread's registers hold.
    x = seeded(512, 512)
    program = lamina.import_program(lambda x, y: x @ y, (x, x))
    target, module = CUDATarget("sm_80"), program.module
    for _ in target.lower(module, until="linalg"):
        pass
    (kernel,) = [op for op in module.body.operations if op.operation.name == "kernel.func"]
    kernel.operation.attributes["kernel.tile"] = ir.DenseI64ArrayAttr.get([128, 256, 32], module.context)
    jobs = target.jobs(module, after="linalg")
    (before,) = [dict(function.attributes) for _, function in kernels_of(module)]
    (compiled,) = compile_scheduled(jobs)
    (after,) = [function for _, function in kernels_of(module)]
    assert compiled.spills == 0 and compiled.shared <= target.description.shared_memory
    # The kernel in the module, with its grid, is the one that was compiled.
    rows, columns, depth = tile_of(after)
    assert rows * columns < 128 * 256 and depth == 32
    assert after.attributes["kernel.grid"] != before["kernel.grid"]
    assert f"tensor<{rows}x{columns}xf32>" in compiled.asm["ttir"]


# ---- contents


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A package for two chips and PTX, with its program."""
    model = get_model("optimized_net")
    program = lamina.compile(model, PROGRAMS["optimized_net"][1], target="cuda:sm_80,sm_90")
    path = tmp_path_factory.mktemp("package") / "net.lamina"
    program.save(path)
    return path, program


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def resealed(entries, **changes):
    """The entries with a manifest that fits them, but for the changes."""
    manifest = {**json.loads(entries["manifest.json"]), **changes}
    for name, facts in manifest["entries"].items():
        facts.update(bytes=len(entries[name]), sha256=hashlib.sha256(entries[name]).hexdigest())
    manifest["checksum"] = checksum(manifest)
    return {**entries, "manifest.json": json.dumps(manifest).encode()}


def test_entries(saved):
    path, program = saved
    (name,) = program.kernels
    entries = entries_of(path)
    assert list(entries) == ["manifest.json", *sorted(set(entries) - {"manifest.json"})]
    assert set(entries) == {
        "manifest.json",
        "plan.json",
        "constants.safetensors",
        f"kernels/sm_80/{name}.cubin",
        f"kernels/sm_90/{name}.cubin",
        f"kernels/ptx/{name}.ptx",
    }
    manifest = json.loads(entries["manifest.json"])
    assert manifest["chips"] == ["sm_80", "sm_90"] and manifest["ptx"] == "sm_80" and manifest["format"] == 1
    assert set(manifest["versions"]) == {"lamina", "torch", "triton", "ptxas", "ptx"}
    assert b".version 8.0\n.target sm_80\n" in entries[f"kernels/ptx/{name}.ptx"]
    for entry, facts in manifest["entries"].items():
        assert facts == {"bytes": len(entries[entry]), "sha256": hashlib.sha256(entries[entry]).hexdigest()}
    from safetensors.torch import load

    assert set(load(entries["constants.safetensors"])) == {"constant/linear.weight", "constant/linear.bias"}
    plan = json.loads(entries["plan.json"])
    assert [chip["program"] for chip in plan["chips"].values()] == [0] * 3  # the same launches for all
    (launch,) = plan["programs"][0]["main"]["launches"]
    assert launch["line"].startswith(__file__.replace("test_package", "cuda_programs"))
    assert [argument["extent"] for argument in launch["arguments"]] == [32 * 512, 512 * 512, 512, 32 * 512]


def test_devices_in_the_program_become_the_targets(tmp_path):
    def model(x):
        return x + torch.arange(4, device=x.device) + torch.ones(4, device="cpu"), x.to("cpu").t()

    program = lamina.compile(model, (seeded(4, 4),), target="cuda:sm_90")
    program.save(tmp_path / "p", ptx=False)
    mine = lamina.load(tmp_path / "p", driver=InterpreterDriver(program.program.module))
    torch.testing.assert_close(mine(seeded(4, 4)), model(seeded(4, 4)))
    assert b'"cpu' not in entries_of(tmp_path / "p")["plan.json"]


def test_equal_programs_have_equal_packages(saved, tmp_path):
    path, program = saved
    program.save(tmp_path / "again.lamina")
    assert (tmp_path / "again.lamina").read_bytes() == path.read_bytes()


def test_sizes_are_expressions(tmp_path):
    program = lamina.compile(
        lambda x: torch.softmax(x[:, 1:], -1) @ x.new_ones(50, 3),
        (seeded(32, 51),),
        dynamic_shapes=({0: DYNAMIC},),
        target="cuda:sm_90",
    )
    program.save(tmp_path / "p", ptx=False)
    main = lamina_runtime.read(tmp_path / "p").images["sm_90"].hosts["main"]
    first = main.launches[0]
    assert first.arguments[0].offset == 4 and first.symbols == ("s0",)
    assert first.arguments[0].extent == ["max", 0, ["+", ["*", ["+", "s0", -1], 51], 50]]
    assert first.arguments[-1].base == "arena"
    assert program.peak_memory(seeded(7, 51)) >= 7 * 3 * 4 + 7 * 50 * 4


def test_shared_weights_are_stored_once_a_use(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Parameter(seeded(8, 8))
            self.second = nn.Parameter(self.first.data)

        def forward(self, x):
            return x @ self.first @ self.second, self.first

    model = Tied().requires_grad_(False)
    program = lamina.compile(model, (seeded(2, 8),), target="cuda:sm_90")
    program.save(tmp_path / "p", ptx=False)
    mine = lamina_runtime.load(tmp_path / "p", driver=InterpreterDriver(program.program.module))
    torch.testing.assert_close(mine(seeded(2, 8)), model(seeded(2, 8)))


def test_weights_that_are_left_out(tmp_path):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 4)
            self.register_buffer("scale", seeded(4, 2).t())
            self.register_buffer("shift", seeded(2), persistent=False)

        def forward(self, x):
            return self.linear(x) @ self.scale.t() + self.shift

    model = Scaled().requires_grad_(False)
    program = lamina.compile(model, (seeded(3, 8),), target="cuda:sm_90")
    path = tmp_path / "p"
    program.save(path, ptx=False, without=model.state_dict())
    from safetensors.torch import load

    assert list(load(entries_of(path)["constants.safetensors"])) == ["constant/shift"]
    driver = InterpreterDriver(program.program.module)
    for other in (model, Scaled().requires_grad_(False)):
        mine = lamina_runtime.load(path, driver=driver, weights={**other.state_dict(), "other": None})
        torch.testing.assert_close(mine(seeded(3, 8)), other(seeded(3, 8)))
        # It has copies.
        expected = other(seeded(3, 8))
        other.linear.weight.zero_()
        torch.testing.assert_close(mine(seeded(3, 8)), expected)
    weights = model.state_dict()
    for wrong, message in [
        (None, "was saved without the weight .*: give it by load"),
        ({**weights, "scale": seeded(4, 2)}, r"weight scale is torch.float32 of sizes \(4, 2\), expected .* \(2, 4\)"),
        ({**weights, "linear.bias": seeded(4).half()}, "weight linear.bias is torch.float16 .* expected torch.float32"),
    ]:
        with pytest.raises(lamina_runtime.PackageError, match=message):
            lamina_runtime.load(path, driver=driver, weights=wrong)
    from lamina_runtime.describe import describe

    assert "left out    3 weights" in describe(lamina_runtime.read(path))


def test_weights_that_are_folded(tmp_path):
    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(seeded(8, 8))

        def forward(self, x):
            return x @ torch.exp(self.weight * 2).t()

    model = Folded().requires_grad_(False)
    program = lamina.compile(model, (seeded(2, 8),), target="cuda:sm_90")
    program.save(tmp_path / "p", ptx=False)
    mine = lamina_runtime.load(tmp_path / "p", driver=InterpreterDriver(program.program.module))
    assert "init" in mine.image.hosts
    launches = len(mine.driver.launches)
    torch.testing.assert_close(mine(seeded(2, 8)), model(seeded(2, 8)), rtol=1e-5, atol=1e-4)
    assert len(mine.driver.launches) == launches + len(mine.image.hosts["main"].launches)


def test_a_model_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8
    )
    torch.manual_seed(0)
    model = transformers.ViTModel(config).eval().requires_grad_(False)
    pixels = seeded(1, 3, 16, 16)
    program = lamina.compile(model, (), {"pixel_values": pixels}, target="cuda:sm_90")
    program.save(tmp_path / "p", ptx=False)
    mine = lamina_runtime.load(tmp_path / "p", driver=InterpreterDriver(program.program.module))
    got, expected = mine(pixel_values=pixels), model(pixel_values=pixels)
    torch.testing.assert_close(got.last_hidden_state, expected.last_hidden_state, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got["pooler_output"], expected.pooler_output, rtol=1e-4, atol=1e-4)
    assert list(got) == list(expected)


def test_a_folder(saved, tmp_path):
    path, program = saved
    folder = tmp_path / "net"
    program.save(f"{folder}/")
    assert {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()} == entries_of(path)
    program.save(folder)  # in the place of the old one
    assert lamina_runtime.load(folder, driver=HostDriver()).kernels == program.kernels
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(FileExistsError, match="is no package"):
        program.save(tmp_path / "mine")
    assert sorted(os.listdir(tmp_path)) == ["mine", "net"] and os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_writing_is_all_or_nothing(saved, tmp_path, monkeypatch):
    _, program = saved
    path = tmp_path / "net.lamina"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        program.save(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["net.lamina"]


# ---- chips


@pytest.mark.parametrize(
    "chips, capability, chosen",
    [
        ("sm_80,sm_90", 80, "kernels/sm_80"),
        ("sm_80,sm_90", 90, "kernels/sm_90"),
        ("sm_80,sm_90", 86, "kernels/sm_80"),  # the same generation
        ("sm_80,sm_90", 100, "kernels/ptx"),
        ("sm_90", 89, "kernels/ptx"),
        ("sm_100", 103, "kernels/ptx"),  # what is made for 10.0 is for it alone
    ],
)
def test_the_image_of_a_device(chips, capability, chosen, tmp_path):
    lamina.compile(lambda x: x + 1, (seeded(8),), target=f"cuda:{chips}").save(tmp_path / "p")
    mine = lamina_runtime.load(tmp_path / "p", driver=HostDriver(capability))
    assert all(kernel.file.startswith(chosen) for kernel in mine.image.kernels.values())


def test_a_device_that_nothing_is_for(saved, tmp_path):
    path, program = saved
    with pytest.raises(
        lamina_runtime.PackageError, match="for sm_80, sm_90 and PTX of sm_80, .*this device, which is sm_75"
    ):
        lamina_runtime.load(path, driver=HostDriver(75))
    program.save(tmp_path / "p", ptx=False)
    with pytest.raises(lamina_runtime.PackageError, match="for sm_80, sm_90, and none that .* sm_100"):
        lamina_runtime.load(tmp_path / "p", driver=HostDriver(100))
    with pytest.raises(lamina_runtime.PackageError, match="bytes of shared memory; this device has 1024"):
        lamina_runtime.load(path, driver=HostDriver(90, shared_memory=1024))


# ---- damage


def load_error(path):
    with pytest.raises(lamina_runtime.PackageError) as caught:
        lamina_runtime.load(path, driver=HostDriver())
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_truncated(saved, tmp_path, kept):
    data = saved[0].read_bytes()
    (tmp_path / "p").write_bytes(data[: int(len(data) * kept)])
    assert "truncated" in load_error(tmp_path / "p")


def test_no_byte_can_be_changed(saved, tmp_path):
    """In the contents; what an archive says twice, or says of dates, is of no matter."""
    data = saved[0].read_bytes()
    lengths = {name: len(entry) for name, entry in entries_of(saved[0]).items()}
    with zipfile.ZipFile(saved[0]) as archive:
        offsets = {info.filename: info.header_offset for info in archive.infolist()}
    for name, length in lengths.items():
        start = (
            data.index(b"PK", offsets[name]) + 30 + len(name) + int.from_bytes(data[offsets[name] + 28 :][:2], "little")
        )
        for place in {start, start + length // 3, start + length // 2, start + length - 1}:
            changed = bytearray(data)
            changed[place] ^= 0x10
            (tmp_path / "p").write_bytes(changed)
            assert "damaged" in load_error(tmp_path / "p"), (name, place - start)


def test_manifests(saved, tmp_path):
    entries, path = entries_of(saved[0]), tmp_path / "p"
    (cubin,) = [name for name in entries if name.startswith("kernels/sm_90")]
    for changed, message in [
        ({name: data for name, data in entries.items() if name != "manifest.json"}, "no manifest.json"),
        ({name: data for name, data in entries.items() if name != cubin}, f"the entry {cubin} is missing"),
        ({**entries, "more": b""}, "the entry more is not in manifest.json"),
        ({**entries, cubin: entries[cubin][:-1]}, "bytes, expected"),
        ({**entries, "manifest.json": b"{"}, "manifest.json is damaged"),
        ({**entries, "manifest.json": b"[]"}, "manifest.json is damaged"),
        ({**entries, "manifest.json": b"{}"}, "manifest.json is damaged"),
        ({**entries, "manifest.json": entries["manifest.json"].replace(b"2.", b"3.", 1)}, "its checksum is wrong"),
        (resealed(entries, format=2), "its format is 2, this lamina-runtime reads 1"),
    ]:
        write(path, changed)
        assert message in load_error(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    assert "is compressed" in load_error(path)
    path.write_bytes(b"\x80\x04K\x01.")
    assert "no package of Lamina" in load_error(path)
    with pytest.raises(OSError):
        lamina_runtime.load(tmp_path / "none", driver=HostDriver())


def test_folders_are_checked_too(saved, tmp_path):
    path, program = saved
    (name,) = program.kernels
    for number, (file, change, message) in enumerate(
        [
            (f"kernels/sm_90/{name}.cubin", lambda data: data[:-1], "bytes, expected"),
            (f"kernels/sm_90/{name}.cubin", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "is damaged: its SHA-256"),
            ("plan.json", lambda data: data.replace(b"sm_90", b"sm_91"), "plan.json is damaged: its SHA-256"),
            ("manifest.json", lambda data: data.replace(b"sm_90", b"sm_91"), "its checksum is wrong"),
            ("manifest.json", lambda data: data[: len(data) // 2], "manifest.json is damaged"),
        ]
    ):
        folder = tmp_path / str(number)
        program.save(f"{folder}/")
        (folder / file).write_bytes(change((folder / file).read_bytes()))
        assert message in load_error(folder)
        (folder / file).unlink()
        assert "is missing" in load_error(folder) or "no manifest.json" in load_error(folder)


def change(plan, path, value):
    *parents, last = path
    for key in parents:
        plan = plan[key]
    if value is KeyError:
        del plan[last]
    else:
        plan[last] = value


MAIN, LAUNCH = ("programs", 0, "main"), ("programs", 0, "main", "launches", 0)


@pytest.mark.parametrize(
    "path, value, message",
    [
        (("call",), KeyError, "plan.json is damaged"),
        (("call", "inputs"), [], "structure of arguments that does not fit"),
        (("call", "sources", 0, "input"), 5, "the input 5, which there is not"),
        (("call", "sources"), [], "sources that do not fit"),
        (("call", "returned", 0, "index"), 1, "the result 1, which there is not"),
        (("call", "results", 0, "sizes", 1), None, "where a size must be"),
        (("call", "results"), [], "the result 0, which there is not"),
        (("call", "checks"), ["IndexError: no"], "results that do not fit"),
        (
            ("call", "returned", 0, "views"),
            [{"op": "aten.resize_.default", "arguments": [], "named": {}, "item": None}],
            "view op",
        ),
        (("call", "returned", 0, "views"), [{"op": "prim.x", "arguments": [], "named": {}, "item": None}], "view op"),
        (("call", "inputs", 0, "dtype"), "load", "where a dtype must be"),
        (("call", "returns"), {"kind": "module", "children": []}, "structure of the kind 'module'"),
        ((*LAUNCH, "grid"), "__import__('os')", "where a size must be"),
        ((*LAUNCH, "grid"), ["**", 2, 100], "where a size must be"),
        ((*LAUNCH, "grid"), "s0", "where a size must be"),
        ((*LAUNCH, "arguments", 0, "base"), 17, "where an argument must be"),
        ((*LAUNCH, "arguments", 0, "base"), -2, "where an argument must be"),
        ((*LAUNCH, "arguments"), [], "wrong number of arguments"),
        ((*LAUNCH, "kernel"), "k_other", "which is no kernel"),
        ((*MAIN, "constants", 0), "other.weight", "no constant other.weight"),
        (("programs", 0), {}, "no function main"),
        (("chips",), {}, "for no chip at all"),
        (("call", "symbols"), [1], "plan.json is damaged"),
        (("call", "inputs", 0, "name"), None, "argument that is not described"),
        (("call", "sources", 0, "order"), 7, "plan.json is damaged"),
        (("call", "returned", 0, "views"), [1], "plan.json is damaged"),
        ((*MAIN, "constants", 0), [], "constants without names"),
        ((*LAUNCH, "grid"), ["//", 4, 0], "where a quotient must be"),
        (("weights",), {"linear.bias": {"sizes": [512], "order": [1]}}, "weight linear.bias that is not described"),
        (("weights",), {"linear.bias": {"sizes": [512]}}, "plan.json is damaged"),
    ],
)
def test_plans_are_checked(saved, tmp_path, path, value, message):
    entries = entries_of(saved[0])
    plan = json.loads(entries["plan.json"])
    change(plan, path, value)
    write(tmp_path / "p", resealed({**entries, "plan.json": json.dumps(plan).encode()}))
    with pytest.raises(lamina_runtime.PackageError, match=message):
        lamina_runtime.load(tmp_path / "p", driver=HostDriver())


def test_damaged_files_raise_nothing_else(saved, tmp_path):
    """Random bytes of an archive, its directory above all."""
    import random

    chance, data = random.Random(0), saved[0].read_bytes()
    with zipfile.ZipFile(saved[0]) as archive:
        directory = archive.start_dir
        headers = [info.header_offset for info in archive.infolist()]
    for _ in range(300):
        changed = bytearray(data)
        place = chance.choice([chance.randrange(directory, len(data)), chance.choice(headers) + chance.randrange(30)])
        for k in range(chance.choice([1, 4])):
            changed[min(place + k, len(data) - 1)] = chance.randrange(256)
        (tmp_path / "p").write_bytes(changed)
        try:
            lamina_runtime.load(tmp_path / "p", driver=HostDriver())
        except lamina_runtime.PackageError:
            pass


def test_constants_are_checked(saved, tmp_path):
    entries = entries_of(saved[0])
    data = entries["constants.safetensors"]
    for changed in (
        b"",
        b"\xff" * 8,
        data[:200],
        data.replace(b"F32", b"F64"),
        data.replace(b"[512,512]", b"[512,513]"),
    ):
        write(tmp_path / "p", resealed({**entries, "constants.safetensors": changed}))
        assert "constants" in str(
            pytest.raises(lamina_runtime.PackageError, lamina_runtime.load, tmp_path / "p", driver=HostDriver()).value
        )


# ---- what cannot be packaged


def test_hosts_with_other_operations():
    from mlir import ir

    from lamina.dialects import make_context
    from lamina.package.hosts import read_hosts

    text = """
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) attributes {kernel.results = 1 : i64} {
      %0 = prim.neg %x : tensor<4xf32> loc("neg"("model.py":9:0))
      return
    }"""
    module = ir.Module.parse(text, make_context())
    with pytest.raises(CompileError, match="model.py:9: .*a package cannot hold prim.neg"):
        read_hosts(module, {})


def test_targets_without_packages(tmp_path):
    program = lamina.compile(lambda x: x + 1, (seeded(4),))
    with pytest.raises(CompileError, match="the target 'cpu' makes no packages"):
        program.save(tmp_path / "p")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_call_without_a_gpu():
    program = lamina.compile(lambda x: x + 1, (seeded(4),), target="cuda:sm_90")
    with pytest.raises(lamina_runtime.DriverError):
        program(seeded(4))


# ---- the driver


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))
"""


def test_the_command(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)

    def run(*arguments):
        command = [sys.executable, "-m", "lamina.cli", "compile", f"{tmp_path}/model.py:Net", "--input", "f32[4,16]"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=tmp_path)

    done = run("--target", "cuda:sm_80,sm_90", "--emit", "package", "-o", "net.lamina")
    assert done.returncode == 0, done.stderr
    package = lamina_runtime.read(tmp_path / "net.lamina")
    assert set(package.images) == {"sm_80", "sm_90"}
    assert run("--emit", "package").returncode == 2
    assert run("--emit", "package", "-o", "other.lamina").returncode == 0
    wrong = run("--target", "cuda:sm_91", "--emit", "package", "-o", "x")
    assert wrong.returncode == 1 and "the chips are sm_80, " in wrong.stderr and "Traceback" not in wrong.stderr
    assert "no phase 'package'" in run("--emit", "package", "-o", "x", "--target", "cpu").stderr
    summary = run("--target", "cuda:sm_90")
    assert summary.returncode == 0 and "sm_90" in summary.stdout and "1 kernels" in summary.stdout
