"""What can go wrong when an ONNX file is run, in our own words.

These are plain exceptions, not findings: only a stage knows the sizes at which it happened and what that means.
"""

from __future__ import annotations

from enum import Enum


class RunError(Exception):
    """Base of all three: an ONNX file did not give its outputs."""


class RuntimeRejected(RunError):
    """The runtime cannot load the model. `unsupported`: the file is well formed, but a kernel is missing."""

    def __init__(self, message: str, unsupported: bool = False) -> None:
        super().__init__(message, unsupported)
        self.message = message
        self.unsupported = unsupported

    def __str__(self) -> str:
        return self.message


class RuntimeFailed(RunError):
    """The model was loaded, but a run of it raised. `memory`: because it could not allocate."""

    def __init__(self, message: str, memory: bool = False) -> None:
        super().__init__(message, memory)
        self.message = message
        self.memory = memory

    def __str__(self) -> str:
        return self.message


class Death(Enum):
    """How a child process came to its end."""

    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


class ChildDied(RunError):
    """The child process is gone: `how` reads `crashed with signal 11 (SIGSEGV)`; `detail` is what it last wrote."""

    def __init__(self, how: str, death: Death, detail: str = "") -> None:
        super().__init__(how, death, detail)
        self.how = how
        self.death = death
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.how}: {self.detail}" if self.detail else self.how
