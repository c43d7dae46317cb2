"""Random programs mean the same after each pass, by the interpreter, and as native code."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import NOT_COMPILED, SETTINGS, TARGETS, check
from strategies import FAMILIES, prim_modules


@settings(SETTINGS, max_examples=200)
@given(
    prim_modules(families=[family for family in FAMILIES if family not in NOT_COMPILED]), st.sampled_from(list(TARGETS))
)
def test_programs(program, target):
    check(program, target)
