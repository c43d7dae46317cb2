"""The weights that a program was compiled with as constants, and whether they have changed since.

Some are packed or folded once, others are read where they lie; after a change in place, a program would mix the two. PyTorch
counts the writes to each tensor, and a call compares the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import torch


@dataclass
class Frozen:
    """A tensor that must not be written to.

    Attributes:
        key: its name.
        counter: an empty tensor that has the version counter of the tensor; the tensor itself is not kept alive.
        version: the count when the program was compiled.
    """

    key: str
    counter: torch.Tensor
    version: int

    @staticmethod
    def of(key: str, tensor: torch.Tensor) -> Frozen | None:
        """None of an inference tensor, whose writes are not counted."""
        if tensor.is_inference():
            return None
        with torch.inference_mode(False):
            counter = tensor.detach()
            counter.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return Frozen(key, counter, counter._version)


def explain_change(frozen: Sequence[Frozen]) -> NoReturn:
    """Raises the error that names a tensor that was written to."""
    changed = [weight.key for weight in frozen if weight.counter._version != weight.version]
    names = ", ".join(map(repr, changed[:3])) + (f" and {len(changed) - 3} others" if len(changed) > 3 else "")
    raise RuntimeError(
        f"{names} changed after the program was compiled with it as a constant: compile again, or with "
        "freeze=False, which reads parameters and buffers at each call"
    )
