"""Tables in Markdown and a plot, of the results that `run` merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .roofline import Machine

Results = dict[str, Any]


def ratio(row: dict[str, Any], system: str, base: str) -> float | None:
    """Median time of a system over that of another, of one workload; over eager's, from blocks of the same rounds."""
    own, other = row.get("steady", {}).get(system, {}), row.get("steady", {}).get(base, {})
    if base == "eager" and "to_eager" in own:
        return own["to_eager"]
    return own["median"] / other["median"] if "median" in own and "median" in other else None


def _milliseconds(seconds: float) -> str:
    value = 1e3 * seconds
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = list(heads)
    lines = ["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines) + "\n"


def _steady(results: Results, systems: list[str], machine: Machine) -> str:
    rows = []
    for name, row in results["workloads"].items():
        steady = row.get("steady", {})
        limit, kind = machine.limit(row["cost"]) if "cost" in row else (0.0, "")
        cells = [name, f"{_milliseconds(limit)} {kind}" if limit else ""]
        for system in systems:
            own = steady.get(system, {})
            if "median" not in own:
                cells.append("FAIL" if "error" in own else "")
                continue
            mark = "~" if own["clean_blocks"] < 3 else ""
            share = f" ×{own['to_eager']:.2f}" if system != "eager" and "to_eager" in own else ""
            cells.append(f"{mark}{_milliseconds(own['median'])} ({_milliseconds(own['best'])}){share}")
        medians = {system: steady[system]["median"] for system in systems if "median" in steady.get(system, {})}
        best = min(medians, key=lambda system: medians[system], default="")
        cells += [f"{best} {medians[best] / limit:.2f}" if best and limit else ""]
        rows.append(cells)
    return table(["workload", "limit", *systems, "best / limit"], rows)


def _by_system(results: Results, systems: list[str], cell: Callable[[dict[str, Any], str], str]) -> str:
    return table(
        ["workload", *systems],
        ([name, *(cell(row, system) for system in systems)] for name, row in results["workloads"].items()),
    )


def _error_cell(row: dict[str, Any], system: str) -> str:
    error = row.get("steady", {}).get(system, {}).get("error_norm")
    return "" if error is None else f"{error:.1e}"


def _cold_cell(row: dict[str, Any], system: str) -> str:
    cold = row.get("cold", {}).get(system, {})
    if "seconds" not in cold:
        return "FAIL" if cold else ""
    memory, growth = max(cold["rss"], cold["rss_child"]) / 1e6, (cold["rss"] - cold["rss_before"]) / 1e6
    return f"{cold['seconds']:.1f} ({cold['cpu_seconds']:.1f}) [{memory:.0f}, +{growth:.0f}]"


def _ratios(results: Results, systems: list[str]) -> str:
    """Each of Lamina's columns over eager and over Inductor, the worst first."""
    ours = [system for system in systems if system.startswith("lamina")]
    pairs = [(system, base) for system in ours for base in ("eager", "inductor") if base in systems]
    rows = []
    for name, row in results["workloads"].items():
        values = [ratio(row, *pair) for pair in pairs]
        if any(value is not None for value in values):
            rows.append((max(value or 0.0 for value in values), name, values))
    rows.sort(key=lambda row: -row[0])
    text = [[name, *("" if value is None else f"{value:.2f}" for value in values)] for _, name, values in rows]
    return table(["workload", *(f"{system} / {base}" for system, base in pairs)], text)


def _failures(results: Results) -> str:
    lines = []
    for name, row in results["workloads"].items():
        if "error" in row.get("cost", {}):
            lines.append(f"- {name}: {row['cost']['error']}")
        for phase in ("cold", "steady"):
            for system, own in row.get(phase, {}).items():
                if "error" in own:
                    lines.append(f"- {name}, {system}, {phase}: {' '.join(own['error'].split())[:300]}")
    return "\n".join(lines or ["None."]) + "\n"


def markdown(results: Results, systems: list[str], machine: Machine) -> str:
    """The whole report."""
    about = ", ".join(f"{key} {value}" for key, value in results.get("about", {}).items())
    figures = ", ".join(f"{key}: {value:g}" for key, value in machine.figures.items())
    parts = [
        "# Benchmarks\n",
        f"{about}\n",
        "## Steady state\n",
        "Milliseconds of a call: the median of the clean blocks' medians (the best call) ×(the ratio to eager's block"
        " of the same round, the median over rounds; less is faster). `~`: fewer than 3 blocks were undisturbed.\n\n"
        f"The limit is the larger of FLOPs over the peak and bytes over the bandwidth ({figures}; GFLOP/s, GB/s by"
        " working set). It counts no transcendental functions. best / limit: the fastest system, and how many times"
        " the limit it takes.\n",
        _steady(results, systems, machine),
        "## Lamina's time over eager's and Inductor's, the worst first\n",
        _ratios(results, systems),
        "## Relative error against float64 (Frobenius, the worst result)\n",
        _by_system(results, systems, _error_cell),
    ]
    if any("cold" in row for row in results["workloads"].values()):
        parts += [
            "## Cold start\n",
            "Seconds from a ready module to its first result in a fresh process without caches, the import of the"
            " compiler included (CPU seconds, of child processes too) [peak RSS in MB of the process or its largest"
            " child, and by how much the process itself grew].\n",
            _by_system(results, systems, _cold_cell),
        ]
    parts += ["## Failures\n", _failures(results)]
    return "\n".join(parts)


def plot(results: Results, systems: list[str], machine: Machine, path: Path) -> None:
    """Writes a picture of each system's time over eager's for each workload, with the machine's limit."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name, row in results["workloads"].items() if "median" in row.get("steady", {}).get("eager", {})]
    if not names:
        return
    rows = results["workloads"]
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.28 * len(names)), layout="constrained")
    axes.axvline(1, color="0.4", linewidth=1)
    for place, name in enumerate(names):
        limit = machine.limit(rows[name]["cost"])[0] / rows[name]["steady"]["eager"]["median"]
        label = None if place else "limit"
        axes.plot([limit] * 2, [place - 0.35, place + 0.35], color="0.6", linewidth=2, label=label)
    markers = dict(zip(systems, "Do.s^vPX*"))
    for system in systems:
        points = [(ratio(rows[name], system, "eager"), place) for place, name in enumerate(names)]
        known = [(value, place) for value, place in points if value is not None]
        if known and system != "eager":
            size = 46 if system.startswith("lamina") else 26
            values, places = zip(*known)
            axes.scatter(values, places, s=size, marker=markers[system], label=system, zorder=3)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time / eager's time (less is faster)")
    axes.grid(axis="x", which="both", color="0.9")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=6, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
