"""Recurrent networks, padded or packed, as one operator each: kept whole in a capture, written as ONNX's LSTM, GRU and RNN.

Files, in the order in which data flows:

    recurrent          defines the operators anyshape::lstm, gru, rnn_tanh, rnn_relu; kind, cells and states of a network
    recurrent_capture  torch.lstm and its like, padded or packed -> these operators
    recurrent_nodes    these operators -> ONNX, layer by layer; weights in ONNX's layout
    step               one layer: LSTM, GRU, RNN, or a Scan over steps
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir
    from torch._ops import OpOverload


def replacements() -> dict[Any, Callable[..., Any]]:
    """The functions of torch that are kept whole; packed sequences are known for as long as one capture takes."""
    from anyshape.leaves.recurrent.recurrent_capture import PackedSequences, RecurrentNetworks

    sequences = PackedSequences()
    return {**sequences.replacements(), **RecurrentNetworks(sequences).replacements()}


def translations() -> dict[OpOverload, Callable[..., Any]]:
    """The ONNX nodes of each operator."""
    from anyshape.leaves.recurrent import recurrent
    from anyshape.leaves.recurrent import recurrent_nodes as nodes

    return {
        recurrent.lstm: nodes.translate_lstm,
        recurrent.gru: nodes.translate_gru,
        recurrent.rnn_tanh: nodes.translate_rnn_tanh,
        recurrent.rnn_relu: nodes.translate_rnn_relu,
        recurrent.pack: nodes.translate_pack,
        recurrent.repack: nodes.translate_repack,
        recurrent.unpack: nodes.translate_unpack,
        recurrent.pad: nodes.translate_pad,
    }


def fold_leaf_weights(model: ir.Model) -> int:
    """Make initializers of what translations compute from weights alone, before optimizing. Returns how many."""
    from anyshape.leaves.recurrent.recurrent_nodes import fold_weights

    return fold_weights(model)


def admit_empty_batch(model: ir.Model) -> int:
    """Keep recurrent nodes right at batch size 0, where onnxruntime ends the process. Returns how many."""
    from anyshape.leaves.recurrent.recurrent_nodes import admit_empty_batch

    return admit_empty_batch(model)
