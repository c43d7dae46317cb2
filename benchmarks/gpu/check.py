"""Runs a folder of packages on a GPU beside eager and torch.compile, within a budget of time, and prints one table.

Every program is first checked against eager in float64 and timed beside eager; then torch.compile and its max-autotune
follow while there is time. A call is timed as a user makes it, by CUDA events around calls in a row, and once more as a CUDA
graph of its launches; medians of blocks that take turns. float32 is IEEE's for all (no TF32).
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from .programs import PROGRAMS, read_index
from .programs import select as select_programs

STAGES = ("check", "compile", "autotune")
SYSTEMS = ("lamina", "eager", "compile", "autotune")
START_SECONDS = 180.0
_ROOT = Path(__file__).parents[2]


class WorkerFailure(Exception):
    """A worker that died, or took too long."""


class Worker:
    """A process of benchmarks.gpu.worker; a new one takes the place of one that died."""

    def __init__(self, folder: Path, stub: Optional[str]):
        self._arguments = [str(folder), stub or ""]
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._log = tempfile.TemporaryFile()
        self._unread = b""

    def start(self, timeout: float) -> dict[str, Any]:
        """What the worker says of the device.

        Raises:
            WorkerFailure: there is none.
        """
        self._log.truncate(0)
        self._unread = b""
        paths = [str(_ROOT), str(_ROOT / "python"), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gpu.worker", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
            start_new_session=True,  # torch.compile's own workers end with it
        )
        return self._answers(timeout)

    def ask(self, stage: str, name: str, file: str, timeout: float) -> tuple[dict[str, Any], Optional[str]]:
        """What a stage found of a program, and why it ended early, if it did."""
        row: dict[str, Any] = {}
        try:
            if self._process is None:
                self.start(START_SECONDS)
            assert self._process is not None and self._process.stdin is not None
            request = json.dumps({"stage": stage, "name": name, "file": file})
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
            self._answers(timeout, row)
        except (WorkerFailure, OSError) as error:
            self.stop()
            return row, str(error)
        return row, row.pop("failure", None)

    def _answers(self, timeout: float, into: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        """All answers to a request, as one."""
        row = {} if into is None else into
        end = time.monotonic() + timeout
        while not row.pop("done", False):
            line, more, rest = self._unread.partition(b"\n")
            if more:
                self._unread = rest
                for key, value in json.loads(line).items():
                    row[key] = {**row.get(key, {}), **value} if isinstance(value, dict) else value
                continue
            assert self._process is not None and self._process.stdout is not None
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise WorkerFailure(f"no result after {timeout:.0f} s")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise WorkerFailure(f"the process ended with {self._process.wait()}: {self._last_words()}")
            self._unread += data
        return row

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"

    def stop(self) -> None:
        """Ends the worker and what it has started."""
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except OSError:
                pass
        self._process.wait()
        self._process = None


def run(worker: Worker, programs: dict[str, dict[str, Any]], stages: Sequence[str], budget: float) -> dict[str, Any]:
    """The rows of all programs.

    Args:
        worker: has been started.
        programs: by name, as the index has them.
        stages: of STAGES.
        budget: seconds for all.
    """
    end = time.monotonic() + budget
    rows: dict[str, dict[str, Any]] = {name: {} for name in programs}
    for name, facts in programs.items():
        if "error" in facts:
            rows[name]["failure"] = f"it was not compiled: {facts['error'].splitlines()[0]}"
    for stage in stages:
        waiting = [name for name, row in rows.items() if "failure" not in row and row.get("right", True)]
        for position, name in enumerate(waiting):
            left = end - time.monotonic()
            share = left / (len(waiting) - position)
            if left < 3:
                rows[name].setdefault("skipped", f"no time was left for {stage}")
                continue
            found, why = worker.ask(stage, name, programs[name]["file"], min(left, max(30.0, 3 * share)))
            for key, value in found.items():
                rows[name][key] = {**rows[name].get(key, {}), **value} if isinstance(value, dict) else value
            if why is not None:
                # What torch.compile cannot do is no failure of the package's.
                rows[name]["failure" if stage == "check" else f"{stage}_failure"] = why
    return rows


# ---- the table


def _time(value: Optional[float]) -> str:
    return "" if value is None else f"{value * 1e6:.1f}" if value < 1e-3 else f"{value * 1e6:.0f}"


def _ratio(row: dict[str, Any], kind: str, systems: Sequence[str]) -> str:
    """How many times as long the best of some systems takes."""
    times = row.get(kind, {})
    others = [times[system] for system in systems if system in times]
    return f"{min(others) / times['lamina']:.2f}" if others and "lamina" in times else ""


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    result = "FAILED" if "failure" in row else "" if "right" not in row else "right" if row["right"] else "WRONG"
    error = f"{row['error']:.0e}/{row['eager_error']:.0e}" if "error" in row else ""
    cells = [name, result, error, str(row.get("launches", "")), row.get("image", "")]
    for kind in ("call", "graph"):
        cells += [_time(row.get(kind, {}).get(system)) for system in SYSTEMS]
        cells += [_ratio(row, kind, ["eager"]), _ratio(row, kind, ["compile", "autotune"])]
    return cells


def table(rows: dict[str, dict[str, Any]]) -> str:
    """One line a program, in columns."""
    times = [*SYSTEMS, "x eager", "x best"]
    head = [
        ["", "", "error:", "", "", "call, us:", *[""] * 5, "graph, us:", *[""] * 5],
        ["program", "result", "lamina/eager", "launches", "image", *times, *times],
    ]
    lines = [*head, *(_cells(name, row) for name, row in rows.items())]
    # A column that says nothing is left out; the first of each group of times has the group's name.
    kept = [k for k in range(len(head[1])) if head[0][k].endswith("us:") or any(line[k] for line in lines[2:])]
    lines = [[line[k] for k in kept] for line in lines]
    widths = [max(len(line[k]) for line in lines) for k in range(len(kept))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    text.insert(2, "  ".join("-" * width for width in widths))
    for name, row in rows.items():
        for key in ("failure", "skipped", "compile_failure", "autotune_failure"):
            if key in row:
                text.append(f"{name}: {key.removesuffix('_failure')}: {row[key]}")
    return "\n".join(text)


NOTHING_RAN = "NO GPU RAN"
_STUB = (
    f"{NOTHING_RAN}: the driver is a stub, which executes nothing. Packages were loaded and their launches handed over; no result\n"
    "was checked, and the times are of the host's side of a call alone."
)


def main() -> int:
    """The command; 0 if all programs are right, 1 if one is not, 2 if there is no GPU."""
    parser = argparse.ArgumentParser(prog="scripts/gpu_check", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of packages, made by python -m benchmarks.gpu.build")
    parser.add_argument("--only", default="", help="names and groups of programs, with commas between them")
    parser.add_argument("--stages", default=",".join(STAGES), help="of check, compile (torch.compile) and autotune")
    parser.add_argument("--seconds", type=float, default=420, help="after which nothing new begins")
    parser.add_argument("--stub", help="a library in the place of the CUDA driver, which executes nothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-check.json"), help="all figures, as JSON")
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        index = read_index(arguments.folder)
        chosen = set(select_programs(arguments.only))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    programs = {name: index[name] for name in PROGRAMS if name in index and name in chosen}
    stages = [stage for stage in STAGES if stage in arguments.stages.split(",")]
    if not programs or not stages:
        parser.error("nothing is chosen")
    worker = Worker(arguments.folder.resolve(), arguments.stub)
    try:
        try:
            facts = worker.start(START_SECONDS)
        except WorkerFailure as error:
            facts = {"failure": str(error)}
        if "failure" in facts:
            print(f"{NOTHING_RAN}: {facts['failure']}", file=sys.stderr)
            return 2
        if arguments.stub:
            stages = ["check"]  # there is nothing to compare with
        rows = run(worker, programs, stages, arguments.seconds - (time.monotonic() - start))
    finally:
        worker.stop()
    ran = not arguments.stub
    seconds = round(time.monotonic() - start, 1)
    report = {"gpu_ran": ran, **facts, "seconds": seconds, "rows": rows}
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    device = facts["device"]
    print(f"{device['name']} ({device['chip']}), torch {facts['torch']}, float32 without TF32, {seconds} s")
    print(table(rows))
    wrong = [name for name, row in rows.items() if "failure" in row or not row.get("right", not ran)]
    if ran:
        print(f"{len(rows) - len(wrong)} of {len(rows)} programs are right")
    else:
        print(f"{len(rows) - len(wrong)} of {len(rows)} programs were loaded and launched\n{_STUB}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
