"""Arguments that need reading: sizes, durations, and FILE.py[:NAME] with its model, inputs and rules."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from anyshape.findings import Finding, UsageError
from anyshape.modules.frames import source_of_error

if TYPE_CHECKING:
    from anyshape.inputs import Declared


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_seconds(text: str, option: str = "--budget") -> float:
    """`60s`, `5m`, `1.5h` or plain seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            Finding(
                code="AS036", name="argument", what=f"{option} {text!r} is no duration.", fix=f"{option} 60s, or 5m"
            )
        )
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_sizes(text: str, declared: Declared) -> dict[str, int] | None:
    """`batch=1,seq=7`; empty means none given. Every dim of the domain needs its size."""
    if not text:
        return None
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not size.strip().isdigit():
            raise UsageError(
                Finding(
                    code="AS036",
                    name="argument",
                    what=f"--sizes has {part!r}, which is no size.",
                    fix="--sizes " + ",".join(f"{dim}={size}" for dim, size in declared.example_sizes.items()),
                )
            )
        declared.domain.dim(name.strip())
        sizes[name.strip()] = int(size)
    missing = [dim for dim in declared.domain.names if dim not in sizes]
    if missing:
        raise UsageError(
            Finding(code="AS036", name="argument", what=f"--sizes gives no size for {', '.join(missing)}.")
        )
    return sizes


_TEMPLATE = "def model(): return MyModule()\ndef inputs(batch=3, seq=5): return torch.randn(batch, seq, 64)"


@dataclass(frozen=True)
class ModelFile:
    """What a model file defines: a module, its inputs (see anyshape.export), and the options that it sets."""

    module: Any
    inputs: Any
    where: Sequence[str]
    dynamic: Any
    input_names: Sequence[str] | None
    output_names: Sequence[str] | None
    values: Any = None


def load_model_file(spelled: str) -> ModelFile:
    """The parts of `FILE.py` (model, inputs, where, …), or of `FILE.py:NAME`.

    NAME is then the model; NAME_inputs, NAME_where and so on are its own where NAME_inputs is defined.
    """
    file, name = _split(spelled)
    defined = _run(file)
    model = _pick(defined, file, name or "model")
    has_own_inputs = bool(name) and hasattr(defined, f"{name}_inputs")
    prefix = f"{name}_" if has_own_inputs else ""
    inputs = _pick(defined, file, f"{prefix}inputs")

    def option(what: str, default: Any = None) -> Any:
        return getattr(defined, f"{prefix}{what}", default)

    return ModelFile(
        module=_built(model, file, name or "model"),
        inputs=inputs,
        where=option("where", ()),
        dynamic=option("dynamic"),
        input_names=option("input_names"),
        output_names=option("output_names"),
        values=option("values"),
    )


def _split(spelled: str) -> tuple[Path, str]:
    head, colon, tail = spelled.rpartition(":")
    if colon and tail.isidentifier() and head.endswith(".py"):  # not the colon of C:\model.py
        return Path(head), tail
    return Path(spelled), ""


def _run(file: Path) -> ModuleType:
    if not file.is_file():
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
    """The module: what the file defines, or what its function returns. A function with parameters is itself the model."""
    import torch

    from anyshape.modules.callables import as_module

    is_model = isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))
    if not is_model and callable(model) and not _has_parameters(model):
        torch.manual_seed(
            0
        )  # weights that nobody loads are the same in every run: in `export`, and in `check` after it
        try:
            model = model()
        except Exception as error:
            raise UsageError(_raises(file, error, f"calling {name}()")) from error
        name = f"{name}()"
    try:
        return as_module(model)
    except UsageError as error:
        raise UsageError(replace(error.finding, where=f"{name} of {file}")) from error


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
        why=str(error),
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
