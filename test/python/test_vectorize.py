"""lamina-vectorize-loops against NumPy: every kind of access, reduction and size, run natively."""

import ml_dtypes
import numpy as np
import pytest

from memref_runner import element_type, generic, memref_type, run

BF16 = ml_dtypes.bfloat16
FLOATS = [np.float32, np.float64, np.float16, BF16]
INTS = [np.int8, np.int16, np.int32, np.int64]
SIZES = [0, 1, 3, 15, 16, 17, 63, 64, 65, 1000]


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTS:
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def guarded(shape, dtype, fill=0):
    """An array with guard elements behind it, and a check that nothing was written there."""
    count = int(np.prod(shape, dtype=int))
    memory = np.full(count + 300, 1, dtype)
    memory[:count] = fill
    guard = memory[count:].copy()
    view = memory[:count].reshape(shape)

    def check():
        assert (memory[count:] == guard).all(), "wrote behind the buffer"

    return view, check


def close(actual, expected, dtype):
    if dtype in INTS or np.dtype(dtype) == np.bool_:
        np.testing.assert_array_equal(actual, expected)
        return
    tolerance = {np.float64: 1e-12, np.float32: 2e-5, np.float16: 1e-2, BF16: 6e-2}[dtype]
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
def test_elementwise_sizes(dtype, size, dynamic):
    x, y = numbers(size, dtype), numbers(size, dtype, 1)
    out, check = guarded((size,), dtype)
    t = element_type(x)
    op = "addf" if t[0] == "f" else "addi"
    body = f"%0 = arith.{op} %in0, %in1 : {t}\n linalg.yield %0 : {t}"
    loops = run(generic(["d0"] * 3, "p", [x, y], [out], body, dynamic), x, y, out)
    close(out, x + y, dtype)
    check()
    if size > 1:
        assert "vector<" in loops


@pytest.mark.parametrize("dtype", FLOATS + INTS)
def test_elementwise_dtypes(dtype):
    x, y = numbers((5, 37), dtype), numbers((5, 37), dtype, 1)
    out, check = guarded((5, 37), dtype)
    t = element_type(x)
    f = "f" if t[0] in "fb" else "i"
    body = f"%0 = arith.mul{f} %in0, %in1 : {t}\n%1 = arith.sub{f} %0, %in1 : {t}\n linalg.yield %1 : {t}"
    run(generic(["d0, d1"] * 3, "pp", [x, y], [out], body), x, y, out)
    with np.errstate(over="ignore"):
        close(out, (x * y).astype(dtype) - y, dtype)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_bool_buffers(size, dynamic):
    a, b = numbers(size, np.bool_), numbers(size, np.bool_, 1)
    x = numbers(size, np.float32)
    both, check = guarded((size,), np.bool_, True)
    picked, check2 = guarded((size,), np.float32)
    body = """%0 = arith.andi %in0, %in1 : i1
      %z = arith.constant 0.0 : f32
      %n = arith.negf %in2 : f32
      %p = arith.cmpf ogt, %in2, %z : f32
      %q = arith.xori %p, %0 : i1
      %1 = arith.select %0, %in2, %n : f32
      linalg.yield %q, %1 : i1, f32"""
    run(generic(["d0"] * 5, "p", [a, b, x], [both, picked], body, dynamic), a, b, x, both, picked)
    np.testing.assert_array_equal(both, (x > 0) ^ (a & b))
    np.testing.assert_array_equal(picked, np.where(a & b, x, -x))
    assert set(np.unique(both.view(np.uint8))) <= {0, 1}
    check()
    check2()


def test_mixed_types():
    x, k, m = numbers((3, 50), BF16), numbers((3, 50), np.int64), numbers((50,), np.bool_)
    out, check = guarded((3, 50), np.float16)
    body = """%0 = arith.extf %in0 : bf16 to f32
      %1 = arith.sitofp %in1 : i64 to f32
      %2 = arith.uitofp %in2 : i1 to f32
      %3 = arith.mulf %0, %1 : f32
      %4 = arith.addf %3, %2 : f32
      %5 = arith.truncf %4 : f32 to f16
      linalg.yield %5 : f16"""
    run(generic(["d0, d1", "d0, d1", "d1", "d0, d1"], "pp", [x, k, m], [out], body), x, k, m, out)
    close(out, (x.astype(np.float32) * k + m).astype(np.float16), np.float16)
    check()


def test_truncations_round_to_even():
    x = np.concatenate(
        [numbers(1000, np.float32) * 1e3, np.float32([np.inf, -np.inf, 0.0, -0.0, 1 + 2**-8, 1 + 3 * 2**-8])]
    )
    out = np.zeros(x.shape, BF16)
    body = "%0 = arith.truncf %in0 : f32 to bf16\n linalg.yield %0 : bf16"
    run(generic(["d0", "d0"], "p", [x], [out], body), x, out)
    np.testing.assert_array_equal(out.view(np.uint16), x.astype(BF16).view(np.uint16))


@pytest.mark.parametrize("dynamic", [False, True])
def test_rank_0(dynamic):
    x, out = np.array(3.0, np.float32), np.array(0.0, np.float32)
    body = "%0 = arith.addf %in0, %in0 : f32\n linalg.yield %0 : f32"
    run(generic(["", ""], "", [x], [out], body, dynamic), x, out)
    assert out == 6


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(1,), (4, 1), (1, 20), (2, 3, 17), (2, 1, 3, 65), (0, 5), (5, 0)])
def test_ranks(shape, dynamic):
    x = numbers(shape, np.float32)
    out, check = guarded(shape, np.float32)
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    body = "%0 = arith.mulf %in0, %in0 : f32\n linalg.yield %0 : f32"
    run(generic([dims, dims], "p" * len(shape), [x], [out], body, dynamic), x, out)
    close(out, x * x, np.float32)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(3, 17), (20, 100), (64, 64), (1, 5), (130, 2)])
def test_broadcasts(shape, dynamic):
    n, m = shape
    x, row, column, scalar = (
        numbers(shape, np.float32),
        numbers(m, np.float32, 1),
        numbers(n, np.float32, 2),
        np.float32([2]),
    )
    out, check = guarded(shape, np.float32)
    body = """%0 = arith.mulf %in0, %in1 : f32
      %1 = arith.divf %0, %in2 : f32
      %2 = arith.addf %1, %in3 : f32
      linalg.yield %2 : f32"""
    maps = ["d0, d1", "d1", "d0", "0", "d0, d1"]
    run(generic(maps, "pp", [x, row, column, scalar], [out], body, dynamic), x, row, column, scalar, out)
    close(out, x * row / column[:, None] + 2, np.float32)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float64, BF16])
@pytest.mark.parametrize("shape", [(3, 5), (16, 16), (33, 70), (64, 128), (1, 9), (0, 4)])
def test_transposed_copy(shape, dtype, dynamic):
    x = numbers(shape, dtype)
    out, check = guarded(shape[::-1], dtype)
    t = element_type(x)
    run(generic(["d1, d0", "d0, d1"], "pp", [x], [out], f"linalg.yield %in0 : {t}", dynamic), x, out)
    np.testing.assert_array_equal(out.astype(np.float32), x.T.astype(np.float32))
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("permutation", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1)])
def test_permuted_3d(permutation, dynamic):
    x = numbers((5, 18, 35), np.float32)
    shape = tuple(x.shape[p] for p in permutation)
    y = numbers(shape, np.float32, 1)
    out, check = guarded(shape, np.float32)
    dims = [""] * 3
    for result, p in enumerate(permutation):
        dims[p] = f"d{result}"
    body = "%0 = arith.addf %in0, %in1 : f32\n linalg.yield %0 : f32"
    run(generic([", ".join(dims), "d0, d1, d2", "d0, d1, d2"], "ppp", [x, y], [out], body, dynamic), x, y, out)
    close(out, x.transpose(permutation) + y, np.float32)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_])
def test_strided_views(dtype, dynamic):
    base = numbers((40, 100), dtype)
    x = base[3:33:2, 5:85:3]
    memory = np.zeros((30, 90), dtype)
    out = memory[10:25, 1:28]
    t = element_type(x)
    one = "true" if t == "i1" else "1.0" if t[0] == "f" else "1"
    op = {"f": "arith.addf %in0, %c", "i": "arith.xori %in0, %c"}[t[0]]
    body = f"%c = arith.constant {one}{'' if t == 'i1' else f' : {t}'}\n%0 = {op} : {t}\n linalg.yield %0 : {t}"
    run(generic(["d0, d1", "d0, d1"], "pp", [x], [out], body, dynamic), x, out)
    expected = np.zeros_like(memory)
    expected[10:25, 1:28] = x + 1 if t[0] == "f" else x ^ np.array(1, dtype)
    np.testing.assert_array_equal(memory, expected)


def test_subview_of_argument():
    x = numbers((8, 50), np.float32)
    out = np.zeros((8, 50), np.float32)
    text = """
func.func @f(%x: memref<8x50xf32>, %out: memref<8x50xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c2 {
    %s = memref.subview %x[%i, 3] [2, 41] [1, 1] : memref<8x50xf32> to memref<2x41xf32, strided<[50, 1], offset: ?>>
    %t = memref.subview %out[%i, 1] [2, 41] [1, 1] : memref<8x50xf32> to memref<2x41xf32, strided<[50, 1], offset: ?>>
    memref.copy %s, %t : memref<2x41xf32, strided<[50, 1], offset: ?>> to memref<2x41xf32, strided<[50, 1], offset: ?>>
  }
  return
}"""
    loops = run(text, x, out)
    assert "memref.copy" not in loops
    expected = np.zeros_like(out)
    expected[:, 1:42] = x[:, 3:44]
    np.testing.assert_array_equal(out, expected)


REDUCTIONS = {
    "addf": (np.add, FLOATS),
    "mulf": (np.multiply, [np.float32, np.float64]),
    "maximumf": (np.maximum, FLOATS),
    "minimumf": (np.minimum, FLOATS),
    "maxnumf": (np.fmax, [np.float32]),
    "minnumf": (np.fmin, [np.float32]),
    "addi": (np.add, INTS),
    "muli": (np.multiply, [np.int32, np.int64]),
    "maxsi": (np.maximum, INTS),
    "minsi": (np.minimum, INTS),
    "andi": (np.bitwise_and, [np.int32, np.bool_]),
    "ori": (np.bitwise_or, [np.int8, np.bool_]),
    "xori": (np.bitwise_xor, [np.int64, np.bool_]),
}


def start_of(combiner, dtype):
    if combiner in ("mulf", "muli"):
        return 1
    if combiner in ("maximumf", "maxnumf"):
        return -np.inf
    if combiner in ("minimumf", "minnumf"):
        return np.inf
    if combiner == "maxsi":
        return np.iinfo(dtype).min
    if combiner == "minsi":
        return np.iinfo(dtype).max
    if combiner == "andi":
        return True if np.dtype(dtype) == np.bool_ else -1
    return 0


def check_reduction(combiner, dtype, shape, axis, dynamic):
    ufunc = REDUCTIONS[combiner][0]
    x = numbers(shape, dtype)
    if combiner == "mulf":
        x = (1 + x / 100).astype(dtype)
    start = start_of(combiner, dtype)
    axes = axis if isinstance(axis, tuple) else (axis,)
    kept = [i for i in range(len(shape)) if i not in axes]
    out, check = guarded(tuple(shape[i] for i in kept), dtype, start)
    t = element_type(x)
    body = f"%0 = arith.{combiner} %in0, %out0 : {t}\n linalg.yield %0 : {t}"
    iterators = "".join("r" if i in axes else "p" for i in range(len(shape)))
    maps = [", ".join(f"d{i}" for i in range(len(shape))), ", ".join(f"d{i}" for i in kept)]
    loops = run(generic(maps, iterators, [x], [out], body, dynamic), x, out)
    wide = x.astype(np.float64) if dtype in (np.float16, BF16) else x
    expected = ufunc.reduce(wide, axis=axes, dtype=wide.dtype, initial=start).astype(dtype)
    close(out, expected, dtype)
    check()
    return loops


@pytest.mark.parametrize("combiner,dtype", [(c, d) for c, (_, dtypes) in REDUCTIONS.items() for d in dtypes])
@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_kinds(combiner, dtype, axis):
    check_reduction(combiner, dtype, (13, 70) if axis else (70, 19), axis, axis == 0)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_sizes(size, axis, dynamic):
    check_reduction("addf", np.float32, (5, size), axis, dynamic)
    check_reduction("maximumf", np.float32, (size, 7), axis, dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("axis", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_reduction_axes(axis, dynamic):
    check_reduction("addf", np.float32, (6, 11, 37), axis, dynamic)
    check_reduction("maxsi", np.int32, (3, 80, 5), axis, dynamic)


@pytest.mark.parametrize("size", [5, 64, 100])
@pytest.mark.parametrize("combiner", ["addf", "maximumf", "minimumf"])
def test_reductions_keep_nan_and_start_from_the_output(combiner, size):
    x = numbers((4, size), np.float32)
    x[1, size // 2] = np.nan
    out = np.float32([10, 0, -20, 0.5])
    expected = REDUCTIONS[combiner][0](REDUCTIONS[combiner][0].reduce(x, axis=1), out)
    body = f"%0 = arith.{combiner} %in0, %out0 : f32\n linalg.yield %0 : f32"
    run(generic(["d0, d1", "d0"], "pr", [x], [out], body), x, out)
    close(out, expected, np.float32)


def test_sum_of_nothing_and_negative_zero():
    x = np.full((2, 20), -0.0, np.float32)
    out = np.float32([-0.0, 0.0])
    body = "%0 = arith.addf %in0, %out0 : f32\n linalg.yield %0 : f32"
    run(generic(["d0, d1", "d0"], "pr", [x], [out], body), x, out)
    assert np.signbit(out[0]) and not np.signbit(out[1])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [3, 64, 100])
def test_several_results(size, dynamic):
    """exp(x - max) is stored while its row sum and its row maximum are accumulated."""
    x, top = numbers((7, size), np.float32), numbers(7, np.float32, 1)
    e, check = guarded((7, size), np.float32)
    total, check2 = guarded((7,), np.float32)
    most, check3 = guarded((7,), np.float32, -np.inf)
    body = """%0 = arith.subf %in0, %in1 : f32
      %1 = math.exp %0 : f32
      %2 = arith.addf %out1, %1 : f32
      %3 = arith.maximumf %1, %out2 : f32
      linalg.yield %1, %2, %3 : f32, f32, f32"""
    maps = ["d0, d1", "d0", "d0, d1", "d0", "d0"]
    run(generic(maps, "pr", [x, top], [e, total, most], body, dynamic), x, top, e, total, most)
    expected = np.exp(x - top[:, None])
    close(e, expected, np.float32)
    close(total, expected.sum(1), np.float32)
    close(most, expected.max(1), np.float32)
    check()
    check2()
    check3()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(7, 70), (100, 3)])
def test_argmax_runs_in_order(shape, dynamic):
    x = numbers(shape, np.float32)
    value, where = np.full(shape[0], -np.inf, np.float32), np.zeros(shape[0], np.int64)
    body = """%i = linalg.index 1 : index
      %k = arith.index_cast %i : index to i64
      %c = arith.cmpf ogt, %in0, %out0 : f32
      %0 = arith.select %c, %in0, %out0 : f32
      %1 = arith.select %c, %k, %out1 : i64
      linalg.yield %0, %1 : f32, i64"""
    run(generic(["d0, d1", "d0", "d0"], "pr", [x], [value, where], body, dynamic), x, value, where)
    np.testing.assert_array_equal(where, x.argmax(1))
    np.testing.assert_array_equal(value, x.max(1))


@pytest.mark.parametrize("dynamic", [False, True])
def test_iota(dynamic):
    out, check = guarded((5, 37), np.int64)
    body = """%i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.constant 100 : index
      %0 = arith.muli %i, %c : index
      %1 = arith.addi %0, %j : index
      %2 = arith.index_cast %1 : index to i64
      linalg.yield %2 : i64"""
    run(generic(["d0, d1"], "pp", [], [out], body, dynamic), out)
    np.testing.assert_array_equal(out, np.arange(5)[:, None] * 100 + np.arange(37))
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, BF16, np.bool_, np.int64])
@pytest.mark.parametrize("width", [1, 3, 64, 70])
def test_gather_of_rows(width, dtype, dynamic):
    table, rows = numbers((30, width), dtype), np.random.default_rng(0).integers(0, 30, 9)
    out, check = guarded((9, width), dtype)
    t = element_type(table)
    types = [memref_type(a, dynamic) for a in (table, rows, out)]
    body = f"""%r = arith.index_cast %k : i64 to index
      %j = linalg.index 1 : index
      %v = memref.load %table[%r, %j] : {types[0]}
      linalg.yield %v : {t}"""
    text = f"""
func.func @f(%table: {types[0]}, %rows: {types[1]}, %out: {types[2]}) attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]}} ins(%rows : {types[1]}) outs(%out : {types[2]}) {{
  ^bb0(%k: i64, %o: {t}):
    {body}
  }}
  return
}}"""
    loops = run(text, table, rows, out)
    np.testing.assert_array_equal(out.astype(np.float32), table[rows].astype(np.float32))
    assert width == 1 or "vector.gather" not in loops
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [5, 64, 70])
def test_gather_of_elements(size, dynamic):
    table = numbers((4, 50), np.float32)
    where = np.random.default_rng(0).integers(0, 50, (4, size)).astype(np.int32)
    out, check = guarded((4, size), np.float32)
    types = [memref_type(a, dynamic) for a in (table, where, out)]
    text = f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%table: {types[0]}, %where: {types[1]}, %out: {types[2]}) attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
    ins(%where : {types[1]}) outs(%out : {types[2]}) {{
  ^bb0(%k: i32, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %k : i32 to index
    %v = memref.load %table[%i, %j] : {types[0]}
    linalg.yield %v : f32
  }}
  return
}}"""
    run(text, table, where, out)
    np.testing.assert_array_equal(out, np.take_along_axis(table, where, 1))
    check()


@pytest.mark.parametrize("size", [5, 64, 70])
def test_conditional_load(size):
    """A pad: lanes for which the condition is false must not be read."""
    x = numbers(size, np.float32)
    out, check = guarded((size + 4000,), np.float32)
    types = [memref_type(a) for a in (x, out)]
    text = f"""
func.func @f(%x: {types[0]}, %out: {types[1]}) attributes {{llvm.emit_c_interface}} {{
  %z = arith.constant 2.0 : f32
  %c2000 = arith.constant 2000 : index
  %c0 = arith.constant 0 : index
  %n = arith.constant {size} : index
  linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}} outs(%out : {types[1]}) {{
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = arith.subi %i, %c2000 : index
    %p = arith.cmpi ult, %j, %n : index
    %v = scf.if %p -> f32 {{
      %l = memref.load %x[%j] : {types[0]}
      scf.yield %l : f32
    }} else {{
      scf.yield %z : f32
    }}
    linalg.yield %v : f32
  }}
  return
}}"""
    run(text, x, out)
    expected = np.full(size + 4000, 2, np.float32)
    expected[2000 : 2000 + size] = x
    np.testing.assert_array_equal(out, expected)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
def test_affine_apply_and_division_in_the_body(dynamic):
    out, check = guarded((3, 37), np.int64)
    body = """%i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %0 = affine.apply affine_map<(d0, d1) -> ((d0 * 37 + d1 - 50) floordiv 7 + (d1 - 9) mod 5)>(%i, %j)
      %1 = affine.min affine_map<(d0, d1) -> (d0, d1 + 1)>(%0, %j)
      %2 = arith.index_cast %1 : index to i64
      linalg.yield %2 : i64"""
    run(generic(["d0, d1"], "pp", [], [out], body, dynamic), out)
    i, j = np.arange(3)[:, None], np.arange(37)
    np.testing.assert_array_equal(out, np.minimum((i * 37 + j - 50) // 7 + (j - 9) % 5, j + 1))
    check()


@pytest.mark.parametrize("size", [3, 70])
def test_integer_division_does_not_trap_in_the_tail(size):
    x, y = numbers(size, np.int32), np.arange(1, size + 1, dtype=np.int32)
    out, check = guarded((size,), np.int32)
    body = "%0 = arith.divsi %in0, %in1 : i32\n %1 = arith.remsi %in0, %in1 : i32\n %2 = arith.addi %0, %1 : i32\n linalg.yield %2 : i32"
    run(generic(["d0"] * 3, "p", [x, y], [out], body), x, y, out)
    quotient = np.trunc(x / y).astype(np.int32)
    np.testing.assert_array_equal(out, quotient + (x - quotient * y))
    check()


@pytest.mark.parametrize(
    "expression,shape", [("d0 * 2 + d1 * 3", 200), ("d0 + d1", 80), ("d0 floordiv 3 + d1", 80), ("(d0 + d1) mod 7", 7)]
)
@pytest.mark.parametrize("reduced", [0, 1])
def test_windows(expression, shape, reduced):
    x = numbers(shape, np.float32)
    n, m = 41, 5
    i, j = np.arange(n)[:, None], np.arange(m)
    index = eval(expression.replace("floordiv", "//").replace("mod", "%"), {"d0": i, "d1": j})  # noqa: S307
    out, check = guarded((m,) if reduced == 0 else (n,), np.float32)
    size = numbers((n, m), np.float32, 1)
    body = "%1 = arith.mulf %in0, %in1 : f32\n%0 = arith.addf %1, %out0 : f32\n linalg.yield %0 : f32"
    iterators = "rp" if reduced == 0 else "pr"
    run(
        generic([expression, "d0, d1", "d1" if reduced == 0 else "d0"], iterators, [x, size], [out], body), x, size, out
    )
    close(out, (x[index] * size).sum(axis=reduced), np.float32)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
def test_reversed_and_diagonal(dynamic):
    x, y = numbers(70, np.float32), numbers((70, 70), np.float32)
    out, check = guarded((70,), np.float32)
    body = "%0 = arith.addf %in0, %in1 : f32\n linalg.yield %0 : f32"
    run(generic(["-d0 + 69", "d0, d0", "d0"], "p", [x, y], [out], body, dynamic), x, y, out)
    close(out, x[::-1] + np.diag(y), np.float32)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
def test_contraction(dynamic):
    a, b = numbers((3, 9, 20), np.float32), numbers((3, 20, 35), np.float32, 1)
    out, check = guarded((3, 9, 35), np.float32)
    body = "%1 = arith.mulf %in0, %in1 : f32\n%0 = arith.addf %1, %out0 : f32\n linalg.yield %0 : f32"
    maps = ["d0, d1, d3", "d0, d3, d2", "d0, d1, d2"]
    run(generic(maps, "pppr", [a, b], [out], body, dynamic), a, b, out)
    close(out, a @ b, np.float32)
    check()


@pytest.mark.parametrize("shape", [(), (1,), (5, 20), (0,)])
def test_fill_and_named_copy(shape):
    x = numbers(shape, np.float32)
    x = np.asarray(x)
    out, check = guarded(shape, np.float32)
    out2, check2 = guarded(shape, np.float32)
    t = memref_type(x)
    text = f"""
func.func @f(%x: {t}, %out: {t}, %out2: {t}) attributes {{llvm.emit_c_interface}} {{
  %c = arith.constant 3.0 : f32
  linalg.fill ins(%c : f32) outs(%out : {t})
  linalg.copy ins(%x : {t}) outs(%out2 : {t})
  return
}}"""
    run(text, x, out, out2)
    assert (out == 3).all()
    np.testing.assert_array_equal(out2, x)
    check()
    check2()


def test_update_in_place_reads_the_result():
    x, y = numbers((4, 33), np.float32), numbers((4, 33), np.float32, 1)
    out = y.copy()
    body = "%0 = arith.mulf %in0, %out0 : f32\n linalg.yield %0 : f32"
    run(generic(["d0, d1"] * 2, "pp", [x], [out], body), x, out)
    close(out, x * y, np.float32)


@pytest.mark.parametrize("options", ["vector-bits=256", "vector-bits=128 unroll=1", "unroll=8"])
def test_options(options):
    x = numbers((3, 100), np.float32)
    out, check = guarded((3,), np.float32)
    body = "%0 = arith.addf %in0, %out0 : f32\n linalg.yield %0 : f32"
    run(generic(["d0, d1", "d0"], "pr", [x], [out], body), x, out, options=options)
    close(out, x.sum(1), np.float32)
    check()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, BF16])
@pytest.mark.parametrize("left,right", [(5, 3), (100, 200), (1, 300), (64, 64), (0, 70)])
def test_concatenation_by_clamped_loads(left, right, dtype, dynamic):
    a, b = numbers((3, left), dtype), numbers((3, right), dtype, 1)
    out, check = guarded((3, left + right), dtype)
    types = [memref_type(v, dynamic) for v in (a, b, out)]
    t = element_type(a)
    first = f"%la = memref.load %a[%i, %ja] : {types[0]}" if left else f"%la = memref.load %b[%i, %jb] : {types[1]}"
    text = f"""
func.func @f(%a: {types[0]}, %b: {types[1]}, %out: {types[2]}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c1 : {types[0]}
  %m = memref.dim %b, %c1 : {types[1]}
  linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
    outs(%out : {types[2]}) {{
  ^bb0(%o: {t}):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %ma = arith.subi %n, %c1 : index
    %ja0 = arith.minsi %j, %ma : index
    %ja = arith.maxsi %ja0, %c0 : index
    %k = arith.subi %j, %n : index
    %mb = arith.subi %m, %c1 : index
    %jb0 = arith.minsi %k, %mb : index
    %jb = arith.maxsi %jb0, %c0 : index
    {first}
    %lb = memref.load %b[%i, %jb] : {types[1]}
    %p = arith.cmpi slt, %j, %n : index
    %v = arith.select %p, %la, %lb : {t}
    linalg.yield %v : {t}
  }}
  return
}}"""
    loops = run(text, a, b, out)
    np.testing.assert_array_equal(out.astype(np.float32), np.concatenate([a, b], 1).astype(np.float32))
    assert "vector.load" in loops or "vector.maskedload" in loops or (left and left + right < 8)
    check()


@pytest.mark.parametrize("size", [7, 100])
def test_division_of_indices(size):
    out, check = guarded((size,), np.int64)
    body = """%i = linalg.index 0 : index
      %c = arith.constant 7 : index
      %q = arith.divui %i, %c : index
      %r = arith.remui %i, %c : index
      %h = arith.constant 1000 : index
      %0 = arith.muli %q, %h : index
      %1 = arith.addi %0, %r : index
      %2 = arith.index_cast %1 : index to i64
      linalg.yield %2 : i64"""
    run(generic(["d0"], "p", [], [out], body), out)
    i = np.arange(size)
    np.testing.assert_array_equal(out, i // 7 * 1000 + i % 7)
    check()
