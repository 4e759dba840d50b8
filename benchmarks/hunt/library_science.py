"""PyPI libraries, part 4: differential equations, prompts, retention, kernels, flows, codebooks, codecs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("pypi science")


def steps(batch=2, seq=6):
    return (torch.randn(batch, seq, 16),)


@model(
    "torchdiffeq: fixed step RK4 over the given times, one answer per time",
    lambda batch=2, times=5: (torch.randn(batch, 4), torch.rand(times).cumsum(0)),
    far={"times": (2, 3, 9, 33), "batch": (1, 33)},
    points=({"batch": 3, "times": 4},),
    unproved=True,
)
class OdeTimes(nn.Module):
    def __init__(self):
        super().__init__()
        from torchdiffeq import odeint

        self.solve = odeint
        self.field = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x, t):
        return self.solve(lambda when, y: self.field(y) * torch.cos(when), x, t, method="rk4")


@model(
    "torchdiffeq: adaptive dopri5, the number of steps depends on values",
    lambda batch=2: (torch.randn(batch, 3),),
    far={"batch": (1, 3, 16)},
    rare={"large": lambda batch=2: (torch.full((batch, 3), 8.0),), "zeros": lambda batch=2: (torch.zeros(batch, 3),)},
    unproved=True,
)
class OdeAdaptive(nn.Module):
    def __init__(self):
        super().__init__()
        from torchdiffeq import odeint

        self.solve = odeint
        self.mix = nn.Linear(3, 3)

    def forward(self, x):
        return self.solve(
            lambda when, y: torch.tanh(self.mix(y**3)) - y,
            x,
            torch.tensor([0.0, 1.0]),
            method="dopri5",
            rtol=1e-4,
            atol=1e-5,
        )[-1]


@model(
    "torchcde: natural cubic splines by a tridiagonal loop over the length, evaluated at other times by bucketize",
    lambda batch=2, length=5, queries=3: (torch.randn(batch, length, 2), torch.rand(queries) * (length - 1)),
    far={"length": (2, 3, 4, 17, 33), "queries": (1, 16)},
    points=({"batch": 3, "length": 2, "queries": 2},),
    unproved=True,
)
class SplineQueries(nn.Module):
    def __init__(self):
        super().__init__()
        import torchcde

        self.coeffs, self.spline = torchcde.natural_cubic_coeffs, torchcde.CubicSpline

    def forward(self, x, when):
        spline = self.spline(self.coeffs(x))
        return torch.stack([spline.evaluate(one) for one in when], 1), spline.derivative(when[0])


@model(
    "torchcde: linear paths fill missing values forward; NaN decides",
    lambda batch=2, length=5: (
        torch.where(torch.rand(batch, length, 2) > 0.3, torch.randn(batch, length, 2), torch.nan),
    ),
    far={"length": (2, 3, 17)},
    rare={"full": lambda batch=2, length=5: (torch.randn(batch, length, 2),)},
    unproved=True,
)
class MissingValues(nn.Module):
    def __init__(self):
        super().__init__()
        import torchcde

        self.fill = torchcde.linear_interpolation_coeffs

    def forward(self, x):
        return self.fill(x)


@model(
    "entmax: sparse softmax over a growing support of top k=4, the rest solved again where it is too small; exact entmax 1.5",
    lambda batch=3, classes=7: (torch.randn(batch, classes) * 2,),
    far={"classes": (1, 3, 4, 5, 33), "batch": (1, 64)},
    points=({"batch": 1, "classes": 1},),
    rare={"level": lambda batch=3, classes=7: (torch.zeros(batch, classes),)},
    unproved=True,
)
class SupportGrows(nn.Module):
    def __init__(self):
        super().__init__()
        from entmax import entmax15, entmax_bisect, sparsemax

        self.sparse, self.half, self.bisect = sparsemax, entmax15, entmax_bisect

    def forward(self, x):
        return self.sparse(x, dim=-1, k=4), self.half(x, dim=0), self.bisect(x, alpha=1.3, dim=-1, n_iter=20)


@model(
    "snntorch: spiking neurons with hidden membranes over time, reset by subtraction, loops over the length",
    lambda batch=2, seq=6: (torch.randn(batch, seq, 8),),
    far={"seq": (1, 2, 20, 33), "batch": (1, 33)},
    points=({"batch": 3, "seq": 10},),
)
class SpikeTrain(nn.Module):
    def __init__(self):
        super().__init__()
        import snntorch as snn

        self.proj = nn.Linear(8, 6)
        self.first, self.second = snn.Leaky(beta=0.9), snn.Synaptic(alpha=0.8, beta=0.7, reset_mechanism="zero")

    def forward(self, x):
        mem1 = self.first.init_leaky()
        syn, mem2 = self.second.init_synaptic()
        out = []
        for t in range(x.shape[1]):
            spikes, mem1 = self.first(self.proj(x[:, t]) * 2, mem1)
            spikes, syn, mem2 = self.second(spikes, syn, mem2)
            out.append(spikes)
        return torch.stack(out, 1), mem2


@model(
    "segment_anything: windows of 3 are padded, relative positions interpolated to the size in global blocks; no absolute table",
    lambda batch=1, height=16, width=24: (torch.randn(batch, 3, height, width),),
    far={"height": (4, 8, 12, 20, 28, 33), "width": (12, 20, 64)},
    points=({"batch": 2, "height": 24, "width": 24},),
)
class WindowsOfThree(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from segment_anything.modeling import ImageEncoderViT

        self.net = ImageEncoderViT(
            img_size=24,
            patch_size=4,
            embed_dim=16,
            depth=2,
            num_heads=2,
            out_chans=8,
            use_abs_pos=False,
            use_rel_pos=True,
            window_size=3,
            global_attn_indexes=(1,),
        )

    def forward(self, x):
        return self.net(x)


@model(
    "segment_anything: any number of points per prompt (labels -1, 0, 1) and one image; masks for each prompt are upscaled",
    lambda prompts=2, points=3: (
        torch.randn(1, 16, 6, 6),
        torch.rand(prompts, points, 2) * 24,
        torch.randint(-1, 2, (prompts, points)),
    ),
    far={"prompts": (1, 3, 16), "points": (1, 2, 33)},
    points=({"prompts": 1, "points": 1},),
    rare={
        "none": lambda prompts=2, points=3: (
            torch.randn(1, 16, 6, 6),
            torch.rand(prompts, points, 2),
            torch.full((prompts, points), -1),
        )
    },
)
class PointPrompts(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from segment_anything.modeling import MaskDecoder, PromptEncoder, TwoWayTransformer

        self.encoder = PromptEncoder(
            embed_dim=16, image_embedding_size=(6, 6), input_image_size=(24, 24), mask_in_chans=4
        )
        self.decoder = MaskDecoder(
            transformer_dim=16,
            transformer=TwoWayTransformer(depth=1, embedding_dim=16, num_heads=2, mlp_dim=16),
            iou_head_hidden_dim=8,
        )

    def forward(self, embedding, points, labels):
        sparse, dense = self.encoder(points=(points, labels), boxes=None, masks=None)
        return self.decoder(embedding, self.encoder.get_dense_pe(), sparse, dense, multimask_output=True)


@model(
    "open_clip: attention blocks with scaled heads and norms of queries and keys, a causal mask made per call, pooled by learned queries whatever the length",
    lambda batch=2, seq=7: (torch.randn(batch, seq, 16),),
    far={"seq": (1, 2, 33, 100), "batch": (1, 16)},
    points=({"batch": 3, "seq": 3}, {"batch": 5, "seq": 5}),
)
class CosinePooler(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from open_clip.transformer import AttentionalPooler, CustomResidualAttentionBlock

        self.block = CustomResidualAttentionBlock(
            16, 2, qk_norm=True, scale_heads=True, scale_attn_inner=True, scale_attn=True, scale_fc=True
        )
        self.pool = AttentionalPooler(8, 16, n_head=2, n_queries=5)

    def forward(self, x):
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        return self.pool(self.block(x, attn_mask=mask))


@model(
    "open_clip: a text tower with a class embedding at the end; its mask is built from pad ids and repeated over heads (CoCa)",
    lambda batch=2, seq=7: (torch.randint(0, 3, (batch, seq)),),
    where=["seq <= 12"],
    far={"seq": (1, 2, 11, 12)},
    points=({"batch": 3, "seq": 12},),
    rare={"pads": lambda batch=2, seq=7: (torch.zeros(batch, seq, dtype=torch.int64),)},
)
class CocaText(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from open_clip.transformer import TextTransformer

        self.net = TextTransformer(
            context_length=13,
            vocab_size=50,
            width=16,
            heads=2,
            layers=1,
            output_dim=8,
            embed_cls=True,
            pad_id=0,
            output_tokens=True,
            pool_type="last",
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "torchscale: retention in chunks of 4, the sequence padded to chunks, cross-chunk states by a loop",
    lambda batch=2, seq=6: (torch.randint(1, 20, (batch, seq)),),
    far={"seq": (1, 3, 4, 5, 8, 9, 16)},
    points=({"batch": 3, "seq": 12},),
    unproved=True,
)
class ChunkedRetention(nn.Module):
    def __init__(self):
        super().__init__()
        from torchscale.architecture.config import RetNetConfig
        from torchscale.architecture.retnet import RetNetDecoder

        config = RetNetConfig(
            vocab_size=20,
            decoder_embed_dim=16,
            decoder_value_embed_dim=32,
            decoder_retention_heads=2,
            decoder_ffn_embed_dim=16,
            decoder_layers=1,
            chunkwise_recurrent=True,
            recurrent_chunk_size=4,
        )
        self.net = RetNetDecoder(config, embed_tokens=nn.Embedding(20, 16, padding_idx=1))

    def forward(self, ids):
        return self.net(ids)[0]


@model(
    "torchscale: an encoder with buckets of relative positions and XPOS off, padding mask from pad ids, deep norm",
    lambda batch=2, seq=6: (torch.randint(1, 6, (batch, seq)),),
    far={"seq": (1, 2, 9, 33)},
    points=({"batch": 3, "seq": 20},),
)
class BucketEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        from torchscale.architecture.config import EncoderConfig
        from torchscale.architecture.encoder import Encoder

        config = EncoderConfig(
            vocab_size=20,
            encoder_embed_dim=16,
            encoder_attention_heads=2,
            encoder_ffn_embed_dim=16,
            encoder_layers=1,
            rel_pos_buckets=8,
            max_rel_pos=16,
            deepnorm=True,
            no_output_layer=True,
        )
        self.net = Encoder(config, embed_tokens=nn.Embedding(20, 16, padding_idx=1))

    def forward(self, ids):
        return self.net(ids, encoder_padding_mask=ids.eq(1).masked_fill(torch.arange(ids.shape[1]) == 0, False))[
            "encoder_out"
        ]


@model(
    "kan: B-splines by the recursion of de Boor on an extended grid, NaN to numbers; inputs beyond the grid",
    lambda batch=4: (torch.rand(batch, 3) * 2 - 1,),
    far={"batch": (1, 2, 33)},
    rare={"outside": lambda batch=4: (torch.randn(batch, 3) * 5,)},
)
class SplineNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        from kan.KANLayer import KANLayer

        self.first, self.second = KANLayer(3, 4, num=5, k=3), KANLayer(4, 2, num=3, k=2)

    def forward(self, x):
        return self.second(self.first(x)[0])[0]


@model(
    "lambda_networks: local context by a 3D convolution of 5 by 5, any height and width",
    lambda batch=1, height=6, width=9: (torch.randn(batch, 16, height, width),),
    far={"height": (1, 2, 33), "width": (1, 64)},
    points=({"batch": 2, "height": 7, "width": 7},),
)
class LocalLambdas(nn.Module):
    def __init__(self):
        super().__init__()
        from lambda_networks import LambdaLayer

        self.net = LambdaLayer(dim=16, dim_out=16, r=5, dim_k=4, heads=2, dim_u=2)

    def forward(self, x):
        return self.net(x)


@model(
    "halonet_pytorch: blocks of 4 with a halo of 1, sizes must divide; a mask for the border by unfolding ones",
    lambda batch=1, height=8, width=12: (torch.randn(batch, 16, height, width),),
    far={"height": (4, 16, 32), "width": (4, 8, 64)},
    points=({"batch": 2, "height": 4, "width": 4},),
)
class HaloBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        from halonet_pytorch import HaloAttention

        self.net = HaloAttention(dim=16, block_size=4, halo_size=1, dim_head=8, heads=2)

    def forward(self, x):
        return self.net(x)


@model(
    "point_transformer_pytorch: four neighbours by distance when there are more points than four, else all; a mask",
    lambda batch=2, points=7: (
        torch.randn(batch, points, 8),
        torch.randn(batch, points, 3),
        torch.arange(points)[None] < torch.randint(1, points + 1, (batch, 1)),
    ),
    far={"points": (1, 3, 4, 5, 33)},
    points=({"batch": 1, "points": 4},),
)
class PointNeighbours(nn.Module):
    def __init__(self):
        super().__init__()
        from point_transformer_pytorch import PointTransformerLayer

        self.net = PointTransformerLayer(dim=8, pos_mlp_hidden_dim=8, attn_mlp_hidden_mult=2, num_neighbors=4)

    def forward(self, x, pos, mask):
        return self.net(x, pos, mask=mask)


@model(
    "gpytorch: exact Gaussian process algebra by kernels: training points and test points vary, Cholesky solve",
    lambda train=5, test=3: (torch.randn(train, 2), torch.randn(train), torch.randn(test, 2)),
    far={"train": (1, 2, 33), "test": (1, 33)},
    points=({"train": 4, "test": 4}, {"train": 1, "test": 1}),
)
class KernelRegression(nn.Module):
    def __init__(self):
        super().__init__()
        import gpytorch

        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2))

    def forward(self, train, values, test):
        k = self.kernel(train, train).to_dense() + 0.1 * torch.eye(len(train))
        cross = self.kernel(test, train).to_dense()
        return cross @ torch.cholesky_solve(values[:, None], torch.linalg.cholesky(k))


@model(
    "zuko: an autoregressive spline flow: log-probability searches bins, tails are linear beyond 5",
    lambda batch=4: (torch.randn(batch, 3) * 2, torch.randn(batch, 2)),
    far={"batch": (1, 2, 33)},
    rare={"tails": lambda batch=4: (torch.full((batch, 3), 6.0), torch.zeros(batch, 2))},
)
class SplineFlow(nn.Module):
    def __init__(self):
        super().__init__()
        import zuko

        self.flow = zuko.flows.NSF(3, 2, bins=4, transforms=2, hidden_features=(8,))

    def forward(self, x, context):
        return self.flow(context).log_prob(x)


@model(
    "spandrel: SwinIR pads to its window by reflection, masks of shifted windows are remade when the size is not the trained one; upscale 2 and cut",
    lambda batch=1, height=8, width=12: (torch.rand(batch, 3, height, width),),
    far={"height": (3, 4, 5, 9, 33), "width": (5, 8, 15)},
    points=({"batch": 2, "height": 8, "width": 8}, {"height": 7, "width": 7}),
)
class ShiftedRestore(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from spandrel.architectures.SwinIR import SwinIR

        self.net = SwinIR(
            img_size=8,
            embed_dim=12,
            depths=[2],
            num_heads=[2],
            window_size=4,
            mlp_ratio=1.0,
            upscale=2,
            upsampler="pixelshuffledirect",
        )

    def forward(self, x):
        return self.net(x)


@model(
    "enformer_pytorch: attention pooling by 4 pads by the remainder (right only when it is 0 or 2), relative positions in gamma features",
    lambda batch=2, seq=14: (torch.randn(batch, 16, seq),),
    far={"seq": (4, 6, 8, 10, 34, 64)},
    points=({"batch": 1, "seq": 18},),
)
class RemainderPool(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("polars", "pyfaidx"):
            from enformer_pytorch.modeling_enformer import Attention, AttentionPool
        self.pool = AttentionPool(16, pool_size=4)
        self.attention = Attention(16, num_rel_pos_features=12, heads=2, dim_key=8, dim_value=8)

    def forward(self, x):
        return self.attention(self.pool(x).transpose(1, 2))


@model(
    "vector_quantize_pytorch: residual codebooks with a mask of lengths, indices and codes gathered again",
    lambda batch=2, seq=6: (
        torch.randn(batch, seq, 16),
        torch.arange(seq)[None] < torch.randint(1, seq + 1, (batch, 1)),
    ),
    far={"seq": (1, 2, 33), "batch": (1, 16)},
    points=({"batch": 3, "seq": 7},),
)
class ResidualCodes(nn.Module):
    def __init__(self):
        super().__init__()
        from vector_quantize_pytorch import ResidualVQ

        self.net = ResidualVQ(dim=16, num_quantizers=3, codebook_size=12, codebook_dim=6)

    def forward(self, x, mask):
        quantized, indices, _ = self.net(x, mask=mask)
        return quantized, indices, self.net.get_output_from_indices(indices)


@model(
    "vector_quantize_pytorch: finite scalars with even and odd levels (half offsets), images channel first",
    lambda batch=2, height=4, width=5: (torch.randn(batch, 6, height, width) * 3,),
    far={"height": (1, 33), "width": (1, 64)},
    points=({"batch": 1, "height": 1, "width": 1},),
    rare={"halves": lambda batch=2, height=4, width=5: (torch.zeros(batch, 6, height, width),)},
)
class FiniteScalars(nn.Module):
    def __init__(self):
        super().__init__()
        from vector_quantize_pytorch import FSQ

        self.net = FSQ(levels=[8, 5, 3], dim=6, num_codebooks=2)

    def forward(self, x):
        codes, indices = self.net(x)
        return codes, indices, self.net.indices_to_codes(indices)


@model(
    "pytorch_tcn: causal dilated convolutions streamed: a block of any length, buffers come in by an iterator and go out as tails",
    lambda seq=5: (torch.randn(1, 4, seq), torch.randn(1, 4, 4), torch.randn(1, 6, 6)),
    far={"seq": (1, 2, 4, 5, 6, 7, 33)},
)
class StreamedBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        from pytorch_tcn import TCN
        from pytorch_tcn.buffer import BufferIO
        from pytorch_tcn.conv import TemporalConv1d

        self.io = BufferIO
        self.first = TemporalConv1d(4, 6, kernel_size=3, dilation=2, causal=True)
        self.second = TemporalConv1d(6, 6, kernel_size=3, dilation=3, causal=True)
        self.rest = TCN(
            6, [6, 6], kernel_size=3, dilations=[1, 2], causal=False, use_skip_connections=True, use_gate=True
        )

    def forward(self, x, first, second):
        io = self.io(in_buffers=[first, second])
        x = F.relu(self.first(x, inference=True, buffer_io=io))
        x = self.second(x, inference=True, buffer_io=io)
        return self.rest(x), io.out_buffers[0], io.out_buffers[1]


@model(
    "snac: an encoder pads to its hop times strides, three codebooks at three rates, repeated and decoded; cut to the length",
    lambda batch=1, samples=200: (torch.randn(batch, 1, samples),),
    far={"samples": (1, 31, 32, 33, 64, 65, 333)},
    points=({"batch": 2, "samples": 128},),
)
class ThreeRates(nn.Module):
    def __init__(self):
        super().__init__()
        from snac import SNAC

        self.net = SNAC(
            sampling_rate=8000,
            encoder_dim=4,
            encoder_rates=[2, 4],
            decoder_dim=16,
            decoder_rates=[4, 2],
            attn_window_size=None,
            codebook_size=16,
            codebook_dim=4,
            vq_strides=[4, 2, 1],
            noise=False,
            depthwise=False,
        )

    def forward(self, x):
        audio, codes = self.net(x)
        return audio, codes[0], codes[1], codes[2]


@model(
    "vocos: a ConvNeXt backbone of features and an inverse STFT head with same padding (fold of windows, envelope)",
    lambda batch=2, frames=9: (torch.randn(batch, 10, frames),),
    far={"frames": (1, 2, 3, 33, 64)},
    points=({"batch": 1, "frames": 20},),
)
class FramesToWave(nn.Module):
    def __init__(self):
        super().__init__()
        from vocos.heads import ISTFTHead
        from vocos.models import VocosBackbone

        self.backbone, self.head = (
            VocosBackbone(10, 16, 32, num_layers=1),
            ISTFTHead(16, n_fft=32, hop_length=8, padding="same"),
        )

    def forward(self, x):
        return self.head(self.backbone(x))
