"""Which axes of a model's inputs can vary, and under which rules: as a record, as a table, as JSON, and as text to paste."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anyshape.domain import Dim, Domain, Expr, Number, dims_of, format_condition, format_expr, format_sizes
from anyshape.domain.parse import format_domain
from anyshape.findings import Finding, Severity, render_all
from anyshape.records.contract import Rule
from anyshape.report import findings_as_plain, format_table, wrap_line

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class AxesOfInput:
    """One input of the file: its path in the call, and the size of each axis in the example and in general.

    A Python number has no axes; `value` is the expression of the dims that it follows, None where it follows none.
    """

    path: str
    dtype: str
    shape: tuple[int, ...] = ()
    axes: tuple[Expr, ...] = ()
    is_number: bool = False
    value: Expr | None = None

    @property
    def words(self) -> str:
        """The axes as `dynamic` takes them: `batch seq 64`."""
        return "value" if self.is_number else " ".join(format_expr(axis).replace(" ", "") for axis in self.axes)


@dataclass(frozen=True, kw_only=True)
class AxesFound:
    """What `anyshape.axes` found by calling the model.

    `domain` has the sizes at which the model answers: the declared ones, narrowed by `rules`, which were learned. `fixed` has
    the dims of one size only. Where no rule describes all sizes at which the model raises, `is_explained` is False; `refused`
    has such sizes, the smallest first. `values` are bounds of values that were learned on the way,
    `value_parameters` the parameters of a function of sizes that decide values and no axis. `is_declared` is True
    where the axes come from a declaration, and False where they were found with one example alone.
    """

    inputs: tuple[AxesOfInput, ...]
    domain: Domain
    example_sizes: Mapping[str, int] = field(hash=False)
    rules: tuple[Rule, ...] = ()
    fixed: Mapping[str, int] = field(default_factory=dict, hash=False)
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    value_parameters: tuple[str, ...] = ()
    is_explained: bool = True
    refused: tuple[Mapping[str, int], ...] = field(default=(), hash=False)
    findings: tuple[Finding, ...] = ()
    is_declared: bool
    from_function: bool = False
    calls: int = 0
    seconds: float = 0.0

    @property
    def is_kept(self) -> bool:
        """Whether nothing stands against an export of these axes."""
        return self.is_explained and not any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def dynamic(self) -> dict[str, str]:
        """What `anyshape.export` takes as `dynamic`: words for the axes of each input."""
        return {each.path: each.words for each in self.inputs if each.words}

    @property
    def where(self) -> tuple[str, ...]:
        """What `anyshape.export` takes as `where`: the rules of the domain."""
        return format_domain(self.domain)

    @property
    def paste(self) -> str:
        """The declaration as Python code for a model file; "" where there is nothing to add to the function of sizes."""
        parts = (
            []
            if self.from_function
            else [_assigned("dynamic", "{}", [f'"{k}": "{v}"' for k, v in self.dynamic.items()])]
        )
        parts += [_assigned("where", "[]", [f'"{rule}"' for rule in self.where])] if self.where else []
        return "\n".join(parts)

    def as_plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kept": self.is_kept,
            "inputs": [_input_as_plain(each) for each in self.inputs],
            "dims": [self._dim_as_plain(dim) for dim in self.domain.dims],
            "rules": [
                {
                    "rule": format_condition(rule.condition),
                    "origin": rule.origin,
                    "file": rule.source.file if rule.source else None,
                    "line": rule.source.line if rule.source else None,
                }
                for rule in self.rules
            ],
            "values": dict(self.values),
            "value_parameters": list(self.value_parameters),
            "is_explained": self.is_explained,
            "refused": [dict(sizes) for sizes in self.refused],
            "declaration": {"dynamic": self.dynamic, "where": list(self.where)},
            "paste": self.paste,
            "calls": self.calls,
            "seconds": round(self.seconds, 3),
            "findings": findings_as_plain(self.findings),
        }

    def _dim_as_plain(self, dim: Dim) -> dict[str, Any]:
        size = self.example_sizes.get(dim.name)
        about = {"min": dim.min, "max": dim.max, "multiple": dim.multiple, "fixed": self.fixed.get(dim.name)}
        return {"name": dim.name, "example": size, **about}

    def __str__(self) -> str:
        return describe_axes(self)


def _assigned(name: str, brackets: str, items: list[str]) -> str:
    """`where = ["a", "b"]`, one item a line where that is too long."""
    opening, closing = brackets[0], brackets[1]
    line = f"{name} = {opening}{', '.join(items)}{closing}"
    if len(line) <= 76:
        return line
    return "\n".join([f"{name} = {opening}", *(f"    {item}," for item in items), closing])


def _input_as_plain(each: AxesOfInput) -> dict[str, Any]:
    axes = [
        {"size": size, "is_open": not isinstance(axis, Number), "expression": format_expr(axis)}
        for size, axis in zip(each.shape, each.axes, strict=True)
    ]
    number = {} if not each.is_number else {"value": None if each.value is None else format_expr(each.value)}
    return {"path": each.path, "dtype": each.dtype, "axes": axes, **number}


def describe_axes(found: AxesFound) -> str:
    """A line for each axis, then the rules, what was refused without a rule, and the text to paste; findings last."""
    axes = [(each, place) for each in found.inputs for place in range(len(each.axes))]
    varying = sum(_can_vary(found, each.axes[place]) for each, place in axes)
    lines = [f"{varying} of {len(axes)} axes can vary: {found.calls} sizes tried in {found.seconds:.1f} s", ""]
    rows, told = [], set[str]()
    for each in found.inputs:
        if each.is_number:
            rows.append((each.path, "value", "", "varies" if each.value is None else format_expr(each.value), ""))
        for axis, (size, expr) in enumerate(zip(each.shape, each.axes, strict=True)):
            rows.append((each.path, str(axis), str(size), *_said(found, expr, told)))
    lines += format_table(("input", "axis", "example", "size", "sizes at which the model answers"), rows, right=(2,))
    lines += [""] if found.domain.relations or found.values or found.value_parameters or not found.is_explained else []
    for relation in found.domain.relations:
        lines += wrap_line("rule", format_condition(relation) + _line_of(found, relation))
    for name, text in found.values.items():
        lines += wrap_line("values", f"{name}: {text}")
    for name in found.value_parameters:
        lines += wrap_line("values", f"parameter {name} decides values, and no axis")
    if not found.is_explained:
        some = "; ".join(map(format_sizes, found.refused[:_SHOWN]))
        lines += wrap_line("rule", f"unknown: the model raises at {some}, and no rule was found that describes it.")
    if found.paste:
        lines += ["", "To paste into the model file:", "", *(f"    {line}" for line in found.paste.splitlines())]
    return "\n".join(lines) + (f"\n\n{render_all(found.findings)}" if found.findings else "")


def _can_vary(found: AxesFound, axis: Expr) -> bool:
    return any(name not in found.fixed for name in dims_of(axis))


def _said(found: AxesFound, axis: Expr, told: set[str]) -> tuple[str, str]:
    """The expression of an axis, and the sizes of its dim where the dim is met for the first time."""
    names = dims_of(axis)
    if not names:
        return format_expr(axis), "this one" if not found.is_declared else "as declared"
    fresh = [found.domain.dim(name) for name in names if name not in told]
    told.update(names)
    return format_expr(axis), ", ".join(_range(found, dim) + _origin(found, dim) for dim in fresh)


def _range(found: AxesFound, dim: Dim) -> str:
    if dim.name in found.fixed:
        return f"{found.fixed[dim.name]} only"
    steps = f", multiples of {dim.multiple}" if dim.multiple != 1 else ""
    return f"{dim.smallest} and more{steps}" if dim.max is None else f"{dim.smallest} to {dim.max}{steps}"


def _origin(found: AxesFound, dim: Dim) -> str:
    """The line that is the reason for the sizes of a dim, where it is known."""
    rules = [rule for rule in found.rules if dims_of(rule.condition) == (dim.name,) and rule.source is not None]
    return f" ({rules[0].source.file}:{rules[0].source.line})" if rules and rules[0].source else ""


def _line_of(found: AxesFound, relation: Any) -> str:
    source = next((rule.source for rule in found.rules if rule.condition == relation and rule.source), None)
    return f"   ({source.file}:{source.line})" if source else ""
