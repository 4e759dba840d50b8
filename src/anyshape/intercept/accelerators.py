"""Devices that the user's code names mean the CPU while its copy there runs.

    torch.zeros(n, device="cuda")    ->    torch.zeros(n, device="cpu")
    x.cuda(), x.to("cuda:0")         ->    x
    torch.autocast("cuda")           ->    torch.autocast("cpu")

The copy of a module on an accelerator lies on the CPU (modules/structural_copy). A mode is slow, and some functions of torch
take another way under one, so it is active only where the code names a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyshape.intercept.patching import patched
from anyshape.modules.structural_copy import is_on_accelerator, moved_to_cpu
from anyshape.modules.user_code import codes_of, user_functions

_METHODS = ("cuda", "xpu", "hpu", "npu")


@contextmanager
def devices_mean_cpu(module: torch.nn.Module) -> Iterator[None]:
    """Within this, the devices that the code of `module` names mean the CPU; nothing changes where it names none."""
    if not names_accelerator(module):
        yield
        return
    begin = torch.amp.autocast_mode.autocast.__init__

    def begin_on_cpu(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        begin(self, moved_to_cpu(device_type), *args, **kwargs)

    with patched([(torch.amp.autocast_mode.autocast, "__init__", begin_on_cpu)]), _DevicesMeanCpu():
        yield


def names_accelerator(module: torch.nn.Module) -> bool:
    """Whether the user's code behind a module has a device of an accelerator: a text, a method's name or a global value."""
    return any(map(_names_accelerator, user_functions(module)))


def _names_accelerator(function: FunctionType) -> bool:
    for code in codes_of(function):
        values = [function.__globals__.get(name) for name in code.co_names]
        if any(map(is_on_accelerator, (*code.co_consts, *values))) or set(_METHODS).intersection(code.co_names):
            return True
    return False


class _DevicesMeanCpu(TorchFunctionMode):
    """Calls with an accelerator among their arguments get the CPU in its place."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") in _METHODS and len(args) and isinstance(args[0], torch.Tensor):
            return args[0]
        given = {name: moved_to_cpu(value) for name, value in (kwargs or {}).items()}
        return func(*map(moved_to_cpu, args), **given)
