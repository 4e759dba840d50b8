"""The result of `anyshape.compat.export`: an Export with the methods of torch's ONNXProgram, and the files that torch
writes beside it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from anyshape.contract import write_contract
from anyshape.contract.digest import FileChanged, digest_model
from anyshape.findings import Finding, UsageError
from anyshape.inputs.calls import as_array
from anyshape.inputs.declared import dtype_of
from anyshape.loading import Loaded, load
from anyshape.loading.binding import Binder
from anyshape.records.export import Export
from anyshape.report.text import describe_export
from anyshape.runtime.session import Session
from anyshape.saving import model_bytes, save_model, write_atomically

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch
    from torch.export import ExportedProgram


_SAVE = "ONNXProgram.save"
_RENAME = "ONNXProgram.rename_axes"
WEIGHTS_ARE_VERIFIED = "the weights are part of what is verified."
AXES_ARE_DECLARED = "the names of axes are those of the declaration, in the file and in its contract."
REPORT = "anyshape_report.txt"
PROFILE = "anyshape_profile.txt"
PROGRAM = "anyshape_program"


@dataclass(frozen=True, kw_only=True)
class ONNXProgram(Export):
    """An `anyshape.Export` that is saved, called and changed as torch's ONNXProgram is.

    `exported_program` is the program that was exported, where a program was given; else None.
    """

    exported_program: torch.export.ExportedProgram | None = None

    @classmethod
    def of(cls, result: Export, program: torch.export.ExportedProgram | None) -> ONNXProgram:
        """The export as a program."""
        known = {each.name: getattr(result, each.name) for each in fields(Export)}
        return cls(**known, exported_program=program)

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """The outputs of onnxruntime as a tuple of tensors, for a call as the module takes it."""
        outputs = self._loaded(*args, **kwargs)
        return tuple(outputs) if len(self.contract.outputs) > 1 else (outputs,)

    @cached_property
    def _loaded(self) -> Loaded:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FileChanged)  # other weights were asked for
            return load(model_bytes(self.model))

    def initialize_inference_session(self) -> None:
        """Open the session of onnxruntime now, rather than in the first call."""
        self._loaded  # noqa: B018 - reading opens it

    def release(self) -> None:
        """Close the session of onnxruntime; the next call opens it again."""
        self.__dict__.pop("_loaded", None)

    def save(
        self,
        destination: str | PathLike[str] | IO[bytes],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file or a binary stream; weights go beside a file if `external_data` or they exceed 2 GB."""
        if not include_initializers:
            raise UsageError(not_honoured("include_initializers", False, WEIGHTS_ARE_VERIFIED, _SAVE))
        with self._listing_weights(keep_initializers_as_inputs):
            if isinstance(destination, (str, PathLike)):
                save_model(self.model, Path(fspath(destination)), external_data=external_data)
            else:
                destination.write(self.model_proto.SerializeToString(deterministic=True))

    @contextmanager
    def _listing_weights(self, is_listed: bool) -> Iterator[None]:
        """The weights are inputs with a default while the file is written, and the contract has the digest of that file."""
        if not is_listed:
            yield
            return
        own = list(self.model.graph.inputs)
        self.model.graph.inputs.extend(self.model.graph.initializers.values())
        try:
            write_contract(self.model, replace(self.contract, digest=digest_model(self.model)))
            yield
        finally:
            del self.model.graph.inputs[len(own) :]
            write_contract(self.model, self.contract)

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[torch.Tensor]:
        """The outputs of onnx's own reference implementation, as a tuple of tensors."""
        import onnx.reference
        import torch

        feeds = dict(Binder(self.contract).bind(args, kwargs).feeds)
        outputs = onnx.reference.ReferenceEvaluator(self.model_proto).run(None, feeds)
        return tuple(torch.as_tensor(output) for output in outputs)

    def compute_values(
        self, value_names: Sequence[str], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Sequence[torch.Tensor]:
        """The values of these names inside the graph, for a call as the module takes it."""
        import onnx_ir as ir
        import torch

        values = ir.convenience.create_value_mapping(self.model.graph)
        missing = [name for name in value_names if name not in values]
        if missing:
            raise ValueError(f"Value {missing[0]!r} not found in the model.")
        proto = self.model_proto
        del proto.graph.output[:]
        proto.graph.output.extend(ir.serde.serialize_value(values[name]) for name in value_names)
        outputs = Session(proto.SerializeToString()).run(Binder(self.contract).bind(args, kwargs or {}).feeds)
        return tuple(torch.as_tensor(output) for output in outputs)

    def rename_axes(self, rename_mapping: Mapping[Any, str]) -> None:
        """Refused: the dims of the contract have the names that the declaration has."""
        raise UsageError(not_honoured("rename_mapping", dict(rename_mapping), AXES_ARE_DECLARED, _RENAME))

    def optimize(self) -> None:
        """Nothing: the model was optimized before it was verified."""

    def apply_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Put other weights in the place of the model's own, by their names in the module.

        Raises UsageError where a weight of the file has no value of its shape and dtype there, or where a name does not
        occur in the file because its value was computed into another one; nothing is changed then. A file with other
        weights is not the one that was verified: `anyshape.check(path, module, inputs, sign=True)` verifies it again.
        """
        import onnx_ir as ir

        held = self.model.graph.initializers
        missing = sorted(name for name in state_dict if name not in held)
        if missing:
            raise UsageError(weights_missing(missing))
        made = {name: ir.Tensor(as_array(value, dtype_of(value)), name=name) for name, value in state_dict.items()}
        for name, tensor in made.items():
            before, after = _kind(held[name]), _kind(tensor)
            if before != after:
                raise UsageError(weight_differs(name, before, after))
        for name, tensor in made.items():
            held[name].const_value = tensor
        self.release()


def _kind(tensor: ir.Value | ir.TensorProtocol) -> str:
    """`FLOAT[3, 4]`"""
    sizes = ", ".join(map(str, tensor.shape or ()))
    return f"{tensor.dtype}[{sizes}]"


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
