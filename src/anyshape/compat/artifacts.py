"""The files that torch.onnx.export writes beside a model (report, profile, captured program), and what is not supported."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.findings import Finding
from anyshape.records.export import Export
from anyshape.report.text import describe_export
from anyshape.saving import write_atomically

if TYPE_CHECKING:
    from torch.export import ExportedProgram


WEIGHTS_ARE_VERIFIED = "the weights are part of what is verified."
AXES_ARE_DECLARED = "the names of axes are those of the declaration, in the file and in its contract."


def not_honoured(name: str, value: Any, why: str, function: str = "anyshape.compat.export") -> Finding:
    """An argument of a function that would change the file in a way that we do not offer."""
    return Finding(
        code="AS037",
        name="argument-not-honoured",
        what=f"{function} cannot honour {name}={value!r}.",
        why=why,
        fix=f"leave {name} out.",
    )


def weights_missing(names: Sequence[str]) -> Finding:
    """Names of a state dict that the file does not have."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return _not_applied(
        f"the file has no weight {names[0]!r}{more}.",
        "the module does not use it, or it was computed into another constant when the file was made.",
    )


def weight_differs(name: str, before: str, after: str) -> Finding:
    """A weight of another shape or dtype."""
    return _not_applied(
        f"the weight {name!r} is {before} in the file and {after} in the state dict.",
        "a file takes other values, not other shapes or dtypes.",
    )


def _not_applied(what: str, why: str) -> Finding:
    return Finding(
        code="AS038",
        name="weights-not-applied",
        what=what,
        why=why,
        fix="load the weights into the module and export it again.",
    )


REPORT = "anyshape_report.txt"
PROFILE = "anyshape_profile.txt"
PROGRAM = "anyshape_program"


class NotHonoured(UserWarning):
    """An argument of torch.onnx.export that has no effect, or not its whole effect, in anyshape."""


@dataclass
class StageTimes:
    """Seconds of each stage of an export; `tell` is the progress callback that measures them."""

    seconds: dict[str, float] = field(default_factory=dict)
    _stage: str = "reading the arguments"
    _since: float = field(default_factory=time.perf_counter)

    def tell(self, stage: str, done: int, total: int) -> None:
        """Adds the time since the last call to the stage that was running."""
        now = time.perf_counter()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    def __str__(self) -> str:
        self.tell(self._stage, 0, 0)
        rows = [f"{seconds:9.3f} s  {stage}" for stage, seconds in self.seconds.items()]
        return "\n".join([*rows, f"{sum(self.seconds.values()):9.3f} s  together", ""])


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """Which files are written, and into which folder."""

    folder: str | PathLike[str]
    report: bool = False
    profile: bool = False
    program: bool = False

    def write(self, result: Export, times: StageTimes, given: ExportedProgram | None) -> None:
        """Writes the files that were asked for; `given` is the exported program where the model is one."""
        if not (self.report or self.profile or self.program):
            return
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        if self.report:
            self._write_text(REPORT, describe_export(result))
        if self.profile:
            self._write_text(PROFILE, str(times))
        if self.program:
            self._write_programs([given] if given is not None else [region.program for region in result.regions])

    def _write_text(self, name: str, text: str) -> None:
        write_atomically(Path(self.folder) / name, lambda stream: stream.write(text.encode()))

    def _write_programs(self, programs: list[ExportedProgram]) -> None:
        """`anyshape_program.pt2`, or one numbered file for each program of a model that branches by its sizes."""
        import torch

        if not programs:
            _warn("nothing is dumped: no program was captured")
        for number, program in enumerate(programs):
            name = f"{PROGRAM}{f'_{number}' if len(programs) > 1 else ''}.pt2"
            try:
                torch.export.save(program, fspath(Path(self.folder) / name))
            except Exception as error:  # torch cannot write every program, and the export itself is fine
                _warn(f"{name} is not written: {type(error).__name__}: {str(error)[:200]}")


def _warn(what: str) -> None:
    warnings.warn(f"dump_exported_program=True: {what}.", NotHonoured, stacklevel=5)
