"""Pages of results: what they show, and names that try to be more than names."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from contract_builder import contract

from anyshape.domain import Dim, Domain, Ref, parse_condition
from anyshape.findings import Finding, PromiseBroken, Severity, Source, UsageError
from anyshape.findings.finding import Remedy, shown, shown_lines
from anyshape.records.contract import TensorPromise
from anyshape.records.runs import Run, StageTime
from anyshape.records.verdict import (
    ComparedSizes,
    Difference,
    Failure,
    FailureKind,
    Mismatch,
    OutputError,
    Untried,
    Verdict,
)
from anyshape.report.page import check_report_packages, render_many, render_page, render_summary
from anyshape.report.page.graph_map import map_graph
from anyshape.report.page.page_facts import PageFacts, excerpt_of, facts_of_check, facts_of_refusal, fix_as_diff
from anyshape.report.page.size_cells import Pair, map_errors, map_regions, pairs_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"' onload='alert(1)",
    "line\nbreak",
    "right\u202eto\u200fleft",
    "{{ 7*7 }}{% raw %}",
    "<!--",
)


class Tags(HTMLParser):
    """The tags of a page, its text, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def facts_called(name: str) -> PageFacts:
    """A kept export all of whose names are this one; the dim has the same letters in an identifier."""
    domain = Domain((Dim("שלום", 1, 64), Dim("seq")))
    axes = (Ref("שלום"), Ref("seq"))
    run = Run(model=name, domain=domain, inputs=(), example={"שלום": 3, "seq": 5}, stages=(StageTime(name, 1.0),))
    promised = contract("x: float32[batch]", status="kept", needs=(name,), constants={name: name}, values={name: name})
    tensors = (TensorPromise(name, name, "float32", axes),)
    promised = type(promised)(
        **{**vars(promised), "domain": domain, "inputs": tensors, "outputs": tensors, "rules": ()}
    )
    sizes = {"שלום": 3, "seq": 5}
    verdict = Verdict(
        tried=(sizes,),
        compared=(ComparedSizes(sizes, {name: 0.5}),),
        outputs=(OutputError(name, 0.5, 8.0),),
        untried=(Untried({"שלום": 9, "seq": 9}, name),),
    )
    found = Finding(
        code="AS102",
        name="size-baked-in",
        what=name,
        why=name,
        fix=name,
        replay=name,
        alternative=name,
        excerpt=name,
        where=Source(name, 3, name, name),
        severity=Severity.WARNING,
    )
    return PageFacts(
        title=name,
        status="kept",
        contract=promised,
        run=run,
        verdict=verdict,
        findings=(found,),
        path=name,
        command=name,
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(name: str) -> None:
    plain, hostile = (Tags(render_page(facts_called(each))) for each in ("plain", name))
    assert hostile.tags == plain.tags
    assert hostile.attributes == plain.attributes
    assert shown(name) in hostile.text
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069]", hostile.text)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_in_notebooks_and_lists(name: str) -> None:
    for render in (
        lambda text: str(render_summary(facts_called(text))),
        lambda text: render_many(
            text, [{"name": text, "status": "refused", "outcome": text, "said": text, "dims": text, "text": text}]
        ),
    ):
        plain, hostile = Tags(render("plain")), Tags(render(name))
        assert (hostile.tags, hostile.attributes) == (plain.tags, plain.attributes)
        assert shown(name) in hostile.text


def test_the_check_for_hostile_names_can_fail() -> None:
    assert Tags("<p><script>1</script></p>").tags != Tags("<p>name</p>").tags


def test_the_data_of_the_explorer_is_json_that_ends_no_script() -> None:
    page = render_page(facts_called(HOSTILE[1]))
    island = re.search(r'<script type="application/json" id="explorer-data">(.*?)</script>', page, re.DOTALL)
    assert island is not None
    data = json.loads(island[1])
    assert data["inputs"][0]["name"] == HOSTILE[1]
    assert data["dims"][0]["name"] == "שלום"
    assert page.count("</script>") == 2
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_page_forbids_the_browser_to_load_anything() -> None:
    page = render_page(facts_called("x"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    outside = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert not re.search(r"https?://|src=|@import|url\((?!#)", outside)


def test_characters_that_are_not_seen_are_shown() -> None:
    assert shown("a\nb\u202ec\x00") == "a\\nb\\u202ec\\x00"
    assert shown_lines("a\n\tb\u202e") == "a\n\tb\\u202e"
    assert shown("häß שלום 日本") == "häß שלום 日本"
    assert shown_lines(7) == 7


def test_a_missing_package_is_named_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    check_report_packages()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"AS570.*'vl_convert'"):
        check_report_packages()


def test_a_refusal_without_facts_has_a_page() -> None:
    page = render_page(facts_of_refusal([Finding(code="AS101", name="x", what="it was refused.")], (), None))
    assert "No file was written. It was refused." in page


def test_only_the_error_of_an_export_has_a_report(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"anyshape\.export"):
        PromiseBroken(Finding(code="AS101", name="x", what="y.")).report(tmp_path / "out.html")


def test_a_check_with_an_error_is_broken() -> None:
    promised = contract("x: float32[batch]", "batch <= 8", outputs="y: float32[batch]")
    found = Finding(code="AS301", name="wrong-shape", what="it differs.")
    run = Run(model="model.py", domain=promised.domain, inputs=promised.inputs, example={"batch": 1})
    facts = facts_of_check("m.onnx", promised, run, Verdict(tried=({"batch": 1},)), [found])
    assert facts.status == "broken"
    assert "The file is not right on all of its sizes. It differs." in render_page(facts)


def test_a_failure_has_expected_and_actual_side_by_side() -> None:
    promised = contract("x: float32[batch]", "batch <= 8", outputs="y: float32[batch]")
    run = Run(model="model.py", domain=promised.domain, inputs=promised.inputs, example={"batch": 1})
    difference = Difference(Mismatch.VALUE, "y", 1.25, 7.5, (0, 2), 3, 9.0)
    failure = Failure(sizes={"batch": 2}, kind=FailureKind.DIFFERS, difference=difference, values="zeros", seed=4)
    verdict = Verdict(tried=({"batch": 2},), failures=(failure,), smallest_failure=failure)
    found = Finding(code="AS305", name="wrong-values", what="it differs.", replay="anyshape check m.onnx --seed 4")
    text = Tags(render_page(facts_of_check("m.onnx", promised, run, verdict, [found]))).text
    for shown_text in ("batch=2 zeros values, seed 4", "1.25", "7.5", "Value of y differs at index [0, 2]; 3 elements"):
        assert shown_text in text
    assert "anyshape check m.onnx --seed 4" in text


def test_a_check_of_a_file_without_a_contract_promises_nothing() -> None:
    promised = contract("x: float32[batch]", "batch <= 8")
    run = Run(model="model.py", domain=promised.domain, inputs=promised.inputs, example={"batch": 1})
    for own in (None, contract("x: float32[other]")):
        page = render_page(facts_of_check("m.onnx", own, run, Verdict(tried=({"batch": 1},)), []))
        assert "nothing is promised" in page
        assert '"standing": "comparisons"' in page


def test_sizes_of_about_the_same_magnitude_share_a_cell() -> None:
    compared = [({"a": 1, "b": 5}, 0.1), ({"a": 4, "b": 8}, 0.2), ({"a": 3, "b": 6}, 0.7), ({"a": 9, "b": 5}, 0.3)]
    verdict = Verdict(compared=tuple(ComparedSizes(sizes, {"y": error}) for sizes, error in compared))
    promised = contract("x: float32[a, b]")
    found = map_errors(PageFacts(title="", status="kept", contract=promised, verdict=verdict), Pair("a", "b"))
    assert found is not None
    assert (found.x, found.y) == (("1", "2", "3–4", "5–8", "9–16"), ("5–8",))
    assert [cell.value for cell in found.cells] == [0.1, None, 0.7, None, 0.3]


def test_a_map_of_the_contract_is_for_rules_that_it_can_show() -> None:
    promised = contract("x: float32[a, b, c]", "a + b <= 8", "c <= 4")
    facts = PageFacts(title="", status="kept", contract=promised)
    pairs = pairs_of(promised.domain.names)
    assert [pair for pair in pairs if map_regions(facts, pair) is not None] == [Pair("a", "b")]
    found = map_regions(facts, Pair("a", "b"))
    assert found is not None
    corner = next(cell for cell in found.cells if (found.x[cell.x], found.y[cell.y]) == ("8", "1"))
    assert corner.word == "outside the contract"
    assert parse_condition("a + b <= 8") in promised.domain.relations


def test_an_excerpt_has_the_lines_around_and_a_fix_is_a_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("".join(f"    line{number}\n" for number in range(1, 10)), encoding="utf-8")
    source = Source("net.py", 5, "f", "line5")
    assert [number for number, _ in excerpt_of(source).lines] == [2, 3, 4, 5, 6, 7, 8]
    assert excerpt_of(Source("net.py", 5, "f", "changed since")).lines == ((5, "changed since"),)
    assert excerpt_of(Source("none.py", 5)).lines == ()
    found = Finding(code="AS102", name="x", what="y.", fix="new", remedy=Remedy(edits=((source, "new"),)))
    diff = fix_as_diff(found)
    assert "--- a/net.py\n+++ b/net.py\n@@ -2,7 +2,7 @@\n" in diff
    assert "\n-    line5\n+    new\n" in diff


GRAPH = """
<ir_version: 10, opset_import: ["" : 21, "mylib" : 1]>
agraph (float[batch, 2] x, bool c) => (float[batch, 2] y, float[batch, 2] z)
<float[2, 2] val_0 = {1, 2, 3, 4}, float[2] bias = {1, 2}, float[1] val_1 = {1}>
{
    p = MatMul(x, val_0)
    q = Add(p, bias)
    y = If (c) <
        then_branch = t () => (float[batch, 2] a) { a = Mul(q, val_1) },
        else_branch = e () => (float[batch, 2] b) { b = Neg(q) }
    >
    z = mylib.Scale(x)
}
"""


def test_the_map_of_a_graph_has_choices_custom_nodes_and_weights_by_module() -> None:
    model = ir.from_proto(onnx.parser.parse_model(GRAPH))
    bias = model.graph.initializers.pop("bias")
    bias.name = "layer.inner.bias"  # the text form of a graph has no names with dots
    model.graph.register_initializer(bias)
    found = map_graph(model)
    assert [(part.kind, part.operator, part.reads, part.feeds) for part in found.parts] == [
        ("choice", "If", ("c", "x"), ("y",)),
        ("custom", "mylib::Scale", ("x",), ("z",)),
    ]
    assert [(name, nodes) for name, nodes, _ in found.parts[0].bodies] == [("then_branch", 1), ("else_branch", 1)]
    assert found.nodes == 6
    assert dict(found.operators)["MatMul"] == 1
    assert [(row.module, row.tensors, row.bytes) for row in found.weights] == [
        ("layer.inner", 2, 24),
        ("(constants and folded weights)", 1, 4),
    ]
