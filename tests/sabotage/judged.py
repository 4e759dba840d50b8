"""A broken export, judged: does it change results, is it noticed, and is the broken node found?

The oracle that says whether results change is onnxruntime beside itself, good file against broken one: no comparison of
ours is in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import onnx
import torch
from exported import Subject, check
from mutated import places
from test_sabotage import all_mutants, is_clearly_other

from anyshape.runtime import RunError, Session
from anyshape.verify import VerifyOptions

OPTIONS = VerifyOptions(budget_s=20.0, locate_s=20.0)
ORACLE_SIZES = ((2, 5), (1, 1), (3, 12), (4, 4), (1, 9), (16, 16))
Answers = list[Sequence[np.ndarray] | None]


@dataclass(frozen=True)
class Row:
    """One mutant that changes results."""

    model: str
    mutation: str
    noticed: bool
    located: str
    right_places: tuple[str, ...]
    is_located: bool | None
    seconds: float


def broken(subject: Subject, every: int = 1, containing: str = "") -> Iterator[Row]:
    """Each so many of the mutants of a subject's export, as far as they change results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "good.onnx"
        subject.export(path)
        good = onnx.load(path)
        right = answers(subject, good)
        assert None not in right
        for what, mutant in list(all_mutants(good))[::every]:
            if containing in what and changes(right, answers(subject, mutant)):
                yield judged(subject, good, what, mutant)


def judged(subject: Subject, good: onnx.ModelProto, what: str, mutant: onnx.ModelProto) -> Row:
    began = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.onnx"
        onnx.save(mutant, path)
        verdict = check(subject, path, OPTIONS)
    failure = verdict.smallest_failure
    found = failure.located if failure is not None else None
    right = places(good, mutant)
    has_place = not what.startswith("outputs_changed")  # a file with other outputs has no node at fault
    is_located = (found is not None and found.node in right) if has_place else None
    name = "" if found is None else f"{found.op_type} {found.node}"
    seconds = round(perf_counter() - began, 2)
    return Row(subject.name, what, not verdict.passed, name, tuple(sorted(right)), is_located, seconds)


def answers(subject: Subject, model: onnx.ModelProto) -> Answers:
    """What onnxruntime answers at each size; None where it does not. No comparison of ours is in it."""
    try:
        session = Session(model.SerializeToString(), threads=1)
    except RunError:
        return [None] * len(ORACLE_SIZES)
    found: Answers = []
    for b, s in ORACLE_SIZES:
        torch.manual_seed(99)
        arrays = [tensor.numpy() for tensor in subject.inputs(b, s)]
        try:
            found.append(session.run({info.name: array for info, array in zip(session.inputs, arrays, strict=True)}))
        except RunError:
            found.append(None)
    return found


def changes(good: Answers, other: Answers) -> bool:
    return any(
        two is None or len(one or ()) != len(two) or any(map(is_clearly_other, one or (), two))
        for one, two in zip(good, other, strict=True)
    )
