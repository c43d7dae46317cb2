"""The documentation of the prim dialect: up to date, and its examples verify."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "prim.md"
PASSES = sorted(ROOT.glob("lib/**/Passes.td"))
OPT = ROOT / "python" / "lamina" / "_lib" / "lamina-opt"


def find_examples(text: str) -> list[str]:
    return re.findall(r"```mlir\n(.*?)```", text, flags=re.DOTALL)


def verify(examples: list[str]) -> None:
    """Parses and verifies the examples, each on its own, with lamina-opt."""
    command = [str(OPT) if OPT.exists() else "lamina-opt", "--split-input-file", "-o", os.devnull]
    result = subprocess.run(command, input="\n// -----\n".join(examples), text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


def test_page_is_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_op_has_an_example_of_itself() -> None:
    sections = re.split(r"^### `prim\.(\w+)`$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    names, texts = sections[::2], sections[1::2]
    assert len(names) <= 128
    for name, text in zip(names, texts, strict=True):
        examples = find_examples(text)
        assert examples, name
        assert any(f"prim.{name} " in example for example in examples), name
        assert "C1:" in text, name
        assert "**Element types.**" in text, name


def test_examples_of_ops_verify() -> None:
    verify(find_examples(PAGE.read_text()))


@pytest.mark.parametrize("path", PASSES, ids=lambda path: path.parent.name)
def test_examples_of_passes_verify(path: pathlib.Path) -> None:
    examples = find_examples(path.read_text())
    if examples:
        verify(examples)
