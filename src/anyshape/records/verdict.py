"""What verification gives: at which sizes the file was compared with the module, where and how it differed, what was left out.

Facts only. Words are for `diagnose` and `report`; `as_plain` gives JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

from anyshape.domain import Domain, Sizes
from anyshape.findings import Source

_NUMBER = re.compile(r"\d+")


class Mismatch(Enum):
    """How an output differs, in the order of comparison: what comes first makes the rest meaningless."""

    STRUCTURE = "structure"
    SHAPE = "shape"
    DTYPE = "dtype"
    NAN = "nan"
    INFINITY = "infinity"
    VALUE = "value"
    DISTRIBUTION = "distribution"


@dataclass(frozen=True)
class Difference:
    """Why two outputs differ. `expected` and `actual` are counts, shapes, dtypes or the worst element's values.

    `index` is the worst element, `count` how many elements differ; `excess` is the error as a multiple of its tolerance
    (infinite where no tolerance could make it equal).
    """

    mismatch: Mismatch
    output: str
    expected: Any
    actual: Any
    index: tuple[int, ...] | None = None
    count: int = 0
    excess: float = math.inf


class FailureKind(Enum):
    """What went wrong at some sizes."""

    DIFFERS = "differs"
    RAISED = "raised"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    REJECTED = "rejected"
    UNSUPPORTED = "unsupported"


class Fault(Enum):
    """Whose fault a wrong value is: the file's, or that of the runtime which ran it.

    UNDEFINED: the file's, which has an operator for a type that the ONNX standard does not define for it.
    """

    FILE = "file"
    UNDEFINED = "undefined"
    RUNTIME = "runtime"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Located:
    """The first node of the file whose value is not one that the module computes.

    `node` is its name, or that of its first output where it has none; both are "" where no node was found.
    `constant` is the shape or size that it takes from the file itself, where it holds a size of the example.
    """

    node: str
    op_type: str
    source: Source | None = None
    constant: tuple[int, ...] | None = None
    fault: Fault = Fault.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One trial that the file did not pass: enough to do it again.

    `values` names the values of the inputs (`random`, `zeros`, `negated`, ...), which `seed` makes again. A file that
    is REJECTED, or UNSUPPORTED for want of a kernel, fails at all sizes. `located` is looked for in the smallest
    failure only.
    """

    sizes: Sizes = field(hash=False)
    kind: FailureKind
    difference: Difference | None = None
    message: str = ""
    values: str = "random"
    seed: int = 0
    located: Located | None = None


@dataclass(frozen=True)
class Refusal:
    """Sizes at which the module itself raised: its message, and the line of the user's code, where there is one.

    `file_answers`: whether the file answered there all the same; None where there is no file, or it was not
    waited for. `outputs` are the paths of the outputs at sizes at which the module did not raise, but returned other outputs
    than at the example's sizes: another number of them, others of their names, or the same in other dtypes
    (`has_other_dtypes`). `has_ended`: the process of the call ended there, or was ended; `lacks_memory`: this machine has too
    little memory for it, so that nothing is known about the module.
    """

    sizes: Sizes = field(hash=False)
    message: str
    source: Source | None = None
    file_answers: bool | None = None
    outputs: tuple[str, ...] | None = None
    has_other_dtypes: bool = False
    has_ended: bool = False
    lacks_memory: bool = False

    @property
    def kind(self) -> tuple[Source | None, str]:
        """What refusals have in common that are raised by the same check: the line, and the message without its numbers."""
        return self.source, _NUMBER.sub("0", self.message)


@dataclass(frozen=True)
class OutputError:
    """The worst error seen on an output as a multiple of its noise floor; up to `allowed` counts as equal.

    Where the user gave a tolerance, it is a multiple of that, and `allowed` is 1.
    """

    output: str
    worst: float
    allowed: float

    @property
    def unit(self) -> str:
        return "tolerance" if self.allowed == 1.0 else "noise floor"


@dataclass(frozen=True)
class ComparedSizes:
    """Sizes at which file and module agree: the worst error of each output there as a multiple of its noise floor."""

    sizes: Sizes = field(hash=False)
    errors: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True)
class RoundedOtherwise:
    """An output that is more than one tolerance off, by the file's rounding alone: in doubles file and module agree."""

    output: str
    tolerances: float
    sizes: Sizes = field(hash=False)


@dataclass(frozen=True)
class Untried:
    """Sizes that were planned and not compared, and why: nothing is claimed about them.

    `is_out_of_time`: the time for comparisons was over before them.
    """

    sizes: Sizes = field(hash=False)
    why: str
    is_out_of_time: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class CondSide:
    """A function of a torch.cond that no compared values lead to: the first (`side` is True) or the second.

    It was compared by itself, if the module answers under it at all (`is_compared`), and failed or not.
    """

    source: Source
    side: bool
    failure: Failure | None
    is_compared: bool


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of a verification.

    `tried` are the sizes at which module and file were compared at least once; `set_aside` counts the edge values that
    the module refused or answered without finite numbers, by name: they are no failures, and no evidence either.
    `compared` has the worst errors at each size at which every comparison was equal.
    Every size that was proposed is in `tried`, in `refused` or, with a reason, in `untried`. `stopped_after` is the time in
    seconds after which the comparisons were ended, None if they came to their end. `lowest` has inputs for whose integers
    below this number the file is wrong; everything else in the verdict is about the integers from there on. `sides` are
    functions that were compared by themselves. `at_nan` are differences for inputs that hold NaN, which are no failures.
    `untried_values` names the edge values that were left out to keep the comparisons in proportion to the export.
    `is_broken_off`: the module raised where it should answer, and other rules are learned; such a verdict promises nothing.
    `is_skipped`: the user wanted no comparison at all, so nothing is known. `runtime` is what ran the file. `is_of_copy`: it
    cannot load the file, and a copy in float32 was compared that rounds to bfloat16; `no_kernels` are the operators at fault.
    """

    tried: tuple[Sizes, ...] = field(hash=False, default=())
    failures: tuple[Failure, ...] = ()
    smallest_failure: Failure | None = None
    refused: tuple[Refusal, ...] = ()
    untried: tuple[Untried, ...] = ()
    outputs: tuple[OutputError, ...] = ()
    compared: tuple[ComparedSizes, ...] = ()
    rounded: tuple[RoundedOtherwise, ...] = ()
    trials: int = 0
    set_aside: Mapping[str, int] = field(hash=False, default_factory=dict)
    floor: str = ""
    seconds: float = 0.0
    stopped_after: float | None = None
    lowest: Mapping[str, int] = field(hash=False, default_factory=dict)
    sides: tuple[CondSide, ...] = ()
    at_nan: tuple[Failure, ...] = ()
    untried_values: tuple[str, ...] = ()
    is_broken_off: bool = False
    is_skipped: bool = False
    runtime: str = "onnxruntime"
    is_of_copy: bool = False
    no_kernels: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """No failure, and at least one size at which there was something to compare, unless that was not wanted."""
        return not self.failures and not self.is_broken_off and (bool(self.tried) or self.is_skipped)

    @property
    def unit(self) -> str:
        """What errors are multiples of: `noise floor`, or `tolerance` where the user gave one."""
        return self.outputs[0].unit if self.outputs else "noise floor"

    def refused_in(self, domain: Domain) -> tuple[Refusal, ...]:
        """The refusals at sizes that the domain contains."""
        return tuple(refusal for refusal in self.refused if domain.contains(refusal.sizes))

    @property
    def sizes_of_other_outputs(self) -> tuple[Sizes, ...]:
        """The sizes at which module and file have another number of outputs, or outputs of other dtypes."""
        others = (Mismatch.STRUCTURE, Mismatch.DTYPE)
        return tuple(
            failure.sizes
            for failure in self.failures
            if failure.difference is not None and failure.difference.mismatch in others
        )

    @property
    def passed_sizes(self) -> tuple[Sizes, ...]:
        """The sizes at which every comparison was equal."""
        failed = [dict(failure.sizes) for failure in self.failures]
        return tuple(sizes for sizes in self.tried if dict(sizes) not in failed)


def as_plain(value: Any) -> Any:
    """Records as dicts, lists, strings and numbers that JSON can hold: NaN and infinities become strings."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {item.name: as_plain(getattr(value, item.name)) for item in fields(value)}
        return {**plain, "passed": value.passed} if isinstance(value, Verdict) else plain
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


@dataclass(frozen=True)
class RowDifference:
    """The number of the call in its row (from 1), its sizes, the output, and what was expected and given."""

    call: int
    sizes: Mapping[str, int] = field(hash=False)
    output: str
    text: str
