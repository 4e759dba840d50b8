"""Declare the sizes. Get an ONNX file that is right at every one of them, or the line of your code in the way.

import anyshape
result = anyshape.export(model, inputs, "model.onnx", where=["1 <= batch <= 64"])
anyshape.load("model.onnx")(x=...)

Importing this package loads neither torch nor onnxruntime: names are fetched when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from anyshape import compat as compat
    from anyshape import sources as sources
    from anyshape.api import export as export
    from anyshape.checking import check as check
    from anyshape.deploying import deploy as deploy
    from anyshape.exporting.dry_run import axes as axes
    from anyshape.findings import AnyshapeError as AnyshapeError
    from anyshape.findings import ContractBroken as ContractBroken
    from anyshape.findings import Finding as Finding
    from anyshape.findings import NarrowedWarning as NarrowedWarning
    from anyshape.findings import PromiseBroken as PromiseBroken
    from anyshape.inputs import Inputs as Inputs
    from anyshape.inputs.sizes_function import dim as dim
    from anyshape.loading import load as load
    from anyshape.modules.registered import translation as translation
    from anyshape.records.export import Export as Export

_HOMES = {
    "AnyshapeError": "anyshape.findings",
    "ContractBroken": "anyshape.findings",
    "Export": "anyshape.records.export",
    "Finding": "anyshape.findings",
    "Inputs": "anyshape.inputs",
    "NarrowedWarning": "anyshape.findings",
    "PromiseBroken": "anyshape.findings",
    "axes": "anyshape.exporting.dry_run",
    "check": "anyshape.checking",
    "deploy": "anyshape.deploying",
    "dim": "anyshape.inputs.sizes_function",
    "export": "anyshape.api",
    "load": "anyshape.loading",
    "translation": "anyshape.modules.registered",
}

_ROOMS = ("compat", "sources")

__all__ = [
    "AnyshapeError",
    "ContractBroken",
    "Export",
    "Finding",
    "Inputs",
    "NarrowedWarning",
    "PromiseBroken",
    "axes",
    "check",
    "compat",
    "deploy",
    "dim",
    "export",
    "load",
    "sources",
    "translation",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"anyshape.{name}")
    if name == "__version__":
        return _read_version()
    if name in _HOMES:
        from anyshape.processes.preload import no_collections  # needed here alone: `import anyshape` loads no room

        with no_collections():
            return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'anyshape' has no attribute {name!r}")


def _read_version() -> str:
    """The version of the installed package; "unknown" for a source tree that was never installed."""
    from importlib import metadata

    try:
        return metadata.version("anyshape")
    except metadata.PackageNotFoundError:
        return "unknown"


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
