"""A process that loads, checks and times programs for its parent, which lives on if a kernel takes this process down.

A request is a line of JSON on descriptor 0; the answers are lines on what was descriptor 1: parts of a row, then ``done``.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import lamina_runtime

from ..workloads import as_tuple, runner
from .device import Call, Device, find_device, interleave
from .programs import PROGRAMS

MODES = {"compile": None, "autotune": "max-autotune-no-cudagraphs"}
"""torch.compile's, by the name of the stage. CUDA graphs are taken by ourselves, of every system alike."""

MEASURING_SECONDS = 1.5


class _Loaded:
    """A program with its inputs on a device, as eager and as a package."""

    def __init__(self, name: str, path: Path, device: Device):
        self.work = PROGRAMS[name]
        module, inputs = self.work.build()
        self.module = module.requires_grad_(False).to(device.device)
        self.inputs = tuple(x.to(device.device) for x in inputs)
        weights = {**dict(module.named_buffers(remove_duplicate=False)), **module.state_dict(keep_vars=True)}
        start = time.perf_counter()
        self.program = lamina_runtime.load(path, driver=device.driver, weights=weights)
        self.load_seconds = time.perf_counter() - start
        # No call waits for its checks: none of a system's may wait for the device.
        self.program.wait = False
        self.calls: dict[str, Call] = {"lamina": self.call(self.program), "eager": self.call(self.module)}
        self.graphs: dict[str, Call] = {}

    def call(self, function: Callable[..., Any]) -> Call:
        return runner(self.work, function, self.module, self.inputs)

    def launches(self) -> int:
        return len(self.program.image.hosts["main"].launches)


def errors(results: Sequence[torch.Tensor], references: Sequence[torch.Tensor]) -> float:
    """The largest relative error: of the whole (Frobenius), and of an element over the largest element; infinite if no number."""
    if len(results) != len(references):
        return float("inf")
    worst = 0.0
    for result, reference in zip(results, references):
        if result.shape != reference.shape:
            return float("inf")
        difference = result.double() - reference
        whole = difference.norm() / reference.norm().clamp_min(1e-300)
        element = difference.abs().max() / reference.abs().max().clamp_min(1e-300)
        found = float(torch.maximum(whole, element))
        worst = max(worst, found) if found == found else float("inf")
    return worst


def _in_double(loaded: _Loaded) -> tuple[torch.Tensor, ...]:
    """Eager's results in float64."""
    module = copy.deepcopy(loaded.module).double()
    inputs = tuple(x.double() if x.is_floating_point() else x for x in loaded.inputs)
    with torch.no_grad():
        return as_tuple(module(*inputs))


class _Worker:
    def __init__(self, folder: Path, device: Device, say: Callable[[dict[str, Any]], None]):
        self.folder, self.device, self.say = folder, device, say
        self.loaded: dict[str, _Loaded] = {}

    def serve(self, stage: str, name: str, file: str) -> None:
        known = self.loaded.get(name)
        if known is None:
            known = self.loaded[name] = _Loaded(name, self.folder / file, self.device)
        if stage == "check":
            self.check(known)
        else:
            self.compare(known, stage)

    def check(self, loaded: _Loaded) -> None:
        """Compares the package with eager, and times both."""
        row: dict[str, Any] = {
            "load_seconds": loaded.load_seconds,
            "launches": loaded.launches(),
            "image": loaded.program.image.chip,
        }
        results = as_tuple(loaded.calls["lamina"]())
        if not self.device.executes:
            self.say(row)
            self.time(loaded, ["lamina"])
            return
        loaded.program.raise_if_failed()
        reference = _in_double(loaded)
        row["error"] = errors(results, reference)
        row["eager_error"] = errors(as_tuple(loaded.calls["eager"]()), reference)
        row["tolerance"] = loaded.work.tolerance
        row["right"] = row["error"] <= row["tolerance"]
        self.say(row)
        if not row["right"]:
            return
        self.time(loaded, ["lamina", "eager"])
        error = errors(as_tuple(loaded.graphs["lamina"]()), reference)
        self.say({"graph_error": error, "right": error <= row["tolerance"]})

    def compare(self, loaded: _Loaded, stage: str) -> None:
        """Times what torch.compile makes of the program, beside the others."""
        # Programs may share a module's class, whose code TorchDynamo would otherwise compile for any sizes, or no more.
        torch._dynamo.reset()
        start = time.perf_counter()
        call = loaded.call(torch.compile(loaded.module, mode=MODES[stage], dynamic=False))
        call()
        self.say({f"{stage}_seconds": time.perf_counter() - start})
        loaded.calls = {name: loaded.calls[name] for name in ("lamina", "eager")} | {stage: call}
        self.time(loaded, list(loaded.calls))

    def time(self, loaded: _Loaded, names: Sequence[str]) -> None:
        for name in names:
            loaded.calls[name]()
        times = interleave(self.device, {name: loaded.calls[name] for name in names}, MEASURING_SECONDS)
        self.say({"call": times})
        for name in names:
            if name in loaded.graphs:
                continue
            try:
                graph = self.device.captured(loaded.calls[name])
            except Exception as error:
                if name == "lamina":
                    raise  # a package can always be recorded; the others need not
                self.say({"graph_failures": {name: f"{type(error).__name__}: {str(error)[:200]}"}})
                continue
            if graph is not None:
                loaded.graphs[name] = graph
        if loaded.graphs:
            self.say({"graph": interleave(self.device, loaded.graphs, MEASURING_SECONDS)})


def main() -> None:
    """Serves requests; the first argument is the folder of packages, the second a stub of the driver, or nothing."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # torch.compile prints what it tries
    warnings.filterwarnings("ignore")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        device = find_device(sys.argv[2] or None)
    except Exception as error:
        say({"failure": str(error), "done": True})
        return
    worker = _Worker(Path(sys.argv[1]), device, say)
    say({"device": device.describe(), "torch": torch.__version__, "done": True})
    for line in sys.stdin:
        try:
            worker.serve(**json.loads(line))
            say({"done": True})
        except Exception as error:
            say({"failure": f"{type(error).__name__}: {str(error)[:500]}", "done": True})
    os._exit(0)  # some libraries crash at the end of a process


if __name__ == "__main__":
    main()
