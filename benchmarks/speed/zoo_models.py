"""The models of the benchmark: what people export, built from configs with random weights. Nothing is downloaded.

Each case builds its module, makes inputs at given sizes, and names five sizes at which latency is measured. The first
entry of `sizes` is the smallest; every dim varies among them, which is how the dynamic axes for torch are found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from plain_models import Linear, Recurrent, Reshape, Tagger, UNet
from torch import nn
from wrapped_models import Cached, Logits, one_output

Sizes = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model of the benchmark. `is_large` cases are left out by --small."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[..., tuple[Any, ...]]
    sizes: tuple[Sizes, ...]
    where: tuple[str, ...] = ()
    is_large: bool = False

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.sizes[0])


def _grid(**columns: tuple[int, ...]) -> tuple[Sizes, ...]:
    """_grid(batch=(1, 2), seq=(8, 16))  ->  ({"batch": 1, "seq": 8}, {"batch": 2, "seq": 16})."""
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _tokens(vocabulary: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, shape)


def _masked(vocabulary: int) -> Callable[..., tuple[Any, ...]]:
    def inputs(batch: int = 2, seq: int = 9) -> tuple[Any, ...]:
        return _tokens(vocabulary, batch, seq), torch.ones(batch, seq, dtype=torch.int64)

    return inputs


def _with_cache(vocabulary: int, layers: int, heads: int, width: int) -> Callable[..., tuple[Any, ...]]:
    def inputs(batch: int = 2, seq: int = 3, past: int = 5) -> tuple[Any, ...]:
        pairs = [
            (torch.randn(batch, heads, past, width), torch.randn(batch, heads, past, width)) for _ in range(layers)
        ]
        mask = torch.ones(batch, past + seq, dtype=torch.int64)
        return _tokens(vocabulary, batch, seq), mask, pairs

    return inputs


def _images(height: int, width: int | None = None, channels: int = 3) -> Callable[..., tuple[Any, ...]]:
    width = width or height

    def inputs(batch: int = 2, h: int = height, w: int = width) -> tuple[Any, ...]:
        return (torch.randn(batch, channels, h, w),)

    return inputs


def _squares(side: int) -> Callable[..., tuple[Any, ...]]:
    def inputs(batch: int = 2) -> tuple[Any, ...]:
        return (torch.randn(batch, 3, side, side),)

    return inputs


def _build(model: str, config: str, wrap: Callable[[nn.Module], nn.Module], **settings: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import transformers

        chosen = getattr(transformers, config)(**settings)
        return wrap(fill_zeros(getattr(transformers, model)(chosen)).eval()).eval()

    return build


def fill_zeros(module: nn.Module) -> nn.Module:
    """Small numbers in weights that are all zero or all one at first: exporters would leave these out of the file."""
    with torch.no_grad():
        for each in module.parameters():
            if each.numel() and bool((each == each.reshape(-1)[0]).all()):
                each.add_(torch.randn_like(each) * 0.02)
    return module


def bert(layers: int = 12, width: int = 768, heads: int = 12) -> Callable[[], nn.Module]:
    """BERT; also what the growth with layers is measured on."""
    return _build(
        "BertModel",
        "BertConfig",
        one_output("last_hidden_state", "input_ids", "attention_mask"),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )


def _llama(wrap: Callable[[nn.Module], nn.Module], **settings: Any) -> Callable[[], nn.Module]:
    standard = {
        "vocab_size": 4000,
        "hidden_size": 512,
        "intermediate_size": 1376,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
    }
    return _build("LlamaForCausalLM", "LlamaConfig", wrap, **(standard | settings))


def _detr() -> nn.Module:
    import transformers

    backbone = transformers.ResNetConfig(out_features=["stage4"])
    config = transformers.DetrConfig(
        backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None
    )
    return one_output("logits", "pixel_values")(fill_zeros(transformers.DetrForObjectDetection(config)).eval()).eval()


def _clip_inputs(images: int = 2, texts: int = 3, seq: int = 7) -> tuple[Any, ...]:
    mask = torch.ones(texts, seq, dtype=torch.int64)
    return _tokens(49408, texts, seq), torch.randn(images, 3, 224, 224), mask


def _t5_inputs(batch: int = 2, source: int = 9, target: int = 5) -> tuple[Any, ...]:
    mask = torch.ones(batch, source, dtype=torch.int64)
    return _tokens(32128, batch, source), mask, _tokens(32128, batch, target)


def _audio(batch: int = 2, samples: int = 4000) -> tuple[Any, ...]:
    return (torch.randn(batch, samples),)


_BATCH_SEQ = _grid(batch=(1, 1, 2, 4, 8), seq=(8, 32, 64, 128, 128))
_PAST = _grid(batch=(1, 1, 1, 2, 4), seq=(1, 1, 16, 8, 1), past=(16, 128, 32, 64, 256))
_PICTURES = _grid(batch=(1, 1, 2, 1, 4), h=(64, 128, 160, 256, 224), w=(64, 160, 128, 192, 224))
_BATCHES = _grid(batch=(1, 2, 3, 4, 8))
_CACHE_RULES = ("1 <= batch <= 8", "past >= 0", "past + seq <= 1024")

CASES: tuple[Case, ...] = (
    Case(name="linear", build=Linear, inputs=lambda batch=3: (torch.randn(batch, 10),), sizes=_BATCHES),
    Case(
        name="rnn",
        build=Recurrent,
        inputs=lambda batch=3, seq=5: (torch.randn(batch, seq, 10),),
        sizes=_BATCH_SEQ,
    ),
    Case(name="reshape", build=Reshape, inputs=lambda batch=3: (torch.randn(batch, 10),), sizes=_BATCHES),
    Case(
        name="lstm-tagger", build=Tagger, inputs=lambda batch=3, seq=7: (_tokens(5000, batch, seq),), sizes=_BATCH_SEQ
    ),
    Case(name="bert-base", build=bert(), inputs=_masked(30522), sizes=_BATCH_SEQ),
    Case(
        name="gpt2-cache",
        build=_build("GPT2LMHeadModel", "GPT2Config", Cached),
        inputs=_with_cache(50257, 12, 12, 64),
        sizes=_PAST,
        where=_CACHE_RULES,
    ),
    Case(
        name="llama-cache",
        build=_llama(Cached),
        inputs=_with_cache(4000, 8, 2, 64),
        sizes=_PAST,
        where=_CACHE_RULES,
    ),
    Case(
        name="t5",
        build=_build(
            "T5ForConditionalGeneration",
            "T5Config",
            one_output("logits", "input_ids", "attention_mask", "decoder_input_ids"),
            decoder_start_token_id=0,
        ),
        inputs=_t5_inputs,
        sizes=_grid(batch=(1, 1, 2, 4, 4), source=(8, 32, 64, 64, 128), target=(1, 8, 16, 32, 64)),
    ),
    Case(
        name="vit-base",
        build=_build("ViTModel", "ViTConfig", one_output("last_hidden_state", "pixel_values")),
        inputs=_squares(224),
        sizes=_BATCHES,
        where=("1 <= batch <= 8",),
    ),
    Case(
        name="detr",
        build=_detr,
        inputs=_images(96, 128),
        sizes=_PICTURES,
        where=("1 <= batch <= 4", "32 <= h <= 512", "32 <= w <= 512"),
    ),
    Case(
        name="convnext",
        build=_build("ConvNextModel", "ConvNextConfig", one_output("last_hidden_state", "pixel_values")),
        inputs=_images(64, 96),
        sizes=_PICTURES,
    ),
    Case(
        name="swin",
        build=_build("SwinModel", "SwinConfig", one_output("last_hidden_state", "pixel_values")),
        inputs=_images(224, 256),
        sizes=_grid(batch=(1, 1, 2, 1, 4), h=(224, 256, 224, 288, 224), w=(224, 224, 256, 320, 224)),
        where=("1 <= batch <= 8", "h % 32 == 0", "w % 32 == 0", "224 <= h <= 448", "224 <= w <= 448"),
    ),
    Case(
        name="u-net",
        build=UNet,
        inputs=_images(32, 48),
        sizes=_PICTURES,
        where=("h % 16 == 0", "w % 16 == 0"),
    ),
    Case(
        name="resnet-50",
        build=_build("ResNetModel", "ResNetConfig", one_output("pooler_output", "pixel_values")),
        inputs=_images(64, 96),
        sizes=_PICTURES,
    ),
    Case(
        name="wav2vec2",
        build=_build("Wav2Vec2Model", "Wav2Vec2Config", one_output("last_hidden_state", "input_values")),
        inputs=_audio,
        sizes=_grid(batch=(1, 1, 2, 1, 2), samples=(2000, 8000, 8000, 16000, 32000)),
        where=("1 <= batch <= 8", "400 <= samples <= 160000"),
    ),
    Case(
        name="clip",
        build=_build(
            "CLIPModel", "CLIPConfig", one_output("logits_per_image", "input_ids", "pixel_values", "attention_mask")
        ),
        inputs=_clip_inputs,
        sizes=_grid(images=(1, 1, 2, 4, 1), texts=(1, 2, 4, 8, 16), seq=(8, 16, 32, 16, 77)),
        where=("1 <= images <= 8", "1 <= texts <= 16", "1 <= seq <= 77"),
    ),
    Case(
        name="mixture",
        build=_build(
            "MixtralForCausalLM",
            "MixtralConfig",
            Logits,
            vocab_size=4000,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=2,
            num_local_experts=8,
            num_experts_per_tok=2,
            max_position_embeddings=1024,
        ),
        inputs=_masked(4000),
        sizes=_BATCH_SEQ,
        where=("1 <= batch <= 8", "1 <= seq <= 256"),
    ),
    Case(
        name="bert-float16",
        build=lambda: bert(layers=4)().half(),
        inputs=_masked(30522),
        sizes=_BATCH_SEQ,
        where=("1 <= batch <= 8", "1 <= seq <= 128"),
    ),
    Case(
        name="llama-bfloat16",
        build=lambda: _llama(Logits, num_hidden_layers=4)().bfloat16(),
        inputs=_masked(4000),
        sizes=_BATCH_SEQ,
        where=("1 <= batch <= 8", "1 <= seq <= 128"),
    ),
    Case(
        name="llama-2gb",
        build=_llama(
            Logits,
            vocab_size=32000,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=6,
            num_attention_heads=16,
            num_key_value_heads=16,
        ),
        inputs=_masked(32000),
        sizes=_grid(batch=(1, 1, 1, 2, 2), seq=(1, 8, 32, 16, 32)),
        where=("1 <= batch <= 2", "1 <= seq <= 32"),
        is_large=True,
    ),
)


def find_case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)
