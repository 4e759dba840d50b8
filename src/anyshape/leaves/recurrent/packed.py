"""Packed sequences as operators: `anyshape::pack`, `repack`, `unpack` and `pad`.

A packed sequence is a padded one, time-major, with its lengths: sorted downwards, at least 1, at most the number of
steps. Packed rows stand in torch's own order: all sequences' first steps, then all second steps, and so on.
"""

# mypy: disable-error-code="no-untyped-call"
# torch has functions without types.

from __future__ import annotations

import torch
from torch import Tensor

from anyshape.leaves.define import define


def _counts(steps: int, lengths: Tensor) -> Tensor:
    """Which steps of which sequences count: bool[steps, batch]."""
    return torch.arange(steps, device=lengths.device)[:, None] < lengths


def _pack(inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    data, batch_sizes = torch._VF._pack_padded_sequence(inputs, lengths, False)  # type: ignore[attr-defined]
    return data, batch_sizes


def _fake_pack(inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    torch._check(lengths.shape[0] == inputs.shape[1], lambda: "as many lengths as sequences")
    context = torch.library.get_ctx()
    rows, steps = context.new_dynamic_size(min=1), context.new_dynamic_size(min=1)
    return inputs.new_empty((rows, *inputs.shape[2:])), lengths.new_empty((steps,), dtype=torch.int64)


def _repack(inputs: Tensor, lengths: Tensor, rows: int) -> Tensor:
    return inputs[_counts(inputs.shape[0], lengths)]


def _fake_repack(inputs: Tensor, lengths: Tensor, rows: int) -> Tensor:
    return inputs.new_empty((rows, *inputs.shape[2:]))


def _unpack(data: Tensor, lengths: Tensor, steps: int) -> Tensor:
    padded = data.new_zeros((steps, lengths.shape[0], *data.shape[1:]))
    padded[_counts(steps, lengths)] = data
    return padded


def _fake_unpack(data: Tensor, lengths: Tensor, steps: int) -> Tensor:
    return data.new_empty((steps, lengths.shape[0], *data.shape[1:]))


def _pad(inputs: Tensor, lengths: Tensor, value: float, steps: int | None) -> Tensor:
    wanted = inputs.shape[0] if steps is None else steps
    padded = inputs.new_full((wanted, *inputs.shape[1:]), value)
    known = min(wanted, inputs.shape[0])
    counts = _counts(known, lengths)
    padded[:known][counts] = inputs[:known][counts]
    return padded


def _fake_pad(inputs: Tensor, lengths: Tensor, value: float, steps: int | None) -> Tensor:
    return inputs.new_empty((inputs.shape[0] if steps is None else steps, *inputs.shape[1:]))


pack = define("pack", "(Tensor inputs, Tensor lengths) -> (Tensor, Tensor)", _pack, _fake_pack)
repack = define("repack", "(Tensor inputs, Tensor lengths, SymInt rows) -> Tensor", _repack, _fake_repack)
unpack = define("unpack", "(Tensor data, Tensor lengths, SymInt steps) -> Tensor", _unpack, _fake_unpack)
pad = define("pad", "(Tensor inputs, Tensor lengths, float value, SymInt? steps) -> Tensor", _pad, _fake_pad)
