"""What the file promises and what it does: names, sizes, determinism, refusals with the user's line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from tests.zoo import Branch, Hard, Nested, Rnn, ThreeInputs, nested, three_inputs

import anyshape
from anyshape.runtime.session import Session


def dims(values) -> dict[str, list]:
    return {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values
    }


@pytest.fixture(scope="module")
def rnn(tmp_path_factory) -> tuple[torch.nn.Module, Path]:
    torch.manual_seed(0)
    module, path = Rnn().eval(), tmp_path_factory.mktemp("rnn") / "rnn.onnx"
    inputs = lambda batch_size=3, sequence_length=5: torch.randn(batch_size, sequence_length, 10)  # noqa: E731
    anyshape.export(module, inputs, path, where=["1 <= batch_size <= 64"])
    return module, path


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
@pytest.mark.parametrize("length", [1, 2, 9, 50])
def test_a_recurrent_network_is_right_at_other_sizes(rnn, batch: int, length: int) -> None:
    module, path = rnn
    x = torch.randn(batch, length, 10)
    np.testing.assert_allclose(anyshape.load(path)(x=x.numpy()), module(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_files_dims_are_the_users(rnn) -> None:
    graph = onnx.load(rnn[1]).graph
    assert dims(graph.input) == {"x": ["batch_size", "sequence_length", 10]}
    assert dims(graph.output) == {"output": ["batch_size", 5]}


def test_dims_are_shared_by_some_inputs_and_not_by_others() -> None:
    result = anyshape.export(ThreeInputs(), three_inputs)
    assert [str(tensor) for tensor in result.contract.inputs] == [
        "ids: int64[batch, seq]",
        "mask: float32[batch, seq]",
        "image: float32[batch, 3, h, w]",
    ]


def test_nested_inputs_and_outputs_have_paths_for_names() -> None:
    result = anyshape.export(Nested(), nested)
    assert [tensor.name for tensor in result.contract.inputs] == [
        "x", "past.0.0", "past.0.1", "past.1.0", "past.1.1", "extra",
    ]  # fmt: skip
    assert "output.0.keys.1: float32[batch, past + seq, 4]" in [str(tensor) for tensor in result.contract.outputs]


def test_the_same_export_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        torch.manual_seed(0)
        anyshape.export(Rnn(), lambda b=3, t=5: torch.randn(b, t, 10), tmp_path / f"{name}.onnx")
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_a_file_says_nothing_of_the_machine_that_made_it(rnn) -> None:
    content = rnn[1].read_bytes()
    assert str(Path.home()).encode() not in content
    assert str(Path(__file__).parent).encode() not in content


def test_a_baked_in_size_is_refused_with_its_line_and_the_edit(tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(Hard(), lambda batch=3: torch.randn(batch, 10), tmp_path / "hard.onnx")
    finding = caught.value.finding
    assert finding.code == "AS102"
    assert finding.where.text == "return x.view(3, 10)"
    assert finding.where.file.endswith("zoo.py")
    assert finding.fix == "return x.view(x.shape[0], 10)"
    assert list(tmp_path.iterdir()) == []


def test_both_sides_of_a_branch_share_their_weights() -> None:
    result = anyshape.export(Branch(), lambda b=5: torch.randn(b, 10), where=["1 <= b <= 64"])
    weights = [value for value in result.model.graph.initializers.values() if value.const_value.size == 100]
    assert len(weights) == 1
    assert result.contract.tested.capture_proved


def test_a_module_is_left_as_it_was() -> None:
    module = Rnn().train()
    before = {name: (value.data_ptr(), value._version) for name, value in module.state_dict(keep_vars=True).items()}
    torch.manual_seed(1)
    anyshape.export(module, lambda b=3, t=5: torch.randn(b, t, 10))
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(3))
    assert module.training and module.rnn.training
    after = {name: (value.data_ptr(), value._version) for name, value in module.state_dict(keep_vars=True).items()}
    assert before == after


def wrong_relu(x):
    from onnxscript import opset18 as op

    return op.Abs(x)


def test_a_wrong_file_is_not_written_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    wrong = {
        "model": torch.nn.ReLU(),
        "inputs": lambda batch=3: torch.randn(batch, 4),
        "path": path,
        "translations": {torch.ops.aten.relu.default: wrong_relu},
    }
    with pytest.raises(anyshape.PromiseBroken, match=r"AS305 wrong-values: output 'output' differs .* at batch=1"):
        anyshape.export(**wrong)
    assert list(tmp_path.iterdir()) == []
    assert not anyshape.export(**wrong, force=True).is_kept
    with pytest.raises(anyshape.AnyshapeError, match="AS412"):
        anyshape.load(path)
    assert anyshape.load(path, allow_broken=True).contract.status == "broken"


def test_plain_onnxruntime_refuses_sizes_outside_the_contract(rnn) -> None:
    session = Session(rnn[1])
    assert session.run({"x": np.zeros((64, 2, 10), np.float32)})[0].shape == (64, 5)
    with pytest.raises(Exception, match="AS402"):
        session.run({"x": np.zeros((65, 2, 10), np.float32)})


class Optional(torch.nn.Module):
    def forward(self, x: torch.Tensor, opt: torch.Tensor | None = None) -> torch.Tensor:
        return x * 2 if opt is None else x + opt


def test_an_argument_that_was_declared_as_none_is_taken_as_none_alone(tmp_path: Path) -> None:
    declared = anyshape.Inputs((torch.ones(3),), {"opt": None})
    anyshape.export(Optional(), declared, tmp_path / "m.onnx", dynamic={"x": "n"})
    loaded = anyshape.load(tmp_path / "m.onnx")
    assert loaded(torch.ones(2), opt=None).tolist() == loaded(torch.ones(2), None).tolist() == [2, 2]
    with pytest.raises(anyshape.ContractBroken, match=r"AS411 .*'opt' is a Tensor, but is None in the file"):
        loaded(torch.ones(2), opt=torch.ones(2))
