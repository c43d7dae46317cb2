"""Another version of Triton, in an environment of its own, reads what is emitted and compiles it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_programs import PROGRAMS, get_program
from lamina.targets.cuda import CUDATarget, verify_ttir
from lamina.targets.triton_versions import OLDEST, spelled_for, version_of

pytest.importorskip("triton")
ROOT = Path(__file__).parents[2]
OTHER = Path(sys.prefix) / "other-triton" / "bin" / "python"

# By the code that compiles kernels, which needs nothing but Triton.
READ = """
import json, sys
from lamina.errors import CompileError
from lamina.targets.triton import Settings, compile_stages, verify_ttir
import triton

request, answer = json.load(open(sys.argv[1])), {"version": triton.__version__, "errors": {}, "made": {}}
for name, text in request["read"].items():
    try:
        verify_ttir(text)
    except CompileError as error:
        answer["errors"][name] = str(error)
for name, (text, sm) in request["compile"].items():
    made, facts = compile_stages(text, Settings(f"cuda:sm_{sm}"))
    answer["made"][name] = {**facts, "cubin": made["cubin"][:4].decode("latin1"), "ptx": made["ptx"]}
assert not {"torch", "mlir"} & set(sys.modules)
json.dump(answer, open(sys.argv[2], "w"))
"""

DESCRIPTORS = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f16>, i32) -> (), sym_name = "f", sym_visibility = "public"}> ({
  ^bb0(%p: !tt.ptr<f16>, %n: i32):
    %stride = "arith.constant"() <{value = 256 : i64}> : () -> i64
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %d = "tt.make_tensor_descriptor"(%p, %n, %n, %stride, %one)
        : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<64x64xf16>
    %x = "tt.descriptor_load"(%d, %zero, %zero) : (!tt.tensordesc<64x64xf16>, i32, i32) -> tensor<64x64xf16>
    "tt.descriptor_store"(%d, %x, %zero, %zero) : (!tt.tensordesc<64x64xf16>, tensor<64x64xf16>, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""

COMPILED = [("optimized_net", 90), ("softmax", 80), ("layer_norm_f16", 90), ("argmax", 90), ("matmul_f16", 100)]


def emitted(name, chip="sm_90"):
    _, program = get_program(name)
    return {f"{name}.{kernel}": text for kernel, text in CUDATarget(chip).emit_ttir(program.module).items()}


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What the other version says of all programs."""
    if not OTHER.exists():
        pytest.fail(f"{OTHER} is missing; scripts/setup.sh makes it")
    folder = tmp_path_factory.mktemp("other")
    kernels = {key: text for name in PROGRAMS for key, text in emitted(name).items()}
    compiled = {
        f"{key} for sm_{sm}": (text, sm) for name, sm in COMPILED for key, text in emitted(name, f"sm_{sm}").items()
    }
    request = {
        "read": {**kernels, "descriptors": DESCRIPTORS, "nonsense": "module { tt.func @f() { tt.nonsense } }"},
        "compile": {**compiled, "descriptors for sm_90": (DESCRIPTORS, 90)},
    }
    (folder / "request.json").write_text(json.dumps(request))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TRITON_CACHE_DIR": str(folder / "cache")}
    command = [OTHER, "-c", READ, folder / "request.json", folder / "answer.json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return request, json.loads((folder / "answer.json").read_text())


def test_it_is_the_oldest(answer):
    import triton

    assert version_of(answer[1]["version"]) == OLDEST < version_of(triton.__version__)


def test_it_reads_all_kernels(answer):
    request, found = answer
    assert len(request["read"]) > len(PROGRAMS)
    assert "Triton could not read the kernel" in found["errors"].pop("nonsense")
    assert found["errors"] == {}


def test_it_compiles(answer):
    request, found = answer
    assert set(found["made"]) == set(request["compile"])
    for name, facts in found["made"].items():
        assert facts["cubin"] == "\x7fELF" and facts["warps"] == 4 and facts["triton"] == found["version"]
        assert f".target sm_{request['compile'][name][1]}" in facts["ptx"]


def test_the_installed_version_reads_descriptors():
    verify_ttir(DESCRIPTORS)


def test_spellings():
    new, old = "x : !tt.tensordesc<64x64xf16>, !tt.ptr<f16>", "x : !tt.tensordesc<tensor<64x64xf16>>, !tt.ptr<f16>"
    assert spelled_for("3.6.0", new) == old
    assert spelled_for("3.9.0", new) == spelled_for("4.0.0+git1", new) == new
    assert version_of("3.10.1") > version_of("3.9.0")
