"""Measuring, in processes of their own: costs and references, cold starts, and steady times in interleaved blocks."""

from __future__ import annotations

import copy
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# This module is also imported by the parent process, which must stay small: torch is imported where it is needed.

BLOCK_SECONDS = 0.06
SETTLE_SECONDS = 0.012
"""Between blocks, for the spinning threads of the system that ran before to go to sleep."""
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Block:
    """Calls of one system in a row.

    Attributes:
        median, best: seconds of a call.
        others: CPUs that other processes used meanwhile.
        calls: how many.
    """

    median: float
    best: float
    others: float
    calls: int


# ---- processes


def busy_seconds() -> float:
    """CPU seconds that the whole machine has worked."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def _descendants() -> dict[int, list[str]]:
    """The fields of /proc/<pid>/stat after the name, of each process that this one has started, directly or not."""
    fields: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
    found = {os.getpid()}
    while True:
        more = {pid for pid, values in fields.items() if int(values[1]) in found} - found
        if not more:
            return {pid: fields[pid] for pid in found - {os.getpid()}}
        found |= more


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it has started, whether they have ended or not."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(sum(map(int, values[11:15])) for values in _descendants().values()) / TICKS
    return time.process_time() + ended.ru_utime + ended.ru_stime + living


def _peak_rss(pid: int | str = "self") -> int:
    """Bytes of memory that a process held at most; since its last exec, unlike getrusage's figure."""
    with open(f"/proc/{pid}/status") as file:
        return next((1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)


def peak_rss() -> dict[str, int]:
    """Peak bytes of this process, and of the largest process that it has started."""
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    for pid in _descendants():
        try:
            largest = max(largest, _peak_rss(pid))
        except OSError:
            continue
    return {"self": _peak_rss(), "child": largest}


def spawn(task: str, arguments: dict[str, Any], threads: int, timeout: float) -> dict[str, Any]:
    """Runs a task of TASKS in a new process, and returns its result, or {"error": why there is none}."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LAMINA_LOGS", "TORCHINDUCTOR_CACHE_DIR")}
    environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL")}
    environment |= {"LAMINA_CACHE": "0", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    root = Path(__file__).parent.parent
    paths = [str(root), str(root / "python"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    read, write = os.pipe()
    request = json.dumps({"task": task, "threads": threads, "arguments": arguments})
    command = [sys.executable, "-m", "benchmarks.measure", str(write), request]
    process = subprocess.Popen(
        command,
        env=environment,
        pass_fds=(write,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A group, to be killed whole, but no session: that would leave the scheduling group, and its priority.
        preexec_fn=os.setpgrp,
    )
    os.close(write)
    try:
        _, complaints = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return {"error": f"no result after {timeout:.0f} s"}
    except BaseException:
        os.killpg(process.pid, 9)
        raise
    finally:
        with os.fdopen(read) as file:
            text = file.read() if process.poll() is not None else ""
    return json.loads(text) if text else {"error": f"the process ended with {process.returncode}: {complaints[-400:]}"}


# ---- tasks


def relative_error(results: Sequence[Any], references: Sequence[Any]) -> float:
    """The largest relative Frobenius error of a result; infinite if one is not finite or of another size."""
    if len(results) != len(references):
        return math.inf
    worst = 0.0
    for result, reference in zip(results, references):
        if result.numel() != reference.numel():
            return math.inf
        difference = result.detach().double().reshape(-1) - reference.reshape(-1)
        error = float(difference.norm() / reference.norm().clamp_min(1e-300))
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def reference_task(workload: str, folder: str) -> dict[str, Any]:
    """Writes the results in float64 to the folder; returns the workload's cost."""
    import torch

    from .roofline import cost
    from .workloads import WORKLOADS, double

    result = cost(WORKLOADS[workload])
    torch.save(double(WORKLOADS[workload]), Path(folder) / "reference.pt")
    return result


def cold_task(workload: str, system: str, folder: str) -> dict[str, Any]:
    """From a ready module to the first result: seconds, CPU seconds and memory."""
    import torch

    from .systems import SYSTEMS
    from .workloads import WORKLOADS

    work = WORKLOADS[workload]
    module, inputs = work.build()
    before = peak_rss()["self"]
    start, cpu = time.perf_counter(), cpu_seconds()
    compiler = SYSTEMS[system]()
    compiler.load()
    loaded = time.perf_counter()
    call = compiler.prepare(work, module, inputs, Path(folder))
    value = call()
    end, cpu_end = time.perf_counter(), cpu_seconds()
    memory = peak_rss()
    references = torch.load(Path(folder) / "reference.pt")
    return {
        "seconds": end - start,
        "load_seconds": loaded - start,
        "cpu_seconds": cpu_end - cpu,
        "rss_before": before,
        "rss": memory["self"],
        "rss_child": memory["child"],
        "error_norm": relative_error(compiler.results(value), references),
    }


def steady_task(
    workload: str, systems: list[str], folder: str, rounds: int, others: float, clock: str
) -> dict[str, Any]:
    """Times the systems in interleaved blocks of calls.

    Args:
        workload: its name.
        systems: theirs.
        folder: where the reference is, and what the systems keep.
        rounds: clean blocks of each system to get; at most three times as many are tried.
        others: CPUs that other processes may use during a clean block.
        clock: a name of CLOCKS.
    """
    import torch

    from .systems import SYSTEMS
    from .workloads import WORKLOADS

    work = WORKLOADS[workload]
    module, inputs = work.build()
    references = torch.load(Path(folder) / "reference.pt")
    rows: dict[str, dict[str, Any]] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for name in systems:
        try:
            start = time.perf_counter()
            compiler = SYSTEMS[name]()
            compiler.load()
            # A copy each: what a compiler does to a module must not touch the others'.
            own = copy.deepcopy(module)
            call = compiler.prepare(work, own, inputs, Path(folder))
            error = relative_error(compiler.results(call()), references)
            rows[name] = {"start_seconds": time.perf_counter() - start, "error_norm": error}
            if error <= work.tolerance:
                calls[name] = call
            else:
                rows[name]["error"] = f"the relative error is {error:.2g}, above {work.tolerance:g}"
        except Exception as problem:
            rows[name] = {"error": f"{type(problem).__name__}: {str(problem)[:400]}"}
    del references
    blocks = interleave(calls, rounds, others, CLOCKS[clock])
    for name, own_blocks in blocks.items():
        rows[name] |= summarise(own_blocks, blocks.get("eager", []), others)
    return rows


def interleave(
    calls: dict[str, Callable[[], Any]], rounds: int, others: float, clock: Callable[[], float]
) -> dict[str, list[Block]]:
    """Blocks of each call, in turn, until each has enough clean ones."""
    counts = {name: max(1, min(2000, int(BLOCK_SECONDS / max(_once(call), 1e-6)))) for name, call in calls.items()}
    blocks: dict[str, list[Block]] = {name: [] for name in calls}
    for _ in range(3 * rounds):
        for name, call in calls.items():
            time.sleep(SETTLE_SECONDS)
            for _ in range(min(2, counts[name])):
                call()
            blocks[name].append(_block(call, counts[name], clock))
        if all(sum(block.others <= others for block in own) >= rounds for own in blocks.values()):
            break
    return blocks


def _once(call: Callable[[], Any]) -> float:
    call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _block(call: Callable[[], Any], count: int, clock: Callable[[], float]) -> Block:
    times = []
    busy, own, start = busy_seconds(), time.process_time(), time.perf_counter()
    for _ in range(count):
        begin = clock()
        value = call()
        times.append(clock() - begin)
        del value
    wall, own = time.perf_counter() - start, time.process_time() - own
    return Block(statistics.median(times), min(times), max(0.0, busy_seconds() - busy - own) / wall, count)


def summarise(blocks: list[Block], eager: list[Block], others: float) -> dict[str, Any]:
    """Median and best seconds, and the median over rounds of the ratio to eager's block of the same round."""
    clean = [block for block in blocks if block.others <= others]
    # Too few clean ones: the third that was disturbed least.
    use = clean if len(clean) >= 3 else sorted(blocks, key=lambda block: block.others)[: max(3, len(blocks) // 3)]
    row: dict[str, Any] = {
        "median": statistics.median(block.median for block in use),
        "best": min(block.best for block in blocks),
        "clean_blocks": len(clean),
        "blocks": len(blocks),
        "calls": sum(block.calls for block in use),
    }
    if eager:
        pairs = list(zip(blocks, eager))
        quiet = [(a, b) for a, b in pairs if max(a.others, b.others) <= others]
        row["to_eager"] = statistics.median(a.median / b.median for a, b in (quiet if len(quiet) >= 3 else pairs))
    return row


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "reference": reference_task,
    "cold": cold_task,
    "steady": steady_task,
}


def main() -> None:
    """Runs the task that the parent asked for; writes its result to the descriptor that it gave."""
    descriptor, request = int(sys.argv[1]), json.loads(sys.argv[2])
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(request["threads"])
    try:
        result = TASKS[request["task"]](**request["arguments"])
    except Exception as problem:
        result = {"error": f"{type(problem).__name__}: {str(problem)[:1000]}"}
    with os.fdopen(descriptor, "w") as file:
        json.dump(result, file)
    sys.stdout.flush()
    # Some runtimes crash when the interpreter ends; what they were asked for is done.
    os._exit(0)


if __name__ == "__main__":
    main()
