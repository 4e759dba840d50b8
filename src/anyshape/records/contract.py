"""What a file promises: dims, rules, inputs, outputs, and what stands behind the promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from anyshape.domain import Condition, Domain, Expr
from anyshape.domain.bounded_values import GIVEN, ValueBounds, parse_bounds
from anyshape.findings import Finding, Source
from anyshape.records.verdict import Untried

Origin = Literal["declared", "model", "found by trying", "compared"]
Status = Literal["kept", "broken", "unverified", "unknown"]


@dataclass(frozen=True)
class Rule:
    """A condition on the dims, and its origin.

        declared          the user wrote it
        model             an integer of the file leaves 64 bits elsewhere; or a guard of the capture, with accept_narrower
        found by trying   the module raised elsewhere
        compared          the comparisons end there

    `source` is a line of the user's code: of the computation, of the guard, or where the module raised; None if unknown.
    """

    condition: Condition
    origin: Origin
    source: Source | None = None


@dataclass(frozen=True)
class TensorPromise:
    """An input or an output: its name in the file, its path in the user's structure, its dtype and its axes.

    An axis of None follows no expression of the dims (it depends on values, or on a branch). Where even
    their number does, there are none and `any_rank` is True.
    """

    name: str
    path: str
    dtype: str
    axes: tuple[Expr | None, ...]
    any_rank: bool = False

    def __str__(self) -> str:
        sizes = ["..."] if self.any_rank else ["?" if axis is None else str(axis) for axis in self.axes]
        return f"{self.name}: {self.dtype}[{', '.join(sizes)}]"


@dataclass(frozen=True)
class StatePromise:
    """A value that the model keeps from call to call: `output` of one call is `input` of the next.

    `shape` and `data` are its value before the first call: an axis that is a text follows that dim, and the value is the
    same all along it. `data` has the bytes as base64, and is empty where all are zero.
    """

    name: str
    input: str
    output: str
    dtype: str
    shape: tuple[int | str, ...]
    data: str = ""


@dataclass(frozen=True)
class Opaque:
    """A Python value that JSON cannot hold, by its type and its text: `torch.dtype`, `torch.float16`."""

    type: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Constant:
    """A Python value of the inputs that is baked into the file, and checked when the caller gives it.

    A bool, int, float, str, None, or an Opaque for everything else.
    """

    path: str
    value: Any


@dataclass(frozen=True)
class Tested:
    """What stands behind the promise: at how many sizes the file was compared, and whether its capture is proved.

    `worst_error` has the worst error of each output as a share of its tolerance: up to 1 counts as equal. It is empty where
    nothing compared equal, and for random files. `untried` are sizes that were proposed and not compared, with the reason.
    """

    sizes: tuple[Mapping[str, int], ...]
    capture_proved: bool
    largest: Mapping[str, int] = field(default_factory=dict)
    worst_error: Mapping[str, float] = field(default_factory=dict)
    against_guards: int = 0
    untried: tuple[Untried, ...] = ()


@dataclass(frozen=True)
class Digest:
    """What was verified, as `sha256:...`: the graph without the values of its weights, and these values."""

    graph: str
    weights: str


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The whole promise of one file. `domain` holds dims with their final ranges; `rules` has the origin of each.

    `status` is unverified for a file that was not compared with its model, unknown for a file of another exporter: nobody
    promised anything. `parameters` are the names that arguments without a name are given to, in the order of the user's
    signature; empty if it is unknown. `needs` are the custom nodes, `mylib::Scale`, that a runtime must
    know. `state` is what the caller carries from call to call. `random`: the file draws random numbers, and was compared
    with the model by their distribution. `digest` is that of the model which was verified; None for a draft, for a file
    of another exporter, and in files of anyshape 0.1.0. `values` has the declared values of inputs: `0 <= ids < 1000`, or
    `given` where the file was compared on values of the user's function alone. `refused` are sizes of the domain at which
    the model raises and no rule is known that describes them: the file raises there as well. `target` is the only runtime
    that runs the file, "" for any.
    """

    status: Status
    domain: Domain
    rules: tuple[Rule, ...]
    inputs: tuple[TensorPromise, ...]
    outputs: tuple[TensorPromise, ...]
    constants: tuple[Constant, ...] = ()
    parameters: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Mapping[str, int], ...] = ()
    state: tuple[StatePromise, ...] = ()
    random: bool = False
    tested: Tested = field(default_factory=lambda: Tested((), capture_proved=False))
    strategy: str = ""
    opset: int = 0
    target: str = ""
    findings: tuple[Finding, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    digest: Digest | None = None

    @property
    def input_axes(self) -> dict[str, tuple[Expr | None, ...]]:
        """The axes of each input, by its name in the file."""
        return {tensor.name: tensor.axes for tensor in self.inputs}

    @property
    def value_bounds(self) -> dict[str, ValueBounds]:
        """The bounds of each input whose values have any, by its name in the file."""
        paths = {tensor.name: tensor.path for tensor in self.inputs}
        texts = {name: text for name, text in self.values.items() if text != GIVEN and name in paths}
        return {name: parse_bounds(text, (name, paths[name])) for name, text in texts.items()}
