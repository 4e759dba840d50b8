"""`package.module:Class`: a class, function or module object that Python can import, with inputs defined beside it.

The inputs are `Class.inputs` (a static method of sizes), `Class_inputs` or `inputs` of the module, in this order.
"""

from __future__ import annotations

import importlib
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import anyshape.sources.unusable_sources as say
from anyshape.findings import UsageError
from anyshape.modules.frames import source_of_error
from anyshape.sources.model_file import call_builder, is_builder, read_options
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

_FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NEEDED = (
    "inputs are a static method `inputs` of the class, or NAME_inputs or inputs in its module: inputs(batch=3, …)."
)


def load_python_module(spelled: str, options: SourceOptions | None = None) -> ModelSource:
    """The model and its inputs. Raises UsageError where the module cannot be imported, or lacks one of them."""
    module, _, name = spelled.partition(":")
    defined = _imported(module)
    if not hasattr(defined, name):
        raise UsageError(say.not_in_module(module, name, _names(defined), "that is what the source names."))
    found = getattr(defined, name)
    prefix = f"{name}_" if hasattr(defined, f"{name}_inputs") else ""
    inputs = getattr(found, "inputs", None) or getattr(defined, f"{prefix}inputs", None)
    if inputs is None:
        raise UsageError(say.not_in_module(module, f"{name}_inputs", (), _NEEDED))
    part = Part(model=_built(spelled, found), inputs=inputs, **read_options(defined, prefix))
    return ModelSource(name=spelled, parts=(part,))


def _imported(module: str) -> ModuleType:
    # At the end, as for a model file: a file here that has the name of an installed module is not imported in its place.
    sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise UsageError(say.not_importable(module, error, source_of_error(error))) from error


def _built(spelled: str, model: Any) -> Any:
    from anyshape.modules.callables import as_module

    if isinstance(model, type) or is_builder(model):
        try:
            model = call_builder(model)
        except Exception as error:
            raise UsageError(say.source_raises(spelled, "calling", error, source_of_error(error))) from error
    return as_module(model)


def _names(defined: ModuleType) -> list[str]:
    return [known for known in vars(defined) if not known.startswith("_")]


def is_python_module(spelled: str) -> bool:
    """Whether the text has the form `package.module:Class`; a name without a dot has to be that of a module."""
    module = spelled.partition(":")[0]
    is_form = _FORM.fullmatch(spelled) is not None
    return is_form and ("." in module or PathFinder.find_spec(module, [*sys.path, str(Path.cwd())]) is not None)


PYTHON_MODULE = SourceKind(
    form="package.module:Class",
    load=load_python_module,
    matches=is_python_module,
)
