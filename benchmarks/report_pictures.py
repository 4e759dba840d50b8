"""Take the pictures of reports that the documents show, in the system's Chromium.

python benchmarks/report_pictures.py docs/pictures
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "pipeline"))
from reported_models import KINDS

import anyshape

# picture: the kind of model, the part of the page, the colours, the width, and the sizes in the explorer's fields
PICTURES: dict[str, tuple[str, str, str, int, tuple[int, ...]]] = {
    "report-explorer": ("decoder", "section:has(#explore)", "light", 1000, (4, 128, 500)),
    "report-outside": ("decoder", "section:has(#explore)", "dark", 1000, (4, 600, 500)),
    "report-refusal": ("refusal", "body", "light", 1000, ()),
    "report-maps": ("regions", "section:has(#maps)", "light", 1000, ()),
    "report-graph": ("loop", "section:has(#graph)", "light", 1000, ()),
    "report-kept": ("encoder", "body", "dark", 1000, ()),
    "report-narrow": ("encoder", "body", "light", 400, ()),
}
TALLEST = {"report-refusal": 1090, "report-kept": 900, "report-narrow": 900, "report-graph": 720}


def write_page(kind: str, folder: Path) -> Path:
    """The page of one kind of model."""
    of = KINDS[kind]
    torch.manual_seed(0)
    path = folder / f"{kind}.html"
    try:
        anyshape.export(of.model().eval(), of.inputs, folder / f"{kind}.onnx", where=of.where).report(path)
    except anyshape.PromiseBroken as broken:
        broken.report(path)
    return path


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
        pages = {kind: write_page(kind, Path(made)) for kind in KINDS}
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (kind, *_) in PICTURES.items():
            take(browser, pages[kind], name, folder)
        browser.close()


if __name__ == "__main__":
    main()
