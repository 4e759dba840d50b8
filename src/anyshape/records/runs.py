"""How a result was made: how long each stage took, what was declared, with which seed, and what a call costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyshape.domain import Domain, Sizes
from anyshape.records.contract import TensorPromise

if TYPE_CHECKING:
    from anyshape.intercept.operation_counts import Counted


@dataclass(frozen=True)
class StageTime:
    """The seconds of one stage, all of its turns together."""

    stage: str
    seconds: float


@dataclass(frozen=True)
class Rates:
    """How many operations an element, an exchanged element, an operator and a byte of weights count as, and a second has.

    `steepest` is the largest power of a size with which counts grow beyond the last one.
    """

    element: int
    exchanged: int
    operator: int
    byte: int
    per_second: int
    steepest: float


@dataclass(frozen=True)
class CostTable:
    """Counts of one call at the example's sizes, and at several sizes of each dim: an estimate for any sizes.

    `weights` is in bytes. Between two counts an estimate is a power of the size, beyond the last it continues.
    """

    base: Counted
    along: Mapping[str, tuple[tuple[int, Counted], ...]] = field(hash=False)
    weights: int
    rates: Rates


@dataclass(frozen=True, kw_only=True)
class Run:
    """The circumstances of one export.

    `model` is the name of the module's class, `domain` and `inputs` are what the user declared, `example` its own sizes.
    `costs` is None where nothing was counted.
    """

    model: str
    domain: Domain
    inputs: tuple[TensorPromise, ...]
    example: Sizes = field(hash=False)
    seed: int = 0
    seconds: float = 0.0
    stages: tuple[StageTime, ...] = ()
    costs: CostTable | None = None
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
