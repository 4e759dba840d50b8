"""The user's line behind a node, from the file or from the module's own run; weights that are not the module's."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyshape.findings import Source
from anyshape.modules.frames import source_of_stack_text
from anyshape.runtime.dtypes import Array
from anyshape.verify.locate.module_values import KnownValues
from anyshape.verify.locate.opened import FileNode
from anyshape.verify.tensors import to_array

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


_SEPARATORS = re.compile(r"\W|_")


def find_wrong_weights(model: Any, module: torch.nn.Module) -> frozenset[str]:
    """The names in the file. A weight that was stored under a name of the exporter's own is not looked at."""
    from onnx import numpy_helper

    known = {_plain(name): tensor for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    wrong = []
    for stored in model.graph.initializer:
        tensor = known.get(_plain(stored.name))
        if tensor is not None and not _is_same(numpy_helper.to_array(stored), tensor):
            wrong.append(stored.name)
    return frozenset(wrong)


def may_be_folded(module: torch.nn.Module) -> bool:
    """Whether an exporter may have folded a normalization into the weights of what stands before it."""
    return any(isinstance(each, torch.nn.modules.batchnorm._NormBase) for each in module.modules())


def _is_same(stored: Any, tensor: torch.Tensor) -> bool:
    """Half precision is rounded here and there; anything beyond that is another number."""
    if tuple(stored.shape) != tuple(tensor.shape):
        return False
    expected = to_array(tensor)
    if expected.dtype.kind not in "fiub" or stored.dtype.kind not in "fiub":
        return True
    return bool(np.allclose(stored.astype(np.float64), expected.astype(np.float64), rtol=1e-6, equal_nan=True))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name)
