"""Static graphs made dynamic: which constants are replaced, which are asked about, which stand in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from anyshape import files
from anyshape.domain import Number, Ref, parse_expr
from anyshape.findings import DeclarationError, PromiseBroken, UsageError
from anyshape.repair.known_constants import find_counting, find_diagonal, is_regular
from anyshape.repair.reshape_readings import find_readings
from anyshape.runtime import Session

BATCH, SEQ = Ref("batch"), Ref("seq")


def save(text: str, folder: Path, **weights: np.ndarray) -> Path:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    path = folder / "static.onnx"
    onnx.save(model, path)
    return path


def fix(path: Path, words: Mapping[str, str], **options: object) -> files.FixedFile:
    return files.fix(path, path.with_name("dynamic.onnx"), words, **options)  # type: ignore[arg-type]


def run(fixed: files.FixedFile, **feeds: np.ndarray) -> list[np.ndarray]:
    return Session(fixed.path).run(feeds)


def code_of(path: Path, words: Mapping[str, str]) -> tuple[str, str]:
    """The code of the refusal, and its reason."""
    with pytest.raises(PromiseBroken) as refused:
        fix(path, words)
    assert not path.with_name("dynamic.onnx").exists()
    return refused.value.finding.code, refused.value.finding.why


READINGS = (
    (["batch", "3", "h", "w"], [2, 3, 35], {"batch": 2, "h": 5, "w": 7}, "[batch, 3, h*w]"),
    (["batch", "seq", "64"], [2, 10, 8, 8], {"batch": 2, "seq": 10}, "[batch, seq, 8, 8]"),
    (["batch", "seq", "64"], [20, 64], {"batch": 2, "seq": 10}, "[batch*seq, 64]"),
    (["batch*seq", "64"], [2, 10, 64], {"batch": 2, "seq": 10}, "[batch, seq, 64]"),
    (["batch", "10", "64"], [1, 10, 8, 8], {"batch": 1}, "[batch, 10, 8, 8]"),
    (["batch", "10", "64"], [10, 64], {"batch": 1}, "[10*batch, 64]"),
    (["seq", "batch", "16"], [10, 4, 4], {"batch": 1, "seq": 10}, "[seq, 4*batch, 4]"),
    (["batch*(h//4)", "16"], [1, 6, 4, 4], {"batch": 1, "h": 24}, "[batch, h//4, 4, 4]"),
    (["batch", "h"], [2, 6, 4], {"batch": 2, "h": 24}, "[batch, h//4, 4]"),
)


@pytest.mark.parametrize(("source", "target", "sizes", "first"), READINGS)
def test_a_reshape_is_read_in_the_order_of_its_axes(
    source: Sequence[str], target: Sequence[int], sizes: Mapping[str, int], first: str
) -> None:
    found = find_readings(tuple(parse_expr(each) for each in source), target, sizes)
    assert f"[{', '.join(map(str, found[0]))}]" == first


def test_dims_of_one_size_are_read_both_ways() -> None:
    found = find_readings((BATCH, SEQ, Number(4)), [8, 32], {"batch": 8, "seq": 8})
    assert [str(axes[0]) for axes in found][:2] == ["batch", "seq"]


def test_a_dim_that_moves_behind_fixed_numbers_is_not_the_only_reading() -> None:
    readings = find_readings(
        (BATCH, SEQ, Number(6)), [2, 3, 2, 7], {"batch": 2, "seq": 7}
    )  # seq//2 pairs of rows, by chance
    assert len(readings) > 1
    assert len(find_readings((BATCH, SEQ, Number(6)), [2, 7, 3, 2], {"batch": 2, "seq": 7})) == 1


def test_patterns_of_tables_are_seen_and_others_are_not() -> None:
    axes = {0: SEQ}
    assert is_regular(np.full((5, 2), 3.0), axes)
    assert is_regular(np.arange(5), axes)
    assert not is_regular(np.arange(5) / 5, axes)  # its steps depend on its length
    assert not is_regular(np.array([0, 1]), axes)  # two elements show no pattern
    assert not is_regular(np.random.default_rng(0).random(5), axes)
    assert find_counting(np.array([1.0, 3.0, 5.0]), 0) is not None
    mask = np.triu(np.full((5, 5), -np.inf), 1)
    assert is_regular(mask, {0: SEQ, 1: SEQ})
    assert not is_regular(mask, {0: SEQ, 1: BATCH})
    band = np.abs(np.arange(5)[:, None] - np.arange(5)) < 2
    assert find_diagonal(band, 0, 1) is None


def test_a_constant_shape_follows_the_batch(tmp_path: Path) -> None:
    text = "g (float[2, 6] x) => (float[2, 2, 3] y) { s = Constant <value_ints = [2, 2, 3]> () y = Reshape (x, s) }"
    fixed = fix(save(text, tmp_path), {"x": "batch 6"})
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    assert np.array_equal(run(fixed, x=x)[0], x.reshape(5, 2, 3))
    model = onnx.load(fixed.path)
    assert [node.op_type for node in model.graph.node if node.op_type != "Constant"] == ["Reshape"]  # no arithmetic
    assert [dim.dim_param or dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim] == [
        "batch",
        2,
        3,
    ]
    assert all(value.name.startswith("anyshape/") for value in model.graph.value_info)


def test_a_causal_mask_is_made_at_each_length(tmp_path: Path) -> None:
    mask = np.triu(np.full((4, 4), -1e9, np.float32), 1)
    path = save("g (float[3, 4, 4] x) => (float[3, 4, 4] y) { z = Add (x, mask) y = Softmax (z) }", tmp_path, mask=mask)
    fixed = fix(path, {"x": "batch seq seq"})
    (answer,) = run(fixed, x=np.zeros((2, 7, 7), np.float32))
    assert np.allclose(answer[0], np.tril(np.ones((7, 7))) / np.arange(1, 8)[:, None])


def test_states_of_a_recurrent_layer_follow_the_batch(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    weights = {
        "w": draw.random((1, 8, 3)),
        "r": draw.random((1, 8, 2)),
        "h": np.zeros((1, 4, 2)),
        "c": np.zeros((1, 4, 2)),
    }
    text = "g (float[5, 4, 3] x) => (float[5, 1, 4, 2] y) { y = LSTM <hidden_size = 2> (x, w, r, , , h, c) }"
    path = save(text, tmp_path, **{name: array.astype(np.float32) for name, array in weights.items()})
    fixed = fix(path, {"x": "seq batch 3"})
    assert run(fixed, x=np.zeros((6, 9, 3), np.float32))[0].shape == (6, 1, 9, 2)


@pytest.mark.parametrize("batch", [1, 2])
def test_positions_that_count_an_axis_follow_it(batch: int, tmp_path: Path) -> None:
    rows, columns = np.broadcast_arrays(np.arange(batch)[:, None], np.arange(5)[None, :])
    places = np.stack([rows, columns], -1)
    text = f"g (float[{batch}, 5] x) => (float[{batch}, 5] y) {{ z = GatherND (x, places) y = Softmax <axis = 1> (z) }}"
    fixed = fix(save(text, tmp_path, places=places), {"x": "batch seq"})
    x = np.random.default_rng(0).random((3, 7)).astype(np.float32)
    assert np.allclose(run(fixed, x=x)[0], np.exp(x) / np.exp(x).sum(1, keepdims=True), atol=1e-6)


def test_sizes_that_agree_for_multiples_alone_are_a_rule(tmp_path: Path) -> None:
    text = (
        "g (float[1, 1, 8] x) => (float[1, 2, 8] y) { p = MaxPool <kernel_shape = [2], strides = [2]> (x) "
        'u = Resize <mode = "nearest"> (p, , scales) y = Concat <axis = 1> (x, u) }'
    )
    fixed = fix(save(text, tmp_path, scales=np.array([1, 1, 2], np.float32)), {"x": "batch 1 t"})
    assert fixed.multiples == {"t": 2}
    assert run(fixed, x=np.zeros((3, 1, 10), np.float32))[0].shape == (3, 2, 10)


def test_a_constant_may_not_follow_a_size_at_one_of_two_nodes(tmp_path: Path) -> None:
    text = (
        "g (float[3, 5] x, float[2, 5] z) => (float[3, 5] y, float[2, 5] w) "
        "{ r = Gather (table, places) a = Softmax <axis = 1> (x) y = Add (a, r) w = Add (z, r) }"
    )
    table = np.random.default_rng(0).random(9).astype(np.float32)
    code, why = code_of(save(text, tmp_path, table=table, places=np.arange(5)), {"x": "batch seq"})
    assert code == "AS501" and "at another node" in why


def test_dims_of_one_size_are_asked_about_and_answered(tmp_path: Path) -> None:
    text = (
        "g (float[8, 8, 4] x) => (float[8, 32] y) "
        "{ t = ReduceSum <keepdims = 1> (x, a) z = Sub (x, t) s = Constant <value_ints = [8, 32]> () y = Reshape (z, s) }"
    )
    path = save(text, tmp_path, a=np.array([0, 1]))
    code, why = code_of(path, {"x": "batch seq 4"})
    assert code == "AS502"
    assert "[batch, 4*seq]" in why and "[seq, 4*batch]" in why
    answered = fix(path, {"x": "batch seq 4"}, read={"y": "[seq, 4*batch]"})
    assert run(answered, x=np.zeros((3, 5, 4), np.float32))[0].shape == (5, 12)
    declared = fix(path, {"x": "batch seq 4", "y": "batch 4*seq"})
    assert run(declared, x=np.zeros((3, 5, 4), np.float32))[0].shape == (3, 20)


def test_dims_of_one_size_are_told_apart_by_evidence(tmp_path: Path) -> None:
    text = (
        "g (float[8, 8, 4] x) => (float[8, 8, 2, 2] y) "
        "{ t = Softmax <axis = 1> (x) s = Constant <value_ints = [8, 8, 2, 2]> () y = Reshape (t, s) }"
    )
    fixed = fix(save(text, tmp_path), {"x": "batch seq 4"})
    x = np.random.default_rng(0).random((3, 5, 4)).astype(np.float32)
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert np.allclose(run(fixed, x=x)[0], expected.reshape(3, 5, 2, 2), atol=1e-6)


REFUSED = (
    (
        "matrix",
        "g (float[2, 5] x) => (float[2, 3] y) { y = MatMul (x, w) }",
        "batch seq",
        (5, 3),
        "AS501",
        "matrix of 5 rows",
    ),
    ("table", "g (float[3, 5] x) => (float[3, 5] y) { y = Add (x, w) }", "batch seq", (5,), "AS501", "axis 0 has 5"),
    ("slice", "g (float[3, 10] x) => (float[3, 5] y) { y = Slice (x, z, f, o) }", "batch seq", (), "AS502", "seq//2"),
    (
        "number",
        "g (float[3, 10] x) => (float[3] y) { t = ReduceSum <keepdims = 0> (x, o) y = Div (t, n) }",
        "batch seq",
        (),
        "AS502",
        "it is seq",
    ),
    (
        "small",
        "g (float[3, 1] x) => (float[3, 1] y) { y = Softmax <axis = 1> (x) }",
        "batch seq",
        (),
        "AS503",
        "not independent",
    ),
    (
        "operator",
        "g (float[3, 4] x) => (int64[2, 5] y) { y = NonZero (x) }",
        "batch seq",
        (),
        "AS501",
        "depends on values",
    ),
    (
        "two dims",
        "g (float[3, 4] x, float[3, 4] z) => (float[3, 4] y) { y = Add (x, z) }",
        "batch seq",
        (),
        "AS501",
        "has to be",
    ),
)


@pytest.mark.parametrize(("name", "text", "words", "shape", "code", "why"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_the_file_does_not_show_is_refused_by_node(
    name: str, text: str, words: str, shape: tuple[int, ...], code: str, why: str, tmp_path: Path
) -> None:
    weights = {"w": np.random.default_rng(0).random(shape).astype(np.float32)} if shape else {}
    numbers = {"z": np.array([0]), "f": np.array([5]), "o": np.array([1]), "n": np.array(10, np.float32)}
    used = {key: array for key, array in numbers.items() if f" {key})" in text or f" {key}," in text}
    used = {} if name == "two dims" else used
    other = {"z": "n m"} if name == "two dims" else {}
    found = code_of(save(text, tmp_path, **weights, **used), {"x": words, **other})
    assert found[0] == code
    assert why in found[1]


def test_a_number_that_may_be_a_size_is_kept_where_the_user_says_so(tmp_path: Path) -> None:
    text = "g (float[3, 10] x) => (float[3] y) { t = ReduceSum <keepdims = 0> (x, o) y = Div (t, n) }"
    path = save(text, tmp_path, o=np.array([1]), n=np.array(10, np.float32))
    fixed = fix(path, {"x": "batch seq"}, read={"y": "10"})
    assert np.allclose(run(fixed, x=np.ones((2, 5), np.float32))[0], 0.5)


def test_words_that_do_not_fit_the_file_are_explained(tmp_path: Path) -> None:
    path = save("g (float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }", tmp_path)
    for words, code in (({"z": "batch 3"}, "AS011"), ({"x": "batch"}, "AS012"), ({"x": "batch 4"}, "AS013")):
        with pytest.raises(DeclarationError) as refused:
            fix(path, words)
        assert refused.value.finding.code == code
    with pytest.raises(UsageError) as unread:
        fix(path, {"x": "batch 3"}, read={"nothing": "batch"})
    assert unread.value.finding.code == "AS036"


def test_weights_in_a_second_file_stay_readable(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).random((32, 16)).astype(np.float32)
    path = save("g (float[1, 32] x) => (float[1, 16] y) { y = MatMul (x, w) }", tmp_path, w=weight)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="static.data", size_threshold=0)
    fixed = fix(path, {"x": "batch 32"}, external_data=True)
    assert list(tmp_path.glob("dynamic.onnx.*.data"))
    x = np.random.default_rng(1).random((4, 32)).astype(np.float32)
    assert np.allclose(run(fixed, x=x)[0], x @ weight, atol=1e-5)


def test_the_file_tells_how_it_was_repaired(tmp_path: Path) -> None:
    text = "g (float[2, 6] x) => (float[12] y) { s = Constant <value_ints = [12]> () y = Reshape (x, s) }"
    fixed = fix(save(text, tmp_path), {"x": "batch 6"})
    stored = ir.load(fixed.path).metadata_props[files.REPAIRED_KEY]
    assert '"changed": ["y"]' in stored and "in pieces at batch = 1, 3, 4, 5, 6" in stored


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 21])
def test_older_opsets_are_read_and_written(opset: int, tmp_path: Path) -> None:
    text = f'<ir_version: 7, opset_import: ["" : {opset}]> g (float[2, 6] x) => (float[2, 3, 2, 1] y) '
    body = "{ s = Constant <value = int64[3] {2, 3, 2}> () r = Reshape (x, s) y = Reshape (r, t) }"
    model = onnx.parser.parse_model(text + body)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 3, 2, 1]), "t"))
    onnx.save(model, tmp_path / "static.onnx")
    fixed = fix(tmp_path / "static.onnx", {"x": "batch 6"})
    assert run(fixed, x=np.zeros((5, 6), np.float32))[0].shape == (5, 3, 2, 1)


def test_constants_inside_a_branch_follow_the_batch(tmp_path: Path) -> None:
    text = (
        "g (float[3, 6] x, bool c) => (float[3, 2, 3] y) "
        "{ y = If (c) <"
        "then_branch = t () => (float[3, 2, 3] a) { s = Constant <value_ints = [3, 2, 3]> () a = Reshape (x, s) },"
        "else_branch = e () => (float[3, 2, 3] b) "
        "{ r = Constant <value_ints = [3, 2, 3]> () z = Reshape (x, r) b = Neg (z) }> }"
    )
    fixed = fix(save(text, tmp_path), {"x": "batch 6"})
    assert run(fixed, x=np.ones((5, 6), np.float32), c=np.array(False))[0].shape == (5, 2, 3)


def test_a_table_that_holds_its_own_length_is_asked_about(tmp_path: Path) -> None:
    path = save(
        "g (float[7, 4] x) => (float[7, 4] y) { y = Add (x, w) }", tmp_path, w=np.full((7, 1), 7, np.float32)
    )  # as of torch.full((n, 1), n)
    assert code_of(path, {"x": "n 4"}) == ("AS502", "it is n at the file's own sizes.")
    fixed = fix(path, {"x": "n 4"}, read={"y": "7"})
    assert np.array_equal(run(fixed, x=np.zeros((3, 4), np.float32))[0], np.full((3, 4), 7, np.float32))
    other = save("g (float[7, 4] x) => (float[7, 4] y) { y = Add (x, w) }", tmp_path, w=np.full((7, 1), 5, np.float32))
    assert np.array_equal(run(fix(other, {"x": "n 4"}), x=np.zeros((3, 4), np.float32))[0], np.full((3, 4), 5))


def test_places_that_count_from_the_end_are_asked_about(tmp_path: Path) -> None:
    text = (
        "g (float[7] x) => (float[7] y) "
        "{ s = Slice (x, three, end, zero) t = Slice (x, zero, three, zero) y = Concat <axis = 0> (s, t) }"
    )  # as of roll(x, n // 2)
    path = save(text, tmp_path, zero=np.array([0]), three=np.array([-3]), end=np.array([2**63 - 1]))
    code, why = code_of(path, {"x": "n"})
    assert code == "AS502" and "n - 3 or n - n//2" in why
    x = np.arange(10, dtype=np.float32)
    halves = {"s[0].start": "n - n//2", "t[0].end": "n - n//2"}
    assert np.array_equal(run(fix(path, {"x": "n"}, read=halves), x=x)[0], np.roll(x, 5))
    threes = {"s[0].start": "n - 3", "t[0].end": "n - 3"}
    assert np.array_equal(run(fix(path, {"x": "n"}, read=threes), x=x)[0], np.roll(x, 3))


def test_a_counted_table_as_long_as_a_dim_is_asked_about(tmp_path: Path) -> None:
    text = "g (int64[7] x) => (bool[7, 7] y) { u = Unsqueeze (x, last) y = Equal (u, w) }"  # as of one_hot(x, n)
    path = save(text, tmp_path, last=np.array([-1]), w=np.arange(7))
    code, why = code_of(path, {"x": "n"})
    assert code == "AS502" and "7 or n" in why
    for reading, width in (("7", 7), ("n", 3)):
        fixed = fix(path, {"x": "n"}, read={"y[-1]": reading})
        assert run(fixed, x=np.arange(3))[0].shape == (3, width)


def test_a_number_behind_what_is_left_is_asked_about(tmp_path: Path) -> None:
    text = "g (float[1, 7, 4] x) => (float[1, 7, 4] y) { s = Constant <value_ints = [-1, 7, 4]> () y = Reshape (x, s) }"
    path = save(text, tmp_path)
    code, why = code_of(path, {"x": "1 seq 4"})
    assert code == "AS502" and "[1, seq, 4] or [seq//7, 7, 4]" in why
    x = np.zeros((1, 14, 4), np.float32)
    pieces = fix(path, {"x": "1 seq 4"}, read={"y[-1]": "[seq//7, 7, 4]"})
    assert run(pieces, x=x)[0].shape == (2, 7, 4)
    whole = fix(path, {"x": "1 seq 4"}, read={"y[-1]": "[1, seq, 4]"})
    assert run(whole, x=x)[0].shape == (1, 14, 4)
    before = text.replace("[-1, 7, 4]", "[2, -1, 4]").replace("[1, 7, 4]", "[2, 7, 4]")  # as of view(batch, -1, 4)
    kept = fix(save(before, tmp_path), {"x": "batch seq 4"})
    assert run(kept, x=np.zeros((3, 5, 4), np.float32))[0].shape == (3, 5, 4)
