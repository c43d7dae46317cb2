"""``python -m benchmarks.gpu.build FOLDER``: compiles the programs to packages, on a machine that needs no GPU.

Weights are left out: they are made from a seed where the packages are run.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import lamina

from .programs import INDEX, PROGRAMS, select

CHIPS = "sm_80,sm_90,sm_100,sm_120"


def build(name: str, folder: Path, chips: str) -> dict[str, Any]:
    """Compiles a program into the folder; returns its row of the index."""
    start = time.perf_counter()
    model, inputs = PROGRAMS[name].build()
    model.requires_grad_(False)
    try:
        program = lamina.compile(model, inputs, target=f"cuda:{chips}", fallback="error")
        file = f"{name}.lamina"
        program.save(folder / file, without=model.state_dict(), ptx="sm_80" in chips.split(","))
    except lamina.CompileError as error:
        return {"error": str(error)}
    report = program.executable.report
    spilling = sorted({kernel for each in report.values() for kernel, facts in each.items() if facts["spills"]})
    return {
        "file": file,
        "bytes": (folder / file).stat().st_size,
        "kernels": {chip: len(kernels) for chip, kernels in report.items()},
        "spilling": spilling,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.build", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names and groups of programs, with commas between them")
    parser.add_argument("--chips", default=CHIPS)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / INDEX
    index = json.loads(path.read_text()) if path.exists() else {"programs": {}}
    index["chips"] = arguments.chips.split(",")
    for name in select(arguments.only):
        row = index["programs"][name] = build(name, folder, arguments.chips)
        said = row.get("error") or f"{row['bytes']} bytes, kernels {row['kernels']}, {row['seconds']} s"
        print(f"{name:24} {said}", flush=True)
        path.write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
