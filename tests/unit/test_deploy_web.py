"""The page of `anyshape deploy --to web`, opened in a real browser: it loads, runs at several sizes, and shows refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.deployed import export_decoder, find_runtime_or_skip, opened_page, served, started_browser

import anyshape
from anyshape.deploying.web_target import FILES, VERSION, cache_folder, digest_of, find_ort_web, unpack
from anyshape.findings import UsageError

pytestmark = pytest.mark.slow
_WAIT_MS = 60_000


@pytest.fixture(scope="module")
def runtime() -> Path:
    return find_runtime_or_skip()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as browser:
        yield browser


class Masked(torch.nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return x.cumsum(1) * (lengths[:, None] > torch.arange(x.shape[1])[None])


def masked_inputs(batch: int = 2, seq: int = 4) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, seq), "lengths": torch.randint(1, seq + 1, (batch,))}


HOSTILE = ["<img src=x onerror=alert(1)>", "__proto__", "</script><b>y"]


@pytest.fixture(scope="module")
def page(browser: Any, runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("web")
    export_decoder(folder / "m.onnx")
    anyshape.deploy(folder / "m.onnx", "web", folder / "page", at={"batch": 2, "past": 3, "seq": 4}, ort_web=runtime)
    with served(folder / "page") as address, opened_page(browser, address) as page:
        page.wait_for_selector("#run:not([disabled])", timeout=_WAIT_MS)
        yield page


def answer(page: Any, *sizes: int) -> str:
    """What the page says once it has run at these sizes, in the order of the dims."""
    for place, size in enumerate(sizes):
        page.fill(f"#dim-{place}", str(size))
    page.click("#run")
    page.wait_for_selector("#run:not([disabled])", timeout=_WAIT_MS)
    return str(page.inner_text("#outcome"))


def shapes(page: Any) -> list[str]:
    return [str(cell) for cell in page.locator("#outputs tr td:nth-child(3)").all_inner_texts()]


def dims(page: Any) -> list[str]:
    return [str(each) for each in page.locator("#sizes label").all_inner_texts()]


@pytest.mark.parametrize(("batch", "past", "seq"), [(1, 0, 1), (2, 3, 4), (8, 20, 12)])
def test_the_page_runs_the_file_at_these_sizes(page: Any, batch: int, past: int, seq: int) -> None:
    given = {"batch": batch, "past": past, "seq": seq}
    said = answer(page, *(given[name] for name in dims(page)))
    assert said.startswith("Answered") and said.endswith("ms.")
    assert page.inner_text("#contract") == "inside the contract"
    assert page.title() == "m.onnx in this browser"
    assert shapes(page) == [f"[{batch}, {past + seq}, 5]", f"[{batch}, {past + seq}, 8]"]


def test_the_page_shows_the_refusal_of_the_graph(page: Any) -> None:
    given = {"batch": 9, "past": 3, "seq": 4}
    said = answer(page, *(given[name] for name in dims(page)))
    assert said == "The file refuses " + ", ".join(f"{name}={given[name]}" for name in dims(page)) + (
        ": AS402: batch of 'ids' must be 1 to 8"
    )
    assert page.inner_text("#contract") == "outside the contract: batch <= 8"
    assert shapes(page) == []


def test_the_page_shows_a_refused_relation(page: Any) -> None:
    given = {"batch": 1, "past": 30, "seq": 4}
    assert "AS405: the sizes must keep past + seq <= 32" in answer(page, *(given[name] for name in dims(page)))


def test_every_call_outside_the_contract_is_refused_in_the_browser(page: Any) -> None:
    page.click("#try-outside")
    page.wait_for_selector("#try-outside:not([disabled])", timeout=_WAIT_MS)
    said = page.inner_text("#defence")
    assert said.startswith("All ") and said.endswith(" calls outside the contract are refused.")
    assert int(said.split()[1]) >= 5


def test_a_slider_moves_its_number(page: Any) -> None:
    page.locator("input[type=range]").first.fill("5")
    assert page.input_value("#dim-0") == "5"


def test_hostile_names_are_text_and_values_keep_their_bounds(browser: Any, runtime: Path, tmp_path: Path) -> None:
    anyshape.export(
        Masked(),
        masked_inputs,
        tmp_path / "m.onnx",
        where=["1 <= batch <= 4", "1 <= seq <= 8"],
        values={"lengths": "1 <= lengths <= seq"},
        input_names=HOSTILE[:2],
        output_names=HOSTILE[2:],
    )
    anyshape.deploy(tmp_path / "m.onnx", "web", tmp_path / "page", ort_web=runtime)
    with served(tmp_path / "page") as address, opened_page(browser, address) as page:
        page.wait_for_selector("#run:not([disabled])", timeout=_WAIT_MS)
        assert answer(page, 3, 5).startswith("Answered")
        listed = page.locator("#inputs li").all_inner_texts()
        assert listed == [f"{HOSTILE[0]}: float32[batch, seq]", f"{HOSTILE[1]}: int64[batch]"]
        assert page.locator("#outputs td").first.inner_text() == HOSTILE[2]
        assert page.locator("img, #outputs b").count() == 0


def test_an_answer_outside_the_contract_is_called_so(browser: Any, runtime: Path, tmp_path: Path) -> None:
    """A file without its defence: the page does not believe it."""
    anyshape.export(
        torch.nn.ReLU(),
        lambda batch=3: torch.randn(batch, 4),
        tmp_path / "m.onnx",
        where=["batch <= 8"],
        enforce="load",
    )
    anyshape.deploy(tmp_path / "m.onnx", "web", tmp_path / "page", ort_web=runtime)
    with served(tmp_path / "page") as address, opened_page(browser, address) as page:
        page.wait_for_selector("#run:not([disabled])", timeout=_WAIT_MS)
        assert "that answer means nothing" in answer(page, 9)
        page.click("#try-outside")
        page.wait_for_selector("#try-outside:not([disabled])", timeout=_WAIT_MS)
        assert "do not hold in this browser" in page.inner_text("#defence")


@pytest.mark.thorough
def test_half_precision_and_weights_in_a_second_file(browser: Any, runtime: Path, tmp_path: Path) -> None:
    layer = torch.nn.Linear(64, 64)
    anyshape.export(
        layer, lambda batch=3: torch.randn(batch, 64), tmp_path / "m.onnx", external_data=True, where=["batch <= 8"]
    )
    anyshape.deploy(tmp_path / "m.onnx", "web", tmp_path / "page", ort_web=runtime)
    weights = json.loads((tmp_path / "page" / "model.json").read_text())["weights"]
    assert weights and all((tmp_path / "page" / name).is_file() for name in weights)
    half = lambda batch=3: torch.randn(batch, 4, dtype=torch.float16)  # noqa: E731
    anyshape.export(torch.nn.ReLU(), half, tmp_path / "half.onnx", where=["batch <= 8"])
    anyshape.deploy(tmp_path / "half.onnx", "web", tmp_path / "half", ort_web=runtime)
    for name, width in (("page", 64), ("half", 4)):
        with served(tmp_path / name) as address, opened_page(browser, address) as page:
            page.wait_for_selector("#run:not([disabled])", timeout=_WAIT_MS)
            assert answer(page, 5).startswith("Answered")
            assert shapes(page) == [f"[5, {width}]"]


def test_without_the_files_of_the_runtime_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("anyshape.deploying.web_target.shutil.which", lambda name: None)
    with pytest.raises(UsageError, match="AS561 no-onnxruntime-web"):
        find_ort_web(None, lambda *_: None)
    with pytest.raises(UsageError, match=r"has no ort\.wasm\.min\.mjs"):
        find_ort_web(tmp_path, lambda *_: None)
    assert cache_folder() == tmp_path / "cache" / "anyshape"


def test_a_package_with_another_digest_is_not_taken(tmp_path: Path) -> None:
    import io
    import tarfile

    packed = tmp_path / "p.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        for name in FILES:
            entry = tarfile.TarInfo(f"package/dist/{name}")
            entry.size = 3
            archive.addfile(entry, io.BytesIO(b"own"))
    with pytest.raises(UsageError, match=f"is not onnxruntime-web {VERSION}"):
        unpack(packed, tmp_path / "cache" / "files")
    assert not (tmp_path / "cache").exists()
    unpack(packed, tmp_path / "cache" / "files", digest_of(packed))
    assert sorted(path.name for path in (tmp_path / "cache" / "files").iterdir()) == sorted(FILES)
