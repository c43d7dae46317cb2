"""Random programs mean the same after each pass, by the interpreter, and as native code.

The 200 programs are the same in each run; `python test/python/random_programs.py --seed N` goes through others.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import SETTINGS, TARGETS, check
from strategies import prim_modules


@settings(SETTINGS, max_examples=200, derandomize=True)
@given(prim_modules(), st.sampled_from(list(TARGETS)))
def test_programs(program, target):
    check(program, target)
