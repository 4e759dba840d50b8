"""Repeated blocks are found where traces repeat them differently often."""

from __future__ import annotations

import pytest
from torch.utils._pytree import tree_flatten

from anyshape.capture.generalized.template import Rolled, Unaligned
from anyshape.capture.generalized.trace import Step, Trace
from anyshape.capture.rerolled.blocks import roll_up


def _trace(letters: str) -> Trace:
    spec = tree_flatten(((), {}))[1]
    return Trace({}, tuple(Step(letter, (), spec, "") for letter in letters), (), ())


def _form(tree: tuple[object, ...]) -> object:
    return [[_form(each) for each in entry.repetitions] if isinstance(entry, Rolled) else "." for entry in tree]


def test_a_block_between_a_beginning_and_an_end_is_rolled_up() -> None:
    first, second = roll_up([_trace("x" + "abc" * 4 + "y"), _trace("x" + "abc" * 2 + "y")])
    assert _form(first) == [".", [[".", ".", "."]] * 4, "."]
    assert _form(second) == [".", [[".", ".", "."]] * 2, "."]


def test_an_inner_loop_is_rolled_up_inside_its_outer_one() -> None:
    first, _ = roll_up([_trace("x" + ("b" + "a" * 3 + "c") * 4), _trace("x" + ("b" + "a" * 5 + "c") * 3)])
    assert _form(first) == [".", [[".", [["."]] * 3, "."]] * 4]


def test_a_loop_that_does_not_run_is_there_with_no_repetition() -> None:
    _, empty = roll_up([_trace("x" + "ab" * 4 + "y"), _trace("xy")])
    assert _form(empty) == [".", [], "."]


def test_what_repeats_equally_often_is_no_loop() -> None:
    first, _ = roll_up([_trace("xaaaay"), _trace("xaaaay")])
    assert _form(first) == ["."] * 6


def test_traces_without_a_common_form_are_refused() -> None:
    with pytest.raises(Unaligned):
        roll_up([_trace("xabcy"), _trace("xdefgy")])


def test_a_block_that_stands_at_several_places_equally_often_at_every_size_is_no_loop() -> None:
    first, _ = roll_up([_trace("aaax" + "bcd" * 4 + "ay"), _trace("aaax" + "bcd" * 3 + "ay")])
    assert _form(first) == [".", ".", ".", ".", [[".", ".", "."]] * 4, ".", "."]
