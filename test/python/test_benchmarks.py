"""The benchmarks' own parts: what is selected, the limits, the choice of blocks, the report, and one run."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from benchmarks import measure, report  # noqa: E402
from benchmarks.measure import Block, relative_error, summarise  # noqa: E402
from benchmarks.roofline import Machine  # noqa: E402
from benchmarks.run import main  # noqa: E402
from benchmarks.scaling import split  # noqa: E402
from benchmarks.workloads import WORKLOADS, select  # noqa: E402


def test_names_and_groups_select():
    assert select("all") == list(WORKLOADS.values())
    assert [w.name for w in select("sum_full, rows")] == ["softmax", "ln_res_gelu", "rmsnorm", "sum_full"]
    with pytest.raises(ValueError, match="no workload or group 'nothing'"):
        select("softmax,nothing")


def test_limit_is_the_scarcer_resource():
    machine = Machine.of(["f32=100", "8MB=10", "infMB=1"])
    assert machine.limit({"flops": 1e9, "bytes": 1e6, "peak": "f32"}) == (0.01, "flop")
    assert machine.limit({"flops": 1e6, "bytes": 1e9, "peak": "f32"}) == (1.0, "mem")
    assert machine.bandwidth(6e6) == 10e9
    for text in ("f32", "f32=fast", "f64=1", "0MB=1"):
        with pytest.raises(ValueError, match="is not f32="):
            Machine.of([text])


def test_disturbed_blocks_do_not_count():
    eager = [Block(2.0, 1.5, 0.0, 10), Block(2.0, 1.5, 0.1, 10), Block(2.0, 1.5, 0.0, 10), Block(9.0, 1.5, 1.0, 10)]
    blocks = [Block(1.0, 0.9, 0.0, 10), Block(1.2, 0.9, 0.1, 10), Block(1.1, 0.8, 0.0, 10), Block(30.0, 0.9, 1.0, 10)]
    row = summarise(blocks, eager, 0.2)
    assert (row["median"], row["best"], row["clean_blocks"], row["calls"]) == (1.1, 0.8, 3, 30)
    assert row["to_eager"] == pytest.approx(0.55)
    assert summarise(blocks[2:], [], 0.2)["clean_blocks"] == 1


def test_error_is_the_worst_results():
    import torch

    x = torch.ones(4)
    assert relative_error([x, x * 1.5], [x.double(), x.double()]) == pytest.approx(0.5)
    assert relative_error([x], [x.double(), x.double()]) == float("inf")
    assert relative_error([x * float("nan")], [x.double()]) == float("inf")


def test_pipeline_splits_into_passes():
    assert split("func.func(a{x=1,2},b),c,d{y=3}") == ["func.func(a{x=1,2})", "func.func(b)", "c", "d{y=3}"]


def test_a_process_that_dies_is_an_error():
    assert "KeyError" in measure.spawn("reference", {"workload": "nothing", "folder": "."}, 1, 60)["error"]
    assert "no result after" in measure.spawn("reference", {"workload": "gpt2", "folder": "."}, 1, 0.05)["error"]


def test_report_shows_failures_and_ratios():
    steady = {
        "eager": {"median": 2e-3, "best": 1e-3, "clean_blocks": 5, "error_norm": 1e-7, "to_eager": 1.0},
        "lamina": {"median": 1e-3, "best": 1e-3, "clean_blocks": 1, "error_norm": 1e-7, "to_eager": 0.5},
        "iree": {"error": "RuntimeError: no"},
    }
    row = {"cost": {"flops": 49e7, "bytes": 8, "peak": "f32"}, "steady": steady}
    text = report.markdown({"workloads": {"softmax": row}}, ["lamina", "eager", "iree"], Machine())
    assert "| softmax | 1 flop | ~1 (1) ×0.50 | 2 (1) | FAIL | lamina 1.00 |" in text
    assert "- softmax, iree, steady: RuntimeError: no" in text


def test_run_merges_results(tmp_path):
    arguments = [
        "--systems",
        "lamina_frozen,eager",
        "--threads",
        "1",
        "--clock",
        "cpu",
        "--rounds",
        "3",
        "-o",
        str(tmp_path),
    ]
    for more in (["--workloads", "optimized_net_f32", "--no-cold"], ["--workloads", "sum_full", "--no-steady"]):
        result = CliRunner().invoke(main, [*arguments, *more])
        assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "results.json").read_text())["workloads"]
    assert list(rows) == ["optimized_net_f32", "sum_full"]
    assert rows["optimized_net_f32"]["steady"]["lamina_frozen"]["median"] > 0
    assert rows["sum_full"]["cold"]["lamina_frozen"]["cpu_seconds"] > 0
    assert (tmp_path / "results.md").exists() and (tmp_path / "results.png").exists()
    other = CliRunner().invoke(main, ["--threads", "2", "-o", str(tmp_path)])
    assert other.exit_code == 1 and "results for threads 1" in other.output
