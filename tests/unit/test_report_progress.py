"""Progress: steps and the time left; a bar in a terminal, one line in a notebook, plain lines elsewhere, or nothing."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest
import torch

import anyshape
from anyshape.report import progress_line
from anyshape.report.progress_line import Pace, ProgressLine, format_seconds, open_progress, shows_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_time_left_follows_the_pace_of_the_stage() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    assert pace.step("comparing", 0, 30) == "0/30"
    now = 10.0
    assert pace.step("comparing", 10, 30) == "10/30, 20 s left"
    assert pace.step("measuring", 0, 4) == "0/4"
    now = 10.5
    assert pace.step("measuring", 1, 4) == "1/4", "half a second tells nothing"
    assert pace.step("trying the model", 7, 0) == "7 so far" and pace.step("capturing", 0, 0) == ""
    now = 100.0
    assert pace.step("capturing", 3, 3) == "3/3"


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "1 s"), (89, "89 s"), (200, "3 min"), (8000, "2 h")])
def test_an_estimate_is_rounded(seconds: float, said: str) -> None:
    assert format_seconds(seconds) == said


def test_a_pipe_has_plain_lines_and_one_for_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    with ProgressLine() as line:
        for done in range(100):
            line("comparing", done, 100)
        line("writing", 0, 0)
    assert written.getvalue() == "anyshape: comparing 0/100\nanyshape: writing\n"


def test_a_terminal_has_a_bar_of_80_columns_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", written := Terminal())
    with ProgressLine() as line:
        line("comparing a_model_with_a_name.onnx", 12, 30)
    text = written.getvalue()
    assert "comparing a_model_with_a_name.onnx" in text and "12/30" in text and "\x1b[2K" in text
    shown = [part for part in text.replace("\r", "\n").splitlines() if "12/30" in part]
    assert shown and all(len(_without_codes(part)) <= 80 for part in shown)


def _without_codes(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).rstrip()


def test_a_notebook_has_one_line_that_is_replaced_and_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            shown.append(content["text/plain"])

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(content["text/plain"])
        return Handle()

    class ZMQInteractiveShell:
        pass

    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = ZMQInteractiveShell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    with open_progress(None) as tell:
        tell("comparing", 1, 3)
        tell("comparing", 2, 3)
    assert shown[0] == "comparing 1/3" and shown[-1] == ""


def test_nobody_watches_a_pipe_unless_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    for wanted in (None, False):
        with open_progress(wanted) as tell:
            tell("comparing", 0, 3)
    assert written.getvalue() == ""
    with open_progress(True) as tell, open_progress(True) as inner:
        tell("comparing", 0, 3)
        inner("another bar inside", 0, 3)
    assert written.getvalue() == "anyshape: comparing 0/3\n"


def test_a_terminal_is_not_written_to_where_progress_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", written := Terminal())
    with open_progress(False) as tell:
        tell("comparing", 0, 3)
    assert written.getvalue() == ""


def test_an_error_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[bool] = []

    class Bar:
        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: stopped.append(True) if name == "stop" else None

    monkeypatch.setattr(progress_line, "_make_bar", Bar)

    @shows_progress
    def fails(progress: Any = None) -> None:
        progress("comparing", 0, 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyboardInterrupt):
        fails()
    assert stopped == [True]


def test_a_call_from_python_reports_lines_where_that_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    anyshape.axes(torch.nn.Linear(2, 2), torch.randn(3, 2), progress=True)
    assert "anyshape: trying the model" in capsys.readouterr().err
    anyshape.axes(torch.nn.Linear(2, 2), torch.randn(3, 2))
    assert capsys.readouterr().err == ""
