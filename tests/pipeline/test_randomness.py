"""Random models are refused with the line that draws, or draw in the file from the same distribution."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests import stateful_models as models

import anyshape
from anyshape.explore import observe_repeats
from anyshape.findings import Finding, Severity
from anyshape.inputs import declare
from anyshape.records.explored import Repeated
from anyshape.records.verdict import Mismatch
from anyshape.runtime.child_messages import Array
from anyshape.verify.changing_outputs import compare_samples


def refused(module: torch.nn.Module, **options: Any) -> Finding:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(module, models.inputs, **options)
    return broken.value.findings[0]


@pytest.mark.parametrize("made", models.RANDOM, ids=lambda made: made.__name__)
def test_a_random_model_is_refused_with_the_line_that_draws(made: Any) -> None:
    finding = refused(made())
    assert finding.code == "AS144"
    assert "# draws" in finding.where.text  # type: ignore[union-attr]


def test_the_function_that_makes_inputs_is_not_blamed_for_what_differs_in_it() -> None:
    calls = itertools.count()

    def inputs(batch: int = 3) -> torch.Tensor:
        number = next(calls)
        return torch.randn(batch, 8) + 0 * number

    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(models.InnerNoise(), inputs)
    assert broken.value.finding.code == "AS144"
    assert "# draws" in broken.value.finding.where.text  # type: ignore[union-attr]


@pytest.mark.parametrize("made", models.RANDOM_IN_ONNX, ids=lambda made: made.__name__)
@pytest.mark.long_table
def test_torchs_random_operators_are_kept_and_told(made: Any) -> None:
    result = anyshape.export(made(), models.inputs, random="runtime", budget=5)
    assert result.contract.random
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("AS147", Severity.WARNING)


@pytest.mark.parametrize(
    "made", [models.PythonRandom, models.NumpyRandom, models.OwnGenerator], ids=lambda made: made.__name__
)
def test_other_random_numbers_cannot_be_kept(made: Any) -> None:
    assert refused(made(), random="runtime").code == "AS149"


def test_a_model_that_seeds_itself_is_not_random() -> None:
    class Seeded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.manual_seed(0)
            return x + torch.randn(8)

    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Seeded(), models.inputs, strategy="symbolic")
    assert broken.value.findings[0].code == "AS149"
    assert "randn" in broken.value.findings[0].where.text  # type: ignore[union-attr]


@pytest.mark.parametrize("bound", [60.0, 1000.0])
@pytest.mark.parametrize("by_branch", [False, True])
def test_noise_that_is_added_to_large_values_alone_is_seen(bound: float, by_branch: bool) -> None:
    class Dithered(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if by_branch:
                return x + torch.rand_like(x) if (x.abs() > bound).any() else x  # draws
            return x + torch.where(x.abs() > bound, torch.randn_like(x), torch.zeros_like(x))  # draws

    finding = refused(Dithered())
    assert finding.code == "AS144"
    assert "# draws" in finding.where.text  # type: ignore[union-attr]


class LayerDrop(torch.nn.Module):
    """Draws a number for each of its layers, which is read in training alone, or where a batch is large."""

    def __init__(self, least_batch: int = 10**9, rate: float = 0.5) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))
        self.least_batch, self.rate = least_batch, rate
        calls: list[int] = []
        self.note, self.count = calls.append, calls.__len__  # bound methods are no state

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.note(1)
        for layer in self.layers:
            number = torch.rand([])  # draws
            if (self.training or x.shape[0] >= self.least_batch) and number < self.rate:
                continue
            x = layer(x)
        return x


def repeats(module: torch.nn.Module, *batches: int) -> Repeated:
    return observe_repeats(module, declare(module, models.inputs), [{"batch": batch} for batch in batches])


def test_numbers_that_are_drawn_and_not_read_are_not_random_and_cost_few_calls() -> None:
    module = LayerDrop()
    assert not repeats(module, 3, 5).random
    assert module.count() < 100


@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_a_rare_use_of_a_drawn_number_is_seen(rate: float) -> None:
    repeated = repeats(LayerDrop(1, rate), 3)
    assert repeated.random == ("torch",)
    assert "# draws" in repeated.drawn.text  # type: ignore[union-attr]


def test_a_drawn_number_that_is_read_at_large_sizes_alone_is_seen_there() -> None:
    repeated = repeats(LayerDrop(40, 0.01), 3, 5, 64)
    assert repeated.random == ("torch",) and repeated.sizes == {"batch": 64}


NORMAL = np.random.default_rng(0).normal(size=(128, 4, 8))
DETUNED: dict[str, Callable[[Array], Array]] = {
    "shifted": lambda sample: sample + 0.3,
    "scaled": lambda sample: sample * 1.3,
    "frozen": lambda sample: np.broadcast_to(sample[:1], sample.shape),
    "shared by rows": lambda sample: np.broadcast_to(sample[:, :1], sample.shape),
    "shared by columns": lambda sample: np.broadcast_to(sample[:, :, :1], sample.shape),
    "uniform": lambda sample: np.random.default_rng(1).uniform(-(3**0.5), 3**0.5, sample.shape),
    "one element still": lambda sample: np.where(np.arange(8) == 3, 0.9, sample),
}


def samples(values: Array) -> list[list[Array]]:
    return [[each.astype("float32")] for each in values]


@pytest.mark.parametrize("name", DETUNED)
def test_another_distribution_is_noticed(name: str) -> None:
    other = DETUNED[name](np.random.default_rng(2).normal(size=NORMAL.shape))
    difference = compare_samples(["y"], samples(NORMAL), samples(other))
    assert difference is not None and difference.mismatch is Mismatch.DISTRIBUTION


@pytest.mark.parametrize("seed", range(20))
def test_another_sample_of_the_same_distribution_is_alike(seed: int) -> None:
    generator = np.random.default_rng(100 + seed)
    for other in (generator.normal(size=NORMAL.shape), generator.normal(size=NORMAL.shape)):
        assert compare_samples(["y"], samples(NORMAL), samples(other)) is None
    rare = [generator.random(NORMAL.shape) < 0.01 for _ in range(2)]
    assert compare_samples(["y"], samples(rare[0]), samples(rare[1])) is None


def test_shape_and_dtype_of_samples_are_compared() -> None:
    short = compare_samples(["y"], samples(NORMAL), samples(NORMAL[:, :3]))
    wide = compare_samples(["y"], samples(NORMAL), [[each] for each in NORMAL])
    assert short is not None and short.mismatch is Mismatch.SHAPE
    assert wide is not None and wide.mismatch is Mismatch.DTYPE
