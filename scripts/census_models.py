#!/usr/bin/env python3
"""Writes docs/benchmarks/cuda_plan.md: what Lamina launches and moves for five models on NVIDIA's chips, beside TorchInductor.

    scripts/census_models.py                     # the whole page; no GPU is needed
    scripts/census_models.py --only gpt2 --print # some programs, to stdout
    scripts/census_models.py --plan --print      # launches and bytes alone, which needs no Triton

TorchInductor's figures are those of scripts/inductor_plan.json.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from lamina.census import PEAKS, Census, LaunchWork, count_work

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "cuda_plan.md"
INDUCTOR = ROOT / "scripts" / "inductor_plan.json"
CHIPS = ("sm_80", "sm_90", "sm_100", "sm_120")
PLAN_CHIP = "sm_90"
"""The chip whose launches are compared: TorchInductor's are for an H100."""

Made = tuple[nn.Module, torch.Tensor]


class LastHiddenState(nn.Module):
    """A model of the library transformers as a function of one tensor."""

    def __init__(self, model: nn.Module, argument: str, **options: Any) -> None:
        super().__init__()
        self.model, self.argument, self.options = model, argument, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(**{self.argument: x}, **self.options).last_hidden_state


class OptimizedNet(nn.Module):
    """A linear layer and its activation."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def _gpt2(layers: int) -> Made:
    from transformers import GPT2Config, GPT2Model

    return LastHiddenState(GPT2Model(GPT2Config(n_layer=layers)), "input_ids", use_cache=False), _ids()


def _bert() -> Made:
    from transformers import BertConfig, BertModel

    return LastHiddenState(BertModel(BertConfig()), "input_ids"), _ids()


def _llama() -> Made:
    from transformers import LlamaConfig, LlamaModel

    sizes = {"hidden_size": 512, "intermediate_size": 1408, "num_attention_heads": 8, "num_key_value_heads": 2}
    return LastHiddenState(LlamaModel(LlamaConfig(num_hidden_layers=8, **sizes)), "input_ids", use_cache=False), _ids()


def _vit() -> Made:
    from transformers import ViTConfig, ViTModel

    return LastHiddenState(ViTModel(ViTConfig()), "pixel_values"), _image()


def _resnet50() -> Made:
    from transformers import ResNetConfig, ResNetModel

    return LastHiddenState(ResNetModel(ResNetConfig()), "pixel_values"), _image()


def _ids() -> torch.Tensor:
    return torch.zeros(1, 128, dtype=torch.long)


def _image() -> torch.Tensor:
    return torch.zeros(1, 3, 224, 224)


PROGRAMS: dict[str, Callable[[], Made]] = {
    "optimized_net": lambda: (OptimizedNet(), torch.zeros(32, 512)),
    "gpt2_1_layer": lambda: _gpt2(1),
    "gpt2": lambda: _gpt2(12),
    "bert": _bert,
    "llama": _llama,
    "vit": _vit,
    "resnet50": _resnet50,
}


def build(name: str) -> Made:
    """A program's module and its argument."""
    torch.manual_seed(0)
    module, x = PROGRAMS[name]()
    return module.eval().requires_grad_(False), x


def read_plan(name: str) -> list[LaunchWork]:
    """The launches of a call."""
    from lamina.frontend.export import import_program
    from lamina.targets import get_target

    module, x = build(name)
    work = count_work(import_program(module, (x,), freeze=True).module, get_target(f"cuda:{PLAN_CHIP}"))
    return [launch.at(()) for launch in work["main"]]


def read_census(name: str) -> dict[str, Census]:
    """The censuses of a program."""
    import lamina

    module, x = build(name)
    return lamina.compile(module, (x,), target=f"cuda:{','.join(CHIPS)}", fallback="error").census(x)


# ---- the page


def row(cells: list[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def plan_table(plans: dict[str, tuple[int, int]], inductor: dict[str, Any]) -> list[str]:
    """Launches and bytes beside TorchInductor's, of each program."""
    head = ["program", "launches", "Inductor: kernels + library calls", "fewer by", "MB moved", "Inductor: MB moved"]
    lines = [row([*head, "Inductor's own count"]), row(["---", *["---:"] * 6])]
    for name, (launches, moved) in plans.items():
        other = inductor["programs"][name]
        count = other["kernels"] + other["library_calls"]
        lines.append(
            row(
                [
                    name,
                    launches,
                    f"{other['kernels']} + {other['library_calls']} = {count}",
                    f"{1 - launches / count:.0%}",
                    f"{moved / 1e6:.1f}",
                    f"{other['touched'] / 1e6:.1f}",
                    f"{other['moved'] / 1e6:.1f}",
                ]
            )
        )
    return lines


def chip_table(censuses: dict[str, dict[str, Census]]) -> list[str]:
    """What the kernels are, of each program and chip."""
    head = [
        "program",
        "chip",
        "kernels",
        "launches",
        "most registers",
        "spilling",
        "most shared",
        "tensor-core kernels",
    ]
    lines = [row([*head, "code", "least ms"]), row(["---", "---", *["---:"] * 8])]
    for name, chips in censuses.items():
        for chip, census in chips.items():
            kernels = census.of_host()
            assert census.seconds is not None
            lines.append(
                row(
                    [
                        name,
                        chip,
                        len(kernels),
                        census.launches,
                        max(kernel.registers or 0 for kernel in kernels),
                        sum(bool(kernel.spills) for kernel in kernels),
                        f"{max(kernel.shared for kernel in kernels) / 1024:.0f} KiB",
                        sum(bool(kernel.count("tensor")) for kernel in kernels),
                        f"{sum(kernel.code for kernel in kernels) / 1024:.0f} KiB",
                        f"{census.seconds * 1e3:.4f}",
                    ]
                )
            )
    return lines


def page(plans: dict[str, tuple[int, int]], censuses: dict[str, dict[str, Census]]) -> str:
    inductor = json.loads(INDUCTOR.read_text())
    lines = [
        "# What runs on a GPU, counted without one",
        "",
        "<!-- written by scripts/census_models.py -->",
        "",
        "Forward passes in f32, batch 1, of 128 tokens or an image of 224 x 224, compiled on a machine without a GPU. Nothing on",
        "this page is a measured time. Weights are frozen, so that what depends on them alone is computed once, at load; a",
        "launch is a launch of a call. Lamina calls no library.",
        "",
        f"## Launches and bytes beside TorchInductor ({PLAN_CHIP})",
        "",
        *plan_table(plans, inductor),
        "",
        f"TorchInductor is that of torch {inductor['torch']}, its plan for {inductor['device']}, read on {inductor['date']}. Bytes are",
        "those of every tensor that a kernel or a library call reads or writes, each touched once; of a table that is looked up, no",
        "more than what the indices can reach. The last column is what Inductor says itself: it counts such tables, and tensors of",
        "which a kernel reads a part, whole.",
    ]
    if censuses:
        lines += [
            "",
            "## Kernels by chip",
            "",
            *chip_table(censuses),
            "",
            "The least time is the sum over the launches of the larger of two times: bytes over the memory's bandwidth, and operations",
            "over the peak of the units that may do them (products of f32 are not rounded to tf32, so that they are the vector units').",
            "",
            "| chip | product | GB/s | f32 TFLOP/s | f16 TFLOP/s | source |",
            "| --- | --- | ---: | ---: | ---: | --- |",
            *(
                row(
                    [
                        chip,
                        p.product,
                        f"{p.bandwidth / 1e9:g}",
                        f"{p.vector['f32'] / 1e12:g}",
                        f"{p.matrix['f16'] / 1e12:g}",
                        p.source,
                    ]
                )
                for chip, p in PEAKS.items()
                if chip in CHIPS
            ),
            "",
            "`lamina compile model.py:Net --input ... --target cuda:sm_90 --emit=census` has the same for each kernel, with its",
            "instructions.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS), help="some of the programs"
    )
    parser.add_argument("--plan", action="store_true", help="launches and bytes alone")
    parser.add_argument("--print", action="store_true", help="to stdout instead of the page")
    args = parser.parse_args()
    plans, censuses = {}, {}
    for name in args.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        if args.plan:
            works = read_plan(name)
            plans[name] = (len(works), sum(work.read + work.written for work in works))
        else:
            censuses[name] = read_census(name)
            plans[name] = (censuses[name][PLAN_CHIP].launches, censuses[name][PLAN_CHIP].moved)
    text = page(plans, censuses)
    if args.print:
        print(text, end="")
    elif args.plan or len(args.only) < len(PROGRAMS):
        parser.error("a part of the page cannot be written: add --print")
    else:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
