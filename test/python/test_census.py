"""The census: what it counts, and floors under the kernels that are made for NVIDIA's chips."""

import json
import math
import pathlib

import pytest
import torch
from click.testing import CliRunner
from torch import nn

import lamina
from cuda_programs import DYNAMIC, seeded
from lamina.census import PEAKS, count_instructions, count_work, disassemble, total_of
from lamina.cli.commands import lamina as driver
from lamina.frontend.export import import_program
from lamina.targets import get_target

pytest.importorskip("triton")

HERE = pathlib.Path(__file__).parent
F16 = torch.float16


def census_of(model, arguments, chips, **options):
    """The censuses of a program, by chip."""
    model = model().eval().requires_grad_(False) if isinstance(model, type) else model
    program = lamina.compile(model, arguments, target=f"cuda:{','.join(chips)}", fallback="error", **options)
    return program.census(*arguments)


def only_kernel(census):
    (kernel,) = census.of_host()
    assert kernel.launches == 1
    return kernel


# ---- the machine code


def test_instructions_are_counted_by_kind_and_width():
    text = """
        .section .text.k
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/               @P1 LDG.E.U16.CONSTANT R4, desc[UR4][R2.64] ;
        /*0030*/                   LDGSTS.E.BYPASS.LTC128B.128 [R7], [R2.64] ;
        /*0040*/             @UPT UTCHMMA gdesc[UR8], gdesc[UR10], tmem[UR6], tmem[UR14], idesc[UR15], UP0 ;
        /*0050*/                   { HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, gsb0 ;
        /*0060*/                   STL [R1], R2 ;
        /*0070*/                   STG.E desc[UR4][R2.64], R4 ;
        /*10080*/                  STS.64 [R3], R4 ;
    """
    assert count_instructions(text) == {
        "LDC": 1,
        "LDG.128": 1,
        "LDG.16": 1,
        "LDGSTS.128": 1,
        "UTCHMMA": 1,
        "HGMMA": 1,
        "STL.32": 1,
        "STG.32": 1,
        "STS.64": 1,
    }
    assert {group: total_of(count_instructions(text), group) for group in ("tensor", "load", "spill")} == {
        "tensor": 2,
        "load": 2,
        "spill": 1,
    }


# ---- bytes and operations


def work_of(model, arguments, symbols=(), **options):
    """The work of each launch of @main for sm_90, at the values of the symbols."""
    module = import_program(model, arguments, **options).module
    return [work.at(symbols) for work in count_work(module, get_target("cuda:sm_90"))["main"]]


def test_a_product_and_what_follows_it():
    (work,) = work_of(lambda x, w, b: torch.relu(x @ w + b), (seeded(32, 64), seeded(64, 16), seeded(16)))
    assert work.read == 4 * (32 * 64 + 64 * 16 + 16)
    assert work.written == 4 * 32 * 16
    assert work.products == {"f32": 2 * 32 * 64 * 16}
    assert 2 * 32 * 16 <= work.operations <= 4 * 32 * 16  # a maximum may be a comparison and a selection


def test_half_precision_is_counted_as_such():
    (work,) = work_of(lambda x, y: x @ y, (seeded(32, 64, dtype=F16), seeded(64, 16, dtype=F16)))
    assert (work.read, work.products) == (2 * (32 * 64 + 64 * 16), {"f16": 2 * 32 * 64 * 16})


def test_a_tensor_that_is_passed_twice_is_read_once():
    (work,) = work_of(lambda x: x @ x, (seeded(64, 64),))
    assert work.read == 4 * 64 * 64


def test_a_table_is_read_where_it_is_looked_up():
    works = work_of(lambda table, index: table[index] * 2, (seeded(5000, 16), torch.arange(6)))
    gather = works[-1]
    assert gather.read == 4 * 6 * 16 + 8 * 6
    works = work_of(lambda table, index: table[index] * 2, (seeded(5, 16), torch.arange(6) % 5))
    assert works[-1].read == 4 * 5 * 16 + 8 * 6, "no more than there is"


def test_a_part_is_read_alone():
    (work,) = work_of(lambda x: x[:, 4:8] * 2, (seeded(10, 16),))
    assert (work.read, work.written) == (4 * 10 * 4, 4 * 10 * 4)


def test_open_sizes_have_the_values_of_the_arguments():
    options = {"dynamic_shapes": ({0: DYNAMIC}, None)}
    for rows in (20, 33):
        (work,) = work_of(lambda x, y: x @ y, (seeded(20, 64), seeded(64, 16)), [rows], **options)
        assert (work.read, work.products) == (4 * (rows * 64 + 64 * 16), {"f32": 2 * rows * 64 * 16})


def test_the_processor_counts_in_the_same_place():
    module = import_program(lambda x: x.softmax(-1), (seeded(8, 64),)).module
    (work,) = count_work(module, get_target("cpu"))["main"]
    assert (work.read, work.written) == (4 * 8 * 64, 4 * 8 * 64)


# ---- a whole program


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.register_buffer("table", seeded(64))

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) + (self.table * 2).cos().exp()


def test_the_census_of_a_program():
    x = seeded(32, 64)
    census = census_of(Layers, (x,), ["sm_80", "sm_90"])
    assert list(census) == ["sm_80", "sm_90"]
    for chip, mine in census.items():
        assert (mine.chip, mine.peaks) == (chip, PEAKS[chip])
        assert mine.launches == sum(kernel.launches for kernel in mine.of_host()) == 2
        assert mine.moved == 4 * (2 * 64 * 64 + 4 * 32 * 64 + 3 * 64)
        for kernel in mine.of_host():
            assert kernel.registers > 0 and kernel.code > 0 and kernel.programs >= 1
            assert kernel.spills == 0 == kernel.count("spill")
            moved = kernel.moved / mine.peaks.bandwidth
            computed = sum(kernel.products.values()) / mine.peaks.vector["f32"]
            assert math.isclose(kernel.seconds, max(moved, computed))
            assert kernel.bound == ("memory" if moved > computed else "products")
        assert {kernel.host for kernel in mine.kernels} == {"main", "init"}, "the table is computed once"


def test_only_what_has_machine_code_has_a_census():
    program = lamina.compile(lambda x: x + 1, (seeded(4),), target="cpu")
    with pytest.raises(lamina.CompileError, match="census"):
        program.census()


MODEL = """
import torch

def f(x):
    return (x * 2).softmax(-1)
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def run_driver(*arguments):
    result = CliRunner().invoke(driver, [str(argument) for argument in arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.output


def test_the_driver_prints_a_table(model):
    text = run_driver(
        "compile", f"{model}:f", "--input", "f16[1024,1024]", "--target", "cuda:sm_80,sm_90", "--emit=census"
    )
    head, row = [line for line in text.splitlines() if line.startswith(("kernel ", "k_"))][:2]
    for column in (
        "launches",
        "registers",
        "spills",
        "shared",
        "tensor",
        "load",
        "store",
        "MB read",
        "GFLOP",
        "least us",
    ):
        assert column in head
    assert "x128" in row and "2.097" in row
    assert "A100" in text and "H100" in text


def test_the_driver_writes_json(model, tmp_path):
    path = tmp_path / "census.json"
    options = [
        "--input",
        "f32[64,100]",
        "--dynamic",
        "x:0=rows",
        "--target",
        "cuda:sm_90",
        "--emit",
        "census",
        "-o",
        path,
    ]
    run_driver("compile", f"{model}:f", *options)
    census = json.loads(path.read_text())["sm_90"]
    assert (census["launches"], census["bytes"]) == (1, 2 * 4 * 64 * 100)
    assert census["kernels"][0]["instructions"]


@pytest.mark.parametrize(
    "kind, text", [("sass", "EXIT"), ("ptx", ".entry"), ("ttgir", "ttg.num-warps"), ("ttir", "tt.func")]
)
def test_the_driver_prints_every_stage(model, kind, text):
    assert text in run_driver(
        "compile", f"{model}:f", "--input", "f32[64,100]", "--target", "cuda:sm_90", "--emit", kind
    )


# ---- floors: bandwidth


ROWS, COLUMNS = 1024, 4096


def softmax(x):
    return x.softmax(-1)


def pointwise(x, y):
    return torch.tanh(x) * y + 1


class HalfLayerNorm(nn.LayerNorm):
    def __init__(self):
        super().__init__(COLUMNS, dtype=F16)


class LayerNorm(nn.LayerNorm):
    def __init__(self):
        super().__init__(COLUMNS)


class RMSNorm(nn.RMSNorm):
    def __init__(self):
        super().__init__(COLUMNS)


class HalfRMSNorm(nn.RMSNorm):
    def __init__(self):
        super().__init__(COLUMNS, dtype=F16)


# Name: model, its arguments, how many rows of weights each program needs beside its own row.
STREAMING = {
    "pointwise": (pointwise, (seeded(ROWS, COLUMNS), seeded(ROWS, COLUMNS)), 0),
    "pointwise_f16": (pointwise, (seeded(ROWS, COLUMNS, dtype=F16), seeded(ROWS, COLUMNS, dtype=F16)), 0),
    "softmax": (softmax, (seeded(ROWS, COLUMNS),), 0),
    "softmax_f16": (softmax, (seeded(ROWS, COLUMNS, dtype=F16),), 0),
    "layer_norm": (LayerNorm, (seeded(ROWS, COLUMNS),), 2),
    "layer_norm_f16": (HalfLayerNorm, (seeded(ROWS, COLUMNS, dtype=F16),), 2),
    "rms_norm": (RMSNorm, (seeded(ROWS, COLUMNS),), 1),
    "rms_norm_f16": (HalfRMSNorm, (seeded(ROWS, COLUMNS, dtype=F16),), 1),
}


@pytest.mark.parametrize("name", STREAMING)
def test_one_pass_over_memory_128_bits_at_a_time(name):
    model, arguments, weights = STREAMING[name]
    row = COLUMNS * arguments[0].element_size()
    for chip, census in census_of(model, arguments, ["sm_80", "sm_90", "sm_100", "sm_120"]).items():
        kernel = only_kernel(census)
        accesses = {
            kind: count for kind, count in kernel.instructions.items() if kind.startswith(("LDG", "STG", "LDL", "STL"))
        }
        assert set(accesses) == {"LDG.128", "STG.128"}, chip
        assert kernel.read == len(arguments) * ROWS * row + weights * row
        assert kernel.written == ROWS * row
        # There is no loop, so that each instruction runs once: it accesses each byte once, and the weights once a program.
        assert kernel.straight_line_bytes("load") == len(arguments) * ROWS * row + weights * kernel.programs * row, chip
        assert kernel.straight_line_bytes("store") == kernel.written, chip
        assert kernel.bound == "memory", chip


class NarrowLayerNorm(nn.LayerNorm):
    def __init__(self):
        super().__init__(768)


FEW_ROWS = {
    "layer_norm": (NarrowLayerNorm, seeded(128, 768)),
    "softmax_f16": (softmax, seeded(64, 1024, dtype=F16)),
}


@pytest.mark.parametrize("name", FEW_ROWS)
def test_few_rows_are_loaded_128_bits_at_a_time(name):
    model, x = FEW_ROWS[name]
    for census in census_of(model, (x,), ["sm_80", "sm_90"]).values():
        accesses = {kind for kind in only_kernel(census).instructions if kind.startswith(("LDG", "STG"))}
        assert accesses == {"LDG.128", "STG.128"}


# ---- floors: products


def half_product(size):
    return lambda x, y: torch.relu(x @ y), (seeded(size, size, dtype=F16), seeded(size, size, dtype=F16))


PRODUCT_CHIPS = {"sm_80": "HMMA", "sm_90": "HGMMA", "sm_100": "UTCHMMA", "sm_120": "HMMA"}
LARGE = 4096


@pytest.fixture(scope="module")
def large_product():
    return census_of(*half_product(LARGE), list(PRODUCT_CHIPS))


@pytest.mark.parametrize("chip", PRODUCT_CHIPS)
def test_half_products_are_of_the_matrix_units(large_product, chip):
    kernel = only_kernel(large_product[chip])
    assert kernel.instructions.get(PRODUCT_CHIPS[chip], 0) > 0
    assert kernel.instructions.get("LDGSTS.128", 0) + kernel.count("tma") > 0, "operands are copied asynchronously"
    assert not {kind for kind in kernel.instructions if kind.startswith(("LDG.", "STG.")) and not kind.endswith(".128")}
    assert kernel.spills == 0


@pytest.mark.parametrize("chip", ("sm_80", "sm_90", "sm_100"))
def test_tiles_of_a_large_half_product(large_product, chip):
    assert only_kernel(large_product[chip]).programs <= (LARGE // 128) ** 2


ASYNCHRONOUS_COPIES = {
    ("sm_80", False): {"LDGSTS.128": 24},
    ("sm_90", False): {"LDGSTS.128": 24},
    ("sm_90", True): {"UTMALDG": 6},
    ("sm_100", False): {"LDGSTS.128": 32},
    ("sm_100", True): {"UTMALDG": 8},
}


@pytest.mark.parametrize("chip, descriptors", ASYNCHRONOUS_COPIES)
def test_a_product_of_128_x_128_x_64(chip, descriptors):
    from mlir import ir

    target = get_target(f"cuda:{chip}")
    module = import_program(*half_product(LARGE)).module
    for _ in target.lower(module, "prim", "linalg"):
        pass
    (function,) = [op for op in module.body.operations if op.operation.name == "kernel.func"]
    with module.context:
        function.operation.attributes["kernel.tile"] = ir.DenseI64ArrayAttr.get([128, 128, 64])
        function.operation.attributes["kernel.descriptors"] = ir.BoolAttr.get(descriptors)
    (kernel,) = target.compile_kernels(module, after="linalg").values()
    instructions = count_instructions(disassemble(kernel.binary))
    assert instructions[PRODUCT_CHIPS[chip]] == {"sm_80": 64, "sm_90": 4, "sm_100": 8}[chip]
    copies = {kind: count for kind, count in instructions.items() if kind.startswith(("LDGSTS", "UTMALDG"))}
    assert copies == ASYNCHRONOUS_COPIES[chip, descriptors]
    # The number is that of a kernel of this tile that was written by hand.
    assert kernel.registers <= 1.1 * {"sm_80": 188, "sm_90": 108, "sm_100": 116}[chip]
    assert kernel.spills == 0


def test_no_product_of_f32_is_rounded_to_tf32():
    for census in census_of(lambda x, y: x @ y, (seeded(256, 256), seeded(256, 256)), ["sm_80", "sm_90"]).values():
        assert only_kernel(census).count("tensor") == 0


# ---- floors: attention


def attention(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


ATTENTION_CHIPS = ("sm_80", "sm_90", "sm_100")


@pytest.fixture(scope="module")
def derived():
    return census_of(attention, tuple(seeded(4, 16, 2048, 64, dtype=F16, seed=k) for k in range(3)), ATTENTION_CHIPS)


@pytest.fixture(scope="module")
def by_hand():
    """Of each chip the instructions of attention that was written by hand, with 8 warps for 128 queries."""
    from lamina.targets.cuda import compile_ttir

    text = (HERE / "kernels" / "attention.ttir").read_text()
    kernels = {chip: compile_ttir(text, f"cuda:{chip}", warps=8) for chip in ATTENTION_CHIPS}
    return {chip: count_instructions(disassemble(kernel.binary)) for chip, kernel in kernels.items()}


def test_attention_is_one_kernel(derived):
    for census in derived.values():
        kernel = only_kernel(census)
        assert kernel.read == 3 * 2 * 4 * 16 * 2048 * 64
        assert kernel.spills == 0
        assert kernel.count("tensor") > 0 and kernel.count("copy") > 0


GROUPS = ("tensor", "copy", "float", "special", "shuffle", "shared", "load", "store")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("chip", ATTENTION_CHIPS)
def test_attention_has_the_instructions_of_one_by_hand(derived, by_hand, chip, group):
    kernel = only_kernel(derived[chip])
    queries = 4 * 16 * 2048 / kernel.programs
    mine = kernel.count(group) * kernel.warps / queries
    assert mine <= 1.2 * total_of(by_hand[chip], group) * 8 / 128
