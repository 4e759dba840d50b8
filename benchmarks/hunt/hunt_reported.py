"""Nine classes of models that people install: open where eager is open (variants of the table of issue 38)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("left")

# ---------------------------------------------------------------- 1: left the symbolic strategy though torch captures it


def picture(batch=2, height=24, width=32):
    return (torch.randn(batch, 3, height, width),)


def tokens(batch=2, seq=5):
    return (torch.randint(0, 50, (batch, seq)),)


@model(
    "table of positions resized with size=(h, w), bicubic, at any image",
    picture,
    far={"height": (4, 7, 16, 33, 64, 97), "width": (4, 16, 33, 64, 130)},
    points=({"batch": 1, "height": 32, "width": 32}, {"batch": 3, "height": 65, "width": 18}),
)
class PositionsBySize(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.cls = nn.Parameter(torch.randn(1, 1, 16))
        self.position_embeddings = nn.Parameter(torch.randn(1, 1 + 64, 16))
        self.block = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 5)

    def interpolated(self, height: int, width: int) -> torch.Tensor:
        positions = self.position_embeddings.shape[1] - 1
        cls, grid = self.position_embeddings[:, :1], self.position_embeddings[:, 1:]
        dim = grid.shape[-1]
        side = int(positions**0.5)
        grid = grid.reshape(1, side, side, dim).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(height // 4, width // 4), mode="bicubic", align_corners=False)
        return torch.cat((cls, grid.permute(0, 2, 3, 1).view(1, -1, dim)), dim=1)

    def forward(self, x):
        _, _, height, width = x.shape
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.cls.expand(y.shape[0], -1, -1), y), dim=1)
        return self.head(self.block(y + self.interpolated(height, width))[:, 0])


@model(
    "scale_factor with the offset of 0.1, and the table as it is at its own size (the two differ there)",
    picture,
    far={"height": (8, 16, 24, 32, 33, 64), "width": (8, 16, 31, 33, 64)},
    points=({"batch": 1, "height": 24, "width": 24}, {"batch": 2, "height": 48, "width": 48}),
)
class PositionsByScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 12, 8, 8)
        self.pos_embed = nn.Parameter(torch.randn(1, 9, 12))
        self.mix = nn.Linear(12, 12)

    def pos(self, n, w, h):
        table = self.pos_embed.shape[1]
        if n == table and w == h:
            return self.pos_embed
        side = int(math.sqrt(table))
        sx, sy = float(w // 8 + 0.1) / side, float(h // 8 + 0.1) / side
        grid = F.interpolate(
            self.pos_embed.reshape(1, side, side, 12).permute(0, 3, 1, 2), scale_factor=(sx, sy), mode="bicubic"
        )
        assert (w // 8, h // 8) == grid.shape[-2:]
        return grid.permute(0, 2, 3, 1).reshape(1, -1, 12)

    def forward(self, x):
        _, _, w, h = x.shape
        y = self.patch(x).flatten(2).transpose(1, 2)
        return self.mix(y + self.pos(y.shape[1], w, h)).relu()


@model(
    "a causal mask made by comparing two arange, the end of text found by argmax of the ids",
    tokens,
    far={"seq": (1, 2, 3, 16, 33, 64, 77), "batch": (1, 7)},
    where=["seq <= 77"],
)
class TextTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.position = nn.Embedding(77, 16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, ids):
        batch, seq = ids.shape
        steps = torch.arange(seq, device=ids.device)
        visible = steps[None, :] <= steps[:, None]
        mask = torch.full((seq, seq), torch.finfo(torch.float32).min).masked_fill(visible, 0.0)
        h = self.embed(ids) + self.position(steps)
        q, k, v = (t.view(batch, seq, 4, 4).transpose(1, 2) for t in self.qkv(h).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / 2.0 + mask
        h = h + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, seq, 16))
        return h[torch.arange(batch), ids.argmax(dim=-1)], h


def masked_words(batch=2, seq=6):
    keep = torch.ones(batch, seq, dtype=torch.int64)
    keep[:, seq // 2 + 1 :] = 0
    return dict(x=torch.randn(batch, seq, 8), attention_mask=keep)


@model(
    "(1.0 - mask) of an int64 mask becomes an additive bias, and mean pooling divides by its sum",
    masked_words,
    far={"seq": (1, 2, 16, 33, 128), "batch": (1, 3, 7)},
    rare={
        "all kept": lambda batch=2, seq=6: dict(
            x=torch.randn(batch, seq, 8), attention_mask=torch.ones(batch, seq).long()
        )
    },
)
class IntegerMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Linear(8, 24)

    def forward(self, x, attention_mask):
        bias = (1.0 - attention_mask[:, None, None, :]) * -10000.0
        q, k, v = self.attention(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        probabilities = torch.softmax(q @ k.transpose(2, 3) * 0.5 + bias, dim=-1)
        y = (probabilities @ v).transpose(1, 2).flatten(2)
        weight = attention_mask.unsqueeze(-1).expand(y.size()).float()
        return (y * weight).sum(1) / torch.clamp(weight.sum(1), min=1e-9), 1.0 - attention_mask


# ---------------------------------------------------------------------------------- 2: trivial stops of torch.export


def shape_of(tensor):
    """A helper as libraries have it: sizes as plain integers."""
    return tuple(int(size) for size in tensor.shape)


def mel(batch=2, frames=9, past=3):
    return dict(mel=torch.randn(batch, 6, frames), text=torch.randn(batch, past, 16))


with model.theme("stops"):

    @model(
        "is_causal=n > 1 handed to the fused attention, sizes through int() in a helper",
        mel,
        far={"frames": (1, 2, 3, 16, 33), "past": (1, 2, 7, 33)},
        points=({"batch": 1, "frames": 1, "past": 1}, {"batch": 3, "frames": 64, "past": 1}),
    )
    class CausalWhenMany(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(6, 16, 3, stride=2, padding=1)
            self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 32)

        def heads(self, t):
            batch, length, width = shape_of(t)
            return t.view(batch, length, 4, width // 4).permute(0, 2, 1, 3)

        def attend(self, x, context):
            n_ctx = shape_of(x)[1]
            k, v = self.kv(context).chunk(2, -1)
            y = F.scaled_dot_product_attention(
                self.heads(self.q(x)), self.heads(k), self.heads(v), is_causal=context is x and n_ctx > 1
            )
            return y.permute(0, 2, 1, 3).flatten(start_dim=2)

        def forward(self, mel, text):
            audio = F.gelu(self.conv(mel)).permute(0, 2, 1)
            text = text + self.attend(text, text)
            return text + self.attend(text, audio)

    def levels(batch=2, height=8, width=12, queries=4):
        return dict(
            fine=torch.randn(batch, 8, height, width),
            coarse=torch.randn(batch, 8, height // 2 + 1, width // 2 + 1),
            queries=torch.rand(batch, queries, 8),
        )

    @model(
        "torch.as_tensor(x.shape)[1], spatial shapes and level starts as tensors, torch.tensor([h for _ in range(n)])",
        levels,
        far={"height": (2, 3, 16, 33), "width": (2, 7, 64), "queries": (1, 7, 33)},
        points=({"batch": 1, "height": 31, "width": 6, "queries": 2},),
    )
    class LevelsAsTensors(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(8, 8)

        def forward(self, fine, coarse, queries):
            maps = [fine, coarse]
            shapes = torch.as_tensor([tuple(m.shape[-2:]) for m in maps], dtype=torch.long)
            starts = torch.cat((shapes.new_zeros((1,)), shapes.prod(1).cumsum(0)[:-1]))
            flat = torch.cat([m.flatten(2).transpose(1, 2) for m in maps], 1)
            total = torch.as_tensor(flat.shape)[1]
            count = queries.shape[1]
            heights = torch.tensor([fine.shape[2] for _ in range(count)])
            rows = (queries[..., 0] * heights).floor().clamp(max=float(fine.shape[2] - 1))
            index = (rows * fine.shape[3]).long() + starts[0]
            picked = flat.gather(1, index[..., None].expand(-1, -1, flat.shape[2]))
            return self.mix(picked) + queries, flat.mean(1) * total.to(flat.dtype) / (shapes.prod(1).sum())

    @torch.jit.script
    def overlap_and_add(frames: torch.Tensor, step: int) -> torch.Tensor:
        batch, channels, length, count = frames.shape
        total = (count - 1) * step + length
        out = torch.zeros([batch * channels, 1, 1, total], dtype=frames.dtype)
        if length == step:
            return frames.permute(0, 1, 3, 2).reshape(batch, channels, -1)
        out = F.fold(frames.reshape(batch * channels, length, count), [1, total], [1, length], stride=[1, step])
        return out.view(batch, channels, total)

    @torch.jit.script_if_tracing
    def split_frames(x: torch.Tensor, size: int, step: int):
        missing = (step - (x.shape[-1] - size) % step) % step
        x = F.pad(x, (0, missing))
        return x.unfold(-1, size, step).permute(0, 1, 3, 2), missing

    @model(
        "source separation with helpers under torch.jit.script and script_if_tracing",
        lambda batch=2, samples=50: (torch.randn(batch, 1, samples),),
        far={"samples": (8, 9, 11, 12, 16, 33, 64, 437, 1000), "batch": (1, 3)},
    )
    class SeparatesWithScripts(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Conv1d(1, 6, 4)
            self.gate = nn.Linear(5, 5)

        def forward(self, wave):
            samples = wave.shape[-1]
            features = self.encode(F.pad(wave, (3, 0))).relu()
            frames, missing = split_frames(features, 5, 2)
            frames = (frames.transpose(2, 3) * self.gate(frames.transpose(2, 3)).sigmoid()).transpose(2, 3)
            return overlap_and_add(frames, 2)[..., :samples]

    @model(
        "2 ** math.ceil(math.log2(n)): the length of the transform is the next power of two",
        lambda batch=2, samples=20: (torch.randn(batch, samples), torch.randn(7)),
        far={"samples": (1, 2, 3, 16, 17, 33, 57, 58, 59, 64, 65, 122, 123, 250, 251, 500)},
    )
    class NextPower(nn.Module):
        def forward(self, x, kernel):
            length = x.shape[-1] + kernel.shape[0] - 1
            size = 2 ** math.ceil(math.log2(length))
            padded = F.pad(x, (0, size - x.shape[-1]))
            blocks = padded.unflatten(-1, (2, size // 2)) if size > 1 else padded[:, None]
            y = F.conv1d(F.pad(x, (6, 6))[:, None], kernel.flip(0)[None, None])[:, 0]
            return y / math.sqrt(size), blocks.mean(-1)


# ------------------------------------------------------------------------------------------------ 3: masks from lengths


def speech(batch=3, frames=10):
    lengths = torch.arange(batch).remainder(frames).neg().add(frames)
    return (torch.randn(batch, frames, 6), lengths)


def short_speech(batch=3, frames=10):
    return (torch.randn(batch, frames, 6), torch.full((batch,), (frames + 1) // 2))


with model.theme("lengths"):

    @model(
        "int(torch.max(lengths).item()) and arange: the mask may be shorter than the frames, which are cut to it",
        speech,
        far={"frames": (1, 2, 3, 16, 33, 64), "batch": (1, 2, 7, 16)},
        rare={"all shorter": short_speech},
    )
    class MaskFromLongest(nn.Module):
        def __init__(self):
            super().__init__()
            self.ffn = nn.Linear(6, 6)
            self.conv = nn.Conv1d(6, 6, 3, padding=1, groups=6)

        def forward(self, x, lengths):
            max_length = int(torch.max(lengths).item())
            padding = torch.arange(max_length, device=lengths.device, dtype=lengths.dtype).expand(
                lengths.shape[0], max_length
            ) >= lengths.unsqueeze(1)
            x = x[:, :max_length].masked_fill(padding[..., None], 0.0)
            x = x + self.conv(x.transpose(1, 2)).transpose(1, 2).masked_fill(padding[..., None], 0.0)
            return self.ffn(x), lengths

    def pieces(batch=3, total=12):
        counts = torch.ones(batch, dtype=torch.int64)
        counts[-1] = max(total - batch + 1, 1)
        return (torch.randn(int(counts.sum()), 4), counts)

    @model(
        "pad_sequence of the pieces of torch.split(x, counts.tolist())",
        pieces,
        where=["total >= batch"],
        far={"total": (3, 4, 16, 33, 64), "batch": (1, 2, 7, 12)},
        points=({"batch": 1, "total": 1}, {"batch": 5, "total": 5}),
        rare={"even pieces": lambda batch=3, total=12: (torch.randn(12, 4), torch.tensor([4, 4, 4]))},
        unproved=True,
    )
    def pads_the_pieces(self, x, counts):
        split = torch.split(x, counts.tolist())
        padded = nn.utils.rnn.pad_sequence(split, batch_first=True, padding_value=-1.0)
        return padded, padded.amax(1)

    def phonemes(batch=2, seq=5):
        durations = torch.arange(batch * seq).reshape(batch, seq) % 3 + 1
        return (torch.randn(batch, seq, 4), durations)

    @model(
        "a length regulator: repeat_interleave of each sample by its durations, zero durations included",
        phonemes,
        far={"seq": (1, 2, 3, 16, 33), "batch": (1, 3, 7)},
        rare={
            "pauses": lambda batch=2, seq=5: (
                torch.randn(batch, seq, 4),
                torch.tensor([[0, 2, 0, 1, 3], [1, 1, 0, 0, 9]]),
            ),
        },
        unproved=True,
    )
    class LengthRegulator(nn.Module):
        def __init__(self):
            super().__init__()
            self.decode = nn.Linear(4, 3)

        def forward(self, x, durations):
            expanded = [torch.repeat_interleave(one, d, dim=0) for one, d in zip(x, durations)]
            lengths = durations.sum(1)
            out = x.new_zeros(x.shape[0], int(lengths.max()), x.shape[2])
            for i, one in enumerate(expanded):
                out[i, : one.shape[0]] = one
            return self.decode(out), lengths

    @model(
        "per sample: the boxes above a threshold are kept, the best two of them summed; a sample may keep none",
        lambda batch=2, boxes=6: (torch.rand(batch, boxes, 4), torch.rand(batch, boxes)),
        far={"boxes": (1, 2, 3, 16, 33, 64), "batch": (1, 3, 7)},
        rare={
            "none kept": lambda batch=2, boxes=6: (torch.rand(batch, boxes, 4), torch.zeros(batch, boxes)),
            "all kept": lambda batch=2, boxes=6: (
                torch.rand(batch, boxes, 4),
                torch.linspace(0.9, 1.0, batch * boxes).view(batch, boxes),
            ),
        },
        unproved=True,
    )
    def filters_each_sample(self, boxes, scores):
        results, counts = [], []
        for sample in range(boxes.shape[0]):
            keep = scores[sample] > 0.5
            kept, weight = boxes[sample][keep], scores[sample][keep]
            k = min(2, weight.shape[0])
            best = weight.topk(k).indices
            results.append(kept[best].sum(0))
            counts.append(keep.sum())
        return torch.stack(results), torch.stack(counts)


# ----------------------------------------------------------------------------------- 4: values that we make do not fit


def graph(nodes=5, edges=8):
    source = torch.arange(edges) * 3 % nodes
    target = (torch.arange(edges) * 2 + 1) % nodes
    return (torch.randn(nodes, 6), torch.stack([source, target]))


with model.theme("values"):

    @model(
        "edges index the nodes: attention over a graph with a softmax by scatter",
        graph,
        far={"nodes": (1, 2, 3, 16, 33), "edges": (1, 2, 7, 33, 64)},
        points=({"nodes": 64, "edges": 3}, {"nodes": 2, "edges": 50}),
    )
    class GraphAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(6, 8, bias=False)
            self.src, self.dst = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(2, 4))

        def forward(self, x, edge_index):
            nodes = x.shape[0]
            loops = torch.arange(nodes).repeat(2, 1)
            source, target = torch.cat([edge_index, loops], dim=1)
            h = self.lin(x).view(nodes, 2, 4)
            alpha = F.leaky_relu((h * self.src).sum(-1)[source] + (h * self.dst).sum(-1)[target], 0.2)
            peak = torch.full((nodes, 2), -1e30).scatter_reduce(0, target[:, None].expand(-1, 2), alpha, "amax")
            weight = (alpha - peak[target]).exp()
            total = torch.zeros(nodes, 2).index_add(0, target, weight)
            weight = weight / (total[target] + 1e-16)
            return torch.zeros(nodes, 2, 4).index_add(0, target, h[source] * weight[..., None]).flatten(1)

    @model(
        "categories by column: each column has a table of its own, one column is negative for missing",
        lambda batch=4: dict(
            categories=torch.stack(
                [
                    torch.arange(batch) % 3,
                    torch.arange(batch) % 11,
                    torch.arange(batch) % 2,
                    torch.arange(batch) % 5 - 1,
                ],
                1,
            ),
            numbers=torch.randn(batch, 3),
        ),
        far={"batch": (1, 2, 3, 7, 16, 33, 64, 500)},
    )
    class CategoriesByColumn(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(n, d) for n, d in ((3, 2), (11, 4), (2, 1), (5, 3))])
            self.norm = nn.BatchNorm1d(3)
            self.head = nn.Linear(13, 2)

        def forward(self, categories, numbers):
            shift = torch.tensor([0, 0, 0, 1])
            columns = (categories + shift).unbind(1)
            found = [table(column) for table, column in zip(self.tables, columns)]
            return self.head(torch.cat([*found, self.norm(numbers)], dim=1))

    def plane(batch=2, height=9, width=13):
        base = torch.eye(3).repeat(batch, 1, 1)
        return dict(image=torch.rand(batch, 2, height, width), homography=base + 0.02 * torch.rand(batch, 3, 3))

    @model(
        "a homography warps the image: its third row divides, so that random numbers make no sense",
        plane,
        far={"height": (2, 3, 16, 33), "width": (2, 7, 64), "batch": (1, 3)},
        rare={
            "identity": lambda batch=2, height=9, width=13: dict(
                image=torch.rand(batch, 2, height, width), homography=torch.eye(3).repeat(batch, 1, 1)
            )
        },
    )
    def warps_a_plane(self, image, homography):
        batch, _, height, width = image.shape
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
        points = torch.stack([xs, ys, torch.ones_like(xs)], -1).reshape(-1, 3)
        moved = points @ torch.linalg.inv(homography).transpose(1, 2)
        scale = moved[..., 2:]
        moved = moved[..., :2] / torch.where(scale.abs() > 1e-8, scale, torch.ones_like(scale))
        return F.grid_sample(image, moved.view(batch, height, width, 2), align_corners=True, padding_mode="border")


# ---------------------------------------------------------------------------------------- 5: walks over foreign objects


class Shaped(tuple):
    """A tuple with a meaning of its own: its length and equality are questions to something else."""

    def __new__(cls, *sizes):
        return super().__new__(cls, sizes)

    def __len__(self):
        raise TypeError("a layout has no length, ask its rank")

    def __eq__(self, other):
        raise TypeError("layouts are compared with .same()")

    __hash__ = tuple.__hash__

    def first(self):
        return tuple.__getitem__(self, 0)


class LazyImports:
    """A module that is imported at first use; every attribute is a search that fails here."""

    def __getattr__(self, name):
        raise ImportError(f"optional dependency for {name!r} is not installed")


class Symbol:
    """A column or symbol: comparisons make expressions, whose truth is an error."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return Symbol(f"({self.name} == {getattr(other, 'name', other)})")

    def __bool__(self):
        raise ValueError(f"the truth value of {self.name} is ambiguous")

    def __len__(self):
        raise NotImplementedError("unknown before it is collected")

    def __iter__(self):
        raise RuntimeError("iterating would start a query")

    __hash__ = None


with model.theme("foreign"):

    @model(
        "a subclass of tuple that raises in __len__ and __eq__, held by the module and given to its blocks",
        lambda batch=2, seq=5: (torch.randn(batch, seq, 8),),
        far={"seq": (1, 2, 3, 33), "batch": (1, 7)},
    )
    class HoldsLayouts(nn.Module):
        def __init__(self):
            super().__init__()
            self.layout = Shaped(2, 4)
            self.layouts = {"in": self.layout, "out": [Shaped(4, 2), Shaped(8)]}
            self.lin = nn.Linear(4, 4)
            self.lin.layout = self.layout

        def forward(self, x):
            groups = self.lin.layout.first()
            y = x.unflatten(-1, (groups, 4))
            return self.lin(y).amax(2) + x.mean(1, keepdim=True)[..., :4]

    @model(
        "an object whose every attribute raises ImportError, beside the weights",
        lambda batch=2, time=7: (torch.randn(batch, time, 4),),
        far={"time": (1, 2, 3, 16, 33), "batch": (1, 3)},
    )
    class HoldsLazyImports(nn.Module):
        backend = LazyImports()

        def __init__(self):
            super().__init__()
            self.extras = LazyImports()
            self.options = {"backend": self.extras, "rate": 2}
            self.gru = nn.GRU(4, 5, batch_first=True)

        def forward(self, x):
            y, last = self.gru(x)
            return y[:, :: self.options["rate"]], last[0]

    @model(
        "symbolic columns in a list and a default argument, with truth, length and iteration that raise",
        lambda batch=3, columns=4: (torch.randn(batch, columns),),
        far={"columns": (1, 2, 3, 7, 33), "batch": (1, 2, 16)},
    )
    class HoldsSymbols(nn.Module):
        def __init__(self):
            super().__init__()
            self.schema = [Symbol("age"), Symbol("income")]
            self.filter = self.schema[0] == self.schema[1]
            self.weight = nn.Parameter(torch.tensor(0.5))

        def forward(self, x, where=Symbol("all")):
            if where is not None and self.filter is not None:
                x = x - x.mean(1, keepdim=True)
            return torch.cat([x * self.weight, x.new_full((x.shape[0], 1), float(x.shape[1]))], 1)


# --------------------------------------------------------------------------------- 6: state that libraries keep lazily

with model.theme("lazy"):

    @model(
        "a router that casts its own weights to float32 in the first call",
        lambda batch=2, seq=5: (torch.randn(batch, seq, 8),),
        far={"seq": (1, 2, 16, 33), "batch": (1, 3, 7)},
    )
    class CastingRouter(nn.Module):
        def __init__(self):
            super().__init__()
            self.classifier = nn.Linear(8, 3).to(torch.bfloat16)
            self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
            self.dtype = torch.float32

        def _cast_classifier(self):
            if self.classifier.weight.dtype != self.dtype:
                self.classifier = self.classifier.to(self.dtype)

        def forward(self, x):
            self._cast_classifier()
            probabilities = self.classifier(x).softmax(-1)
            outputs = torch.stack([expert(x) for expert in self.experts], 2)
            chosen = F.one_hot(probabilities.argmax(-1), 3).to(x.dtype)
            return (outputs * (chosen * probabilities)[..., None]).sum(2), probabilities

    @model(
        "positions interpolated with antialias, kept by (height, width, device) in a dict",
        picture,
        far={"height": (4, 8, 33, 64), "width": (4, 16, 33, 65)},
        points=({"batch": 1, "height": 40, "width": 24}, {"batch": 3, "height": 12, "width": 100}),
    )
    class CachesByDevice(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 4, 4)
            self.table = nn.Parameter(torch.randn(1, 8, 6, 6))
            self.cache = {}
            self.head = nn.Conv2d(8, 4, 1)

        def positions(self, height, width, device):
            key = (height, width, str(device))
            if key not in self.cache:
                self.cache[key] = F.interpolate(
                    self.table, size=(height, width), mode="bilinear", antialias=True, align_corners=False
                )
            return self.cache[key]

        def forward(self, x):
            y = self.stem(x)
            return self.head(F.gelu(y + self.positions(y.shape[2], y.shape[3], y.device)))

    @model(
        "rotary tables built at first use and grown by a call that is longer than any before",
        lambda batch=2, seq=6: (torch.randn(batch, 2, seq, 8),),
        far={"seq": (1, 2, 3, 15, 16, 17, 33, 64), "batch": (1, 3)},
    )
    class GrowingRotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequency", 100.0 ** (-torch.arange(0, 8, 2).float() / 8), persistent=False)
            self.cos = self.sin = None
            self.longest = 0

        def tables(self, seq, device):
            if self.cos is None or seq > self.longest or self.cos.device != device:
                self.longest = max(seq, 16)
                angle = torch.outer(torch.arange(self.longest, device=device).float(), self.frequency)
                angle = torch.cat((angle, angle), dim=-1)
                self.cos, self.sin = angle.cos(), angle.sin()
            return self.cos[:seq], self.sin[:seq]

        def forward(self, x):
            cos, sin = self.tables(x.shape[-2], x.device)
            first, second = x.chunk(2, dim=-1)
            return x * cos + torch.cat((-second, first), dim=-1) * sin


# ---------------------------------------------------------------------------------------------------------- 7: time

with model.theme("time"):

    class Residual(nn.Module):
        def __init__(self, before, after, time):
            super().__init__()
            self.norm1, self.conv1 = nn.GroupNorm(4, before), nn.Conv2d(before, after, 3, padding=1)
            self.time = nn.Linear(time, after)
            self.norm2, self.conv2 = nn.GroupNorm(4, after), nn.Conv2d(after, after, 3, padding=1)
            self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

        def forward(self, x, time):
            y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
            return self.skip(x) + self.conv2(F.silu(self.norm2(y)))

    class CrossAttention(nn.Module):
        def __init__(self, width, text):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(text, 2 * width, bias=False)

        def forward(self, x, text):
            batch, width, h, w = x.shape
            y = self.norm(x.permute(0, 2, 3, 1).reshape(batch, h * w, width))
            k, v = self.kv(text).view(batch, -1, 2, 2, width // 2).permute(2, 0, 3, 1, 4)
            q = self.q(y).view(batch, -1, 2, width // 2).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, h * w, width)
            return x + y.reshape(batch, h, w, width).permute(0, 3, 1, 2).contiguous()

    @model(
        "a conditional UNet with skips of other sizes: three downs, interpolate to the size of the skip, text beside it",
        lambda batch=2, height=12, width=20, words=5: dict(
            sample=torch.randn(batch, 4, height, width),
            timestep=torch.arange(batch) * 40 % 1000,
            text=torch.randn(batch, words, 6),
        ),
        far={"height": (1, 2, 3, 7, 16, 33), "width": (1, 7, 16, 33, 64), "words": (1, 2, 77)},
        points=({"batch": 1, "height": 9, "width": 15, "words": 3},),
    )
    class SmallUNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Linear(8, 16)
            self.start = nn.Conv2d(4, 8, 3, padding=1)
            widths = (8, 12, 16)
            self.downs = nn.ModuleList([Residual(a, b, 16) for a, b in zip((8, *widths), widths)])
            self.smaller = nn.ModuleList([nn.Conv2d(w, w, 3, stride=2, padding=1) for w in widths])
            self.middle = CrossAttention(16, 6)
            self.ups = nn.ModuleList([Residual(16 + 16, 12, 16), Residual(12 + 12, 8, 16), Residual(8 + 8, 8, 16)])
            self.crosses = nn.ModuleList([CrossAttention(w, 6) for w in (12, 8, 8)])
            self.end = nn.Conv2d(8, 4, 3, padding=1)

        def forward(self, sample, timestep, text):
            default = any(s % 8 != 0 for s in sample.shape[-2:])
            frequency = torch.exp(-math.log(10000) * torch.arange(4, dtype=torch.float32) / 4)
            angle = timestep[:, None].float() * frequency[None]
            time = self.time(torch.cat([angle.cos(), angle.sin()], -1))
            x, skips = self.start(sample), []
            for block, smaller in zip(self.downs, self.smaller):
                x = block(x, time)
                skips.append(x)
                x = smaller(x)
            x = self.middle(x, text)
            for block, cross in zip(self.ups, self.crosses):
                skip = skips.pop()
                if default:
                    x = F.interpolate(x, size=skip.shape[2:], mode="nearest")
                else:
                    x = F.interpolate(x, scale_factor=2.0, mode="nearest")
                x = cross(block(torch.cat([x, skip], 1), time), text)
            return self.end(F.silu(x))

    @model(
        "shifted windows over two open sides: padding to whole windows, a mask of regions by slices, roll and unroll",
        lambda batch=2, height=10, width=13: (torch.randn(batch, height, width, 8),),
        far={"height": (1, 2, 3, 4, 5, 8, 16, 33), "width": (1, 3, 4, 7, 12, 64)},
        points=({"batch": 1, "height": 4, "width": 4}, {"batch": 1, "height": 3, "width": 19}),
    )
    class ShiftedWindows(nn.Module):
        window, shift = 4, 2

        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.bias = nn.Parameter(torch.randn(49, 2))
            at = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
            apart = at[:, :, None] - at[:, None, :] + 3
            self.register_buffer("index", apart[0] * 7 + apart[1])

        def cut(self, x):
            batch, height, width, channels = x.shape
            x = x.view(batch, height // 4, 4, width // 4, 4, channels)
            return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels)

        def regions(self, height, width, shifts):
            number = torch.zeros(1, height, width, 1)
            count = 0
            for rows in (slice(0, -4), slice(-4, -shifts[0] or None), slice(-shifts[0], None)):
                for columns in (slice(0, -4), slice(-4, -shifts[1] or None), slice(-shifts[1], None)):
                    number[:, rows, columns] = count
                    count += 1
            number = self.cut(number)[..., 0]
            apart = number[:, None, :] - number[:, :, None]
            return apart.masked_fill(apart != 0, -100.0)

        def forward(self, x):
            batch, height, width, channels = x.shape
            y = F.pad(x, (0, 0, 0, (4 - width % 4) % 4, 0, (4 - height % 4) % 4))
            padded_height, padded_width = y.shape[1], y.shape[2]
            shifts = [0 if side <= self.window else self.shift for side in (padded_height, padded_width)]
            if sum(shifts) > 0:
                y = torch.roll(y, (-shifts[0], -shifts[1]), (1, 2))
            windows = self.cut(y)
            q, k, v = self.qkv(windows).view(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-1, -2) + self.bias[self.index].permute(2, 0, 1)
            if sum(shifts) > 0:
                mask = self.regions(padded_height, padded_width, shifts)
                count = mask.shape[0]
                scores = scores.view(-1, count, 2, 16, 16) + mask[None, :, None]
                scores = scores.view(-1, 2, 16, 16)
            y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 16, channels))
            y = y.view(batch, padded_height // 4, padded_width // 4, 4, 4, channels).permute(0, 1, 3, 2, 4, 5)
            y = y.reshape(batch, padded_height, padded_width, channels)
            if sum(shifts) > 0:
                y = torch.roll(y, shifts, (1, 2))
            return x + y[:, :height, :width]

    @model(
        "a conditional random field: the forward algorithm and the best path, back pointers walked from the end",
        lambda batch=2, seq=6: (torch.randn(batch, seq, 4), torch.ones(batch, seq, dtype=torch.bool)),
        far={"seq": (1, 2, 3, 16, 33, 64), "batch": (1, 3, 7)},
    )
    class RandomField(nn.Module):
        def __init__(self):
            super().__init__()
            self.start, self.end = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
            self.transitions = nn.Parameter(torch.randn(4, 4))

        def forward(self, emissions, mask):
            seq = emissions.shape[1]
            alpha = best = self.start + emissions[:, 0]
            history = []
            for t in range(1, seq):
                here = mask[:, t, None]
                step = alpha[:, :, None] + self.transitions + emissions[:, t, None]
                alpha = torch.where(here, step.logsumexp(1), alpha)
                found, pointer = (best[:, :, None] + self.transitions + emissions[:, t, None]).max(1)
                best = torch.where(here, found, best)
                history.append(pointer)
            tag = (best + self.end).argmax(1)
            path = [tag]
            for pointer in reversed(history):
                tag = pointer.gather(1, tag[:, None])[:, 0]
                path.append(tag)
            path.reverse()
            return (alpha + self.end).logsumexp(1), torch.stack(path, 1)


# ------------------------------------------------------------------------------ 8: loops that shrink, caches in torch's form

with model.theme("shrink"):

    @model(
        "a pyramid: while more than one step is left, even and odd steps are added, an odd end is carried over",
        lambda batch=2, seq=11: (torch.randn(batch, seq, 3),),
        far={"seq": (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64, 100), "batch": (1, 3)},
        unproved=True,
    )
    class Pyramid(nn.Module):
        def __init__(self):
            super().__init__()
            self.merge = nn.Linear(3, 3)

        def forward(self, x):
            while x.shape[1] > 1:
                if x.shape[1] % 2:
                    x = F.pad(x, (0, 0, 0, 1))
                x = x[:, ::2] + torch.tanh(self.merge(x[:, 1::2]))
            return x[:, 0]

    @model(
        "an image is halved while its shorter side is at least four; the depth weighs the answer",
        lambda batch=2, height=20, width=30: (torch.rand(batch, 2, height, width),),
        far={"height": (1, 2, 3, 4, 7, 8, 16, 33, 64), "width": (1, 3, 4, 7, 16, 31, 33)},
        points=({"batch": 1, "height": 40, "width": 6}, {"batch": 3, "height": 64, "width": 64}),
        unproved=True,
    )
    def halves_while_large(self, x):
        total, depth = x.mean((2, 3)), 0
        while min(x.shape[2:]) >= 4:
            x = F.avg_pool2d(x, 2)
            depth += 1
            total = total + x.amax((2, 3)) / (2**depth)
        return total, x.sum((2, 3)) * (depth + 1)

    class Layers:
        """A cache of keys and values, flat for torch: key 0, value 0, key 1, value 1."""

        def __init__(self, tensors):
            self.tensors = list(tensors)

        def layer(self, number):
            return self.tensors[2 * number], self.tensors[2 * number + 1]

    torch.utils._pytree.register_pytree_node(
        Layers,
        lambda cache: (cache.tensors, None),
        lambda tensors, _: Layers(tensors),
        serialized_type_name="hunt_e1.Layers",
        flatten_with_keys_fn=lambda cache: (
            [(torch.utils._pytree.SequenceKey(i), t) for i, t in enumerate(cache.tensors)],
            None,
        ),
    )

    def decoding(batch=2, seq=3, past=4):
        return dict(
            input_ids=torch.randint(0, 40, (batch, seq)),
            attention_mask=torch.ones(batch, past + seq, dtype=torch.int64),
            past_key_values=Layers(torch.randn(batch, 2, past, 4) for _ in range(4)),
        )

    @model(
        "a decoder with a cache class, declared in torch's flat dynamic_shapes; one token at a time",
        decoding,
        dynamic={
            "input_ids": {0: "batch", 1: "seq"},
            "attention_mask": {0: "batch", 1: "past + seq"},
            "past_key_values": [{0: "batch", 2: "past"} for _ in range(4)],
        },
        far={"seq": (1, 2, 7, 33), "past": (1, 2, 16, 33), "batch": (1, 3)},
        points=({"batch": 1, "seq": 1, "past": 1}, {"batch": 1, "seq": 1, "past": 64}),
    )
    class CachedDecoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(40, 8)
            self.layers = nn.ModuleList([nn.Linear(8, 24) for _ in range(2)])
            self.head = nn.Linear(8, 40)

        def forward(self, input_ids, attention_mask, past_key_values):
            batch, seq = input_ids.shape
            past = past_key_values.layer(0)[0].shape[2]
            at = torch.arange(past, past + seq)
            seen = torch.arange(past + seq)[None, :] <= at[:, None]
            allowed = seen[None, None] & attention_mask[:, None, None, :].bool()
            h, new = self.embed(input_ids), []
            for number, layer in enumerate(self.layers):
                q, k, v = layer(h).view(batch, seq, 3, 2, 4).permute(2, 0, 3, 1, 4)
                old_k, old_v = past_key_values.layer(number)
                k, v = torch.cat([old_k, k], 2), torch.cat([old_v, v], 2)
                new += [k, v]
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
                h = h + y.transpose(1, 2).reshape(batch, seq, 8)
            return self.head(h), new


# ------------------------------------------------------------------------------------------------------ 9: half of a tick

with model.theme("half"):

    @model(
        "a decoder of latents ends in uint8: what lies at .5 may round to either side",
        lambda batch=2, height=5, width=6: (torch.randn(batch, 4, height, width),),
        far={"height": (1, 2, 3, 7, 16, 33), "width": (1, 3, 16, 33)},
        points=({"batch": 1, "height": 24, "width": 17},),
    )
    class LatentsToBytes(nn.Module):
        def __init__(self):
            super().__init__()
            self.start = nn.Conv2d(4, 16, 3, padding=1)
            self.norm = nn.GroupNorm(4, 16, eps=1e-6)
            self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
            self.ups = nn.ModuleList([nn.Conv2d(16, 16, 3, padding=1) for _ in range(2)])
            self.end = nn.Conv2d(16, 3, 3, padding=1)

        def forward(self, z):
            x = self.start(z / 0.18215)
            batch, channels, height, width = x.shape
            y = self.norm(x).view(batch, channels, height * width).transpose(1, 2)
            q, k, v = (t(y).unsqueeze(1) for t in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(q, k, v).squeeze(1).transpose(1, 2)
            x = x + y.reshape(batch, channels, height, width)
            for up in self.ups:
                x = F.silu(up(F.interpolate(x, scale_factor=2.0, mode="nearest")))
            image = (torch.tanh(self.end(x)) / 2 + 0.5).clamp(0, 1)
            return (image.permute(0, 2, 3, 1) * 255).round().to(torch.uint8)

    def photograph(batch=2, height=6, width=8):
        return (torch.randint(0, 256, (batch, 3, height, width), dtype=torch.uint8),)

    @model(
        "the mean of two bytes is exactly at .5 every second time, then it is rounded back to a byte",
        photograph,
        far={"height": (2, 3, 16, 33), "width": (2, 7, 16, 64), "batch": (1, 3)},
        rare={
            "ramp": lambda batch=2, height=6, width=8: (
                torch.arange(288).remainder(256).to(torch.uint8).view(2, 3, 6, 8),
            )
        },
    )
    def bytes_blended(self, image):
        x = image.to(torch.float32)
        flipped = torch.flip(x, (-1,))
        blended = (x + flipped) * 0.5
        gray = (0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]).round().clamp(0, 255).to(torch.uint8)
        smaller = F.interpolate(x, size=(image.shape[2] // 2, image.shape[3] // 2), mode="bilinear", antialias=True)
        return blended.round().to(torch.uint8), gray, smaller.round().clamp(0, 255).to(torch.uint8)

    @model(
        "attention in float16: a few elements differ by one unit in the last place",
        lambda batch=2, seq=9: (torch.randn(batch, seq, 16, dtype=torch.float16),),
        far={"seq": (1, 2, 3, 16, 33, 64, 200), "batch": (1, 3)},
    )
    class HalfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(16)
            self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
            self.half()

        def forward(self, x):
            batch, seq, width = x.shape
            q, k, v = self.qkv(self.norm(x)).view(batch, seq, 3, 4, 4).permute(2, 0, 3, 1, 4)
            scores = (q @ k.mT * 0.5).float().softmax(-1).to(x.dtype)
            return x + self.out((scores @ v).transpose(1, 2).reshape(batch, seq, width))
