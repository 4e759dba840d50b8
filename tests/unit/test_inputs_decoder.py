"""A decoder with a past, declared in three ways, means the same: nested tuples and transformers' caches alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.inputs import Declared, declare
from anyshape.inputs.declared import check_values

LAYERS = 2
WHERE = ["1 <= batch <= 64", "past >= 0", "past + seq <= 4096"]
SIZES = [{"batch": 2, "seq": 3, "past": 4}, {"batch": 3, "seq": 5, "past": 1}, {"batch": 1, "seq": 4, "past": 8}]


class Decoder(nn.Module):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, past_key_values: Any) -> torch.Tensor:
        layers = past_key_values if isinstance(past_key_values, tuple) else [c[:2] for c in past_key_values]
        assert all(key.shape[2] + input_ids.shape[1] == attention_mask.shape[1] for key, _ in layers)
        return input_ids * attention_mask[:, -input_ids.shape[1] :]


def tuples(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    return tuple(pairs)


def cache(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    return pytest.importorskip("transformers").DynamicCache(pairs)


def function_of(pack: Callable[[Any], Any]) -> Callable[..., dict[str, Any]]:
    def inputs(batch: int = 2, seq: int = 3, past: int = 4) -> dict[str, Any]:
        return {
            "input_ids": torch.randint(0, 100, (batch, seq)),
            "attention_mask": torch.ones(batch, past + seq, dtype=torch.int64),
            "past_key_values": pack(
                [(torch.randn(batch, 4, past, 16), torch.randn(batch, 4, past, 16)) for _ in range(LAYERS)]
            ),
        }

    return inputs


def in_three_ways(pack: Callable[[Any], Any]) -> list[Declared]:
    function = function_of(pack)
    words = {"input_ids": "batch seq", "attention_mask": "batch past+seq", "past_key_values": "batch 4 past 16"}
    names = {"input_ids": "batch seq", "past_key_values": "batch _ past _"}
    return [
        declare(Decoder(), function, where=WHERE),
        declare(Decoder(), function(), dynamic=words, where=WHERE),
        declare(Decoder(), [function(**sizes) for sizes in SIZES], names=names, where=WHERE),
    ]


@pytest.mark.parametrize("pack", [tuples, cache])
def test_three_ways_mean_the_same(pack: Callable[[Any], Any]) -> None:
    first, *others = in_three_ways(pack)
    for other in others:
        assert other.domain == first.domain
        assert other.leaves == first.leaves
        assert other.example_sizes == first.example_sizes


@pytest.mark.parametrize(("pack", "last"), [(tuples, ("0", "1")), (cache, ("key", "value"))])
def test_paths_are_what_a_person_writes(pack: Callable[[Any], Any], last: tuple[str, str]) -> None:
    declared = declare(Decoder(), function_of(pack), where=WHERE)
    past = [f"past_key_values.{layer}.{name}" for layer in range(LAYERS) for name in last]
    assert [leaf.path for leaf in declared.leaves] == ["input_ids", "attention_mask", *past]
    assert [str(axis) for axis in declared.leaves[1].axes] == ["batch", "past + seq"]


@pytest.mark.parametrize("pack", [tuples, cache])
def test_inputs_are_made_at_other_sizes_in_every_way(pack: Callable[[Any], Any]) -> None:
    for declared in in_three_ways(pack):
        for sizes in ({"batch": 1, "seq": 7, "past": 0}, {"batch": 5, "seq": 1, "past": 3}):
            made = declared.make(sizes, 3)
            check_values(declared.leaves, declared.flat(made), sizes)
            answer = declared.call(Decoder(), made)
            assert answer.shape == (sizes["batch"], sizes["seq"])
            assert declared.elements(sizes) == sum(value.numel() for value in declared.open_values(made))


@pytest.mark.parametrize("pack", [tuples, cache])
def test_auto_finds_what_is_tied(pack: Callable[[Any], Any]) -> None:
    declared = declare(Decoder(), function_of(pack)(), dynamic="auto")
    by_path = {leaf.path: [str(axis) for axis in leaf.axes] for leaf in declared.leaves}
    keys = [axes for path, axes in by_path.items() if path.startswith("past_key_values")]
    assert by_path["attention_mask"][1] == f"{by_path['input_ids'][1]} + {keys[0][2]}"
    assert len({axes[2] for axes in keys[::2]}) == 1


def test_an_empty_past_starts_its_dim_at_0() -> None:
    declared = declare(Decoder(), function_of(tuples)(past=0), dynamic={"past_key_values": "batch 4 past 16"})
    assert declared.domain.dim("past").min == 0
