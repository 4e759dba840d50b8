"""The user's line behind a node: as the file tells it, else as the module's own run does."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anyshape.findings import Source
from anyshape.modules.frames import source_of_stack_text
from anyshape.runtime.dtypes import Array
from anyshape.verify.locate.module_values import KnownValues
from anyshape.verify.locate.opened import FileNode

_OURS = "anyshape.source"
_TORCH = "pkg.torch.onnx.stack_trace"


def line_in_file(node: Any) -> Source | None:
    """The line that a node's metadata or doc string names."""
    told = {entry.key: entry.value for entry in node.metadata_props}
    if _OURS in told:
        file, _, line = told[_OURS].rpartition(":")
        return Source(file, int(line), text=linecache.getline(str(Path(file).absolute()), int(line)).strip())
    return source_of_stack_text(told.get(_TORCH) or node.doc_string)


def line_in_run(node: FileNode, values: Mapping[str, Array], known: KnownValues) -> Source | None:
    """The line that took what the node takes, or what it gives, and made of it what the file does not have."""
    for names in (node.reads, node.gives):
        taken = {step for name in names if name in values for step in known.find_all(values[name])}
        following = (step for step in known.steps if taken.intersection(step.takes) and step.source is not None)
        missing = next((step for step in following if not _has(values.values(), step.value, known)), None)
        if missing is not None:
            return missing.source
    return None


def _has(values: Iterable[Array], wanted: Array, known: KnownValues) -> bool:
    return any(value.shape == wanted.shape and known.is_same(wanted, value) for value in values)
