"""`torch.onnx.export`'s own signature, and an object like the one that it returns: change one import.

An argument that we cannot honour is never dropped silently: where it would change the file we refuse (UsageError), where
it would only print or write something beside it we warn (NotHonoured).

Files, in the order in which data flows:

    onnx_program  what export() returns, and the files beside it: report, profile, captured program
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, TypeGuard

from anyshape.api import export as export_model
from anyshape.compat.onnx_program import (
    WEIGHTS_ARE_VERIFIED,
    Artifacts,
    NotHonoured,
    ONNXProgram,
    StageTimes,
    not_honoured,
)
from anyshape.findings import UsageError, raises_for_caller
from anyshape.inputs import Inputs
from anyshape.inputs.torch_forms import inputs_of_program, name_labels
from anyshape.report.text import describe_export
from anyshape.translate.opsets import DEFAULT_OPSET, OLDEST_ENFORCING_OPSET, sizes_not_enforced

if TYPE_CHECKING:
    import torch

__all__ = ["NotHonoured", "ONNXProgram", "export"]


@raises_for_caller
def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: Any = (),
    f: str | PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:
    """Export as torch.onnx.export is called, and get a file that is right at every declared size.

    Returns an `ONNXProgram` in all cases (torch: None with dynamo=False): an `anyshape.Export` with the methods of
    torch's. Raises `anyshape.PromiseBroken` where torch would write a file that is wrong at other sizes.

    A model that is an exported program brings its example and its dynamic axes along: `args` may be left out.

    `dynamo` chooses nothing: there is one way to capture a model here, and both values are taken. `verify` is always
    done, at sizes other than the example's. `external_data=True` uses a second file above 2 GB only. The default of
    `opset_version` is 18. The same label in `dynamic_axes` is the same size, on outputs too; one that is no name of a
    dim is spelled as one (`batch size` is `batch_size`). `report`, `profile` and `dump_exported_program` write what was found,
    the time of each stage and the captured program into `artifacts_dir`.
    """
    _refuse(
        export_params=(export_params, True, WEIGHTS_ARE_VERIFIED),
        training=(_name(training), _eval_modes(model), "reference and capture both run in eval mode."),
        operator_export_type=(_name(operator_export_type), ("None", "ONNX"), "only ONNX operators are written."),
        custom_opsets=(None if dynamo else custom_opsets, None, "torch honours it with its old exporter alone."),
        export_modules_as_functions=(export_modules_as_functions, False, "modules are written inline."),
    )
    _warn(
        custom_opsets=(custom_opsets, None, "torch honours it with dynamo=False alone"),
        do_constant_folding=(do_constant_folding, True, "constants are always folded, as in torch since 2.6"),
        autograd_inlining=(autograd_inlining, True, "autograd functions are always inlined"),
    )
    if dynamic_shapes is not None and dynamic_axes is not None:
        raise UsageError(
            not_honoured("dynamic_axes", dynamic_axes, "dynamic_shapes is given too, and torch reads that alone.")
        )
    given = Inputs(*_split(args, kwargs))
    dynamic = name_labels(dynamic_axes) if dynamic_shapes is None and dynamic_axes is not None else dynamic_shapes
    where: tuple[str, ...] = ()
    if _is_program(model):
        own = inputs_of_program(model)
        given = given if given.args or given.kwargs else own.example
        dynamic, where = (own.dynamic, own.where) if dynamic is None else (dynamic, ())
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    path = f if isinstance(f, (str, PathLike)) else None
    times = StageTimes()
    result = export_model(
        model,
        given,
        path,
        dynamic=dynamic,
        where=where,
        input_names=input_names,
        output_names=output_names,
        opset=opset,
        translations=custom_translation_table,
        optimize=optimize,
        external_data=None if external_data else False,
        progress=times.tell,
        isolate=False if dump_exported_program else None,  # captured programs stay in the process that made them
    )
    if opset < OLDEST_ENFORCING_OPSET:  # users of torch.onnx.export do not read findings
        warnings.warn(str(sizes_not_enforced(opset)), NotHonoured, stacklevel=2)
    own_program = model if _is_program(model) else None
    program = ONNXProgram.of(result, own_program)
    if f is not None and (path is None or keep_initializers_as_inputs):
        kept = keep_initializers_as_inputs
        program.save(f, keep_initializers_as_inputs=kept, external_data=None if external_data else False)
    if verbose:
        print(describe_export(result))  # noqa: T201 - asked for
    wanted = Artifacts(folder=artifacts_dir, report=report, profile=profile, program=dump_exported_program)
    wanted.write(result, times, own_program)
    return program


def _is_program(model: Any) -> TypeGuard[torch.export.ExportedProgram]:
    import torch

    return isinstance(model, torch.export.ExportedProgram)


def _split(args: Any, kwargs: dict[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """torch's rule: without kwargs, a dict at the end of args is the keyword arguments."""
    import torch

    positional = (args,) if isinstance(args, torch.Tensor) or not isinstance(args, (tuple, list)) else tuple(args)
    if not kwargs and positional and isinstance(positional[-1], dict):
        return positional[:-1], positional[-1]
    return positional, dict(kwargs or {})


def _eval_modes(model: Any) -> tuple[str, ...]:
    """The values of `training` that mean eval mode; PRESERVE does for a model that is in it."""
    return ("None", "EVAL", "False", *(() if getattr(model, "training", False) else ("PRESERVE",)))


def _name(value: Any) -> str:
    return getattr(value, "name", str(value))


def _refuse(**arguments: tuple[Any, Any, str]) -> None:
    for name, (value, honoured, why) in arguments.items():
        if value not in (honoured if isinstance(honoured, tuple) else (honoured,)):
            raise UsageError(not_honoured(name, value, why))


def _warn(**arguments: tuple[Any, Any, str]) -> None:
    for name, (value, usual, instead) in arguments.items():
        if value != usual:
            warnings.warn(f"{name}={value!r} changes nothing in anyshape: {instead}.", NotHonoured, stacklevel=3)
