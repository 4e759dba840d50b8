"""Ten families of transformers as folders with random weights: small, and otherwise built as the real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
_TEXT = {**_SMALL, "vocab_size": 99}
_TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_GROUPED = {**_TEXT, **_TOKENS, "num_key_value_heads": 2, "max_position_embeddings": 64}
_WHISPER = {
    **{f"{side}_layers": 2 for side in ("encoder", "decoder")},
    **{f"{side}_attention_heads": 4 for side in ("encoder", "decoder")},
    **{f"{side}_ffn_dim": 37 for side in ("encoder", "decoder")},
}


def _clip() -> Any:
    text = {**_TEXT, "max_position_embeddings": 20, "bos_token_id": 97, "eos_token_id": 98}
    vision = {**_SMALL, "image_size": 30, "patch_size": 10}
    return transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)


FAMILIES: dict[str, tuple[str, Callable[[], Any]]] = {
    "bert": ("BertModel", lambda: transformers.BertConfig(**_TEXT, max_position_embeddings=64)),
    "roberta": (
        "RobertaForSequenceClassification",
        lambda: transformers.RobertaConfig(**_TEXT, max_position_embeddings=66, num_labels=3, type_vocab_size=1),
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        lambda: transformers.GPT2Config(
            vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2
        ),
    ),
    "llama": ("LlamaForCausalLM", lambda: transformers.LlamaConfig(**_GROUPED)),
    "qwen": ("Qwen2ForCausalLM", lambda: transformers.Qwen2Config(**_GROUPED)),
    "t5": (
        "T5ForConditionalGeneration",
        lambda: transformers.T5Config(
            vocab_size=99, d_model=32, num_layers=2, num_heads=4, d_ff=37, d_kv=8, decoder_start_token_id=0
        ),
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        lambda: transformers.WhisperConfig(
            vocab_size=99,
            d_model=32,
            num_mel_bins=8,
            max_source_positions=30,
            max_target_positions=20,
            decoder_start_token_id=1,
            **_WHISPER,
            **_TOKENS,
        ),
    ),
    "vit": (
        "ViTForImageClassification",
        lambda: transformers.ViTConfig(**_SMALL, image_size=30, patch_size=10, num_labels=3),
    ),
    "clip": ("CLIPModel", _clip),
    "wav2vec2": (
        "Wav2Vec2ForCTC",
        lambda: transformers.Wav2Vec2Config(
            **_SMALL,
            vocab_size=32,
            conv_dim=(16, 16, 16),
            conv_stride=(4, 4, 4),
            conv_kernel=(8, 8, 8),
            num_feat_extract_layers=3,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=2,
        ),
    ),
}
"""Name -> the class, and its config."""


def write_family(name: str, folder: Path) -> Path:
    """The folder of a family: config, generation config and weights, the same in every run."""
    architecture, make = FAMILIES[name]
    config = make()
    config.architectures = [architecture]
    torch.manual_seed(0)
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # random weights of the libraries are so small that all answers are alike
            if parameter.dim() > 1:
                parameter.mul_(8)
    model.save_pretrained(folder / name)
    return folder / name
