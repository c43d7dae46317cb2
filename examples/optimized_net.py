"""Compiles a linear layer with ReLU, shows what it became, and checks that it computes what eager PyTorch computes."""

import torch

import lamina


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(512, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def main() -> None:
    torch.manual_seed(0)
    model, x = Net().eval(), torch.randn(32, 512)
    with torch.no_grad():
        program = lamina.compile(model, (x,), target="cpu")
        result, eager = program(x), model(x)
    print(program.ir("fused"))
    torch.testing.assert_close(result, eager, rtol=1e-5, atol=1e-5)
    print(f"{tuple(result.shape)} equals eager PyTorch; largest difference {(result - eager).abs().max().item():.2g}")


if __name__ == "__main__":
    main()
