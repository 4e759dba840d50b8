"""A function in a process of its own: its result, errors, warnings, output, log lines and limits reach the caller."""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import anyshape
from anyshape import PromiseBroken
from anyshape.processes import can_fork, isolated
from anyshape.processes.isolated import call_in_own_process
from anyshape.processes.transport import SharedTensors
from anyshape.processes.workers import Worker


def apart(function: Callable[[], Any], **options: Any) -> Any:
    return call_in_own_process(lambda tell: function(), **options)


def test_a_result_comes_back_and_nothing_else_does() -> None:
    seen: list[int] = []

    def work() -> dict[str, Any]:
        seen.append(1)
        os.environ["ANYSHAPE_TEST"] = "set"
        os.chdir("/")
        return {"pid": os.getpid(), "array": np.arange(3), "tensor": torch.ones(2, 3), "kind": int}

    here = Path.cwd()
    given = apart(work)
    assert given["pid"] != os.getpid() and given["kind"] is int
    assert np.array_equal(given["array"], np.arange(3)) and torch.equal(given["tensor"], torch.ones(2, 3))
    assert seen == [] and "ANYSHAPE_TEST" not in os.environ and Path.cwd() == here


def test_a_tensor_of_the_callers_is_sent_as_itself_unless_it_was_written() -> None:
    first, second = torch.ones(50), torch.zeros(50)

    def work() -> list[torch.Tensor]:
        second.add_(1)
        return [first, second]

    one, two = apart(work, shared=SharedTensors([first, second]))
    assert one.data_ptr() == first.data_ptr()
    assert two.data_ptr() != second.data_ptr()
    assert two.tolist() == [1] * 50 and second.tolist() == [0] * 50


def model_in_memory(weight: nn.Parameter) -> ir.Model:
    kept = ir.Value(name="weight", const_value=ir.tensor(np.ones((3, 700), np.float32)))
    named = ir.Value(name="words", const_value=ir.tensor(["a", "b"]))
    shared = ir.Value(name="shared", const_value=ir.tensor_adapters.TorchTensor(weight, name="shared"))
    graph = ir.Graph([], [], nodes=[], initializers=[kept, named, shared], opset_imports={"": 21}, name="g")
    return ir.Model(graph, ir_version=10)


def test_a_model_in_memory_shares_its_weights_with_the_callers() -> None:
    weight = nn.Parameter(torch.randn(40, 40))
    model = apart(lambda: model_in_memory(weight), shared=SharedTensors([weight]))
    found = {name: value.const_value for name, value in model.graph.initializers.items()}
    assert found["shared"].raw.data_ptr() == weight.data_ptr()
    assert np.array_equal(found["weight"].numpy(), np.ones((3, 700), np.float32))
    assert found["words"].string_data() == [b"a", b"b"]


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(40, 30)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def lines(batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, 40)


def test_weights_of_an_exported_model_are_those_of_the_module() -> None:
    module = Line()
    result = anyshape.export(module, lines)
    places = {getattr(value.const_value.raw, "data_ptr", int)() for value in result.model.graph.initializers.values()}
    assert module.linear.weight.data_ptr() in places


def test_an_export_in_the_callers_process_gives_the_same_bytes() -> None:
    torch.manual_seed(0)
    module = Line()
    own, here = (anyshape.export(module, lines, isolate=isolate) for isolate in (None, False))
    assert own.model_proto.SerializeToString(deterministic=True) == here.model_proto.SerializeToString(
        deterministic=True
    )
    assert (own.contract, own.findings) == (here.contract, here.findings)
    assert here.regions[0].program is not None and own.regions[0].program is None
    assert [each.strategy for each in own.attempts] == [each.strategy for each in here.attempts]
    assert {each.exported for each in own.attempts} == {None}


class OwnError(Exception):
    def __init__(self, place: str, number: int) -> None:
        super().__init__(f"{place} has {number}")
        self.held = [number]


def test_an_error_has_its_class_causes_and_attributes() -> None:
    def work() -> None:
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("outer") from error

    with pytest.raises(ValueError, match="outer") as raised:
        apart(work)
    assert isinstance(raised.value.__cause__, KeyError)
    assert "in work" in raised.value.remote_traceback


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OwnError("shelf", 3), "OwnError: shelf has 3"),
        (type("Local", (Exception,), {})("told"), "Local: told"),
    ],
    ids=["other arguments", "local class"],
)
def test_an_error_that_cannot_be_sent_becomes_one_of_the_same_words(error: Exception, words: str) -> None:
    def work() -> None:
        raise error

    with pytest.raises(RuntimeError, match=words):
        apart(work)


def test_an_error_of_a_file_that_only_the_other_process_imports_has_its_words(tmp_path: Path) -> None:
    (tmp_path / "only_there.py").write_text("class Number(Exception):\n    pass\n")

    def work() -> None:
        sys.path.insert(0, str(tmp_path))
        raise ValueError("outer") from importlib.import_module("only_there").Number("inner")

    with pytest.raises(ValueError, match="outer") as raised:
        apart(work)
    assert str(raised.value.__cause__) == "Number: inner"


def test_warnings_are_issued_here_with_their_line() -> None:
    def work() -> None:
        warnings.warn("heard", UserWarning, stacklevel=1)

    with pytest.warns(UserWarning, match="heard") as heard:
        apart(work)
    assert heard[0].filename == __file__


def test_recorded_warnings_stay_where_they_are_recorded() -> None:
    def work() -> list[str]:
        with warnings.catch_warnings(record=True) as recorded:
            warnings.simplefilter("always")
            warnings.warn("recorded", UserWarning, stacklevel=1)
        return [str(each.message) for each in recorded]

    assert apart(work) == ["recorded"]


def test_output_goes_to_the_streams_of_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        print("to stdout")
        print("to stderr", file=sys.stderr)

    apart(work)
    assert capsys.readouterr() == ("to stdout\n", "to stderr\n")


def test_log_lines_come_here_and_those_of_libraries_to_our_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def work() -> None:
        logging.getLogger("mine").info("number %d", 3, extra={"place": "here"})
        logging.getLogger("torch.part").warning("inner")
        try:
            raise ValueError("in it")
        except ValueError:
            logging.getLogger("mine").exception("raised")

    apart(work)
    said = {record.getMessage(): record for record in caplog.records}
    assert (said["number 3"].name, said["number 3"].place) == ("mine", "here")
    assert said["torch.part: inner"].name == "anyshape.libraries"
    assert any(words.startswith("raised") and "ValueError: in it" in words for words in said)


def test_progress_is_told_here_and_may_raise() -> None:
    told: list[tuple[Any, ...]] = []

    def work(tell: Callable[[str, int, int], None]) -> None:
        tell("counting", 1, 2)
        time.sleep(1000)

    def note(*facts: Any) -> None:
        told.append((os.getpid(), *facts))
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        call_in_own_process(work, progress=note)
    assert told == [(os.getpid(), "counting", 1, 2)]


def test_a_process_that_ends_itself_is_a_finding() -> None:
    with pytest.raises(PromiseBroken) as raised:
        apart(lambda: os._exit(4))
    assert "AS062 model-exits: the model's own code ended the process: os._exit(4)." in str(raised.value)


def crash() -> None:
    ctypes.string_at(0)  # here it ends


def test_a_process_that_dies_twice_is_a_finding_with_the_line() -> None:
    with pytest.raises(PromiseBroken) as raised:
        apart(crash)
    finding = raised.value.finding
    assert (finding.code, finding.name) == ("AS160", "process-ended")
    assert finding.where is not None and finding.where.text == "ctypes.string_at(0)  # here it ends"


def test_a_process_that_was_killed_once_is_tried_again(tmp_path: Path) -> None:
    def work() -> int:
        if not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 5

    assert apart(work) == 5


def test_a_process_that_waits_for_a_lock_of_the_caller_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "_IDLE_S", 2.0)

    def work() -> int:
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            time.sleep(1000)
        return 5

    assert apart(work) == 5


def sleep() -> None:
    time.sleep(1000)  # it waits


def count_in_c() -> None:
    sum(range(10**15))  # it counts


@pytest.mark.parametrize(
    ("work", "line"),
    [(sleep, "time.sleep(1000)  # it waits"), (count_in_c, "sum(range(10**15))  # it counts")],
    ids=["sleeps", "in C"],
)
def test_when_the_time_is_over_the_process_is_ended_and_the_line_known(work: Callable[[], None], line: str) -> None:
    with pytest.raises(PromiseBroken) as raised:
        apart(work, seconds=0.5)
    finding = raised.value.finding
    assert (finding.code, finding.what) == ("AS140", "it did not end within 0.5 s.")
    assert finding.where is not None and finding.where.text == line


def test_temporary_files_are_removed_however_the_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def work() -> str:
        folder = tempfile.mkdtemp()
        assert Path(folder).parent.parent == tmp_path
        return folder

    def write_and_crash() -> None:
        work()
        crash()

    assert not Path(apart(work)).exists()
    with pytest.raises(PromiseBroken):
        apart(write_and_crash)
    assert list(tmp_path.iterdir()) == []
    assert tempfile.gettempdir() == str(tmp_path)


def test_an_environment_variable_keeps_everything_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_fork()
    monkeypatch.setenv("ANYSHAPE_ISOLATE", "0")
    assert not can_fork()
    assert anyshape.export(Line(), lines).regions[0].program is not None


def test_a_module_may_log_and_warn_at_sizes_that_are_tried_in_workers(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("model")

    def call(size: int) -> int:
        log.warning("size %d", size)
        warnings.warn(f"size {size}", stacklevel=1)
        return size

    def work() -> list[int]:
        worker = Worker(call, seconds=10.0)
        try:
            return [worker.call(3), call(5)]
        finally:
            worker.close()

    with pytest.warns(UserWarning, match="size 5"), caplog.at_level(logging.WARNING, "model"):
        assert apart(work) == [3, 5]
    assert "size 5" in caplog.text
