"""Small programs for the CUDA road, with arguments; each is deterministic."""

import inspect

import torch
from torch import nn

from lamina.frontend.export import import_program

DYNAMIC = torch.export.Dim.DYNAMIC


def seeded(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


class OptimizedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, x):
        return torch.relu(self.linear(x))


def in_place(x):
    x.add_(1)
    x.mul_(2)
    return x


def pointwise(x, y):
    return torch.tanh(x) * y + 1


def matmul(x, y):
    return x @ y


def softmax(x):
    return torch.softmax(x, -1)


# Name: model, arguments, dynamic shapes, further arguments to call with.
PROGRAMS = {
    "optimized_net": (OptimizedNet, (seeded(32, 512),), None, []),
    "softmax": (softmax, (seeded(7, 1000),), None, []),
    "softmax_bf16": (softmax, (seeded(7, 100, dtype=torch.bfloat16),), None, []),
    "softmax_dynamic": (softmax, (seeded(7, 1000),), (((DYNAMIC, DYNAMIC)),), [(seeded(3, 5001),), (seeded(70, 2),)]),
    "layer_norm": (lambda: nn.LayerNorm(300), (seeded(6, 300),), None, []),
    "layer_norm_f16": (lambda: nn.LayerNorm(300).half(), (seeded(6, 300, dtype=torch.float16),), None, []),
    "rms_norm": (lambda: nn.RMSNorm(100), (seeded(4, 8, 100),), None, []),
    "pointwise": (pointwise, (seeded(37, 5), seeded(5, seed=1)), ({0: DYNAMIC}, None), [(seeded(3000, 5), seeded(5))]),
    "in_place": (in_place, (seeded(1000),), None, []),
    "sum_all": (lambda x: x.sum(), (seeded(37, 50),), None, []),
    "mean_rows": (lambda x: x.mean(0), (seeded(300, 50),), None, []),
    "max_middle": (lambda x: x.amax(1), (seeded(5, 33, 17),), None, []),
    "argmax": (lambda x: x.argmax(-1), (seeded(9, 77),), None, []),
    "any": (lambda x: (x > 2).any(-1), (seeded(9, 77),), None, []),
    "transpose": (lambda x: (x.t() + 1).contiguous(), (seeded(37, 50),), None, []),
    "gelu_bf16": (lambda x: nn.functional.gelu(x), (seeded(37, 50, dtype=torch.bfloat16),), None, []),
    "gather": (lambda x, i: x[i], (seeded(37, 50), torch.tensor([[1, 36], [-37, 0]])), None, []),
    "concatenate": (lambda x, y: torch.cat([x, y * 2], 1), (seeded(9, 5), seeded(9, 7)), None, []),
    "pad": (lambda x: nn.functional.pad(x, (1, 2)) * 3, (seeded(9, 5),), None, []),
    "integers": (lambda x, y: (x // y) + (x % y) ** 3, (torch.arange(-50, 50), torch.arange(1, 101)), None, []),
    "matmul_f16": (matmul, (seeded(100, 80, dtype=torch.float16), seeded(80, 72, dtype=torch.float16)), None, []),
    "matmul_batch": (matmul, (seeded(3, 20, 70), seeded(3, 70, 33)), None, []),
    "matmul_dynamic": (
        matmul,
        (seeded(20, 64), seeded(64, 33)),
        ({0: DYNAMIC}, None),
        [(seeded(130, 64), seeded(64, 33))],
    ),
    "vector": (matmul, (seeded(1, 300), seeded(300, 50)), None, []),
    "matmul_skinny": (
        lambda x, y: torch.relu(x @ y + 1),
        (seeded(9, 4096, dtype=torch.float16), seeded(4096, 40, dtype=torch.float16)),
        None,
        [],
    ),
    "rotate": (
        lambda x, y: torch.cat([-x[..., 8:], x[..., :8]], -1) * y + x,
        (seeded(2, 3, 5, 16), seeded(5, 16)),
        None,
        [],
    ),
    "gather_clamped": (lambda x, i: x[i.clamp(0, 36)], (seeded(37, 50), torch.tensor([[1, 36], [-37, 400]])), None, []),
    "matmul_heads": (
        lambda x, y: torch.einsum("bhik,bhkj->bihj", x, y),
        (seeded(1, 3, 20, 16), seeded(1, 3, 16, 24)),
        None,
        [],
    ),
    "convolution": (lambda: nn.Conv2d(3, 4, 3, padding=1, stride=2), (seeded(2, 3, 9, 9),), None, []),
    "convolution_of_channels": (lambda: nn.Conv2d(40, 70, 3, padding=1), (seeded(2, 40, 14, 14),), None, []),
    "convolution_1x1": (lambda: nn.Conv2d(40, 20, 1, stride=2), (seeded(1, 40, 14, 14),), None, []),
    "convolution_groups": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=4), (seeded(2, 8, 9, 9),), None, []),
    "convolution_1d": (lambda: nn.Conv1d(8, 16, 3, padding=2, dilation=2), (seeded(2, 8, 19),), None, []),
    "max_pool": (lambda x: nn.functional.max_pool2d(x, 3, 2, 1), (seeded(1, 4, 12, 12),), None, []),
    "cumsum": (lambda x: x.cumsum(-1) * 2, (seeded(9, 77),), None, []),
    "cumsum_columns": (lambda x: x.cumsum(0), (seeded(77, 9),), None, []),
    "cumsum_f16": (lambda x: x.cumsum(0), (seeded(100, dtype=torch.float16),), None, []),
    "cumsum_in_chunks": (lambda x: (x * 2).cumsum(-1) + 1, (torch.arange(200000).reshape(2, -1) % 7,), None, []),
    "cumsum_at_other_places": (lambda x: x.cumsum(-1)[:, 3:] * 2, (seeded(5, 77),), None, []),
    "cumprod_dynamic": (
        lambda x: x.cumprod(-1),
        (seeded(3, 40),),
        ({0: DYNAMIC, 1: DYNAMIC},),
        [(seeded(2, 3000) / 100 + 1,)],
    ),
    "cummax": (lambda x: x.cummax(-1)[0], (seeded(9, 77),), None, []),
    "sort": (lambda x: x.sort(-1)[1], (seeded(9, 77),), None, []),
    "sort_descending": (lambda x: x.sort(descending=True)[0], (seeded(100),), None, []),
    "argsort_of_equal": (lambda x: x.argsort(stable=True), (torch.arange(100) % 7,), None, []),
    "sort_bf16": (lambda x: x.sort(dim=0, stable=True)[1], (seeded(50, 3, dtype=torch.bfloat16),), None, []),
    "sort_nan": (lambda x: x.log().sort(dim=-1, stable=True)[1], (seeded(4, 30),), None, []),
    "topk": (lambda x: x.topk(5)[0], (seeded(9, 77),), None, []),
    "scatter": (
        lambda x, i, u: x.index_put((i,), u),
        (seeded(9, 13), torch.tensor([3, 0, 7]), seeded(3, 13)),
        None,
        [],
    ),
    "scatter_sum": (
        lambda x, i, u: x.index_add(0, i, u),
        (seeded(9, 13), torch.tensor([3, 0, 3, 7, 3]), seeded(5, 13, seed=1)),
        None,
        [],
    ),
    "scatter_max": (
        lambda x, i, u: x.scatter_reduce(1, i, u, "amax"),
        (seeded(9, 13), torch.arange(180).reshape(9, 20) ** 2 % 13, seeded(9, 20, seed=1)),
        None,
        [],
    ),
    "scatter_keeps_the_last": (
        lambda x, i, u: x.scatter(1, i, u),
        (seeded(9, 13), torch.arange(180).reshape(9, 20) ** 2 % 13, seeded(9, 20, seed=1)),
        None,
        [],
    ),
    "slice_scatter": (lambda x, u: torch.slice_scatter(x, u, 1, 2, 12, 2), (seeded(9, 13), seeded(9, 5)), None, []),
}
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def get_model(name):
    model = PROGRAMS[name][0]
    torch.manual_seed(0)
    return model() if not inspect.signature(model).parameters else model


def get_program(name):
    _, arguments, dynamic, _ = PROGRAMS[name]
    model = get_model(name)
    return model, import_program(model, tuple(x.clone() for x in arguments), dynamic_shapes=dynamic)
