"""Every operator against eager: PyTorch's own sample inputs (op_db), and rows for what they do not cover.

A sample is traced as AOTAutograd does it, imported, and run by the reference target. Operators that need an ATen op
which the importer's table lacks must say so by UnsupportedNode, and the op must be in EAGER, the list of what PyTorch runs
instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

from lamina.frontend.decompositions import decompositions
from lamina.frontend.dynamo import compile_aot_graph
from lamina.frontend.importer import UnsupportedNode
from lamina.options import Options

OPTIONS = Options(target="reference", fallback="error")
SAMPLES = {torch.float32: 2}  # of each operator; 1 of other dtypes
LARGEST = 300

EAGER = frozenset(
    """
    _linear_cross_entropy_batch_chunked _linear_cross_entropy_batch_chunked_no_reduction
    _cdist_backward _efficientzerotensor _embedding_bag_forward_only _fft_c2c _fft_c2r _fft_r2c _histogramdd_bin_edges
    _histogramdd_from_bin_cts _linalg_check_errors _linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd
    _local_scalar_dense _pdist_forward _to_sparse _trilinear _unique2 adaptive_max_pool2d adaptive_max_pool3d
    _adaptive_avg_pool3d bernoulli bernoulli_ bincount cauchy cholesky cholesky_inverse cholesky_solve complex
    conj_physical convolution digamma embedding_renorm empty_permuted exponential frexp gcd geometric geqrf
    grid_sampler_3d hash_tensor histc histogram i0 igamma igammac index_put index_reduce lgamma linalg_cholesky_ex linalg_eig
    linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor_ex
    linalg_lu_solve linalg_matrix_exp linalg_pinv linalg_qr linalg_solve_triangular log_normal logcumsumexp lcm
    lu_unpack masked_select mode multinomial nextafter nonzero nonzero_static normal normal_functional ormqr poisson polar
    polygamma rand randint randint_like randn randn_like randperm repeat_interleave resize rrelu_with_noise
    rrelu_with_noise_functional searchsorted
    segment_reduce special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_erfcx special_hermite_polynomial_h special_hermite_polynomial_he
    special_i0e special_i1 special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p
    special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1
    special_ndtri special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0 special_zeta sparse_sampled_addmm _sparse_mm_reduce_impl
    to_sparse triangular_solve uniform unique_consecutive unique_dim upsample_bicubic2d upsample_bilinear2d view_as_complex
    view_as_real view _to_copy angle imag real bucketize median index take as_strided
    """.split()
)

NOT_TRACED = {
    "jiterator_unary": "compiles CUDA code",
    "jiterator_binary": "compiles CUDA code",
    "jiterator_4inputs_with_extra_args": "compiles CUDA code",
    "jiterator_binary_return_by_ref": "compiles CUDA code",
    "jiterator_2inputs_2outputs": "compiles CUDA code",
    "linalg.cholesky": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.ldl_factor": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.matrix_power": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.lu_factor": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.inv": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.solve": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.tensorinv": "its check of errors is an effect, which this way of tracing has no token for",
    "linalg.tensorsolve": "its check of errors is an effect, which this way of tracing has no token for",
    "allclose": "its result is a Python bool that depends on data",
    "equal": "its result is a Python bool that depends on data",
    "corrcoef": "reads data while tracing",
    "cov": "reads data while tracing",
    "bucketize": "the samples are Python numbers read from tensors",
    "nn.functional.gaussian_nll_loss": "reads data while tracing",
    "nn.functional.one_hot": "reads data while tracing",
    "linalg.lstsq": "its result's size depends on data",
    "tensor_split": "reads data while tracing",
    "empty": "memory that nothing has written",
    "empty_like": "memory that nothing has written",
    "empty_strided": "memory that nothing has written",
    "empty_permuted": "memory that nothing has written",
    "new_empty": "memory that nothing has written",
    "new_empty_strided": "memory that nothing has written",
    "sparse.sampled_addmm": "sparse arguments",
    "sparse.mm": "sparse arguments",
}

FIRST_RESULT_ONLY = {"topk", "sort", "kthvalue", "median", "nanmedian", "mode", "max", "min"}
"""Operators that may return the index of any of several equal elements."""

DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.int64: "i64", torch.bool: "i1"}
NARROW = {torch.bfloat16, torch.float16}


def run(function: Callable[..., Any], tensors: list[torch.Tensor]) -> list[Any]:
    """The results of a function of tensors, traced, imported and interpreted."""
    with torch.no_grad():
        trace = make_fx(dispatch_functionalize(function), decompositions(), "fake", _allow_non_fake_inputs=True)
        graph = trace(*tensors)
    return compile_aot_graph(graph, OPTIONS)(list(tensors))


def compare(got: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor | None) -> None:
    """Equal to eager's result up to tolerance; where eager rounds to 16 bits, not much farther from the exact result."""
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if expected.dtype in NARROW and exact is not None and exact.is_floating_point():
        exact = exact.to(torch.float64)
        theirs, mine = (expected.double() - exact).abs(), (got.double() - exact).abs()
        scale = exact[exact.isfinite()].abs().amax() if exact.isfinite().any() else torch.tensor(1.0)
        finite = exact.isfinite() & expected.isfinite()
        allowed = 3 * (theirs[finite].amax() if finite.any() else 0.0) + 0.01 * scale
        assert (mine[finite] <= allowed).all()
        torch.testing.assert_close(got.isnan(), expected.isnan())
        return
    torch.testing.assert_close(got, expected, equal_nan=True)


def samples(op: Any, dtype: torch.dtype) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        found = []
        for sample in op.sample_inputs("cpu", dtype):
            tensors = [
                t for t in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)
            ]
            if all(t.numel() <= LARGEST and t.layout is torch.strided for t in tensors):
                found.append(sample)
            if len(found) == 24:
                break
    count = SAMPLES.get(dtype, 1)
    step = max(len(found) // count, 1)
    return found[step // 2 :: step][:count]


def cases() -> list[Any]:
    result = []
    for op in op_db:
        if op.name in NOT_TRACED:
            continue
        for dtype, short in DTYPES.items():
            if dtype in op.dtypes:
                result.append(
                    pytest.param(
                        op, dtype, id=f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}-{short}"
                    )
                )
    return result


@pytest.mark.parametrize("op, dtype", cases())
def test_sample_inputs(op, dtype):
    for sample in samples(op, dtype):
        leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

        def function(*tensors, leaves=leaves, places=places, spec=spec):
            filled = list(leaves)
            for k, tensor in zip(places, tensors, strict=True):
                filled[k] = tensor
            args, kwargs = pytree.tree_unflatten(filled, spec)
            return pytree.tree_leaves(op(*args, **kwargs))

        tensors = [leaves[k].detach().clone() for k in places]
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = function(*[t.clone() for t in tensors])
            except (RuntimeError, ValueError, TypeError, IndexError):
                continue  # eager does not take the sample
            try:
                exact = (
                    function(*[t.double() if t.dtype in NARROW else t for t in tensors]) if dtype in NARROW else None
                )
            except RuntimeError:
                exact = None
            try:
                got = run(function, tensors)
            except UnsupportedNode as error:
                assert error.op.split(".")[1] in EAGER or error.op.startswith("prims."), error
                continue
        for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            if isinstance(theirs, torch.Tensor) and not (number and op.name in FIRST_RESULT_ONLY):
                compare(mine, theirs, exact[number] if exact is not None else None)


# ---- rows: sizes 0 and 1, memory order, broadcasting, special values

X = torch.tensor([[0.0, -0.0, 1.5, -2.5], [float("inf"), -float("inf"), float("nan"), 0.5], [3.5, -7.0, 1e30, -1e-30]])
INTEGERS = torch.tensor([[7, -7, 0, 3], [-1, 2**62, -(2**63), 5], [1, 2, -8, 9]])
POSITIVE = torch.tensor([[2, 3, 1, 2], [-3, 5, 7, -2], [4, -5, 6, 10]])

ROWS: dict[str, tuple] = {
    "relu": (torch.relu, X),
    "sign": (torch.sign, X),
    "round": (torch.round, X),
    "clamp": (lambda x: x.clamp(-1, 2), X),
    "clamp by tensors": (torch.clamp, X, X.flip(0), X.flip(1)),
    "maximum": (torch.maximum, X, X.flip(0)),
    "fmax": (torch.fmax, X, X.flip(0)),
    "remainder": (torch.remainder, X, POSITIVE.float()),
    "fmod": (torch.fmod, X, POSITIVE.float()),
    "floor division": (torch.floor_divide, X, POSITIVE.float()),
    "division by zero": (torch.div, X, torch.zeros(3, 4)),
    "floor division by zero": (torch.floor_divide, X, torch.zeros(3, 4)),
    "remainder of integers": (torch.remainder, INTEGERS, POSITIVE),
    "fmod of integers": (torch.fmod, INTEGERS, POSITIVE),
    "floor division of integers": (torch.floor_divide, INTEGERS, POSITIVE),
    "truncated division of integers": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), INTEGERS, POSITIVE),
    "division of integers": (torch.div, INTEGERS, POSITIVE),
    "wrap-around": (lambda x: (x * 3 + x, -x, x.abs()), INTEGERS),
    "shift": (lambda x, y: (x << y, x >> y), INTEGERS, POSITIVE.abs()),
    "power": (lambda x: (x**2, x**3, x**0.5, x**-0.5, x**-1, x**-2, x**1.7, x**0), X),
    "power of integers": (lambda x: (x**2, x**3), INTEGERS),
    "power to tensors": (torch.pow, X, POSITIVE.float()),
    "signbit": (torch.signbit, X),
    "copysign": (torch.copysign, X, X.flip(1)),
    "sum of nothing": (lambda x: (x.sum(0), x.prod(0), x.sum(), x.mean(), x.all(0), x.any(0)), torch.ones(0, 3)),
    "softmax of nothing": (lambda x: x.softmax(-1), torch.ones(3, 0)),
    "softmax with -inf": (
        lambda x: x.softmax(-1),
        torch.tensor([[0.0, -float("inf")], [-float("inf"), -float("inf")]]),
    ),
    "layer norm of one": (lambda x: F.layer_norm(x, (1,)), torch.ones(3, 1)),
    "product with nothing": (torch.matmul, torch.ones(3, 0), torch.ones(0, 2)),
    "extremes with nan": (lambda x: (x.amax(1), x.amin(1), *x.max(1), *x.min(1), x.argmax(1), x.argmin()), X),
    "median with nan": (lambda x: (x.median(1)[0], x.nanmedian(1)[0], x.median(), x.nanmedian()), X[1:]),
    "cummax": (lambda x: (*x.cummax(1), *x.cummin(0)), X),
    "cumsum of bytes": (lambda x: x.cumsum(0), torch.full((3,), 200, dtype=torch.uint8)),
    "argmax of equals": (lambda x: (x.argmax(), x.argmin(0)), torch.ones(3, 4)),
    "broadcast": (lambda x, y: x + y, torch.ones(3, 1, 4), torch.ones(2, 1)),
    "broadcast of size 0": (lambda x, y: x + y, torch.ones(1, 4), torch.ones(0, 1)),
    "promotion": (
        lambda x, y: (x + y, x * 2.5, y / 2, x == y, x + 1),
        torch.arange(3),
        torch.arange(3, dtype=torch.int8),
    ),
    "promotion by number of dimensions": (
        lambda x, y: (x + y, x * y),
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor(0.1),
    ),
    "scalars take part unrounded": (lambda x: (x * 0.1, x + 1e-3, x / 3), torch.arange(1, 9).to(torch.bfloat16)),
    "truth arithmetic": (
        lambda x, y: (x + y, x * y, x | y, ~x, x.sum(), x.prod()),
        torch.tensor([True, False]),
        torch.tensor([True, True]),
    ),
    "byte arithmetic": (lambda x: (x + 100, -x, x // 3, x - 300), torch.tensor([0, 200, 255], dtype=torch.uint8)),
    "conversion": (
        lambda x: (x.to(torch.int64), x.to(torch.bool), x.to(torch.bfloat16)),
        torch.tensor([1.5, -1.5, 0.0, 1e3]),
    ),
    "conversion of integers": (lambda x: (x.to(torch.int8), x.to(torch.uint8), x.to(torch.float32)), INTEGERS),
    "transposed": (lambda x: (x.t().reshape(-1), x.t().contiguous() + 1), X.t()),
    "overlapping": (lambda x: x * 2, torch.arange(5.0).unfold(0, 3, 1)),
    "expanded": (lambda x: x.sum(0), torch.ones(1).expand(3, 4)),
    "slices": (lambda x: (x[1:], x[:, ::2], x[-2:], x[..., 1], x[5:], x[:, None]), X),
    "negative index": (lambda x, i: x[i], X, torch.tensor([-1, 0])),
    "index pairs": (lambda x, i, j: (x[i, j], x[:, j], x[i]), X, torch.tensor([[0], [2]]), torch.tensor([1, 3])),
    "index apart": (lambda x, i: x[i, :, i], torch.arange(24.0).view(2, 3, 4), torch.tensor([0, 1])),
    "masked assignment": (lambda x: torch.where(x > 0, x, x * 0.1), X),
    "write at indices": (lambda x, i: x.index_put((i,), torch.tensor(9.0)), X, torch.tensor([0, 2])),
    "add at equal indices": (
        lambda x, i: x.index_put((i,), torch.ones(3, 4), accumulate=True),
        X,
        torch.tensor([0, 0, 2]),
    ),
    "scatter": (lambda x, i: x.scatter(1, i, 5.0), X, torch.tensor([[0, 1], [2, 3]])),
    "scatter of means": (
        lambda x, i: x.scatter_reduce(0, i, x.flip(0), "mean", include_self=False),
        X,
        torch.tensor([[0, 1, 2, 0]]),
    ),
    "roll and flip": (lambda x: (x.roll(1, 0), x.roll(-1), x.flip(0, 1)), X),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.tril(-1)), X),
    "pad": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (-1, 1, 2, -1), value=3.0)), X),
    "creation": (
        lambda x: (
            torch.arange(2, 9, 3),
            torch.arange(0.0, 1.0, 0.3),
            torch.eye(3),
            torch.full((2,), 7),
            torch.linspace(0, 1, 5),
        ),
        X,
    ),
    "diagonal": (lambda x: (x.diagonal(), x.diagonal(1), torch.diag_embed(x)), X),
    "attention with a covered row": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        torch.arange(24.0).view(1, 1, 3, 8) / 10,
        torch.tensor([[True, False, True], [False, False, False], [True, True, True]]),
    ),
    "pooling with ceil": (
        lambda x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
        torch.arange(36.0).view(1, 1, 6, 6),
    ),
    "indices of pooling": (lambda x: F.max_pool2d(x, 2, return_indices=True), torch.arange(36.0).view(1, 6, 6) % 7),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=[name.replace(" ", "_") for name in ROWS])
def test_row(row):
    function, *tensors = row

    def flat(*tensors):
        return pytree.tree_leaves(function(*tensors))

    expected = flat(*tensors)
    got = run(flat, tensors)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)
        if theirs.is_floating_point():
            finite = ~theirs.isnan()
            assert torch.equal(mine[finite].signbit(), theirs[finite].signbit()), "signs of zeros"
