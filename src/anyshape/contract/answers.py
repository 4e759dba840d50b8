"""What a loaded file answers when it has several outputs: a tuple whose items also have names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Answers(tuple[Any, ...]):
    """Outputs in the file's order, by index (`answers[0]`), by name (`answers["logits"]`), or unpacked.

    `dict(answers)` has them by name.
    """

    _names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], values: Iterable[Any]) -> Answers:
        made = super().__new__(cls, values)
        if len(names) != len(made):
            raise ValueError(f"{len(names)} names for {len(made)} answers")
        made._names = tuple(names)
        return made

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self._names:
            raise KeyError(f"there is no output {key!r}; the outputs are {', '.join(self._names)}")
        return super().__getitem__(self._names.index(key))

    def keys(self) -> tuple[str, ...]:
        return self._names

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self._names, self, strict=True)

    def __reduce__(self) -> tuple[type[Answers], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return type(self), (self._names, tuple(self))

    def __repr__(self) -> str:
        return f"Answers({', '.join(f'{name}={value!r}' for name, value in self.items())})"
