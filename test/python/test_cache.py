"""The cache on disk: what makes a key, damage, bounds, several processes, folders that cannot be used."""

import os
import subprocess
import sys
import warnings

import pytest
import torch

from lamina import cache
from lamina.frontend.call import CallableProgram
from lamina.frontend.text import parse_program, program_of
from lamina.targets.cpu import CPUBinary, CPUDescription, CPUExecutable, CPUTarget, Entry

TEXT = """
func.func @main(%x: tensor<?x4xf32> {{prim.sizes = affine_map<()[s0] -> (s0, 4)>}}) -> tensor<?x4xf32> {{
  %0 = prim.{op} %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}}
"""
BINARY = CPUBinary([b"abc", b"", b"\0" * 50], {"main": Entry([None, "w"], ["4 * s0"], "s0", ["k"])})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("LAMINA_CACHE", "LAMINA_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    cache.warn_once.cache_clear()
    cache._shrink_once.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def counted(monkeypatch):
    """The modules that were compiled, not found in the cache."""
    compiled = []
    original = CPUTarget.compile_module
    monkeypatch.setattr(CPUTarget, "compile_module", lambda *args: compiled.append(1) or original(*args))
    return compiled


def prim(op="exp"):
    return parse_program(TEXT.format(op=op), "test.mlir")


def run(binary, op=torch.exp):
    x = torch.randn(3, 4)
    out = torch.empty(3, 4)
    CPUExecutable(binary)([x], [out], [3])
    torch.testing.assert_close(out, op(x))


def only_entry():
    ((path, _, _),) = cache.entries()
    return path


def test_entries_are_plain_data():
    assert cache.unpack(cache.pack(BINARY)) == BINARY


@pytest.mark.parametrize("place", [0, 7, 20, 41, 60, -1])
def test_a_changed_byte_is_noticed(place):
    data = bytearray(cache.pack(BINARY))
    data[place] ^= 1
    with pytest.raises(ValueError):
        cache.unpack(bytes(data))


@pytest.mark.parametrize("length", [0, 5, 30, 45, 100, -1])
def test_a_cut_entry_is_noticed(length):
    with pytest.raises(ValueError):
        cache.unpack(cache.pack(BINARY)[:length])


def test_the_second_time_is_a_hit(counted):
    first = CPUTarget().binary(prim())
    second = CPUTarget().binary(prim())
    assert counted == [1] and first == second
    run(second)


def test_locations_are_no_part_of_the_key():
    a = parse_program(TEXT.format(op="exp"), "a.mlir")
    b = parse_program("\n\n" + TEXT.format(op="exp"), "b.mlir")
    assert cache.key_of(a) == cache.key_of(b)


def test_what_changes_code_changes_the_key():
    target, other = CPUTarget(), CPUTarget(CPUDescription.of("x86-64", "+avx,+avx2"))
    keys = {cache.key_of(prim(op), t.description, t.phases()) for op in ("exp", "neg") for t in (target, other)}
    keys.add(cache.key_of(prim(), target.description, target.phases(), 2))
    assert len(keys) == 5


def test_another_build_of_the_compiler_has_other_keys(monkeypatch):
    before = cache.key_of(prim())
    monkeypatch.setattr(cache, "compiler_identity", lambda: "another")
    assert cache.key_of(prim()) != before


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:100], lambda data: data[:-1] + b"\xff", lambda data: data * 2]
)
def test_a_damaged_entry_is_made_again(counted, damage):
    CPUTarget().binary(prim())
    path = only_entry()
    data = path.read_bytes()
    path.write_bytes(damage(data))
    run(CPUTarget().binary(prim()))
    assert counted == [1, 1]
    assert path.read_bytes() == data


def test_off(counted, folder, monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE", "0")
    CPUTarget().binary(prim())
    CPUTarget().binary(prim())
    assert counted == [1, 1] and not folder.exists()


def test_what_was_used_longest_ago_goes_first(monkeypatch):
    size = len(cache.pack(BINARY))
    monkeypatch.setenv("LAMINA_CACHE_SIZE", str(3 * size))
    for number, key in enumerate("abc"):
        cache.store(key, BINARY)
        os.utime(cache._path(key), (number, number))
    assert cache.load("a") == BINARY
    cache.store("d", BINARY)
    assert {path.stem for path, _, _ in cache.entries()} == {"a", "c", "d"}


def test_what_is_larger_than_the_cache_is_not_kept(monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE_SIZE", "10")
    cache.store("a", BINARY)
    assert not cache.entries()


def test_a_smaller_size_is_kept_to(monkeypatch):
    size = len(cache.pack(BINARY))
    for number, key in enumerate("abcd"):
        cache.store(key, BINARY)
        os.utime(cache._path(key), (number, number))
    monkeypatch.setenv("LAMINA_CACHE_SIZE", str(3 * size))
    assert cache.load("b") == BINARY
    assert {path.stem for path, _, _ in cache.entries()} == {"b", "c", "d"}
    monkeypatch.setenv("LAMINA_CACHE_SIZE", str(size))
    cache.store("e", BINARY)
    assert {path.stem for path, _, _ in cache.entries()} == {"e"}
    monkeypatch.setenv("LAMINA_CACHE_SIZE", str(size - 1))
    cache.store("f", BINARY)
    assert not cache.entries()


@pytest.mark.parametrize("text,expected", [("100", 100), ("3K", 3072), ("1 GiB", 1 << 30), ("2m", 2 << 20)])
def test_sizes(monkeypatch, text, expected):
    monkeypatch.setenv("LAMINA_CACHE_SIZE", text)
    assert cache.limit() == expected


def test_a_wrong_size_is_warned_of(monkeypatch):
    monkeypatch.setenv("LAMINA_CACHE_SIZE", "much")
    with pytest.warns(UserWarning, match="LAMINA_CACHE_SIZE"):
        assert cache.limit() == 2 << 30


def test_a_full_disk_is_warned_of_once(monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        run(CPUTarget().binary(prim()))
    assert not list(cache.folder().rglob("*.*"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store("a", BINARY)


def test_a_folder_that_cannot_be_made_is_warned_of(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be written"):
        run(CPUTarget().binary(prim()))


def test_a_folder_that_others_may_write_to_is_not_used():
    cache.store("a", BINARY)
    only_entry().parent.chmod(0o777)
    with pytest.warns(UserWarning, match="others may write"):
        assert cache.load("a") is None


def test_files_of_a_process_that_ended_are_removed():
    cache.store("a", BINARY)
    stale, new = (only_entry().parent / name for name in (".new-stale", ".new-new"))
    for path in (stale, new):
        path.write_text("")
    os.utime(stale, (0, 0))
    cache.entries()
    assert not stale.exists() and new.exists()


def test_clear():
    cache.store("a", BINARY)
    cache.store("b", BINARY)
    assert cache.clear() == (2, 2 * len(cache.pack(BINARY)))
    assert cache.clear() == (0, 0)


def test_two_processes_make_the_same_entry():
    code = f"""
import sys
from lamina import cache
from lamina.frontend.text import parse_program
from lamina.targets.cpu import CPUTarget
module = parse_program({TEXT.format(op="exp")!r}, "x")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(10):
    binary = CPUTarget().binary(module)
    cache.clear()
CPUTarget().binary(module)
print(len(cache.pack(binary)))
"""
    workers = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    outputs = [worker.communicate("go\n")[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert outputs[0] == outputs[1]
    run(CPUTarget().binary(prim()))


def test_weights_are_no_part_of_the_code(counted):
    import lamina

    x = torch.randn(4, 8)
    for seed in range(2):
        torch.manual_seed(seed)
        model = torch.nn.Linear(8, 8).eval()
        torch.testing.assert_close(lamina.compile(model, (x,))(x), model(x))
    assert counted == [1]


def test_torch_compile_uses_it(counted):
    for _ in range(2):
        torch._dynamo.reset()
        function = torch.compile(lambda x: x.exp() + 3, backend="lamina")
        x = torch.randn(5)
        torch.testing.assert_close(function(x), x.exp() + 3)
    assert counted == [1]


def test_programs_from_text_are_called_like_others():
    program = program_of(prim())
    executable = CallableProgram(program, CPUTarget().compile(program))
    x = torch.randn(2, 4)
    torch.testing.assert_close(executable(x), x.exp())
    with pytest.raises(ValueError, match="argument 'arg0' has size 5 in dimension 1, expected 4"):
        executable(torch.randn(2, 5))
