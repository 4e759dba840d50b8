"""A loaded file takes what the PyTorch module took, and answers, or says why it does not."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from contract_builder import contract, echo_bytes, echo_model

import anyshape
from anyshape.contract import write_contract
from anyshape.contract.defend import defend
from anyshape.findings import AnyshapeError, Finding
from anyshape.loading import Loaded, Outputs, load
from anyshape.records.contract import Contract, Opaque, TensorPromise
from anyshape.saving import model_bytes, save_model

PAIR = contract("x: float32[batch, seq]; mask: bool[batch, seq]", "1 <= batch <= 64")
NESTED = contract(
    "x: float32[batch]; past.0.0: float32[batch, past]; past.0.1: float32[batch, past]; past.1: float32[batch]"
)


def x(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def ones(*shape: int) -> Any:
    return np.ones(shape, bool)


def loaded(promised: Contract) -> Loaded:
    return load(echo_bytes(promised))


def code(call: Any) -> str:
    with pytest.raises(AnyshapeError) as caught:
        call()
    return caught.value.finding.code


def test_the_public_name_is_this_one() -> None:
    assert anyshape.load is load


def test_one_output_is_the_array_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(echo_bytes(contract("x: float32[n]")))
    answer = load(path)(x=x(3))
    assert isinstance(answer, np.ndarray)
    assert answer.tolist() == [0.0, 1.0, 2.0]


def test_several_outputs_are_found_by_index_by_name_and_unpacked() -> None:
    answers = loaded(PAIR)(x=x(2, 3), mask=ones(2, 3))
    first, second = answers
    assert answers[0] is answers["x_out"] is first
    assert answers[-1] is answers["mask_out"] is second
    assert list(answers.keys()) == ["x_out", "mask_out"]
    assert set(dict(answers)) == {"x_out", "mask_out"}
    assert [name for name, _ in answers.items()] == ["x_out", "mask_out"]
    assert len(answers[0:1]) == 1


def test_an_output_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="the outputs are a, b"):
        Outputs(["a", "b"], [1, 2])["c"]


def test_answers_have_a_name_each() -> None:
    with pytest.raises(ValueError, match="1 names for 2 outputs"):
        Outputs(["a"], [1, 2])


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model(x(2, 3), ones(2, 3)),
        lambda model: model(x(2, 3), mask=ones(2, 3)),
        lambda model: model(mask=ones(2, 3), x=x(2, 3)),
    ],
    ids=["by place", "both", "by name"],
)
def test_arguments_are_given_in_any_way(call: Any) -> None:
    answers = call(loaded(PAIR))
    assert np.array_equal(answers["x_out"], x(2, 3))
    assert answers["mask_out"].all()


@dataclass
class Layers:
    first: Any


Both = namedtuple("Both", ["key", "value"])


@pytest.mark.parametrize(
    "past",
    [
        ((x(2, 3), x(2, 3)), x(2)),
        [[x(2, 3), x(2, 3)], x(2)],
        {"0": {"0": x(2, 3), "1": x(2, 3)}, "1": x(2)},
        {0: (x(2, 3), x(2, 3)), 1: x(2)},
    ],
    ids=["tuples", "lists", "dicts", "numbers as keys"],
)
def test_a_nested_argument_is_found_by_its_paths(past: Any) -> None:
    answers = loaded(NESTED)(x=x(2), past=past)
    assert np.array_equal(answers["past.0.1_out"], x(2, 3))


def test_named_tuples_and_dataclasses_have_their_fields_in_paths() -> None:
    promised = contract("kv.key: float32[n]; kv.value: float32[n]; layers.first: float32[n]")
    answers = loaded(promised)(kv=Both(x(2), x(2)), layers=Layers(x(2)))
    assert len(answers) == 3


def test_flat_names_are_taken_as_they_are() -> None:
    feeds = {"x": x(2), "past.0.0": x(2, 3), "past.0.1": x(2, 3), "past.1": x(2)}
    assert len(loaded(NESTED)(**feeds)) == 4


def test_a_cache_is_flattened_as_it_was_when_the_file_was_made() -> None:
    transformers = pytest.importorskip("transformers")
    cache = transformers.DynamicCache()
    cache.update(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
    promised = contract("cache.0.key: float32[b, 2, past, 4]; cache.0.value: float32[b, 2, past, 4]")
    answers = loaded(promised)(cache=cache)
    assert answers["cache.0.key_out"].equal(torch.ones(1, 2, 3, 4))


def test_an_input_has_a_name_in_the_file_and_a_path_in_the_call() -> None:
    promised = contract("input: float32[n]")
    promised = replace(promised, inputs=(TensorPromise("input", "x", "float32", promised.inputs[0].axes),))
    model = loaded(promised)
    for call in (lambda: model(x(2)), lambda: model(x=x(2)), lambda: model(input=x(2))):
        assert call().tolist() == [0.0, 1.0]
    assert code(lambda: model(x=x(2), input=x(2))) == "AS414"


def test_positions_follow_the_signature() -> None:
    promised = contract("x: float32[n]; mask: bool[n]", constants={"scale": 2.0}, parameters=("x", "scale", "mask"))
    assert len(loaded(promised)(x(2), 2.0, ones(2))) == 2
    assert code(lambda: loaded(promised)(x(2), 3.0, ones(2))) == "AS411"


def test_a_keyword_that_went_into_extra_keywords_is_found_there() -> None:
    promised = contract("x: float32[n]; extra.bias: float32[n]", constants={"extra.flag": True})
    assert len(loaded(promised)(x(2), bias=x(2), flag=True)) == 2
    assert code(lambda: loaded(promised)(x(2), bias=x(2), flag=False)) == "AS411"


@pytest.mark.parametrize(
    ("baked", "given", "is_same"),
    [
        (2.0, 2.0, True),
        (2.0, 2, True),
        (2, 2.0, True),
        (2, 3, False),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        ("mean", "mean", True),
        ("mean", "sum", False),
        ("1", 1, False),
        (None, None, True),
        (None, 0, False),
        (None, np.zeros(2), False),
        (2.0, np.float64(2.0), False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (torch.float16, torch.float16, True),
        (torch.float16, torch.float32, False),
        (Opaque("torch.dtype", "torch.float16"), torch.float16, True),
    ],
    ids=repr,
)
def test_a_constant_is_taken_if_it_is_the_same(baked: Any, given: Any, is_same: bool) -> None:
    model = loaded(contract("x: float32[n]", constants={"how": baked}))
    assert model(x(2)).tolist() == [0.0, 1.0]
    if is_same:
        assert model(x(2), how=given).tolist() == [0.0, 1.0]
    else:
        assert code(lambda: model(x(2), how=given)) == "AS411"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda model: model(), "AS409"),
        (lambda model: model(x=x(2, 3)), "AS409"),
        (lambda model: model(x=x(2, 3), mask=None), "AS409"),
        (lambda model: model(x=x(2, 3), msk=ones(2, 3)), "AS410"),
        (lambda model: model(x=x(2, 3), mask=ones(2, 3), other=None), "AS410"),
        (lambda model: model(x(2, 3), ones(2, 3), ones(2, 3)), "AS416"),
        (lambda model: model(x(2, 3), x=x(2, 3), mask=ones(2, 3)), "AS414"),
        (lambda model: model(x=[[1.0, 2.0]], mask=ones(1, 2)), "AS413"),
        (lambda model: model(x="text", mask=ones(1, 2)), "AS413"),
        (lambda model: model(x=1.0, mask=ones(1, 2)), "AS413"),
        (lambda model: model(x=x(2, 3), mask=ones(3, 3)), "AS401"),
        (lambda model: model(x=x(65, 3), mask=ones(65, 3)), "AS402"),
        (lambda model: model(x=x(2, 3, 1), mask=ones(2, 3)), "AS407"),
        (lambda model: model(x=x(2, 3).astype(np.float64), mask=ones(2, 3)), "AS408"),
        (lambda model: model(x=torch.ones(2, 3, dtype=torch.float64), mask=ones(2, 3)), "AS408"),
    ],
)
def test_a_wrong_call_is_refused(call: Any, expected: str) -> None:
    assert code(lambda: call(loaded(PAIR))) == expected


def test_an_array_where_a_structure_belongs_is_refused() -> None:
    assert code(lambda: loaded(NESTED)(x=x(2), past=x(2))) == "AS418"
    assert code(lambda: loaded(NESTED)(x=x(2), past=(x(2), x(2)))) == "AS418"


def test_a_structure_with_too_much_in_it_is_refused() -> None:
    past = ((x(2, 3), x(2, 3), x(2, 3)), x(2))
    assert code(lambda: loaded(NESTED)(x=x(2), past=past)) == "AS410"


def test_none_inside_a_structure_is_nothing() -> None:
    assert len(loaded(NESTED)(x=x(2), past=((x(2, 3), x(2, 3), None), x(2), None))) == 4


def test_onnxruntime_does_not_see_a_call_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(PAIR)
    seen: list[Any] = []
    monkeypatch.setattr(type(model._session), "run", lambda self, feeds: seen.append(feeds))
    assert code(lambda: model(x=x(65, 3), mask=ones(65, 3))) == "AS402"
    assert seen == []


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool],
    ids=str,
)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)], ids=str)
def test_torch_tensors_are_answered_with_torch_tensors(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    model = loaded(contract(f"x: {str(dtype).removeprefix('torch.')}[batch, seq]", "batch >= 0", "seq >= 0"))
    given = (torch.arange(6)[: shape[0] * shape[1]].reshape(shape) % 2).to(dtype)
    answer = model(given)
    assert answer.dtype == dtype
    assert answer.equal(given)


def test_a_tensor_of_any_layout_is_taken() -> None:
    model = loaded(contract("x: float32[batch, seq]"))
    given = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert model(given.t()).equal(given.detach().t())
    assert model(given[:, ::2]).equal(given.detach()[:, ::2])


def test_one_tensor_among_arrays_makes_the_answers_tensors() -> None:
    answers = loaded(PAIR)(x=x(2, 3), mask=torch.ones(2, 3, dtype=torch.bool))
    assert all(isinstance(answer, torch.Tensor) for answer in answers)


def test_bfloat16_arrays_are_taken_as_well() -> None:
    given = np.arange(3).astype(ml_dtypes.bfloat16)
    answer = loaded(contract("x: bfloat16[n]"))(given)
    assert answer.dtype == ml_dtypes.bfloat16
    assert np.array_equal(answer, given)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("int64", 3, 3),
        ("float32", 3, 3.0),
        ("float32", 0.5, 0.5),
        ("bool", True, True),
        ("int64", np.int64(3), 3),
        ("int64", 0.5, "AS408"),
        ("int64", True, "AS408"),
        ("bool", 1, "AS408"),
        ("int8", 1000, "AS408"),
    ],
)
def test_a_number_is_taken_for_an_input_without_axes(dtype: str, value: Any, expected: Any) -> None:
    model = loaded(contract(f"x: float32[n]; count: {dtype}[]"))
    if isinstance(expected, str):
        assert code(lambda: model(x(2), count=value)) == expected
    else:
        assert model(x(2), count=value)["count_out"] == expected


def test_a_broken_contract_is_refused_unless_told_otherwise() -> None:
    finding = Finding(code="AS301", name="wrong-shape", what="output 'y' differs.")
    data = echo_bytes(contract("x: float32[n]", status="broken", findings=(finding,)))
    with pytest.raises(AnyshapeError) as caught:
        load(data)
    assert [found.code for found in caught.value.findings] == ["AS412", "AS301"]
    assert load(data, allow_broken=True)(x(2)).tolist() == [0.0, 1.0]


def test_a_file_without_a_contract_is_refused() -> None:
    assert code(lambda: load(model_bytes(echo_model(PAIR)))) == "AS044"


def test_a_file_that_onnxruntime_rejects_is_a_usage_error() -> None:
    proto = onnx.load_model_from_string(echo_bytes(PAIR))
    proto.graph.node[0].op_type = "NoSuchOperator"
    assert code(lambda: load(proto.SerializeToString())) == "AS047"


def test_a_file_without_kernels_is_no_fault_to_report() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (bfloat16[n] x) => (bfloat16[n] x_out) { x_out = Relu(x) }'
    )
    write_contract(proto, contract("x: bfloat16[n]"))
    with pytest.raises(AnyshapeError) as caught:
        load(proto.SerializeToString())
    assert caught.value.finding.code == "AS047"
    assert "model.float()" in caught.value.finding.fix


def test_weights_that_were_left_behind_are_missed_by_name(tmp_path: Path) -> None:
    promised = contract("x: float32[n, 400]")
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[n, 400] x) => (float[n, 400] x_out) { x_out = Add(x, w) }'
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 400), np.float32), "w"))
    write_contract(proto, promised)
    save_model(proto, tmp_path / "m.onnx", external_data=True)
    assert load(tmp_path / "m.onnx")(x(1, 400))[0, 0] == 1.0
    data = next(tmp_path.glob("m.onnx.*.data"))
    data.unlink()
    with pytest.raises(AnyshapeError) as caught:
        load(tmp_path / "m.onnx")
    assert caught.value.finding.code == "AS043"
    assert repr(data.name) in caught.value.finding.why


def test_values_that_the_runtime_refuses_are_not_the_sizes_fault() -> None:
    promised = contract("x: int64[n]")
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (int64[n] x) => (float[n] y) '
        "{ t = Constant<value_floats=[1.0, 2.0]>() y = Gather(t, x) }"
    )
    write_contract(proto, promised)
    model = load(proto.SerializeToString())
    assert model(np.array([0, 1])).tolist() == [1.0, 2.0]
    assert code(lambda: model(np.array([0, 2]))) == "AS417"


def test_a_defended_file_is_loaded_like_any_other() -> None:
    model = echo_model(PAIR)
    defend(model, PAIR)
    write_contract(model, PAIR)
    answers = load(model_bytes(model))(x=x(2, 3), mask=ones(2, 3))
    assert np.array_equal(answers[0], x(2, 3))


def test_its_repr_says_what_it_takes() -> None:
    model = loaded(contract("x: float32[n]", outputs="x_out: float32[n]"))
    assert repr(model) == "<anyshape.load 'the model in memory': x: float32[n] -> x_out: float32[n]>"


def test_loading_needs_no_torch(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(echo_bytes(PAIR))
    script = (
        "import sys, numpy as np, anyshape\n"
        f"model = anyshape.load({str(path)!r})\n"
        "model(x=np.zeros((2, 3), np.float32), mask=np.zeros((2, 3), bool))\n"
        "assert 'torch' not in sys.modules and 'z3' not in sys.modules, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class Unwilling:
    """An array of another library whose own code fails."""

    def __array__(self, *given: Any, **options: Any) -> Any:
        raise RuntimeError("not now")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: torch.zeros(3, device="meta"), "a tensor on the meta device, which has no values"),
        (lambda: torch.zeros(3).to_sparse(), "a tensor of the layout torch.sparse_coo"),
        (lambda: torch.zeros(3).to_mkldnn(), "a tensor of the layout torch._mkldnn"),
        (lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8), "a quantized tensor"),
        (lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)]), "a nested tensor"),
        (lambda: torch.nested.nested_tensor([torch.zeros(3)], layout=torch.jagged), "a nested tensor"),
        (lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.zeros(3)), "a FakeTensor without values"),
        (Unwilling, "a Unwilling that gives no array (RuntimeError)"),
    ],
    ids=lambda value: value.split()[1] if isinstance(value, str) else "",
)
def test_a_tensor_that_is_no_array_is_refused_by_what_it_is(given: Any, words: str) -> None:
    with pytest.raises(AnyshapeError) as caught:
        loaded(contract("x: float32[n]"))(x=given())
    assert caught.value.finding.code == "AS413"
    assert caught.value.finding.what == f"input 'x' is {words}, not an array."


def test_a_loaded_file_is_pickled_as_what_it_was_opened_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.onnx").write_bytes(echo_bytes(contract("x: float32[n]")))
    monkeypatch.chdir(tmp_path)
    by_path, by_bytes = load("m.onnx", threads=1), loaded(contract("x: float32[n]"))
    monkeypatch.chdir("/")
    for each in (by_path, by_bytes):
        again = pickle.loads(pickle.dumps(each))
        assert again(x=x(3)).tolist() == [0.0, 1.0, 2.0]
        assert again.contract == each.contract
