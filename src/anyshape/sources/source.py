"""What a source gives (one model for each file, inputs, rules and names), and findings about sources that give nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from anyshape.findings import Finding, Severity, Source
from anyshape.findings.finding import quoted, text_of_error

ONE_FILE = "model"


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options of the command line that only some sources take.

    `task` is a name such as "text-classification". `config_only` builds random weights from the config. `one_file` gives an
    encoder-decoder as one model without a cache. Code that comes with a model runs only with `trust_remote_code`.
    """

    task: str | None = None
    config_only: bool = False
    one_file: bool = False
    trust_remote_code: bool = False

    def given(self) -> tuple[str, ...]:
        """The names of the options that differ from their defaults."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) != field.default)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One file of the output, `NAME.onnx`: a model and the arguments of `anyshape.export` for it."""

    model: Any
    inputs: Any
    name: str = ONE_FILE
    where: Sequence[str] = ()
    dynamic: Any = None
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    values: Mapping[str, str] | Literal["given"] | None = None


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """The models of a source, one for each file, and the function that writes the other files of an output folder."""

    name: str
    parts: tuple[Part, ...]
    write_files: Callable[[Path], None] | None = None


@dataclass(frozen=True, kw_only=True)
class SourceKind:
    """A way to name models: `load` gives the source of a text.

    With a `prefix`, `load` gets what follows `prefix:`; without one, `matches` recognises a text, and `load` gets all of it.
    `form` is shown in messages. `options` are the names in SourceOptions that `load` takes.
    """

    form: str
    load: Callable[[str, SourceOptions], ModelSource]
    prefix: str = ""
    matches: Callable[[str], bool] = lambda text: False
    options: tuple[str, ...] = ()


def unknown_source(text: str, forms: Sequence[str], prefixes: Sequence[str]) -> Finding:
    """AS520: no kind of source has this form."""
    prefix, _, rest = text.partition(":")
    near = get_close_matches(prefix, prefixes, n=1)
    return Finding(
        code="AS520",
        name="unknown-source",
        what=f"{text!r} names no source that anyshape knows.",
        why=f"a source is {', '.join(forms)}.",
        fix=f"did you mean {f'{near[0]}:{rest}'!r}?" if near else f"install the package that registers {prefix!r}.",
    )


def missing_package(text: str, package: str, extra: str, error: ImportError) -> Finding:
    """AS521: an optional package cannot be imported."""
    return Finding(
        code="AS521",
        name="missing-package",
        what=f"{text!r} needs the package {package!r}, which cannot be imported.",
        why=f"Python says: {text_of_error(error)}.",
        fix=f'pip install "anyshape[{extra}]"',
    )


def missing_torchvision(text: str, error: ImportError) -> Finding:
    """AS521: timm is there, and torchvision, which it imports, is not."""
    return Finding(
        code="AS521",
        name="missing-package",
        what=f"{text!r} needs the package 'torchvision', which cannot be imported.",
        why=f"timm imports it. Python says: {text_of_error(error)}.",
        fix="pip install torchvision --index-url https://download.pytorch.org/whl/cpu",
        alternative="leave --index-url out where torch is a CUDA build. torchvision has to be built for your torch.",
    )


def option_not_taken(text: str, option: str, taken: Sequence[str]) -> Finding:
    """AS522: an option that this kind of source has no use for."""
    spelled = _spelled(option)
    others = " and ".join(map(_spelled, taken))
    return Finding(
        code="AS522",
        name="source-option",
        what=f"{text!r} does not take {spelled}.",
        why=f"this kind of source takes {others}." if taken else "this kind of source takes no options of its own.",
        fix=f"leave {spelled} out.",
    )


def _spelled(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def not_importable(module: str, error: Exception, where: Source | None) -> Finding:
    """AS523: importing the module of `package.module:Class` raises."""
    return Finding(
        code="AS523",
        name="source-module",
        what=f"importing {module!r} raises {type(error).__name__}.",
        where=where,
        why=text_of_error(error),
        fix=f"run the command in the folder from which `python -c 'import {module}'` works.",
    )


def not_in_module(module: str, name: str, known: Sequence[str], why: str) -> Finding:
    """AS523: the module lacks the model or its inputs."""
    near = get_close_matches(name, known, n=1)
    return Finding(
        code="AS523",
        name="source-module",
        what=f"the module {module!r} defines no {name!r}.",
        why=why,
        fix=f"did you mean {near[0]!r}?" if near else f"define {name!r} in {module!r}.",
    )


def link_outside(folder: str, name: str, target: str) -> Finding:
    """AS531: a file of the model's folder is a link to a file elsewhere."""
    return Finding(
        code="AS531",
        name="link-outside",
        what=f"{name!r} in the model's folder {folder!r} is a link that leads out of it.",
        why=f"it leads to {target!r}, whose content would be copied into the output.",
        fix="if the file belongs to the model, put a copy of it into the folder.",
    )


def model_not_found(text: str, why: str, fix: str = "", near: Sequence[str] = ()) -> Finding:
    """AS524: no folder, no cached repository, or no architecture has this name."""
    return Finding(
        code="AS524",
        name="model-not-found",
        what=f"{text!r} was not found.",
        why=why,
        fix=f"did you mean {' or '.join(map(repr, near))}?" if near else fix,
    )


def no_weights(text: str, why: str) -> Finding:
    """AS525: there are no weights for all of the model."""
    return Finding(
        code="AS525",
        name="no-weights",
        what=f"{text!r} has no weights for this model.",
        why=why,
        fix="for random weights, to try things out: --config-only",
    )


def remote_code(text: str) -> Finding:
    """AS526: the model is defined by code that comes with it."""
    return Finding(
        code="AS526",
        name="remote-code",
        what=f"{text!r} is defined by Python code that comes with it, and that code was not run.",
        why="it would run with all your rights.",
        fix="read the code, and if you trust it: --trust-remote-code",
    )


def unknown_task(text: str, task: str, known: Sequence[str]) -> Finding:
    """AS527: there is no such task."""
    near = get_close_matches(task, known, n=1)
    return Finding(
        code="AS527",
        name="unknown-task",
        what=f"there is no task {task!r}.",
        why=f"the tasks are {', '.join(known)}.",
        fix=f"--task {near[0]}" if near else f"leave --task out: the architecture of {text!r} decides.",
    )


def task_not_for_model(text: str, task: str, model_type: str, why: str) -> Finding:
    """AS527: transformers has no class of this task for the model."""
    return Finding(
        code="AS527",
        name="unknown-task",
        what=f"{text!r} ({model_type}) cannot do the task {task!r}.",
        why=why,
        fix="leave --task out: the architecture in the config decides.",
    )


def unknown_inputs(text: str, what: str, why: str, fix: str = "") -> Finding:
    """AS528: the source does not know how to call this model."""
    return Finding(
        code="AS528",
        name="unknown-call",
        what=what,
        why=why,
        fix=fix or f"write a model.py that calls it, and export that in place of {text!r}.",
    )


def at_line(finding: Finding, line: Source | None) -> Finding:
    """The finding with the line of code that it is about."""
    return replace(finding, where=line)


def several_files(text: str, names: Sequence[str], path: str) -> Finding:
    """AS529: the output is one file, and the source gives several."""
    return Finding(
        code="AS529",
        name="several-files",
        what=f"{text!r} gives {len(names)} files, and {path!r} is one.",
        why=f"the files are {', '.join(f'{name}.onnx' for name in names)}.",
        fix=f"-o {quoted(path.removesuffix('.onnx'))}",
    )


def about_part(text: str, name: str, number: int, count: int) -> Finding:
    """AS529: a note on which of several files the other findings are about."""
    return Finding(
        code="AS529",
        name="several-files",
        severity=Severity.NOTE,
        what=f"this is about {name}.onnx, file {number} of {count} of {text!r}; none of them was written.",
    )


def no_part(text: str, file: str, names: Sequence[str]) -> Finding:
    """AS529: a file is compared with a source of several models, and its name is that of none of them."""
    return Finding(
        code="AS529",
        name="several-files",
        what=f"{text!r} has {len(names)} models, and {file!r} has the name of none.",
        why=f"the files are {', '.join(f'{name}.onnx' for name in names)}.",
        fix="give the file the name under which it was exported.",
    )


def source_raises(text: str, doing: str, error: Exception, where: Source | None = None) -> Finding:
    """AS530: a library or a registered source raises."""
    return Finding(
        code="AS530",
        name="source-raises",
        what=f"{doing} {text!r} raises {type(error).__name__}.",
        where=where,
        why=text_of_error(error).strip(),
    )
