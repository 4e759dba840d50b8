"""A result as one HTML file: facts -> data, charts and texts -> templates -> a page that needs nothing else.

This file: facts -> one HTML file with everything inside it, for one model or for many; the browser loads nothing else.

Files, in the order in which data flows:

    page_facts       what a page is made of: facts, lines of the user's code, safe text
    explorer_data    data of the size explorer, expressions as JSON
    size_cells       what is known of sizes, as cells of a map
    charts           maps and bars as SVG, with titles
    graph_map        summary of an ONNX graph, as rows
    page_view        words and rows for the templates
    comparison_page  the page of two files
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anyshape.domain import format_condition
from anyshape.findings import Finding, UsageError
from anyshape.findings.finding import shown, shown_lines
from anyshape.report import format_bytes
from anyshape.report.page.charts import maps_view, stages_view
from anyshape.report.page.explorer_data import explorer_data
from anyshape.report.page.graph_map import graph_view
from anyshape.report.page.page_facts import PageFacts
from anyshape.report.page.page_view import (
    dims_view,
    evidence_view,
    extras_view,
    failure_view,
    findings_view,
    guards_view,
    repeat_view,
    rules_view,
    rungs_view,
    say_range,
    tensors_view,
    untried_view,
    verdict_view,
)

if TYPE_CHECKING:
    from jinja2 import Environment

_SCRIPTS = ("arithmetic.js", "estimates.js", "explorer.js", "page.js")
_PACKAGES = ("jinja2", "altair", "vl_convert")
COLOURS = {"kept": "#15803d", "narrowed": "#a14a05", "unverified": "#a14a05", "broken": "#b91c1c", "refused": "#b91c1c"}
_NO_RUNGS = "No rung of the ladder was tried: the findings were clear before the model was captured."
_STRIPPED = "What each rung came to was left out of the result, with the lines of the source."
_GOOD = ("kept", "narrowed")


def check_report_packages() -> None:
    """Raise UsageError where a package is missing that a page needs: before an export, not after it."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            Finding(
                code="AS570",
                name="report-extra",
                what=f"a report needs the package {missing[0]!r}, which is not installed.",
                why="pages are made with jinja2, altair and vl-convert-python, which an export itself does not need.",
                fix="pip install 'anyshape[report]'",
            )
        )


def render_page(facts: PageFacts) -> str:
    """The whole page as text. Raises UsageError where a package is missing."""
    check_report_packages()
    data = explorer_data(facts)
    findings = findings_view(facts.findings)
    maps = maps_view(facts)
    return render_template(
        "page.html",
        facts.title,
        {
            "facts": facts,
            "verdict": verdict_view(facts),
            "sections": _sections(facts, has_explorer=data is not None, has_maps=bool(maps["maps"])),
            "data": data,
            "dims": dims_view(facts),
            "dim_ranges": [] if facts.domain is None else [say_range(dim) for dim in facts.domain.dims],
            "rules": rules_view(data, facts),
            **tensors_view(facts),
            "extras": extras_view(facts.contract),
            "evidence": evidence_view(facts),
            "untried": untried_view(facts.verdict),
            "nothing_untried": _nothing_untried(facts),
            "findings": findings,
            "failure": failure_view(facts.verdict) if facts.status in ("refused", "broken") else None,
            "repair_diff": "" if facts.repair is None else facts.repair.diff,
            "rungs": rungs_view(facts.attempts),
            "no_rungs": _NO_RUNGS if facts.status == "refused" else _STRIPPED,
            "guards": guards_view(facts.guards),
            "regions": _regions(facts),
            **maps,
            **stages_view(facts.run),
            **graph_view(facts.model),
            "repeat": repeat_view(facts),
        },
    )


def render_summary(facts: PageFacts) -> str | None:
    """Verdict and contract as HTML for a notebook; None where jinja2 is missing."""
    return render_part(
        "notebook.html",
        {
            "facts": facts,
            "verdict": verdict_view(facts),
            "colour": COLOURS[facts.status],
            "dims": dims_view(facts),
            "rules": rules_view(explorer_data(facts), facts),
            **tensors_view(facts),
            "findings": findings_view(facts.findings),
        },
    )


def _sections(facts: PageFacts, *, has_explorer: bool, has_maps: bool) -> list[tuple[str, str]]:
    findings = [("findings", "Findings")] if facts.findings else []
    is_bad = facts.status in ("refused", "broken")
    return [
        *(findings if is_bad else []),
        ("promise", "Promise" if facts.contract is not None else "Declared"),
        *([("explore", "Explore sizes")] if has_explorer else []),
        *([("maps", "Maps")] if has_maps else []),
        *([] if is_bad else findings),
        ("ladder", "How"),
        *([("graph", "Graph")] if facts.model is not None else []),
        ("repeat", "Repeat"),
    ]


def _nothing_untried(facts: PageFacts) -> str:
    verdict = facts.verdict
    if verdict is None or verdict.is_skipped:
        return "Nothing was compared: there is no verdict."
    return "Every size that was planned was compared."


def _regions(facts: PageFacts) -> list[str]:
    return [format_condition(region.condition) for region in facts.regions] if len(facts.regions) > 1 else []


def render_part(template: str, context: Mapping[str, Any]) -> str | None:
    """HTML to be put into another page, such as a notebook; None where jinja2 is missing."""
    return None if find_spec("jinja2") is None else _environment().get_template(template).render(**context)


def render_template(template: str, title: str, context: Mapping[str, Any]) -> str:
    """A whole page: the template with the styles and the script of all pages."""
    from markupsafe import Markup

    script = "\n".join(["(() => {", '"use strict";', *map(_asset, _SCRIPTS), "})();"])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment().get_template(template)
    return page.render(
        title=title,
        version=_version(),
        css=Markup(_asset("page.css")),
        script=Markup(script),
        script_hash=Markup(f"'sha256-{digest}'"),
        **context,
    )


@cache
def _asset(name: str) -> str:
    return (resources.files("anyshape.report.page") / "assets" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    """Templates of the package; every value is escaped, and characters that are not seen are shown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("anyshape.report.page"),
        autoescape=True,
        finalize=shown_lines,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["name"] = lambda text: shown(str(text))
    return environment


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("anyshape")
    except metadata.PackageNotFoundError:
        return ""


def render_many(title: str, rows: Sequence[Mapping[str, Any]], *, total: int | None = None, command: str = "") -> str:
    """A page of many results: `name`, `status` (kept, narrowed, unverified, broken or refused), `said`, `seconds`.

    What else a row may have: `outcome` is the word that is shown in place of the status, `sizes` the number of compared sizes,
    `dims` what is promised, `memory` in bytes, `text` the whole text behind `said`, and `link` the relative path of a page of
    its own (other links are left out). `total` is more than the rows are where some are not done.
    """
    check_report_packages()
    plain = [_row(row) for row in rows]
    kept = sum(row["status"] in _GOOD for row in plain)
    count = len(rows) if total is None else total
    others = Counter(row["outcome"] for row in plain if row["status"] not in _GOOD)
    counts = [("kept", kept), *others.items(), *([("not done", count - len(rows))] if count > len(rows) else [])]
    status = "kept" if kept == count else "refused"
    context = {"rows": plain, "counts": counts, "total": count, "status": status, "command": command}
    return render_template("many.html", title, context)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    status = row["status"] if row["status"] in COLOURS else "refused"
    return {
        "name": str(row["name"]),
        "status": status,
        "outcome": str(row.get("outcome") or status),
        "said": str(row.get("said", "")),
        "text": str(row.get("text") or ""),
        "sizes": str(row.get("sizes") or ""),
        "dims": str(row.get("dims") or ""),
        "seconds": "" if row.get("seconds") is None else f"{row['seconds']:.1f}",
        "memory": "" if not row.get("memory") else format_bytes(row["memory"]),
        "link": _relative(str(row.get("link") or "")),
    }


def _relative(link: str) -> str:
    """The link, unless it leads out of the folder of the page or has a scheme such as javascript."""
    is_inside = bool(link) and ":" not in link and not link.startswith(("/", "\\")) and ".." not in link
    return link if is_inside else ""
