"""The node at fault: found in the file, with its line, its frozen size and whose fault it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from tests.verify_calls import Call, request_of

from anyshape.records.verdict import Failure, Fault, Located
from anyshape.verify import Answer, Reference, VerifyOptions, annotate_sizes, verify
from anyshape.verify.file_copies import CopyFailed, Given, load_named, show
from anyshape.verify.locate.find import find_fault
from anyshape.verify.locate.module_values import KnownValues, Step, watch
from anyshape.verify.locate.opened import FileNode
from anyshape.verify.tensors import to_array

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


class Of(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def flatten(outputs: Any) -> list[tuple[str, Any]]:
    return [("y", outputs)]


def make(sizes: Any, seed: int) -> Call:
    return Call((torch.randn(sizes["b"], 4, generator=torch.Generator().manual_seed(seed)),))


def smallest_failure(
    function: Callable[..., Any],
    graph: str,
    change: Callable[[onnx.ModelProto], None] = lambda model: None,
    **options: Any,
) -> Failure:
    model = onnx.parser.parse_model(HEAD + graph)
    change(model)
    with Reference(Of(function), flatten) as reference:
        verdict = verify(
            request_of(
                model,
                reference,
                make,
                [{"b": 3}, {"b": 5}],
                example={"b": 3},
                options=VerifyOptions(draws=1, **options),
            )
        )
    assert verdict.smallest_failure is not None
    return verdict.smallest_failure


def located(*args: Any, **options: Any) -> Located:
    found = smallest_failure(*args, **options).located
    assert found is not None
    return found


RIGHT_THEN_WRONG = """g (float[b, 4] x) => (float[b, 4] y) {
    e = Exp(x) s = Sin(e) y = Neg(s) }"""


def test_the_first_wrong_node_is_found_not_the_last() -> None:
    found = located(lambda x: -torch.exp(x).cos(), RIGHT_THEN_WRONG)
    assert (found.node, found.op_type, found.fault) == ("s", "Sin", Fault.FILE)


def test_values_that_the_file_computes_in_its_own_way_are_passed_by() -> None:
    graph = """g (float[b, 4] x) => (float[b, 4] y) { two = Constant<value_float = 2.0>()
        half = Div(x, two) twice = Add(half, half) e = Exp(twice) y = Neg(e) }"""
    found = located(lambda x: torch.exp(x) + 1, graph)
    assert found.node == "y"


def test_the_line_is_that_of_the_module_where_the_file_tells_none() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        e = torch.exp(x)
        return -torch.cos(e)

    found = located(forward, RIGHT_THEN_WRONG)
    assert found.source is not None
    assert found.source.text == "return -torch.cos(e)"


def test_the_line_in_the_file_comes_first() -> None:
    def write(model: onnx.ModelProto) -> None:
        model.graph.node[1].metadata_props.add(key="anyshape.source", value="model.py:41")

    source = located(lambda x: -torch.exp(x).cos(), RIGHT_THEN_WRONG, write).source
    assert source is not None
    assert (source.file, source.line) == ("model.py", 41)


def test_torchs_own_stack_is_read_as_a_line() -> None:
    def write(model: onnx.ModelProto) -> None:
        stack = 'File "/home/me/model.py", line 7, in forward\n    x.sin()\nFile "torch/nn/x.py", line 3, in g'
        model.graph.node[1].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=stack)

    source = located(lambda x: -torch.exp(x).cos(), RIGHT_THEN_WRONG, write).source
    assert source is not None
    assert (source.file, source.line) == ("model.py", 7)


def test_a_frozen_shape_is_named_with_its_constant() -> None:
    graph = """g (float[b, 4] x) => (float[n, 2] y) { e = Exp(x)
        shape = Constant<value_ints = [3, 4]>() r = Reshape(e, shape) two = Constant<value_ints = [-1, 2]>()
        y = Reshape(r, two) }"""
    failure = smallest_failure(lambda x: torch.exp(x).view(-1, 2), graph)
    assert failure.located is not None
    assert (failure.located.node, failure.located.constant) == ("r", (3, 4))


def test_the_branch_that_is_not_to_be_taken_is_traced_to_its_condition() -> None:
    graph = """g (float[b, 4] x) => (float[b, 4] y) { four = Constant<value_ints = [4]>()
        n = Shape<start = 0, end = 1>(x) many = Greater(n, four)
        y = If(many) <then_branch = t () => (float[b, 4] a) { a = Exp(x) },
                      else_branch = e () => (float[b, 4] c) { c = Sin(x) }> }"""
    found = located(lambda x: torch.exp(x) if x.shape[0] > 2 else torch.sin(x), graph)
    assert found.node == "many"


def test_a_node_inside_a_branch_is_found() -> None:
    graph = """g (float[b, 4] x) => (float[b, 4] y) { four = Constant<value_ints = [4]>()
        n = Shape<start = 0, end = 1>(x) many = Greater(n, four)
        y = If(many) <then_branch = t () => (float[b, 4] a) { a = Neg(x) },
                      else_branch = e () => (float[b, 4] c) { p = Exp(x) c = Sin(p) }> }"""
    assert located(lambda x: -torch.exp(x), graph).node == "c"


def test_a_node_inside_a_loop_is_found_at_the_turn_where_it_goes_wrong() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        state = torch.ones(4)
        for row in x:
            state = torch.sin(state * row) + 1
        return state

    graph = """g (float[b, 4] x) => (float[4] y) { one = Constant<value_floats = [1.0, 1.0, 1.0, 1.0]>()
        y = Scan<num_scan_inputs = 1, body = f (float[4] s, float[4] row) => (float[4] t) {
            unit = Constant<value_float = 1.0>() p = Mul(s, row) q = Cos(p) t = Add(q, unit) }>(one, x) }"""
    assert located(forward, graph).node == "q"


def test_a_node_that_stops_the_file_is_found() -> None:
    graph = """g (float[b, 4] x) => (float[b, 4] y) { e = Exp(x) shape = Constant<value_ints = [3, 4]>()
        r = Reshape(e, shape) y = Neg(r) }"""
    found = located(lambda x: -torch.exp(x), graph)
    assert (found.node, found.op_type, found.constant) == ("r", "Reshape", (3, 4))


def test_a_weight_with_other_numbers_is_found_by_its_name(tmp_path: Path) -> None:
    module = torch.nn.Linear(4, 4)
    model = onnx.parser.parse_model(
        HEAD + "g (float[b, 4] x) => (float[b, 4] y) { p = Gemm<transB = 1>(x, weight, bias) y = Relu(p) }"
    )
    wrong = module.weight.detach().numpy() + 0.5
    model.graph.initializer.append(onnx.numpy_helper.from_array(wrong, "weight"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(module.bias.detach().numpy(), "bias"))
    with Reference(torch.nn.Sequential(module, torch.nn.ReLU()), flatten) as reference:
        request = request_of(model, reference, make, [{"b": 3}])
        found = verify(request).smallest_failure
        unlooked = verify(replace(request, options=VerifyOptions(locate_s=0.0))).smallest_failure
    assert found is not None and found.located is not None and unlooked is not None
    assert found.located.node == "p"
    assert unlooked.located is None


def test_a_file_with_another_number_of_outputs_has_no_node_at_fault() -> None:
    graph = "g (float[b, 4] x) => (float[b, 4] y, float[b, 4] z) { y = Exp(x) z = Neg(y) }"
    assert smallest_failure(lambda x: torch.exp(x), graph).located is None


def node_and_values(text: str, values: dict[str, Any]) -> tuple[onnx.ModelProto, FileNode, dict[str, Any]]:
    model = onnx.parser.parse_model(HEAD + text)
    node = model.graph.node[0]
    return model, FileNode("y", node.op_type, tuple(node.input), tuple(node.output), node), values


def known_of(function: Callable[..., Any], x: np.ndarray) -> KnownValues:
    with Reference(Of(function), flatten) as reference:
        watched = watch(reference, Call((torch.from_numpy(x),)))
    assert watched is not None
    return KnownValues(watched[1])


def test_the_referee_tells_the_files_fault_from_the_runtimes() -> None:
    x = np.array([[1.0, 2.0]], np.float32)
    text = "g (float[b, 2] x) => (float[b, 2] y) { y = Exp(x) }"
    known = known_of(torch.exp, x)
    right, wrong = np.exp(x), np.exp(x) + 1
    assert find_fault(*node_and_values(text, {"x": x, "y": right}), known) is Fault.FILE
    assert find_fault(*node_and_values(text, {"x": x, "y": wrong}), known) is Fault.RUNTIME
    assert find_fault(*node_and_values(text, {"x": x, "y": wrong}), known_of(torch.sin, x)) is Fault.UNKNOWN
    assert find_fault(*node_and_values(text, {"y": wrong}), known) is Fault.UNKNOWN


def test_every_step_of_the_module_is_seen_and_its_answer_unchanged() -> None:
    x = torch.randn(2, 4)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softmax(-1))
    with Reference(module, flatten) as reference:
        plain = reference.run(Call((x,)))
        watched = watch(reference, Call((x,)))
        refused = watch(reference, Call((torch.randn(2, 5),)))
    assert watched is not None and isinstance(plain, Answer)
    assert np.array_equal(watched[0].arrays[0], plain.arrays[0])
    known = KnownValues(watched[1])
    assert known.find(to_array(x @ module[0].weight.T)) is not None  # a part of the linear layer, which has a bias
    assert known.find(to_array(x + 1)) is None
    assert refused is None


def test_the_same_number_throughout_must_have_the_same_shape() -> None:
    known = known_of(lambda x: torch.zeros(2, 3) + 0 * x.sum(), np.ones((1, 2), np.float32))
    assert known.find(np.zeros((2, 3), np.float32)) is not None
    assert known.find(np.zeros((3, 2), np.float32)) is None


def test_numbers_of_any_kind_are_compared_without_a_warning() -> None:
    signalling = np.frombuffer(b"\x01\x00\xa0\x7f" * 6, np.float32).reshape(2, 3)
    known = KnownValues([Step(signalling, None, (), is_data=False)])
    assert known.find(np.zeros((2, 3), np.float32)) is None


def test_memory_that_nobody_has_written_to_is_no_value_of_the_module() -> None:
    with Reference(Of(lambda x: torch.empty(7, 9).fill_(2.0)[0, 0] + x), flatten) as reference:
        watched = watch(reference, Call((torch.ones(2),)))
    assert watched is not None
    filled = [step.value for step in watched[1] if step.value.shape == (7, 9)]
    assert filled and all((value == 2.0).all() for value in filled)


def test_inner_values_are_shown_and_the_node_that_stops_is_named(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD + RIGHT_THEN_WRONG)
    onnx.save(model, tmp_path / "m.onnx")
    named = load_named(str(tmp_path / "m.onnx"))
    given = Given({"x": np.ones((1, 4), np.float32)}, {}, lambda: 20.0)
    assert np.allclose(show(named, ["e"], given)["e"], np.e)
    stopping = (
        """g (float[b, 4] x) => (float[b, 4] y) { shape = Constant<value_ints = [3, 4]>() y = Reshape(x, shape) }"""
    )
    onnx.save(onnx.parser.parse_model(HEAD + stopping), tmp_path / "m.onnx")
    with pytest.raises(CopyFailed) as stopped:
        show(load_named(str(tmp_path / "m.onnx")), ["y"], given)
    assert stopped.value.node == "y"


SIZED = """g (float[b, 4] x) => (float[b, 4] y) {
  rows = Shape<start = 0, end = 1>(x) one = Constant<value_ints = [1]>() more = Add(rows, one) half = Add(more, more)
  wide = Cast<to = 1>(half) y = Mul(x, wide) }"""


def told(model: onnx.ModelProto) -> None:
    wide = ir.from_proto(model)
    annotate_sizes(wide)
    model.CopyFrom(ir.to_proto(wide))


def test_a_wrong_size_is_found_at_the_node_that_the_file_tells_otherwise() -> None:
    def subtract(model: onnx.ModelProto) -> None:
        told(model)
        next(node for node in model.graph.node if node.output[0] == "more").op_type = "Sub"

    located = smallest_failure(lambda x: x * (2 * x.shape[0] + 2), SIZED, subtract).located
    assert located is not None
    assert (located.node, located.op_type) == ("more", "Sub")


def test_a_wrong_constant_among_sizes_is_found_where_it_is_read() -> None:
    def move(model: onnx.ModelProto) -> None:
        told(model)
        next(node for node in model.graph.node if node.output[0] == "one").attribute[0].ints[0] = 2

    located = smallest_failure(lambda x: x * (2 * x.shape[0] + 2), SIZED, move).located
    assert located is not None
    assert located.node == "more"


def test_a_mask_that_finds_nothing_raises_no_doubt() -> None:
    graph = """g (float[b, 4] x) => (float[b, 4] y) {
      holes = IsNaN(x) zero = Constant<value_float = 0.0>() e = Exp(x) y = Where(holes, zero, e) }"""
    located = smallest_failure(torch.sinh, graph).located
    assert located is not None
    assert located.node in ("e", "y")


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def test_what_is_inside_of_fused_kernels_is_watched_too() -> None:
    module = Layer()
    with Reference(module, flatten) as reference:
        watched = watch(reference, Call((torch.randn(2, 5, 8),)))
    assert watched is not None
    answer, steps = watched
    shares = [step.value for step in steps if step.value.shape == (2, 2, 5, 5)]
    assert any(np.allclose(each.sum(-1), 1.0, atol=1e-5) and (each > 0).all() for each in shares)
    assert KnownValues(steps).find(answer.arrays[0]) is not None
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_node_beside_a_custom_one_is_located() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "mylib" : 1]> g (float[b, 4] x) => (float[b, 4] y) <float[b, 4] s> {
      e = Exp(x) s = mylib.Scale(e) t = Sinh(s) y = Neg(t) }"""
    with Reference(Of(lambda x: -torch.tanh(torch.exp(x) * 3)), flatten) as reference:
        verdict = verify(
            request_of(
                onnx.parser.parse_model(text),
                reference,
                make,
                [{"b": 3}],
                operators={"mylib::Scale": lambda array: array * 3},
                options=VerifyOptions(draws=1),
            )
        )
    assert verdict.smallest_failure is not None
    located = verdict.smallest_failure.located
    assert located is not None
    assert located.node == "t"
