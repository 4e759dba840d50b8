"""`axes`: which axes of which inputs can vary, and under which rules, found by calling the model; nothing is written.

declared, or found with one example -> tried as an export tries it -> axes, rules, findings
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from anyshape.diagnose.value_findings import diagnose_made_values
from anyshape.domain import Number, simplify, substitute
from anyshape.exporting.context import Options, Tell
from anyshape.exporting.module_trials import Tried, diagnose_declared_values, try_module
from anyshape.exporting.pipeline import explain_refusals
from anyshape.findings import Finding, PromiseBroken, check_number, raises_for_caller
from anyshape.inputs import Declared, declare, flatten_outputs, is_sizes_function, makes_one_example
from anyshape.intercept.turns import taking_turns
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.modules.callables import as_module
from anyshape.processes.isolated import in_own_process
from anyshape.report.axes_found import AxesFound, AxesOfInput
from anyshape.report.progress_line import shows_progress, telling
from anyshape.verify import Reference, VerifyOptions

__is_entrance__ = True

if TYPE_CHECKING:
    import torch


@raises_for_caller
@shows_progress
@in_own_process()
@taking_turns(model_at=0)
def axes(
    model: Any,
    inputs: Any,
    *,
    dynamic: Any = None,
    where: Sequence[str] | str = (),
    names: Any = None,
    values: Mapping[str, str] | Literal["given"] | None = None,
    every_axis: bool = False,
    time_limit: float = 60.0,
    seed: int = 0,
    progress: Tell | bool | None = None,
    isolate: bool | None = None,
) -> AxesFound:
    """Which axes of which inputs can vary, and under which rules; the model is called, and nothing is written.

    Arguments are those of `anyshape.export`. One example without `dynamic` is enough: each axis is tried at other sizes, alone
    and together with others; those that can change only together get one name, and those that cannot change stay numbers. With
    a function of sizes, several examples or words, the axes are the declared ones, unless `every_axis` is True: then each axis
    of the example is tried, whatever is declared. The rules are those that an export learns.
    `print(axes(...))` shows a table; `.dynamic` and `.where` are for `anyshape.export`, `.paste` for a model file.
    """
    module = as_module(model)
    check_number("seed", seed, 0, whole=True)
    check_number("time_limit", time_limit, 60)
    tell = telling(progress)
    rules = [where] if isinstance(where, str) else list(where)
    if every_axis or (dynamic is None and makes_one_example(inputs)):
        declared = declare(module, inputs, dynamic=dynamic, where=rules, names=names, values=values)
        inputs, dynamic, rules, names, values = declared.example, None, [], None, None
    is_bare = dynamic is None and not is_sizes_function(inputs) and not (isinstance(inputs, list) and len(inputs) > 1)

    def declare_as(words: Any) -> Declared:
        return declare(module, inputs, dynamic=words, where=rules, names=names, values=values)

    options = Options(time_limit_s=time_limit, verify=VerifyOptions(seed=seed, is_skipped=True))
    with TimeLimit(time_limit) as limit:
        try:
            search = _Search(module, options, tell, limit)
            search.tell("trying each axis", 0, 0)
            declared = declare_as("auto" if is_bare else dynamic)
            return search.find(declared, declare_as if is_bare else None)
        except OutOfTime:
            finding = _out_of_time(limit.seconds, limit.stage)
        raise PromiseBroken(finding)


class _Search:
    """One dry run: the module, how it is tried, and whom progress is reported to."""

    def __init__(self, module: torch.nn.Module, options: Options, tell: Tell, limit: TimeLimit) -> None:
        self.module, self.options, self.limit = module, options, limit
        self._tell = tell
        self._began = time.monotonic()

    def tell(self, stage: str, done: int, total: int) -> None:
        self.limit.stage = stage
        self.limit.check()
        self._tell(stage, done, total)

    def find(self, declared: Declared, redeclare: Callable[[Any], Declared] | None) -> AxesFound:
        """The axes and rules. `redeclare` makes a declaration of words: dims that we opened, and that have one size only,
        become numbers under it."""
        tried, findings = self._try(declared)
        example = declared.example_sizes
        fixed = {name: size for name, size in tried.explored.pinned.items() if size == example[name]}
        if redeclare is not None and fixed and tried.explored.is_explained:
            declared = redeclare(_words_with_numbers(declared, fixed))
            tried, findings = self._try(declared)
        explored, domain = tried.explored, tried.declared.domain
        refused = sorted((each.sizes for each in explored.refused), key=lambda sizes: sum(sizes.values()))
        return AxesFound(
            inputs=_describe_inputs(declared),
            domain=explored.narrow(domain),
            example_sizes=dict(declared.example_sizes),
            rules=explored.rules,
            fixed=dict(explored.pinned),
            values=dict(tried.values),
            value_parameters=tuple(value.name for value in declared.values),
            is_explained=explored.is_explained,
            refused=tuple(refused) if not explored.is_explained else (),
            findings=findings,
            is_declared=redeclare is None,
            from_function=declared.source == "function",
            calls=len(explored.answered) + len(explored.refused),
            seconds=time.monotonic() - self._began,
        )

    def _try(self, declared: Declared) -> tuple[Tried, tuple[Finding, ...]]:
        """Where the module answers, and what its refusals mean. Raises PromiseBroken where it refuses the example itself."""
        with Reference(self.module, flatten_outputs, apart=True, seconds=self.limit.seconds / 4) as reference:
            self.tell("trying the model", 0, 0)
            tried = try_module(self.module, declared, reference, self.options, tell=self.tell)
            made = () if tried.has_legal_integers else diagnose_made_values(self.module, tried.declared, tried.explored)
            values = diagnose_declared_values(declared, tried.explored, reference)
            findings = values or made or explain_refusals(tried.declared, tried.explored, reference)
        if not tried.explored.answered:
            raise PromiseBroken(*findings)
        # Warnings that a contract would be narrower have a rule and its line; both are in the table.
        return tried, tuple(finding for finding in findings if not finding.narrows)


def _words_with_numbers(declared: Declared, fixed: Mapping[str, int]) -> dict[str, str]:
    """The declaration as words, with numbers in place of these dims."""
    numbers = {name: Number(size) for name, size in fixed.items()}
    return {
        leaf.path: " ".join(str(simplify(substitute(axis, numbers))).replace(" ", "") for axis in leaf.axes)
        for leaf in declared.tensor_leaves
        if leaf.axes
    }


def _describe_inputs(declared: Declared) -> tuple[AxesOfInput, ...]:
    return tuple(
        AxesOfInput(
            path=leaf.path,
            dtype=leaf.dtype,
            shape=leaf.shape(declared.example_sizes),
            axes=leaf.axes,
            is_number=leaf.is_open_number,
            value=leaf.number,
        )
        for leaf in declared.open_leaves
    )


def _out_of_time(seconds: float, stage: str) -> Finding:
    return Finding(
        code="AS580",
        name="axes-out-of-time",
        what=f"the axes that can vary were not found within {seconds:g} s.",
        why=f"the search was ended while {stage or 'it began'}.",
        fix="give it more: time_limit=600 (--time-limit 10m).",
        is_fix_untried=True,
    )
