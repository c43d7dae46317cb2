"""A process that compiles kernels with Triton for its parent, one after the other, until its input ends.

A request is a line of JSON; the answer is a line of JSON and then the bytes that it announces. What Triton, LLVM and an assembler
print goes to the file that the parent gave as stderr: emptied before each kernel, and read by the parent if this dies.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO


def main() -> None:
    """Serves requests on file descriptor 0 and answers on what was descriptor 1."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # kernels are equal whatever their lines
    for line in sys.stdin.buffer:
        _answer(answers, *_serve(json.loads(line)))


def _serve(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    from lamina.targets.triton import Settings, compile_stages, find_chip

    os.ftruncate(2, 0)
    os.lseek(2, 0, os.SEEK_SET)
    try:
        settings = Settings(**request["settings"])
        tools, chip = find_chip(settings.chip)
        tools.prepare()
        made, facts = compile_stages(request["text"], settings)
        facts |= tools.facts(made[tools.assembly], facts["name"], chip.arch, _log())
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "log": _log()}, {}
    return facts, made


def _log() -> str:
    sys.stdout.flush()
    sys.stderr.flush()
    size = os.fstat(2).st_size
    return os.pread(2, size, 0).decode(errors="replace")


def _answer(answers: BinaryIO, header: dict[str, Any], made: dict[str, Any]) -> None:
    data = {name: text if isinstance(text, bytes) else text.encode() for name, text in made.items()}
    header["made"] = {name: len(value) for name, value in data.items()}
    answers.write(json.dumps(header).encode() + b"\n" + b"".join(data.values()))
    answers.flush()
