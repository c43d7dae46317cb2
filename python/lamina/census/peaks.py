"""What chips can do at most: bytes and operations per second, from the data sheets of the product named for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Peaks:
    """The roofs of a chip.

    Attributes:
        product: what is sold with this chip; the fastest, where there are several.
        bandwidth: of its memory, in bytes per second.
        vector: operations per second outside of the matrix units, by element type; a fused multiply-add is two.
        matrix: of the matrix units, without sparsity, accumulating in f32 (integers in i32), by element type.
        source: where the numbers are from.
    """

    product: str
    bandwidth: float
    vector: Mapping[str, float]
    matrix: Mapping[str, float]
    source: str

    def seconds_of_products(self, element: str, operations: float, matrix: bool = False) -> float:
        """The least time for multiplications and additions of a contraction.

        Args:
            element: type of its operands, as MLIR writes it.
            operations: how many.
            matrix: whether f32 goes through the matrix units, which round its operands to tf32.
        """
        kind = _MATRIX.get(element, element)
        if element == "f32" and matrix:
            kind = "tf32"
        rate = self.matrix.get(kind)
        return operations / (rate if rate is not None else self.vector.get(element, self.vector["f32"]))

    def seconds_of_operations(self, operations: float) -> float:
        """The least time for operations on elements, which are counted as f32's whatever they are."""
        return operations / self.vector["f32"]


_MATRIX = {"i8": "i8", "ui8": "i8", "f8E4M3FN": "f8", "f8E5M2": "f8"}

PEAKS = {
    "sm_80": Peaks(
        "A100 SXM 80 GB",
        2.039e12,
        {"f32": 19.5e12, "f64": 9.7e12},
        {"tf32": 156e12, "f16": 312e12, "bf16": 312e12, "i8": 624e12, "f64": 19.5e12},
        "NVIDIA A100 Tensor Core GPU data sheet",
    ),
    "sm_86": Peaks(
        "A40",
        0.696e12,
        {"f32": 37.4e12, "f64": 0.585e12},
        {"tf32": 74.8e12, "f16": 149.7e12, "bf16": 149.7e12, "i8": 299.3e12},
        "NVIDIA A40 data sheet",
    ),
    "sm_89": Peaks(
        "L40S",
        0.864e12,
        {"f32": 91.6e12, "f64": 1.43e12},
        {"tf32": 183e12, "f16": 362e12, "bf16": 362e12, "f8": 733e12, "i8": 733e12},
        "NVIDIA L40S data sheet",
    ),
    "sm_90": Peaks(
        "H100 SXM",
        3.35e12,
        {"f32": 67e12, "f64": 34e12},
        {"tf32": 494.7e12, "f16": 989.4e12, "bf16": 989.4e12, "f8": 1978.9e12, "i8": 1978.9e12, "f64": 67e12},
        "NVIDIA H100 Tensor Core GPU Architecture white paper",
    ),
    "sm_100": Peaks(
        "B200 SXM",
        7.7e12,
        {"f32": 75e12, "f64": 37e12},
        {"tf32": 1.1e15, "f16": 2.25e15, "bf16": 2.25e15, "f8": 4.5e15, "i8": 4.5e15, "f64": 37e12},
        "NVIDIA HGX B200 specifications, an eighth of the board's",
    ),
    "sm_120": Peaks(
        "RTX PRO 6000 Blackwell",
        1.792e12,
        {"f32": 126e12, "f64": 1.97e12},
        {"tf32": 251.9e12, "f16": 503.8e12, "bf16": 503.8e12, "f8": 1007.6e12, "i8": 1007.6e12},
        "NVIDIA RTX Blackwell PRO GPU Architecture white paper",
    ),
}
"""By the name of the chip."""
