"""torch functions that check values or choose a kernel by them: the same without the check, nn.Transformer's layers with
their masks.

`cov` and `corrcoef` ask whether there are enough observations, `one_hot` whether all classes are in range,
`gaussian_nll_loss` whether a variance is negative; a trace has no values to check (seen to torch 2.13). Where eager
would raise for what it sees, the file answers.

`nn.Transformer` and its stacks compare a mask with the causal one, value by value, and hand the result on as a hint; with
the hint false the mask itself is used, and the result is the same (torch says so of `is_causal`, to 2.13).

In eval mode without gradients, eager runs nn.TransformerEncoder, its layers and nn.MultiheadAttention in fused kernels that
no capture can follow. With a mask, their results differ from those of the unfused code that a capture sees (torch 2.13):

- nn.TransformerEncoder with a left-aligned padding mask returns zeros at padded positions, and raises if all are padded;
- a layer takes every nonzero element of a float mask for "masked", and a row with all keys masked is NaN;
- nn.MultiheadAttention without weights: such a row is NaN, too, where the unfused code has 0.

Calls without a mask are left alone: there the two agree.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymInt, Tensor, nn
from torch.nn.modules import transformer

from anyshape.intercept import value_checks

Function = Callable[..., Any]
_ASKING = transformer._detect_is_causal_mask.__code__


def _without_check() -> dict[Any, Callable[..., Any]]:
    return {
        torch.cov: _cov,
        Tensor.cov: _cov,
        torch.corrcoef: _corrcoef,
        Tensor.corrcoef: _corrcoef,
        F.one_hot: _one_hot,
        F.gaussian_nll_loss: _gaussian_nll_loss,
    }


def _cov(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x = args[0] if args else kwargs["input"]
    is_weighed = kwargs.get("fweights") is not None or kwargs.get("aweights") is not None
    if is_weighed or not x.is_floating_point() or x.dim() > 2:
        return func(*args, **kwargs)
    return _covariance(x, kwargs.get("correction", 1))


def _covariance(x: Tensor, correction: int) -> Tensor:
    """Rows are variables, columns observations; one variable has a variance without axes."""
    rows = x if x.dim() == 2 else x.reshape(1, -1)
    apart = rows - rows.mean(1, keepdim=True)
    freedom = torch.sym_max(rows.shape[1] - correction, 0)
    # A tensor: Python would not divide by 0.
    products = (apart @ apart.mT) / (torch.zeros((), dtype=x.dtype, device=x.device) + freedom)
    return products.squeeze() if x.dim() == 2 else products.reshape(())


def _corrcoef(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x = args[0] if args else kwargs["input"]
    if not x.is_floating_point() or x.dim() > 2:
        return func(*args, **kwargs)
    products = _covariance(x, 1)
    if products.dim() == 0:
        return products / products
    deviation = products.diagonal().sqrt()
    return (products / deviation[:, None] / deviation[None, :]).clamp(-1, 1)


def _gaussian_nll_loss(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Without the question whether a variance is negative; such a one is clamped."""
    usual = {"full": False, "eps": 1e-6, "reduction": "mean"}
    given = {**usual, **kwargs, **dict(zip(("input", "target", "var", *usual), args, strict=False))}
    x, var, reduction = given["input"], given["var"], given["reduction"]
    if not isinstance(var, Tensor) or x.dim() - var.dim() not in (0, 1) or reduction not in ("none", "mean", "sum"):
        return func(*args, **kwargs)
    var = (var if var.dim() == x.dim() else var.unsqueeze(-1)).clamp(min=given["eps"])
    loss = 0.5 * (torch.log(var) + (x - given["target"]) ** 2 / var)
    loss = loss + 0.5 * math.log(2 * math.pi) if given["full"] else loss
    return {"none": loss.clone, "mean": loss.mean, "sum": loss.sum}[reduction]()


def _one_hot(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    x = args[0] if args else kwargs.get("tensor", kwargs.get("input"))
    if isinstance(classes, int) and classes < 1:  # as many as the greatest value says
        if classes != -1 or not isinstance(x.numel(), SymInt):
            return func(*args, **kwargs)
        classes = x.max().item() + 1
        torch._check(classes >= 0)
    return (x.unsqueeze(-1) == torch.arange(classes, device=x.device)).to(torch.int64)


def _bool(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return False if _is_asked_for_a_hint() else func(*args, **kwargs)


def _is_asked_for_a_hint() -> bool:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename != _ASKING.co_filename:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("anyshape", "torch"):
            return False
        frame = frame.f_back
    return frame.f_code is _ASKING


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
    output = output.masked_fill(_refusing_all(left_out).unsqueeze(-1), 0.0)
    return output if encoder.norm is None else encoder.norm(output)


def _refusing_all(left_out: Tensor) -> Tensor:
    """The mask; a program that runs this raises where all positions are left out, as eager does of rows without any."""
    none = torch.zeros(1, dtype=torch.bool, device=left_out.device)
    return left_out | none.index_select(0, left_out.all().reshape(1).to(torch.int64))


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


def replacements() -> dict[Any, Callable[..., Any]]:
    return {**_without_check(), Tensor.__bool__: _bool, **value_checks.replacements()}
