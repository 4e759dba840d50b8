"""torch.onnx.export's own signature: what it takes, what it refuses, what it warns of."""

from __future__ import annotations

import io

import onnx
import pytest
import torch
from tests.zoo import Rnn

import anyshape
from anyshape import compat

AXES = {"input": {0: "batch_size", 1: "sequence_length"}, "output": {0: "batch_size"}}


def test_the_seeds_call_gives_named_dims(tmp_path) -> None:
    path = tmp_path / "rnn.onnx"
    result = compat.export(
        Rnn(), torch.randn(3, 5, 10), path, input_names=["input"], output_names=["output"], dynamic_axes=AXES
    )
    assert isinstance(result, anyshape.Export) and result.path == path
    graph = onnx.load(path).graph
    named = [[dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.input]
    assert [value.name for value in graph.input] == ["input"] and named == [["batch_size", "sequence_length", 10]]


def test_dynamic_shapes_and_keyword_arguments() -> None:
    class Two(torch.nn.Module):
        def forward(self, x, *, mask):
            return x * mask

    batch = torch.export.Dim("batch", min=1, max=64)
    result = compat.export(
        Two(),
        (torch.randn(3, 4),),
        kwargs={"mask": torch.ones(3, 4)},
        dynamic_shapes={"x": {0: batch}, "mask": {0: batch}},
        dynamo=True,
    )
    assert [str(tensor) for tensor in result.contract.inputs] == ["x: float32[batch, 4]", "mask: float32[batch, 4]"]
    assert result.contract.domain.dim("batch").max == 64


def test_a_buffer_is_written_to() -> None:
    buffer = io.BytesIO()
    compat.export(torch.nn.Linear(4, 2), (torch.randn(3, 4),), buffer, input_names=["x"], dynamic_axes={"x": [0]})
    assert [value.name for value in onnx.load_from_string(buffer.getvalue()).graph.input] == ["x"]


def test_a_name_on_an_output_that_is_not_what_the_model_does_is_an_error() -> None:
    axes = {"x": {0: "batch"}, "y": {1: "batch"}}
    with pytest.raises(anyshape.PromiseBroken, match="AS112 output-axis: you call axis 1 of output 'y' 'batch'"):
        compat.export(
            torch.nn.Linear(4, 2), (torch.randn(3, 4),), input_names=["x"], output_names=["y"], dynamic_axes=axes
        )


@pytest.mark.parametrize(
    "argument",
    [
        {"export_params": False},
        {"custom_opsets": {"my": 1}, "dynamo": False},
        {"training": torch.onnx.TrainingMode.TRAINING},
        {"opset_version": 5},
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused(argument) -> None:
    with pytest.raises(anyshape.AnyshapeError, match="AS03"):
        compat.export(torch.nn.Linear(4, 2), (torch.randn(3, 4),), **argument)


def test_what_changes_nothing_is_warned_of() -> None:
    with pytest.warns(compat.NotHonoured, match="do_constant_folding=False changes nothing"):
        compat.export(torch.nn.Linear(4, 2), (torch.randn(3, 4),), do_constant_folding=False)


def test_a_file_of_opset_12_is_warned_of() -> None:
    with pytest.warns(compat.NotHonoured, match="AS427 sizes-not-enforced"):
        compat.export(torch.nn.Linear(4, 2), (torch.randn(3, 4),), opset_version=12, dynamic_shapes=({0: "batch"},))


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # by torch.export.load itself, in torch 2.11
def test_a_profile_and_the_program_are_written_beside_the_file(tmp_path) -> None:
    compat.export(
        torch.nn.Linear(4, 2),
        (torch.randn(3, 4),),
        dynamic_shapes=({0: "batch"},),
        profile=True,
        dump_exported_program=True,
        artifacts_dir=tmp_path,
    )
    assert (tmp_path / "anyshape_profile.txt").read_text().endswith("s  together\n")
    program = torch.export.load(tmp_path / "anyshape_program.pt2")
    assert isinstance(program, torch.export.ExportedProgram)


def test_weights_are_inputs_with_a_default_where_that_is_asked_for(tmp_path) -> None:
    model = torch.nn.Linear(4, 2)
    compat.export(
        model,
        (torch.randn(3, 4),),
        tmp_path / "m.onnx",
        dynamic_shapes=({0: "batch"},),
        keep_initializers_as_inputs=True,
    )
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert {value.name for value in graph.initializer} < {value.name for value in graph.input}
    x = torch.randn(5, 4)
    assert torch.allclose(anyshape.load(tmp_path / "m.onnx")(x), model(x), atol=1e-5)


@pytest.mark.parametrize(
    ("labels", "dims"),
    [
        ({0: "batch-size", 1: "seq len"}, ["batch_size", "seq_len"]),
        ({0: "batch size", 1: "batch-size"}, ["batch_size", "batch_size_"]),
        ({0: "1st", 1: "in"}, ["dim_1st", "dim_in"]),
        ({0: "batch", 1: "batch - 1"}, ["batch", "batch - 1"]),
    ],
)
def test_a_label_may_be_any_text_and_arithmetic_on_other_labels_is_that(labels, dims) -> None:
    result = compat.export(
        torch.nn.ReLU(), torch.randn(4, 3), input_names=["input"], dynamic_axes={"input": labels}, verbose=False
    )
    (value,) = result.model_proto.graph.input
    assert [dim.dim_param for dim in value.type.tensor_type.shape.dim] == dims
