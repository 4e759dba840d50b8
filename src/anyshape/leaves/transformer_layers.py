"""nn.Transformer's layers during capture, with the masks as torch's fused kernels apply them in eager mode.

In eval mode without gradients, eager runs nn.TransformerEncoder, its layers and nn.MultiheadAttention in fused kernels that
no capture can follow. With a mask, their results differ from those of the unfused code that a capture sees (torch 2.13):

- nn.TransformerEncoder with a left-aligned padding mask returns zeros at padded positions;
- a layer takes every nonzero element of a float mask for "masked", and a row with all keys masked is NaN;
- nn.MultiheadAttention without weights: such a row is NaN, too, where the unfused code has 0.

Calls without a mask are left alone: there the two agree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def masks_as_in_eager(module: nn.Module) -> Iterator[None]:
    """Replace `forward` of torch's own transformer layers inside `module`, in this thread, until the end of the block."""
    with ExitStack() as stack:
        for inner in module.modules() if torch.backends.mha.get_fastpath_enabled() else ():
            replacement = _REPLACEMENTS.get(getattr(type(inner), "forward", None))
            if replacement is not None and "forward" not in vars(inner):
                stack.enter_context(_replaced(inner, partial(replacement, inner)))
        yield


@contextmanager
def _replaced(inner: nn.Module, replacement: Callable[..., Any]) -> Iterator[None]:
    thread, own = threading.get_ident(), inner.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return (replacement if threading.get_ident() == thread else own)(*args, **kwargs)

    vars(inner)["forward"] = forward
    try:
        yield
    finally:
        vars(inner).pop("forward", None)


def _encode(
    encoder: nn.TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    """nn.TransformerEncoder.forward; where eager packs the rows into a nested tensor, padded positions become zeros."""
    nests = getattr(encoder, "use_nested_tensor", False) and mask is None and src_key_padding_mask is not None
    if not nests or not all(_is_fused(layer, src) for layer in encoder.layers):
        return type(encoder).forward(encoder, src, mask, src_key_padding_mask, is_causal)
    padded = _is_masked(src_key_padding_mask)
    if getattr(encoder, "mask_check", True):
        is_aligned = (padded.to(torch.int32).diff(dim=1) >= 0).all()
        left_out = padded & is_aligned
    else:  # eager takes as many leading positions as the row has unmasked ones
        kept = (~padded).sum(1, keepdim=True)
        left_out = padded = torch.arange(src.shape[1], device=src.device) >= kept
    output = src
    for layer in encoder.layers:
        output = layer(output, src_key_padding_mask=padded)
    output = output.masked_fill(left_out.unsqueeze(-1), 0.0)
    return output if encoder.norm is None else encoder.norm(output)


def _encode_layer(
    layer: nn.TransformerEncoderLayer,
    src: Tensor,
    src_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """nn.TransformerEncoderLayer.forward; where eager runs the fused kernel with a mask, as that kernel computes."""
    if (src_mask is None and src_key_padding_mask is None) or not _is_fused(layer, src):
        return type(layer).forward(layer, src, src_mask, src_key_padding_mask, is_causal)

    def attend(x: Tensor) -> Tensor:
        masks = {"attn_mask": _is_masked(src_mask), "key_padding_mask": _is_masked(src_key_padding_mask)}
        return layer.dropout1(layer.self_attn(x, x, x, **masks, need_weights=True)[0])

    if layer.norm_first:
        x = src + attend(layer.norm1(src))
        return x + layer._ff_block(layer.norm2(x))
    x = layer.norm1(src + attend(src))
    return layer.norm2(x + layer._ff_block(x))


def _attend(
    attention: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """nn.MultiheadAttention.forward; where eager runs the fused kernel, masked rows are those of the form with weights."""
    is_self = query is key and key is value and query.dim() == 3
    masks = [mask for mask in (key_padding_mask, attn_mask) if mask is not None]
    is_fused = is_self and _is_fused_attention(attention) and query.dtype == attention.in_proj_weight.dtype
    hides_weights = bool(masks) and not need_weights and not any(mask.is_floating_point() for mask in masks)
    outputs, weights = type(attention).forward(
        attention,
        query,
        key,
        value,
        key_padding_mask,
        need_weights or (is_fused and hides_weights),
        attn_mask,
        average_attn_weights,
        is_causal,
    )
    return outputs, weights if need_weights else None


def _is_masked(mask: Any) -> Any:
    """A fused kernel reads every nonzero element of a mask as masked."""
    return mask if mask is None or mask.dtype is torch.bool else mask != 0


def _is_fused(layer: Any, src: Tensor) -> bool:
    """Whether eager runs the whole layer in one kernel: the conditions of nn.TransformerEncoderLayer.forward."""
    if type(layer).forward is not nn.TransformerEncoderLayer.forward or layer.training or src.dim() != 3:
        return False
    has_hooks = any(inner._forward_hooks or inner._forward_pre_hooks for inner in layer.modules())
    is_usual = bool(layer.activation_relu_or_gelu) and layer.norm1.eps == layer.norm2.eps
    return is_usual and not has_hooks and _is_fused_attention(layer.self_attn)


def _is_fused_attention(attention: Any) -> bool:
    """The conditions of nn.MultiheadAttention.forward that no argument decides."""
    return (
        not torch.is_autocast_enabled()
        and not attention.training
        and attention.batch_first
        and attention.in_proj_bias is not None
        and attention._qkv_same_embed_dim
        and attention.num_heads % 2 == 0
        and attention.bias_k is None
        and attention.bias_v is None
        and not attention.add_zero_attn
    )


_REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    nn.TransformerEncoder.forward: _encode,
    nn.TransformerEncoderLayer.forward: _encode_layer,
    nn.MultiheadAttention.forward: _attend,
}
