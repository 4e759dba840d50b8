"""Python code as a source: `FILE.py` with model(), inputs(batch=3, …) and where = [...], or `package.module:Class`.

The inputs are `Class.inputs` (a static method of sizes), `Class_inputs` or `inputs` of the module, in this order.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import anyshape.sources.source as say
from anyshape.domain import Condition
from anyshape.findings import Finding, UsageError
from anyshape.findings.arguments import read_list
from anyshape.findings.finding import text_of_error
from anyshape.modules.user_code import source_of_error
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")

_TEMPLATE = "def model(): return MyModule()\ndef inputs(batch=3, seq=5): return torch.randn(batch, seq, 64)"
_FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NEEDED = (
    "inputs are a static method `inputs` of the class, or NAME_inputs or inputs in its module: inputs(batch=3, …)."
)


def load_model_file(spelled: str, options: SourceOptions | None = None) -> ModelSource:
    """The parts of `FILE.py` (model, inputs, where, …), or of `FILE.py:NAME`.

    NAME is then the model; NAME_inputs, NAME_where and so on are its own.
    """
    file, name = _split(spelled)
    defined = _run(file)
    model = _pick(defined, file, name or "model")
    has_own = bool(name) and hasattr(defined, f"{name}_inputs")
    inputs = _pick(defined, file, f"{name}_inputs" if has_own else "inputs")
    options_of_file = read_options(defined, name or "", has_own)
    part = Part(model=_built(model, file, name or "model"), inputs=inputs, **options_of_file)
    return ModelSource(name=spelled, parts=(part,))


def read_options(defined: ModuleType, name: str, has_own_inputs: bool) -> dict[str, Any]:
    """What a module defines beside the model and its inputs: `where`, `dynamic`, names and values.

    `NAME_where` stands before `where`, which belongs to `inputs`: with NAME_inputs it is that of another model.
    """
    found: dict[str, Any] = {"where": (), **dict.fromkeys(("dynamic", "input_names", "output_names", "values"))}
    for option, absent in found.items():
        plain = absent if has_own_inputs else getattr(defined, option, absent)
        found[option] = getattr(defined, f"{name}_{option}", plain) if name else plain
    where = found["where"]
    rules = [where] if isinstance(where, str) else read_list("where", where, (str, Condition), "where = ['1 <= batch']")
    return {**found, "where": rules}


def is_model_file(spelled: str) -> bool:
    """Whether the text names a file: it ends in .py or .py:NAME, or has no colon but that of a drive (C:\\model)."""
    return str(_split(spelled)[0]).endswith(".py") or ":" not in _DRIVE.sub("", spelled, count=1)


def _split(spelled: str) -> tuple[Path, str]:
    head, colon, tail = spelled.rpartition(":")
    if colon and tail.isidentifier() and head.endswith(".py"):  # not the colon of C:\model.py
        return Path(head), tail
    return Path(spelled), ""


def _run(file: Path) -> ModuleType:
    try:
        is_there = file.is_file()
    except OSError as error:  # a name that is too long
        what, why = f"the file {str(file)!r} cannot be read.", f"the system says: {error.strerror}."
        raise UsageError(Finding(code="AS040", name="missing-file", what=what, why=why)) from error
    if not is_there:
        raise UsageError(_missing(file))
    name = _module_name(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(_not_python(file))
    module = importlib.util.module_from_spec(spec)
    # At the end: a file beside the model that has the name of an installed module is not imported in its place.
    sys.path.append(str(file.resolve().parent))
    sys.modules[name] = module  # dataclasses and pickles look their own module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UsageError(_syntax_error(file, error)) from error
    except Exception as error:
        raise UsageError(_raises(file, error, "running the file")) from error
    return module


def _module_name(file: Path) -> str:
    """The file's own name, or another one where Python or an installed package has a module of that name."""
    found = PathFinder.find_spec(file.stem)
    is_taken = found is not None and found.origin is not None and Path(found.origin).resolve() != file.resolve()
    return f"{file.stem}_model" if is_taken or file.stem in sys.stdlib_module_names else file.stem


def _built(model: Any, file: Path, name: str) -> Any:
    """The module: what the file defines, or what its function returns."""
    from anyshape.modules.callables import as_module

    if is_builder(model):
        try:
            model = call_builder(model)
        except Exception as error:
            raise UsageError(_raises(file, error, f"calling {name}()")) from error
        name = f"{name}()"
    try:
        return as_module(model)
    except UsageError as error:
        raise UsageError(replace(error.finding, where=f"{name} of {file}")) from error


def is_builder(model: Any) -> bool:
    """Whether a call gives the model: of a class or function without arguments. With parameters it is the model."""
    import torch

    is_model = isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))
    return not is_model and callable(model) and not _has_parameters(model)


def call_builder(build: Any) -> Any:
    """The model. Weights that nobody loads are the same in every run: in `export`, and in `check` after it."""
    import torch

    torch.manual_seed(0)
    return build()


def _has_parameters(function: Any) -> bool:
    """Whether a call needs arguments: `def model(x, mask)` computes, `def model()` and `Net` without arguments build."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return not isinstance(function, type) and any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters
    )


def _pick(defined: ModuleType, file: Path, name: str) -> Any:
    if not hasattr(defined, name):
        raise UsageError(_undefined(defined, file, name))
    return getattr(defined, name)


def _missing(file: Path) -> Finding:
    siblings = [path.name for path in file.parent.glob("*.py")] if file.parent.is_dir() else []
    near = difflib.get_close_matches(file.name, siblings, n=1)
    return Finding(
        code="AS040",
        name="missing-file",
        what=f"there is no file {str(file)!r}.",
        fix=f"did you mean {str(file.parent / near[0])!r}?" if near else "check the path of the model file.",
    )


def _not_python(file: Path) -> Finding:
    return Finding(
        code="AS034",
        name="model-file",
        what=f"{str(file)!r} is no Python file.",
        why="a model file ends in .py and defines model() and inputs().",
        fix=_TEMPLATE,
    )


def _syntax_error(file: Path, error: SyntaxError) -> Finding:
    text = (error.text or "").rstrip()
    caret = " " * max((error.offset or 1) - 1 - (len(text) - len(text.lstrip())), 0) + "^"
    return Finding(
        code="AS034",
        name="model-file",
        what=f"{str(file)!r} is not valid Python: {error.msg}.",
        excerpt=f"{text.lstrip()}\n{caret}" if text else "",
        where=f"{file}:{error.lineno}",
    )


def _raises(file: Path, error: Exception, doing: str) -> Finding:
    return Finding(
        code="AS034",
        name="model-file",
        what=f"{doing} of {str(file)!r} raises {type(error).__name__}."
        if doing.startswith("calling")
        else f"{str(file)!r} raises {type(error).__name__} when it is run.",
        where=source_of_error(error),
        why=text_of_error(error),
    )


def _undefined(defined: ModuleType, file: Path, name: str) -> Finding:
    names = [known for known in vars(defined) if not known.startswith("_")]
    near = difflib.get_close_matches(name, names, n=1)
    return Finding(
        code="AS034",
        name="model-file",
        what=f"{str(file)!r} defines no {name!r}.",
        why="a model file defines model(), inputs(batch=3, …) and, if wanted, where = [...].",
        fix=_rename(name, near[0]) if near else _TEMPLATE,
    )


def _rename(name: str, near: str) -> str:
    """What to rename: a name that every model file has in the file, any other one where it was given."""
    is_ours = name in ("model", "inputs") or name.endswith("_inputs")
    return f"rename {near!r} to {name!r}." if is_ours else f"did you mean {near!r}?"


MODEL_FILE = SourceKind(form="FILE.py[:NAME]", load=load_model_file, matches=is_model_file)


def load_python_module(spelled: str, options: SourceOptions | None = None) -> ModelSource:
    """The model and its inputs. Raises UsageError where the module cannot be imported, or lacks one of them."""
    module, _, name = spelled.partition(":")
    defined = _imported(module)
    if not hasattr(defined, name):
        raise UsageError(say.not_in_module(module, name, _names(defined), "that is what the source names."))
    found = getattr(defined, name)
    has_own = hasattr(defined, f"{name}_inputs")
    inputs = getattr(found, "inputs", None) or getattr(defined, f"{name}_inputs" if has_own else "inputs", None)
    if inputs is None:
        raise UsageError(say.not_in_module(module, f"{name}_inputs", (), _NEEDED))
    part = Part(model=_built_of_module(spelled, found), inputs=inputs, **read_options(defined, name, has_own))
    return ModelSource(name=spelled, parts=(part,))


def _imported(module: str) -> ModuleType:
    # At the end, as for a model file: a file here that has the name of an installed module is not imported in its place.
    sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise UsageError(say.not_importable(module, error, source_of_error(error))) from error


def _built_of_module(spelled: str, model: Any) -> Any:
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


PYTHON_MODULE = SourceKind(form="package.module:Class", load=load_python_module, matches=is_python_module)
