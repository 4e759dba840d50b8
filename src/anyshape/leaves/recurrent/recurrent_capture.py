"""`torch.lstm`, `gru`, `rnn_tanh` and `rnn_relu`, padded or packed -> one operator of our own for the whole network.

`pack_padded_sequence` gives tensors whose sizes depend on values. They are recorded as such, so whatever the user does
with them is right; but a recurrent network that takes them in, or `pad_packed_sequence`, goes straight to the padded
tensor, and the packed one, unused, disappears from the file.

torch.nn's own checks of packed sequences pass without freezing a size: `RNNBase.check_forward_args` asks for
`int(batch_sizes[0])`, and an int cannot be symbolic. There, and only there, the number is replaced by a placeholder, and the
size that it is then compared with by the same placeholder, once the two are known to be equal. Anyone else who asks for the int
gets it, and with it a guard on the number of sequences.
"""

# mypy: disable-error-code="no-untyped-call"
# torch has functions without types.

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn import LSTM, RNNBase
from torch.nn.utils.rnn import pad_packed_sequence
from torch.utils.weak import WeakTensorKeyDictionary

from anyshape.findings import Finding, PromiseBroken
from anyshape.intercept.real_numbers import whole_number
from anyshape.leaves.recurrent import recurrent
from anyshape.leaves.recurrent.recurrent import pack, pad, repack, unpack
from anyshape.modules.user_code import is_ours, source_of_running_code

_OPERATORS = {
    "lstm": recurrent.lstm,
    "gru": recurrent.gru,
    "rnn_tanh": recurrent.rnn_tanh,
    "rnn_relu": recurrent.rnn_relu,
}
_NETWORK = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", *_NETWORK, "batch_first")
_PACKED = ("data", "batch_sizes", *_NETWORK)
_PLACEHOLDER = -1
"""No size is negative, so a placeholder that went astray could not be taken for one."""
_ASKING: tuple[CodeType, ...] = (RNNBase.get_expected_hidden_size.__code__, LSTM.get_expected_cell_size.__code__)
_COMPARING: tuple[CodeType, ...] = (RNNBase.check_hidden_size.__code__,)
_FACTORIES = (torch.zeros, torch.ones, torch.empty, torch.full, torch.rand, torch.randn)


class RecurrentNetworks:
    """Replacements of the four functions. Packed input goes through `sequences`."""

    def __init__(self, sequences: PackedSequences) -> None:
        self._sequences = sequences

    def replacements(self) -> dict[Any, Callable[..., Any]]:
        return {getattr(torch, name): self._replace for name in _OPERATORS}

    def _replace(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        name = func.__name__
        given = _bind(args, kwargs)
        if given["train"] and given["dropout"] > 0 and given["num_layers"] > 1:
            raise PromiseBroken(_random_network(name))
        if "batch_sizes" not in given:
            return _call_padded(name, given)
        sequence = self._sequences.find(given["data"], given["batch_sizes"])
        output, *states = _call(name, sequence.padded, sequence.batch.lengths, given)
        return self._sequences.make_packed(output, given["data"], sequence.batch), *states


def _call_padded(name: str, given: Mapping[str, Any]) -> tuple[Tensor, ...]:
    if not given["batch_first"]:
        return _call(name, given["input"], None, given)
    output, *states = _call(name, given["input"].transpose(0, 1), None, given)
    return output.transpose(0, 1), *states


def _call(name: str, inputs: Tensor, lengths: Tensor | None, given: Mapping[str, Any]) -> tuple[Tensor, ...]:
    states: Sequence[Tensor] = given["hx"] if name == "lstm" else (given["hx"],)
    outputs: tuple[Tensor, ...] = _OPERATORS[name](
        inputs,
        *states,
        list(given["params"]),
        lengths,
        given["has_biases"],
        given["num_layers"],
        given["bidirectional"],
    )
    return outputs


def _bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name. The padded form has `has_biases` where the packed one still has its weights."""
    is_packed = bool({"data", "batch_sizes"} & kwargs.keys()) or (len(args) > 3 and not isinstance(args[3], bool))
    return {**dict(zip(_PACKED if is_packed else _PADDED, args, strict=False)), **kwargs}


def _random_network(name: str) -> Finding:
    return Finding(
        code="AS151",
        name="recurrent-dropout",
        what=f"a recurrent network ({name}) is called in training mode with dropout: its answers are random.",
        where=source_of_running_code(),
        why="no file can agree with a module that does not agree with itself.",
        fix="call model.eval(), and leave the network's training flag alone in forward.",
    )


class SizeCheck:
    """What torch.nn asked for last: the number of sequences that the next state's size is compared with."""

    def __init__(self) -> None:
        self._count: int | SymInt | None = None

    def is_asking(self) -> bool:
        """Whether the running call is torch.nn's, asking for the number of sequences in packed input."""
        return _calling_frame().f_code in _ASKING

    def as_int(self, count: int | SymInt) -> int:
        """`int(batch_sizes[0])`."""
        if not self.is_asking():
            return int(count)
        self._count = count
        return _PLACEHOLDER

    def size(self, state: Tensor) -> tuple[int | SymInt, ...] | None:
        """`state.size()` as the check must see it; None outside of a check of packed input."""
        frame = _calling_frame()
        if frame.f_code not in _COMPARING or self._count is None or state.dim() != 3:
            return None
        compared = frame.f_locals["expected_hidden_size"][1]
        if not isinstance(compared, int) or compared != _PLACEHOLDER:
            return None
        layers, batch, features = state.shape
        # Adds the guard that the comparison itself would have added; unequal sizes go on to torch.nn's own message.
        return (layers, _PLACEHOLDER, features) if batch == self._count else (layers, batch, features)


def promise_total_length(longest: int | SymInt) -> None:
    """`pad_packed_sequence` refuses a total length below the longest sequence: what passes there is enough."""
    frame = _calling_frame()
    if frame.f_code is pad_packed_sequence.__code__:
        total_length = frame.f_locals["total_length"]
        if total_length is not None:
            torch._check(longest <= total_length)


def _calling_frame() -> FrameType:
    """The Python function that made the torch call, behind all modes."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_name == "__torch_function__" or is_ours(frame)):
        frame = frame.f_back
    return frame


@dataclass(frozen=True)
class Batch:
    """Sequences packed together: the length of each, in packed order, and the steps that they were padded to."""

    lengths: Tensor
    steps: int | SymInt

    @property
    def size(self) -> int | SymInt:
        return self.lengths.shape[0]


@dataclass(frozen=True)
class PaddedSource:
    """What stands behind packed data: the padded tensor, time-major. `version` is the data's when it was made."""

    padded: Tensor
    batch: Batch
    version: int | None = None


class PackedSequences:
    """All packed sequences of one capture, known by the tensors that torch.nn hands around."""

    def __init__(self) -> None:
        self._by_data = WeakTensorKeyDictionary()
        self._by_batch_sizes = WeakTensorKeyDictionary()
        self._batch_counts = WeakTensorKeyDictionary()
        self._check = SizeCheck()

    def replacements(self) -> dict[Any, Callable[..., Any]]:
        functions = torch._VF  # type: ignore[attr-defined]
        return {
            functions._pack_padded_sequence: self._pack,
            functions._pad_packed_sequence: self._pad,
            Tensor.__getitem__: self._index,
            Tensor.__int__: self._as_int,
            Tensor.item: self._item,
            whole_number: self._item,
            Tensor.size: self._size,
            **dict.fromkeys(_FACTORIES, self._create),
        }

    def find(self, data: Tensor, batch_sizes: Tensor) -> PaddedSource:
        """The padded tensor behind packed data. Data that the user made or changed is padded anew."""
        batch = self._by_batch_sizes.get(batch_sizes)
        if batch is None:
            raise PromiseBroken(_unknown_origin())
        known = self._by_data.get(data)
        if known is not None and known.batch is batch and known.version == _version(data) is not None:
            return known  # type: ignore[no-any-return]
        return PaddedSource(unpack(data, batch.lengths, batch.steps), batch)

    def make_packed(self, padded: Tensor, like: Tensor, batch: Batch) -> Tensor:
        """`padded` in packed form, with as many rows as `like`."""
        data: Tensor = repack(padded, batch.lengths, like.shape[0])
        self._by_data[data] = PaddedSource(padded, batch, _version(data))
        return data

    def _pack(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        inputs, lengths, batch_first = _by_name(("input", "lengths", "batch_first"), args, kwargs)
        # Copies: packing is one, so what the user writes into his tensors afterwards must not be seen through it.
        padded = (inputs.transpose(0, 1) if batch_first else inputs).clone()
        lengths = lengths.clone()
        data, batch_sizes = pack(padded, lengths)
        steps = padded.shape[0]
        torch._check(batch_sizes.shape[0] <= steps)
        batch = Batch(lengths, steps)
        self._by_batch_sizes[batch_sizes] = batch
        self._by_data[data] = PaddedSource(padded, batch, _version(data))
        return data, batch_sizes

    def _pad(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        names = ("data", "batch_sizes", "batch_first", "padding_value", "total_length")
        data, batch_sizes, batch_first, value, steps = _by_name(names, args, kwargs)
        sequence = self.find(data, batch_sizes)
        if statically_known_true(steps == sequence.padded.shape[0]):
            steps = None
        output = pad(sequence.padded, sequence.batch.lengths, float(value), steps)
        return output.transpose(0, 1) if batch_first else output, sequence.batch.lengths.clone()

    def _index(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        batch = self._by_batch_sizes.get(args[0])
        if batch is not None and isinstance(args[1], int) and args[1] == 0:
            self._batch_counts[result] = batch.size  # every sequence has a first step
        return result

    def _item(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        count = self._batch_counts.get(args[0])
        return func(*args, **kwargs) if count is None else count

    def _as_int(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        count = self._batch_counts.get(args[0])
        if count is not None:
            return self._check.as_int(count)
        if self._check.is_asking():
            raise PromiseBroken(_unknown_origin())
        return func(*args, **kwargs)

    def _size(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if args[0] in self._by_batch_sizes:
            promise_total_length(args[0].shape[0])
        result = self._check.size(args[0]) if len(args) == 1 and not kwargs else None
        return func(*args, **kwargs) if result is None else result

    def _create(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A tensor with the number of sequences among its sizes, told as a tensor: `zeros(2, batch_sizes[0], 6)`."""
        return func(*map(self._as_size, args), **kwargs)

    def _as_size(self, argument: Any) -> Any:
        if isinstance(argument, (tuple, list)) and any(isinstance(item, Tensor) for item in argument):
            return [self._as_size(item) for item in argument]
        count = self._batch_counts.get(argument) if isinstance(argument, Tensor) else None
        return argument if count is None else count


def _version(tensor: Tensor) -> int | None:
    """How often the tensor, or a view of it, was written to; None where torch does not count."""
    return None if tensor.is_inference() else tensor._version


def _by_name(names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return [given[name] for name in names]


def _unknown_origin() -> Finding:
    return Finding(
        code="AS152",
        name="packed-sequence-from-outside",
        what="a packed sequence is used that was not packed inside the model.",
        where=source_of_running_code(),
        why="its lengths are hidden in batch_sizes, from which the number of sequences cannot be told as a size.",
        fix="give the model the padded tensor and its lengths, and call pack_padded_sequence in forward.",
    )
