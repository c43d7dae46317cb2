"""prim through linalg to native code, against the reference interpreter: each family of ops, element types and sizes."""
# ruff: noqa: E501  (MLIR text)

import ml_dtypes
import numpy as np
import pytest

from linalg_harness import check

rng = np.random.default_rng(0)

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "ui8": np.uint8,
    "i1": np.bool_,
}
FLOATS = ["f64", "f32", "f16", "bf16"]
INTS = ["i64", "i32", "i16", "i8", "ui8"]
TOLERANCE = {"f64": 1e-10, "f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}
FAST = ("tiled", "small_tiles")


def make(element: str, *shape: int, low: float = -4, high: float = 4) -> np.ndarray:
    """Random elements between low and high, integers for integer types."""
    if element == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    if element in INTS:
        return rng.integers(max(low, 0) if element == "ui8" else low, high, shape, endpoint=True).astype(
            DTYPES[element]
        )
    return rng.uniform(low, high, shape).astype(DTYPES[element])


def tolerances(element: str) -> dict[str, float]:
    return {"rtol": TOLERANCE.get(element, 0), "atol": TOLERANCE.get(element, 0)}


# ---- elementwise

UNARY_FLOAT = (
    "neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf"
    " ceil floor round trunc"
).split()
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 0.25])


def unary_text(ops: list[str], element: str, shape: str) -> str:
    """One kernel with an output for each op."""
    t = f"tensor<{shape}x{element}>"
    body = "\n".join(f"  %{i} = prim.{op} %x : {t}" for i, op in enumerate(ops))
    outs = ", ".join(f"%o{i}: {t}" for i in range(len(ops)))
    values = ", ".join(f"%{i}" for i in range(len(ops)))
    types = ", ".join([t] * len(ops))
    return f"kernel.func @k(%x: {t}, {outs}) attributes {{outs = {len(ops)}}} {{\n{body}\n  kernel.return {values} : {types}\n}}"


@pytest.mark.parametrize("element", FLOATS)
def test_unary_float(element):
    x = np.concatenate([SPECIAL, rng.uniform(-3, 3, 12)]).reshape(4, 6).astype(DTYPES[element])
    with np.errstate(all="ignore"):
        check(unary_text(UNARY_FLOAT, element, "4x6"), [x], **tolerances(element), variants=FAST)


@pytest.mark.parametrize("element", INTS)
def test_unary_int(element):
    info = np.iinfo(DTYPES[element])
    x = np.array([0, 1, 2, 3, 100, info.min, info.max, info.min + 1]).astype(DTYPES[element])
    check(unary_text(["neg", "abs", "sign", "not"], element, "8"), [x], variants=FAST)


def binary_text(ops: list[str], element: str, shape: str) -> str:
    t = f"tensor<{shape}x{element}>"
    body = "\n".join(f"  %{i} = prim.{op} %x, %y : {t}" for i, op in enumerate(ops))
    outs = ", ".join(f"%o{i}: {t}" for i in range(len(ops)))
    values = ", ".join(f"%{i}" for i in range(len(ops)))
    types = ", ".join([t] * len(ops))
    return f"kernel.func @k(%x: {t}, %y: {t}, {outs}) attributes {{outs = {len(ops)}}} {{\n{body}\n  kernel.return {values} : {types}\n}}"


@pytest.mark.parametrize("element", FLOATS)
def test_binary_float(element):
    x, y = (part.reshape(-1).astype(DTYPES[element]) for part in np.meshgrid(SPECIAL, SPECIAL))
    ops = ["add", "sub", "mul", "div", "rem", "pow", "atan2", "max", "min"]
    with np.errstate(all="ignore"):
        check(binary_text(ops, element, "144"), [x, y], **tolerances(element), variants=FAST)


@pytest.mark.parametrize("element", INTS)
def test_binary_int(element):
    info = np.iinfo(DTYPES[element])
    values = np.array([0, 1, 2, 3, 7, 70, info.max, info.min, *([] if element == "ui8" else [-1, -2, -7])]).astype(
        DTYPES[element]
    )
    x, y = (np.ascontiguousarray(part.reshape(-1)) for part in np.meshgrid(values, values))
    ops = ["add", "sub", "mul", "pow", "max", "min", "and", "or", "xor", "shl", "shr"]
    check(binary_text(ops, element, str(x.size)), [x, y], variants=FAST)
    keep = (y != 0) & ~((x == info.min) & (y == values.dtype.type(-1 if element != "ui8" else 255)))
    x, y = x[keep], y[keep]
    check(binary_text(["div", "rem"], element, str(x.size)), [x, y], variants=FAST)


def test_division_does_not_trap():
    from linalg_harness import Kernel

    x = np.array([1, -1, np.iinfo(np.int32).min, 5], np.int32)
    y = np.array([0, 0, -1, 2], np.int32)
    outs = [np.zeros(4, np.int32), np.zeros(4, np.int32)]
    Kernel(binary_text(["div", "rem"], "i32", "4"))([x, y], outs, [])
    assert outs[0][3] == 2 and outs[1][3] == 1


@pytest.mark.parametrize("element", list(DTYPES))
def test_compare_select(element):
    t, b = f"tensor<5x7x{element}>", "tensor<5x7xi1>"
    names = ["eq", "ne", "lt", "le", "gt", "ge"]
    body = "\n".join(f"  %{i} = prim.compare <{name}> %x, %y : {t}" for i, name in enumerate(names))
    outs = ", ".join(f"%o{i}: {b}" for i in range(6))
    text = f"""kernel.func @k(%x: {t}, %y: {t}, {outs}, %o6: {t}) attributes {{outs = 7}} {{
{body}
  %s = prim.select %2, %x, %y : {b}, {t}
  kernel.return {", ".join(f"%{i}" for i in range(6))}, %s : {", ".join([b] * 6)}, {t}
}}"""
    x, y = make(element, 5, 7, low=-2, high=2), make(element, 5, 7, low=-2, high=2)
    if element in FLOATS:
        x[0, 0] = y[1, 1] = np.nan
        x[2] = y[2]
    check(text, [x, y], **tolerances(element), variants=FAST)


@pytest.mark.parametrize("source", list(DTYPES))
def test_convert(source):
    names = list(DTYPES)
    t = f"tensor<12x{source}>"
    body = "\n".join(f"  %{i} = prim.convert %x : {t} to tensor<12x{name}>" for i, name in enumerate(names))
    outs = ", ".join(f"%o{i}: tensor<12x{name}>" for i, name in enumerate(names))
    values = ", ".join(f"%{i}" for i in range(len(names)))
    types = ", ".join(f"tensor<12x{name}>" for name in names)
    text = f"kernel.func @k(%x: {t}, {outs}) attributes {{outs = {len(names)}}} {{\n{body}\n  kernel.return {values} : {types}\n}}"
    # Floats that every integer type holds.
    check(text, [make(source, 12, low=0, high=100)], variants=FAST)


# ---- kernels of several ops

SOFTMAX = """kernel.func @softmax(%x: tensor<{0}x{1}xELEMENT>{2}, %o: tensor<{0}x{1}xELEMENT>{2}) attributes {{outs = 1}} {{
  %m = prim.reduce <max> %x dims [1] : tensor<{0}x{1}xELEMENT> to tensor<{0}xELEMENT>
  %mb = prim.broadcast %m dims [0] {3}: tensor<{0}xELEMENT> to tensor<{0}x{1}xELEMENT>
  %d = prim.sub %x, %mb : tensor<{0}x{1}xELEMENT>
  %e = prim.exp %d : tensor<{0}x{1}xELEMENT>
  %s = prim.reduce <sum> %e dims [1] : tensor<{0}x{1}xELEMENT> to tensor<{0}xELEMENT>
  %sb = prim.broadcast %s dims [0] {3}: tensor<{0}xELEMENT> to tensor<{0}x{1}xELEMENT>
  %r = prim.div %e, %sb : tensor<{0}x{1}xELEMENT>
  kernel.return %r : tensor<{0}x{1}xELEMENT>
}}"""
DYNAMIC = " {prim.sizes = affine_map<()[s0, s1] -> (s0, s1)>}"


@pytest.mark.parametrize("element", FLOATS)
def test_softmax(element):
    text = SOFTMAX.format(5, 19, "", "").replace("ELEMENT", element)
    check(text, [make(element, 5, 19)], **tolerances(element))


def test_softmax_dynamic():
    text = SOFTMAX.format("?", "?", DYNAMIC, "sizes [s0, s1] ").replace("ELEMENT", "f32")
    kernels = {}
    for shape in [(5, 19), (1, 1), (0, 3), (7, 600)]:
        check(text, [make("f32", *shape)], shape, kernels=kernels)


def test_layer_norm():
    text = """kernel.func @norm(%x: tensor<6x24xf32>, %g: tensor<24xf32>, %b: tensor<24xf32>, %o: tensor<6x24xf32>, %om: tensor<6xf32>) attributes {outs = 2} {
  %n = prim.constant dense<24.0> : tensor<6xf32>
  %eps = prim.constant dense<1.0e-5> : tensor<6xf32>
  %s = prim.reduce <sum> %x dims [1] : tensor<6x24xf32> to tensor<6xf32>
  %m = prim.div %s, %n : tensor<6xf32>
  %mb = prim.broadcast %m dims [0] : tensor<6xf32> to tensor<6x24xf32>
  %c = prim.sub %x, %mb : tensor<6x24xf32>
  %q = prim.mul %c, %c : tensor<6x24xf32>
  %v = prim.reduce <sum> %q dims [1] : tensor<6x24xf32> to tensor<6xf32>
  %vn = prim.div %v, %n : tensor<6xf32>
  %ve = prim.add %vn, %eps : tensor<6xf32>
  %r = prim.rsqrt %ve : tensor<6xf32>
  %rb = prim.broadcast %r dims [0] : tensor<6xf32> to tensor<6x24xf32>
  %y = prim.mul %c, %rb : tensor<6x24xf32>
  %gb = prim.broadcast %g dims [1] : tensor<24xf32> to tensor<6x24xf32>
  %bb = prim.broadcast %b dims [1] : tensor<24xf32> to tensor<6x24xf32>
  %yg = prim.mul %y, %gb : tensor<6x24xf32>
  %z = prim.add %yg, %bb : tensor<6x24xf32>
  kernel.return %z, %m : tensor<6x24xf32>, tensor<6xf32>
}"""
    check(text, [make("f32", 6, 24), make("f32", 24), make("f32", 24)])


LINEAR = """kernel.func @linear(%x: tensor<{0}x{2}xELEMENT>{3}, %w: tensor<{1}x{2}xELEMENT>, %b: tensor<{1}xELEMENT>, %o: tensor<{0}x{1}xELEMENT>{4}) attributes {{outs = 1}} {{
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<{0}x{2}xELEMENT>, tensor<{1}x{2}xELEMENT>) -> tensor<{0}x{1}xELEMENT>
  %bb = prim.broadcast %b dims [1] {5}: tensor<{1}xELEMENT> to tensor<{0}x{1}xELEMENT>
  %s = prim.add %d, %bb : tensor<{0}x{1}xELEMENT>
  %z = prim.constant dense<ZERO> : tensor<ELEMENT>
  %zb = prim.broadcast %z dims [] {5}: tensor<ELEMENT> to tensor<{0}x{1}xELEMENT>
  %r = prim.max %s, %zb : tensor<{0}x{1}xELEMENT>
  kernel.return %r : tensor<{0}x{1}xELEMENT>
}}"""


@pytest.mark.parametrize("element", FLOATS + ["i32", "ui8"])
def test_linear(element):
    text = (
        LINEAR.format(5, 9, 7, "", "", "")
        .replace("ELEMENT", element)
        .replace("ZERO", "0" if element in INTS else "0.0")
    )
    check(text, [make(element, 5, 7), make(element, 9, 7), make(element, 9)], **tolerances(element))


def test_linear_dynamic():
    sizes = " {{prim.sizes = affine_map<()[s0] -> (s0, {})>}}"
    text = (
        LINEAR.format("?", 9, 7, sizes.format(7), sizes.format(9), "sizes [s0, 9] ")
        .replace("ELEMENT", "f32")
        .replace("ZERO", "0.0")
    )
    kernels = {}
    for rows in [5, 1, 0, 130]:
        check(text, [make("f32", rows, 7), make("f32", 9, 7), make("f32", 9)], (rows,), kernels=kernels)


def test_attention():
    text = """kernel.func @attention(%q: tensor<2x5x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %o: tensor<5x2x8xf32>) attributes {outs = 1} {
  %d = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x5x8xf32>, tensor<2x6x8xf32>) -> tensor<2x5x6xf32>
  %m = prim.reduce <max> %d dims [2] : tensor<2x5x6xf32> to tensor<2x5xf32>
  %mb = prim.broadcast %m dims [0, 1] : tensor<2x5xf32> to tensor<2x5x6xf32>
  %c = prim.sub %d, %mb : tensor<2x5x6xf32>
  %e = prim.exp %c : tensor<2x5x6xf32>
  %s = prim.reduce <sum> %e dims [2] : tensor<2x5x6xf32> to tensor<2x5xf32>
  %sb = prim.broadcast %s dims [0, 1] : tensor<2x5xf32> to tensor<2x5x6xf32>
  %p = prim.div %e, %sb : tensor<2x5x6xf32>
  %r = prim.dot_general %p, %v batch [0] x [0] contract [2] x [1] : (tensor<2x5x6xf32>, tensor<2x6x8xf32>) -> tensor<2x5x8xf32>
  %t = prim.transpose %r [1, 0, 2] : tensor<2x5x8xf32> to tensor<5x2x8xf32>
  kernel.return %t : tensor<5x2x8xf32>
}"""
    check(text, [make("f32", 2, 5, 8), make("f32", 2, 6, 8), make("f32", 2, 6, 8)])


# ---- reductions


@pytest.mark.parametrize("element", FLOATS + INTS)
@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 2], [0, 1, 2], []])
def test_reduce(element, dims):
    t = f"tensor<3x4x5x{element}>"
    shape = [size for dim, size in enumerate((3, 4, 5)) if dim not in dims]
    r = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    names = ["sum", "prod", "max", "min"]
    body = "\n".join(f"  %{i} = prim.reduce <{name}> %x dims {dims} : {t} to {r}" for i, name in enumerate(names))
    outs = ", ".join(f"%o{i}: {r}" for i in range(4))
    text = f"kernel.func @k(%x: {t}, {outs}) attributes {{outs = 4}} {{\n{body}\n  kernel.return %0, %1, %2, %3 : {r}, {r}, {r}, {r}\n}}"
    check(text, [make(element, 3, 4, 5, low=-1, high=1)], **tolerances(element), variants=FAST)


def test_reduce_bool_and_empty():
    text = """kernel.func @k(%x: tensor<3x4xi1>, %y: tensor<3x0xf32>, %o0: tensor<3xi1>, %o1: tensor<3xi1>, %o2: tensor<3xf32>, %o3: tensor<3xf32>) attributes {outs = 4} {
  %0 = prim.reduce <any> %x dims [1] : tensor<3x4xi1> to tensor<3xi1>
  %1 = prim.reduce <all> %x dims [1] : tensor<3x4xi1> to tensor<3xi1>
  %2 = prim.reduce <sum> %y dims [1] : tensor<3x0xf32> to tensor<3xf32>
  %3 = prim.reduce <max> %y dims [1] : tensor<3x0xf32> to tensor<3xf32>
  kernel.return %0, %1, %2, %3 : tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>
}"""
    check(text, [make("i1", 3, 4), make("f32", 3, 0)])


@pytest.mark.parametrize("element", FLOATS + INTS + ["i1"])
@pytest.mark.parametrize("dim", [0, 1])
def test_arg_reduce(element, dim):
    t, r = f"tensor<6x7x{element}>", f"tensor<{(7, 6)[dim]}xi64>"
    text = f"""kernel.func @k(%x: {t}, %a: {r}, %b: {r}) attributes {{outs = 2}} {{
  %0 = prim.arg_reduce <max> %x dim {dim} : {t} to {r}
  %1 = prim.arg_reduce <min> %x dim {dim} : {t} to {r}
  kernel.return %0, %1 : {r}, {r}
}}"""
    x = make(element, 6, 7, low=-2, high=2)
    if element in FLOATS:
        x[1, 2] = x[3, 2] = x[1, 4] = np.nan
        x[2] = -np.inf
    check(text, [x])


@pytest.mark.parametrize("element", FLOATS + ["i64", "ui8"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_scan(element, dim, name):
    t = f"tensor<4x5x{element}>"
    text = f"""kernel.func @k(%x: {t}, %o: {t}) attributes {{outs = 1}} {{
  %0 = prim.add %x, %x : {t}
  %1 = prim.scan <{name}> %0 dim {dim} : {t}
  %2 = prim.neg %1 : {t}
  kernel.return %2 : {t}
}}"""
    check(text, [make(element, 4, 5, low=-1, high=1)], **tolerances(element))


# ---- windows and convolutions


@pytest.mark.parametrize("element", ["f32", "bf16", "i32"])
@pytest.mark.parametrize("name", ["max", "sum"])
@pytest.mark.parametrize("pad", [0, 1])
def test_reduce_window(element, name, pad):
    t = f"tensor<2x3x8x9x{element}>"
    height, width = (8 + 2 * pad - 3) // 2 + 1, (9 + 2 * pad - 2 * 2 - 1) // 1 + 1
    r = f"tensor<2x3x{height}x{width}x{element}>"
    text = f"""kernel.func @k(%x: {t}, %o: {r}) attributes {{outs = 1}} {{
  %0 = prim.reduce_window <{name}> %x window [1, 1, 3, 3] strides [1, 1, 2, 1] dilations [1, 1, 1, 2] low [0, 0, {pad}, {pad}] high [0, 0, {pad}, {pad}] : {t} to {r}
  kernel.return %0 : {r}
}}"""
    check(text, [make(element, 2, 3, 8, 9)], **tolerances(element))


def conv_text(
    element: str,
    n: int,
    c: int,
    o: int,
    size: int,
    k: int,
    stride: int,
    low: int,
    high: int,
    base: int,
    dilation: int,
    groups: int,
) -> tuple[str, list[np.ndarray]]:
    dilated = (size - 1) * base + 1
    out = (dilated + low + high - (k - 1) * dilation - 1) // stride + 1
    x, w, r = (
        f"tensor<{n}x{c}x{size}x{size}x{element}>",
        f"tensor<{o}x{c // groups}x{k}x{k}x{element}>",
        f"tensor<{n}x{o}x{out}x{out}x{element}>",
    )
    text = f"""kernel.func @k(%x: {x}, %w: {w}, %b: tensor<{o}x{element}>, %o: {r}) attributes {{outs = 1}} {{
  %0 = prim.convolution %x, %w strides [{stride}, {stride}] low [{low}, {low}] high [{high}, {high}] lhs_dilations [{base}, {base}] dilations [{dilation}, {dilation}] groups {groups} : ({x}, {w}) -> {r}
  %1 = prim.broadcast %b dims [1] : tensor<{o}x{element}> to {r}
  %2 = prim.add %0, %1 : {r}
  kernel.return %2 : {r}
}}"""
    return text, [make(element, n, c, size, size), make(element, o, c // groups, k, k), make(element, o)]


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(
    "shape",
    [
        (2, 4, 6, 7, 3, 1, 1, 1, 1, 1, 1),
        (1, 4, 6, 7, 1, 1, 0, 0, 1, 1, 1),
        (1, 4, 6, 8, 3, 2, 1, 1, 1, 1, 2),
        (2, 4, 4, 9, 3, 1, 2, 2, 1, 2, 4),
        (1, 2, 4, 5, 3, 1, 2, 1, 2, 1, 1),
        (1, 2, 4, 7, 2, 2, 0, 0, 1, 1, 2),
        (1, 2, 2, 7, 2, 1, -1, 1, 1, 1, 1),
    ],
)
def test_convolution(element, shape):
    text, ins = conv_text(element, *shape)
    check(text, ins, rtol=10 * TOLERANCE[element], atol=10 * TOLERANCE[element])


# ---- data movement


def test_movement():
    text = """kernel.func @k(%x: tensor<4x6xf32>, %y: tensor<4x3xf32>, %i: tensor<5xi64>, %v: tensor<f32>,
    %o0: tensor<3x3xf32>, %o1: tensor<7x9xf32>, %o2: tensor<4x9xf32>, %o3: tensor<4x6xf32>, %o4: tensor<5x6xf32>, %o5: tensor<6x4xf32>, %o6: tensor<4x6xi64>) attributes {outs = 7} {
  %a = prim.mul %x, %x : tensor<4x6xf32>
  %0 = prim.slice %a [1, 0] to [4, 6] step [1, 2] : tensor<4x6xf32> to tensor<3x3xf32>
  %1 = prim.pad %a, %v low [1, 0] high [2, 3] : tensor<4x6xf32>, tensor<f32> to tensor<7x9xf32>
  %2 = prim.concatenate %y, %a dim 1 : (tensor<4x3xf32>, tensor<4x6xf32>) -> tensor<4x9xf32>
  %3 = prim.reverse %a dims [0, 1] : tensor<4x6xf32>
  %4 = prim.gather %a[%i] dims [0] : (tensor<4x6xf32>, tensor<5xi64>) -> tensor<5x6xf32>
  %5 = prim.transpose %a [1, 0] : tensor<4x6xf32> to tensor<6x4xf32>
  %6 = prim.iota 1 : tensor<4x6xi64>
  kernel.return %0, %1, %2, %3, %4, %5, %6 : tensor<3x3xf32>, tensor<7x9xf32>, tensor<4x9xf32>, tensor<4x6xf32>, tensor<5x6xf32>, tensor<6x4xf32>, tensor<4x6xi64>
}"""
    check(text, [make("f32", 4, 6), make("f32", 4, 3), rng.integers(0, 4, 5), np.array(1.5, np.float32)])


def test_slice_of_reduction():
    text = """kernel.func @k(%x: tensor<6x5xf32>, %o: tensor<2xf32>, %p: tensor<4xf32>) attributes {outs = 2} {
  %s = prim.reduce <sum> %x dims [1] : tensor<6x5xf32> to tensor<6xf32>
  %0 = prim.slice %s [1] to [5] step [2] : tensor<6xf32> to tensor<2xf32>
  %1 = prim.slice %s [2] to [6] step [1] : tensor<6xf32> to tensor<4xf32>
  %2 = prim.neg %1 : tensor<4xf32>
  kernel.return %0, %2 : tensor<2xf32>, tensor<4xf32>
}"""
    check(text, [make("f32", 6, 5)])


def test_concatenate_dynamic():
    sizes = "{{prim.sizes = affine_map<()[s0, s1] -> ({})>}}"
    text = f"""kernel.func @k(%x: tensor<?x3xf32> {sizes.format("s0, 3")}, %y: tensor<?x3xf32> {sizes.format("s1, 3")}, %o: tensor<?x3xf32> {sizes.format("s0 + s1, 3")}) attributes {{outs = 1}} {{
  %0 = prim.concatenate %x, %y dim 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  kernel.return %0 : tensor<?x3xf32>
}}"""
    kernels = {}
    for a, b in [(2, 3), (0, 4), (5, 0), (0, 0)]:
        check(text, [make("f32", max(a, 1), 3)[:a], make("f32", max(b, 1), 3)[:b]], (a, b), kernels=kernels)


@pytest.mark.parametrize(
    "shapes",
    [("4x6", "24"), ("24", "2x3x4"), ("2x3x4", "6x4"), ("2x3x4", "4x6"), ("1x6", "6x1x1"), ("1", ""), ("", "1x1")],
)
def test_reshape(shapes):
    source, target = ("".join(f"{size}x" for size in shape.split("x") if size) for shape in shapes)
    text = f"""kernel.func @k(%x: tensor<{source}f32>, %o: tensor<{target}f32>, %p: tensor<{target}f32>) attributes {{outs = 2}} {{
  %0 = prim.exp %x : tensor<{source}f32>
  %1 = prim.reshape %0 : tensor<{source}f32> to tensor<{target}f32>
  %2 = prim.reshape %x : tensor<{source}f32> to tensor<{target}f32>
  kernel.return %1, %2 : tensor<{target}f32>, tensor<{target}f32>
}}"""
    check(text, [make("f32", *(int(size) for size in shapes[0].split("x") if size))])


@pytest.mark.parametrize("mode", ["assign", "sum", "prod", "max", "min"])
@pytest.mark.parametrize("element", ["f32", "bf16", "i64", "ui8"])
def test_scatter(mode, element):
    t, u = f"tensor<4x3x{element}>", f"tensor<6x3x{element}>"
    text = f"""kernel.func @k(%x: {t}, %u: {u}, %i: tensor<6xi64>, %o: {t}) attributes {{outs = 1}} {{
  %0 = prim.add %u, %u : {u}
  %1 = prim.scatter <{mode}> %x, %0[%i] dims [0] : ({t}, {u}, tensor<6xi64>) -> {t}
  kernel.return %1 : {t}
}}"""
    check(text, [make(element, 4, 3), make(element, 6, 3), rng.integers(0, 4, 6)], **tolerances(element))


def test_scalars_and_sizes():
    text = """kernel.func @k(%x: tensor<f32>, %y: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0)>}, %o: tensor<f32>, %p: tensor<i64>, %q: tensor<?xf32> {prim.sizes = affine_map<()[s0] -> (s0 * 2)>}, %r: tensor<f32>) attributes {outs = 4} {
  %0 = prim.neg %x : tensor<f32>
  %1 = prim.size [s0 * 2 + 1] : tensor<i64>
  %2 = prim.iota 0 sizes [s0 * 2] : tensor<?xf32>
  kernel.return %0, %1, %2, %x : tensor<f32>, tensor<i64>, tensor<?xf32>, tensor<f32>
}"""
    kernels = {}
    for n in (0, 1, 7):
        check(text, [np.array(2.5, np.float32), make("f32", n)], (n,), kernels=kernels)


def test_constant_table():
    text = """kernel.func @k(%x: tensor<2x3xui8>, %o: tensor<2x3xui8>) attributes {outs = 1} {
  %c = prim.constant dense<[[1, 2, 3], [250, 5, 6]]> : tensor<2x3xui8>
  %0 = prim.add %x, %c : tensor<2x3xui8>
  kernel.return %0 : tensor<2x3xui8>
}"""
    check(text, [make("ui8", 2, 3, low=0, high=100)])


def test_same_value_twice():
    text = """kernel.func @k(%x: tensor<5xf32>, %o: tensor<5xf32>, %p: tensor<5xf32>, %q: tensor<5xf32>) attributes {outs = 3} {
  %0 = prim.exp %x : tensor<5xf32>
  kernel.return %0, %0, %x : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}"""
    check(text, [make("f32", 5)])
