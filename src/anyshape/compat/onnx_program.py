"""The result of `anyshape.compat.export`: an Export with the methods of torch's ONNXProgram."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from anyshape.compat.artifacts import (
    AXES_ARE_DECLARED,
    WEIGHTS_ARE_VERIFIED,
    not_honoured,
    weight_differs,
    weights_missing,
)
from anyshape.contract.digest import FileChanged, digest_model
from anyshape.contract.metadata import write_contract
from anyshape.findings import UsageError
from anyshape.inputs.calls import as_array
from anyshape.inputs.declared import dtype_of
from anyshape.loading.binding import Binder
from anyshape.loading.loaded import Loaded, load
from anyshape.records.export import Export
from anyshape.runtime.session import Session
from anyshape.saving import model_bytes, save_model

if TYPE_CHECKING:
    import onnx_ir as ir
    import torch

_SAVE = "ONNXProgram.save"
_RENAME = "ONNXProgram.rename_axes"


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
