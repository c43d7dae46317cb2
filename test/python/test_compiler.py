"""Copies of modules, and what importing the package costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from lamina import dialects
from lamina.compiler import copy_module

DIALECTS = Path(__file__).parents[1] / "Dialect"


@pytest.mark.parametrize("path", sorted(DIALECTS.glob("*/ops.mlir")), ids=lambda path: path.parent.name)
def test_a_copy_is_equal_and_has_a_context_of_its_own(path):
    """Ops, attributes, size expressions and locations."""
    for part in path.read_text().split("// -----\n"):
        module = dialects.parse(part)
        copy = copy_module(module)
        assert copy.context is not module.context
        assert copy.operation.get_asm(enable_debug_info=True) == module.operation.get_asm(enable_debug_info=True)


def output_of(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_nothing_heavy():
    heavy = ("torch", "mlir.ir", "torch._dynamo", "triton", "torch_mlir")
    assert output_of(f"import sys, lamina; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_import_is_fast():
    """What the package costs beyond PyTorch, in CPU seconds: itself, and all that compiles for the CPU."""
    code = (
        "import time, torch._dynamo; start = time.process_time(); import lamina{}; print(time.process_time() - start)"
    )
    assert float(output_of(code.format(""))) < 0.1
    assert float(output_of(code.format(", lamina.frontend.dynamo, lamina.targets.cpu"))) < 0.5
