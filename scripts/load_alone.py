#!/usr/bin/env python3
"""Loads packages where nothing but torch and lamina_runtime may be used, up to the driver: ``load_alone.py PACKAGE...``.

Everything is checked and loaded that needs no driver, by one that takes any kernel and runs none, with zeros for weights that
were left out; then the package is loaded as a user loads it, which on a machine without a GPU ends at the driver. Prints a line
for each package, the error among them.
"""

import contextlib
import sys
from pathlib import Path

COMPILER = ("lamina", "mlir", "triton", "llvm", "ml_dtypes", "safetensors")
"""What a compiled program must run without."""


class _Refuse:
    """Makes imports of the compiler fail, where it is installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in COMPILER:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, _Refuse())

import torch  # noqa: E402

import lamina_runtime  # noqa: E402
from lamina_runtime.describe import describe  # noqa: E402


class _AnyKernel:
    """A driver that takes any kernel and runs none."""

    device = torch.device("cpu")
    shared_memory = 1 << 20

    def __init__(self, capability):
        self.capability = capability

    def load(self, image, kernel):
        assert image[:4] == b"\x7fELF" or b".version" in image, kernel.name
        return kernel

    def bind(self, function, launch):
        return lambda pointers, scratch, stream: None

    def stream(self):
        return 0

    def capturing(self):
        return False

    def active(self):
        return contextlib.nullcontext()


def load(path):
    """What loading a package ended with."""
    package = lamina_runtime.read(path)
    assert describe(package)
    weights = {
        name: torch.zeros(facts["sizes"], dtype=getattr(torch, facts["dtype"]))
        for name, facts in package.weights.items()
    }
    kernels = 0
    for chip in package.images:
        driver = _AnyKernel(int(chip.removeprefix("sm_")))
        kernels += len(lamina_runtime.load(path, driver=driver, weights=weights).kernels)
    facts = f"{len(package.images)} chips, {kernels} kernels"
    try:
        lamina_runtime.load(path, weights=weights)
    except lamina_runtime.DriverError as error:
        return f"{facts}; DriverError: {error}"
    return f"{facts}; loaded on the GPU"


for path in sys.argv[1:]:
    print(f"{Path(path).name}: {load(path)}", flush=True)
loaded = {name.partition(".")[0] for name in sys.modules} & set(COMPILER)
assert not loaded, loaded
