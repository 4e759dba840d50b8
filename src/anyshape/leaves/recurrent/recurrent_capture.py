"""`torch.lstm`, `gru`, `rnn_tanh` and `rnn_relu`, padded or packed -> one operator of our own for the whole network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from anyshape.findings import Finding, PromiseBroken
from anyshape.leaves.recurrent import recurrent
from anyshape.leaves.recurrent.packed_capture import PackedSequences
from anyshape.modules.user_code import source_of_running_code

_OPERATORS = {
    "lstm": recurrent.lstm,
    "gru": recurrent.gru,
    "rnn_tanh": recurrent.rnn_tanh,
    "rnn_relu": recurrent.rnn_relu,
}
_NETWORK = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", *_NETWORK, "batch_first")
_PACKED = ("data", "batch_sizes", *_NETWORK)


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
