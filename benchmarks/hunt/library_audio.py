"""torchaudio, speech, graphs, x_transformers, einops and einx, local, Nystrom and Perceiver attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("sound, graphs, attention libraries")


def wave(batch=2, time=200):
    return (torch.randn(batch, time),)


def frames(batch=2, time=12):
    return (torch.randn(batch, time, 16),)


def with_lengths(batch=2, time=12):
    lengths = torch.full((batch,), time)
    if batch > 1:
        lengths[-1] = (time + 1) // 2
    return (torch.randn(batch, time, 16), lengths)


@model(
    "segments of four frames in a Python loop with left context, right context cut from the end",
    with_lengths,
    where=["2 <= time <= 80"],
    far={"time": (5, 6, 7, 9, 10, 33, 64)},
    points=({"batch": 1, "time": 11},),
    unproved=True,
)
class EmformerSegments(nn.Module):
    def __init__(self):
        super().__init__()
        from torchaudio.models import Emformer

        self.net = Emformer(
            16, 2, 32, 1, segment_length=4, left_context_length=3, right_context_length=1, max_memory_size=2
        )

    def forward(self, x, lengths):
        return self.net(x, lengths)


@model(
    "the mask of the lengths has as many columns as the longest length, which may be below the time",
    with_lengths,
    far={"time": (1, 3, 16, 33, 64)},
    points=({"batch": 1, "time": 9},),
    rare={"full": lambda batch=2, time=12: (torch.randn(batch, time, 16), torch.full((batch,), time))},
)
class AudioConformerMask(nn.Module):
    def __init__(self):
        super().__init__()
        from torchaudio.models import Conformer

        self.net = Conformer(16, 2, 32, 1, 5)

    def forward(self, x, lengths):
        return self.net(x, lengths)


@model(
    "the last stride is filled: pads by a remainder, which is none for whole strides, and cuts again",
    wave,
    where=["1 <= time <= 2000"],
    far={"time": (1, 7, 8, 9, 15, 16, 17, 63, 64)},
    points=({"batch": 1, "time": 33},),
)
class TasNetRemainder(nn.Module):
    def __init__(self):
        super().__init__()
        from torchaudio.models import ConvTasNet

        self.net = ConvTasNet(
            num_sources=2,
            enc_kernel_size=8,
            enc_num_feats=8,
            msk_num_feats=8,
            msk_num_hidden_feats=8,
            msk_num_layers=2,
            msk_num_stacks=1,
        )

    def forward(self, x):
        return self.net(x[:, None])


@model(
    "resampling by the reduced ratio: the target length is a ceiling of a quotient",
    wave,
    far={"time": (1, 2, 3, 7, 16, 33, 64, 441)},
    points=({"batch": 3, "time": 31},),
)
def resample_twice(self, x):
    import torchaudio.functional as af

    return af.resample(x, 16000, 11025, lowpass_filter_width=4), af.resample(x, 2000, 3000)


@model(
    "pitch by frames: frames are a ceiling, lags are cut, medians over a window smoothed",
    lambda batch=2, time=800: (torch.randn(batch, time),),
    where=["400 <= time <= 4000"],
    far={"time": (400, 799, 801, 1000, 1601)},
    points=({"batch": 1, "time": 1234},),
)
def pitch_of_frames(self, x):
    import torchaudio.functional as af

    return af.detect_pitch_frequency(x, 4000, frame_time=0.01, win_length=5, freq_low=120)


@model(
    "the phase vocoder takes steps at a rate, pads two frames, and gathers at floors of float steps",
    lambda batch=2, frames=10: (torch.randn(batch, 5, frames), torch.randn(batch, 5, frames)),
    far={"frames": (1, 2, 3, 13, 14, 26, 33, 64)},
    points=({"batch": 1, "frames": 27},),
)
class StretchedTime(nn.Module):
    def __init__(self):
        super().__init__()
        from torchaudio.transforms import TimeStretch

        self.stretch = TimeStretch(hop_length=4, n_freq=5, fixed_rate=1.3)

    def forward(self, real, imag):
        return torch.view_as_real(self.stretch(torch.complex(real, imag)))


@model(
    "a window of the mean that slides in a loop over frames: its start and end are bounded by the length",
    lambda batch=2, time=9: (torch.randn(batch, time, 4),),
    where=["2 <= time <= 64"],
    far={"time": (2, 4, 5, 6, 7, 16, 33)},
    points=({"batch": 1, "time": 12},),
    unproved=True,
)
def cepstral_mean_slides(self, x):
    import torchaudio.functional as af

    return af.sliding_window_cmn(x, cmn_window=6, min_cmn_window=3, norm_vars=True)


@model(
    "fades cover fixed counts of samples; deltas replicate at the edges; the middle is ones",
    wave,
    where=["20 <= time <= 2000"],
    far={"time": (20, 21, 33, 64)},
    points=({"batch": 3, "time": 24},),
)
def fades_and_deltas(self, x):
    import torchaudio.functional as af
    from torchaudio.transforms import Fade

    faded = Fade(fade_in_len=12, fade_out_len=20, fade_shape="half_sine")(x)
    return faded, af.compute_deltas(faded, win_length=7), af.convolve(faded, x[:, : x.shape[-1] // 3], mode="same")


@model(
    "kaldi features: frames by snapping edges or not, windows padded to a power of two, the mean removed",
    lambda time=500: (torch.randn(1, time),),
    where=["100 <= time <= 3000"],
    far={"time": (100, 139, 140, 141, 179, 180, 999)},
    points=({"time": 777},),
)
def kaldi_frames(self, x):
    from torchaudio.compliance import kaldi

    kept = kaldi.fbank(x, sample_frequency=4000, num_mel_bins=6, dither=0.0, subtract_mean=True)
    loose = kaldi.spectrogram(x, sample_frequency=4000, snip_edges=False, dither=0.0)
    return kept, loose


def graph(nodes=6, edges=9):
    return (torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges)))


@model(
    "a ratio of the nodes is kept (a ceiling), edges of dropped nodes vanish: sizes by value",
    graph,
    far={"nodes": (1, 2, 3, 7, 16, 33), "edges": (0, 1, 7, 64)},
    points=({"nodes": 1, "edges": 3},),
    unproved=True,
)
class TopKPooled(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import SAGPooling, TopKPooling

        self.one, self.two = TopKPooling(8, ratio=0.6), SAGPooling(8, ratio=2)

    def forward(self, x, edge_index):
        x, edge_index, *_ = self.one(x, edge_index)
        x, edge_index, _, batch, *_ = self.two(x, edge_index)
        return x, edge_index


def batched(nodes=7, graphs=3):
    batch = torch.arange(nodes) * graphs // nodes
    return (torch.randn(nodes, 8), batch)


@model(
    "nodes become padded rows per graph: rows are the largest count, graphs the last index and one",
    batched,
    where=["graphs <= nodes"],
    far={"nodes": (3, 4, 16, 33), "graphs": (1, 2, 7)},
    points=({"nodes": 5, "graphs": 5}, {"nodes": 12, "graphs": 1}),
    unproved=True,
)
class DenseRows(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn.aggr import SortAggregation

        self.sort = SortAggregation(k=4)

    def forward(self, x, batch):
        from torch_geometric.utils import softmax, to_dense_batch

        dense, mask = to_dense_batch(x, batch)
        return dense, mask, self.sort(x, batch), softmax(x, batch)


@model(
    "attention with self loops: existing loops are removed first, then one per node is added",
    graph,
    far={"nodes": (1, 2, 3, 33), "edges": (0, 1, 2, 40)},
    points=({"nodes": 2, "edges": 12},),
    rare={"only loops": lambda nodes=6, edges=9: (torch.randn(nodes, 8), torch.zeros(2, edges, dtype=torch.int64))},
)
class GatLoops(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import GATv2Conv, GCNConv

        self.gat, self.gcn = GATv2Conv(8, 4, heads=2), GCNConv(8, 8)

    def forward(self, x, edge_index):
        return self.gat(self.gcn(x, edge_index).relu(), edge_index)


@model(
    "degree scalers, several aggregators, empty neighbourhoods; the table of degrees stops short",
    graph,
    far={"nodes": (1, 2, 16), "edges": (0, 1, 7, 33)},
    points=({"nodes": 2, "edges": 50},),
)
class PnaScalers(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import PNAConv

        self.conv = PNAConv(
            8,
            6,
            ["mean", "min", "max", "std"],
            ["identity", "amplification", "attenuation", "linear"],
            torch.tensor([1, 3, 2, 1]),
        )

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


@model(
    "dense pooling by soft clusters: traces, norms and a mask of nodes",
    lambda batch=2, nodes=6: (
        torch.randn(batch, nodes, 8),
        (torch.rand(batch, nodes, nodes) > 0.4).float(),
        torch.arange(nodes).expand(batch, nodes) < (nodes + 1) // 2,
    ),
    far={"nodes": (1, 2, 3, 16, 33)},
    points=({"batch": 1, "nodes": 2},),
)
class DenseClusters(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import DMoNPooling

        self.pool = DMoNPooling([8], 3)

    def forward(self, x, adj, mask):
        s, out, out_adj, *losses = self.pool(x, adj, mask)
        return s, out, out_adj, torch.stack(losses)


@model(
    "global attention over graphs in one batch: dense rows inside, batch norm and edges around",
    lambda nodes=7, edges=10, graphs=2: (*graph(nodes, edges), torch.arange(nodes) * graphs // nodes),
    where=["graphs <= nodes"],
    far={"nodes": (2, 3, 16), "edges": (0, 1, 33), "graphs": (1, 3, 7)},
    points=({"nodes": 9, "edges": 5, "graphs": 9},),
    unproved=True,
)
class GpsGlobal(nn.Module):
    def __init__(self):
        super().__init__()
        from torch_geometric.nn import GINConv, GPSConv, GraphNorm

        self.conv = GPSConv(8, GINConv(nn.Linear(8, 8)), heads=2)
        self.norm = GraphNorm(8)

    def forward(self, x, edge_index, batch):
        return self.norm(self.conv(x, edge_index, batch), batch)


@model(
    "ALiBi and dynamic biases are kept at the longest size seen and cut; memories add to the keys",
    lambda batch=2, seq=6, memory=3: (torch.randint(0, 20, (batch, seq)), torch.randn(batch, memory, 16)),
    where=["1 <= seq <= 48"],
    far={"seq": (1, 2, 16, 33, 48), "memory": (1, 5, 20)},
    points=({"batch": 1, "seq": 12, "memory": 12},),
)
class XAlibiMemories(nn.Module):
    def __init__(self):
        super().__init__()
        from x_transformers import Decoder, TransformerWrapper

        self.net = TransformerWrapper(
            num_tokens=20,
            max_seq_len=48,
            max_mem_len=4,
            attn_layers=Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, alibi_pos_bias=True, attn_num_mem_kv=1),
        )

    def forward(self, ids, memory):
        logits, mems = self.net(ids, mems=[memory], return_mems=True)
        return logits, mems[0]


@model(
    "only the top 4 scores per query are kept, fewer keys than that change the count; buckets of T5",
    lambda batch=2, seq=9: (torch.randn(batch, seq, 16), torch.arange(seq).expand(batch, seq) < (seq + 2) // 2),
    far={"seq": (4, 5, 7, 16, 33)},
    points=({"batch": 1, "seq": 4},),
)
class XSparseTopk(nn.Module):
    def __init__(self):
        super().__init__()
        from x_transformers import Encoder

        self.net = Encoder(
            dim=16,
            depth=1,
            heads=2,
            attn_dim_head=8,
            attn_sparse_topk=4,
            rel_pos_bias=True,
            rel_pos_num_buckets=8,
            rel_pos_max_distance=12,
            shift_tokens=1,
            macaron=True,
        )

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "memory tokens interspersed every four tokens: padded to whole groups and taken out again",
    lambda batch=2, seq=9: (torch.randint(0, 20, (batch, seq)),),
    where=["1 <= seq <= 40"],
    far={"seq": (1, 3, 4, 5, 8, 16, 33, 40)},
    points=({"batch": 3, "seq": 7},),
)
class XInterspersed(nn.Module):
    def __init__(self):
        super().__init__()
        from x_transformers import Decoder, TransformerWrapper

        self.net = TransformerWrapper(
            num_tokens=20,
            max_seq_len=40,
            num_memory_tokens=2,
            memory_tokens_interspersed_every=4,
            attn_layers=Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, rotary_pos_emb=True, dynamic_pos_bias=False),
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "windows of six with one looked back: autopadded, masked at the pads, exact window sizes",
    lambda batch=2, seq=11: (
        torch.randn(batch, 2, seq, 8),
        torch.randn(batch, 2, seq, 8),
        torch.randn(batch, 2, seq, 8),
        torch.arange(seq).expand(batch, seq) < (seq + 1) // 2,
    ),
    far={"seq": (1, 5, 6, 7, 12, 13, 33, 64)},
    points=({"batch": 1, "seq": 18},),
)
class LocalWindows(nn.Module):
    def __init__(self):
        super().__init__()
        from local_attention import LocalAttention

        self.attention = LocalAttention(
            6, causal=False, look_backward=1, look_forward=1, autopad=True, exact_windowsize=True, dim=8
        )

    def forward(self, q, k, v, mask):
        return self.attention(q, k, v, mask=mask)


@model(
    "pads in front to a multiple of the landmarks, segment sums, a fixed number of inverse steps",
    lambda batch=2, seq=11: (torch.randn(batch, seq, 16), torch.arange(seq).expand(batch, seq) < (seq + 1) // 2),
    far={"seq": (1, 3, 4, 5, 8, 16, 33)},
    points=({"batch": 1, "seq": 7},),
)
class NystromPadded(nn.Module):
    def __init__(self):
        super().__init__()
        from nystrom_attention import NystromAttention

        self.attention = NystromAttention(dim=16, dim_head=8, heads=2, num_landmarks=4, residual_conv_kernel=5)

    def forward(self, x, mask):
        return self.attention(x, mask=mask)


@model(
    "Fourier positions of two axes by linspace over each size; a size of one has a single position",
    lambda batch=2, height=5, width=4: (torch.randn(batch, height, width, 3),),
    far={"height": (1, 2, 7, 16), "width": (1, 3, 33)},
    points=({"batch": 1, "height": 1, "width": 1},),
)
class PerceiverFourier(nn.Module):
    def __init__(self):
        super().__init__()
        from perceiver_pytorch import Perceiver

        self.net = Perceiver(
            num_freq_bands=3,
            depth=2,
            max_freq=8.0,
            input_channels=3,
            input_axis=2,
            num_latents=4,
            latent_dim=16,
            cross_dim_head=8,
            latent_heads=2,
            latent_dim_head=8,
            num_classes=3,
            weight_tie_layers=True,
        )

    def forward(self, x):
        return self.net(x)


@model(
    "frequencies are cached up to a length and computed anew beyond, with an offset; xpos scales by the middle",
    lambda batch=2, seq=6, past=3: (torch.randn(batch, 2, seq, 8), torch.randn(batch, 2, past + seq, 8)),
    far={"seq": (1, 2, 16, 33), "past": (0, 1, 5, 6, 7, 20)},
    points=({"batch": 1, "seq": 9, "past": 11},),
)
class RotaryCached(nn.Module):
    def __init__(self):
        super().__init__()
        from rotary_embedding_torch import RotaryEmbedding

        self.plain = RotaryEmbedding(dim=8, cache_max_seq_len=12)
        self.scaled = RotaryEmbedding(dim=8, use_xpos=True, xpos_scale_base=16, cache_max_seq_len=12)

    def forward(self, q, k):
        one, two = self.plain.rotate_queries_with_cached_keys(q, k)
        three, four = self.scaled.rotate_queries_and_keys(k, k)
        return one, two, three, four


@model(
    "reflect padding of a signal shorter than the pad adds zeros first and takes them off later",
    lambda batch=2, time=40: (torch.randn(batch, 2, time),),
    far={"time": (1, 2, 3, 4, 5, 6, 7, 16, 33)},
    points=({"batch": 1, "time": 10},),
)
class EncodecSmallInput(nn.Module):
    def __init__(self):
        super().__init__()
        from encodec.modules import SLSTM, SConv1d, SConvTranspose1d

        self.down = SConv1d(2, 4, 9, stride=3, dilation=1, causal=False, norm="weight_norm")
        self.memory = SLSTM(4, num_layers=1)
        self.up = SConvTranspose1d(4, 2, 6, stride=3, causal=True, norm="weight_norm", trim_right_ratio=1.0)

    def forward(self, x):
        return self.up(self.memory(self.down(x)))


@model(
    "distances between positions are clamped to the half of a table; blocks with a depthwise convolution",
    frames,
    far={"time": (1, 2, 16, 33, 64, 511, 512, 513, 520)},
    points=({"batch": 1, "time": 514},),
)
class ConformerClamped(nn.Module):
    def __init__(self):
        super().__init__()
        from conformer import ConformerBlock

        self.block = ConformerBlock(dim=16, dim_head=4, heads=2, ff_mult=1, conv_expansion_factor=1, conv_kernel_size=5)

    def forward(self, x):
        return self.block(x)


@model(
    "axes solved by einx and einops from sizes: a group of three, pads by a remainder, brackets for means",
    lambda batch=2, time=9, channel=6: (torch.randn(batch, time, channel),),
    far={"time": (1, 2, 3, 4, 16, 33), "channel": (2, 4, 8)},
    where=["channel % 2 == 0", "channel >= 2"],
    points=({"batch": 1, "time": 5, "channel": 2},),
)
def solved_axes(self, x):
    import einx
    from einops import pack, rearrange, reduce, repeat, unpack

    missing = -x.shape[1] % 3
    padded = F.pad(x, (0, 0, 0, missing))
    groups = rearrange(padded, "b (g t) (h c) -> b g h t c", t=3, h=2)
    means = einx.mean("b g h [t] c", groups)
    spread = (
        einx.id("b g h c -> b (g 3) (h c)", means)
        if hasattr(einx, "id")
        else repeat(means, "b g h c -> b (g t) (h c)", t=3)
    )
    packed, how = pack([x, spread], "b * c")
    first, second = unpack(packed * 2, how, "b * c")
    return first, second, reduce(groups, "b g h t c -> b h", "max")
