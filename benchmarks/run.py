"""The command: measures workloads on systems side by side, and writes the results, tables and a plot."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click

from . import measure, report

EXAMPLES = """
\b
Examples:
  python -m benchmarks                                        everything
  python -m benchmarks --workloads softmax,attention --rounds 5 --no-cold
  python -m benchmarks --workloads models --systems lamina,eager,inductor -o models
  python -m benchmarks --resume                               goes on where a stopped run was
  python -m benchmarks --machine f32=3000 --machine infMB=300 --report-only
"""

ORDER = ("lamina_frozen", "lamina", "eager", "inductor", "onnxruntime", "iree")


@click.command(help=__doc__, epilog=EXAMPLES, context_settings={"show_default": True})
@click.option("--workloads", default="all", help="Names and groups, separated by commas, or all; --list shows them.")
@click.option("--systems", default="all", help=f"Of {','.join(ORDER)}; all means those that are installed.")
@click.option("--threads", default=2, type=click.IntRange(1), help="Threads of every system.")
@click.option("--rounds", default=12, type=click.IntRange(3), help="Clean blocks to get of each system.")
@click.option("--cold/--no-cold", default=True, help="Measure cold starts too: a fresh process per system.")
@click.option("--steady/--no-steady", default=True, help="Measure steady times.")
@click.option("--others", default=0.2, help="CPUs that other processes may use during a clean block.")
@click.option(
    "--clock", default="wall", type=click.Choice(["wall", "cpu"]), help="cpu: for one thread, where it is busy."
)
@click.option("--timeout", default=300.0, help="Seconds for one system to start, and for one workload to be timed.")
@click.option("--machine", multiple=True, metavar="KEY=VALUE", help="A peak: f32, bf16 in GFLOP/s, <n>MB in GB/s.")
@click.option("--resume", is_flag=True, help="Skip what the folder has results of.")
@click.option("--report-only", is_flag=True, help="Only write the tables and the plot again.")
@click.option("--list", "show", is_flag=True, help="Show the workloads and groups.")
@click.option("-o", "--output", default="benchmark-results", type=click.Path(path_type=Path, file_okay=False))
def main(
    workloads: str,
    systems: str,
    threads: int,
    rounds: int,
    cold: bool,
    steady: bool,
    others: float,
    clock: str,
    timeout: float,
    machine: tuple[str, ...],
    resume: bool,
    report_only: bool,
    show: bool,
    output: Path,
) -> None:
    from .roofline import Machine
    from .workloads import WORKLOADS, select

    # As an exception, so that the process that measures ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if show:
        for workload in WORKLOADS.values():
            click.echo(f"{workload.name:24} {' '.join(sorted(workload.groups))}")
        return
    try:
        peaks, chosen = Machine.of(machine), [workload.name for workload in select(workloads)]
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if clock == "cpu":
        if threads != 1:
            raise click.ClickException("CPU time says something of one thread only: use --threads 1")
        others = float("inf")
    run = Run(output, threads, clock)
    columns = _choose_systems(systems)
    if not report_only:
        for number, name in enumerate(chosen):
            row = _Row(run, name, f"[{number + 1}/{len(chosen)}]", timeout, resume)
            if row.reference():
                if cold:
                    row.cold(columns)
                if steady:
                    row.steady(columns, rounds, others)
        run.clean()
    run.report(peaks)


def _choose_systems(text: str) -> list[str]:
    from .systems import missing

    wanted = ORDER if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    chosen = []
    for name in wanted:
        if name not in ORDER:
            raise click.ClickException(f"there is no system {name!r}; there are {', '.join(ORDER)}")
        package = missing(name)
        if not package:
            chosen.append(name)
        elif text == "all":
            click.echo(f"{name} is left out: {package} is not installed")
        else:
            raise click.ClickException(f"{name} needs the package {package}")
    return sorted(chosen, key=ORDER.index)


class Run:
    """A folder of results, to which each measurement is added as soon as it is there.

    Args:
        folder: where to write.
        threads: of every system.
        clock: of steady times.
    """

    def __init__(self, folder: Path, threads: int, clock: str):
        self.folder, self.threads, self.clock = folder, threads, clock
        self.path = folder / "results.json"
        self.results: report.Results = {"about": {}, "workloads": {}}
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            self.results = json.loads(self.path.read_text())
        for key, value in (("threads", threads), ("clock", clock)):
            before = self.results["about"].get(key, value)
            if before != value:
                raise click.ClickException(f"{self.path} has results for {key} {before}; use another folder")
        self.results["about"] = _about(threads, clock)

    def work(self, workload: str) -> Path:
        """The folder of what systems leave for one another's processes."""
        folder = (self.folder / "work" / workload).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def save(self) -> None:
        """Writes the results so that an interruption leaves either the old or the new ones."""
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(self.results, indent=1))
        draft.replace(self.path)

    def clean(self) -> None:
        """Removes what the systems left."""
        shutil.rmtree(self.folder / "work", ignore_errors=True)

    def report(self, peaks: Any) -> None:
        """Writes the tables and the plot of all results in the folder."""
        from .workloads import WORKLOADS

        rows = self.results["workloads"]
        self.results["workloads"] = {name: rows[name] for name in WORKLOADS if name in rows}
        self.save()
        systems = [s for s in ORDER if any(s in row.get(p, {}) for row in rows.values() for p in ("steady", "cold"))]
        text = report.markdown(self.results, systems, peaks)
        (self.folder / "results.md").write_text(text)
        report.plot(self.results, systems, peaks, self.folder / "results.png")
        click.echo(f"Wrote {self.path}, {self.folder / 'results.md'} and {self.folder / 'results.png'}")


def _about(threads: int, clock: str) -> dict[str, Any]:
    packages = {}
    for package in ("torch", "onnxruntime", "iree-base-compiler", "transformers"):
        try:
            packages[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    model = next((x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")), ":")
    processor = model.partition(":")[2].strip()
    return {"processor": processor, "threads": threads, "clock": clock, "Python": platform.python_version(), **packages}


class _Row:
    """The measurements of one workload."""

    def __init__(self, run: Run, workload: str, place: str, timeout: float, resume: bool):
        self.run, self.workload, self.place, self.timeout, self.resume = run, workload, place, timeout, resume
        self.row = run.results["workloads"].setdefault(workload, {})
        self.folder = run.work(workload)

    def _spawn(self, task: str, **arguments: Any) -> dict[str, Any]:
        arguments |= {"workload": self.workload, "folder": str(self.folder)}
        return measure.spawn(task, arguments, self.run.threads, self.timeout)

    def _say(self, what: str, outcome: str) -> None:
        click.echo(f"{time.strftime('%H:%M:%S')} {self.place:8} {self.workload:22} {what:20} {outcome}")

    def reference(self) -> bool:
        """Whether there is a reference to compare with."""
        if not ("flops" in self.row.get("cost", {}) and (self.folder / "reference.pt").exists()):
            self.row["cost"] = self._spawn("reference")
            self.run.save()
        if "error" in self.row["cost"]:
            self._say("reference", self.row["cost"]["error"])
        return "error" not in self.row["cost"]

    def cold(self, systems: list[str]) -> None:
        """Cold starts of all systems but eager, which compiles nothing."""
        results = self.row.setdefault("cold", {})
        for system in systems:
            if system == "eager" or (self.resume and system in results):
                continue
            for left in ("inductor", "model.onnx", "model.vmfb"):
                if left.startswith({"onnxruntime": "model.onnx", "iree": "model.vmfb"}.get(system, system)):
                    path = self.folder / left
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            results[system] = own = self._spawn("cold", system=system)
            self.run.save()
            if "error" in own:
                self._say(f"{system} cold", f"FAIL {' '.join(own['error'].split())[:160]}")
            else:
                memory = max(own["rss"], own["rss_child"]) / 1e6
                self._say(f"{system} cold", f"{own['seconds']:.1f} s ({own['cpu_seconds']:.1f} s CPU), {memory:.0f} MB")

    def steady(self, systems: list[str], rounds: int, others: float) -> None:
        """Steady times, all in one process; each system beside eager alone, if that process dies."""
        results = self.row.setdefault("steady", {})
        if self.resume and all(system in results for system in systems):
            return
        arguments = {"rounds": rounds, "others": others, "clock": self.run.clock}
        rows = self._spawn("steady", systems=systems, **arguments)
        if "error" in rows:
            self._say("steady", f"one by one: {' '.join(rows['error'].split())[:160]}")
            rows = {}
            for system in systems:
                pair = ["eager", system] if system != "eager" else [system]
                alone = self._spawn("steady", systems=pair, **arguments)
                rows[system] = alone if "error" in alone else alone[system]
        results.update(rows)
        self.run.save()
        for system in systems:
            own = rows[system]
            if "median" in own:
                share = f"  ×{own['to_eager']:.2f}" if "to_eager" in own else ""
                times = f"{1e3 * own['median']:9.3f} ms  best {1e3 * own['best']:9.3f}{share}"
                clean = f"{own['clean_blocks']}/{own['blocks']} clean"
                self._say(system, f"{times}  {clean}  error {own['error_norm']:.1e}")
            else:
                self._say(system, f"FAIL {' '.join(own['error'].split())[:160]}")
