"""Models as packages for CUDA: small ones interpreted against eager, layers of real widths as machine code."""

import pytest
import torch
from torch import nn

import lamina
import lamina_runtime
from cuda_programs import OptimizedNet, seeded
from package_harness import InterpreterDriver

pytest.importorskip("triton")
transformers = pytest.importorskip("transformers")


class LastHiddenState(nn.Module):
    """A model of tensors alone: one input, and the last hidden state."""

    def __init__(self, model: nn.Module, argument: str, **options: object):
        super().__init__()
        self.model, self.argument, self.options = model, argument, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(**{self.argument: x}, **self.options).last_hidden_state


def tokens(count, length):
    return torch.randint(0, count, (1, length), generator=torch.Generator().manual_seed(0))


def gpt2(**sizes):
    config = transformers.GPT2Config(**sizes)
    return LastHiddenState(transformers.GPT2Model(config), "input_ids", use_cache=False), config.vocab_size


def llama(**sizes):
    config = transformers.LlamaConfig(**sizes)
    return LastHiddenState(transformers.LlamaModel(config), "input_ids", use_cache=False), config.vocab_size


def small_gpt2():
    model, count = gpt2(n_layer=2, n_embd=32, n_head=2, vocab_size=100, n_positions=32)
    return model, tokens(count, 9)


def small_llama():
    model, count = llama(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
    )
    return model, tokens(count, 9)


class SmallConvolutionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.second = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        return self.last(self.second(self.first(x)).mean((2, 3)))


def small_convolution_net():
    return SmallConvolutionNet(), seeded(2, 3, 12, 12)


def optimized_net():
    return OptimizedNet(), seeded(32, 512)


def build(make):
    torch.manual_seed(0)
    model, x = make()
    return model.eval().requires_grad_(False), x


@pytest.mark.parametrize("make", [small_gpt2, small_llama, small_convolution_net, optimized_net])
def test_small_models(make, tmp_path):
    model, x = build(make)
    program = lamina.compile(model, (x,), target="cuda:sm_90", fallback="error")
    program.save(tmp_path / "p", ptx=False)
    mine = lamina_runtime.load(tmp_path / "p", driver=InterpreterDriver(program.program.module))
    torch.testing.assert_close(mine(x), model(x), rtol=1e-4, atol=1e-4)


def gpt2_layer():
    model, count = gpt2(n_layer=1)
    return model, tokens(count, 128)


def bert_layer():
    model = transformers.BertModel(transformers.BertConfig(num_hidden_layers=1))
    return LastHiddenState(model, "input_ids"), tokens(30522, 128)


def llama_layer():
    model, count = llama(
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=1,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=32000,
    )
    return model, tokens(count, 128)


def vit_layer():
    model = transformers.ViTModel(transformers.ViTConfig(num_hidden_layers=1))
    return LastHiddenState(model, "pixel_values"), seeded(1, 3, 224, 224)


def resnet_stage():
    config = transformers.ResNetConfig(depths=[1], hidden_sizes=[256])
    return LastHiddenState(transformers.ResNetModel(config), "pixel_values"), seeded(1, 3, 224, 224)


@pytest.mark.parametrize("make", [gpt2_layer, bert_layer, llama_layer, vit_layer, resnet_stage])
def test_layers_of_real_widths_spill_nothing(make):
    model, x = build(make)
    program = lamina.compile(model, (x,), target="cuda:sm_80,sm_90", fallback="error")
    for chip, kernels in program.executable.report.items():
        spilling = {name: kernel["spills"] for name, kernel in kernels.items() if kernel["spills"]}
        assert not spilling, chip
