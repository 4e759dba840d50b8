"""Verification points at the mistake: the node that was mutated, or one that reads from it.

A tenth of the mutants is looked at in an ordinary run, all of them with ANYSHAPE_THOROUGH=1.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import onnx
import pytest
from mutated import places
from test_sabotage import QUICK, all_mutants, changes_results, flatten, results, verdict_on
from twins import TWINS, Twin

from anyshape.verify import Reference

LOCATING = replace(QUICK, locate_s=20.0)
SHARE = 1.0


def chosen() -> list[tuple[Twin, str, onnx.ModelProto]]:
    """Mutants in which a node or a weight is wrong; a file with other outputs has no node at fault."""
    mutants = [
        (twin, what, mutant)
        for twin in TWINS
        for what, mutant in all_mutants(twin.file())
        if not what.startswith("outputs_changed")
    ]
    return Random(0).sample(mutants, round(SHARE * len(mutants)))


def is_located(twin: Twin, mutant: onnx.ModelProto) -> bool | None:
    """None where the mutation changes no result."""
    good = twin.file()
    if not changes_results(twin, results(twin, good), mutant):
        return None
    with Reference(twin.build(), flatten) as reference:
        failure = verdict_on(twin, mutant, reference, LOCATING).smallest_failure
    return failure is not None and failure.located is not None and failure.located.node in places(good, mutant)


@pytest.mark.thorough
def test_the_mutated_node_or_one_that_reads_from_it_is_located() -> None:
    found = {f"{twin.name}: {what}": is_located(twin, mutant) for twin, what, mutant in chosen()}
    looked_at = {what: located for what, located in found.items() if located is not None}
    missed = [what for what, located in looked_at.items() if not located]
    assert len(looked_at) >= 20
    assert len(missed) <= 0.05 * len(looked_at), missed


def test_places_are_the_mutated_node_and_its_consumers() -> None:
    twin = next(twin for twin in TWINS if twin.name == "mlp")
    good = twin.file()
    mutants = dict(all_mutants(good))
    assert places(good, good) == set()
    assert places(good, mutants["other_number: LeakyRelu r: alpha = 0.31"]) == {"r", "y"}
    assert places(good, mutants["broken_weight: b_bias: zeroed"]) == {"y"}
