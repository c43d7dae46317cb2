"""Contractions through lamina-lower-contractions and the JIT against NumPy in float64."""

import itertools

import numpy as np
import pytest

from contraction_harness import Case, Program, check, random
from lamina.targets.cpu import CPUDescription

SIZES = [1, 3, 5, 8, 17, 31, 48, 50, 64, 100, 129]


def embed(rng, array: np.ndarray, kind: str, element: str) -> np.ndarray:
    """The same values as a contiguous, transposed or strided array, or one in the middle of a larger one."""
    if kind == "row":
        return np.ascontiguousarray(array)
    if kind == "column":
        return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind == "slice":
        shape = [n + 3 for n in array.shape]
        view = random(rng, tuple(shape), element)[tuple(slice(1, n + 1) for n in array.shape)]
    else:
        view = random(rng, tuple(2 * n for n in array.shape), element)[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


def matmul(rng, m, n, k, kinds="row row row", elements=("f32", "f32", "f32"), layout="static", fill=True) -> Case:
    arrays = []
    for shape, kind, element in zip([(m, k), (k, n), (m, n)], kinds.split(), elements, strict=True):
        arrays.append(embed(rng, random(rng, shape, element), kind, element))
    return Case("m n K", ("m, K", "K, n", "m, n"), tuple(arrays), elements, (layout,) * 3, fill)


def product(a, b):
    return a @ b


@pytest.mark.parametrize("layout", ["static", "dynamic"])
def test_sizes(layout):
    rng = np.random.default_rng(0)
    shapes = [(m, n, k) for m, n, k in zip(SIZES, rng.permutation(SIZES), rng.permutation(SIZES), strict=True)]
    shapes += [(1, 129, 64), (129, 1, 64), (8, 48, 1), (1, 1, 1), (1, 1, 70), (9, 96, 33), (70, 33, 300)]
    cases = [matmul(rng, *shape, layout=layout) for shape in shapes]
    check(cases, [product] * len(cases))


@pytest.mark.parametrize("layout", ["static", "dynamic"])
@pytest.mark.parametrize("fill", [True, False])
def test_layouts(layout, fill):
    rng = np.random.default_rng(1)
    kinds = ["row", "column", "slice", "strided"]
    cases = []
    for i, (left, right) in enumerate(itertools.product(kinds, kinds)):
        # Three kinds of C and two shapes, each with each of the others over the two values of `fill`.
        out = ["slice", "column", "strided"][(i + fill) % 3]
        shape = [(21, 50, 37), (2, 53, 40)][(i // 2 + fill) % 2]
        cases.append(matmul(rng, *shape, f"{left} {right} {out}", layout=layout, fill=fill))
    check(cases, [product] * len(cases))


@pytest.mark.parametrize(
    "elements",
    [
        ("f64", "f64", "f64"),
        ("bf16", "bf16", "f32"),
        ("f16", "f16", "f32"),
        ("f16", "f32", "f32"),
        ("f32", "f32", "f64"),
        ("i32", "i32", "i32"),
        ("i64", "i64", "i64"),
        ("i8", "i8", "i32"),
        ("i8", "i8", "i8"),
    ],
)
def test_dtypes(elements):
    rng = np.random.default_rng(2)
    cases = [
        matmul(rng, *[(21, 50, 37), (1, 35, 70)][i // 4 % 2], kinds, elements, ["static", "dynamic"][i % 2])
        for i, kinds in enumerate(
            [
                "row row row",
                "row column row",
                "column row slice",
                "strided strided slice",
                "row row row",
                "column column row",
            ]
        )
    ]
    check(cases, [product] * len(cases))


@pytest.mark.parametrize("size", [(0, 5, 5), (5, 0, 5), (5, 5, 0), (20, 20, 0), (0, 0, 0)])
@pytest.mark.parametrize("layout", ["sizes", "dynamic"])
def test_empty(size, layout):
    rng = np.random.default_rng(3)
    cases = [
        matmul(rng, *size, kinds, layout=layout, fill=fill)
        for kinds in ["row row slice", "row column slice"]
        for fill in [True, False]
    ]
    check(cases, [product] * len(cases))


def test_deep():
    """Depth beyond one block of K."""
    rng = np.random.default_rng(4)
    cases = [
        matmul(rng, 20, 40, 4500),
        matmul(rng, 20, 40, 4500, "row column row"),
        matmul(rng, 20, 40, 2100, layout="dynamic"),
        matmul(rng, 20, 40, 2100, "slice column slice", layout="dynamic", fill=False),
    ]
    check(cases, [product] * len(cases))


@pytest.mark.parametrize("bits", [128, 256])
def test_narrow_registers(bits):
    rng = np.random.default_rng(5)
    cases = [
        matmul(rng, m, n, k, kinds, elements)
        for (m, n, k) in [(21, 50, 37), (1, 35, 70), (3, 30, 20)]
        for kinds in ["row row row", "row column row"]
        for elements in [("f32",) * 3, ("f64",) * 3, ("bf16", "bf16", "f32")]
    ]
    check(cases, [product] * len(cases), f"vector-bits={bits}")


EINSUMS = [
    ("b m n K", "b,m,K", "b,K,n", "b,m,n"),
    ("b m n K", "b,m,K", "b,n,K", "b,m,n"),
    ("b m n K", "m,b,K", "n,b,K", "b,m,n"),
    ("b h m n K", "b,m,h,K", "b,n,h,K", "b,h,m,n"),
    ("b h m n K", "b,h,m,K", "b,K,h,n", "b,m,h,n"),
    ("a b m n K", "a,b,m,K", "K,n", "a,b,m,n"),
    ("m n K L", "m,K,L", "K,L,n", "m,n"),
    ("m n K L", "K,m,L", "L,n,K", "m,n"),
    ("m p n q K", "m,p,K", "K,n,q", "m,n,p,q"),
    ("K", "K", "K", ""),
    ("m K", "m,K", "K", "m"),
    ("n K", "K", "K,n", "n"),
    ("m n", "m", "n", "m,n"),
    ("m n", "m", "n", "n,m"),
    ("b", "b", "b", "b"),
    ("b K", "b,K", "b,K", "b"),
    ("b K", "K,b", "K,b", "b"),
]


@pytest.mark.parametrize("layout", ["static", "identity"])
def test_einsums(layout):
    rng = np.random.default_rng(6)
    cases, references = [], []
    for sizes in [
        {"b": 3, "h": 2, "a": 2, "m": 17, "n": 34, "K": 21, "L": 5, "p": 3, "q": 4},
        {"b": 40, "h": 3, "a": 5, "m": 3, "n": 70, "K": 9, "L": 6, "p": 9, "q": 19},
    ]:
        for loops, *maps in EINSUMS:
            arrays = tuple(random(rng, tuple(sizes[x] for x in m.split(",") if x), "f32") for m in maps)
            cases.append(Case(loops, tuple(maps), arrays, ("f32",) * 3, (layout,) * 3))
            a, b, c = (m.replace(",", "") for m in maps)
            references.append(lambda x, y, text=f"{a},{b}->{c}": np.einsum(text, x, y))
    check(cases, references)


def to_panels(b: np.ndarray, width: int, together: int = 1) -> np.ndarray:
    """B [k, n] as panels [n / width, k / together, width, together]."""
    k, n = b.shape
    panels = b.reshape(k // together, together, n // width, width)
    return np.ascontiguousarray(panels.transpose(2, 0, 3, 1))


def panel_cases(element: str, widths: list[int], together: int) -> tuple[list[Case], list]:
    """Contractions with a B in panels; A's rows contiguous or in two loops that are apart in memory."""
    rng = np.random.default_rng(7)
    cases, references = [], []
    for width, (m, panels, k), kind in itertools.product(
        widths, [(21, 3, 64), (1, 1, 96), (64, 2, 32), (33, 5, 128)], ["row", "strided"]
    ):
        b = random(rng, (k, panels * width), element)
        packed = to_panels(b, width, together)
        a = embed(rng, random(rng, (m, k), element), kind, element)
        c = embed(rng, random(rng, (m, panels * width), "f32"), kind, "f32").reshape(m, panels, width)
        a = a.reshape(m, k // together, together)
        cases.append(Case("m p w K T", ("m, K, T", "p, K, w, T", "m, p, w"), (a, packed, c), (element, element, "f32")))
        references.append(lambda x, y: np.einsum("mkt,pkwt->mpw", x, y))
    return cases, references


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_panels(element):
    check(*panel_cases(element, [16, 48, 64], 1))


def test_deep_panels():
    """Rows of A that are copied are longer than a block of what is packed elsewhere."""
    rng = np.random.default_rng(11)
    b = random(rng, (2112, 64), "bf16")
    arrays = (random(rng, (20, 2112, 1), "bf16"), to_panels(b, 32), random(rng, (20, 2, 32), "f32"))
    case = Case("m p w K T", ("m, K, T", "p, K, w, T", "m, p, w"), arrays, ("bf16", "bf16", "f32"))
    check([case], [lambda x, y: np.einsum("mkt,pkwt->mpw", x, y)])


needs_matrix_unit = pytest.mark.skipif(
    not CPUDescription.host().matrix_unit, reason="this processor has no AMX tiles for bf16"
)
BF16 = ("bf16", "bf16", "f32")


@needs_matrix_unit
@pytest.mark.parametrize("layout", ["static", "dynamic"])
@pytest.mark.parametrize("fill", [True, False])
def test_matrix_unit(layout, fill):
    """Rows and columns of all kinds of tiles, whole and not, B by rows and transposed, deeper than a block."""
    rng = np.random.default_rng(12)
    shapes = [(m, n, k) for m, n, k in zip(SIZES, rng.permutation(SIZES), rng.permutation(SIZES), strict=True)]
    shapes += [(32, 32, 32), (64, 96, 64), (16, 16, 33), (40, 20, 5000), (1, 129, 64), (129, 1, 64), (70, 33, 1)]
    kinds = ["row row row", "row column row", "column row slice", "slice slice strided", "strided strided column"]
    cases = [matmul(rng, *shape, kinds[(i + fill) % len(kinds)], BF16, layout, fill) for i, shape in enumerate(shapes)]
    check(cases, [product] * len(cases), "matrix-unit=true")


@needs_matrix_unit
def test_matrix_unit_batched():
    rng = np.random.default_rng(13)
    cases, references = [], []
    for (batch, m, n, k), spec in itertools.product(
        [(3, 33, 50, 70), (1, 16, 64, 32)], ["bmk,bkn->bmn", "bmk,bnk->bmn"]
    ):
        b_shape = (batch, k, n) if "bkn" in spec else (batch, n, k)
        arrays = (
            random(rng, (batch, m, k), "bf16"),
            random(rng, b_shape, "bf16"),
            random(rng, (batch, m, n), "f32"),
        )
        cases.append(Case("b m n K", ("b, m, K", "b, K, n" if "bkn" in spec else "b, n, K", "b, m, n"), arrays, BF16))
        references.append(lambda x, y, spec=spec: np.einsum(spec, x, y))
    check(cases, references, "matrix-unit=true")


@needs_matrix_unit
def test_matrix_unit_panels():
    check(*panel_cases("bf16", [16, 32, 48, 64], 2), "matrix-unit=true")


@needs_matrix_unit
def test_matrix_unit_special_values():
    """Infinities and NaN reach only their own row and column, whatever lies past the end of a row."""
    rng = np.random.default_rng(14)
    case = matmul(rng, 37, 45, 41, "slice slice row", BF16)
    a, b, c = case.arrays
    a.base[...] = np.nan  # around the operand
    a[...] = random(rng, a.shape, "bf16")
    a[3, 40], a[5, 0], b[7, 44] = np.inf, np.nan, -np.inf
    Program([case], "matrix-unit=true").run(0, a, b, c)
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)
