"""What a source gives: one model for each file, its inputs as a function of sizes, rules and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

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
