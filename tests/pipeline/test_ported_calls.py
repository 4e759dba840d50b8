"""Typical calls of torch.onnx.export in public code, with `anyshape.compat` in the place of `torch.onnx`.

Each function writes in our own words what the named source does, with a small model. It gets the module whose `export` it
calls, and returns the file, the model and a call at another size.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.export import Dim

from anyshape import compat


class Ported(NamedTuple):
    """What a call wrote, and what to compare it with."""

    file: Path | bytes
    model: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}


def _image_model() -> nn.Module:
    parts = (nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*parts, nn.Linear(4, 5)).eval()


def classifier_of_the_tutorial(onnx: Any, folder: Path) -> Ported:
    """github.com/Jas000n/covid_ct, convertPth2Onnx.py: the arguments of PyTorch's own tutorial, at opset 11."""
    model = _image_model()
    x = torch.randn(1, 3, 16, 16, requires_grad=True)
    batch = {0: "batch_size"}
    onnx.export(
        model,
        x,
        str(folder / "m.onnx"),
        export_params=True,
        opset_version=11,
        do_constant_folding=True,
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": batch, "output": batch},
    )
    return Ported(folder / "m.onnx", model, (torch.randn(4, 3, 16, 16),))


def labels_of_outputs_only(onnx: Any, folder: Path) -> Ported:
    """github.com/bronzels/shouxieai, onnx/dynamic_axes.py: an output has labels that no input has."""
    model = nn.Conv2d(3, 3, 3)
    axes = {"in": {2: "rows", 3: "columns"}, "out": {2: "rows_out", 3: "columns_out"}}
    onnx.export(
        model, torch.rand(1, 3, 10, 10), folder / "m.onnx", input_names=["in"], output_names=["out"], dynamic_axes=axes
    )
    return Ported(folder / "m.onnx", model, (torch.rand(1, 3, 17, 12),))


class Points(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(2, 8)

    def forward(self, embedding, coords, labels, has_mask):
        points = self.mix(coords) * labels.unsqueeze(-1)
        return points @ embedding.flatten(2).transpose(1, 2).mean(1, keepdim=True).mT, has_mask * 2


def prompts_of_a_decoder(onnx: Any, folder: Path) -> Ported:
    """github.com/facebookresearch/segment-anything, scripts/export_onnx_model.py: names and values from one dict."""
    model = Points()
    example = {
        "embedding": torch.randn(1, 8, 4, 4),
        "coords": torch.randn(1, 5, 2),
        "labels": torch.randint(0, 4, (1, 5)).float(),
        "has_mask": torch.tensor([1.0]),
    }
    points = {1: "num_points"}
    with warnings.catch_warnings(), (folder / "m.onnx").open("wb") as stream:
        warnings.filterwarnings("ignore", category=UserWarning)
        onnx.export(
            model,
            tuple(example.values()),
            stream,
            export_params=True,
            verbose=False,
            opset_version=17,
            do_constant_folding=True,
            input_names=list(example),
            output_names=["masks", "flags"],
            dynamic_axes={"coords": points, "labels": points},
        )
    other = {**example, "coords": torch.randn(1, 2, 2), "labels": torch.ones(1, 2)}
    return Ported(folder / "m.onnx", model, tuple(other.values()))


class Step(nn.Module):
    def forward(self, tokens, keys, values, offset):
        x = torch.nn.functional.one_hot(tokens, 8).float()
        position = torch.arange(tokens.shape[1]) + offset[0]
        return (x * position[:, None]) @ keys[0].mT, keys * 0.5, values + x.sum(1, keepdim=True)


def decoder_with_caches(onnx: Any, folder: Path) -> Ported:
    """github.com/k2-fsa/sherpa-onnx, scripts/whisper/export-onnx.py: one label on axis 0 of an input and axis 1 of others."""

    def call(audio: int, tokens: int) -> tuple[torch.Tensor, ...]:
        caches = (torch.randn(2, audio, 6, 8), torch.randn(2, audio, 1, 8))
        return torch.randint(0, 8, (audio, tokens)), *caches, torch.tensor([2])

    onnx.export(
        Step(),
        call(2, 3),
        str(folder / "m.onnx"),
        opset_version=13,
        input_names=["tokens", "in_keys", "in_values", "offset"],
        output_names=["logits", "out_keys", "out_values"],
        dynamic_axes={"tokens": {0: "n_audio", 1: "n_tokens"}, "in_keys": {1: "n_audio"}, "in_values": {1: "n_audio"}},
    )
    return Ported(folder / "m.onnx", Step(), call(3, 1))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        hidden = self.table(input_ids) * attention_mask.unsqueeze(-1)
        return {"last_hidden_state": hidden, "logits": self.head(hidden[:, 0])}


def _text(batch: int, seq: int) -> dict[str, torch.Tensor]:
    return {
        "input_ids": torch.randint(0, 10, (batch, seq)),
        "attention_mask": torch.ones(batch, seq, dtype=torch.int64),
    }


def keywords_as_the_last_positional(onnx: Any, folder: Path) -> Ported:
    """github.com/huggingface/optimum, optimum/exporters/onnx/convert.py: a dict in a tuple is the keyword arguments."""
    model = Encoder().eval()
    both = {0: "batch_size", 1: "sequence_length"}
    with torch.no_grad():
        onnx.export(
            model,
            (_text(2, 4),),
            f=(folder / "m.onnx").as_posix(),
            input_names=["input_ids", "attention_mask"],
            output_names=["last_hidden_state", "logits"],
            dynamic_axes={
                "input_ids": both,
                "attention_mask": both,
                "last_hidden_state": both,
                "logits": {0: "batch_size"},
            },
            do_constant_folding=True,
            opset_version=14,
        )
    return Ported(folder / "m.onnx", model, (), _text(3, 7))


def shared_dims_and_save(onnx: Any, folder: Path) -> Ported:
    """docs.pytorch.org, the tutorials of the exporter: Dims that two inputs share, verify=True, weights in a second file."""
    model = Encoder().eval()
    batch, seq = Dim("batch", min=1, max=64), Dim("seq", min=2, max=512)
    program = onnx.export(
        model,
        (),
        kwargs=_text(2, 4),
        dynamo=True,
        dynamic_shapes={"input_ids": {0: batch, 1: seq}, "attention_mask": {0: batch, 1: seq}},
        opset_version=18,
        optimize=True,
        verify=True,
    )
    program.optimize()
    program.save(str(folder / "m.onnx"), external_data=True)
    return Ported(folder / "m.onnx", model, (), _text(5, 3))


def exported_program_with_report(onnx: Any, folder: Path) -> Ported:
    """github.com/justinchuby, slides on the exporter: an ExportedProgram, report=True, opset 23, save."""
    model = _image_model()
    dims = ({0: Dim("batch", min=2, max=32)},)
    exported = torch.export.export(model, (torch.randn(2, 3, 8, 8),), dynamic_shapes=dims)
    program = onnx.export(exported, report=True, opset_version=23, artifacts_dir=folder)
    program.save(folder / "m.onnx")
    return Ported(folder / "m.onnx", model, (torch.randn(5, 3, 8, 8),))


class Cached(nn.Module):
    def forward(self, input_ids, attention_mask, past_key_values):
        x = torch.nn.functional.one_hot(input_ids, 4).float()[:, None]
        keys, values = past_key_values.update(x, x * 2, 0)
        return (keys * attention_mask[:, None, :, None]).sum(2) + values.sum(2)


def cache_in_the_flat_form(onnx: Any, folder: Path) -> Ported:
    """github.com/sdpython/onnx-diagnostic, its tests: a DynamicCache as a flat list, an axis that is a sum of others."""
    cache_utils = pytest.importorskip("transformers.cache_utils")

    def call(batch: int, past: int, seq: int) -> dict[str, Any]:
        cache = cache_utils.DynamicCache()
        cache.update(torch.randn(batch, 1, past, 4), torch.randn(batch, 1, past, 4), 0)
        ids = torch.randint(0, 4, (batch, seq))
        return {"input_ids": ids, "attention_mask": torch.ones(batch, past + seq), "past_key_values": cache}

    shapes = {
        "input_ids": {0: "batch", 1: "seq_len"},
        "attention_mask": {0: "batch", 1: "past_len+seq_len"},
        "past_key_values": [{0: "batch", 2: "past_len"}, {0: "batch", 2: "past_len"}],
    }
    onnx.export(Cached(), (), folder / "m.onnx", kwargs=call(2, 3, 2), dynamic_shapes=shapes, opset_version=22)
    return Ported(folder / "m.onnx", Cached(), (), call(1, 5, 4))


def weights_as_inputs(onnx: Any, folder: Path) -> Ported:
    """github.com/open-mmlab/mmdeploy, tests of its backends: keep_initializers_as_inputs=True at opset 11."""
    model = _image_model()
    onnx.export(
        model,
        torch.rand(1, 3, 16, 12),
        folder / "m.onnx",
        input_names=["input"],
        output_names=["output"],
        keep_initializers_as_inputs=True,
        do_constant_folding=True,
        verbose=False,
        opset_version=11,
        dynamic_axes={"input": {0: "batch", 2: "width", 3: "height"}, "output": {0: "batch"}},
    )
    return Ported(folder / "m.onnx", model, (torch.rand(2, 3, 9, 20),))


def mode_of_the_model(onnx: Any, folder: Path) -> Ported:
    """github.com/leondgarse/keras_cv_attention_models: everything by keyword, TrainingMode.PRESERVE of a model in eval mode."""
    model = _image_model()
    onnx.export(
        model=model,
        args=(torch.randn(1, 3, 8, 8),),
        f=str(folder / "m.onnx"),
        verbose=False,
        keep_initializers_as_inputs=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        opset_version=13,
    )
    return Ported(folder / "m.onnx", model, (torch.randn(1, 3, 8, 8),))


def bytes_in_memory(onnx: Any, folder: Path) -> Ported:
    """github.com/pytorch/vision, test/test_onnx.py: the file goes into a buffer."""
    model = nn.LSTM(4, 3, batch_first=True).eval()
    buffer = io.BytesIO()
    axes = {"x": {0: "batch", 1: "time"}}
    onnx.export(
        model,
        (torch.randn(2, 5, 4),),
        buffer,
        do_constant_folding=True,
        opset_version=16,
        input_names=["x"],
        dynamic_axes=axes,
    )
    return Ported(buffer.getvalue(), model, (torch.randn(3, 2, 4),))


@torch.library.custom_op("ported::twice_sin", mutates_args=())
def twice_sin(x: torch.Tensor) -> torch.Tensor:
    return 2 * torch.sin(x)


@twice_sin.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class UsesOwnOperator(nn.Module):
    def forward(self, x):
        return twice_sin(x) + 1


def own_operator(onnx: Any, folder: Path) -> Ported:
    """github.com/pytorch/pytorch, test/onnx/exporter: a translation of an own operator, and the program saved into a buffer."""
    from onnxscript import opset18 as op

    def translated(x):
        return op.Mul(op.Sin(x), op.CastLike(op.Constant(value_float=2.0), x))

    program = onnx.export(
        UsesOwnOperator(),
        (torch.randn(2, 3),),
        dynamo=True,
        dynamic_shapes=({0: "batch"},),
        custom_translation_table={torch.ops.ported.twice_sin.default: translated},
    )
    buffer = io.BytesIO()
    program.save(buffer)
    return Ported(buffer.getvalue(), UsesOwnOperator(), (torch.randn(5, 3),))


CALLS: tuple[Callable[[Any, Path], Ported], ...] = (
    classifier_of_the_tutorial,
    labels_of_outputs_only,
    prompts_of_a_decoder,
    decoder_with_caches,
    keywords_as_the_last_positional,
    shared_dims_and_save,
    exported_program_with_report,
    cache_in_the_flat_form,
    weights_as_inputs,
    mode_of_the_model,
    bytes_in_memory,
    own_operator,
)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if hasattr(value, "layers"):
        return [tensor for layer in value.layers for tensor in (layer.keys, layer.values)]
    parts = value.values() if isinstance(value, dict) else value
    return [tensor for part in parts for tensor in _tensors(part)]


def _compare(ported: Ported) -> None:
    """The file and the model answer alike at the other size, by onnxruntime alone."""
    source = ported.file if isinstance(ported.file, bytes) else str(ported.file)
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    given = [tensor.detach().numpy().copy() for tensor in _tensors((ported.args, ported.kwargs))]
    feeds = dict(zip([each.name for each in session.get_inputs()], given, strict=True))
    actual = session.run(None, feeds)
    with torch.no_grad():
        expected = [tensor.numpy() for tensor in _tensors(ported.model(*ported.args, **ported.kwargs))]
    for one, other in zip(actual, expected, strict=False):  # a cache that is written into is an output as well
        assert one.shape == other.shape and np.allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.filterwarnings("ignore")
def test_the_call_works_with_another_import_alone(call: Callable[[Any, Path], Ported], tmp_path: Path) -> None:
    _compare(call(compat, tmp_path))


def test_there_are_twelve() -> None:
    assert len(CALLS) == 12 and all("." in (call.__doc__ or "") for call in CALLS)
