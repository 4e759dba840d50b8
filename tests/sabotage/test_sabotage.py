"""Verification verifies: every broken file that gives other results is noticed, and no harmless change is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from mutations import MUTATIONS, Mutants, harmless
from tests.verify_calls import Everything
from twins import TWINS, Twin

from anyshape.records.verdict import Verdict
from anyshape.runtime import RunError, Session
from anyshape.verify import Reference, VerifyOptions, VerifyRequest, verify
from anyshape.verify.tensors import to_array

QUICK = VerifyOptions(shrink_tries=0, stop_at_failure=True, locate_s=0.0)


def flatten(outputs: object) -> list[tuple[str, object]]:
    return list(enumerate(outputs)) if isinstance(outputs, tuple) else [("output", outputs)]  # type: ignore[arg-type]


def sizes_of(twin: Twin) -> list[dict[str, int]]:
    return [{"b": b, "s": s} for b, s in twin.sizes]


def verdict_on(twin: Twin, model: onnx.ModelProto, reference: Reference, options: VerifyOptions = QUICK) -> Verdict:
    names = [value.name for value in model.graph.input]
    return verify(
        VerifyRequest(
            model=model.SerializeToString(),
            output_names=[value.name for value in model.graph.output],
            reference=reference,
            make=twin.inputs,
            feeds=lambda inputs: dict(zip(names, map(to_array, inputs.args), strict=True)),
            domain=Everything(),
            sizes=sizes_of(twin),
            example={"b": 2, "s": 5},
            options=options,
        )
    )


def results(twin: Twin, model: onnx.ModelProto) -> list[Sequence[np.ndarray] | None]:
    """What the file answers at each size; None where it does not. The oracle: no comparison of ours is in it."""
    try:
        session = Session(model.SerializeToString(), threads=1)
    except RunError:
        return [None]
    answers: list[Sequence[np.ndarray] | None] = []
    for sizes in sizes_of(twin):
        arrays = map(to_array, twin.inputs(sizes, 99).args)
        try:
            answers.append(session.run({info.name: array for info, array in zip(session.inputs, arrays, strict=True)}))
        except RunError:
            answers.append(None)
    return answers


def is_clearly_other(one: np.ndarray, other: np.ndarray) -> bool:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return True
    if one.dtype.kind != "f":
        return not np.array_equal(one, other)
    one, other = one.astype(np.float64), other.astype(np.float64)
    ordinary = np.abs(one[np.abs(one) < 1e6])  # beside a fill of -1e9 a score still counts
    scale = float(ordinary.max()) if ordinary.size else 1.0
    return not np.allclose(one, other, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)


def changes_results(twin: Twin, good: list[Sequence[np.ndarray] | None], mutant: onnx.ModelProto) -> bool:
    answers = results(twin, mutant)
    if len(answers) != len(good):
        return True
    return any(
        other is None or len(one or ()) != len(other) or any(map(is_clearly_other, one or (), other))
        for one, other in zip(good, answers, strict=True)
    )


def all_mutants(model: onnx.ModelProto) -> Mutants:
    for mutation in MUTATIONS:
        for what, mutant in mutation(model):
            yield f"{mutation.__name__}: {what}", mutant


def changing_and_missed(twin: Twin, every: int) -> tuple[int, list[str]]:
    """How many of each `every` mutants change results, and which of those verification lets pass."""
    model = twin.file()
    good = results(twin, model)
    assert None not in good
    changing, missed = 0, []
    with Reference(twin.build(), flatten) as reference:
        for what, mutant in list(all_mutants(model))[::every]:
            if changes_results(twin, good, mutant):
                changing += 1
                if verdict_on(twin, mutant, reference).passed:
                    missed.append(what)
    return changing, missed


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
@pytest.mark.long_table
def test_every_mutation_that_changes_results_is_noticed(twin: Twin) -> None:
    changing, missed = changing_and_missed(twin, every=1)
    assert missed == []
    assert changing >= 4


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_sample_of_mutations_is_noticed(twin: Twin) -> None:
    changing, missed = changing_and_missed(twin, every=7)
    assert missed == []
    assert changing >= 1


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
@pytest.mark.long_table
def test_the_good_file_and_harmless_changes_of_it_pass(twin: Twin) -> None:
    model = twin.file()
    with Reference(twin.build(), flatten) as reference:
        alarms = [
            (what, verdict.failures)
            for what, mutant in [("unchanged", model), *harmless(model)]
            if not (verdict := verdict_on(twin, mutant, reference)).passed
        ]
    assert alarms == []


def test_there_are_enough_ways_to_break_enough_files() -> None:
    mutants = [(twin.name, what) for twin in TWINS for what, _ in all_mutants(twin.file())]
    assert len(TWINS) >= 15
    assert len({mutation.__name__ for mutation in MUTATIONS}) >= 14
    assert len(set(mutants)) >= 150
