"""A text names a source: files, modules, prefixes, and what another package registers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from anyshape import sources
from anyshape.findings import UsageError
from anyshape.sources.hugging_face.loaded_models import write_companions
from anyshape.sources.model_file import is_model_file
from anyshape.sources.source import SourceOptions

MODEL = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2
    @staticmethod
    def inputs(batch=3):
        return torch.ones(batch, 4)
where = ["batch <= 8"]
"""

REGISTERED = """
import torch
from anyshape import sources
def load(name, options):
    if name == "broken":
        raise KeyError(name)
    part = sources.Part(model=torch.nn.Linear(4, 2), inputs=lambda batch=2: torch.ones(batch, 4), where=["batch <= 5"])
    return sources.ModelSource(name=f"zoo:{name}", parts=(part,))
KIND = sources.SourceKind(form="zoo:NAME", load=load, prefix="zoo", options=("task",))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that registers `zoo:`, as pip would install it."""
    (tmp_path / "zoo_of_models.py").write_text(REGISTERED, encoding="utf-8")
    info = tmp_path / "zoo_of_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoo-of-models\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[anyshape.sources]\nzoo = zoo_of_models:KIND\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "zoo_of_models", raising=False)
    return tmp_path


def code(text: str, **options: Any) -> str:
    with pytest.raises(UsageError) as raised:
        sources.resolve(text, SourceOptions(**options))
    return raised.value.finding.code


def test_a_class_of_a_module_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets_of_mine.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (part,) = sources.resolve("nets_of_mine:Net").parts
    assert torch.equal(part.model(part.inputs(batch=1)), torch.full((1, 4), 2.0))
    assert part.where == ["batch <= 8"]
    assert code("nets_of_mine:Nett") == "AS523"
    assert code("nets_of_mine.no_such:Net") == "AS523"
    sys.modules.pop("nets_of_mine")


def test_a_package_registers_a_source(package: Path) -> None:
    (part,) = sources.resolve("zoo:lion", SourceOptions(task="roar")).parts
    assert part.where == ["batch <= 5"]
    assert code("zoo:lion", config_only=True) == "AS522"
    assert code("zoo:broken") == "AS530"


def test_a_registered_source_is_exported(package: Path, tmp_path: Path) -> None:
    result = sources.export("zoo:lion", tmp_path / "lion.onnx", where="batch >= 2")
    assert [str(dim) for dim in result.files[0].contract.domain.dims]
    assert result.is_kept
    assert result.files[0].contract.domain.dim("batch").max == 5
    assert result.files[0].contract.domain.dim("batch").min == 2


def test_an_entry_point_that_is_no_kind_is_refused(package: Path) -> None:
    info = package / "zoo_of_models-1.0.dist-info"
    (info / "entry_points.txt").write_text("[anyshape.sources]\nzoo = zoo_of_models:load\n", encoding="utf-8")
    assert code("zoo:lion") == "AS530"


def test_what_nobody_registered_is_refused_with_the_forms() -> None:
    with pytest.raises(UsageError, match=r"(?s)AS520.*timm:NAME.*did you mean 'hf:gpt2'"):
        sources.resolve("hff:gpt2")


def test_options_that_a_source_does_not_take_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    assert code(str(tmp_path / "model.py"), task="fill-mask") == "AS522"
    assert code("timm:resnet18", trust_remote_code=True) == "AS522"


@pytest.mark.parametrize("text", ["model.py", "a/b.py:net", r"C:\models\model.py", r"C:\models\net.py:f", "model"])
def test_these_name_files(text: str) -> None:
    assert is_model_file(text)


@pytest.mark.parametrize("text", ["hf:gpt2", "timm:resnet18", "package.module:Class"])
def test_these_name_no_files(text: str) -> None:
    assert not is_model_file(text)


class Twice(torch.nn.Module):
    def forward(self, x):
        return x * 2


def two_parts(model: Any = None) -> sources.ModelSource:
    first = sources.Part(name="first", model=Twice(), inputs=lambda batch=2: torch.ones(batch, 4))
    second = sources.Part(name="second", model=model or Twice(), inputs=lambda rows=3: torch.ones(rows, 5))
    return sources.ModelSource(name="two", parts=(first, second))


def test_several_models_are_a_folder_and_rules_go_where_their_dims_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="AS529"):
        sources.export(two_parts(), tmp_path / "m.onnx")
    result = sources.export(two_parts(), tmp_path / "out", where=["batch <= 7", "rows <= 9"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["first.onnx", "second.onnx"]
    assert [each.path for each in result.files] == [tmp_path / "out" / f"{name}.onnx" for name in ("first", "second")]
    assert [dim.max for each in result.files for dim in each.contract.domain.dims] == [7, 9]


def test_where_one_model_is_refused_none_is_written(tmp_path: Path) -> None:
    class Baked(torch.nn.Module):
        def forward(self, x):
            return x.view(3, 5)

    with pytest.raises(Exception, match=r"(?s)AS102.*about second\.onnx, file 2 of 2"):
        sources.export(two_parts(Baked()), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def companions(folder: Path, target: Path) -> list[str]:
    """The names of the files that are copied from a model's folder."""
    target.mkdir()
    options = sources.SourceOptions()
    write_companions(SimpleNamespace(folder=folder, options=options, model=None), target)  # type: ignore[arg-type]
    return sorted(each.name for each in target.iterdir())


def test_a_link_that_leads_out_of_the_folder_of_a_model_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "tokenizer.json").symlink_to("config.json")
    assert companions(folder, tmp_path / "inside") == ["config.json", "tokenizer.json"]
    (folder / "vocab.txt").symlink_to("../secret")
    with pytest.raises(UsageError) as caught:
        companions(folder, tmp_path / "outside")
    assert caught.value.finding.code == "AS531"
    assert not (tmp_path / "outside" / "vocab.txt").exists()


def test_links_of_the_hubs_cache_lead_to_its_own_files(tmp_path: Path) -> None:
    folder = tmp_path / "models--org--name" / "snapshots" / "abc"
    blobs = tmp_path / "models--org--name" / "blobs"
    for each in (folder, blobs):
        each.mkdir(parents=True)
    (blobs / "1").write_text("{}", encoding="utf-8")
    (folder / "config.json").symlink_to("../../blobs/1")
    assert companions(folder, tmp_path / "out") == ["config.json"]
