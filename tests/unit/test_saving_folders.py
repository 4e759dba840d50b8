"""A folder is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyshape.findings import UsageError
from anyshape.saving import writing_folder

OLD, NEW = "\b\b\x12\x03old:\0", "\b\b\x12\x03new:\0"  # models of onnx with a producer and an empty graph


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder_has_all_its_files(tmp_path: Path) -> None:
    with writing_folder(tmp_path / "out") as folder:
        (folder / "model.onnx").write_text("new", encoding="utf-8")
        assert not (tmp_path / "out").exists()
    assert content(tmp_path) == {"model.onnx": "new"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_leaves_nothing_behind(error: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(error), writing_folder(tmp_path / "out") as folder:
        (folder / "model.onnx").write_text("new", encoding="utf-8")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_other_files_of_an_existing_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "out" / "model.onnx").write_text(OLD, encoding="utf-8")
    with writing_folder(tmp_path / "out") as folder:
        (folder / "model.onnx").write_text(NEW, encoding="utf-8")
    assert content(tmp_path) == {"mine.txt": "mine", "model.onnx": NEW}


def test_all_files_of_an_existing_folder_come_back_where_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out" / "b.json").mkdir(parents=True)  # no file can take its place
    (tmp_path / "out" / "b.json" / "inside").write_text("kept", encoding="utf-8")
    (tmp_path / "out" / "a.onnx").write_text(OLD, encoding="utf-8")
    with pytest.raises(UsageError), writing_folder(tmp_path / "out") as folder:
        (folder / "a.onnx").write_text(NEW, encoding="utf-8")
        (folder / "b.json").write_text("new", encoding="utf-8")
    assert content(tmp_path) == {"a.onnx": OLD, "inside": "kept"}


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    with pytest.raises(UsageError, match="a file has that name"), writing_folder(tmp_path / "out"):
        pass
    assert content(tmp_path) == {"out": "a file"}


def test_a_file_that_is_no_model_is_replaced_only_beside_a_model_of_an_earlier_export(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("of a project", encoding="utf-8")
    for expected in ("of a project", "new"):
        try:
            with writing_folder(tmp_path) as folder:
                (folder / "model.onnx").write_text(NEW, encoding="utf-8")
                (folder / "config.json").write_text("new", encoding="utf-8")
        except UsageError as error:
            assert error.finding.code == "AS072"
        assert (tmp_path / "config.json").read_text(encoding="utf-8") == expected
        (tmp_path / "model.onnx").write_text(OLD, encoding="utf-8")


def test_a_file_that_is_there_byte_for_byte_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("same", encoding="utf-8")
    before = (tmp_path / "config.json").stat().st_ino
    with writing_folder(tmp_path) as folder:
        (folder / "model.onnx").write_text(NEW, encoding="utf-8")
        (folder / "config.json").write_text("same", encoding="utf-8")
    assert (tmp_path / "config.json").stat().st_ino == before


def test_a_model_follows_its_weights_and_those_of_the_replaced_one_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(digest: str) -> str:
        name = f"model.onnx.{digest}.data"
        return f"\b\b\x12{chr(len(name))}{name}:\0"

    old, new = "0" * 12, "1" * 12
    (tmp_path / "model.onnx").write_text(model(old), encoding="utf-8")
    (tmp_path / f"model.onnx.{old}.data").write_text("old", encoding="utf-8")
    moved: list[str] = []
    real = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: (moved.append(self.name), real(self, target))[1])
    with writing_folder(tmp_path) as folder:
        (folder / "model.onnx").write_text(model(new), encoding="utf-8")
        (folder / f"model.onnx.{new}.data").write_text("new", encoding="utf-8")
    assert moved == [f"model.onnx.{new}.data", "model.onnx"]
    assert sorted(content(tmp_path)) == ["model.onnx", f"model.onnx.{new}.data"]
