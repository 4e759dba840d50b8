"""Models that keep state are refused with the line that writes it, or carry it through inputs and outputs of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests import stateful_models as models

import anyshape
from anyshape.findings import Finding, Severity, UsageError


def refused(module: torch.nn.Module, **options: Any) -> Finding:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(module, models.inputs, **options)
    return broken.value.findings[0]


@pytest.mark.parametrize("made", models.KEEPING, ids=lambda made: made.__name__)
@pytest.mark.long_table
def test_state_is_refused_with_the_line_that_writes_it(made: Any) -> None:
    finding = refused(made())
    assert finding.code == "AS143"
    assert "# writes" in finding.where.text  # type: ignore[union-attr]


@pytest.mark.parametrize("made", models.HARMLESS, ids=lambda made: made.__name__)
def test_state_that_changes_no_answer_is_kept(made: Any) -> None:
    result = anyshape.export(made(), models.inputs)
    assert result.is_kept
    assert not {"AS143", "AS144", "AS145"} & {finding.code for finding in result.findings}


@pytest.mark.parametrize("made", models.UNSTEADY, ids=lambda made: made.__name__)
def test_identical_calls_that_differ_are_refused_with_the_line(made: Any) -> None:
    finding = refused(made())
    assert finding.code == "AS145"
    assert "# differs" in finding.where.text  # type: ignore[union-attr]


@pytest.mark.parametrize("made", models.CARRIED, ids=lambda made: made.__name__)
@pytest.mark.long_table
def test_carried_state_answers_as_the_model_does_in_a_row(made: Any, tmp_path: Path) -> None:
    module = made().eval()
    result = anyshape.export(module, models.inputs, tmp_path / "m.onnx", state="outputs")
    assert models.CARRIED[made] in map(str, result.contract.inputs)
    loaded = anyshape.load(tmp_path / "m.onnx")
    rows = {"batch": 4} if any("batch" in state.shape for state in loaded.contract.state) else {}
    state = loaded.initial_state(**rows)
    for batch in (4, 4, 4) if rows else (4, 1, 9, 4):
        x = torch.randn(batch, 8)
        answers = loaded(x=x, state=state)
        state = loaded.next_state(answers)
        with torch.no_grad():
            torch.testing.assert_close(answers[0], module(x), rtol=1e-4, atol=1e-4)


def test_frozen_state_is_accepted_and_told() -> None:
    module = models.InPlaceBuffer()
    result = anyshape.export(module, models.inputs, state="frozen")
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("AS146", Severity.WARNING)
    assert torch.equal(module.ema, torch.zeros(8))


@pytest.mark.parametrize("made", [models.History, models.NumpyState, models.Default], ids=lambda made: made.__name__)
def test_state_that_is_no_tensor_is_not_carried(made: Any) -> None:
    assert refused(made(), state="outputs").code == "AS148"


def test_a_first_call_that_zeros_do_not_replace_is_not_carried() -> None:
    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.offset: torch.Tensor | None = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.offset is None:
                self.offset = torch.ones(8)
            self.offset = self.offset + 1
            return x + self.offset

    finding = refused(First(), state="outputs")
    assert finding.code == "AS148"
    assert "zeros" in finding.why


def test_the_module_is_left_as_it_was() -> None:
    module = models.Counter()
    refused(module)
    before = models.TOTAL
    refused(models.Global())
    assert (module.calls, models.TOTAL) == (0, before)
    slotted = models.SlottedObject()
    refused(slotted)
    refused(models.SlottedGlobal())
    assert (slotted.box.scale, models.SLOTTED.scale) == (1.0, 1.0)


def test_a_parameter_written_through_its_data_is_state_and_is_put_back() -> None:
    module = models.DataOfParameter()
    finding = refused(module)
    assert (finding.code, module.scale.item()) == ("AS143", 0)
    assert "'scale'" in finding.what


def test_a_check_of_a_file_with_state_carries_it(tmp_path: Path) -> None:
    anyshape.export(models.NewBuffer(), models.inputs, tmp_path / "m.onnx", state="outputs")
    assert anyshape.check(tmp_path / "m.onnx", models.NewBuffer(), models.inputs).passed


@pytest.mark.parametrize(("option", "choices"), [("state", "'outputs', 'frozen'"), ("random", "'runtime'")])
def test_an_unknown_choice_is_a_usage_error(option: str, choices: str) -> None:
    with pytest.raises(UsageError, match=choices):
        anyshape.export(models.Counter(), models.inputs, **{option: "other"})
