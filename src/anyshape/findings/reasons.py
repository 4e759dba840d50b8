"""Why a finding was made, as a type: whatever acts on a finding compares its reason, never its code or its text."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The reasons that something acts on. A finding that is only shown has none."""

    ANSWERS_AT_ONE_SIZE = "the module answers at one size of a dim"
    ANSWERS_ON_LESS = "the module answers on less than was declared"
    AXIS_LEFT_OUT = "the declaration leaves an axis out that has to follow a dim"
    END_NOT_COMPARED = "the file was not compared up to a declared end"
    INTEGERS_END = "an open range ends where the integers of a file end"
    INTEGERS_TOO_LARGE = "a declared range goes beyond the integers of a file"
    NEEDS_COMPARING = "a capture without proof was to be exported without comparisons"
    NUMBER_WITHOUT_RULE = "a number of the traces follows no rule"
    OUTPUTS_VARY = "the module returns other outputs at sizes that were declared, by a known rule"
    OUTPUT_AXIS = "an axis of an output is not what its name says"
    OUT_OF_MEMORY = "a call needs more memory than there is"
    PATH_DEPENDS_ON_SIZES = "the traces run different operations at different sizes"
    RUNG_OUT_OF_TIME = "a rung has used its share of the time"
    SIZE_BRANCH = "the captured program holds on a part of the domain"
    STATE_KEPT = "the module keeps state from call to call"
    VALUES_DECIDE = "Python reads a value of a tensor"
    VALUES_DECIDE_ELSEWHERE = "Python reads a value of a tensor at sizes other than those of the first capture"


REFUSED_SIZES = frozenset(
    {Reason.ANSWERS_AT_ONE_SIZE, Reason.ANSWERS_ON_LESS, Reason.AXIS_LEFT_OUT, Reason.OUTPUTS_VARY}
)
"""The module raises at declared sizes, or returns other outputs there: `accept_narrower` leaves those sizes out."""
