"""What libraries log and print during an export goes to the logger `anyshape.libraries`, at level DEBUG.

`anyshape export -vv` shows it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LIBRARIES = ("torch", "onnxscript", "onnx_ir", "onnx", "onnxruntime", "sympy", "z3")
LOG = logging.getLogger("anyshape.libraries")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Within this, what the libraries log or print goes to our logger."""
    original = logging.Logger.callHandlers

    def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in LIBRARIES:
            LOG.debug("%s: %s", record.name, record.getMessage(), exc_info=record.exc_info)
        else:
            original(logger, record)

    replaced = list(_printing())
    for space, name, value, _ in replaced:
        space[name] = value
    logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        logging.Logger.callHandlers = original  # type: ignore[method-assign]
        for space, name, _, own in replaced:
            space[name] = own


def _printing() -> Iterator[tuple[dict[str, Any], str, Any, Any]]:
    """The names by which modules of torch print when an export or a graph fails, with a replacement and the original."""
    if "torch" not in sys.modules:
        return
    import torch.export._trace  # a module that is loaded later would print
    import torch.fx.graph_module  # noqa: F401

    for module, name, printed, ours in (
        ("torch.export._trace", "sys", "stderr", _LogStream()),
        ("torch.fx.graph_module", "sys", "stderr", _LogStream()),
        ("torch.onnx._internal.torchscript_exporter.utils", "_C", "_jit_onnx_log", _log_words),
    ):
        space = vars(sys.modules[module]) if module in sys.modules else {}
        if name in space and not isinstance(space[name], _With):
            yield space, name, _With(space[name], printed, ours), space[name]


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
