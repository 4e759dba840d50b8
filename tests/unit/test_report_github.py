"""What GitHub Actions is told: annotations beside lines, a table in the job's summary, and nothing elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

from anyshape.findings import Finding, Severity, Source
from anyshape.report import format_annotation, format_summary, tell_github

AT_A_LINE = Finding(
    code="AS102",
    name="size-baked-in",
    what="dim 'batch' is promised as 1..64, but works only for 3.",
    where=Source("src/model.py", 41, "Head.forward", "return x.view(3, 10)"),
    why="100% of sizes\nfail.",
    fix="return x.view(x.shape[0], 10)",
)
AT_A_NODE = Finding(
    code="AS302",
    name="wrong-shape",
    what="output 'a|b' differs.",
    where="node /head/Reshape",
    source=Source("a,b.py", 7),
    severity=Severity.WARNING,
)
NOWHERE = Finding(code="AS307", name="runtime-died", what="onnxruntime crashes.")


def test_a_finding_with_a_line_is_an_annotation_of_it() -> None:
    assert format_annotation(AT_A_LINE) == (
        "::error file=src/model.py,line=41,title=AS102 size-baked-in::dim 'batch' is promised as 1..64, but works only for 3."
        "%0A100%25 of sizes%0Afail.%0AFix: return x.view(x.shape[0], 10)"
    )
    assert (
        format_annotation(AT_A_NODE) == "::warning file=a%2Cb.py,line=7,title=AS302 wrong-shape::output 'a|b' differs."
    )


def test_a_finding_without_a_line_is_no_annotation() -> None:
    assert format_annotation(NOWHERE) == ""


def test_the_summary_is_a_table_that_no_text_can_break() -> None:
    lines = format_summary("check m.onnx", [AT_A_LINE, AT_A_NODE]).splitlines()
    assert lines[0] == "### anyshape check m.onnx: BROKEN"
    assert "| AS302 wrong-shape | output 'a\\|b' differs. | node /head/Reshape |" in lines
    assert format_summary("check m.onnx", [AT_A_NODE]).startswith("### anyshape check m.onnx: kept\n")
    assert format_summary("export m", [], "capture proved") == "### anyshape export m: kept\n\ncapture proved\n\n"


def test_nothing_is_told_outside_of_github(tmp_path: Path) -> None:
    stream = io.StringIO()
    tell_github("check m.onnx", [AT_A_LINE], {}, stream)
    assert stream.getvalue() == ""
    assert list(tmp_path.iterdir()) == []


def test_on_github_lines_are_annotated_and_summaries_add_up(tmp_path: Path) -> None:
    stream, file = io.StringIO(), tmp_path / "summary.md"
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(file)}
    tell_github("check a.onnx", [AT_A_LINE, NOWHERE], environment, stream)
    tell_github("check b.onnx", [], environment, stream, "30 sizes compared")
    assert stream.getvalue() == format_annotation(AT_A_LINE) + "\n"
    assert file.read_text() == format_summary("check a.onnx", [AT_A_LINE, NOWHERE]) + format_summary(
        "check b.onnx", [], "30 sizes compared"
    )
