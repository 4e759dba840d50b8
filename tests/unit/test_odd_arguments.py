"""A model file that defines something odd, and an argument of the wrong type, end in a finding that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import anyshape
from anyshape import files, sources
from anyshape.batch.manifest import read_manifest
from anyshape.checking import BenchOptions
from anyshape.cli.outcome import with_outcome
from anyshape.findings import AnyshapeError, UsageError
from anyshape.findings.finding import Finding, render

ODD = """
import torch
class Silent(Exception):
    def __str__(self): raise ValueError("no text")
class Empty(Exception):
    def __str__(self): return ""
class Odd:
    def __bool__(self): raise RuntimeError("bool")
    def __len__(self): raise RuntimeError("len")
    def __iter__(self): raise RuntimeError("iter")
    def __eq__(self, other): raise RuntimeError("eq")
    def __hash__(self): raise RuntimeError("hash")
    def __repr__(self): raise RuntimeError("repr")
    def __getattr__(self, name): raise RuntimeError(name)
"""
MODEL = "def model(): return torch.nn.Linear(4, 2)"
INPUTS = "def inputs(batch=3): return torch.randn(batch, 4)"


def refused(call: Callable[[], Any]) -> Finding:
    with pytest.raises(AnyshapeError) as caught:
        call()
    assert caught.value.exit_status in (1, 2)
    assert "\x1b" not in str(caught.value)
    return caught.value.finding


def export(folder: Path, *definitions: str) -> Finding:
    path = folder / f"odd_{abs(hash(definitions))}.py"
    path.write_text("\n".join((ODD, *definitions)), encoding="utf-8")
    return refused(lambda: sources.export(str(path), folder / "m.onnx", progress=lambda *_: None))


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        ("where = 5", "AS036"),
        ("where = [5]", "AS036"),
        ("where = Odd()", "AS036"),
        ("where = [Odd()]", "AS036"),
        ("where = ['batch <= ' + '9' * 400]", "AS002"),
        ("where = ['batch' + '+1' * 3000 + ' <= 8']", "AS002"),
        ("where = 'batch <='", "AS002"),
        ("values = 5", "AS036"),
        ("values = ['x']", "AS036"),
        ("values = {'input': 5}", "AS036"),
        ("values = {'input': '(' * 500}", "AS311"),
        ("input_names = 5", "AS036"),
        ("input_names = [None]", "AS036"),
        ("input_names = {5: 'x'}", "AS036"),
        ("input_names = {'input': ''}", "AS036"),
        ("output_names = ['a\\x1b']", "AS036"),
        ("output_names = Odd()", "AS036"),
        ("dynamic = 3", "AS018"),
        ("inputs = 7", "AS105"),
        ("inputs = print", "AS019"),
        ("inputs = type", "AS036"),
        ("def model(): return None", "AS063"),
        ("def model(): raise Silent()", "AS034"),
        ("def model(): raise Empty()", "AS034"),
        ("def model(): raise ValueError('\\x1b[2J')", "AS034"),
        ("def inputs(batch=3): raise Silent()", "AS023"),
        ("class Net(torch.nn.Module):\n def forward(self, x): raise Silent()\ndef model(): return Net()", "AS105"),
        ("class Net(torch.nn.Module):\n def forward(self, x): return Odd()\ndef model(): return Net()", "AS156"),
        ("raise Silent()", "AS034"),
        ("raise ValueError('\\n')", "AS034"),
    ],
)
def test_an_odd_definition_of_a_model_file_is_a_finding(definition: str, code: str, tmp_path: Path) -> None:
    assert export(tmp_path, MODEL, INPUTS, definition).code == code


def test_a_model_file_of_a_name_that_is_too_long_is_a_missing_file() -> None:
    assert refused(lambda: sources.resolve("x" * 5000)).code == "AS040"


def test_an_exception_beyond_exception_ends_a_command_by_a_finding() -> None:
    def command() -> Any:
        raise GeneratorExit

    assert refused(with_outcome(command)).code == "AS062"


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "{b = " * 5000], ids=["lists", "tables"])
def test_a_manifest_that_is_nested_without_end_is_no_manifest(text: str, tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    assert refused(lambda: read_manifest(path)).code == "AS540"


def test_control_characters_do_not_reach_a_terminal() -> None:
    text = render(Finding(code="AS999", name="x", what="\x1b[2J", why="a\u202eb\ud800", fix="one\n\ttwo"))
    assert text == "AS999 x: \\x1b[2J\n  Why:    a\\u202eb\\ud800\n  Fix:    one\n          \ttwo"


class Odd:
    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    torch.manual_seed(0)
    anyshape.export(torch.nn.Linear(4, 2), lambda batch=3: torch.randn(batch, 4), made / "m.onnx", where=["batch <= 8"])
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), made / "s.onnx")
    return made


CALLS: dict[str, Callable[[Path, Any], Any]] = {
    "load(path)": lambda at, odd: anyshape.load(odd),
    "load(providers)": lambda at, odd: anyshape.load(at / "m.onnx", providers=odd),
    "load(threads)": lambda at, odd: anyshape.load(at / "m.onnx", threads=odd),
    "load(operators)": lambda at, odd: anyshape.load(at / "m.onnx", operators=odd),
    "freeze(path)": lambda at, odd: files.freeze(odd, at / "one.onnx", {"batch": 2}),
    "freeze(output)": lambda at, odd: files.freeze(at / "m.onnx", odd, {"batch": 2}),
    "freeze(sizes)": lambda at, odd: files.freeze(at / "m.onnx", at / "one.onnx", odd),
    "freeze(batch)": lambda at, odd: files.freeze(at / "m.onnx", at / "one.onnx", {"batch": odd}),
    "fix(dynamic)": lambda at, odd: files.fix(at / "s.onnx", at / "f.onnx", odd),
    "fix(x)": lambda at, odd: files.fix(at / "s.onnx", at / "f.onnx", {"x": odd}),
    "fix(read)": lambda at, odd: files.fix(at / "s.onnx", at / "f.onnx", {"x": "batch 3"}, read=odd),
    "deploy(to)": lambda at, odd: anyshape.deploy(at / "m.onnx", odd, at / "served"),
    "deploy(at)": lambda at, odd: anyshape.deploy(at / "m.onnx", "triton", at / "served", at=odd),
    "deploy(max_sizes)": lambda at, odd: anyshape.deploy(at / "m.onnx", "triton", at / "served", max_sizes=odd),
    "check(sizes)": lambda at, odd: anyshape.check(
        at / "m.onnx", torch.nn.Linear(4, 2), lambda batch=3: torch.randn(batch, 4), sizes=odd
    ),
    "resolve": lambda at, odd: sources.resolve(odd),
}


@pytest.mark.parametrize("odd", [1.5, Odd(), np.zeros((2, 3)), [Odd()], {5: 5}], ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_the_wrong_type_is_named(name: str, odd: Any, folder: Path) -> None:
    assert refused(lambda: CALLS[name](folder, odd)).code in ("AS036", "AS060")
    assert not {"one.onnx", "f.onnx", "served"} & {path.name for path in folder.iterdir()}


def test_whole_numbers_of_numpy_are_sizes(folder: Path, tmp_path: Path) -> None:
    frozen = files.freeze(folder / "m.onnx", tmp_path / "one.onnx", {"batch": np.int64(2)})
    assert str(frozen.contract.inputs[0]).endswith("[2, 4]")


@pytest.mark.parametrize("threads", [-1, 10**6, 2**70])
def test_a_number_of_threads_that_no_machine_has_is_refused(threads: int, folder: Path) -> None:
    assert refused(lambda: anyshape.load(folder / "m.onnx", threads=threads)).code == "AS036"
    assert refused(lambda: BenchOptions(threads=threads)).code == "AS036"


def test_a_tolerance_that_is_no_number_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="AS066"):
        anyshape.check(
            folder / "m.onnx", torch.nn.Linear(4, 2), lambda batch=3: torch.randn(batch, 4), rtol=float("nan")
        )


class Unwilling(dict[str, Any]):
    def keys(self) -> Any:
        raise RuntimeError("keys")

    def items(self) -> Any:
        raise RuntimeError("items")


@pytest.mark.parametrize("inputs", [Unwilling(x=1), (Unwilling(x=1),)], ids=["alone", "inside"])
def test_a_container_whose_own_code_raises_is_no_input(inputs: Any, folder: Path) -> None:
    assert refused(lambda: anyshape.check(folder / "m.onnx", torch.nn.Linear(4, 2), inputs)).code == "AS010"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 4, device="meta"),
        lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.zeros(2, 4)),
        lambda: torch.quantize_per_tensor(torch.zeros(2, 4), 0.1, 0, torch.quint8),
    ],
    ids=["meta", "fake", "quantized"],
)
def test_an_example_without_plain_values_is_no_input(make: Callable[[], Any], folder: Path) -> None:
    for inputs in (make(), lambda batch=2: make()):
        assert (
            refused(lambda given=inputs: anyshape.check(folder / "m.onnx", torch.nn.Linear(4, 2), given)).code
            == "AS158"
        )


def test_an_example_in_another_order_of_bytes_is_an_input(folder: Path) -> None:
    given = np.zeros((2, 4), ">f4")
    torch.manual_seed(0)
    assert anyshape.check(folder / "m.onnx", torch.nn.Linear(4, 2), given).passed
