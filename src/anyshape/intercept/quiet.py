"""Keep what other libraries log, print and warn away from the user's stderr, for the running thread alone.

Log lines and prints go to the logger `anyshape.libraries`, at level DEBUG: `anyshape export -vv` shows it.

`warnings.catch_warnings` of Python swaps the process-wide list of filters and puts the old list back: two threads that
interleave leave a changed list behind (https://github.com/python/cpython/issues/91505). Here the filters that the exporting
thread adds are entries that match in that thread only, and each is taken out of the list again.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import Patch, is_by_thread, patched

LIBRARIES = ("torch", "onnxscript", "onnx_ir", "onnx", "onnxruntime", "sympy", "z3")
LOG = logging.getLogger("anyshape.libraries")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Within this, what the libraries log or print in this thread goes to our logger; other threads' lines go on as before."""
    thread = threading.get_ident()
    original = logging.Logger.callHandlers

    def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
        if threading.get_ident() == thread and record.name.partition(".")[0] in LIBRARIES:
            LOG.debug("%s: %s", record.name, record.getMessage(), exc_info=record.exc_info)
        else:
            original(logger, record)

    with patched(_printing()):
        logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            logging.Logger.callHandlers = original  # type: ignore[method-assign]


def _printing() -> Iterator[Patch]:
    """The names by which modules of torch print when an export or a graph fails, each with its replacement."""
    import torch.export._trace  # a module that is loaded later would print
    import torch.fx.graph_module  # noqa: F401

    for module, name, printed, ours in (
        ("torch.export._trace", "sys", "stderr", _LogStream()),
        ("torch.fx.graph_module", "sys", "stderr", _LogStream()),
        ("torch.onnx._internal.torchscript_exporter.utils", "_C", "_jit_onnx_log", _log_words),
    ):
        space = vars(sys.modules[module]) if module in sys.modules else {}
        if name in space and not is_by_thread(space[name]):
            yield space, name, _With(space[name], printed, ours)


def _log_words(*words: object) -> None:
    LOG.debug("%s", " ".join(map(str, words)))


class _With:
    """A module in which one name means something else."""

    def __init__(self, module: Any, name: str, value: Any) -> None:
        self._module, self._name, self._value = module, name, value

    def __getattr__(self, name: str) -> Any:
        return self._value if name == self._name else getattr(self._module, name)


class _LogStream:
    """A stream whose lines go to our logger."""

    def write(self, text: str) -> int:
        if text.strip():
            LOG.debug("%s", text.rstrip())
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


_warnings: Any = warnings  # with the private names by which Python's own functions call one another


@contextmanager
def thread_warnings() -> Iterator[None]:
    """Within this, catch_warnings, simplefilter and filterwarnings inside it act on this thread alone."""
    thread = threading.get_ident()
    blocks: list[_Block] = []
    names = ("catch_warnings", "_add_filter", "_showwarnmsg")
    catch, add, show = (getattr(_warnings, name) for name in names)

    def catch_warnings(**options: Any) -> Any:
        is_ours = threading.get_ident() == thread and options.get("module") is None
        return _Block(blocks, **options) if is_ours else catch(**options)

    def add_filter(*item: Any, append: bool) -> None:
        if threading.get_ident() == thread and blocks:
            blocks[-1].add(item, append)
        else:
            add(*item, append=append)

    def show_warning(message: Any) -> None:
        logs = [block.log for block in blocks if block.log is not None]
        if threading.get_ident() == thread and logs:
            logs[-1].append(message)
        else:
            show(message)

    for name, ours in zip(names, (catch_warnings, add_filter, show_warning), strict=True):
        setattr(_warnings, name, ours)
    try:
        yield
    finally:
        for name, own in zip(names, (catch, add, show), strict=True):
            setattr(_warnings, name, own)


class _Block:
    """One `with catch_warnings(...)` of the exporting thread."""

    def __init__(self, blocks: list[_Block], *, record: bool = False, module: None = None, **rule: Any) -> None:
        self._blocks = blocks
        self._rule = rule
        self._added: list[tuple[list[Any], Any]] = []
        self.log: list[warnings.WarningMessage] | None = [] if record else None

    def add(self, item: tuple[Any, ...], append: bool) -> None:
        """Add a filter (action, message, category, module, line) that matches in this thread only."""
        action, message, *rest = item
        bound = (action, _InThread(message), *rest)
        filters = _warnings.filters
        filters.insert(len(filters) if append else 0, bound)
        self._added.append((filters, bound))
        _warnings._filters_mutated()

    def __enter__(self) -> list[warnings.WarningMessage] | None:
        self._blocks.append(self)
        _warnings._filters_mutated()  # what was shown once may be shown again, as with Python's own
        if self._rule.get("action") is not None:
            warnings.simplefilter(**self._rule)
        return self.log

    def __exit__(self, *error: object) -> None:
        self._blocks.remove(self)
        for filters, bound in self._added:
            _remove(filters, bound)
            _remove(_warnings.filters, bound)  # another thread may have copied the list in between
        _warnings._filters_mutated()


class _InThread:
    """A pattern for the text of a warning, as `warnings` calls it; it matches in the thread that made it only."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern
        self._thread = threading.get_ident()

    def match(self, text: str) -> bool:
        return threading.get_ident() == self._thread and (self._pattern is None or bool(self._pattern.match(text)))


def _remove(filters: list[Any], bound: Any) -> None:
    for place, item in enumerate(filters):
        if item is bound:
            del filters[place]
            return
