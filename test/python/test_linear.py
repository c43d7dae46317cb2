"""Linear layers through the whole CPU road: element types, depths beyond every block, few and many rows."""

import pytest
import torch

import lamina

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}


@pytest.mark.parametrize("freeze", [True, False], ids=["frozen", "inputs"])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(1, 1, 1), (7, 64, 48), (33, 3072, 80), (8, 5000, 50), (0, 4, 16)]
)
@torch.no_grad()
def test_linear(rows, depth, columns, dtype, freeze):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(depth, columns), torch.nn.ReLU()).to(dtype)
    x = torch.randn(rows, depth).to(dtype)
    program = lamina.compile(model, (x,), freeze=freeze)
    actual, eager = program(x), model(x)
    assert actual.dtype == dtype
    torch.testing.assert_close(actual, eager, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_one_kernel_and_one_launch():
    """A linear layer, its bias and its activation are one kernel; a copy of the weight is made once, before."""
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU())
    program = lamina.compile(model, (torch.randn(32, 512),))
    main = program.ir("planned").split("func.func @main")[1].split("kernel.func")[0]
    assert main.count("kernel.launch") == 1
