"""A decoder with a past: declared in three ways it gives one contract, and files that are right also without a past."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.records.contract import contract_as_plain
from anyshape.runtime.session import Session

LAYERS = 2
WHERE = ["1 <= batch <= 64", "past >= 0", "past + seq <= 4096"]
WORDS = {"input_ids": "batch seq", "attention_mask": "batch past+seq", "past_key_values": "batch 2 past 4"}
SIZES = [{"batch": 2, "seq": 3, "past": 4}, {"batch": 3, "seq": 5, "past": 1}, {"batch": 1, "seq": 4, "past": 8}]


class Decoder(nn.Module):
    """Two layers of attention over what came before; takes tuples or a cache of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.project = nn.ModuleList(nn.Linear(8, 24) for _ in range(LAYERS))

    def forward(self, input_ids, attention_mask, past_key_values):
        x = self.embed(input_ids)
        batch, seq, _ = x.shape
        hidden = (1 - attention_mask[:, None, None, :]) * -1e4
        new = []
        pairs = past_key_values if isinstance(past_key_values, tuple) else [layer[:2] for layer in past_key_values]
        for project, (key, value) in zip(self.project, pairs, strict=True):
            q, k, v = project(x).view(batch, seq, 3, 2, 4).permute(2, 0, 3, 1, 4)
            key, value = torch.cat([key, k], 2), torch.cat([value, v], 2)
            scores = (q @ key.transpose(-1, -2) / 2 + hidden).softmax(-1)
            x = x + (scores @ value).transpose(1, 2).reshape(batch, seq, 8)
            new.append((key, value))
        return x, tuple(new)


def pack_tuples(pairs: list[Any]) -> Any:
    return tuple(pairs)


def pack_cache(pairs: list[Any]) -> Any:
    return pytest.importorskip("transformers").DynamicCache(pairs)


def function_of(pack):
    def inputs(batch=2, seq=3, past=4):
        pairs = [(torch.randn(batch, 2, past, 4), torch.randn(batch, 2, past, 4)) for _ in range(LAYERS)]
        return {
            "input_ids": torch.randint(0, 50, (batch, seq)),
            "attention_mask": torch.ones(batch, past + seq, dtype=torch.int64),
            "past_key_values": pack(pairs),
        }

    return inputs


def in_way(way: str, function: Any) -> dict[str, Any]:
    if way == "function":
        return {"inputs": function}
    if way == "words":
        return {"inputs": function(), "dynamic": WORDS}
    names = {"input_ids": "batch seq", "past_key_values": "batch _ past _"}
    return {"inputs": [function(**sizes) for sizes in SIZES], "names": names}


@pytest.mark.parametrize("pack", [pack_tuples, pack_cache])
def test_three_ways_give_one_contract_and_right_files(pack, tmp_path) -> None:
    torch.manual_seed(0)
    module, function = Decoder().eval(), function_of(pack)
    contracts = []
    for way in ("function", "words", "examples"):
        path = tmp_path / f"{way}.onnx"
        result = anyshape.export(module, path=path, where=WHERE, **in_way(way, function))
        plain = contract_as_plain(result.contract)
        contracts.append({key: plain[key] for key in ("dims", "relations", "inputs", "outputs")})
        for sizes in ({"batch": 1, "seq": 5, "past": 0}, {"batch": 3, "seq": 1, "past": 7}):
            inputs = function(**sizes)
            with torch.no_grad():
                expected = module(**function_of(pack_tuples)(**sizes) | {"input_ids": inputs["input_ids"]})[0].shape
            answers = anyshape.load(path)(**inputs)
            assert tuple(answers[0].shape) == tuple(expected)
    assert contracts[0] == contracts[1] == contracts[2]
    last = ("0", "1") if pack is pack_tuples else ("key", "value")
    assert [tensor["name"] for tensor in contracts[0]["inputs"]][2:4] == [f"past_key_values.0.{name}" for name in last]


def test_a_mask_of_another_length_is_refused_with_its_rule_also_by_plain_onnxruntime(tmp_path) -> None:
    path = tmp_path / "decoder.onnx"
    anyshape.export(Decoder(), function_of(pack_tuples), path, where=WHERE)
    inputs = function_of(pack_tuples)(batch=2, seq=3, past=4)
    inputs["attention_mask"] = torch.ones(2, 8, dtype=torch.int64)
    with pytest.raises(anyshape.ContractBroken, match=r"attention_mask.*past \+ seq"):
        anyshape.load(path)(**inputs)
    pairs = {
        f"past_key_values.{i}.{j}": t for i, pair in enumerate(inputs["past_key_values"]) for j, t in enumerate(pair)
    }
    feeds = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"], **pairs}
    with pytest.raises(Exception, match=r"anyshape AS404: 'attention_mask' axis 1 must be past \+ seq"):
        Session(path).run({name: np.asarray(value) for name, value in feeds.items()})
