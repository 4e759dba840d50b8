"""Results of the solver: yes, no, or unknown, since its time is limited.

`find_point` and `smallest_point` return None only when there is no point; not knowing raises `Undecided`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from anyshape.domain.condition import Condition, format_condition
from anyshape.findings import AnyshapeError, Finding


class Truth(Enum):
    """Yes, no or unknown. Not a bool: compare with `is`."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("a Truth can be UNKNOWN: write `is Truth.YES` or `is Truth.NO`")


@dataclass(frozen=True)
class Decision:
    """Whether a domain implies a condition; if it does not, the smallest sizes at which the condition fails."""

    status: Literal["proved", "refuted", "unknown"]
    counterexample: dict[str, int] | None = None

    @property
    def proved(self) -> bool:
        return self.status == "proved"

    @property
    def refuted(self) -> bool:
        return self.status == "refuted"

    @property
    def unknown(self) -> bool:
        return self.status == "unknown"


class Range(NamedTuple):
    """The smallest and the largest value; None where there is no end, Truth.UNKNOWN where the solver cannot decide."""

    low: int | Literal[Truth.UNKNOWN] | None
    high: int | Literal[Truth.UNKNOWN] | None


class Undecided(AnyshapeError):
    """The solver did not decide within its time."""

    def __init__(self, question: str, timeout_ms: int) -> None:
        self.question = question
        self.timeout_ms = timeout_ms
        super().__init__(
            Finding(
                code="AS008",
                name="undecided",
                what="the solver could not decide within its time whether sizes exist.",
                why=f"asked for {timeout_ms} ms: {question}",
                fix="give the dims upper ends, or write products and divisions of dims in a simpler way.",
            )
        )

    def __reduce__(self) -> tuple[type[Undecided], tuple[str, int]]:
        return type(self), (self.question, self.timeout_ms)


def wrong_point(rules: Iterable[Condition], sizes: Mapping[str, int]) -> Finding:
    """The finding for sizes from the solver that do not keep the rules it was given: our own fault."""
    return Finding(
        code="AS902",
        name="solver-disagrees",
        what="the solver gave sizes that do not keep the rules it was asked about.",
        why=f"{dict(sizes)} under {', '.join(map(format_condition, rules))}",
        fix="this is our fault, sorry: please report the rules above.",
        sizes=dict(sizes),
    )
