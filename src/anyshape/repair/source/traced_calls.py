"""One call of a module, with what each of the user's statements saw: sizes of its variables, values of its sites.

A call that raises has the lines on the stack, and how far it came: the number of lines and torch functions that ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyshape.modules.line_trace import run_traced
from anyshape.modules.user_code import runs_users_code
from anyshape.repair.source.source_sites import Site, Sources, Statement

_MOST_ITEMS = 8
_MOST_EVENTS = 50_000
_NO_VALUE = object()


@dataclass
class Seen:
    """What held at every visit of a statement: the sizes that can be read there, as texts, and the values of its sites."""

    sizes: dict[str, int]
    values: dict[Site, Any] = field(default_factory=dict)

    def also(self, other: Seen) -> None:
        """Keep what is the same at another visit."""
        self.sizes = {text: size for text, size in self.sizes.items() if other.sizes.get(text) == size}
        self.values = {
            site: value for site, value in self.values.items() if _is_same(value, other.values.get(site, _NO_VALUE))
        }


@dataclass
class Followed:
    """A call that was followed. `stack` has the user's lines of the error that ended it, innermost first."""

    seen: dict[Statement, Seen] = field(default_factory=dict)
    stack: list[tuple[str, int]] = field(default_factory=list)
    steps: int = 0


def follow_call(call: Callable[[], object], sources: Sources, *, with_values: bool = False) -> Followed:
    """Run the call; what it raises is dropped. `with_values`: evaluate the sites as well."""
    followed = Followed()
    raised: dict[int, list[tuple[str, int]]] = {}

    def follow(frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        if event == "line":
            followed.steps += 1
            for statement in sources.at(file, frame.f_lineno):
                _note(followed, statement, frame, with_values=with_values)
        elif event == "exception":
            raised.setdefault(id(arg[1]), []).append((file, frame.f_lineno))
        return follow if followed.steps < _MOST_EVENTS else None

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        return follow if event == "call" and runs_users_code(frame) else None

    with _Counting(followed):
        run_traced(call, enter)
    followed.stack = list(raised.values())[-1] if raised else []
    return followed


class _Counting(TorchFunctionMode):  # type: ignore[misc]
    """Counts torch functions that return: the one that raises is not counted."""

    def __init__(self, followed: Followed) -> None:
        super().__init__()
        self._followed = followed

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._followed.steps += 1
        return result


def _note(followed: Followed, statement: Statement, frame: FrameType, *, with_values: bool) -> None:
    values = {site: _value(site, frame) for site in statement.sites} if with_values else {}
    fresh = Seen(_sizes(frame.f_locals), {site: value for site, value in values.items() if value is not _NO_VALUE})
    known = followed.seen.setdefault(statement, fresh)
    if known is not fresh:
        known.also(fresh)


def _sizes(variables: Mapping[str, Any]) -> dict[str, int]:
    """Sizes by the text that reads them: `x.shape[0]`, `states[1].shape[2]`, `batch`."""
    found: dict[str, int] = {}
    for name, value in list(variables.items()):
        if not name.isidentifier():
            continue
        if type(value) is int:
            found[name] = value
        for text, tensor in _tensors(name, value):
            found.update((f"{text}.shape[{axis}]", int(size)) for axis, size in enumerate(tensor.shape))
    return found


def _tensors(name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if isinstance(value, dict):
        items = [(f"{name}[{key!r}]", item) for key, item in value.items() if isinstance(key, str)]
    elif isinstance(value, (list, tuple)):
        items = [(f"{name}[{index}]", item) for index, item in enumerate(value)]
    else:
        return []
    return [(text, item) for text, item in items[:_MOST_ITEMS] if isinstance(item, torch.Tensor)]


def _value(site: Site, frame: FrameType) -> Any:
    """A number, a tuple of numbers or a tensor that the module or its file holds; _NO_VALUE for anything else."""
    if site.number is not None:
        return site.number
    local = frame.f_locals.get(site.root, _NO_VALUE)
    if type(local) is int and site.text == site.root:
        return _NO_VALUE if site.is_compared else local
    if local is not _NO_VALUE and not isinstance(local, torch.nn.Module):
        return _NO_VALUE
    try:
        value = eval(site.text, frame.f_globals, frame.f_locals)
    except Exception:  # whatever a property of the user's raises
        return _NO_VALUE
    found = held_value(value)
    return _NO_VALUE if site.is_compared and not isinstance(found, torch.Tensor) else found


def held_value(value: Any) -> Any:
    """The value as a number, a tensor, or a tuple of integers or tensors; _NO_VALUE for anything else."""
    if type(value) in (int, float):
        return value
    if isinstance(value, torch.Tensor):
        copied = value.detach().clone()
        return torch.nn.Parameter(copied, requires_grad=False) if isinstance(value, torch.nn.Parameter) else copied
    if isinstance(value, (list, tuple)) and value and all(_is_table(each) for each in value):
        return tuple(each.detach().clone() for each in value)
    if isinstance(value, (list, tuple)) and value:
        whole = [_whole(each) for each in value]
        return tuple(whole) if None not in whole else _NO_VALUE
    return _NO_VALUE


def _is_table(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim > 0 and not isinstance(value, torch.nn.Parameter)


def _whole(value: Any) -> int | None:
    if type(value) is int:
        return value
    is_whole = isinstance(value, torch.Tensor) and value.ndim == 0 and not value.is_floating_point()
    return int(value) if is_whole and value.dtype is not torch.bool else None


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and bool(one == other)
