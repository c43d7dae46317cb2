"""Convolutions through lamina-lower-contractions and the JIT against torch in float64."""

import numpy as np
import pytest
import torch

from contraction_harness import Case, check, random


def convolution(
    rng,
    batch,
    groups,
    inputs,
    outputs,
    size,
    kernel,
    stride=1,
    dilation=1,
    channels_last=False,
    element="f32",
    layout="static",
) -> tuple[Case, object]:
    """A convolution over an already padded input of `size` pixels; channels are per group, groups = 0 for none."""
    rank = len(size)
    result = [(s - (k - 1) * dilation - 1) // stride + 1 for s, k in zip(size, kernel, strict=True)]
    space, taps = "zyx"[-rank:], "CBA"[-rank:]  # reductions in capitals
    group = ["g"] if groups else []
    dims = [max(groups, 1)] if groups else []
    pixels = [f"{y} * {stride} + {t} * {dilation}" for y, t in zip(space, taps, strict=True)]
    x = random(rng, (batch, *dims, inputs, *size), element)
    w = random(rng, (*dims, outputs, inputs, *kernel), element)
    y = random(rng, (batch, *dims, outputs, *result), "f32")
    x_map, w_map, y_map = ["b", *group, "I", *pixels], [*group, "o", "I", *taps], ["b", *group, "o", *space]
    if channels_last:

        def move(m):
            return [m[0], *m[2:], m[1]]

        x_map, y_map, w_map = move(x_map), move(y_map), [*taps, "I", "o"]
        x, y = (np.ascontiguousarray(np.moveaxis(t, 1, -1)) for t in (x, y))
        w = np.ascontiguousarray(np.moveaxis(np.moveaxis(w, 1, -1), 0, -1))
    loops = " ".join(["b", *group, "o", *space, "I", *taps])
    case = Case(
        loops,
        (", ".join(x_map), ", ".join(w_map), ", ".join(y_map)),
        (x, w, y),
        (element, element, "f32"),
        (layout,) * 3,
        attributes="lamina.convolution",
    )

    def reference(a, b):
        if channels_last:
            a, b = np.moveaxis(a, -1, 1), np.moveaxis(np.moveaxis(b, -1, 0), -1, 1)
        a, b = torch.from_numpy(np.ascontiguousarray(a)), torch.from_numpy(np.ascontiguousarray(b))
        if groups:
            a, b = a.flatten(1, 2), b.flatten(0, 1)
        function = [torch.conv1d, torch.conv2d, torch.conv3d][rank - 1]
        out = function(a, b, None, stride, 0, dilation, max(groups, 1)).numpy()
        return np.moveaxis(out, 1, -1) if channels_last else out.reshape(y.shape)

    return case, reference


CASES = {
    "kernels": [
        {"batch": 2, "groups": 0, "inputs": 5, "outputs": 19, "size": (11, 21), "kernel": (k, k), "stride": s}
        for k in (1, 3, 7)
        for s in (1, 2)
    ],
    "dilation and odd strides": [
        {"batch": 1, "groups": 0, "inputs": 3, "outputs": 9, "size": (15, 37), "kernel": (3, 2), "dilation": 2},
        {
            "batch": 1,
            "groups": 0,
            "inputs": 3,
            "outputs": 9,
            "size": (15, 37),
            "kernel": (3, 2),
            "dilation": 2,
            "stride": 2,
        },
        {"batch": 1, "groups": 0, "inputs": 3, "outputs": 9, "size": (15, 37), "kernel": (3, 3), "stride": 3},
        {"batch": 1, "groups": 0, "inputs": 3, "outputs": 9, "size": (6, 5), "kernel": (3, 3)},
        {"batch": 1, "groups": 0, "inputs": 3, "outputs": 20, "size": (9, 9), "kernel": (3, 3)},
        {"batch": 1, "groups": 0, "inputs": 2, "outputs": 20, "size": (18, 34), "kernel": (3, 3)},
    ],
    "groups": [
        {"batch": 2, "groups": 3, "inputs": 4, "outputs": 10, "size": (9, 20), "kernel": (3, 3)},
        {"batch": 2, "groups": 7, "inputs": 1, "outputs": 1, "size": (9, 20), "kernel": (3, 3)},
        {"batch": 2, "groups": 7, "inputs": 1, "outputs": 1, "size": (9, 40), "kernel": (3, 3), "stride": 2},
        {"batch": 1, "groups": 5, "inputs": 1, "outputs": 2, "size": (9, 20), "kernel": (5, 5)},
        {"batch": 1, "groups": 2, "inputs": 3, "outputs": 3, "size": (8, 8), "kernel": (3, 3)},
    ],
    "ranks": [
        {"batch": 2, "groups": 0, "inputs": 5, "outputs": 19, "size": (70,), "kernel": (3,)},
        {"batch": 2, "groups": 0, "inputs": 5, "outputs": 19, "size": (71,), "kernel": (4,), "stride": 2},
        {"batch": 2, "groups": 3, "inputs": 1, "outputs": 1, "size": (71,), "kernel": (4,)},
        {"batch": 1, "groups": 0, "inputs": 3, "outputs": 17, "size": (5, 7, 9), "kernel": (3, 3, 3)},
        {"batch": 1, "groups": 0, "inputs": 2, "outputs": 17, "size": (7, 9, 21), "kernel": (2, 3, 3), "stride": 2},
    ],
    "channels last": [
        {
            "batch": 2,
            "groups": 0,
            "inputs": 5,
            "outputs": 19,
            "size": (11, 21),
            "kernel": (3, 3),
            "stride": s,
            "channels_last": True,
        }
        for s in (1, 2)
    ]
    + [{"batch": 2, "groups": 0, "inputs": 5, "outputs": 2, "size": (11, 21), "kernel": (1, 1), "channels_last": True}],
    "narrow": [
        {
            "batch": 1,
            "groups": 0,
            "inputs": 4,
            "outputs": 17,
            "size": (9, 21),
            "kernel": (3, 3),
            "stride": s,
            "element": "bf16",
        }
        for s in (1, 2)
    ],
    "dynamic": [
        {"batch": 2, "groups": 0, "inputs": 4, "outputs": 17, "size": (9, 21), "kernel": (3, 3), "layout": "identity"},
        {"batch": 1, "groups": 3, "inputs": 1, "outputs": 1, "size": (9, 21), "kernel": (3, 3), "layout": "identity"},
    ],
    "deep": [{"batch": 1, "groups": 0, "inputs": 500, "outputs": 10, "size": (5, 12), "kernel": (3, 3)}],
}


@pytest.mark.parametrize("name", CASES)
def test_convolution(name):
    rng = np.random.default_rng(0)
    cases, references = zip(*[convolution(rng, **arguments) for arguments in CASES[name]], strict=True)
    check(list(cases), list(references))
