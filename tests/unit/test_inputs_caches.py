"""Caches of transformers are layers of tensors; what else they hold is carried along."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from anyshape.findings import DeclarationError
from anyshape.inputs import Inputs, declare
from anyshape.inputs.tree import flatten, flatten_outputs

cache_utils = pytest.importorskip("transformers.cache_utils")


def pairs(layers: int, length: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.randn(2, 4, length, 8), torch.randn(2, 4, length, 8)) for _ in range(layers)]


def again(cache: Any) -> tuple[list[str], Any]:
    leaves, structure = flatten({"cache": cache})
    return [path for path, _ in leaves], structure.rebuild([leaf for _, leaf in leaves])["cache"]


def test_a_dynamic_cache_has_a_key_and_a_value_per_layer() -> None:
    paths, built = again(cache_utils.DynamicCache(pairs(2, 5)))
    assert paths == ["cache.0.key", "cache.0.value", "cache.1.key", "cache.1.value"]
    assert type(built) is cache_utils.DynamicCache and built.get_seq_length() == 5


def test_a_rebuilt_cache_shares_nothing_with_the_first() -> None:
    cache = cache_utils.DynamicCache(pairs(1, 5))
    _, built = again(cache)
    built.update(*pairs(1, 1)[0], 0)
    built.layers[0].keys.zero_()
    assert cache.get_seq_length() == 5 and bool(cache.layers[0].keys.any())
    assert len(cache.layers) == 1 and built.layers is not cache.layers


def test_an_empty_past_keeps_its_shape() -> None:
    _, built = again(cache_utils.DynamicCache(pairs(1, 0)))
    built.update(*pairs(1, 3)[0], 0)
    assert built.get_seq_length() == 3


def test_a_cache_without_layers_has_no_leaves() -> None:
    paths, built = again(cache_utils.DynamicCache())
    assert paths == []
    built.update(*pairs(1, 3)[0], 0)
    assert built.get_seq_length() == 3


def test_an_encoder_decoder_cache_has_both_halves_by_their_names() -> None:
    cache = cache_utils.EncoderDecoderCache(
        cache_utils.DynamicCache(pairs(1, 3)), cache_utils.DynamicCache(pairs(1, 7))
    )
    paths, built = again(cache)
    assert paths == [
        "cache.self_attention_cache.0.key",
        "cache.self_attention_cache.0.value",
        "cache.cross_attention_cache.0.key",
        "cache.cross_attention_cache.0.value",
    ]
    assert built.is_updated == {0: True} and built.is_updated is not cache.is_updated
    assert built.cross_attention_cache.get_seq_length() == 7


def test_a_static_cache_brings_its_counter() -> None:
    layer = cache_utils.StaticLayer(max_cache_len=16)
    cache = cache_utils.Cache(layers=[layer])
    cache.update(*pairs(1, 5)[0], 0)
    paths, built = again(cache)
    assert sorted(paths) == ["cache.0.cumulative_length", "cache.0.key", "cache.0.value"]
    built.update(*pairs(1, 2)[0], 0)
    assert int(built.layers[0].cumulative_length) == 7 and int(layer.cumulative_length) == 5
    assert not bool(layer.keys[:, :, 5:].any())


def test_the_counter_of_a_sliding_layer_follows_its_keys() -> None:
    cache = cache_utils.Cache(layers=[cache_utils.DynamicSlidingWindowLayer(sliding_window=16)])
    cache.update(*pairs(1, 5)[0], 0)
    leaves, structure = flatten(cache)
    assert [path for path, _ in leaves] == ["0.key", "0.value"]
    longer = structure.rebuild([torch.randn(2, 4, 9, 8)] * 2)
    assert longer.layers[0].cumulative_length == 9


def test_a_counter_that_ran_past_its_keys_is_a_leaf() -> None:
    cache = cache_utils.Cache(layers=[cache_utils.DynamicSlidingWindowLayer(sliding_window=4)])
    cache.update(*pairs(1, 9)[0], 0)
    assert ("cumulative_length", 9) in [(path.split(".")[-1], leaf) for path, leaf in flatten(cache)[0]]


def test_states_of_linear_attention_are_leaves_by_number() -> None:
    layer = cache_utils.LinearAttentionLayer()
    layer.conv_states[0] = torch.zeros(2, 3)
    cache = cache_utils.Cache(layers=[layer])
    leaves, structure = flatten(cache, "cache")
    assert [path for path, _ in leaves] == ["cache.0.conv_states.0"]
    built = structure.rebuild([torch.ones(2, 3)])
    assert bool(built.layers[0].conv_states[0].all()) and not bool(layer.conv_states[0].any())


def test_a_model_output_is_named_by_its_fields() -> None:
    from transformers.modeling_outputs import BaseModelOutputWithPast

    value = BaseModelOutputWithPast(torch.zeros(2), past_key_values=cache_utils.DynamicCache(pairs(1, 3)))
    leaves, structure = flatten(value)
    assert [path for path, _ in leaves] == ["last_hidden_state", "past_key_values.0.key", "past_key_values.0.value"]
    built = structure.rebuild([leaf for _, leaf in leaves])
    assert type(built) is BaseModelOutputWithPast and built.past_key_values.get_seq_length() == 3


@pytest.mark.parametrize("length", [5, 9])
def test_a_sliding_layer_answers_with_keys_and_values_within_its_window_and_beyond(length: int) -> None:
    cache = cache_utils.Cache(layers=[cache_utils.DynamicSlidingWindowLayer(sliding_window=8)])
    cache.update(*pairs(1, length)[0], 0)
    assert [path for path, _ in flatten_outputs((cache,))] == ["output.0.0.key", "output.0.0.value"]


class Cached(torch.nn.Module):
    def forward(self, cache: Any) -> Any:
        return cache.layers[0].keys


WIDE, NARROW = {0: "batch", 2: "past"}, {0: "batch"}
MIXED = {"cache.0.key": "past", "cache.0.value": "past", "cache.1.key": "6", "cache.1.value": "6"}


def lengths(layers: int, form: Any) -> dict[str, str]:
    """The tensors of a cache of this many layers, each with its axis 2 as declared."""
    cache = cache_utils.DynamicCache([*pairs(1, 5), *pairs(layers - 1, 6)])
    declared = declare(Cached(), Inputs((cache,)), dynamic={"cache": form})
    return {leaf.path: str(leaf.axes[2]) for leaf in declared.tensor_leaves}


@pytest.mark.parametrize(
    "form",
    [
        pytest.param([WIDE, NARROW], id="one part for a layer"),
        pytest.param([[WIDE, WIDE], [NARROW, NARROW]], id="by layer"),
        pytest.param([[WIDE, NARROW], [WIDE, NARROW]], id="by kind"),
        pytest.param({"key_cache": [WIDE, NARROW], "value_cache": [WIDE, NARROW]}, id="lists by name"),
        pytest.param([WIDE, WIDE, NARROW, NARROW], id="flat"),
        pytest.param([["batch", None, "past", None]] * 2 + [NARROW] * 2, id="flat, an axis after the other"),
    ],
)
def test_a_declaration_mirrors_a_cache_by_layer_by_kind_or_flat(form: Any) -> None:
    assert lengths(2, form) == MIXED


def test_a_cache_of_one_layer_is_mirrored_flat_and_by_kind() -> None:
    expected = {"cache.0.key": "past", "cache.0.value": "past"}
    assert lengths(1, [WIDE, WIDE]) == lengths(1, [[WIDE], [WIDE]]) == lengths(1, [[WIDE, WIDE]]) == expected


def test_a_cache_of_three_layers_is_mirrored_by_kind() -> None:
    found = lengths(3, [[WIDE, NARROW, NARROW], [WIDE, NARROW, NARROW]])
    assert found == {**MIXED, "cache.2.key": "6", "cache.2.value": "6"}


def test_a_list_of_another_length_is_no_mirror_of_a_cache() -> None:
    with pytest.raises(DeclarationError, match="AS018"):
        lengths(2, [WIDE, WIDE, NARROW])


def hybrid() -> Any:
    """A layer with keys and values, then one with the two states of linear attention."""
    layer = cache_utils.LinearAttentionLayer()
    layer.conv_states[0], layer.recurrent_states[0] = torch.zeros(2, 3, 4), torch.zeros(2, 3, 5)
    cache = cache_utils.DynamicCache(pairs(1, 5))
    cache.layers.append(layer)
    return cache


OF_STATES = {"cache.1.conv_states.0": NARROW, "cache.1.recurrent_states.0": NARROW}


@pytest.mark.parametrize(
    "dynamic",
    [
        pytest.param({"cache.0": WIDE, **OF_STATES}, id="by their own names"),
        pytest.param({"cache.0": WIDE, "cache.1.key": NARROW, "cache.1.value": NARROW}, id="named in pairs"),
        pytest.param({"cache": [WIDE, WIDE, NARROW, NARROW]}, id="flat"),
        pytest.param({"cache": [[WIDE, WIDE], [NARROW, NARROW]]}, id="by layer"),
        pytest.param({"cache": [WIDE, NARROW]}, id="one part for a layer"),
    ],
)
def test_a_declaration_names_the_states_of_a_hybrid_cache(dynamic: Any) -> None:
    declared = declare(Cached(), Inputs((hybrid(),)), dynamic=dynamic)
    assert {leaf.path: [str(leaf.axes[0]), str(leaf.axes[2])] for leaf in declared.tensor_leaves} == {
        "cache.0.key": ["batch", "past"],
        "cache.0.value": ["batch", "past"],
        "cache.1.conv_states.0": ["batch", "4"],
        "cache.1.recurrent_states.0": ["batch", "5"],
    }


def test_the_flat_list_of_an_encoder_decoder_cache_declares_both_halves() -> None:
    class Sum(torch.nn.Module):
        def forward(self, cache):
            own, other = cache.self_attention_cache.layers[0], cache.cross_attention_cache.layers[0]
            return own.keys.sum() + other.values.sum()

    cache = cache_utils.EncoderDecoderCache(
        cache_utils.DynamicCache(pairs(1, 3)), cache_utils.DynamicCache(pairs(1, 7))
    )
    past, source = {2: "past"}, {2: "source"}
    declared = declare(Sum(), Inputs((), {"cache": cache}), dynamic={"cache": [past, past, source, source]})
    assert [dim.name for dim in declared.domain.dims] == ["past", "source"]
