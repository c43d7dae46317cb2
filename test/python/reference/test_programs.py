"""Random programs verify and run in the reference interpreter, and every family of ops occurs in them."""

from __future__ import annotations

import pytest
from check import CONTEXT
from hypothesis import HealthCheck, given, settings

from lamina import dialects, reference
from strategies import FAMILIES, Program, prim_modules

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def run(program: Program) -> list[reference.Array]:
    return reference.run(dialects.parse(program.text, CONTEXT), *program.args)


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(prim_modules())
def test_programs_verify_and_run(program):
    results = run(program)
    assert results
    assert [each.tobytes() for each in run(program)] == [each.tobytes() for each in results]


@pytest.mark.parametrize("family", FAMILIES)
def test_family_occurs(family):
    op = {"unary": "neg", "binary": "add", "slice": "slice"}.get(family, family)
    found = []

    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=SLOW)
    @given(prim_modules(families=[family]))
    def search(program):
        run(program)
        found.append(f"prim.{op} " in program.text)

    search()
    assert any(found)
