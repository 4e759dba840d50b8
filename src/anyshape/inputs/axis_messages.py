"""Findings about axes and sizes: words that do not fit, sizes that disagree, axes that follow nothing.

Every message names the input and its axis as the user wrote them, and gives both values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anyshape.findings import Finding, Severity, Source, counted

Shape = Sequence[int]


def wrong_rank(path: str, words: str, count: int, shape: Shape) -> Finding:
    return Finding(
        code="AS012",
        name="wrong-rank",
        what=f"input {path!r} has {counted(len(shape), 'axis', 'axes')}, and {words!r} speaks of {count}.",
        why=f"its shape in the example is {format_shape(shape)}.",
        fix="one word for each axis: a name, a number, an expression, _ for as it is, ... for any number of axes.",
    )


def wrong_size(path: str, axis: int, written: int, actual: int, words: str) -> Finding:
    return Finding(
        code="AS013",
        name="wrong-size",
        what=f"axis {axis} of input {path!r} is declared as {written}, and is {actual} in the example.",
        why=f"a number in {words!r} is a size that never changes.",
        fix=f"write {actual}, or a name if the size varies.",
    )


def inconsistent_sizes(
    dim: str, first: tuple[str, int, int], second: tuple[str, int, int], example: str = ""
) -> Finding:
    one, two = (f"{size} on axis {axis} of {path!r}" for path, axis, size in (first, second))
    return Finding(
        code="AS014",
        name="inconsistent-sizes",
        what=f"dim {dim!r} is {one} and {two}.",
        why=f"the same name is the same size{example}.",
        fix=f"give one of the two axes another name, or inputs that agree in {dim!r}.",
    )


def unsolvable_size(
    path: str, axis: int, expression: str, size: int, known: Mapping[str, int], example: str = ""
) -> Finding:
    given = f" where {spell_sizes(known)}" if known else ""
    whose = f"axis {axis} of input {path!r}" if axis >= 0 else f"the value of input {path!r}"
    return Finding(
        code="AS014",
        name="inconsistent-sizes",
        what=f"{whose} is declared as {expression}, and is {size} in {example.removeprefix(', in ') or 'the example'}.",
        why=f"no sizes make {expression} equal to {size}{given}.",
        fix="correct the expression, or give inputs that follow it.",
    )


def undetermined_dim(dim: str, path: str, axis: int, expression: str, values: tuple[int, int]) -> Finding:
    return Finding(
        code="AS015",
        name="undetermined-dim",
        what=f"the example does not tell the size of dim {dim!r}: it may be {values[0]} or {values[1]}.",
        why=f"it stands only inside {expression}, on axis {axis} of input {path!r}.",
        fix=f"give {dim!r} alone on some axis, or write axis {axis} of {path!r} as a dim of its own.",
    )


def no_such_axis(path: str, axis: int, shape: Shape) -> Finding:
    last = len(shape) - 1
    allowed = "it has no axes" if not shape else f"its axes are 0 to {last}" if last else "its only axis is 0"
    return Finding(
        code="AS016",
        name="no-such-axis",
        what=f"input {path!r} has no axis {axis}.",
        why=f"its shape in the example is {format_shape(shape)}: {allowed}.",
        fix="count axes from 0, or from the end with -1.",
    )


def unfit_axis(path: str, axis: int | str, observed: Sequence[tuple[Mapping[str, int], int]]) -> Finding:
    rows = [f"{size} at {spell_sizes(sizes)}" for sizes, size in observed]
    whose = f"axis {axis}" if isinstance(axis, int) else "the value"
    return Finding(
        code="AS017",
        name="axis-follows-nothing",
        what=f"{whose} of input {path!r} follows no expression of the sizes.",
        why="it is " + ",\nand ".join(rows) + ".",
        fix="let the size follow from the parameters by + - * // % min max, or make it a parameter of its own.",
        sizes=dict(observed[0][0]),
    )


def made_otherwise(path: str, expected: str, actual: str, sizes: Mapping[str, int]) -> Finding:
    return Finding(
        code="AS017",
        name="axis-follows-nothing",
        what=f"input {path!r} is {actual} at {spell_sizes(sizes)}, and was found to be {expected}.",
        why="the function of sizes follows another rule here than at the sizes where it was tried before.",
        fix="let every size follow from the parameters by one rule, or exclude these sizes: where=[...].",
        sizes=dict(sizes),
    )


@dataclass(frozen=True)
class UnusedParameter:
    """A parameter of a function of sizes that decides nothing, and the fixed axes that have its size."""

    name: str
    size: int
    alike: Sequence[tuple[str, int]]
    tried: Sequence[int] = ()
    unstable: Sequence[str] = ()
    refusal: str = ""


def unused_parameter(use: UnusedParameter, rules: Sequence[str], line: Source | None) -> Finding:
    name = use.name
    if use.alike:
        path, axis = use.alike[0]
        why = f"axis {axis} of input {path!r} has its size, {use.size}, and is fixed in the function."
        fix = f"make axis {axis} of {path!r} from {name!r}"
    elif use.refusal:
        why = f"the function gives no inputs at other values of it: {use.refusal}"
        fix = f"say which sizes it may have, such as where=['{name} % 32 == 0']"
    elif use.unstable:
        why = f"input {use.unstable[0]!r} differs at each call of the function, whatever {name!r} is: its seed is not fixed."
        fix = f"use a generator with a seed, such as numpy.random.default_rng(0), so that the effect of {name!r} shows"
    else:
        tried = ", ".join(str(value) for value in use.tried)
        why = f"the inputs are the same at {name} = {tried}." if tried else "it has one size only."
        fix = f"make an axis from {name!r}"
    beside = f", and its rules: {', '.join(rules)}" if rules else ""
    return Finding(
        code="AS068",
        name="reaches-no-axis",
        what=f"parameter {name!r} of the function of sizes decides no axis and no value.",
        where=line,
        why=why,
        fix=f"{fix}, or remove the parameter{beside}.",
    )


def rule_through_value(rule: str, values: Sequence[str], sizes: Sequence[str]) -> Finding:
    named = ", ".join(repr(name) for name in values)
    some = sizes[0] if sizes else "batch"
    return Finding(
        code="AS068",
        name="reaches-no-axis",
        what=f"the rule {rule} bounds sizes through {named}, which no axis follows.",
        why="it decides values of the inputs alone, so that neither the contract nor the file can check the rule.",
        fix=f"write the rule for sizes, such as where=['{some} <= 64'], or make an axis from {named}.",
    )


def range_without_axis(described: str, name: str, dims: Sequence[str]) -> Finding:
    return Finding(
        code="AS068",
        name="reaches-no-axis",
        what=f"dim {name!r} has a range, and is no axis of an input.",
        why=f"declared is {described}; the dims of the inputs are {', '.join(dims) if dims else 'none'}.",
        fix=f"use {name!r} for an axis of an input, or give it no range.",
    )


def no_axes_here(path: str, form: object) -> Finding:
    return Finding(
        code="AS068",
        name="reaches-no-axis",
        what=f"input {path!r} has no tensors in the example, and axes are declared for it.",
        why=f"declared is {form!r}; it is None, or an empty container.",
        fix=f"give an example in which {path!r} has tensors, or declare nothing for it.",
    )


def two_ranges(name: str, first: str, second: str) -> Finding:
    return Finding(
        code="AS007",
        name="dim-declared-twice",
        what=f"dim {name!r} is declared twice.",
        why=f"it is {first}, and {second}.",
        fix="use one Dim for all of its axes, or give the second a name of its own.",
    )


def unreadable_form(path: str, form: object, why: str = "") -> Finding:
    return Finding(
        code="AS018",
        name="unreadable-declaration",
        what=f"what is declared for {path!r} cannot be read: {form!r}.",
        why=why or "axes are declared by words, {axis: name}, a list of axes, or torch's Dim.",
        fix=f"for example dynamic={{{path!r}: {{0: 'batch'}}}}, or a word for each axis, such as 'batch seq 64'.",
    )


def unreadable_whole(form: object, why: str = "") -> Finding:
    return Finding(
        code="AS018",
        name="unreadable-declaration",
        what=f"the declaration cannot be read: dynamic={form!r}.",
        why=why or "it is {input: words}, a tree that mirrors the inputs, or 'auto'.",
        fix="for example dynamic={'x': 'batch seq 64'}.",
    )


def outside_domain(sizes: Mapping[str, int], rule: str) -> Finding:
    return Finding(
        code="AS025",
        name="example-outside-domain",
        what=f"the example lies outside its own domain: {spell_sizes(sizes)}.",
        why=f"the domain says {rule}.",
        fix="widen the rule, or give another example.",
        sizes=dict(sizes),
    )


def words_disagree(path: str, axis: int, written: str, found: str) -> Finding:
    return Finding(
        code="AS030",
        name="declarations-disagree",
        what=f"axis {axis} of input {path!r} is declared as {written}, but is {found}.",
        why=f"the function of sizes makes it {found}, and says by itself what every axis is.",
        fix="leave dynamic out, or correct one of the two.",
    )


def cannot_vary(path: str, axis: int, size: int) -> Finding:
    return Finding(
        code="AS032",
        name="axis-cannot-vary",
        severity=Severity.NOTE,
        what=f"axis {axis} of input {path!r} stays {size}.",
        why="the module answers at no other size that was tried.",
    )


def found_by_trying(paste: str) -> Finding:
    return Finding(
        code="AS056",
        name="found-by-trying",
        severity=Severity.NOTE,
        what="which axes can vary was found by trying: read it before you rely on it.",
        fix=paste,
    )


def value_varies(path: str, first: object, second: object) -> Finding:
    return Finding(
        code="AS033",
        name="value-varies",
        what=f"input {path!r} is {first!r} and {second!r}, and only tensors, ints and floats can vary.",
        why="a string, a bool or None decides what the module does: it is part of the file.",
        fix=f"keep {path!r} the same, and export once for each of its values.",
    )


def format_shape(shape: Shape) -> str:
    return f"[{', '.join(str(size) for size in shape)}]"


def spell_sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
