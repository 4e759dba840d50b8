"""Layers and models of transformers: tables, windows, caches, masks, buckets."""

from __future__ import annotations

import contextlib

import torch
from registry import Registry
from torch import nn

import stand_ins

with contextlib.suppress(ImportError):  # it is not installed
    stand_ins.torchvision()

model = Registry("transformers")


def ids(batch=2, seq=9):
    return (torch.randint(2, 50, (batch, seq)),)


def masked(batch=2, seq=9):
    mask = torch.ones(batch, seq, dtype=torch.int64)
    mask[-1, (seq + 1) // 2 :] = 0
    return dict(input_ids=torch.randint(2, 50, (batch, seq)), attention_mask=mask)


@model(
    "relative buckets end at a distance of 128, and the mask is extended",
    masked,
    far={"seq": (127, 128, 129, 140, 300)},
    points=({"batch": 3, "seq": 131},),
)
class T5EncoderBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import T5Config, T5EncoderModel

        self.net = T5EncoderModel(
            T5Config(
                vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, relative_attention_num_buckets=16
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def t5_past(batch=2, seq=1, past=4, memory=5):
    kv = lambda n: torch.randn(batch, 2, n, 8)  # noqa: E731
    return (torch.randint(2, 50, (batch, seq)), kv(past), kv(past), torch.randn(batch, memory, 16))


@model(
    "the bias of the decoder is cut by the positions of the cache; past may be empty",
    t5_past,
    far={"past": (0, 1, 19, 20, 21, 64, 200), "seq": (2, 7, 40)},
    points=({"batch": 1, "seq": 3, "past": 64, "memory": 1},),
)
class T5DecoderCached(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import T5Config
        from transformers.models.t5.modeling_t5 import T5ForConditionalGeneration

        self.net = T5ForConditionalGeneration(
            T5Config(
                vocab_size=60,
                d_model=16,
                d_kv=8,
                d_ff=32,
                num_layers=1,
                num_heads=2,
                relative_attention_num_buckets=8,
                relative_attention_max_distance=20,
            )
        )

    def forward(self, decoder_ids, key, value, memory):
        from transformers import DynamicCache, EncoderDecoderCache

        own = DynamicCache()
        own.update(key, value, 0)
        cache = EncoderDecoderCache(own, DynamicCache())
        out = self.net.decoder(
            input_ids=decoder_ids, encoder_hidden_states=memory, past_key_values=cache, use_cache=True
        )
        return out.last_hidden_state, own.layers[0].keys


@model(
    "block-sparse attention turns into full attention for short inputs, and pads to the block",
    masked,
    far={"seq": (31, 32, 33, 47, 48, 49, 88, 89, 96, 97, 128)},
    points=({"batch": 1, "seq": 112}, {"batch": 3, "seq": 97}),
    unproved=True,
)
class BigBirdSwitch(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BigBirdConfig, BigBirdModel

        self.net = BigBirdModel(
            BigBirdConfig(
                vocab_size=60,
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=512,
                block_size=8,
                num_random_blocks=1,
            ),
            add_pooling_layer=False,
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def with_global(batch=2, seq=9):
    wide = torch.zeros(batch, seq, dtype=torch.int64)
    wide[:, 0] = 1
    return dict(masked(batch, seq), global_attention_mask=wide)


def no_global(batch=2, seq=9):
    return dict(masked(batch, seq), global_attention_mask=torch.zeros(batch, seq, dtype=torch.int64))


@model(
    "whether any token is global decides the code; pads to the window",
    with_global,
    far={"seq": (7, 8, 15, 16, 17, 31, 33, 64)},
    rare={"none global": no_global},
    unproved=True,
)
class LongformerGlobal(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LongformerConfig, LongformerModel

        self.net = LongformerModel(
            LongformerConfig(
                vocab_size=60,
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                attention_window=[8],
                max_position_embeddings=300,
                pad_token_id=1,
            ),
            add_pooling_layer=False,
        )

    def forward(self, input_ids, attention_mask, global_attention_mask):
        out = self.net(input_ids=input_ids, attention_mask=attention_mask, global_attention_mask=global_attention_mask)
        return out.last_hidden_state


def image(batch=2, height=24, width=20):
    return (torch.randn(batch, 3, height, width),)


@model(
    "windows are padded, the shift is off where the map fits one window, odd maps are padded before merging",
    image,
    where=["2 <= height <= 120", "2 <= width <= 120"],
    far={"height": (7, 8, 9, 16, 17, 33, 64), "width": (2, 8, 15, 31, 66)},
    points=({"batch": 1, "height": 33, "width": 50},),
)
class SwinTwoPadded(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import Swinv2Config, Swinv2Model

        self.net = Swinv2Model(
            Swinv2Config(image_size=32, patch_size=2, embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=4),
            add_pooling_layer=False,
        )

    def forward(self, x):
        return self.net(x).last_hidden_state


def larger(batch=2, height=48, width=40):
    return (torch.randn(batch, 3, height, width),)


def wave(batch=2, samples=400):
    mask = torch.ones(batch, samples, dtype=torch.int64)
    mask[-1, (3 * samples) // 4 :] = 0
    return dict(input_values=torch.randn(batch, samples), attention_mask=mask)


@model(
    "the mask is counted, its lengths go through the convolutions, then a cumulative mask from the end",
    wave,
    where=["40 <= samples <= 4000"],
    far={"samples": (40, 41, 63, 64, 65, 999)},
    points=({"batch": 3, "samples": 777},),
)
class WaveMaskOfLengths(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import Wav2Vec2Config, Wav2Vec2Model

        self.net = Wav2Vec2Model(
            Wav2Vec2Config(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                conv_dim=(8, 8),
                conv_stride=(5, 2),
                conv_kernel=(10, 3),
                num_feat_extract_layers=2,
                num_conv_pos_embeddings=8,
                num_conv_pos_embedding_groups=2,
                feat_extract_norm="layer",
                do_stable_layer_norm=True,
            )
        )

    def forward(self, input_values, attention_mask):
        return self.net(input_values, attention_mask=attention_mask).last_hidden_state


@model(
    "blocks of local attention, and global tokens by the number of blocks; a short input has none",
    masked,
    far={"seq": (3, 4, 5, 7, 8, 9, 12, 16, 33, 65)},
    points=({"batch": 3, "seq": 23},),
    unproved=True,
)
class LongT5Transient(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LongT5Config, LongT5EncoderModel

        self.net = LongT5EncoderModel(
            LongT5Config(
                vocab_size=60,
                d_model=16,
                d_kv=8,
                d_ff=32,
                num_layers=1,
                num_heads=2,
                local_radius=3,
                global_block_size=4,
                encoder_attention_type="transient-global",
                relative_attention_num_buckets=8,
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


@model(
    "chunks: an input shorter than a chunk is not chunked; else padded to the least common multiple",
    masked,
    where=["1 <= seq <= 64"],
    far={"seq": (1, 3, 4, 5, 7, 8, 9, 33, 63, 64)},
    points=({"batch": 3, "seq": 17},),
)
class ReformerLocalChunks(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import ReformerConfig, ReformerModel

        self.net = ReformerModel(
            ReformerConfig(
                vocab_size=60,
                attention_head_size=8,
                hidden_size=16,
                num_attention_heads=2,
                feed_forward_size=32,
                attn_layers=["local", "local"],
                local_attn_chunk_length=4,
                local_num_chunks_before=1,
                local_num_chunks_after=0,
                is_decoder=True,
                axial_pos_embds=False,
                max_position_embeddings=64,
                chunk_size_feed_forward=0,
                hash_seed=0,
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state


@model(
    "pooling of the sequence with a separate first token; upsampling cuts to the length",
    masked,
    far={"seq": (5, 6, 16, 17, 33, 63)},
    points=({"batch": 1, "seq": 31},),
)
class FunnelPooled(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import FunnelConfig, FunnelModel

        self.net = FunnelModel(
            FunnelConfig(
                vocab_size=60, block_sizes=[1, 1, 1], num_decoder_layers=1, d_model=16, n_head=2, d_head=8, d_inner=32
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def xl(batch=2, seq=6, memory=4):
    return (torch.randint(2, 50, (batch, seq)), torch.randn(memory, batch, 16))


@model(
    "memories shift the relative positions, clamp_len bounds them, mem_len cuts the new memories",
    xl,
    far={"seq": (1, 8, 9, 33), "memory": (1, 5, 6, 9, 40)},
    points=({"batch": 3, "seq": 11, "memory": 2},),
)
class XlnetMemories(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import XLNetConfig, XLNetModel

        self.net = XLNetModel(
            XLNetConfig(
                vocab_size=60,
                d_model=16,
                n_layer=1,
                n_head=2,
                d_inner=32,
                mem_len=7,
                clamp_len=5,
                reuse_len=4,
                bi_data=False,
                attn_type="bi",
            )
        )

    def forward(self, input_ids, memory):
        out = self.net(input_ids=input_ids, mems=[memory], use_mems=True)
        return out.last_hidden_state, out.mems[0]


def padded_ids(batch=2, seq=9):
    tokens = torch.randint(2, 50, (batch, seq))
    tokens[-1, (seq + 1) // 2 :] = 1
    return (tokens,)


@model(
    "the sinusoid table is made anew when positions of the padded input go beyond it",
    padded_ids,
    far={"seq": (13, 14, 15, 16, 17, 18, 40)},
    points=({"batch": 3, "seq": 19},),
    rare={"all padding": lambda batch=2, seq=9: (torch.ones(batch, seq, dtype=torch.int64),)},
)
class SinusoidGrows(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

        self.table = M2M100SinusoidalPositionalEmbedding(14, 8, padding_idx=1)

    def forward(self, ids):
        return self.table(ids)


@model(
    "short factors up to the original length, long factors and another scale beyond",
    ids,
    far={"seq": (15, 16, 17, 33, 64)},
    points=({"batch": 3, "seq": 17}, {"batch": 1, "seq": 16}),
)
class PhiLongFactors(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import Phi3Config, Phi3Model

        self.net = Phi3Model(
            Phi3Config(
                vocab_size=60,
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                num_key_value_heads=1,
                intermediate_size=32,
                max_position_embeddings=64,
                original_max_position_embeddings=16,
                pad_token_id=0,
                bos_token_id=0,
                eos_token_id=0,
                rope_parameters={
                    "rope_type": "longrope",
                    "rope_theta": 10000.0,
                    "short_factor": [1.0, 1.1, 1.2, 1.3],
                    "long_factor": [2.0, 3.0, 4.0, 5.0],
                    "original_max_position_embeddings": 16,
                },
            )
        )

    def forward(self, input_ids):
        return self.net(input_ids=input_ids, use_cache=False).last_hidden_state


def at_positions(batch=2, seq=9, start=0):
    return (torch.randn(batch, seq, 16), torch.arange(start, start + seq).expand(batch, seq))


@model(
    "dynamic NTK: the frequencies change as soon as a position is beyond the trained ones",
    at_positions,
    far={"seq": (11, 12, 13, 24, 33), "start": (2, 3, 4, 12, 50)},
    points=({"batch": 1, "seq": 1, "start": 12}, {"batch": 3, "seq": 5, "start": 30}),
)
class LlamaDynamicTable(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LlamaConfig
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

        config = LlamaConfig(
            hidden_size=16,
            num_attention_heads=2,
            max_position_embeddings=12,
            rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0},
        )
        self.rotary = LlamaRotaryEmbedding(config)

    def forward(self, x, positions):
        return self.rotary(x, positions)


def sliding_past(batch=2, seq=3, past=4):
    kv = lambda: torch.randn(batch, 1, past, 8)  # noqa: E731
    return (torch.randint(2, 50, (batch, seq)), kv(), kv())


@model(
    "a sliding layer of the cache keeps window-1 keys, the mask counts from the cut",
    sliding_past,
    far={"past": (1, 4, 5, 6, 7, 20), "seq": (1, 5, 6, 7, 16)},
    points=({"batch": 1, "seq": 7, "past": 7},),
)
class MistralSlidingCache(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import MistralConfig, MistralModel

        self.config = MistralConfig(
            vocab_size=60,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            intermediate_size=32,
            sliding_window=6,
        )
        self.net = MistralModel(self.config)

    def forward(self, input_ids, key, value):
        from transformers import DynamicCache

        cache = DynamicCache(config=self.config)
        cache.update(key, value, 0)
        out = self.net(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return out.last_hidden_state, cache.layers[0].keys


def series(batch=2, time=12):
    return (torch.randn(batch, time, 16),)


@model(
    "the number of delays is the integer of a logarithm of the length; top-k and rolls by index",
    series,
    far={"time": (2, 3, 7, 8, 20, 21, 54, 55, 64)},
    points=({"batch": 3, "time": 21},),
)
class AutoformerDelays(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers.models.autoformer.modeling_autoformer import AutoformerAttention

        self.attention = AutoformerAttention(embed_dim=16, num_heads=2, autocorrelation_factor=1)

    def forward(self, x):
        return self.attention(x)[0]


@model(
    "the relative table is padded or cut by the window: lengths around window + 1",
    masked,
    far={"seq": (1, 3, 4, 5, 6, 16, 33)},
    points=({"batch": 1, "seq": 4},),
)
class VitsRelativeWindow(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import VitsConfig
        from transformers.models.vits.modeling_vits import VitsTextEncoder

        self.net = VitsTextEncoder(
            VitsConfig(
                vocab_size=60,
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                window_size=4,
                ffn_dim=32,
                ffn_kernel_size=3,
                flow_size=8,
            )
        )

    def forward(self, input_ids, attention_mask):
        lengths = attention_mask[..., None].to(torch.float32)
        out = self.net(input_ids=input_ids, padding_mask=lengths, attention_mask=attention_mask)
        return out.last_hidden_state, out.prior_means, out.prior_log_variances


@model(
    "the relative encoding is kept, and extended when the input is longer than the kept one",
    series,
    far={"time": (1, 9, 10, 11, 12, 20, 21, 40)},
    points=({"batch": 1, "time": 33},),
)
class ConformerRelativeKept(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import Wav2Vec2ConformerConfig
        from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerEncoder

        self.net = Wav2Vec2ConformerEncoder(
            Wav2Vec2ConformerConfig(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                position_embeddings_type="relative",
                max_source_positions=10,
                conv_depthwise_kernel_size=5,
                num_conv_pos_embeddings=8,
                num_conv_pos_embedding_groups=2,
            )
        )

    def forward(self, x):
        return self.net(x).last_hidden_state


@model(
    "local attention by chunks in a loop, molecules by a stride, the tail repeated; the position table has num_hash_buckets (64) rows",
    masked,
    far={"seq": (4, 7, 8, 9, 15, 16, 17, 33, 63, 64)},
    points=({"batch": 3, "seq": 13},),
    unproved=True,
)
class CanineChunks(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import CanineConfig, CanineModel

        self.net = CanineModel(
            CanineConfig(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=130,
                downsampling_rate=4,
                upsampling_kernel_size=4,
                num_hash_functions=2,
                num_hash_buckets=64,
                local_transformer_stride=8,
            ),
            add_pooling_layer=False,
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


@model(
    "blocks of tokens, staggered in every other layer, with padding to a whole block",
    masked,
    far={"seq": (1, 3, 4, 5, 8, 31, 33)},
    points=({"batch": 3, "seq": 15},),
)
class PegasusStaggered(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import PegasusXConfig
        from transformers.models.pegasus_x.modeling_pegasus_x import PegasusXModel

        self.net = PegasusXModel(
            PegasusXConfig(
                vocab_size=60,
                d_model=16,
                encoder_layers=2,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
                num_global_tokens=3,
                block_size=4,
                stagger_local_blocks=True,
                max_position_embeddings=100,
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


@model(
    "n-gram streams: buckets of relative positions and a mask per stream",
    ids,
    where=["1 <= seq <= 60"],
    far={"seq": (1, 3, 8, 9, 16, 17, 33, 60)},
    points=({"batch": 1, "seq": 19},),
)
class ProphetStreams(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import ProphetNetConfig
        from transformers.models.prophetnet.modeling_prophetnet import ProphetNetForCausalLM

        self.net = ProphetNetForCausalLM(
            ProphetNetConfig(
                vocab_size=60,
                hidden_size=16,
                num_decoder_layers=1,
                num_encoder_layers=1,
                num_decoder_attention_heads=2,
                num_encoder_attention_heads=2,
                decoder_ffn_dim=32,
                encoder_ffn_dim=32,
                ngram=2,
                num_buckets=8,
                relative_max_distance=16,
                max_position_embeddings=64,
                is_decoder=True,
                add_cross_attention=False,
                is_encoder_decoder=False,
            )
        )

    def forward(self, input_ids):
        out = self.net(input_ids=input_ids, use_cache=False)
        return out.logits, out.logits_ngram


@model(
    "a map that is no multiple of the patch is resized, unfolded, folded, and resized back",
    larger,
    where=["32 <= height <= 200", "32 <= width <= 200"],
    far={"height": (32, 33, 48, 64, 65, 96), "width": (32, 40, 63, 130)},
    points=({"batch": 1, "height": 100, "width": 36},),
)
class MobileVitResized(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import MobileViTConfig, MobileViTModel

        self.net = MobileViTModel(
            MobileViTConfig(
                image_size=32,
                hidden_sizes=[12, 16, 20],
                neck_hidden_sizes=[8, 8, 8, 8, 12, 16, 32],
                num_attention_heads=2,
                expand_ratio=1.0,
                num_hidden_layers=1,
            ),
            expand_output=False,
        )

    def forward(self, x):
        return self.net(x).last_hidden_state


@model(
    "the relative table is interpolated for other window sizes; at the trained size it is used as is",
    image,
    where=["4 <= height <= 80", "4 <= width <= 80"],
    far={"height": (4, 8, 16, 17, 32, 64), "width": (4, 7, 16, 33, 64)},
    points=({"batch": 1, "height": 16, "width": 16}, {"batch": 3, "height": 40, "width": 12}),
)
class BeitInterpolated(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BeitConfig, BeitModel

        self.net = BeitModel(
            BeitConfig(
                image_size=16,
                patch_size=4,
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                use_relative_position_bias=True,
                use_absolute_position_embeddings=True,
                vocab_size=10,
            ),
            add_pooling_layer=False,
        )

    def forward(self, x):
        return self.net(x, interpolate_pos_encoding=True).last_hidden_state


@model(
    "the scan runs in chunks of 8: padded up, states carried between chunks; a mask zeroes",
    masked,
    far={"seq": (1, 3, 7, 8, 9, 16, 17, 33)},
    points=({"batch": 1, "seq": 24}, {"batch": 3, "seq": 1}),
)
class Mamba2Chunks(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import Mamba2Config, Mamba2Model

        self.net = Mamba2Model(
            Mamba2Config(
                vocab_size=60,
                hidden_size=16,
                state_size=8,
                num_hidden_layers=1,
                head_dim=8,
                num_heads=4,
                expand=2,
                n_groups=1,
                chunk_size=8,
                conv_kernel=4,
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state


@model(
    "an expert takes no more than its capacity: a cumulative count over the sequence drops tokens",
    series,
    far={"time": (1, 3, 4, 5, 6, 16, 33, 64)},
    points=({"batch": 1, "time": 40},),
)
class SwitchCapacity(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import SwitchTransformersConfig
        from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersSparseMLP

        self.net = SwitchTransformersSparseMLP(
            SwitchTransformersConfig(d_model=16, d_ff=8, num_experts=3, expert_capacity=4)
        )

    def forward(self, x):
        out = self.net(x)
        return out[0] if isinstance(out, tuple) else out


@model(
    "log buckets of the relative positions (up to 2 * position), conv branch at the first layer",
    masked,
    far={"seq": (1, 3, 4, 5, 7, 8, 9, 16, 33, 63)},
    points=({"batch": 1, "seq": 30},),
)
class DebertaBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import DebertaV2Config, DebertaV2Model

        self.net = DebertaV2Model(
            DebertaV2Config(
                vocab_size=60,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                relative_attention=True,
                position_buckets=4,
                max_relative_positions=8,
                max_position_embeddings=8,
                pos_att_type=["p2c", "c2p"],
                conv_kernel_size=3,
                norm_rel_ebd="layer_norm",
                share_att_key=True,
                position_biased_input=False,
            )
        )

    def forward(self, input_ids, attention_mask):
        return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
