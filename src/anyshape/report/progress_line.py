"""Progress while something runs: what is done now, how much of it, and the time that is left.

A terminal has a bar, which is taken away at the end; a notebook has one line, which is replaced; anything else has plain lines
on stderr. rich is loaded when a bar is drawn, and not before.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar

from anyshape.findings.finding import shown

P = ParamSpec("P")
T = TypeVar("T")
Tell = Callable[[str, int, int], None]
Display = Literal["bar", "notebook", "lines", "none"]

_EVERY_S = 2.0  # between two lines about one stage
_ENOUGH_S = 1.0  # of a stage, before the time that is left is estimated
_BAR = 20
_IS_SHOWN: ContextVar[bool] = ContextVar("anyshape_progress_is_shown", default=False)


class Pace:
    """How a stage goes on: how much of how much, and how long the rest will take at this pace."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = ""
        self._began = 0.0
        self._done_before = 0

    def step(self, stage: str, done: int, total: int) -> str:
        """`12/30, 8 s left`, `12 so far`, or nothing for a stage without steps."""
        if stage != self._stage or done < self._done_before:
            self._stage, self._began = stage, self._clock()
        self._done_before = done
        if not total:
            return f"{done} so far" if done else ""
        left = self._left(done, total)
        return f"{done}/{total}" + (f", {left} left" if left else "")

    def _left(self, done: int, total: int) -> str:
        spent = self._clock() - self._began
        return format_seconds(spent / done * (total - done)) if 0 < done < total and spent >= _ENOUGH_S else ""


def format_seconds(seconds: float) -> str:
    """`8 s`, `3 min`, `2 h`: as exactly as an estimate is."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


class ProgressLine:
    """Call it with a stage and how much of it is done. A context manager: what it draws, it takes away.

    `display` None: a bar where stderr is a terminal, else plain lines.
    """

    def __init__(self, *, quiet: bool = False, display: Display | None = None) -> None:
        self.display: Display = "none" if quiet else display or ("bar" if is_terminal() else "lines")
        self._pace = Pace()
        self._drawn: Any = None  # what rich or the notebook shows
        self._task: Any = None
        self._stage = ""
        self._shown_at = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        said = self._pace.step(stage, done, total)
        if self.display == "bar":
            self._draw(stage, done, total, said)
        elif self.display == "notebook":
            self._replace(f"{stage} {said}".rstrip())
        elif self.display == "lines" and (stage != self._stage or time.monotonic() - self._shown_at > _EVERY_S):
            sys.stderr.write(shown(f"anyshape: {stage} {said}".rstrip()) + "\n")
            self._shown_at = time.monotonic()
        self._stage = stage

    def _draw(self, stage: str, done: int, total: int, said: str) -> None:
        if self._drawn is None:
            self._drawn = _make_bar()
            self._task = self._drawn.add_task(stage, total=None, said="")
            self._drawn.start()
        if stage != self._stage:
            self._drawn.reset(self._task)
        self._drawn.update(self._task, description=stage, completed=done, total=total or None, said=said)

    def _replace(self, text: str) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        content = {"text/plain": text}
        if self._drawn is None:
            self._drawn = display(content, raw=True, display_id=True)
        elif time.monotonic() - self._shown_at > _EVERY_S / 10:
            self._drawn.update(content, raw=True)
            self._shown_at = time.monotonic()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn is not None and self.display == "bar":
            self._drawn.stop()
        elif self._drawn is not None:
            self._drawn.update({"text/plain": ""}, raw=True)


def _make_bar() -> Any:
    """A bar on stderr that fits 80 columns: the stage, the bar, the steps with the time left, and the time spent."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    stage = TextColumn("{task.description}", markup=False)
    steps = TextColumn("{task.fields[said]}", markup=False)
    columns = (SpinnerColumn("line"), stage, BarColumn(bar_width=_BAR), steps, TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def is_terminal() -> bool:
    """Whether a person sees what is written to stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def open_progress(wanted: Tell | bool | None) -> Iterator[Tell]:
    """What a call from Python reports its progress to.

    None: a bar where a person watches (a terminal, a notebook), else nothing. False: nothing. True: also plain lines where
    nobody watches. A function is called as it is. Inside a call that shows its progress, further calls show nothing.
    """
    if callable(wanted):
        yield wanted
        return
    watched: Display = "notebook" if is_notebook() else "bar" if is_terminal() else "none"
    display: Display = "none" if wanted is False or _IS_SHOWN.get() else watched
    if wanted is True and display == "none" and not _IS_SHOWN.get():
        display = "lines"
    token = _IS_SHOWN.set(_IS_SHOWN.get() or display != "none")
    try:
        with ProgressLine(display=display) as line:
            yield line
    finally:
        _IS_SHOWN.reset(token)


def telling(progress: Tell | bool | None) -> Tell:
    """The function to report to, under `shows_progress`."""
    return progress if callable(progress) else ProgressLine(quiet=True)


def shows_progress(function: Callable[P, T]) -> Callable[P, T]:
    """Give a function, whose keyword `progress` is what `open_progress` takes, a function to report to."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        given: dict[str, Any] = dict(kwargs)
        with open_progress(given.get("progress")) as tell:
            given["progress"] = tell
            return function(*args, **given)  # type: ignore[arg-type]

    return run
