"""Findings about files that are repaired: sizes that stay fixed, numbers with several readings, evidence that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyshape.domain.domain_text import list_quoted
from anyshape.findings import Finding
from anyshape.repair.known_shapes import Axes, Choice, Contradiction, axes_text, name_of, node_text
from anyshape.repair.suspicious_numbers import Suspect


def stays_fixed(found: Contradiction, dims: Sequence[str]) -> Finding:
    """AS501: a node can only have the size that it has in the file."""
    about = [name for name in dims if name in found.dims] or list(dims)
    return Finding(
        code="AS501",
        name="size-stays-fixed",
        what=f"{list_quoted(about) or 'nothing'} cannot be dynamic: node {node_text(found.node)} stands in the way.",
        why=found.why,
        fix="leave the dims that it fixes as numbers, or export the model anew with `anyshape export`.",
    )


def several_readings(choice: Choice, others: Sequence[Axes]) -> Finding:
    """AS502: the numbers of a node are different expressions of the dims, all of which fit."""
    texts = [reading_text(each) for each in (choice.readings[choice.taken], *others)]
    return Finding(
        code="AS502",
        name="several-readings",
        what=f"the numbers of node {node_text(choice.node)} have {len(texts)} readings that fit.",
        why=f"they are {' or '.join(texts)}: the same at the file's own sizes, and not at others.",
        fix=f"--read {f'{choice.key}: {texts[-1]}'!r}      if that is what the model means",
        alternative="declare more axes, also of outputs, or export the static file at sizes that differ from each other.",
    )


def may_be_size(suspect: Suspect) -> Finding:
    """AS502: a number of a formula has the value of a size."""
    name = name_of(suspect.node)
    return Finding(
        code="AS502",
        name="several-readings",
        what=f"the number {suspect.number:g} at node {node_text(suspect.node)} may be a size.",
        why=f"it is {suspect.formula} at the file's own sizes.",
        fix=f"--read {f'{name}: {suspect.number:g}'!r}      if it is that number at all sizes",
        alternative="otherwise export the model anew: a number computed from sizes is not in the file.",
    )


def size_of_one(dim: str, size: int, why: str) -> Finding:
    """AS503: a dim so small in the file that its size has no meaning."""
    return Finding(
        code="AS503",
        name="size-too-small",
        what=f"dim {dim!r} has the size {size} in the file, which other numbers have as well.",
        why=f"the rows along it are not independent, so that nothing confirms a reading: {why}",
        fix=f"export the static file at a larger {dim}, or leave it as {size}.",
    )


def repair_differs(what: str, why: str) -> Finding:
    """AS504: the evidence is against the repair."""
    return Finding(
        code="AS504",
        name="repair-differs",
        what=what,
        why=why,
        fix="export the model anew with `anyshape export`; nothing was written.",
    )


def reading_text(axes: Axes) -> str:
    return str(axes[0]) if len(axes) == 1 else axes_text(axes)


def unknown_reading(name: str, text: str, known: Mapping[str, Sequence[str]]) -> Finding:
    """AS036: --read names no node with several readings, or none of its readings."""
    listed = ", ".join(f"{node!r}: {' or '.join(texts)}" for node, texts in known.items()) or "none"
    return Finding(
        code="AS036",
        name="argument",
        what=f"--read {f'{name}: {text}'!r} is no reading of a node of the file.",
        why=f"nodes with several readings: {listed}.",
    )
