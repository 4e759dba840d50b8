"""The record of one model of the hunt, and the decorator that registers it.

A model is a class, or a function `forward(self, ...)` that becomes one. Its inputs are made by a function of sizes whose
defaults are the sizes of the example.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from torch import nn

Sizes = dict[str, int]
Make = Callable[..., Any]

# Files with models, by the word that selects them on the command line.
SETS: dict[str, tuple[str, ...]] = {
    "causes": ("causes",),
    "hunt": (
        "hunt_loops",
        "hunt_lengths",
        "hunt_branches",
        "hunt_shapes",
        "hunt_values",
        "hunt_masks",
        "hunt_signal",
        "hunt_sequence",
        "hunt_structure",
        "hunt_memory",
    ),
    "second": (
        "hunt_numbers",
        "hunt_regions",
        "hunt_state",
        "hunt_operators",
        "hunt_speech",
        "hunt_vision",
        "hunt_tables",
        "hunt_generation",
        "hunt_reported",
        "hunt_six_causes",
    ),
    "library": (
        "library_transformers",
        "library_vision",
        "library_audio",
        "library_packages",
        "library_attention",
        "library_experts",
        "library_signals",
        "library_science",
    ),
}


@dataclass(frozen=True)
class Model:
    """One model with its declaration and with what its author expects.

    `far` has sizes of single dims, the others stay at the example's; `points` has joint sizes. `rare` makes inputs with
    unusual values, by name; each is a function of the same sizes as `inputs`. With `dynamic` the export gets the example
    and these words in place of the function. `true_refusal`: an error is the right answer for this model. `unproved`:
    the author expects a capture without proof. `reset` puts globals back before the judge calls the module.
    """

    name: str
    theme: str
    trap: str
    build: Callable[[], nn.Module]
    inputs: Make
    where: tuple[str, ...] = ()
    far: Mapping[str, Sequence[int]] = field(default_factory=dict)
    points: tuple[Sizes, ...] = ()
    rare: Mapping[str, Make] = field(default_factory=dict)
    dynamic: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    true_refusal: bool = False
    unproved: bool = False
    reset: Callable[[], None] | None = None

    @property
    def sizes(self) -> Sizes:
        """The sizes of the example."""
        return {name: item.default for name, item in inspect.signature(self.inputs).parameters.items()}

    def module(self) -> nn.Module:
        """A fresh module; the weights are the same in every process."""
        torch.manual_seed(0)
        return self.build().eval()


class Registry:
    """The models of one file, in the order in which they are written."""

    def __init__(self, theme: str = "") -> None:
        self.models: list[Model] = []
        self._theme = theme

    @contextmanager
    def theme(self, theme: str) -> Iterator[None]:
        """Models registered within this have this theme."""
        before, self._theme = self._theme, theme
        yield
        self._theme = before

    def __call__(self, trap: str, inputs: Make, **fields: Any) -> Callable[[Any], Any]:
        """Decorator: register the class, or the function as the `forward` of a class."""
        for name in ("where", "points"):
            if isinstance(fields.get(name), (list, str)):
                fields[name] = (fields[name],) if isinstance(fields[name], str) else tuple(fields[name])

        def register(target: Any) -> Any:
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", target.__name__).lower()
            build = target if inspect.isclass(target) else type(target.__name__, (nn.Module,), {"forward": target})
            theme = fields.pop("theme", self._theme)
            if any(model.name == name for model in self.models):
                raise ValueError(f"two models are named {name!r}")
            self.models.append(Model(name=name, theme=theme, trap=trap, build=build, inputs=inputs, **fields))
            return target

        return register


def load_set(name: str) -> dict[str, Model]:
    """The models of a set, by `file.name`."""
    files = [file for files in SETS.values() for file in files] if name == "all" else SETS.get(name, (name,))
    return {f"{file}.{model.name}": model for file in files for model in import_module(file).model.models}
