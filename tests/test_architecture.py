"""The house's rules, proved on every run: the direction of imports, the size of files, a light `import anyshape`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "anyshape"
LAYERS = ("findings", "processes", "domain", "modules", "intercept", "inputs", "leaves", "runtime", "graphs", "records")
STAGES = ("explore", "capture", "translate", "optimize", "verify", "diagnose", "repair", "contract", "saving", "report")
TOP = ("loading", "exporting", "checking", "api", "files", "sources", "deploying", "batch", "compat", "cli", "testing")
USERS_ROOMS = ("api.py", "cli", "compat", "testing")  # what users call: these may import the whole package


def imports_of(text: str) -> Iterator[str]:
    """The rooms of anyshape that a file imports, type-checking imports included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anyshape."):
            yield (node.module or "").split(".")[1]
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("anyshape."))


def broken_imports(room: str, text: str) -> list[str]:
    """Imports of a file in `room` that go up, or from stage to stage."""
    order = (*LAYERS, "stage", *TOP)
    rank = order.index("stage" if room in STAGES else room)

    def is_allowed(other: str) -> bool:
        if other == room:
            return True
        if other in STAGES:
            return room in TOP
        return other in order and order.index(other) < rank

    return [other for other in imports_of(text) if not is_allowed(other)]


def files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in TOP)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert broken_imports(room, path.read_text(encoding="utf-8")) == []


def test_the_import_rule_can_fail() -> None:
    assert broken_imports("domain", "from anyshape.inputs import declare") == ["inputs"]
    assert broken_imports("verify", "from anyshape.capture import guards") == ["capture"]
    assert broken_imports("report", "import anyshape.exporting.pipeline") == ["exporting"]


@pytest.mark.parametrize(
    ("package", "home"),
    [("onnxruntime", "runtime/session.py"), ("openvino", "runtime/openvino_session.py"), ("z3", "domain/solve.py")],
)
def test_a_foreign_package_is_imported_in_one_place(package: str, home: str) -> None:
    def imported(path: Path) -> bool:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        return any(
            (isinstance(node, ast.Import) and any(name.name.split(".")[0] == package for name in node.names))
            or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package)
            for node in nodes
        )

    homes = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if imported(path)]
    assert homes == [home]


def test_files_are_named_after_what_they_hold() -> None:
    nothing = ("utils", "helpers", "common", "misc", "manager", "base")
    assert [path for path in SOURCE.rglob("*.py") if path.stem in nothing] == []


def twice(names: Iterable[str]) -> list[str]:
    """Names that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_no_two_files_have_one_name() -> None:
    assert twice(path.name for path in SOURCE.rglob("*.py") if path.name != "__init__.py") == []
    assert twice(["pieces.py", "names.py", "pieces.py"]) == ["pieces.py"]


def whole_package_imports(text: str) -> list[int]:
    """Lines on which a file of the package imports the package itself, and with it every room."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Import) and any(name.name == "anyshape" for name in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "anyshape" and node.level == 0)
    ]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_does_not_import_the_whole_package(path: Path) -> None:
    if path.relative_to(SOURCE).parts[0] not in USERS_ROOMS:
        assert whole_package_imports(path.read_text(encoding="utf-8")) == []


def test_the_rule_about_the_whole_package_can_fail() -> None:
    assert whole_package_imports("def f():\n    import anyshape") == [2]
    assert whole_package_imports("from anyshape import api") == [1]
    assert whole_package_imports("from anyshape.api import export") == []


def modules_imported_on_loading(text: str) -> Iterator[str]:
    """The modules of anyshape that loading a file loads: not those inside functions, nor those for type checking."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anyshape."):
            yield from (f"{node.module}.{name.name}" for name in node.names)
            yield str(node.module)


def circles(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """Sets of modules that import each other in a circle."""
    reached = {name: set(found) for name, found in imports.items()}
    is_growing = True
    while is_growing:
        is_growing = False
        for found in reached.values():
            more = {far for near in found for far in reached.get(near, ())} - found
            is_growing = is_growing or bool(more)
            found |= more
    return [
        {name, *(other for other in found if name in reached.get(other, ()))}
        for name, found in reached.items()
        if name in found
    ]


def test_no_circle_of_imports() -> None:
    names = {path: ".".join(("anyshape", *path.relative_to(SOURCE).with_suffix("").parts)) for path in files()}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known = set(names.values())
    imports = {
        name: set(modules_imported_on_loading(path.read_text(encoding="utf-8"))) & known for path, name in names.items()
    }
    assert circles(imports) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}] * 3


def decisions_on_findings(text: str, *, may_name_codes: bool = False) -> list[int]:
    """Lines that decide by the code or the text of a finding: comparisons of them, and codes that are no `code=` argument."""
    tree = ast.parse(text)
    given = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg == "code"}
    given |= {
        id(side)
        for each in ast.walk(tree)
        if isinstance(each, ast.IfExp) and id(each) in given
        for side in (each.body, each.orelse)
    }
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Compare) and _is_by_value(node) and any(map(_is_words, (node.left, *node.comparators)))
        )
        or (isinstance(node, ast.Attribute) and hasattr(str, node.attr) and _is_words(node.value))
        or (not may_name_codes and _is_code(node) and id(node) not in given)
    )


def _is_by_value(node: ast.Compare) -> bool:
    return not all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops)


def _is_words(node: ast.AST) -> bool:
    """Whether this is the code, the sentence or the explanation of something."""
    return isinstance(node, ast.Attribute) and node.attr in ("code", "what", "why")


def _is_code(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(re.fullmatch(r"AS\d{3}", node.value))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_decision_hangs_on_the_code_or_text_of_a_finding(path: Path) -> None:
    may_name_codes = "diagnose" in path.relative_to(SOURCE).parts
    assert decisions_on_findings(path.read_text(encoding="utf-8"), may_name_codes=may_name_codes) == []


@pytest.mark.parametrize(
    "text",
    [
        'finding.code == "AS112"',
        "finding.code in KNOWN",
        "each.what not in known",
        'each.why.startswith("the comparisons")',
        'codes = {"AS102", "AS103"}',
    ],
)
def test_the_rule_about_decisions_can_fail(text: str) -> None:
    assert decisions_on_findings(text) != []
    assert decisions_on_findings('Finding(code="AS112", what="it is so")') == []


MAP_HEAD = "Files, in the order in which data flows:"


def files_on_map(text: str) -> list[str]:
    """The files and sub-rooms (`name/`) that the docstring of a room's `__init__.py` lists."""
    _, _, lines = (ast.get_docstring(ast.parse(text)) or "").partition(MAP_HEAD)
    return [line.split()[0] for line in lines.splitlines() if line.strip()]


def files_in_room(room: Path) -> list[str]:
    return [
        *(path.stem for path in room.glob("*.py") if path.stem != "__init__"),
        *(f"{path.parent.name}/" for path in room.glob("*/__init__.py")),
    ]


@pytest.mark.parametrize(
    "room",
    sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE),
    ids=lambda room: room.relative_to(SOURCE).as_posix(),
)
def test_the_map_of_a_room_has_each_of_its_files_once(room: Path) -> None:
    text = (room / "__init__.py").read_text(encoding="utf-8")
    assert sorted(files_on_map(text)) == sorted(files_in_room(room)), "add a line to the docstring of __init__.py"


def test_a_map_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "__init__.py").touch()
    text = f'"""A room.\n\n{MAP_HEAD}\n\n    one   what it does\n    two/  what it does\n"""\n'
    assert sorted(files_on_map(text)) == sorted(files_in_room(tmp_path)) == ["one", "two/"]
    assert files_on_map('"""A room."""') == []


def test_the_page_about_architecture_names_files_that_exist() -> None:
    page = (SOURCE.parent.parent / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", page)
    assert len(named) > 40
    assert [name for name in named if not (SOURCE / name).exists()] == []


def test_importing_anyshape_is_light() -> None:
    code = "import sys, anyshape; print(sorted({'torch','onnxruntime','z3','sympy','numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_answers_help_without_heavy_modules() -> None:
    heavy = "{'torch','onnxruntime','z3','sympy','numpy','rich'}"
    code = f"import sys, anyshape.cli.main; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


REPLACING = re.compile(r"\b(?:patched|_config\.patch)\(")


def replacing_files(texts: Mapping[str, str]) -> set[str]:
    """Files that replace names, other than the one that defines how."""
    return {name for name, text in texts.items() if name != "intercept/patching" and REPLACING.search(text)}


def test_the_table_of_replacements_has_every_file_that_replaces_names() -> None:
    texts = {
        str(path.relative_to(SOURCE).with_suffix("")): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")
    }
    replacing = replacing_files(texts)
    table = texts["intercept/__init__"].partition("Files, in the order")[0]
    assert replacing and {name for name in replacing if name.removeprefix("intercept/") not in table} == set()


def test_a_file_that_replaces_names_is_found() -> None:
    assert replacing_files({"verify/new": "with patched([(torch, 'x', y)]):"}) == {"verify/new"}
