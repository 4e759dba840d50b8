"""A folder is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyshape.findings import UsageError
from anyshape.saving import writing_folder


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
    (tmp_path / "out" / "model.onnx").write_text("old", encoding="utf-8")
    with writing_folder(tmp_path / "out") as folder:
        (folder / "model.onnx").write_text("new", encoding="utf-8")
    assert content(tmp_path) == {"mine.txt": "mine", "model.onnx": "new"}


def test_all_files_of_an_existing_folder_come_back_where_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out" / "b.json").mkdir(parents=True)  # no file can take its place
    (tmp_path / "out" / "b.json" / "inside").write_text("kept", encoding="utf-8")
    (tmp_path / "out" / "a.onnx").write_text("old", encoding="utf-8")
    with pytest.raises(UsageError), writing_folder(tmp_path / "out") as folder:
        (folder / "a.onnx").write_text("new", encoding="utf-8")
        (folder / "b.json").write_text("new", encoding="utf-8")
    assert content(tmp_path) == {"a.onnx": "old", "inside": "kept"}


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    with pytest.raises(UsageError, match="a file has that name"), writing_folder(tmp_path / "out"):
        pass
    assert content(tmp_path) == {"out": "a file"}
