"""Our own operators in ONNX: the other half of `anyshape.operators`.

`leaf_translations` goes into torch.onnx's registry. `fold_leaf_weights` then turns the weights that ONNX wants in
another layout into initializers, whatever their size, and `admit_empty_batch` is for domains that have a size of 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir
    from torch._ops import OpOverload


def leaf_translations() -> dict[OpOverload, Callable[..., Any]]:
    """What `ONNXRegistry.register_op(target, function)` takes, for every operator of ours."""
    from anyshape.operators import packed, recurrent
    from anyshape.translate.leaves.packed_nodes import translate_pack, translate_pad, translate_repack, translate_unpack
    from anyshape.translate.leaves.recurrent_nodes import (
        translate_gru,
        translate_lstm,
        translate_rnn_relu,
        translate_rnn_tanh,
    )

    translations: dict[OpOverload, Callable[..., Any]] = {
        recurrent.lstm: translate_lstm,
        recurrent.gru: translate_gru,
        recurrent.rnn_tanh: translate_rnn_tanh,
        recurrent.rnn_relu: translate_rnn_relu,
        packed.pack: translate_pack,
        packed.repack: translate_repack,
        packed.unpack: translate_unpack,
        packed.pad: translate_pad,
    }
    return {target: _without_types(translation) for target, translation in translations.items()}


def fold_leaf_weights(model: ir.Model) -> int:
    """Make initializers of what translations compute from weights alone, before optimizing. Returns how many."""
    from anyshape.translate.leaves.folded_weights import fold_weights

    return fold_weights(model)


def admit_empty_batch(model: ir.Model) -> int:
    """Keep recurrent nodes right at batch size 0, where onnxruntime ends the process. Returns how many."""
    from anyshape.translate.leaves.empty import admit_empty_batch

    return admit_empty_batch(model)


def _without_types(translation: Callable[..., Any]) -> Callable[..., Any]:
    # torch.onnx would read the annotations as ONNX types, and warn that it cannot.
    return lambda *args: translation(*args)


__all__ = ["admit_empty_batch", "fold_leaf_weights", "leaf_translations"]
