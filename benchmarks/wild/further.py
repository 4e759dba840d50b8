"""Fifty models of third-party packages that wild.py of shared/wild does not have, built from config with random weights; declared before any exporter saw them.
It takes the place of that wild.py beside its worker.py and run.py. `further.md` has the packages, their versions and results.

RECORDS[name]: package, build() -> module, make(sizes) -> {parameter of forward: value}, dynamic {parameter or path: {axis: dim}}, example (sizes), sizes (others).
worker.split() turns what make() returns into (args, kwargs)."""

import os
import sys
import types

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

RECORDS = {}


class Record:
    def __init__(self, name, package, dynamic, example, sizes, build, make, options=None, field=""):
        (
            self.name,
            self.package,
            self.dynamic,
            self.example,
            self.sizes,
            self.build,
            self.make,
            self.options,
            self.field,
        ) = name, package, dynamic, example, sizes, build, make, options, field


def rec(name, package, dynamic, dims, example, sizes, build, make, options=None):
    """dims: names; example and sizes: tuples in that order. dynamic: {input: "batch _ h w"}"""
    dims = dims.split()
    dyn = {k: {i: w for i, w in enumerate(v.split()) if w != "_"} for k, v in dynamic.items()}
    RECORDS[name] = Record(
        name,
        package,
        dyn,
        dict(zip(dims, example)),
        [dict(zip(dims, s)) for s in sizes],
        build,
        lambda s: make(types.SimpleNamespace(**s)),
        options,
    )


r, ri = torch.randn, torch.randint


def lengths(batch, top):
    """lengths that differ, the longest is top"""
    return torch.tensor([max(1, top - (i * max(1, top // 4)) % max(1, top)) for i in range(batch)])


def _mask(b, t):
    return torch.arange(t)[None, :] < lengths(b, t)[:, None]


def _smp_unet():
    import segmentation_models_pytorch as smp

    return smp.Unet("mobilenet_v2", encoder_weights=None, in_channels=3, classes=2, decoder_channels=(32, 16, 16, 8, 8))


rec(
    "smp.Unet",
    "segmentation-models-pytorch",
    {"x": "batch _ h w"},
    "batch h w",
    (2, 64, 96),
    [(1, 32, 32), (3, 64, 64), (1, 128, 96), (2, 32, 160), (4, 96, 64), (1, 256, 192)],
    _smp_unet,
    lambda s: dict(x=r(s.batch, 3, s.h, s.w)),
)


def _smp_fpn():
    import segmentation_models_pytorch as smp

    return smp.FPN(
        "resnet18",
        encoder_weights=None,
        in_channels=1,
        classes=3,
        decoder_pyramid_channels=32,
        decoder_segmentation_channels=32,
    )


rec(
    "smp.FPN",
    "segmentation-models-pytorch",
    {"x": "batch _ h w"},
    "batch h w",
    (2, 64, 96),
    [(1, 64, 32), (3, 64, 64), (1, 128, 96), (2, 32, 160), (4, 96, 64), (1, 224, 192)],
    _smp_fpn,
    lambda s: dict(x=r(s.batch, 1, s.h, s.w)),
)


def _warp():
    from kornia.geometry.transform import warp_perspective

    class WarpPerspective(nn.Module):
        """kornia's warp of a batch of images, each with its homography, at the size they had"""

        def forward(self, src, M):
            return warp_perspective(src, M, dsize=(src.shape[-2], src.shape[-1]))

    return WarpPerspective()


rec(
    "kornia.warp_perspective",
    "kornia",
    {"src": "batch _ h w", "M": "batch _ _"},
    "batch h w",
    (2, 24, 32),
    [(1, 16, 16), (3, 48, 20), (1, 33, 65), (4, 10, 14), (2, 96, 64), (5, 17, 9)],
    _warp,
    lambda s: dict(
        src=torch.rand(s.batch, 3, s.h, s.w),
        M=torch.eye(3)
        + torch.tensor([[0.05, 0.05, 0.5], [0.05, 0.05, 0.5], [0.0005, 0.0005, 0.0]]) * torch.rand(s.batch, 3, 3),
    ),
)


def _enhance():
    from kornia.color import lab_to_rgb, rgb_to_lab
    from kornia.filters import UnsharpMask, sobel

    class Enhance(nn.Module):
        """a preprocessing of images: CIE Lab, unsharp mask on the lightness, back; and its edges"""

        def __init__(self):
            super().__init__()
            self.sharp = UnsharpMask((5, 5), (1.5, 1.5))

        def forward(self, image):
            lab = rgb_to_lab(image)
            l = self.sharp(lab[:, :1])
            return lab_to_rgb(torch.cat([l, lab[:, 1:]], 1)), sobel(l)

    return Enhance()


rec(
    "kornia.UnsharpMask+Lab+sobel",
    "kornia",
    {"image": "batch _ h w"},
    "batch h w",
    (2, 24, 32),
    [(1, 16, 16), (3, 48, 20), (1, 33, 65), (4, 10, 14), (2, 96, 64), (5, 17, 9)],
    _enhance,
    lambda s: dict(image=torch.rand(s.batch, 3, s.h, s.w)),
)


def _lwopenpose():
    from pytorchcv.models.lwopenpose_cmupan import lwopenpose2d_mobilenet_cmupan_coco

    return lwopenpose2d_mobilenet_cmupan_coco()


rec(
    "pytorchcv.lwopenpose2d_mobilenet",
    "pytorchcv",
    {"x": "batch _ h w"},
    "batch h w",
    (2, 64, 96),
    [(1, 32, 32), (3, 64, 64), (1, 128, 96), (2, 40, 160), (1, 96, 72), (1, 160, 128)],
    _lwopenpose,
    lambda s: dict(x=r(s.batch, 3, s.h, s.w)),
)


def _efficientnet():
    from efficientnet_pytorch import EfficientNet

    m = EfficientNet.from_name("efficientnet-b0", num_classes=10)
    m.set_swish(memory_efficient=False)  # as its README says for export
    return m


rec(
    "efficientnet_pytorch.EfficientNet",
    "efficientnet_pytorch",
    {"inputs": "batch _ h w"},
    "batch h w",
    (2, 64, 96),
    [(1, 224, 224), (3, 64, 64), (1, 128, 96), (2, 33, 75), (4, 96, 64), (1, 160, 200)],
    _efficientnet,
    lambda s: dict(inputs=r(s.batch, 3, s.h, s.w)),
)


class SNN(nn.Module):
    """snntorch's tutorial 5: two leaky layers, run over time, spikes and membrane recorded"""

    def __init__(self):
        super().__init__()
        import snntorch as snn

        self.fc1, self.lif1, self.fc2, self.lif2 = (
            nn.Linear(12, 16),
            snn.Leaky(beta=0.9),
            nn.Linear(16, 4),
            snn.Leaky(beta=0.9),
        )

    def forward(self, x):
        mem1, mem2, spk, mem = self.lif1.init_leaky(), self.lif2.init_leaky(), [], []
        for step in range(x.size(0)):
            spk1, mem1 = self.lif1(self.fc1(x[step]), mem1)
            spk2, mem2 = self.lif2(self.fc2(spk1), mem2)
            spk.append(spk2)
            mem.append(mem2)
        return torch.stack(spk, dim=0), torch.stack(mem, dim=0)


rec(
    "snntorch.Leaky",
    "snntorch",
    {"x": "steps batch _"},
    "steps batch",
    (5, 3),
    [(1, 1), (2, 4), (10, 2), (25, 1), (8, 7), (40, 3)],
    SNN,
    lambda s: dict(x=2 * r(s.steps, s.batch, 12)),
)


def _dct():
    from torch_dct import dct_2d, idct_2d

    class DCT(nn.Module):
        """low-pass in the DCT domain"""

        def forward(self, x):
            c = dct_2d(x, norm="ortho")
            keep = (torch.arange(x.shape[-2])[:, None] < 4) & (torch.arange(x.shape[-1]) < 4)
            return c, idct_2d(c * keep, norm="ortho")

    return DCT()


rec(
    "torch_dct.dct_2d+idct_2d",
    "torch-dct",
    {"x": "batch _ h w"},
    "batch h w",
    (2, 8, 12),
    [(1, 8, 8), (3, 16, 16), (1, 7, 13), (4, 32, 20), (2, 5, 64), (5, 10, 9)],
    _dct,
    lambda s: dict(x=r(s.batch, 1, s.h, s.w)),
)


def _nnaudio():
    from nnAudio.features.mel import MelSpectrogram

    return MelSpectrogram(sr=16000, n_fft=256, n_mels=20, hop_length=80, verbose=False)


rec(
    "nnAudio.MelSpectrogram",
    "nnAudio",
    {"x": "batch samples"},
    "batch samples",
    (2, 1600),
    [(1, 800), (3, 1000), (1, 4001), (4, 333), (2, 8000), (5, 1279)],
    _nnaudio,
    lambda s: dict(x=r(s.batch, s.samples)),
)


def _convtasnet():
    from asteroid.models import ConvTasNet

    return ConvTasNet(
        n_src=2,
        n_blocks=3,
        n_repeats=1,
        bn_chan=16,
        hid_chan=32,
        skip_chan=16,
        n_filters=32,
        kernel_size=16,
        stride=8,
        sample_rate=8000,
    )


rec(
    "asteroid.ConvTasNet",
    "asteroid",
    {"wav": "batch samples"},
    "batch samples",
    (2, 800),
    [(1, 400), (3, 333), (1, 2001), (4, 256), (2, 1600), (1, 8000)],
    _convtasnet,
    lambda s: dict(wav=r(s.batch, s.samples)),
)


def _openunmix():
    from openunmix.model import OpenUnmix

    return OpenUnmix(nb_bins=65, nb_channels=2, hidden_size=32, nb_layers=2, max_bin=50)


rec(
    "openunmix.OpenUnmix",
    "openunmix",
    {"x": "batch _ _ frames"},
    "batch frames",
    (2, 12),
    [(1, 5), (3, 20), (1, 64), (4, 9), (2, 33), (1, 255)],
    _openunmix,
    lambda s: dict(x=torch.rand(s.batch, 2, 65, s.frames)),
)


class CSNN(nn.Module):
    """spikingjelly's convolutional SNN in multi-step mode; the state is reset for every input, the rate is the answer"""

    def __init__(self):
        super().__init__()
        from spikingjelly.activation_based import functional, layer, neuron, surrogate

        self.net = nn.Sequential(
            layer.Conv2d(2, 8, 3, padding=1, bias=False),
            layer.BatchNorm2d(8),
            neuron.IFNode(v_threshold=0.5, surrogate_function=surrogate.ATan()),
            layer.MaxPool2d(2, 2),
            layer.Flatten(),
            layer.Linear(8 * 8 * 8, 10),
            neuron.LIFNode(v_threshold=0.1, surrogate_function=surrogate.ATan()),
        )
        functional.set_step_mode(self.net, "m")
        self.reset = functional.reset_net

    def forward(self, x):
        self.reset(self.net)
        return self.net(x).mean(0)


rec(
    "spikingjelly.CSNN",
    "spikingjelly",
    {"x": "steps batch _ _ _"},
    "steps batch",
    (4, 3),
    [(1, 1), (2, 4), (8, 2), (16, 1), (6, 7), (10, 3)],
    CSNN,
    lambda s: dict(x=3 * torch.rand(s.steps, s.batch, 2, 16, 16)),
)


def _htdemucs():
    from demucs.htdemucs import HTDemucs

    return HTDemucs(
        sources=["drums", "vocals"],
        channels=8,
        nfft=512,
        depth=3,
        t_layers=2,
        t_heads=2,
        dconv_comp=4,
        use_train_segment=False,
        samplerate=8000,
        segment=1,
    )


rec(
    "demucs.HTDemucs",
    "demucs",
    {"mix": "batch _ samples"},
    "batch samples",
    (2, 4096),
    [(1, 2048), (3, 3000), (1, 5001), (1, 8192), (2, 2500), (1, 8000)],
    _htdemucs,
    lambda s: dict(mix=r(s.batch, 2, s.samples)),
)


def _denoiser():
    from denoiser.demucs import Demucs

    return Demucs(hidden=8, depth=3, resample=4)


rec(
    "denoiser.Demucs",
    "denoiser",
    {"mix": "batch _ samples"},
    "batch samples",
    (2, 1600),
    [(1, 597), (3, 1000), (1, 4001), (4, 333), (2, 8000), (5, 1279)],
    _denoiser,
    lambda s: dict(mix=r(s.batch, 1, s.samples)),
)


def _ecapa():
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    return ECAPA_TDNN(
        16,
        channels=[16, 16, 16, 48],
        kernel_sizes=[5, 3, 3, 1],
        dilations=[1, 2, 3, 1],
        attention_channels=8,
        lin_neurons=12,
        res2net_scale=4,
        se_channels=8,
    )


rec(
    "speechbrain.ECAPA_TDNN",
    "speechbrain",
    {"x": "batch time _", "lengths": "batch"},
    "batch time",
    (2, 40),
    [(1, 20), (3, 17), (1, 101), (5, 12), (2, 200), (4, 33)],
    _ecapa,
    lambda s: dict(x=r(s.batch, s.time, 16), lengths=lengths(s.batch, s.time) / s.time),
)


def _fbank():
    from speechbrain.lobes.features import Fbank

    return Fbank(deltas=True, context=False, n_mels=20, n_fft=400)


rec(
    "speechbrain.Fbank",
    "speechbrain",
    {"wav": "batch samples"},
    "batch samples",
    (2, 3200),
    [(1, 1600), (3, 1000), (1, 4001), (4, 2333), (2, 16000), (5, 1279)],
    _fbank,
    lambda s: dict(wav=r(s.batch, s.samples)),
)


def _rvq():
    from vector_quantize_pytorch import ResidualVQ

    return ResidualVQ(dim=16, num_quantizers=3, codebook_size=32)


rec(
    "vector_quantize.ResidualVQ",
    "vector-quantize-pytorch",
    {"x": "batch seq _"},
    "batch seq",
    (2, 10),
    [(1, 1), (3, 7), (1, 33), (5, 4), (2, 64), (4, 100)],
    _rvq,
    lambda s: dict(x=r(s.batch, s.seq, 16)),
)


def _egnn():
    from egnn_pytorch import EGNN_Network

    return EGNN_Network(
        num_tokens=21,
        num_positions=64,
        dim=16,
        depth=2,
        num_nearest_neighbors=4,
        norm_coors=True,
        coor_weights_clamp_value=2.0,
    )


rec(
    "egnn_pytorch.EGNN_Network",
    "egnn-pytorch",
    {"feats": "batch nodes", "coors": "batch nodes _", "mask": "batch nodes"},
    "batch nodes",
    (2, 12),
    [(1, 5), (3, 8), (1, 33), (5, 16), (2, 64), (4, 21)],
    _egnn,
    lambda s: dict(feats=ri(0, 21, (s.batch, s.nodes)), coors=r(s.batch, s.nodes, 3), mask=_mask(s.batch, s.nodes)),
)


def _tabt():
    from tab_transformer_pytorch import TabTransformer

    return TabTransformer(
        categories=(5, 7, 3),
        num_continuous=4,
        dim=16,
        dim_out=1,
        depth=2,
        heads=2,
        dim_head=8,
        mlp_hidden_mults=(2, 1),
        mlp_act=nn.ReLU(),
        continuous_mean_std=torch.tensor([[0.0, 1.0], [1.0, 2.0], [0.5, 1.5], [0.0, 3.0]]),
    )


rec(
    "tab_transformer.TabTransformer",
    "tab-transformer-pytorch",
    {"x_categ": "batch _", "x_cont": "batch _"},
    "batch",
    (4,),
    [(1,), (2,), (3,), (7,), (32,), (257,)],
    _tabt,
    lambda s: dict(x_categ=torch.stack([ri(0, c, (s.batch,)) for c in (5, 7, 3)], 1), x_cont=r(s.batch, 4)),
)


def _performer():
    from performer_pytorch import PerformerLM

    return PerformerLM(
        num_tokens=40, max_seq_len=128, dim=16, depth=2, heads=2, dim_head=8, causal=False, nb_features=16
    )


rec(
    "performer_pytorch.PerformerLM",
    "performer-pytorch",
    {"x": "batch seq", "mask": "batch seq"},
    "batch seq",
    (2, 10),
    [(1, 1), (3, 7), (1, 33), (5, 4), (2, 64), (4, 128)],
    _performer,
    lambda s: dict(x=ri(0, 40, (s.batch, s.seq)), mask=_mask(s.batch, s.seq)),
)


def _linformer():
    from linformer import LinformerLM

    return LinformerLM(
        num_tokens=40, dim=16, seq_len=64, depth=2, heads=2, k=8, dim_head=8, one_kv_head=True, share_kv=False
    )


rec(
    "linformer.LinformerLM",
    "linformer",
    {"x": "batch seq"},
    "batch seq",
    (2, 10),
    [(1, 1), (3, 7), (1, 33), (5, 4), (2, 64), (4, 50)],
    _linformer,
    lambda s: dict(x=ri(0, 40, (s.batch, s.seq))),
)


def _tftattn():
    from pytorch_forecasting.models.temporal_fusion_transformer.sub_modules import InterpretableMultiHeadAttention

    return InterpretableMultiHeadAttention(n_head=2, d_model=16)


rec(
    "pytorch_forecasting.InterpretableMHA",
    "pytorch-forecasting",
    {"q": "batch dec _", "k": "batch enc+dec _", "v": "batch enc+dec _", "mask": "batch dec enc+dec"},
    "batch enc dec",
    (2, 10, 4),
    [(1, 1, 1), (3, 24, 6), (1, 60, 12), (5, 7, 7), (2, 3, 9), (4, 30, 1)],
    _tftattn,
    lambda s: dict(
        q=r(s.batch, s.dec, 16),
        k=r(s.batch, s.enc + s.dec, 16),
        v=r(s.batch, s.enc + s.dec, 16),
        mask=torch.cat(
            [
                ~_mask(s.batch, s.enc)[:, None].expand(-1, s.dec, -1),
                torch.ones(s.dec, s.dec).triu(1).bool()[None].expand(s.batch, -1, -1),
            ],
            2,
        ),
    ),
)


def _gluonts():
    from gluonts.torch.model.tft.module import TemporalFusionTransformerModel

    return TemporalFusionTransformerModel(
        context_length=12,
        prediction_length=6,
        d_feat_static_real=[2],
        c_feat_static_cat=[3],
        d_feat_dynamic_real=[4],
        num_heads=2,
        d_hidden=8,
        d_var=8,
    )


rec(
    "gluonts.TemporalFusionTransformer",
    "gluonts",
    {
        k: "batch " + v
        for k, v in dict(
            past_target="_",
            past_observed_values="_",
            feat_static_real="_",
            feat_static_cat="_",
            feat_dynamic_real="_ _",
        ).items()
    },
    "batch",
    (3,),
    [(1,), (2,), (5,), (8,), (32,), (100,)],
    _gluonts,
    lambda s: dict(
        past_target=torch.rand(s.batch, 12) * 10,
        past_observed_values=(torch.rand(s.batch, 12) > 0.2).float(),
        feat_static_real=r(s.batch, 2),
        feat_static_cat=ri(0, 3, (s.batch, 1)),
        feat_dynamic_real=r(s.batch, 18, 4),
    ),
)


class Tide(nn.Module):
    """darts' TiDE with past and future covariates, the sample as tensors"""

    def __init__(self):
        super().__init__()
        from darts.models.forecasting.pl_forecasting_module import PLModuleInput
        from darts.models.forecasting.tide_model import _TideModule

        self.sample = PLModuleInput
        self.tide = _TideModule(
            input_dim=6,
            output_dim=2,
            future_cov_dim=3,
            static_cov_dim=0,
            nr_params=1,
            num_encoder_layers=1,
            num_decoder_layers=1,
            decoder_output_dim=4,
            hidden_size=16,
            temporal_decoder_hidden=8,
            temporal_width_past=2,
            temporal_width_future=2,
            use_layer_norm=True,
            dropout=0.1,
            temporal_hidden_size_past=8,
            temporal_hidden_size_future=8,
            input_chunk_length=12,
            output_chunk_length=5,
        )

    def forward(self, past_target, past_covariates, historic_future_covariates, future_covariates):
        return self.tide(
            self.sample(
                past_target=past_target,
                past_covariates=past_covariates,
                historic_future_covariates=historic_future_covariates,
                future_covariates=future_covariates,
                static_covariates=None,
            )
        )


rec(
    "darts.TiDE",
    "darts",
    {k: "batch _ _" for k in ("past_target", "past_covariates", "historic_future_covariates", "future_covariates")},
    "batch",
    (3,),
    [(1,), (2,), (5,), (8,), (32,), (100,)],
    Tide,
    lambda s: dict(
        past_target=r(s.batch, 12, 2),
        past_covariates=r(s.batch, 12, 1),
        historic_future_covariates=r(s.batch, 12, 3),
        future_covariates=r(s.batch, 5, 3),
    ),
)


def _deepfm():
    from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat
    from deepctr_torch.models import DeepFM

    cols = [
        SparseFeat("user", 20, 8),
        SparseFeat("item", 30, 8),
        DenseFeat("price", 1),
        DenseFeat("age", 1),
        VarLenSparseFeat(SparseFeat("genres", 12, 8), maxlen=5, combiner="mean"),
    ]
    return DeepFM(cols, cols, dnn_hidden_units=(16, 8), task="binary", device="cpu")


rec(
    "deepctr_torch.DeepFM",
    "deepctr-torch",
    {"X": "batch _"},
    "batch",
    (4,),
    [(1,), (2,), (3,), (7,), (32,), (257,)],
    _deepfm,
    lambda s: dict(
        X=torch.cat(
            [
                ri(0, 20, (s.batch, 1)).float(),
                ri(0, 30, (s.batch, 1)).float(),
                torch.rand(s.batch, 2),
                torch.cat(
                    [ri(1, 12, (s.batch, 3)), ri(0, 12, (s.batch, 1)), torch.zeros(s.batch, 1).long()], 1
                ).float(),
            ],
            1,
        )
    ),
)


class Gliner(nn.Module):
    """GLiNER above its encoder: LSTM over words, a representation of each span, scores against each label"""

    def __init__(self):
        super().__init__()
        from types import SimpleNamespace

        from gliner.modeling.layers import LstmSeq2SeqEncoder
        from gliner.modeling.span_rep import SpanRepLayer

        self.rnn, self.span = (
            LstmSeq2SeqEncoder(SimpleNamespace(hidden_size=16)),
            SpanRepLayer(hidden_size=16, max_width=4, span_mode="markerV0", dropout=0.1),
        )

    def forward(self, words, mask, span_idx, labels):
        return torch.einsum("BLKD,BCD->BLKC", self.span(self.rnn(words, mask), span_idx), labels)


def _spans(b, n):
    i = torch.arange(n)[:, None].expand(n, 4)
    j = (i + torch.arange(4)).clamp(max=n - 1)
    return torch.stack([i, j], -1).reshape(1, n * 4, 2).expand(b, -1, -1).contiguous()


rec(
    "gliner.SpanRepLayer",
    "gliner",
    {"words": "batch words _", "mask": "batch words", "span_idx": "batch 4*words _", "labels": "batch labels _"},
    "batch words labels",
    (2, 9, 3),
    [(1, 1, 1), (3, 7, 5), (1, 33, 2), (5, 4, 4), (2, 64, 1), (4, 20, 12)],
    Gliner,
    lambda s: dict(
        words=r(s.batch, s.words, 16),
        mask=_mask(s.batch, s.words).long(),
        span_idx=_spans(s.batch, s.words),
        labels=r(s.batch, s.labels, 16),
    ),
)


def _torchscale():
    from torchscale.architecture.config import EncoderConfig
    from torchscale.architecture.encoder import Encoder

    return Encoder(
        EncoderConfig(
            vocab_size=40,
            encoder_embed_dim=16,
            encoder_attention_heads=2,
            encoder_ffn_embed_dim=32,
            encoder_layers=2,
            rel_pos_buckets=8,
            max_rel_pos=16,
        ),
        embed_tokens=nn.Embedding(40, 16),
    )


rec(
    "torchscale.Encoder",
    "torchscale",
    {"src_tokens": "batch seq", "encoder_padding_mask": "batch seq"},
    "batch seq",
    (2, 9),
    [(1, 1), (3, 7), (1, 33), (5, 4), (2, 64), (4, 20)],
    _torchscale,
    lambda s: dict(src_tokens=ri(0, 40, (s.batch, s.seq)), encoder_padding_mask=~_mask(s.batch, s.seq)),
)


def _mambapy():
    from mambapy.mamba import Mamba, MambaConfig

    return Mamba(MambaConfig(d_model=16, n_layers=2, d_state=4))


rec(
    "mambapy.Mamba",
    "mambapy",
    {"x": "batch seq _"},
    "batch seq",
    (2, 10),
    [(1, 1), (3, 7), (1, 33), (5, 16), (2, 64), (4, 21)],
    _mambapy,
    lambda s: dict(x=r(s.batch, s.seq, 16)),
)


def _kan():
    from kan import KAN

    return KAN(width=[3, 4, 2], grid=5, k=3, seed=0, auto_save=False)


rec(
    "pykan.KAN",
    "pykan",
    {"x": "batch _"},
    "batch",
    (4,),
    [(1,), (2,), (3,), (7,), (32,), (100,)],
    _kan,
    lambda s: dict(x=torch.rand(s.batch, 3) * 2 - 1),
)


def _gp():
    import gpytorch

    class GP(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module, self.covar_module = (
                gpytorch.means.ConstantMean(),
                gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2)),
            )

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class MeanVar(nn.Module):
        """gpytorch's tutorial on tracing an exact GP: mean and variance at the test points, the training caches computed once"""

        def __init__(self, gp):
            super().__init__()
            self.gp = gp

        def forward(self, x):
            with gpytorch.settings.fast_pred_var(), gpytorch.settings.trace_mode():
                o = self.gp(x)
                return o.mean, o.variance

    x = torch.rand(20, 2)
    m = MeanVar(GP(x, torch.sin(6 * x[:, 0]) + x[:, 1], gpytorch.likelihoods.GaussianLikelihood())).eval()
    with torch.no_grad():
        m(torch.rand(3, 2))
    return m


rec(
    "gpytorch.ExactGP",
    "gpytorch",
    {"x": "points _"},
    "points",
    (6,),
    [(1,), (2,), (5,), (17,), (50,), (200,)],
    _gp,
    lambda s: dict(x=torch.rand(s.points, 2)),
)


class SparseAttention(nn.Module):
    """attention whose weights are entmax 1.5, a pointer over the memory with sparsemax"""

    def __init__(self):
        super().__init__()
        from entmax import entmax15, sparsemax

        self.q, self.k, self.v, self.e, self.s = (
            nn.Linear(16, 16),
            nn.Linear(16, 16),
            nn.Linear(16, 16),
            entmax15,
            sparsemax,
        )

    def forward(self, query, memory, mask):
        a = (self.q(query) @ self.k(memory).transpose(1, 2) / 4).masked_fill(~mask[:, None], -1e9)
        return self.e(a, dim=-1) @ self.v(memory), self.s(a.mean(1), dim=-1)


rec(
    "entmax.entmax15+sparsemax",
    "entmax",
    {"query": "batch q _", "memory": "batch m _", "mask": "batch m"},
    "batch q m",
    (2, 3, 9),
    [(1, 1, 1), (3, 7, 5), (1, 2, 33), (5, 4, 4), (2, 20, 64), (4, 1, 12)],
    SparseAttention,
    lambda s: dict(query=r(s.batch, s.q, 16), memory=r(s.batch, s.m, 16), mask=_mask(s.batch, s.m)),
)


def _sisdr():
    from torchmetrics.functional.audio import permutation_invariant_training, scale_invariant_signal_distortion_ratio

    class AudioMetrics(nn.Module):
        """SI-SDR and the best permutation of the sources"""

        def forward(self, preds, target):
            best, perm = permutation_invariant_training(
                preds, target, scale_invariant_signal_distortion_ratio, eval_func="max"
            )
            return best, perm, scale_invariant_signal_distortion_ratio(preds, target, zero_mean=True)

    return AudioMetrics()


rec(
    "torchmetrics.SI-SDR+PIT",
    "torchmetrics",
    {"preds": "batch _ time", "target": "batch _ time"},
    "batch time",
    (2, 100),
    [(1, 10), (3, 77), (1, 1000), (5, 33), (2, 4000), (4, 256)],
    _sisdr,
    lambda s: dict(preds=r(s.batch, 2, s.time), target=r(s.batch, 2, s.time)),
)


def _msssim():
    from pytorch_msssim import MS_SSIM

    return MS_SSIM(data_range=1.0, size_average=False, channel=3)


rec(
    "pytorch_msssim.MS_SSIM",
    "pytorch-msssim",
    {"X": "batch _ h w", "Y": "batch _ h w"},
    "batch h w",
    (2, 176, 192),
    [(1, 161, 161), (2, 200, 256), (1, 256, 177), (3, 163, 170), (1, 300, 165), (1, 256, 256)],
    _msssim,
    lambda s: dict(X=torch.rand(s.batch, 3, s.h, s.w), Y=torch.rand(s.batch, 3, s.h, s.w)),
)


def _ani():
    from torchani.arch import simple_ani

    class ANI(nn.Module):
        """energies of molecules and of their atoms"""

        def __init__(self):
            super().__init__()
            self.ani = simple_ani(
                ("H", "C", "O"),
                lot="wb97x-631gd",
                ensemble_size=1,
                radial_shifts=4,
                angular_shifts=2,
                sections=2,
                repulsion=False,
                periodic_table_index=False,
            )

        def forward(self, species, coordinates):
            return self.ani((species, coordinates)).energies

    return ANI()


rec(
    "torchani.ANI",
    "torchani",
    {"species": "batch atoms", "coordinates": "batch atoms _"},
    "batch atoms",
    (2, 6),
    [(1, 3), (3, 5), (1, 12), (5, 4), (2, 20), (4, 9)],
    _ani,
    lambda s: dict(
        species=ri(0, 3, (s.batch, s.atoms)).masked_fill(~_mask(s.batch, s.atoms), -1),
        coordinates=2 * r(s.batch, s.atoms, 3),
    ),
)


def _e3nn():
    from e3nn import nn as enn
    from e3nn import o3
    from e3nn.math import soft_one_hot_linspace

    class E3Conv(nn.Module):
        """the convolution of e3nn's user guide: spherical harmonics, a radial network, a tensor product for each edge, a sum for each node"""

        def __init__(self):
            super().__init__()
            self.sh = o3.Irreps.spherical_harmonics(2)
            self.tp = o3.FullyConnectedTensorProduct("6x0e+2x1e", self.sh, "4x0e+2x1o", shared_weights=False)
            self.fc = enn.FullyConnectedNet([8, 16, self.tp.weight_numel], torch.relu)

        def forward(self, x, pos, edge_index):
            src, dst = edge_index[0], edge_index[1]
            v = pos[dst] - pos[src]
            sh = o3.spherical_harmonics(self.sh, v, normalize=True, normalization="component")
            emb = soft_one_hot_linspace(v.norm(dim=1), 0.0, 4.0, 8, basis="smooth_finite", cutoff=True).mul(8**0.5)
            m = self.tp(x[src], sh, self.fc(emb))
            return m.new_zeros(x.shape[0], m.shape[1]).index_add(0, dst, m)

    return E3Conv()


rec(
    "e3nn.Convolution",
    "e3nn",
    {"x": "nodes _", "pos": "nodes _", "edge_index": "_ edges"},
    "nodes edges",
    (8, 20),
    [(2, 1), (2, 9), (3, 5), (30, 12), (16, 16), (50, 200), (7, 31)],
    _e3nn,
    lambda s: dict(
        x=r(s.nodes, 12),
        pos=0.6 * r(s.nodes, 3),
        edge_index=torch.stack(
            [
                torch.arange(s.edges) % s.nodes,
                (torch.arange(s.edges) + 1 + torch.arange(s.edges) // s.nodes % (s.nodes - 1)) % s.nodes,
            ]
        ),
    ),
    dict(values={"edge_index": "0 <= edge_index < nodes"}),
)


class NODE(nn.Module):
    """torchdiffeq's spiral: the solution at the times asked for, fixed-step solver"""

    def __init__(self):
        super().__init__()
        from torchdiffeq import odeint

        self.net, self.odeint = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)), odeint

    def forward(self, y0, t):
        return self.odeint(lambda t, y: self.net(y**3), y0, t, method="rk4")


rec(
    "torchdiffeq.odeint(rk4)",
    "torchdiffeq",
    {"y0": "batch _", "t": "steps"},
    "batch steps",
    (3, 6),
    [(1, 2), (2, 5), (5, 12), (1, 20), (16, 3), (4, 33)],
    NODE,
    lambda s: dict(y0=r(s.batch, 2), t=torch.linspace(0.0, 1.0, s.steps)),
)


def _normflows():
    import normflows as nf

    class NSF(nn.Module):
        """normflows' neural spline flow: log density"""

        def __init__(self):
            super().__init__()
            fl = []
            for _ in range(2):
                fl += [nf.flows.AutoregressiveRationalQuadraticSpline(3, 1, 16), nf.flows.LULinearPermute(3)]
            self.flow = nf.NormalizingFlow(nf.distributions.DiagGaussian(3, trainable=False), fl)

        def forward(self, x):
            return self.flow.log_prob(x)

    return NSF()


rec(
    "normflows.NSF(log_prob)",
    "normflows",
    {"x": "batch _"},
    "batch",
    (4,),
    [(1,), (2,), (3,), (7,), (32,), (100,)],
    _normflows,
    lambda s: dict(x=2 * r(s.batch, 3)),
)


class Zuko(nn.Module):
    """zuko's conditional masked autoregressive flow: log density of x given c"""

    def __init__(self):
        super().__init__()
        import zuko

        self.flow = zuko.flows.MAF(3, 2, transforms=2, hidden_features=(16, 16))

    def forward(self, x, c):
        return self.flow(c).log_prob(x)


rec(
    "zuko.MAF(log_prob)",
    "zuko",
    {"x": "batch _", "c": "batch _"},
    "batch",
    (4,),
    [(1,), (2,), (3,), (7,), (32,), (100,)],
    Zuko,
    lambda s: dict(x=r(s.batch, 3), c=r(s.batch, 2)),
)


def _openclip():
    from open_clip import CLIP

    return CLIP(
        16,
        dict(layers=2, width=32, head_width=16, patch_size=8, image_size=32),
        dict(context_length=16, vocab_size=50, width=32, heads=2, layers=2),
    )


rec(
    "open_clip.CLIP",
    "open_clip_torch",
    {"image": "images _ _ _", "text": "texts _"},
    "images texts",
    (2, 3),
    [(1, 1), (3, 7), (1, 10), (5, 2), (8, 8), (4, 1)],
    _openclip,
    lambda s: dict(
        image=r(s.images, 3, 32, 32),
        text=torch.cat([ri(1, 49, (s.texts, 10)), torch.full((s.texts, 1), 49), torch.zeros(s.texts, 5).long()], 1),
    ),
)


class SamPrompt(nn.Module):
    """segment-anything behind its image encoder: prompts of points against one image"""

    def __init__(self):
        super().__init__()
        from segment_anything.modeling import MaskDecoder, PromptEncoder, TwoWayTransformer

        self.enc = PromptEncoder(
            embed_dim=32, image_embedding_size=(8, 8), input_image_size=(128, 128), mask_in_chans=8
        )
        self.dec = MaskDecoder(
            num_multimask_outputs=3,
            transformer=TwoWayTransformer(depth=2, embedding_dim=32, mlp_dim=64, num_heads=4),
            transformer_dim=32,
            iou_head_depth=2,
            iou_head_hidden_dim=32,
        )

    def forward(self, image_embeddings, point_coords, point_labels):
        sparse, dense = self.enc(points=(point_coords, point_labels), boxes=None, masks=None)
        return self.dec(
            image_embeddings=image_embeddings,
            image_pe=self.enc.get_dense_pe(),
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=True,
        )


rec(
    "segment_anything.PromptEncoder+MaskDecoder",
    "segment-anything",
    {"point_coords": "prompts points _", "point_labels": "prompts points"},
    "prompts points",
    (2, 3),
    [(1, 1), (3, 2), (1, 8), (5, 4), (8, 1), (4, 10)],
    SamPrompt,
    lambda s: dict(
        image_embeddings=r(1, 32, 8, 8),
        point_coords=torch.rand(s.prompts, s.points, 2) * 128,
        point_labels=ri(-1, 2, (s.prompts, s.points)),
    ),
)


def _vocos():
    from vocos.heads import ISTFTHead
    from vocos.models import VocosBackbone

    class Vocos(nn.Module):
        """Vocos behind its features: mel frames to samples"""

        def __init__(self):
            super().__init__()
            self.backbone, self.head = VocosBackbone(16, 32, 64, 2), ISTFTHead(32, 64, 16, padding="center")

        def forward(self, features):
            return self.head(self.backbone(features))

    return Vocos()


rec(
    "vocos.Vocos",
    "vocos",
    {"features": "batch _ frames"},
    "batch frames",
    (2, 12),
    [(1, 5), (3, 20), (1, 64), (4, 9), (2, 33), (1, 255)],
    _vocos,
    lambda s: dict(features=r(s.batch, 16, s.frames)),
)


def _snac():
    from snac import SNAC

    return SNAC(
        sampling_rate=24000,
        encoder_dim=16,
        encoder_rates=[2, 4],
        decoder_dim=64,
        decoder_rates=[4, 2],
        attn_window_size=4,
        codebook_size=16,
        codebook_dim=4,
        vq_strides=[4, 2, 1],
        noise=False,
    )


rec(
    "snac.SNAC",
    "snac",
    {"audio_data": "batch _ samples"},
    "batch samples",
    (2, 128),
    [(1, 64), (3, 100), (1, 257), (4, 40), (2, 512), (1, 2000)],
    _snac,
    lambda s: dict(audio_data=r(s.batch, 1, s.samples)),
)


def _bigvgan():
    from bigvgan.bigvgan import BigVGAN
    from bigvgan.env import AttrDict

    m = BigVGAN(
        AttrDict(
            dict(
                num_mels=16,
                resblock="1",
                upsample_rates=[4, 2],
                upsample_kernel_sizes=[8, 4],
                upsample_initial_channel=16,
                resblock_kernel_sizes=[3, 7],
                resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]],
                activation="snakebeta",
                snake_logscale=True,
            )
        )
    )
    m.remove_weight_norm()  # as its README says for inference
    return m


rec(
    "bigvgan.BigVGAN",
    "bigvgan",
    {"x": "batch _ frames"},
    "batch frames",
    (2, 12),
    [(1, 5), (3, 20), (1, 64), (4, 9), (2, 33), (1, 200)],
    _bigvgan,
    lambda s: dict(x=r(s.batch, 16, s.frames)),
)


def _glowtts():
    from TTS.tts.layers.glow_tts.encoder import Encoder

    return Encoder(
        40,
        8,
        16,
        16,
        "rel_pos_transformer",
        dict(
            kernel_size=3,
            dropout_p=0.1,
            num_layers=2,
            num_heads=2,
            hidden_channels_ffn=32,
            rel_attn_window_size=4,
            input_length=None,
        ),
    )


rec(
    "TTS.GlowTTS.Encoder",
    "TTS",
    {"x": "batch chars", "x_lengths": "batch"},
    "batch chars",
    (2, 10),
    [(1, 1), (3, 7), (1, 33), (5, 4), (2, 64), (4, 21)],
    _glowtts,
    lambda s: dict(x=ri(0, 40, (s.batch, s.chars)), x_lengths=lengths(s.batch, s.chars)),
)


def _tcn():
    from pytorch_tcn import TCN

    return TCN(
        num_inputs=4,
        num_channels=[8, 8, 8],
        kernel_size=3,
        dilations=[1, 2, 4],
        causal=True,
        use_skip_connections=True,
        input_shape="NLC",
        output_projection=2,
    )


rec(
    "pytorch_tcn.TCN",
    "pytorch-tcn",
    {"x": "batch time _"},
    "batch time",
    (2, 20),
    [(1, 1), (3, 7), (1, 33), (5, 12), (2, 64), (4, 300)],
    _tcn,
    lambda s: dict(x=r(s.batch, s.time, 4)),
)


def _cfc():
    from ncps.torch import CfC
    from ncps.wirings import AutoNCP

    return CfC(5, AutoNCP(12, 3), batch_first=True)


rec(
    "ncps.CfC",
    "ncps",
    {"input": "batch time _"},
    "batch time",
    (2, 6),
    [(1, 1), (3, 7), (1, 24), (5, 4), (2, 32), (4, 12)],
    _cfc,
    lambda s: dict(input=r(s.batch, s.time, 5)),
)


def _ncde():
    from torchcde import CubicSpline, cdeint
    from torchcde import hermite_cubic_coefficients_with_backward_differences as hermite

    class F(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8 * 3), nn.Tanh())

        def forward(self, t, z):
            return self.net(z).view(z.size(0), 8, 3)

    class NCDE(nn.Module):
        """torchcde's neural controlled differential equation: Hermite coefficients, a spline, a fixed-step solver, a readout"""

        def __init__(self):
            super().__init__()
            self.func, self.initial, self.readout = F(), nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x):
            X = CubicSpline(hermite(x))
            z = cdeint(
                X=X,
                func=self.func,
                z0=self.initial(X.evaluate(X.interval[0])),
                t=X.interval,
                adjoint=False,
                method="rk4",
                options=dict(step_size=1.0),
            )
            return self.readout(z[:, -1])

    return NCDE()


rec(
    "torchcde.cdeint",
    "torchcde",
    {"x": "batch length _"},
    "batch length",
    (2, 7),
    [(1, 2), (3, 5), (1, 12), (5, 4), (2, 20), (4, 30)],
    _ncde,
    lambda s: dict(
        x=torch.cat([torch.linspace(0, 1, s.length)[None, :, None].expand(s.batch, -1, -1), r(s.batch, s.length, 2)], 2)
    ),
)


def _fno():
    from neuralop.models import FNO

    return FNO(
        n_modes=(6, 6),
        in_channels=2,
        out_channels=1,
        hidden_channels=8,
        n_layers=2,
        lifting_channel_ratio=2,
        projection_channel_ratio=2,
    )


rec(
    "neuralop.FNO",
    "neuraloperator",
    {"x": "batch _ h w"},
    "batch h w",
    (2, 16, 24),
    [(1, 8, 8), (3, 16, 16), (1, 13, 21), (4, 32, 20), (2, 10, 64), (5, 9, 12)],
    _fno,
    lambda s: dict(x=r(s.batch, 2, s.h, s.w)),
)


def _chronos():
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    m = ChronosBoltModelForForecasting(
        T5Config(
            d_model=16,
            d_kv=8,
            d_ff=32,
            num_layers=2,
            num_heads=2,
            vocab_size=2,
            dropout_rate=0.0,
            decoder_start_token_id=0,
            pad_token_id=0,
            chronos_config=dict(
                context_length=64,
                prediction_length=8,
                input_patch_size=4,
                input_patch_stride=4,
                quantiles=[0.1, 0.5, 0.9],
                use_reg_token=True,
            ),
        )
    )
    return m


rec(
    "chronos.ChronosBolt",
    "chronos-forecasting",
    {"context": "batch time"},
    "batch time",
    (2, 24),
    [(1, 4), (3, 17), (1, 64), (5, 33), (2, 50), (4, 7)],
    _chronos,
    lambda s: dict(context=r(s.batch, s.time).cumsum(1)),
)


def _lpips():
    import lpips

    return lpips.LPIPS(net="squeeze", pretrained=False, pnet_rand=True, verbose=False)


rec(
    "lpips.LPIPS",
    "lpips",
    {"in0": "batch _ h w", "in1": "batch _ h w"},
    "batch h w",
    (2, 64, 96),
    [(1, 32, 32), (3, 64, 64), (1, 127, 95), (2, 40, 160), (4, 96, 70), (1, 224, 224)],
    _lpips,
    lambda s: dict(in0=torch.rand(s.batch, 3, s.h, s.w) * 2 - 1, in1=torch.rand(s.batch, 3, s.h, s.w) * 2 - 1),
)
