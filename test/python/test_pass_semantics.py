"""Passes keep the meaning of random programs: the interpreter's results before and after agree to within bounds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from lamina import dialects, reference
from strategies import prim_modules

CONTEXT = dialects.make_context()

PIPELINES = ["builtin.module(canonicalize,cse)"]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipeline(pipeline):
    from mlir.passmanager import PassManager

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(prim_modules())
    def check(program):
        module = dialects.parse(program.text, CONTEXT)
        expected = reference.run_with_bounds(module, *program.args)
        with CONTEXT:
            PassManager.parse(pipeline).run(module.operation)
        for actual, wanted in zip(reference.run(module, *program.args), expected, strict=True):
            mismatch = reference.find_mismatch(actual, wanted)
            assert mismatch is None, f"{mismatch} in\n{module}"

    check()
