"""Reading .pt2 files of torch.export without running anything that is in them.

torch.export.load unpickles parts of a file, evaluates the sizes in it as Python, and looks up the functions that it
names. Here a file is first checked to have nothing that could be more than tensors, sizes and operators.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError

if TYPE_CHECKING:
    import torch

_TARGET = re.compile(r"torch\.ops\.\w+\.\w+(\.\w+)?|_operator\.\w+|math\.\w+|torch\.(sym_\w+|_check\w*|_sym_\w+)")
_DUNDER = re.compile(r"__(?!i?(and|or|xor|lshift|rshift)__)\w*")
_NAME = re.compile(r"[\w.]*")
_EXPRESSION = re.compile(r"(?:[\s0-9+\-*/%(),<>=!&|~]|\.\d|(?P<name>[A-Za-z_]\w*))*")
_QUOTED = re.compile(r"Symbol\('([a-z]{1,4}\d+)'((?:, ?[a-z]+=(?:True|False))*)\)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_SYMBOL = re.compile(r"[a-z]{1,4}\d+")
_LARGEST_MODEL = 1 << 30


def load_pt2(path: Path) -> torch.export.ExportedProgram:
    """The program of a file that torch.export.save wrote.

    Raises:
        UserError: it is none, it cannot be read, or it has more than tensors, sizes and operators.
    """
    _check(path)
    import torch

    before = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    try:
        program = torch.export.load(str(path))
    except Exception as error:
        raise UserError(f"{path} cannot be loaded: {_first_line(error)}") from error
    finally:
        if before is None:
            del os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"]
        else:
            os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = before
    # They are Python source, which program.module() would run.
    program._guards_code = []
    return program


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _check(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            inner = [name.partition("/")[2] for name in names]
            if "archive_format" not in inner or not any(name.startswith("models/") for name in inner):
                kind = (
                    "an old file of torch.export"
                    if "serialized_exported_program.json" in names
                    else "some other zip file"
                )
                raise UserError(f"{path} is no .pt2 file of torch.export.save but {kind}; export the model again")
            for name, place in zip(names, inner):
                _check_member(path, place)
                if place.startswith("models/"):
                    if archive.getinfo(name).file_size > _LARGEST_MODEL:
                        raise UserError(f"{path} has a model of {archive.getinfo(name).file_size} bytes")
                    _check_model(path, json.loads(archive.read(name)))
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, NotImplementedError, EOFError, RuntimeError) as error:
        raise UserError(f"{path} is no .pt2 file of torch.export.save: {_first_line(error)}") from error
    except Exception as error:  # zlib's and other errors of damaged members
        raise UserError(f"{path} is damaged: {_first_line(error)}") from error


def _check_member(path: Path, name: str) -> None:
    if name.startswith("data/aotinductor/"):
        raise UserError(f"{path} has compiled code in it, which is not loaded; export the model without it")
    if name.startswith("data/constants/") and re.match(r"(custom|opaque)_obj", name[len("data/constants/") :]):
        raise UserError(f"{path} has pickled objects in it, which are not loaded; export the model without them")


def _check_model(path: Path, value: Any) -> None:
    """Checks each string that torch evaluates, looks up or makes source code of."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(item, str):
                    stack.append(item)
                elif key == "expr_str" and not _is_expression(item):
                    raise UserError(f"{path} has {item[:80]!r} for a size")
                elif key == "target" and "graph" not in value and not _is_target(item):
                    raise UserError(f"{path} calls {item[:80]!r}, which is no operator")
                elif key in ("name", "as_name") and not _NAME.fullmatch(item):
                    raise UserError(f"{path} has {item[:80]!r} for a name")


def _is_target(text: str) -> bool:
    if not text.startswith(("torch", "_operator", "math", "#")):
        return True  # a name of a parameter; torch looks nothing else up
    return bool(_TARGET.fullmatch(text)) and not any(_DUNDER.fullmatch(part) for part in text.split("."))


def _is_expression(text: str) -> bool:
    """Whether a size is arithmetic over symbols and functions of sizes, and no other Python."""
    from torch.utils._sympy import functions

    known = {*functions.__all__, "Max", "Min", "Mod", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "True",
             "False", "Integer", "floor", "ceiling", "oo", "int_oo", "Piecewise", "Abs", "sqrt"}  # fmt: skip
    text = _QUOTED.sub(r"\1", text)
    if not _EXPRESSION.fullmatch(text):
        return False
    return all(word in known or _SYMBOL.fullmatch(word) for word in _WORD.findall(text))
