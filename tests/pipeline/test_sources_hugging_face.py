"""`hf:` on tiny configs: the inputs, rules and names that it derives, what it refuses, and folders that clients load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from anyshape import sources
from anyshape.findings import UsageError

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
TEXT = {**SMALL, "vocab_size": 50}
CONFIGS: dict[str, tuple[str, Any]] = {
    "bert": ("BertModel", lambda: transformers.BertConfig(**TEXT, max_position_embeddings=32)),
    "roberta": (
        "RobertaForSequenceClassification",
        lambda: transformers.RobertaConfig(**TEXT, max_position_embeddings=34, pad_token_id=1, type_vocab_size=1),
    ),
    "llama": (
        "LlamaForCausalLM",
        lambda: transformers.LlamaConfig(**TEXT, num_key_value_heads=1, max_position_embeddings=32),
    ),
    "t5": (
        "T5ForConditionalGeneration",
        lambda: transformers.T5Config(
            vocab_size=50, d_model=16, num_layers=1, num_heads=2, d_ff=16, d_kv=8, decoder_start_token_id=0
        ),
    ),
    "vit": ("ViTForImageClassification", lambda: transformers.ViTConfig(**SMALL, image_size=20, patch_size=10)),
    "wav2vec2": (
        "Wav2Vec2ForCTC",
        lambda: transformers.Wav2Vec2Config(
            **TEXT,
            conv_dim=(8, 8),
            conv_stride=(4, 4),
            conv_kernel=(8, 8),
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=2,
        ),
    ),
}


def write(name: str, folder: Path, **changes: Any) -> str:
    """The source of a config without weights."""
    architecture, make = CONFIGS[name]
    config = make()
    config.architectures = [architecture]
    config.save_pretrained(folder / name)
    path = folder / name / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")
    return f"hf:{folder / name}"


def resolve(name: str, folder: Path, **options: Any) -> sources.ModelSource:
    return sources.resolve(write(name, folder), sources.SourceOptions(config_only=True, **options))


def code(text: str, **options: Any) -> str:
    with pytest.raises(UsageError) as raised:
        sources.resolve(text, sources.SourceOptions(**options))
    return raised.value.finding.code


@pytest.mark.parametrize(
    ("name", "where", "inputs"),
    [
        ("bert", ["seq <= 32"], ["input_ids", "attention_mask", "token_type_ids"]),
        ("roberta", ["seq <= 32"], ["input_ids", "attention_mask"]),
        (
            "llama",
            ["seq >= 1", "past >= 0", "past + seq <= 32"],
            ["input_ids", "attention_mask", "position_ids", "past_key_values"],
        ),
        ("vit", [], ["pixel_values"]),
        ("wav2vec2", ["samples >= 36"], ["input_values"]),
    ],
)
def test_rules_and_names_come_from_the_config(name: str, where: list[str], inputs: list[str], tmp_path: Path) -> None:
    (part,) = resolve(name, tmp_path).parts
    assert list(part.where) == where
    assert list(part.inputs()) == inputs


def test_an_encoder_decoder_has_three_models_or_one(tmp_path: Path) -> None:
    three = resolve("t5", tmp_path).parts
    assert [part.name for part in three] == ["encoder_model", "decoder_model", "decoder_with_past_model"]
    assert list(three[2].inputs(past=3)["past_key_values"][0]) == ["decoder", "encoder"]
    without = resolve("t5", tmp_path, task="text2text-generation").parts
    assert [part.name for part in without] == ["encoder_model", "decoder_model"]
    (one,) = resolve("t5", tmp_path, one_file=True).parts
    assert list(one.inputs()) == ["input_ids", "attention_mask", "decoder_input_ids"]


def test_steps_with_caches_give_what_one_call_without_gives(tmp_path: Path) -> None:
    """The wrappers around the model, before any export: both steps of the decoder follow one another."""
    encoder, first, following = resolve("t5", tmp_path).parts
    text, target = encoder.inputs(batch=2, seq=4), torch.tensor([[0, 7, 9, 3], [0, 5, 5, 8]])
    with torch.no_grad():
        hidden = encoder.model(**text)["last_hidden_state"]
        mask = text["attention_mask"]
        start = first.model(encoder_attention_mask=mask, input_ids=target[:, :2], encoder_hidden_states=hidden)
        rest = following.model(encoder_attention_mask=mask, input_ids=target[:, 2:], past_key_values=start["present"])
        whole = first.model.model(**text, decoder_input_ids=target).logits
    torch.testing.assert_close(torch.cat([start["logits"], rest["logits"]], 1), whole)


def test_a_task_puts_another_head_on(tmp_path: Path) -> None:
    (part,) = resolve("bert", tmp_path, task="fill-mask").parts
    assert part.model(**part.inputs(batch=1, seq=3))["logits"].shape == (1, 3, 50)
    (plain,) = resolve("llama", tmp_path, task="text-generation").parts
    assert list(plain.inputs()) == ["input_ids", "attention_mask", "position_ids"]


def test_what_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    text = write("bert", tmp_path)
    assert code(text) == "AS525"
    assert code(text, task="text-classificaton") == "AS527"
    assert code(text, task="image-classification", config_only=True) == "AS527"
    assert code(f"{text}-not") == "AS524"
    assert code(write("bert", tmp_path, architectures=["NoSuchModel"]), config_only=True) == "AS530"


def test_a_head_without_weights_is_refused_and_a_missing_pooler_only_left_out(tmp_path: Path) -> None:
    config = CONFIGS["bert"][1]()
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "trained")
    text = f"hf:{tmp_path / 'trained'}"
    assert code(text, task="text-classification") == "AS525"
    (part,) = sources.resolve(text, sources.SourceOptions(task="feature-extraction")).parts
    assert part.model.outputs == ("last_hidden_state",)


CODE = """
import torch
from transformers import BertConfig, BertModel
class MyConfig(BertConfig):
    model_type = "of_mine"
class MyModel(BertModel):
    config_class = MyConfig
"""


def test_code_of_a_model_runs_only_where_that_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    names = {"AutoConfig": "my_code.MyConfig", "AutoModel": "my_code.MyModel"}
    text = write("bert", tmp_path, auto_map=names, model_type="of_mine", architectures=["MyModel"])
    (tmp_path / "bert" / "my_code.py").write_text(CODE, encoding="utf-8")
    assert code(text, config_only=True) == "AS526"
    (part,) = sources.resolve(text, sources.SourceOptions(config_only=True, trust_remote_code=True)).parts
    assert type(part.model.model).__name__ == "MyModel"


def test_an_id_is_taken_from_the_cache_without_a_network(tmp_path: Path) -> None:
    """The folders of a cache as the hub's own client lays them out, in a process that may not use a network."""
    snapshot = tmp_path / "hub" / "models--someone--tiny" / "snapshots" / ("0" * 40)
    write("bert", tmp_path)
    snapshot.parent.mkdir(parents=True)
    (tmp_path / "bert").rename(snapshot)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    script = (
        "from anyshape import sources\n"
        "options = sources.SourceOptions(config_only=True)\n"
        "print(sources.resolve('hf:someone/tiny', options).parts[0].where)\n"
        "try:\n    sources.resolve('hf:someone/else', options)\n"
        "except Exception as error:\n    print(error.finding.code)\n"
    )
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, env=environment
    )
    assert done.stdout.splitlines() == ["('seq <= 32',)", "AS524"], done.stderr[-500:]


def test_a_folder_has_the_file_and_what_clients_read(tmp_path: Path) -> None:
    text = write("roberta", tmp_path)
    (tmp_path / "roberta" / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    (tmp_path / "roberta" / "notes.md").write_text("not for clients", encoding="utf-8")
    result = sources.export(text, tmp_path / "out", config_only=True, verify="quick", where="batch <= 4")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["config.json", "merges.txt", "model.onnx"]
    assert result.files[0].path == tmp_path / "out" / "model.onnx"
    (part,) = sources.resolve(text, sources.SourceOptions(config_only=True)).parts
    inputs = part.inputs(batch=3, seq=7)
    with torch.no_grad():
        expected = part.model(**inputs)["logits"].numpy()
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    (actual,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
