"""The text of every finding about files and calls, word for word."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from anyshape.contract import file_messages
from anyshape.contract.defend import defend
from anyshape.contract.from_json import contract_from_plain, parse_contract
from anyshape.contract.graph_rules import contract_of_foreign
from anyshape.domain import Dim, Domain, parse_condition, parse_expr
from anyshape.findings import AnyshapeError, Finding, Source, render
from anyshape.loading import broken_calls as say
from anyshape.loading.call_checks import CallChecker
from anyshape.records.contract import Contract, Rule, TensorPromise, contract_as_plain
from anyshape.saving import atomic as saving
from anyshape.saving import outputs


def tensor(name: str, dtype: str, *axes: str) -> TensorPromise:
    return TensorPromise(name, name, dtype, tuple(parse_expr(axis) for axis in axes))


DECODER = Contract(
    status="kept",
    domain=Domain(
        (Dim("batch", 1, 64, declared=True), Dim("seq", 1, None, 8), Dim("past", 0)),
        (parse_condition("past + seq <= 4096"),),
    ),
    rules=(
        Rule(parse_condition("batch <= 64"), "declared"),
        Rule(parse_condition("seq % 8 == 0"), "model", Source("model.py", 12, "forward", "x.view(b, -1, 8)")),
        Rule(parse_condition("past + seq <= 4096"), "found by trying"),
    ),
    inputs=(
        tensor("ids", "int64", "batch", "seq"),
        tensor("mask", "int64", "batch", "past + seq"),
        tensor("cache.0", "float32", "batch", "4", "past"),
    ),
    outputs=(),
)
TAKES = "the file takes ids: int64[batch, seq]; mask: int64[batch, past + seq]; cache.0: float32[batch, 4, past]."
KNOWN = "batch = {batch} from 'ids' axis 0; seq = {seq} from 'ids' axis 1; past = {past} from 'cache.0' axis 2."


class Shaped:
    """An array as far as checks look at it: sizes of thousands need no memory."""

    def __init__(self, dtype: str, *shape: int) -> None:
        import numpy as np

        self.dtype, self.shape = np.dtype(dtype), shape


def call(contract: Contract = DECODER, **changed: Shaped | None) -> Callable[[], object]:
    feeds = {"ids": Shaped("int64", 3, 8), "mask": Shaped("int64", 3, 10), "cache.0": Shaped("float32", 3, 4, 2)}
    given = {name.replace("cache_0", "cache.0"): value for name, value in changed.items()}
    feeds = {name: value for name, value in {**feeds, **given}.items() if value is not None}
    return lambda: CallChecker.of(contract).check(feeds)  # type: ignore[arg-type]


def error(code_of: Callable[[], object]) -> str:
    with pytest.raises(AnyshapeError) as caught:
        code_of()
    return str(caught.value)


def halves() -> None:
    promised = Contract(
        status="kept",
        domain=Domain((Dim("t", 1, 20),)),
        rules=(),
        inputs=(tensor("x", "float32", "(t + 1)//2"),),
        outputs=(),
    )
    CallChecker.of(promised).check({"x": Shaped("float32", 11)})  # type: ignore[dict-item]


CALLS = {
    "AS401": (
        call(mask=Shaped("int64", 5, 10)),
        f"""\
AS401 dim-differs: input 'mask' axis 0 (batch) is 5, but input 'ids' axis 0 (batch) is 3.
  Why:    {KNOWN.format(batch=3, seq=8, past=2)}
  Fix:    give 'mask' and 'ids' the same batch.""",
    ),
    "AS402 above": (
        call(ids=Shaped("int64", 65, 8), mask=Shaped("int64", 65, 10), cache_0=Shaped("float32", 65, 4, 2)),
        f"""\
AS402 size-out-of-range: input 'ids' axis 0 (batch) is 65, but must be at most 64.
  Why:    {KNOWN.format(batch=65, seq=8, past=2)}
          the rule was declared when the file was exported.
  Or:     export again with a wider range, where=['batch <= 65'].""",
    ),
    "AS402 below": (
        call(ids=Shaped("int64", 0, 8), mask=Shaped("int64", 0, 10), cache_0=Shaped("float32", 0, 4, 2)),
        f"""\
AS402 size-out-of-range: input 'ids' axis 0 (batch) is 0, but must be at least 1.
  Why:    {KNOWN.format(batch=0, seq=8, past=2)}""",
    ),
    "AS403": (
        call(ids=Shaped("int64", 3, 13), mask=Shaped("int64", 3, 15)),
        f"""\
AS403 not-a-multiple: input 'ids' axis 1 (seq) is 13, but must be a multiple of 8.
  Where:  model.py:12, in forward:   x.view(b, -1, 8)
  Why:    {KNOWN.format(batch=3, seq=13, past=2)}
          the rule is the model's own.
  Fix:    cut or pad it to 8 or 16.""",
    ),
    "AS404": (
        call(mask=Shaped("int64", 3, 11)),
        f"""\
AS404 wrong-axis: input 'mask' axis 1 is 11, but must be past + seq, which is 10.
  Why:    {KNOWN.format(batch=3, seq=8, past=2)}""",
    ),
    "AS405": (
        call(ids=Shaped("int64", 3, 4096), mask=Shaped("int64", 3, 4098)),
        f"""\
AS405 relation-broken: these sizes break the rule past + seq <= 4096.
  Why:    {KNOWN.format(batch=3, seq=4096, past=2)}
          the rule was found by trying the model: it refuses other sizes.""",
    ),
    "AS406": (
        call(cache_0=Shaped("float32", 3, 5, 2)),
        """\
AS406 wrong-fixed-size: input 'cache.0' axis 1 is 5, but is always 4.
  Why:    expected cache.0: float32[batch, 4, past], actual float32[3, 5, 2].""",
    ),
    "AS407": (
        call(ids=Shaped("int64", 3)),
        """\
AS407 wrong-rank: input 'ids' has 1 axis, but needs 2 axes.
  Why:    expected ids: int64[batch, seq], actual int64[3].""",
    ),
    "AS408": (
        call(ids=Shaped("int32", 3, 8)),
        """\
AS408 wrong-dtype: input 'ids' is int32, but must be int64.
  Fix:    ids.astype("int64")""",
    ),
    "AS408 inside": (
        call(cache_0=Shaped("float64", 3, 4, 2)),
        """\
AS408 wrong-dtype: input 'cache.0' is float64, but must be float32.
  Fix:    cache[0].astype("float32")""",
    ),
    "AS409": (
        call(mask=None),
        f"""\
AS409 missing-input: input 'mask' is missing.
  Why:    {TAKES}""",
    ),
    "AS409 several": (
        call(mask=None, ids=None),
        f"""\
AS409 missing-input: inputs 'ids', 'mask' are missing.
  Why:    {TAKES}""",
    ),
    "AS410": (
        call(maks=Shaped("int64", 3, 10)),
        f"""\
AS410 unknown-input: there is no input 'maks'.
  Why:    {TAKES}
  Fix:    did you mean 'mask'?""",
    ),
    "AS410 far": (
        call(zzz=Shaped("int64", 3, 10)),
        f"""\
AS410 unknown-input: there is no input 'zzz'.
  Why:    {TAKES}
  Fix:    leave 'zzz' out.""",
    ),
    "AS415": (
        halves,
        """\
AS415 no-such-sizes: no t of the contract fits: input 'x' axis 0 ((t + 1)//2) is 11.""",
    ),
    "AS045": (
        lambda: contract_from_plain({**contract_as_plain(DECODER), "version": 2, "versions": {"anyshape": "3.1"}}),
        """\
AS045 newer-contract: the file's contract has version 2, and this anyshape reads up to version 1.
  Why:    it was written by anyshape 3.1.
  Fix (not tried): pip install --upgrade anyshape""",
    ),
    "AS046": (
        lambda: contract_from_plain({**contract_as_plain(DECODER), "status": "fine"}),
        """\
AS046 unreadable-contract: the contract in the file's metadata cannot be read.
  Why:    'status' cannot be 'fine'.
  Fix:    export the model again; the graph itself may still be well.""",
    ),
    "AS046 text": (
        lambda: parse_contract("{"),
        """\
AS046 unreadable-contract: the contract in the file's metadata cannot be read.
  Why:    it is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1).
  Fix:    export the model again; the graph itself may still be well.""",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_a_mistake_is_answered_with(name: str) -> None:
    make, expected = CALLS[name]
    assert error(make) == expected


X = tensor("x", "float32", "batch")
BINDINGS = {"batch": "batch = 3 from 'x' axis 0"}
FINDINGS = {
    "AS408 torch": (
        say.wrong_dtype(X, "float64", is_torch=True),
        """\
AS408 wrong-dtype: input 'x' is float64, but must be float32.
  Fix:    x.to(torch.float32)""",
    ),
    "AS411": (
        say.constant_differs("scale", "2.0", "3.0"),
        """\
AS411 constant-differs: 'scale' is 3.0, but is 2.0 in the file.
  Why:    a Python value is part of the computation: it was baked into the file when it was exported.
  Fix:    leave 'scale' out, or give it as 2.0.
  Or:     export again with 'scale' = 3.0, or with it as a tensor.""",
    ),
    "AS412": (
        say.broken_contract("m.onnx", 2),
        """\
AS412 broken-contract: 'm.onnx' does not keep its promise, and says so in its contract.
  Why:    it was written all the same, with --force or force=True; the 2 findings below say what is wrong.
  Fix:    export it again without --force, once what is wrong is mended.
  Or:     anyshape.load(..., allow_broken=True)      its answers may be wrong""",
    ),
    "AS413": (
        say.not_an_array(X, "a list"),
        """\
AS413 not-an-array: input 'x' is a list, not an array.
  Why:    expected x: float32[batch].
  Fix:    give a numpy array or a torch tensor.""",
    ),
    "AS414": (
        say.given_twice("x"),
        """\
AS414 input-given-twice: input 'x' is given twice.
  Why:    once by its place among the arguments, or by the structure that it lies in, and once by its name.
  Fix:    give it once.""",
    ),
    "AS416": (
        say.too_many_arguments(3, ["x", "mask"]),
        """\
AS416 too-many-arguments: 3 arguments are given without a name, but the file takes 2.
  Why:    it takes x, mask.""",
    ),
    "AS417": (
        say.run_failed("indices out of range", BINDINGS, {"batch": 3}),
        """\
AS417 run-failed: the sizes of this call keep the contract, but onnxruntime could not run it.
  Why:    batch = 3 from 'x' axis 0.
          onnxruntime says: indices out of range
  Fix:    look at the values: an index beyond its table, a length beyond its sequence.
  Or:     if they are well, the file is not: anyshape check it, and please report it.""",
    ),
    "AS418": (
        say.not_a_container("past", "ndarray", ["past.0", "past.1"]),
        """\
AS418 not-a-container: 'past' is a ndarray, but holds several inputs.
  Why:    they are past.0, past.1.
  Fix:    give them in the structure that the PyTorch module takes.""",
    ),
    "AS419": (
        say.values_refused("AssertionError: too large (model.py:7)", {"batch": 3}),
        """\
AS419 values-refused: the model itself refuses the values of this call, and so does the file.
  Why:    AssertionError: too large (model.py:7)
  Fix:    give other values: PyTorch would raise the same.""",
    ),
    "AS040 folder": (
        file_messages.not_a_file("models"),
        """\
AS040 missing-file: 'models' is a folder, not an ONNX file.
  Fix:    name the file in it, such as 'models/model.onnx'.""",
    ),
    "AS040 forbidden": (
        file_messages.unreadable_file("m.onnx", PermissionError(errno.EACCES, "Permission denied")),
        """\
AS040 missing-file: the file 'm.onnx' cannot be read.
  Why:    the system says: Permission denied.""",
    ),
    "AS041": (
        file_messages.not_onnx("m.txt"),
        """\
AS041 not-an-onnx-file: 'm.txt' is not an ONNX model.
  Why:    its bytes are not those of an ONNX protobuf message.
  Fix:    give a file that an exporter wrote, usually one that ends in .onnx.""",
    ),
    "AS042": (
        file_messages.cut_short("m.onnx", 1000, 2345),
        """\
AS042 file-cut-short: 'm.onnx' is only the beginning of an ONNX model.
  Why:    it has 1000 bytes, and needs 2345 or more.
  Fix:    copy or download it again; a file that anyshape writes is whole, or is not there.""",
    ),
    "AS043": (
        file_messages.missing_data("m.onnx", ["m.onnx.data"]),
        """\
AS043 missing-weights: the weights of 'm.onnx' are missing.
  Why:    they lie in 'm.onnx.data', which is not next to the model.
  Fix:    keep a model and its .data file in the same folder.""",
    ),
    "AS044": (
        file_messages.no_contract("m.onnx"),
        """\
AS044 no-contract: 'm.onnx' has no contract, so its calls cannot be checked.
  Why:    it was not written by anyshape, or its metadata was removed.
  Fix:    anyshape check m.onnx --model model.py      compares it with its PyTorch model
  Or:     run it with onnxruntime itself, unchecked.""",
    ),
    "AS047": (
        file_messages.runtime_rejects("m.onnx", "No Op registered for X."),
        """\
AS047 runtime-rejects-file: onnxruntime cannot load 'm.onnx'.
  Why:    No Op registered for X.
  Fix:    if anyshape wrote this file with this onnxruntime, please report it; otherwise try a newer onnxruntime.""",
    ),
    "AS050": (
        saving.missing_folder("out/m.onnx"),
        """\
AS050 missing-folder: 'out/m.onnx' cannot be written: there is no folder 'out'.
  Fix:    mkdir -p out""",
    ),
    "AS050 with a blank": (
        saving.missing_folder("my models/m.onnx"),
        """\
AS050 missing-folder: 'my models/m.onnx' cannot be written: there is no folder 'my models'.
  Fix:    mkdir -p "my models\"""",
    ),
    "AS050 below a file": (
        saving.missing_folder("/dev/null/out/m.onnx"),
        """\
AS050 missing-folder: '/dev/null/out/m.onnx' cannot be written: there is no folder '/dev/null/out'.
  Fix:    name a folder that can be made: in '/dev/null' none can.""",
    ),
    "AS051": (
        saving.path_is_folder("out"),
        """\
AS051 not-a-file: 'out' cannot be written: it is a folder.
  Fix:    name a file in it, such as 'out/model.onnx'.""",
    ),
    "AS051 device": (
        saving.path_is_no_file("/dev/null"),
        """\
AS051 not-a-file: '/dev/null' cannot be written: it is no ordinary file.
  Why:    a file is written next to its place and then given its name, which would replace what is there.
  Fix:    name an ordinary file.""",
    ),
    "AS052": (
        saving.cannot_write("m.onnx", OSError(errno.EACCES, "Permission denied")),
        """\
AS052 no-permission: 'm.onnx' cannot be written: it is not allowed.
  Why:    the system says: Permission denied. Nothing was written, and what was there before is as it was.
  Fix:    write to a folder of your own.""",
    ),
    "AS053": (
        saving.cannot_write("m.onnx", OSError(errno.ENOSPC, "No space left on device")),
        """\
AS053 disk-full: 'm.onnx' cannot be written: the disk is full.
  Why:    the system says: No space left on device. Nothing was written, and what was there before is as it was.
  Fix:    make room, or write to another disk.""",
    ),
    "AS054": (
        saving.cannot_write("m.onnx", OSError(errno.EIO, "Input/output error")),
        """\
AS054 cannot-write: 'm.onnx' cannot be written.
  Why:    the system says: Input/output error. Nothing was written, and what was there before is as it was.""",
    ),
    "AS070": (
        outputs.output_is_read("m.py"),
        """\
AS070 output-is-input: 'm.py' cannot be written: this command reads it.
  Why:    what it is made from would be gone.
  Fix:    name another file.""",
    ),
    "AS071": (
        outputs.two_outputs("o.onnx", "--output", "--report"),
        """\
AS071 output-twice: 'o.onnx' cannot be written twice: --output and --report name one file.
  Fix:    name another file with --report.""",
    ),
    "AS072": (
        outputs.other_kind("m.png", outputs.MODEL),
        """\
AS072 output-in-use: 'm.png' cannot be written: the file there is not an ONNX file.
  Why:    it may be all there is of something else.
  Fix:    name another file, or remove that one; --overwrite (in Python overwrite=True) replaces it.""",
    ),
    "AS055": (
        saving.too_large("m.onnx", 2**31),
        """\
AS055 model-too-large: 'm.onnx' cannot be written: its graph alone has 2147483648 bytes.
  Why:    an ONNX file has 2 GB at most, and only weights can lie in a second file.""",
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_what_a_finding_says(name: str) -> None:
    finding, expected = FINDINGS[name]
    assert render(finding) == expected


def test_a_missing_file_lists_those_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert render(file_messages.missing_file("encoder.onnx")) == (
        "AS040 missing-file: there is no file 'encoder.onnx'.\n  Why:    the folder '.' has no .onnx file."
    )
    Path("encodr.onnx").touch()
    Path("zoo.onnx").touch()
    assert render(file_messages.missing_file("encoder.onnx")) == (
        "AS040 missing-file: there is no file 'encoder.onnx'.\n"
        "  Why:    the folder '.' has encodr.onnx, zoo.onnx.\n"
        "  Fix:    did you mean 'encodr.onnx'?"
    )
    assert render(file_messages.missing_file("no/encoder.onnx")) == (
        "AS040 missing-file: there is no file 'no/encoder.onnx'.\n  Why:    there is no folder 'no'."
    )


def test_a_sequence_and_an_unknown_rank_are_told_apart() -> None:
    import onnx

    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Identity(x) }'
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert error(lambda: contract_of_foreign(model)) == (
        "AS048 not-a-tensor: the file does not say how many axes input 'x' has.\n"
        "  Why:    without them there are no sizes to speak of.\n"
        "  Fix:    export it again with shapes for its inputs."
    )
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = 1
    assert error(lambda: contract_of_foreign(model)) == (
        "AS048 not-a-tensor: input 'x' of the file is Sequence(Tensor(FLOAT)), not a tensor.\n"
        "  Why:    anyshape speaks of tensors only, not of sequences, maps and optional values."
    )


def test_an_old_opset_is_told_what_to_do() -> None:
    import onnx_ir as ir

    value = ir.Value(name="ids", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(["batch", "seq"]))
    node = ir.node("Neg", [value])
    model = ir.Model(ir.Graph([value], node.outputs, nodes=[node], opset_imports={"": 11}, name="g"), ir_version=6)
    promised = Contract(status="kept", domain=DECODER.domain, rules=(), inputs=DECODER.inputs[:1], outputs=())
    assert error(lambda: defend(model, promised)) == (
        "AS049 opset-too-old: the file has opset 11, and the graph's own checks need 13 or newer.\n"
        "  Fix (not tried): convert it: onnx.version_converter.convert_version(model, 18)\n"
        '  Or:     enforce="load" leaves the checks to anyshape.load.'
    )


def findings_in_tests() -> list[Finding]:
    return [finding for finding, _ in FINDINGS.values()]


def test_every_first_line_stands_alone() -> None:
    for finding in findings_in_tests():
        assert finding.what.endswith(".")
        assert len(render(finding).splitlines()[0]) < 120
