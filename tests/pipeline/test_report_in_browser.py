"""Pages of results in a real browser: fields and sliders move, shapes follow, nothing is loaded, nothing is inaccessible."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from reported_models import KINDS

import anyshape
from anyshape import files
from anyshape.domain import evaluate
from anyshape.records.runs import Benched, BenchRow
from anyshape.report.page import render_many
from anyshape.runtime.child import Timing

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open the pages of reports")
pytest.importorskip("playwright", reason="playwright is not installed: pages of reports are not opened")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")

LARGEST_PAGE = 2_000_000


@dataclass
class Opened:
    """A page in the browser, and everything that it said, asked for or showed by itself."""

    page: Any
    said: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    def put(self, dims: Sequence[str], **sizes: int) -> None:
        """Type sizes into the fields of the explorer."""
        for name, size in sizes.items():
            self.page.fill(f"#size-{dims.index(name)}", str(size))

    def answer(self) -> str:
        return str(self.page.inner_text('[data-part="answer"]'))

    def shapes(self, side: str) -> list[str]:
        return list(self.page.locator(f'[id^="{side}-"] [data-cell="shape"]').all_inner_texts())

    def violations(self) -> list[str]:
        """What axe-core finds against the page."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    args = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        yield started
        started.close()


def open_page(browser: Any, file: Path, **look: Any) -> Opened:
    """The page in a browser without a network."""
    context = browser.new_context(offline=True, **{"viewport": {"width": 1100, "height": 900}, **look})
    opened = Opened(context.new_page())
    opened.page.on("console", lambda message: opened.said.append(message.text))
    opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.page.on("dialog", lambda dialog: opened.said.append(dialog.message))
    opened.page.on("request", lambda request: opened.requested.append(request.url))
    opened.page.goto(file.resolve().as_uri())
    return opened


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of each kind, or the error, and the folder with the pages."""
    folder = tmp_path_factory.mktemp("pages")
    results: dict[str, Any] = {"folder": folder}
    for name, kind in KINDS.items():
        torch.manual_seed(0)
        try:
            result = anyshape.export(kind.model().eval(), kind.inputs, where=kind.where, **kind.options)
        except anyshape.PromiseBroken as broken:
            result = broken
        assert result.report(folder / f"{name}.html") == folder / f"{name}.html"
        results[name] = result
    return results


def check_quiet(opened: Opened) -> None:
    """The page said nothing, asked for nothing but itself, and axe-core has nothing against it."""
    assert opened.said == []
    assert len(opened.requested) == 1, opened.requested
    assert opened.violations() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_quiet_and_accessible(kind: str, scheme: str, exported: dict[str, Any], browser: Any) -> None:
    file = exported["folder"] / f"{kind}.html"
    assert file.stat().st_size < LARGEST_PAGE
    width = 1100 if scheme == "light" else 390
    opened = open_page(browser, file, color_scheme=scheme, viewport={"width": width, "height": 800})
    check_quiet(opened)
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert opened.page.evaluate(wider) == 0
    assert opened.page.locator("h1").inner_text().startswith("Refused" if kind == "refusal" else "Kept")


SIZES = {
    "encoder": [{"batch": 1, "seq": 1}, {"batch": 64, "seq": 512}, {"batch": 7, "seq": 13}],
    "decoder": [{"batch": 1, "past": 0, "seq": 1}, {"batch": 8, "past": 1000, "seq": 24}],
    "regions": [{"batch": 3, "seq": 16}, {"batch": 3, "seq": 17}],
    "loop": [{"steps": 1, "batch": 1}, {"steps": 9, "batch": 3}],
}
OUTSIDE = {
    "encoder": ({"batch": 65}, "batch <= 64"),
    "decoder": ({"past": 1024}, "past + seq <= 1024"),
    "regions": ({"seq": 0}, "seq >= 1"),
    "loop": ({"steps": 10}, "steps <= 9"),
}


@pytest.mark.parametrize("kind", SIZES)
def test_shapes_follow_the_fields(kind: str, exported: dict[str, Any], browser: Any) -> None:
    contract = exported[kind].contract
    opened = open_page(browser, exported["folder"] / f"{kind}.html")
    for sizes in SIZES[kind]:
        opened.put(contract.domain.names, **sizes)
        assert opened.answer().startswith("Inside the contract")
        for side, tensors in (("inputs", contract.inputs), ("outputs", contract.outputs)):
            expected = [[evaluate(axis, sizes) for axis in tensor.axes] for tensor in tensors]
            assert opened.shapes(side) == [str(shape) for shape in expected]
    sizes, rule = OUTSIDE[kind]
    opened.put(contract.domain.names, **sizes)
    assert opened.answer().startswith("Outside the contract")
    assert rule in opened.answer()
    assert opened.said == []


def test_a_slider_moves_by_keyboard_and_the_field_follows(exported: dict[str, Any], browser: Any) -> None:
    opened = open_page(browser, exported["folder"] / "encoder.html")
    before = opened.shapes("inputs")
    opened.page.focus("#slider-0")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.input_value("#size-0") == "4"
    assert opened.page.get_attribute("#slider-0", "aria-valuetext") == "4"
    assert opened.shapes("inputs") == [shape.replace("[3,", "[4,") for shape in before]
    opened.page.keyboard.press("End")
    assert opened.page.input_value("#size-0") == "64"
    opened.page.click("button[data-go='low']")
    assert opened.shapes("inputs") == ["[1, 1]"] * 3
    assert opened.page.get_attribute('[data-part="answer"]', "aria-live") == "polite"


def test_the_region_that_answers_follows_the_size(exported: dict[str, Any], browser: Any) -> None:
    opened = open_page(browser, exported["folder"] / "regions.html")
    names = exported["regions"].contract.domain.names
    opened.put(names, seq=16)
    low = opened.page.inner_text('[data-part="region"]')
    opened.put(names, seq=17)
    high = opened.page.inner_text('[data-part="region"]')
    assert {low, high} == {"Region 1 of 2 answers: seq <= 16", "Region 2 of 2 answers: seq > 16"}


def test_a_refusal_shows_the_line_and_a_fix_to_copy(exported: dict[str, Any], browser: Any) -> None:
    opened = open_page(browser, exported["folder"] / "refusal.html")
    text = opened.page.inner_text("main")
    assert "AS102" in text
    assert "return (x * mask[..., None]).sum(1).view(3, 8)" in opened.page.inner_text(".excerpt .meant")
    fix = opened.page.inner_text("#fix-1")
    assert "+        return (x * mask[..., None]).sum(1).view(x.shape[0], 8)" in fix
    opened.page.evaluate(
        "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }"
    )
    opened.page.click("button[data-copy='fix-1']")
    assert opened.page.evaluate("window.copied").strip() == fix.strip()
    opened.put(exported["refusal"].run.domain.names, batch=1, seq=1)
    assert "AS102" in opened.answer()


def test_a_loop_and_a_choice_are_on_the_map_of_the_graph(exported: dict[str, Any], browser: Any) -> None:
    loop = open_page(browser, exported["folder"] / "loop.html").page
    assert loop.inner_text(".part[data-kind='loop'] .kind") == "loop"
    link = loop.locator(".part[data-kind='loop'] a").first
    assert "reported_models.py:" in link.inner_text()
    target = str(link.get_attribute("href"))
    assert "torch.tanh" in loop.inner_text(target)
    regions = open_page(browser, exported["folder"] / "regions.html").page
    assert regions.locator(".part[data-kind='choice']").count() == 1


def test_measured_figures_have_maps_of_their_own(exported: dict[str, Any], browser: Any, tmp_path: Path) -> None:
    timing = Timing(ms=1.5, median_ms=1.6, calls=9, load_ms=3.0, load_mb=50.0, peak_mb=61.0)
    rows = tuple(
        BenchRow(sizes={"batch": batch, "seq": 8}, elements=8, eager_ms=2.0, timing=timing) for batch in (1, 8)
    )
    bench = Benched(path="m.onnx", rows=rows, providers=(), threads=1)
    exported["encoder"].report(tmp_path / "out.html", bench=bench)
    opened = open_page(browser, tmp_path / "out.html")
    assert {"Latency over batch and seq", "Memory over batch and seq"} <= set(
        opened.page.locator("figcaption strong").all_inner_texts()
    )
    assert "1.50 ms, 61.0 MB at batch=1, seq=8" in opened.page.inner_text('[data-part="measured"]')
    check_quiet(opened)


def test_a_page_of_twenty_models(browser: Any, tmp_path: Path) -> None:
    statuses = ("kept", "refused", "broken", "narrowed")
    rows = [
        {
            "name": f"model_{number}",
            "status": statuses[number % 4],
            "outcome": ("kept", "crashed", "hung", "kept")[number % 4],
            "said": "words",
            "text": "AS541 model-crashes: <b>the whole text</b>" if number % 2 else "",
            "sizes": number,
            "dims": "batch 1.., past + seq <= 1024",
            "memory": 10**8 * number,
            "seconds": 1.0,
            "link": f"{number}.html",
        }
        for number in range(20)
    ]
    rows[3]["link"] = "javascript:alert(1)"
    page = render_many("twenty <models>", rows, total=21, command="anyshape batch twenty.toml --report many.html")
    (tmp_path / "many.html").write_text(page, encoding="utf-8")
    opened = open_page(browser, tmp_path / "many.html")
    assert opened.page.locator("tbody tr").count() == 20
    assert opened.page.locator("tbody a").count() == 19
    assert opened.page.inner_text("h1").startswith("10 of 21 kept")
    assert opened.page.locator(".figures dt").all_inner_texts() == ["kept", "crashed", "hung", "not done"]
    opened.page.locator("tbody summary").first.click()
    assert opened.page.locator("tbody pre").first.inner_text() == "AS541 model-crashes: <b>the whole text</b>"
    check_quiet(opened)


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_two_files(scheme: str, browser: Any, tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["" : 18]> g '
    graphs = {
        "doubled": "(float[n, m] x) => (float[n, m] y) { y = Add (x, x) }",
        "static <b>": "(float[3, m] x) => (float[3, m] y) { y = Add (x, x) }",
    }
    for name, text in graphs.items():
        onnx.save(onnx.parser.parse_model(head + text), tmp_path / f"{name}.onnx")
    one, other = (tmp_path / f"{name}.onnx" for name in graphs)
    inputs = lambda n=3, m=2: {"x": torch.randn(n, m)}  # noqa: E731
    where = ["1 <= n <= 9", "1 <= m <= 9"]
    compared = files.compare(one, other, double, inputs, where=where, measure=2, seconds=0.05)
    assert compared.report(tmp_path / "out.html") == tmp_path / "out.html"
    assert "B is wrong" in str(compared._repr_html_())
    width = 1100 if scheme == "light" else 390
    opened = open_page(browser, tmp_path / "out.html", color_scheme=scheme, viewport={"width": width, "height": 800})
    assert opened.page.inner_text("h1") == "Broken doubled.onnx and static <b>.onnx"
    assert opened.page.inner_text(".lead") == "B is wrong, they differ."
    assert opened.page.locator("#files ~ .scroll tbody tr").count() == 6
    assert opened.page.locator("#errors ~ details tbody tr").count() == len(compared.rows)
    titles = opened.page.locator("figcaption strong").all_inner_texts()
    assert titles == [
        "Error of A over n and m",
        "Error of B over n and m",
        "B against A over n and m",
        "Time of a call",
    ]
    labels = [each.get_attribute("aria-label") for each in opened.page.locator(".plot").all()]
    assert "failed" not in labels[0] and "failed" in labels[1] and "failed" in labels[2]
    assert "AS306" in opened.page.inner_text("#findings-b ~ article ~ article")
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert opened.page.evaluate(wider) == 0
    check_quiet(opened)


def test_hostile_names_of_a_real_export_are_text(browser: Any, tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "quote\"'&lt;tfel"]
    file = tmp_path / "<img src=x onerror=alert(1)>.onnx"
    inputs = lambda batch=3: (torch.randn(batch, 4), torch.randn(batch, 4))  # noqa: E731
    result = anyshape.export(lambda a, b: a + b, inputs, file, input_names=names, where=["batch <= 9"], verify="quick")
    result.report(tmp_path / "out.html")
    opened = open_page(browser, tmp_path / "out.html")
    assert opened.page.inner_text("h1").endswith(file.name)
    shown = opened.page.locator("tbody th bdi").all_inner_texts()
    assert set(names) <= set(shown)
    assert opened.page.locator("img").count() == 0
    opened.put(["batch"], batch=9)
    assert opened.shapes("outputs") == ["[9, 4]"]
    check_quiet(opened)
