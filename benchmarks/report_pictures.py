"""Take the pictures of reports that the documents show, in the system's Chromium.

python benchmarks/report_pictures.py docs/pictures [report-kept ...]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "pipeline"))
sys.path.insert(0, str(Path(__file__).parent / "batch"))
from reported_models import KINDS
from twenty_models import write_twenty

import anyshape
from anyshape import files
from anyshape.batch import export_many

# picture: the kind of model, the part of the page, the colours, the width, and the sizes in the explorer's fields
PICTURES: dict[str, tuple[str, str, str, int, tuple[int, ...]]] = {
    "report-explorer": ("decoder", "section:has(#explore)", "light", 1000, (4, 128, 500)),
    "report-outside": ("decoder", "section:has(#explore)", "dark", 1000, (4, 600, 500)),
    "report-refusal": ("refusal", "body", "light", 1000, ()),
    "report-maps": ("regions", "section:has(#maps)", "light", 1000, ()),
    "report-graph": ("loop", "section:has(#graph)", "light", 1000, ()),
    "report-kept": ("encoder", "body", "dark", 1000, ()),
    "report-narrow": ("encoder", "body", "light", 400, ()),
    "report-batch": ("batch", "body", "light", 1000, ()),
    "report-compare": ("compare", "body", "light", 1000, ()),
}
TALLEST = {
    "report-refusal": 1090,
    "report-kept": 900,
    "report-narrow": 900,
    "report-graph": 720,
    "report-batch": 1600,
    "report-compare": 2450,
}


def write_page(kind: str, folder: Path) -> Path:
    """The page of one kind of model, of twenty models, or of two files."""
    path = folder / f"{kind}.html"
    torch.manual_seed(0)
    if kind == "batch":
        return export_many(write_twenty(folder), jobs=2).report(path)
    if kind == "compare":
        return _compare(folder).report(path)
    of = KINDS[kind]
    try:
        anyshape.export(of.model().eval(), of.inputs, folder / f"{kind}.onnx", where=of.where).report(path)
    except anyshape.PromiseBroken as broken:
        broken.report(path)
    return path


def _compare(folder: Path) -> files.FilesCompared:
    """A file with plain operators, and one with those of onnxruntime alone."""
    block = torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Linear(16, 16), torch.nn.GELU())
    inputs, where = lambda batch=2, seq=3: torch.randn(batch, seq, 16), ["1 <= batch <= 8", "1 <= seq <= 16"]
    plain, fused = folder / "plain.onnx", folder / "fused.onnx"
    anyshape.export(block, inputs, plain, where=where)
    anyshape.export(block, inputs, fused, where=where, target="onnxruntime")
    return files.compare(plain, fused, block, inputs, where=where)


def take(browser: Any, page: Path, name: str, folder: Path) -> None:
    """One picture."""
    _, part, scheme, width, sizes = PICTURES[name]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    opened = context.new_page()
    opened.goto(page.as_uri())
    for index, size in enumerate(sizes):
        opened.fill(f"#size-{index}", str(size))
    opened.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    box = opened.locator(part).bounding_box()
    clip = {**box, "height": min(box["height"], TALLEST.get(name, 2000))}
    opened.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip)
    context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        names = sys.argv[2:] or list(PICTURES)
        pages = {kind: write_page(kind, Path(made)) for kind in {PICTURES[name][0] for name in names}}
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names:
            take(browser, pages[PICTURES[name][0]], name, folder)
        browser.close()


if __name__ == "__main__":
    main()
