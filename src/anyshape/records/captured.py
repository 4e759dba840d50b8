"""What capture gives: programs with the conditions under which they hold, in the user's own dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from anyshape.domain import TRUE, All, AnyOf, Compare, Condition, Expr, Number, is_readable
from anyshape.findings import Source

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Graph, Node

Status = Literal["proved", "refuted", "unknown"]
SYMBOLIC = "symbolic"  # the strategy of the rung that captures with symbols for sizes
NoteKind = Literal["text", "rounding", "compiled"]


@dataclass(frozen=True)
class Note:
    """A line of the user's code on which a size leaves exact arithmetic: no condition shows what depends on it.

    `text`: a size becomes a text, with which the code may decide something. `rounding`: a float is rounded or compared of which
    torch's kernels need not give the last bit. `compiled`: a part of the module is compiled, and may decide something.
    `met_at` are the sizes of the capture that came to this line, `within` the conditions that it recorded, `dims` the dims that
    are used there (none where that is not known).
    """

    kind: NoteKind
    source: Source
    met_at: Mapping[str, int] = field(hash=False)
    within: tuple[Condition, ...] = ()
    dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guard:
    """A condition under which a program holds, its origin, and its status in the domain.

    `by_user`: a condition of the user's own code (`if x.shape[0] > 3`), or a size that the program holds as a constant; False
    for conditions that operators of torch ask for themselves.
    `has_few_failures`: it is known to fail at few sizes only (see `capture/failing_sizes.py`).
    `is_of_values`: torch asserts it of numbers that the program reads from tensors (`u0 == time`). No branch is behind it:
    torch traces none that values decide.
    `condition` is None where integer arithmetic over the dims cannot express it: `text` then has torch's own words.
    `counterexample` has sizes of the domain at which the condition does not hold, `further` more of them.
    """

    condition: Condition | None
    text: str
    source: Source | None
    by_user: bool
    status: Status = "unknown"
    counterexample: Mapping[str, int] | None = field(default=None, hash=False)
    has_few_failures: bool = False
    further: tuple[Mapping[str, int], ...] = field(default=(), hash=False)
    is_of_values: bool = False


@dataclass(frozen=True)
class Loop:
    """The body of a loop, decomposed for translation. A node `anyshape::loop` of this name stands where it runs.

    `inputs` is what each input of the body is: `("counter", 0)`, `("carried", k)`, `("tensor", k)` or `("number", k)`,
    k counting among those of the node. The body gives what it carries, `carried` of them, then what is collected.
    """

    program: ExportedProgram
    symbols: Mapping[str, Expr]
    inputs: tuple[tuple[str, int], ...]
    carried: int
    loops: Mapping[str, Loop] = field(default_factory=dict, hash=False)

    @property
    def programs(self) -> tuple[ExportedProgram, ...]:
        """The body's program, and those of the loops inside it."""
        return (self.program, *(program for loop in self.loops.values() for program in loop.programs))


@dataclass(frozen=True)
class OutputTensor:
    """One output tensor of the module: its path, dtype and axes.

    An axis of None follows no expression of the dims that a person could read: it depends on values, or on a branch.
    Where even the number of axes does, there are none and `any_rank` is True.
    """

    path: str
    dtype: str
    axes: tuple[Expr | None, ...]
    any_rank: bool = False

    def __post_init__(self) -> None:
        readable = (axis if axis is None or is_readable(axis) else None for axis in self.axes)
        object.__setattr__(self, "axes", tuple(readable))


@dataclass(frozen=True)
class Region:
    """One program, decomposed for translation, and the sizes at which it was traced.

    `program` is None in the result of an export that had a process of its own: it stays there.
    `symbols` is what each of the program's own size symbols is in the user's dims. `condition` is where this program
    holds: everywhere, unless there are others beside it; `outputs` are those of this program, where they differ from those of
    other regions. `notes` are those of this program, and of the programs that it stands for. At the sizes in `steps` a
    rounded float becomes another number.
    """

    program: ExportedProgram
    symbols: Mapping[str, Expr]
    guards: tuple[Guard, ...]
    traced_at: Mapping[str, int]
    condition: Condition = TRUE
    outputs: tuple[OutputTensor, ...] = ()
    loops: Mapping[str, Loop] = field(default_factory=dict, hash=False)
    notes: tuple[Note, ...] = ()
    steps: tuple[Mapping[str, int], ...] = field(default=(), hash=False)


@dataclass(frozen=True)
class RaisingRegion:
    """A part of the domain in which the module raises: the condition of a capture that ended there, and its sizes."""

    condition: Condition
    sizes: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True)
class Captured:
    """Regions that together cover the domain (none from the rung `legacy`), the rung that found them, and the module's outputs.

    `decisions` are the lines at which the values of the inputs, not the sizes, choose between the programs.
    `raising_regions` are parts of the domain in which the module raises. `has_uncaptured_branch` is true where the user's code
    takes another branch at some sizes, and that branch was not captured: it may have further conditions.
    """

    strategy: str
    regions: tuple[Region, ...]
    outputs: tuple[OutputTensor, ...]
    decisions: tuple[Source, ...] = ()
    raising_regions: tuple[RaisingRegion, ...] = ()
    has_uncaptured_branch: bool = False

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Every region's guards; each holds only as far as its region reaches."""
        return tuple(guard for region in self.regions for guard in region.guards)

    @property
    def sizes_against(self) -> list[Mapping[str, int]]:
        """Sizes at which conditions do not hold that no arithmetic expresses: no other rung has them."""
        unsaid = [guard for guard in self.guards if guard.condition is None and guard.counterexample is not None]
        return [sizes for guard in unsaid for sizes in (guard.counterexample, *guard.further) if sizes is not None]

    @property
    def programs(self) -> tuple[ExportedProgram, ...]:
        """Every program of the capture, the bodies of loops included."""
        loops = [loop for region in self.regions for loop in region.loops.values()]
        return (*(region.program for region in self.regions), *(program for loop in loops for program in loop.programs))

    @property
    def is_proved(self) -> bool:
        """Whether the domain implies every condition of the capture, and no region has a note. False without a program (the
        rung `legacy`), and where values choose between programs."""
        is_whole = bool(self.regions) and not self.decisions and not self.raising_regions and not self.notes
        return is_whole and all(guard.status == "proved" for guard in self.guards)

    @property
    def has_no_hidden_branch(self) -> bool:
        """Whether no branch of the user's code can be outside of what was captured, so that the whole domain is promised.

        True where sizes were symbols and every condition is proved, or fails at few sizes, which are compared, or is a line of
        the user's whose other side was captured as well, or is asserted by torch of values. Where another condition fails
        (`n == 11`, `n <= 512`), or a region has a note, the user's code may decide by further conditions, which the capture did
        not meet.
        """
        is_known = all(guard.status == "proved" or hides_no_branch(guard) for guard in self.guards)
        is_whole = self.is_symbolic and bool(self.regions) and is_known and not self.notes
        return self.is_proved or (is_whole and not self.has_uncaptured_branch and not self.raising_regions)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of all regions."""
        return tuple(dict.fromkeys(note for region in self.regions for note in region.notes))

    def with_notes(self, counts: Callable[[Note], bool], further: tuple[Note, ...] = ()) -> Captured:
        """The capture with those of its notes that count, and with further ones in each region."""
        notes = [dict.fromkeys((*filter(counts, region.notes), *further)) for region in self.regions]
        regions = (replace(region, notes=tuple(each)) for region, each in zip(self.regions, notes, strict=True))
        return replace(self, regions=tuple(regions))

    @property
    def is_symbolic(self) -> bool:
        """Whether the sizes were symbols in the capture, so that every condition on them was seen."""
        return self.strategy == SYMBOLIC


def hides_no_branch(guard: Guard) -> bool:
    """Whether no further branch is possible where a guard fails: the other side was captured, or these sizes are compared.

    Nor is one where values break what torch asserts of them.
    """
    is_branch = guard.by_user and guard.source is not None
    return guard.is_of_values or (guard.condition is not None and (is_branch or fails_at_few(guard)))


def fails_at_few(guard: Guard) -> bool:
    """Whether a guard is known to fail at few sizes only: so few that they are compared."""
    return guard.condition is not None and (guard.has_few_failures or _leaves_out_one_value(guard.condition))


def _leaves_out_one_value(condition: Condition) -> bool:
    """Whether a condition leaves out one value of an expression: `n != 7`.

    `a or b` fails only where both fail, so it fails at few sizes if one part does.
    """
    if isinstance(condition, AnyOf):
        return any(map(_leaves_out_one_value, condition.parts))
    if isinstance(condition, All):
        return all(map(_leaves_out_one_value, condition.parts))
    return isinstance(condition, Compare) and condition.op == "!=" and isinstance(condition.right, Number)


def asserts(node: Node) -> bool:
    """Whether a node of a captured program asserts something about values."""
    import torch

    return node.target in (torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg)


def live_nodes(graph: Graph, counts: Callable[[Node], bool] = lambda node: False) -> set[Node]:
    """The nodes that the output of a captured program depends on, or a node that counts as well."""
    live: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or counts(node) or not live.isdisjoint(node.users):
            live.add(node)
    return live
