"""What `compat.export` returns is used as torch's ONNXProgram is."""

from __future__ import annotations

import onnx
import pytest
import torch

import anyshape
from anyshape import compat


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, *, mask):
        return self.linear(x) * self.scale, x * mask


def made(**arguments: object) -> compat.ONNXProgram:
    return compat.export(
        Two().eval(),
        (torch.randn(3, 4),),
        kwargs={"mask": torch.ones(3, 4)},
        dynamic_shapes={"x": {0: "batch"}, "mask": {0: "batch"}},
        dynamo=True,
        **arguments,  # type: ignore[arg-type]
    )


def test_a_program_is_called_saved_and_given_other_weights(tmp_path) -> None:
    program = made()
    x, mask = torch.randn(5, 4), torch.rand(5, 4)
    first, second = program(x, mask=mask)
    assert torch.equal(second, x * mask) and program.exported_program is None
    program.optimize()
    program.apply_weights({"scale": torch.full((4,), 3.0)})
    assert torch.allclose(program(x, mask=mask)[0], 3 * first, atol=1e-5)
    program.save(tmp_path / "m.onnx", external_data=True)
    assert [each.name for each in tmp_path.iterdir()] == ["m.onnx"]  # no weight is large enough for a second file
    onnx.checker.check_model(tmp_path / "m.onnx")
    program.release()
    program.initialize_inference_session()
    with pytest.warns(UserWarning, match="was changed after it was verified"):
        anyshape.load(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"scale": torch.ones(5)}, r"'scale' is FLOAT\[4\] in the file and FLOAT\[5\] in the state dict"),
        ({"scale": torch.zeros(4), "offset": torch.ones(4)}, "the file has no weight 'offset'"),
    ],
)
def test_weights_that_do_not_fit_change_nothing(weights, words) -> None:
    program = made()
    x, mask = torch.randn(5, 4), torch.rand(5, 4)
    before = program(x, mask=mask)
    with pytest.raises(anyshape.AnyshapeError, match=words):
        program.apply_weights(weights)
    assert torch.equal(program(x, mask=mask)[0], before[0])


def test_a_file_without_weights_is_refused(tmp_path) -> None:
    with pytest.raises(anyshape.AnyshapeError, match="cannot honour include_initializers=False"):
        made().save(tmp_path / "m.onnx", include_initializers=False)


def test_a_report_is_written_where_it_is_asked_for(tmp_path) -> None:
    made(report=True, artifacts_dir=tmp_path / "new")
    assert "batch" in (tmp_path / "new" / "anyshape_report.txt").read_text()


def test_an_exported_program_is_held() -> None:
    program = torch.export.export(
        torch.nn.ReLU(), (torch.randn(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},)
    )
    assert compat.export(program).exported_program is program


def test_the_reference_implementation_and_values_inside_the_graph_are_computed() -> None:
    program = made()
    x, mask = torch.randn(5, 4), torch.rand(5, 4)
    answers = program(x, mask=mask)
    assert torch.allclose(program.call_reference(x, mask=mask)[0], answers[0], atol=1e-5)
    (last,) = [
        node.outputs[0] for node in program.model.graph if node.outputs[0].name == program.contract.outputs[1].name
    ]
    product = last.producer().inputs[0].name
    assert product is not None
    (value,) = program.compute_values([product], (x,), {"mask": mask})
    assert value.shape == (5, 4)
    with pytest.raises(ValueError, match="not found"):
        program.compute_values(["nothing"], (x,), {"mask": mask})
