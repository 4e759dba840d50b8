"""The request to verify: a file, its module, and how to make inputs at given sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from os import PathLike
from typing import TYPE_CHECKING, Any

from anyshape.domain import Condition, Sizes
from anyshape.records.verdict import Untried
from anyshape.runtime.dtypes import Array
from anyshape.runtime.runtimes import ONNXRUNTIME
from anyshape.runtime.session import CPU
from anyshape.verify.edge_values import Legal, lowest_integers, positions_of
from anyshape.verify.reference import CallInputs, Reference
from anyshape.verify.shrink import Contains

Make = Callable[[Sizes, int], CallInputs]
Feeds = Callable[[CallInputs], Mapping[str, Array]]
Progress = Callable[[int, int, Sizes], None]
Ranges = Callable[[Sizes], Mapping[str, tuple[float, float]]]

if TYPE_CHECKING:
    from anyshape.verify.shared_plan import SharedPlan

_DRAWS_LOOKED_AT = 4


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """At least `draws` of random values are made at a few sizes, and one at each of the others.

    `rtol` and `atol` replace the noise floor. `budget_s` is the estimated time of all comparisons, by which the sizes are
    chosen before the first one runs; `clock_s` is the real time after which the verification ends, with sizes left over.
    `time_limit_s` is for one run in onnxruntime (more when eager itself is slow). `threads` are those of one operator there:
    1, unless given, or as many as torch has here for a file that is too large for several children.
    `stop_at_failure` ends with the first failure: where only its existence matters. `most_failures` ends
    with so many. `ends_outside` ends with the first failure, for random values, at sizes at which this does not hold: where
    another file is made then. `is_budget_given`: the user gave `budget_s`, which then counts in place of a share of the export.
    `most_sizes` limits the sizes of an export to so many, unless more are decisive. `locate_s` is for finding the node at
    fault; 0 leaves that out. `providers` are onnxruntime's, in their order. `is_random`: the model draws random numbers, so
    its answers and the file's are compared as samples. `is_skipped`: nothing is compared. `share` is (place, count): of the
    planned trials every count-th is made, from that place on. `runtime` is one
    of RUNTIMES; `runs` is another form of the file that is run in its place, such as OpenVINO's IR.
    """

    draws: int = 3
    seed: int = 0
    budget_s: float = 60.0
    is_budget_given: bool = False
    most_sizes: int | None = None
    clock_s: float = 300.0
    rtol: float | None = None
    atol: float | None = None
    threads: int | None = None
    time_limit_s: float = 30.0
    memory_limit: int | None = None
    shrink_tries: int = 40
    stop_at_failure: bool = False
    most_failures: int | None = None
    ends_outside: Condition | None = None
    locate_s: float = 10.0
    is_random: bool = False
    providers: tuple[str, ...] = (CPU,)
    runtime: str = ONNXRUNTIME.name
    runs: str | None = None
    is_skipped: bool = False
    share: tuple[int, int] = (0, 1)
    progress: Progress | None = None

    @property
    def run_limit_s(self) -> float:
        """The seconds of one run in onnxruntime: no run may take longer than the whole verification."""
        return min(self.time_limit_s, self.clock_s)

    def with_progress(self, tell: Callable[[str, int, int], None]) -> VerifyOptions:
        """The same options; each comparison is reported as a step of the stage "comparing"."""
        return replace(self, progress=lambda done, total, sizes: tell("comparing", done, total))


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """How many operations all comparisons may take together; `of` estimates those of one call of the module.

    The sizes in `decisive` are compared whatever they take. With `most_sizes` no more sizes are compared than so many, unless
    more are decisive.
    """

    of: Callable[[Sizes], int]
    total: int
    decisive: Sequence[Sizes] = ()
    most_sizes: int | None = None


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """`model` is a file, or its bytes. `sizes` are sorted, the most informative first; those in `once` are compared with
    one draw of values each; `left_out` goes into the verdict as it is.

    `make(sizes, seed)` makes inputs, the same ones each time; `feeds` turns them into what the file is fed. `example`
    is the sizes from which the file was made, as far as they are known: those that may be frozen in it. `operators` are the
    functions of its custom nodes, `mylib::Scale`, if it has any. `named` gives the inputs by the names that `ranges` uses, if
    these are not the file's; `ranges(sizes)` has the lowest and highest legal value of inputs, where declared.
    Without `edge_values`, inputs have only the values that `make` gives. Without an `allowance` everything is compared.
    `plan` is a plan that another process has made, in place of one that is made of all this.
    """

    model: str | PathLike[str] | bytes
    output_names: Sequence[str]
    reference: Reference
    make: Make
    feeds: Feeds
    domain: Contains
    sizes: Sequence[Sizes]
    once: Sequence[Sizes] = ()
    left_out: Sequence[Untried] = ()
    example: Sizes = field(default_factory=dict)
    operators: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    options: VerifyOptions = field(default_factory=VerifyOptions)
    named: Feeds | None = None
    ranges: Ranges = field(default=lambda sizes: {})
    edge_values: bool = True
    allowance: Allowance | None = None
    plan: SharedPlan | None = None

    def legal(self, sizes: Sizes) -> Legal:
        """Which tensor of the inputs is which input of the file, and its legal values at these sizes."""
        return Legal(self._positions, self.ranges(sizes))

    def lowest_shown(self) -> dict[str, int]:
        """The lowest integer that `make` gives to each input whose values are not declared, as far as they vary."""
        draws = (self.make(self._small, self.options.seed + draw) for draw in range(_DRAWS_LOOKED_AT))
        lowest, declared = lowest_integers(draws), self.ranges(self._small)
        return {name: lowest[at] for name, at in self._positions.items() if at in lowest and name not in declared}

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return positions_of(self.make(self._small, self.options.seed), self.named or self.feeds)

    @property
    def _small(self) -> Sizes:
        """The smallest sizes at which no dim is 1, if there are any."""
        wide = [sizes for sizes in self.sizes if min(sizes.values(), default=0) > 1] or self.sizes
        return min(wide, key=lambda sizes: prod(sizes.values()), default=self.example)
