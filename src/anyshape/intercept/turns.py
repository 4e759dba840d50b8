"""What holds around every export: one at a time, on a copy of the module, with libraries quiet and few garbage
collections.

What an export changes in the process (names, warnings, log lines) it changes for its own thread, and puts back at the end.
docs/explanation/threads.md lists it.

Loading torch.export, sympy and onnxscript makes half a million objects that stay. With a collection for each 700 new objects,
as is Python's default, looking through them again and again took 0.7 of 3.0 seconds of a first export.

Log lines and prints go to the logger `anyshape.libraries`, at level DEBUG: `anyshape export -vv` shows it.

`warnings.catch_warnings` of Python swaps the process-wide list of filters and puts the old list back: two threads that
interleave leave a changed list behind (https://github.com/python/cpython/issues/91505). Here the filters that the exporting
thread adds are entries that match in that thread only, and each is taken out of the list again.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar

from anyshape.intercept.patching import Patch, is_by_thread, patched

P = ParamSpec("P")
T = TypeVar("T")

_TURN = threading.RLock()
WAITING = "waiting for another export"
_OBJECTS = 20_000  # few enough that a tensor in a circle of references does not stay for long
LIBRARIES = ("torch", "onnxscript", "onnx_ir", "onnx", "onnxruntime", "sympy", "z3")
LOG = logging.getLogger("anyshape.libraries")


@contextmanager
def exporting(module: Any, progress: Callable[[str, int, int], None] | None = None) -> Iterator[Any]:
    """The module to work on, once no other thread exports. A thread that has to wait reports the stage `WAITING` first."""

    from anyshape.intercept.accelerators import devices_mean_cpu
    from anyshape.intercept.patching import thread_builtins
    from anyshape.modules import searches_kept
    from anyshape.modules.structural_copy import is_on_accelerator, working_copy

    with no_collections():
        import torch.export._trace  # most of what an export loads, in one go

    if not _TURN.acquire(blocking=False):
        if progress is not None:
            progress(WAITING, 0, 0)
        _TURN.acquire()
    is_grad_enabled = torch.is_grad_enabled()
    try:
        with fewer_collections(), thread_warnings(), quiet_libraries(), thread_builtins(), searches_kept():
            working = working_copy(module)
            with devices_mean_cpu(working) if is_on_accelerator(module) else nullcontext():
                yield working
    finally:
        torch.set_grad_enabled(
            is_grad_enabled
        )  # the model may switch it, and an interrupt may end a block without its end
        _TURN.release()


def taking_turns(*, model_at: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Run a function inside `exporting`; its argument `model`, at that position, becomes the working copy."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            positional: list[Any] = list(args)
            given: dict[str, Any] = dict(kwargs)
            place, key = (given, "model") if "model" in given else (positional, model_at)
            if isinstance(key, int) and key >= len(positional):
                return function(*args, **kwargs)  # raises: there is no model
            with exporting(place[key], given.get("progress")) as working:  # type: ignore[index]
                place[key] = working  # type: ignore[index]
                return function(*positional, **given)  # type: ignore[arg-type]

        return run

    return decorate


def _forget_turn() -> None:
    """A forked child has no thread that exports, whatever the state of the parent's lock."""
    global _TURN
    _TURN = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_turn)


@contextmanager
def no_collections() -> Iterator[None]:
    """Within this, nothing is collected: for imports, which leave little behind."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Within this, a collection comes after 20,000 new objects, and looks at none that were there before.

    A collector that the user has switched off or made rarer stays as it is.
    """
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _OBJECTS or gc.get_freeze_count():
        yield
        return
    ours = (_OBJECTS, *before[1:])
    gc.freeze()
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:  # else the user's code has set it meanwhile
            gc.set_threshold(*before)
        gc.unfreeze()


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
