"""Findings about a call that lies outside the contract: one function and one code for each kind of mistake.

Each names the input, the axis, the value and the rule; `why` lists the size of every dim that is known so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from anyshape.domain import Condition, Dim, format_condition, format_expr, format_sizes
from anyshape.findings import Finding, Source
from anyshape.findings.finding import quoted
from anyshape.graphs import Place, Reading
from anyshape.records.contract import Rule, TensorPromise

_ASKED_BY = {
    "declared": "the rule was declared when the file was exported.",
    "model": "the rule is the model's own.",
    "found by trying": "the rule was found by trying the model: it refuses other sizes.",
    "compared": "the file was compared with the model up to there, and promises no more.",
}


def missing_input(missing: Sequence[TensorPromise], inputs: Sequence[TensorPromise]) -> Finding:
    one = len(missing) == 1
    return Finding(
        code="AS409",
        name="missing-input",
        what=f"input{'' if one else 's'} {_listed(missing)} {'is' if one else 'are'} missing.",
        why=f"the file takes {'; '.join(map(str, inputs))}.",
    )


def unknown_input(name: str, inputs: Sequence[TensorPromise]) -> Finding:
    known = list(dict.fromkeys(spoken for tensor in inputs for spoken in (tensor.path, tensor.name)))
    near = get_close_matches(name, known, n=1)
    return Finding(
        code="AS410",
        name="unknown-input",
        what=f"there is no input {name!r}.",
        why=f"the file takes {'; '.join(map(str, inputs)) or 'no inputs'}.",
        fix=f"did you mean {near[0]!r}?" if near else f"leave {name!r} out.",
    )


def wrong_rank(tensor: TensorPromise, shape: Sequence[int]) -> Finding:
    return Finding(
        code="AS407",
        name="wrong-rank",
        what=f"input {tensor.name!r} has {_axes(len(shape))}, but needs {_axes(len(tensor.axes))}.",
        why=f"expected {tensor}, actual {tensor.dtype}[{_sizes(shape)}].",
    )


def wrong_dtype(tensor: TensorPromise, dtype: str, is_torch: bool) -> Finding:
    cast = f"to(torch.{tensor.dtype})" if is_torch else f'astype("{tensor.dtype}")'
    return Finding(
        code="AS408",
        name="wrong-dtype",
        what=f"input {tensor.name!r} is {dtype}, but must be {tensor.dtype}.",
        fix=f"{_in_python(tensor.path)}.{cast}",
    )


def _in_python(path: str) -> str:
    """`cache.0` as Python reads it: `cache[0]`."""
    return re.sub(r"\.(\d+)\b", r"[\1]", path)


def wrong_fixed_size(tensor: TensorPromise, axis: int, shape: Sequence[int]) -> Finding:
    return Finding(
        code="AS406",
        name="wrong-fixed-size",
        what=f"input {tensor.name!r} axis {axis} is {shape[axis]}, but is always {tensor.axes[axis]}.",
        why=f"expected {tensor}, actual {tensor.dtype}[{_sizes(shape)}].",
    )


def value_outside(tensor: TensorPromise, text: str, value: float, sizes: Mapping[str, int]) -> Finding:
    at = format_sizes(sizes)
    return Finding(
        code="AS421",
        name="value-outside",
        what=f"input {tensor.name!r} has the value {value:g}, and the contract says {text}.",
        why=f"the file was compared with the model for no other values{f' (at {at})' if at else ''}.",
        fix=f"export again, with values= for {tensor.name!r} that include it.",
        sizes=dict(sizes),
    )


def dim_differs(place: Place, actual: int, other: Place, expected: int, bindings: Mapping[str, str]) -> Finding:
    dim = format_expr(place.expr)
    return Finding(
        code="AS401",
        name="dim-differs",
        what=f"input {place} ({dim}) is {actual}, but input {other} ({dim}) is {expected}.",
        why=_known(bindings),
        fix=f"give {place.input!r} and {other.input!r} the same {dim}.",
    )


def wrong_axis(place: Place, actual: int, expected: int | None, bindings: Mapping[str, str]) -> Finding:
    value = "which has no value at these sizes" if expected is None else f"which is {expected}"
    return Finding(
        code="AS404",
        name="wrong-axis",
        what=f"input {place} is {actual}, but must be {format_expr(place.expr)}, {value}.",
        why=_known(bindings),
    )


def out_of_range(dim: Dim, reading: Reading, size: int, bindings: Mapping[str, str], rule: Rule | None) -> Finding:
    if size < dim.min:
        limit, wanted = f"at least {dim.min}", f"{dim.name} >= {max(size, 0)}"
    else:
        limit, wanted = f"at most {dim.max}", f"{dim.name} <= {size}"
    return Finding(
        code="AS402",
        name="size-out-of-range",
        what=f"{_spoken(reading, size)}, but must be {limit}.",
        where=_source(rule),
        why=_known(bindings, rule),
        alternative=f"export again with a wider range, where=[{wanted!r}]."
        if rule is not None and rule.origin == "declared"
        else "",
        sizes={dim.name: size},
    )


def not_a_multiple(dim: Dim, reading: Reading, size: int, bindings: Mapping[str, str], rule: Rule | None) -> Finding:
    below, above = size // dim.multiple * dim.multiple, -(-size // dim.multiple) * dim.multiple
    nearest = " or ".join(str(near) for near in (below, above) if dim.contains(near))
    return Finding(
        code="AS403",
        name="not-a-multiple",
        what=f"{_spoken(reading, size)}, but must be a multiple of {dim.multiple}.",
        where=_source(rule),
        why=_known(bindings, rule),
        fix=f"cut or pad it to {nearest}." if nearest else "",
        sizes={dim.name: size},
    )


def relation_broken(
    relation: Condition, sizes: Mapping[str, int], bindings: Mapping[str, str], rule: Rule | None
) -> Finding:
    return Finding(
        code="AS405",
        name="relation-broken",
        what=f"these sizes break the rule {format_condition(relation)}.",
        where=_source(rule),
        why=_known(bindings, rule),
        sizes=dict(sizes),
    )


def no_such_sizes(dims: Sequence[str], axes: Iterable[tuple[Place, int]], bindings: Mapping[str, str]) -> Finding:
    listed = ", ".join(f"input {place} ({format_expr(place.expr)}) is {actual}" for place, actual in axes)
    return Finding(
        code="AS415",
        name="no-such-sizes",
        what=f"no {' and '.join(dims)} of the contract fits{f': {listed}' if listed else ' these sizes'}.",
        why=_known(bindings),
    )


def constant_differs(path: str, expected: str, actual: str) -> Finding:
    return Finding(
        code="AS411",
        name="constant-differs",
        what=f"{path!r} is {actual}, but is {expected} in the file.",
        why="a Python value is part of the computation: it was baked into the file when it was exported.",
        fix=f"leave {path!r} out, or give it as {expected}.",
        alternative=f"export again with {path!r} = {actual}, or with it as a tensor.",
    )


def broken_contract(name: str, count: int) -> Finding:
    findings = "the finding below says" if count == 1 else f"the {count} findings below say"
    return Finding(
        code="AS412",
        name="broken-contract",
        what=f"{name!r} does not keep its promise, and says so in its contract.",
        why=f"it was written all the same, with --force or force=True; {findings} what is wrong.",
        fix="export it again without --force, once what is wrong is mended.",
        alternative="anyshape.load(..., allow_broken=True)      its answers may be wrong",
    )


def unverified_contract(name: str) -> Finding:
    return Finding(
        code="AS425",
        name="unverified-contract",
        what=f"{name!r} was not compared with its model, and says so in its contract.",
        why="it was exported with verify='none' or --verify none.",
        fix=f"anyshape check {quoted(name)} --model model.py --sign",
        alternative="anyshape.load(..., allow_broken=True)      its answers may be wrong",
    )


def run_failed(
    message: str, bindings: Mapping[str, str], sizes: Mapping[str, int], *, has_unknown_rule: bool = False
) -> Finding:
    at_sizes = "the model may raise at these sizes, too: no rule is known for the sizes at which it does. Try it there."
    return Finding(
        code="AS417",
        name="run-failed",
        what="the sizes of this call keep the contract, but onnxruntime could not run it.",
        why="\n".join(filter(None, (_known(bindings), f"onnxruntime says: {message}"))),
        fix=at_sizes
        if has_unknown_rule
        else "look at the values: an index beyond its table, a length beyond its sequence.",
        alternative="if they are well, the file is not: anyshape check it, and please report it.",
        sizes=dict(sizes),
    )


def values_refused(message: str, sizes: Mapping[str, int]) -> Finding:
    return Finding(
        code="AS419",
        name="values-refused",
        what="the model itself refuses the values of this call, and so does the file.",
        why=message,
        fix="give other values: PyTorch would raise the same.",
        sizes=dict(sizes),
    )


def not_an_array(tensor: TensorPromise, kind: str, fix: str = "give a numpy array or a torch tensor.") -> Finding:
    """AS413: `kind` is what was given, with its article."""
    return Finding(
        code="AS413",
        name="not-an-array",
        what=f"input {tensor.name!r} is {kind}, not an array.",
        why=f"expected {tensor}.",
        fix=fix,
    )


def not_a_container(path: str, kind: str, inside: Sequence[str]) -> Finding:
    return Finding(
        code="AS418",
        name="not-a-container",
        what=f"{path!r} is a {kind}, but holds several inputs.",
        why=f"they are {', '.join(inside)}.",
        fix="give them in the structure that the PyTorch module takes.",
    )


def given_twice(name: str) -> Finding:
    return Finding(
        code="AS414",
        name="input-given-twice",
        what=f"input {name!r} is given twice.",
        why="once by its place among the arguments, or by the structure that it lies in, and once by its name.",
        fix="give it once.",
    )


def too_many_arguments(count: int, parameters: Sequence[str]) -> Finding:
    return Finding(
        code="AS416",
        name="too-many-arguments",
        what=f"{count} arguments are given without a name, but the file takes {len(parameters)}.",
        why=f"it takes {', '.join(parameters)}." if parameters else "",
    )


def _listed(tensors: Sequence[TensorPromise]) -> str:
    return ", ".join(repr(tensor.name) for tensor in tensors)


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"


def _sizes(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))


def _spoken(reading: Reading, size: int) -> str:
    if reading.is_direct:
        return f"input {reading.places[0]} ({reading.dim}) is {size}"
    return f"{reading.dim} is {size} (from {' and '.join(map(str, reading.places))})"


def _known(bindings: Mapping[str, str], rule: Rule | None = None) -> str:
    listed = "; ".join(bindings.values())
    asked = "" if rule is None else _ASKED_BY[rule.origin]
    return "\n".join(filter(None, (f"{listed}." if listed else "", asked)))


def _source(rule: Rule | None) -> Source | None:
    return None if rule is None else rule.source
