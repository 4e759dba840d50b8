"""An output replaces neither what a command reads, nor another output, nor a file of another kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from anyshape.findings import UsageError
from anyshape.saving import check_writable, outputs, write_atomically
from anyshape.saving.outputs import (
    CHART,
    DIFF,
    MODEL,
    PAGE,
    ROWS,
    SUMMARY,
    Kind,
    check_distinct,
    command_files,
    is_model,
    is_same_place,
)

ONNX = b"\x08\x08\x12\x03who:\x00"
HTML = b'<!doctype html>\n<meta name="generator" content="anyshape 1.0">'


def code(act: Callable[[], object]) -> str | None:
    try:
        act()
    except UsageError as error:
        return error.finding.code
    return None


def write(path: Path, kind: Kind = MODEL) -> str | None:
    """The code of the refusal, the same before the work as at its end; None where the file was replaced."""
    early = code(lambda: check_writable(path, kind))
    before = path.read_bytes() if path.exists() else None
    late = code(lambda: write_atomically(path, lambda stream: stream.write(b"new"), kind))
    assert early == late and path.read_bytes() == (b"new" if late is None else before)
    return late


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (ONNX, True),
        (b"", False),
        (ONNX[:-1], False),
        (ONNX + b"\n", False),
        (b"\x08\x08", False),
        (b"import torch\n", False),
        (HTML, False),
        (b"\x89PNG\r\n\x1a\n", False),
        (b"\xff" * 20, False),
    ],
)
def test_a_model_is_recognised_by_its_parts(tmp_path: Path, content: bytes, expected: bool) -> None:
    (tmp_path / "file").write_bytes(content)
    assert is_model(tmp_path / "file") is expected


def test_what_onnx_writes_is_a_model(tmp_path: Path) -> None:
    import onnx

    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18, "d": 1], producer_name: "p", metadata_props: ["k": "v"]> '
        "g (float[n] x) => (float[n] y) { y = Neg(x) }\n"
        '<domain: "d", opset_import: ["": 18]> f (a) => (b) { b = Neg(a) }'
    )
    proto.doc_string, proto.domain, proto.model_version = "words", "d", 3
    onnx.save(proto, tmp_path / "m.onnx")
    assert is_model(tmp_path / "m.onnx")


KINDS = {
    "model": (MODEL, ONNX),
    "page": (PAGE, HTML),
    "chart": (CHART, b'<svg data-generator="anyshape" '),
    "diff": (DIFF, b"--- a/m.py\n+++ b/m.py\n"),
    "rows": (ROWS, b'{"name": "m"}\n'),
    "summary": (SUMMARY, b"# Models\n\n"),
}


@pytest.mark.parametrize("there", [*KINDS, "text", "empty"])
@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_replaced_by_one_of_its_kind_alone(tmp_path: Path, name: str, there: str) -> None:
    kind, _ = KINDS[name]
    others = {"text": b"words of somebody", "empty": b""}
    (tmp_path / "file").write_bytes(others[there] if there in others else KINDS[there][1])
    is_own = there in (name, "empty") or (name, there) == ("chart", "page")
    assert write(tmp_path / "file", kind) == (None if is_own else "AS072")


def test_overwrite_replaces_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"words")
    with command_files(overwrite=True), command_files():
        assert write(tmp_path / "file") is None


def named(folder: Path, how: str) -> Path:
    """Another path to m.onnx."""
    read, other = folder / "m.onnx", folder / "other.onnx"
    if how == "link":
        other.symlink_to(read)
    if how == "hard link":
        os.link(read, other)
    if how == "folder":
        (folder / "linked").symlink_to(folder)
    return {"path": read, "relative": folder / "x" / ".." / "m.onnx", "folder": folder / "linked" / "m.onnx"}.get(
        how, other
    )


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("how", ["path", "relative", "link", "hard link", "folder"])
def test_what_a_command_reads_is_not_replaced_under_any_name(tmp_path: Path, how: str, overwrite: bool) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "m.onnx").write_bytes(ONNX)
    with command_files(tmp_path / "m.onnx", overwrite=overwrite), command_files("another"):
        assert write(named(tmp_path, how)) == "AS070"
    assert write(tmp_path / "m.onnx") is None


@pytest.mark.parametrize("source", ["{}/net.py", "{}/net.py:Net", "hf:{}"])
def test_a_source_is_read_however_it_is_named(tmp_path: Path, source: str) -> None:
    (tmp_path / "net.py").write_text("code", encoding="utf-8")
    (tmp_path / "m.onnx").write_bytes(ONNX)
    with command_files(source.format(tmp_path), overwrite=True):
        assert write(tmp_path / "net.py") == "AS070"
        assert write(tmp_path / "m.onnx") is None  # a model in the folder is what an earlier export wrote


def test_the_weights_of_a_file_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08\x12\x06w.data:\x00")
    for name in ("w.data", "other.data"):
        (tmp_path / name).write_bytes(b"numbers")
    with command_files(tmp_path / "m.onnx", overwrite=True):
        assert write(tmp_path / "w.data") == "AS070"
        assert write(tmp_path / "other.data") is None


def test_the_code_of_an_imported_module_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_by_a_model.py").write_text("x = 1", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("imported_by_a_model")
    with command_files(overwrite=True):
        assert write(tmp_path / "imported_by_a_model.py") == "AS070"


def test_a_file_is_changed_in_its_place_where_that_is_the_command(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(ONNX)
    with command_files(tmp_path / "m.onnx"):
        write_atomically(tmp_path / "m.onnx", lambda stream: stream.write(b"new"), MODEL, is_edit=True)
    assert (tmp_path / "m.onnx").read_bytes() == b"new"


def test_two_outputs_have_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = [("--output", "o.onnx"), ("--plot", None), ("--report", tmp_path / "o.onnx")]
    assert code(lambda: check_distinct(given)) == "AS071"
    assert code(lambda: check_distinct(given[:2])) is None
    assert code(lambda: check_distinct([*given[:2], ("--report", "O.onnx")])) is None
    monkeypatch.setattr(outputs, "_ignores_case", lambda folder: True)
    assert code(lambda: check_distinct([*given[:2], ("--report", "O.onnx")])) == "AS071"


def test_two_files_are_two_places(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"")
    assert not is_same_place(tmp_path / "a", tmp_path / "b")
    assert is_same_place(tmp_path / "a", tmp_path / "a")


def test_outputs_that_were_written_are_told_from_those_that_were_not(tmp_path: Path) -> None:
    for name in ("old", "other"):
        (tmp_path / name).write_bytes(ONNX)
    with command_files() as files:
        for name in ("old", "other", "new", "none"):
            check_writable(tmp_path / name, MODEL)
        assert files.written() == []
        for name in ("old", "new"):
            write_atomically(tmp_path / name, lambda stream: stream.write(b"new"), MODEL)
        assert files.written() == [tmp_path / "new", tmp_path / "old"]
