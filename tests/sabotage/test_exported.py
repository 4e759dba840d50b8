"""Our own exports, broken on purpose: every change of results is noticed, and the broken node is found.

A few mutants of a few models in an ordinary run, all of them with ANYSHAPE_THOROUGH=1, as `benchmarks/verify_sabotage.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from exported import SUBJECTS, check
from judged import OPTIONS, Row, broken

from anyshape.verify.file_copies import Given, load_named, show
from anyshape.verify.locate.opened import list_nodes, open_branches
from anyshape.verify.locate.size_facts import Told
from anyshape.verify.tensors import to_array

THOROUGH = os.environ.get("ANYSHAPE_THOROUGH") == "1"
FEW = ("masked heads", "branch", "windows")


def rows_of(names: tuple[str, ...], every: int) -> list[Row]:
    return [row for subject in SUBJECTS if subject.name in names for row in broken(subject, every)]


@pytest.mark.slow
def test_broken_exports_are_noticed_and_the_node_is_located() -> None:
    rows = rows_of(tuple(subject.name for subject in SUBJECTS), 1) if THOROUGH else rows_of(FEW, 13)
    assert len(rows) >= 10
    assert [row for row in rows if not row.noticed] == []
    looked_for = [row for row in rows if row.is_located is not None]
    missed = [(row.model, row.mutation, row.located) for row in looked_for if not row.is_located]
    assert len(missed) <= 0.05 * len(looked_for) + (0 if THOROUGH else 1), missed


@pytest.mark.parametrize("name", FEW)
def test_the_good_export_passes_and_has_nothing_to_locate(name: str, tmp_path: Path) -> None:
    subject = next(each for each in SUBJECTS if each.name == name)
    subject.export(tmp_path / "good.onnx")
    verdict = check(subject, tmp_path / "good.onnx", OPTIONS)
    assert verdict.passed
    assert verdict.smallest_failure is None


def test_there_are_enough_models() -> None:
    assert len(SUBJECTS) >= 15
    assert len({subject.name for subject in SUBJECTS}) == len(SUBJECTS)


def test_sizes_are_told_on_nodes_of_the_defence(tmp_path: Path) -> None:
    SUBJECTS[0].export(tmp_path / "good.onnx")
    nodes = onnx.load(tmp_path / "good.onnx").graph.node
    told = {node.name for node in nodes for entry in node.metadata_props if entry.key == "anyshape.sizes"}
    assert {node.name for node in nodes if node.op_type in ("Sub", "ReduceMax", "Split")} <= told


@pytest.mark.parametrize("name", FEW)
def test_a_good_export_is_what_it_tells_of_itself(name: str, tmp_path: Path) -> None:
    subject = next(each for each in SUBJECTS if each.name == name)
    subject.export(tmp_path / "good.onnx")
    for b, s in ((1, 1), (3, 12), (16, 16)):
        model = load_named(str(tmp_path / "good.onnx"))
        feeds = dict(zip(input_names(model), map(to_array, subject.inputs(b, s)), strict=True))
        given = Given(feeds, {}, lambda: 30.0)
        open_branches(model, given)
        nodes = list_nodes(model, with_loops=False)
        names = [each for node in nodes for each in node.gives]
        told = Told(model, nodes, given.feeds, {})
        values = show(model, names, given)
        assert [each for each in names if told.is_size_right(each, values[each]) is False] == []
        assert [each for each in names if told.is_shape_right(each, values[each]) is False] == []
        assert told.sizes
        assert told.shapes


def input_names(model: onnx.ModelProto) -> list[str]:
    return [value.name for value in model.graph.input]
