"""PyPI libraries, part 1: efficient attention, memories, equivariant layers, experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("pypi text")


def tokens(batch=2, seq=6):
    return (torch.randint(1, 20, (batch, seq)),)


def steps(batch=2, seq=6):
    return (torch.randn(batch, seq, 16),)


@model(
    "performer_pytorch: causal linear attention cuts the sequence into 128 chunks, so chunks grow beyond 128 steps",
    tokens,
    far={"seq": (1, 127, 128, 129, 257, 300)},
    points=({"batch": 3, "seq": 200},),
)
class PerformerCausalLm(nn.Module):
    def __init__(self):
        super().__init__()
        from performer_pytorch import PerformerLM

        self.net = PerformerLM(
            num_tokens=20, max_seq_len=300, dim=16, depth=1, heads=2, dim_head=8, causal=True, nb_features=12
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "performer_pytorch: one head local with window 8 (padded to windows), one head of random features; a mask with lengths",
    lambda batch=2, seq=10: (
        torch.randn(batch, seq, 16),
        torch.arange(seq)[None] < torch.randint(1, seq + 1, (batch, 1)),
    ),
    far={"seq": (1, 7, 8, 9, 16, 17, 65)},
    points=({"batch": 1, "seq": 24},),
)
class PerformerLocalHeads(nn.Module):
    def __init__(self):
        super().__init__()
        from performer_pytorch import SelfAttention

        self.net = SelfAttention(16, heads=2, dim_head=8, local_heads=1, local_window_size=8, nb_features=10)

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "linformer: the projection of keys is cut to the length, up to its table of 48",
    steps,
    far={"seq": (1, 2, 47, 48)},
    points=({"batch": 5, "seq": 31},),
    where=["seq <= 48"],
)
class LinformerShortKeys(nn.Module):
    def __init__(self):
        super().__init__()
        from linformer import LinformerSelfAttention

        self.net = LinformerSelfAttention(16, seq_len=48, k=7, heads=2, one_kv_head=True, share_kv=True)

    def forward(self, x):
        return self.net(x)


@model(
    "linformer: context attention with two lengths, only the context bounded by the table",
    lambda batch=2, seq=5, ctx=9: (torch.randn(batch, seq, 16), torch.randn(batch, ctx, 16)),
    far={"ctx": (1, 39, 40), "seq": (1, 40, 41, 100)},
    points=({"seq": 64, "ctx": 40}, {"seq": 40, "ctx": 1}),
)
class LinformerContext(nn.Module):
    def __init__(self):
        super().__init__()
        from linformer import LinformerSelfAttention

        self.net = LinformerSelfAttention(16, seq_len=40, k=5, heads=4, dim_head=3)

    def forward(self, x, context):
        return self.net(x, context=context) + x


@model(
    "reformer_pytorch: Autopadder pads to twice the bucket and builds a mask; full attention below the threshold",
    tokens,
    far={"seq": (1, 15, 16, 17, 31, 32, 33, 64)},
    points=({"batch": 3, "seq": 48},),
)
class ReformerPadded(nn.Module):
    def __init__(self):
        super().__init__()
        from reformer_pytorch import Autopadder, ReformerLM

        self.net = Autopadder(
            ReformerLM(
                num_tokens=20,
                dim=16,
                depth=1,
                max_seq_len=64,
                heads=2,
                bucket_size=8,
                n_hashes=2,
                causal=True,
                use_full_attn=True,
                ff_chunks=3,
            )
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "axial_attention: rows and columns attend separately; permutations are computed at construction",
    lambda batch=2, height=5, width=7: (torch.randn(batch, 8, height, width),),
    far={"height": (1, 2, 33), "width": (1, 7, 64)},
    points=({"height": 9, "width": 9}, {"batch": 1, "height": 1, "width": 1}),
)
class AxialRowsColumns(nn.Module):
    def __init__(self):
        super().__init__()
        from axial_attention import AxialAttention

        self.net = AxialAttention(dim=8, dim_index=1, heads=2, num_dimensions=2, sum_axial_out=False)

    def forward(self, x):
        return self.net(x)


@model(
    "axial_positional_embedding: rows times columns of a factored table, cut to the length, asserts at 24",
    steps,
    far={"seq": (1, 5, 6, 7, 23, 24)},
    points=({"batch": 4, "seq": 13},),
    where=["seq <= 24"],
)
class AxialTable(nn.Module):
    def __init__(self):
        super().__init__()
        from axial_positional_embedding import AxialPositionalEmbedding

        self.pos = AxialPositionalEmbedding(16, (4, 6))
        self.proj = nn.Linear(16, 16)

    def forward(self, x):
        return self.proj(x + self.pos(x))


@model(
    "product_key_memory: two topk over keys, an EmbeddingBag over flattened batch and time",
    steps,
    far={"seq": (1, 2, 33, 64), "batch": (1, 7)},
    points=({"batch": 7, "seq": 1},),
)
class ProductKeys(nn.Module):
    def __init__(self):
        super().__init__()
        from product_key_memory import PKM

        self.net = PKM(16, heads=2, num_keys=12, topk=5, dim_head=8)

    def forward(self, x):
        out = self.net(x)
        return out[0] if isinstance(out, tuple) else out


@model(
    "product_key_memory: padding mask selects tokens before the memory and scatters them back",
    lambda batch=2, seq=6: (
        torch.randn(batch, seq, 16),
        torch.arange(seq)[None] < torch.randint(1, seq + 1, (batch, 1)),
    ),
    far={"seq": (1, 5, 33)},
    rare={"none": lambda batch=2, seq=6: (torch.randn(batch, seq, 16), torch.ones(batch, seq, dtype=torch.bool))},
)
class ProductKeysMasked(nn.Module):
    def __init__(self):
        super().__init__()
        from product_key_memory import PKM

        self.net = PKM(16, heads=1, num_keys=9, topk=3, dim_head=8, use_layernorm=True)

    def forward(self, x, mask):
        return self.net(x, input_mask=mask)


@model(
    "routing_transformer: clusters choose their own topk of tokens; kmeans means are state set by the first call",
    lambda batch=2, seq=16: (torch.randint(1, 20, (batch, seq)),),
    far={"seq": (1, 7, 8, 9, 24, 33, 64)},
    points=({"batch": 1, "seq": 40},),
)
class RoutingClusters(nn.Module):
    def __init__(self):
        super().__init__()
        from routing_transformer import Autopadder, RoutingTransformerLM

        net = RoutingTransformerLM(
            num_tokens=20, dim=16, depth=1, max_seq_len=64, heads=2, dim_head=8, window_size=8, causal=True
        )
        self.net = Autopadder(net)
        net(torch.randint(1, 20, (2, 64)))

    def forward(self, ids):
        return self.net(ids)[0]


@model(
    "sinkhorn_transformer: buckets of 4 are sorted by similarity; Autopadder rounds the length",
    tokens,
    far={"seq": (1, 3, 4, 5, 16, 31, 32)},
    points=({"batch": 3, "seq": 20},),
)
class SinkhornBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        from sinkhorn_transformer import Autopadder, SinkhornTransformerLM

        self.net = Autopadder(
            SinkhornTransformerLM(
                num_tokens=20, dim=16, max_seq_len=32, depth=1, heads=2, bucket_size=4, causal=True, ff_chunks=2
            )
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "linear_attention_transformer: causal attention with a blindspot of 3, padded to blindspots",
    tokens,
    far={"seq": (1, 2, 3, 4, 7, 9, 30)},
    points=({"batch": 1, "seq": 12},),
)
class LinearBlindspot(nn.Module):
    def __init__(self):
        super().__init__()
        from linear_attention_transformer import LinearAttentionTransformerLM

        self.net = LinearAttentionTransformerLM(
            num_tokens=20, dim=16, depth=1, max_seq_len=64, heads=2, dim_head=8, causal=True, blindspot_size=3
        )

    def forward(self, ids):
        length = ids.shape[1]
        return self.net(F.pad(ids, (0, -length % 3)))[:, :length]


@model(
    "linear_attention_transformer: local heads with windows of 6 next to global linear heads, token shift",
    tokens,
    far={"seq": (1, 5, 6, 7, 12, 13, 64)},
    points=({"batch": 5, "seq": 18},),
)
class LinearLocalMix(nn.Module):
    def __init__(self):
        super().__init__()
        from linear_attention_transformer import LinearAttentionTransformerLM

        self.net = LinearAttentionTransformerLM(
            num_tokens=20,
            dim=16,
            depth=2,
            max_seq_len=66,
            heads=4,
            dim_head=4,
            n_local_attn_heads=2,
            local_attn_window_size=6,
            ff_chunks=2,
            shift_tokens=True,
        )

    def forward(self, ids):
        length = ids.shape[1]
        whole = -(-length // 6) * 6
        mask = torch.arange(whole, device=ids.device).expand(len(ids), -1) < length
        return self.net(F.pad(ids, (0, whole - length)), input_mask=mask)[:, :length]


def xl(batch=2, seq=6, mem=4):
    return (torch.randint(1, 20, (batch, seq)), torch.randn(1, batch, mem, 16), torch.randn(batch, 4, 16))


@model(
    "memory_transformer_xl: short and long memories are read, the queue is cut to its length",
    xl,
    far={"seq": (1, 7, 8), "mem": (1, 7, 8)},
    points=({"seq": 8, "mem": 8}, {"seq": 1, "mem": 1}),
    where=["seq <= 8"],
)
class MemoryXl(nn.Module):
    def __init__(self):
        super().__init__()
        from memory_transformer_xl import MemoryTransformerXL
        from memory_transformer_xl.memory_transformer_xl import Memory

        self.memory = Memory
        self.net = MemoryTransformerXL(
            num_tokens=20, dim=16, seq_len=8, depth=1, heads=2, mem_len=8, lmem_len=4, memory_layers=[1]
        )

    def forward(self, ids, mem, lmem):
        logits, memories = self.net(ids, memories=self.memory(mem, lmem))
        return logits, memories.short, memories.long


@model(
    "compressive_transformer: old memory beyond 6 is compressed by a strided convolution, only when a queue overflows",
    lambda batch=2, seq=6, mem=4, old=2: (
        torch.randint(1, 20, (batch, seq)),
        torch.randn(1, batch, mem, 16),
        torch.randn(1, batch, old, 16),
    ),
    where=["seq <= 6"],
    far={"seq": (1, 2, 5, 6), "mem": (1, 5, 6), "old": (1, 3, 4)},
    points=({"seq": 6, "mem": 6, "old": 3}, {"seq": 1, "mem": 1, "old": 1}),
)
class CompressedMemory(nn.Module):
    def __init__(self):
        super().__init__()
        from compressive_transformer_pytorch import CompressiveTransformer
        from compressive_transformer_pytorch.compressive_transformer_pytorch import Memory

        self.memory = Memory
        self.net = CompressiveTransformer(
            num_tokens=20, dim=16, seq_len=6, depth=1, heads=2, mem_len=6, cmem_len=3, cmem_ratio=2, memory_layers=[1]
        )

    def forward(self, ids, mem, cmem):
        logits, memories, loss = self.net(ids, memories=self.memory(mem, cmem))
        return logits, memories.mem, memories.compressed_mem


def cloud(batch=2, nodes=6):
    return (torch.randn(batch, nodes, 8), torch.randn(batch, nodes, 3))


@model(
    "egnn_pytorch: each node speaks to its 4 nearest neighbours; fewer nodes than neighbours is an error",
    cloud,
    far={"nodes": (4, 5, 16, 33)},
    points=({"batch": 1, "nodes": 4}, {"batch": 3, "nodes": 20}),
)
class NearestFour(nn.Module):
    def __init__(self):
        super().__init__()
        from egnn_pytorch import EGNN

        self.net = EGNN(dim=8, m_dim=6, num_nearest_neighbors=4, norm_coors=True, fourier_features=2, soft_edges=True)

    def forward(self, feats, coors):
        return self.net(feats, coors)


@model(
    "egnn_pytorch: degrees of adjacency are computed by powers of the matrix and embedded; only sparse neighbours (a maximum of sums)",
    lambda nodes=6: (
        torch.randint(0, 9, (1, nodes)),
        torch.randn(1, nodes, 3),
        (torch.arange(nodes)[:, None] - torch.arange(nodes)[None]).abs() <= 1,
    ),
    far={"nodes": (3, 4, 12, 33)},
    unproved=True,
)
class RingDegrees(nn.Module):
    def __init__(self):
        super().__init__()
        from egnn_pytorch import EGNN_Network

        self.net = EGNN_Network(
            num_tokens=9, num_positions=64, dim=8, depth=1, num_adj_degrees=2, adj_dim=3, only_sparse_neighbors=True
        )

    def forward(self, feats, coors, adj):
        return self.net(feats, coors, adj_mat=adj)


@model(
    "egnn_pytorch: coordinates without neighbours limit, mask by lengths, mean pooling of messages, global linear attention",
    lambda batch=2, nodes=5: (
        torch.randn(batch, nodes, 8),
        torch.randn(batch, nodes, 3),
        torch.arange(nodes)[None] < torch.randint(1, nodes + 1, (batch, 1)),
    ),
    far={"nodes": (1, 2, 33)},
    points=({"batch": 4, "nodes": 9},),
)
class GraphGlobalTokens(nn.Module):
    def __init__(self):
        super().__init__()
        from egnn_pytorch import EGNN_Network

        self.net = EGNN_Network(
            dim=8,
            depth=1,
            global_linear_attn_every=1,
            global_linear_attn_heads=2,
            global_linear_attn_dim_head=4,
            num_global_tokens=2,
            m_pool_method="mean",
        )

    def forward(self, feats, coors, mask):
        return self.net(feats, coors, mask=mask)


@model(
    "invariant_point_attention: frames of residues (quaternions to rotations) with pair features in n squared",
    lambda batch=2, residues=5: (
        torch.randn(batch, residues, 8),
        torch.randn(batch, residues, residues, 6),
        torch.randn(batch, residues, 4),
        torch.randn(batch, residues, 3),
    ),
    far={"residues": (1, 2, 17, 40)},
    points=({"batch": 1, "residues": 1}, {"batch": 3, "residues": 12}),
)
class PointFrames(nn.Module):
    def __init__(self):
        super().__init__()
        from invariant_point_attention import IPABlock

        self.net = IPABlock(
            dim=8,
            heads=2,
            scalar_key_dim=4,
            scalar_value_dim=4,
            point_key_dim=2,
            point_value_dim=2,
            pairwise_repr_dim=6,
        )

    def forward(self, x, pair, quaternions, shifts):
        w, i, j, k = F.normalize(quaternions, dim=-1).unbind(-1)
        rot = torch.stack(
            (
                1 - 2 * (j * j + k * k),
                2 * (i * j - k * w),
                2 * (i * k + j * w),
                2 * (i * j + k * w),
                1 - 2 * (i * i + k * k),
                2 * (j * k - i * w),
                2 * (i * k - j * w),
                2 * (j * k + i * w),
                1 - 2 * (i * i + j * j),
            ),
            -1,
        ).unflatten(-1, (3, 3))
        return self.net(x, pairwise_repr=pair, rotations=rot, translations=shifts)


@model(
    "charformer: blocks of 1 to 4 characters are pooled, padded to the least common multiple, cut back, downsampled by 4",
    tokens,
    far={"seq": (1, 3, 4, 11, 12, 13, 24, 25)},
    points=({"batch": 3, "seq": 36},),
)
class CharBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        from charformer_pytorch import GBST

        self.net = GBST(num_tokens=20, dim=16, max_block_size=4, downsample_factor=4, score_consensus_attn=True)

    def forward(self, ids):
        out, _ = self.net(ids)
        return out


@model(
    "charformer: a mask is pooled with blocks of (3, offsets) and downsampled with any()",
    lambda batch=2, seq=12: (
        torch.randint(1, 20, (batch, seq)),
        torch.arange(seq)[None] < torch.randint(1, seq + 1, (batch, 1)),
    ),
    far={"seq": (1, 2, 3, 5, 6, 7, 18, 31)},
    points=({"batch": 1, "seq": 9},),
)
class CharOffsets(nn.Module):
    def __init__(self):
        super().__init__()
        from charformer_pytorch import GBST

        self.net = GBST(
            num_tokens=20, dim=16, blocks=((3, 0), (3, 1), (2, 0)), downsample_factor=2, score_consensus_attn=False
        )

    def forward(self, ids, mask):
        return self.net(ids, mask=mask)


class Turns(nn.Module):
    """Rotary angles (the package's own call of rotary_embedding_torch has aged)."""

    def forward(self, position, cache_key=None):
        angles = torch.outer(
            (position() if callable(position) else position).float(), 10000.0 ** -(torch.arange(4) / 4)
        )
        return angles.repeat_interleave(2, -1)


@model(
    "long_short_transformer: windows of 6, segments of 3 with dynamic projection, causal masks by index arithmetic",
    steps,
    far={"seq": (1, 5, 6, 7, 12, 25, 48)},
    points=({"batch": 3, "seq": 30},),
)
class LongShort(nn.Module):
    def __init__(self):
        super().__init__()
        from long_short_transformer import LongShortAttention

        self.net = LongShortAttention(
            dim=16, window_size=6, segment_size=3, r=1, heads=2, dim_head=8, causal=True, pos_emb=Turns()
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "token_shift_gpt: channels are shifted by powers of two of the table, discounted by position; short lengths cannot be shifted",
    lambda batch=2, seq=20: (torch.randint(1, 20, (batch, seq)),),
    far={"seq": (16, 17, 31, 32)},
    points=({"batch": 4, "seq": 18},),
)
class ShiftedChannels(nn.Module):
    def __init__(self):
        super().__init__()
        from token_shift_gpt import TokenShiftGPT

        self.net = TokenShiftGPT(num_tokens=20, dim=36, max_seq_len=32, depth=1)

    def forward(self, ids):
        return self.net(ids)


@model(
    "block_recurrent_transformer: blocks of 8 with states and XL memories coming in and going out",
    lambda batch=2, seq=6, past=8: (
        torch.randint(1, 20, (batch, seq)),
        torch.randn(2, batch, past, 8),
        torch.randn(batch, 8, 16),
    ),
    where=["seq <= 32"],
    far={"seq": (1, 7, 8, 9, 16, 17, 32)},
    points=({"batch": 3, "seq": 24},),
    unproved=True,
)
class BlockRecurrence(nn.Module):
    def __init__(self):
        super().__init__()
        from block_recurrent_transformer_pytorch import BlockRecurrentTransformer

        self.net = BlockRecurrentTransformer(
            num_tokens=20,
            dim=16,
            depth=1,
            dim_head=8,
            heads=2,
            max_seq_len=32,
            block_width=8,
            num_state_vectors=8,
            recurrent_layers=(1,),
        )

    def forward(self, ids, memory, state):
        out, memories, states = self.net(ids, xl_memories=[memory], states=[state], return_memories_and_states=True)
        return out, memories[0], states[0]


@model(
    "recurrent_memory_transformer: read and write memory tokens wrap the segment; positions up to 20",
    lambda batch=2, seq=6: (torch.randint(1, 20, (batch, seq)), torch.randn(batch, 3, 16)),
    where=["seq <= 20"],
    far={"seq": (1, 2, 19, 20)},
    points=({"batch": 1, "seq": 20},),
)
class RecurrentMemory(nn.Module):
    def __init__(self):
        super().__init__()
        from recurrent_memory_transformer_pytorch import RecurrentMemoryTransformer

        self.net = RecurrentMemoryTransformer(
            16,
            num_tokens=20,
            depth=1,
            num_memory_tokens=3,
            seq_len=20,
            dim_head=8,
            heads=2,
            use_xl_memories=False,
            rotary_pos_emb=True,
        )

    def forward(self, ids, memory):
        logits, new, _ = self.net(ids, read_memories=memory)
        return logits, new
