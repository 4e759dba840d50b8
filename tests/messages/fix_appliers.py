"""Apply the Fix of a finding to the script that made the finding, as a user would who does what the text says.

Each function takes the script and the finding, and returns the script after the fix, or None where its kind of fix is not
there. The kinds: rules and options of a call, an option to leave out, another word, an edit of a line, an expression in the
place of another one, a line before the call, a command, a diff.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anyshape

_HEAD = re.compile(r"^(AS\d{3}) [a-z-]+: (.*)$")
_FIX = re.compile(r"^  Fix(?P<untried> \(not tried\))?: +(?P<first>.*)$")
_WHERE = re.compile(r"^  Where: +\S+?:(?P<line>\d+)[^:]*:   (?P<text>.*)$", re.MULTILINE)
_CALLS = ("anyshape.export", "compat.export", "anyshape.check", "anyshape.load")
_TAKING_OPTIONS = (anyshape.export, anyshape.load)
_OPTIONS = {name for call in _TAKING_OPTIONS for name in inspect.signature(call).parameters} - {
    "model",
    "inputs",
    "path",
}

_MODEL_FILE = """
import torch
def model(): return torch.nn.ReLU()
def inputs(batch=3): return torch.randn(batch, 10)
"""  # of the model that the files of all pages with such a command hold


@dataclass(frozen=True)
class Shown:
    """A finding as its text shows it."""

    code: str
    what: str
    text: str
    fix: str
    is_untried: bool

    @property
    def quoted(self) -> list[str]:
        """The words in quotes of the first line."""
        return re.findall(r"'([^']*)'", self.what)


def read_fix(text: str) -> Shown | None:
    """The first finding of a text; None where it has no Fix."""
    lines = text.splitlines()
    end = next((number for number, line in enumerate(lines) if not line and number), len(lines))
    head = _HEAD.match(lines[0])
    start = next((number for number, line in enumerate(lines[:end]) if _FIX.match(line)), None)
    if head is None or start is None:
        return None
    match = _FIX.match(lines[start])
    assert match is not None
    rest = []
    for line in lines[start + 1 : end]:
        if not line.startswith(" " * 10):
            break
        rest.append(line[10:])
    return Shown(head[1], head[2], text, "\n".join([match["first"], *rest]), match["untried"] is not None)


def edit_line(script: str, shown: Shown) -> str | None:
    """The line of the finding -> the line that the Fix shows."""
    where = _WHERE.search(shown.text)
    if where is None or difflib.SequenceMatcher(None, where["text"], shown.fix).ratio() < 0.7:
        return None
    lines = script.splitlines()
    number = int(where["line"]) - 1
    assert lines[number].strip() == where["text"], "the finding shows another line than the script has"
    lines[number] = lines[number].replace(where["text"], shown.fix)
    return "\n".join(lines)


def set_options(script: str, shown: Shown) -> str | None:
    """`where=["n <= 16"]`, `opset=17`: into the call; rules and tables are added to those that it has."""
    found = dict(_keywords(shown.fix))
    if not found:
        return None
    tree = ast.parse(script)
    call = _last_call(tree)
    given = {keyword.arg: keyword for keyword in call.keywords}
    for name, value in found.items():
        if name in given:
            given[name].value = _merged(given[name].value, value, adds_to_lists=name == "where")
        else:
            call.keywords.append(ast.keyword(name, ast.parse(repr(value), mode="eval").body))
    return ast.unparse(ast.fix_missing_locations(tree))


def set_table(script: str, shown: Shown) -> str | None:
    """`{'y': {0: '2*batch'}}`: into `dynamic`."""
    value = _literal(shown.fix)
    if not isinstance(value, dict):
        return None
    tree = ast.parse(script)
    (dynamic,) = [keyword for keyword in _last_call(tree).keywords if keyword.arg == "dynamic"]
    dynamic.value = _merged(dynamic.value, value)
    return ast.unparse(ast.fix_missing_locations(tree))


def leave_out(script: str, shown: Shown) -> str | None:
    """`leave strategy out`: the keyword is taken from the call."""
    match = re.search(r"leave (?:the )?((?!it)\w+) out", shown.fix)
    if match is None:
        return None
    tree = ast.parse(script)
    call = _last_call(tree)
    left = [keyword for keyword in call.keywords if keyword.arg != match[1]]
    assert len(left) == len(call.keywords) - 1, f"the call has no {match[1]}"
    call.keywords = left
    return ast.unparse(tree)


def other_word(script: str, shown: Shown) -> str | None:
    """`did you mean 'batch'?`, `rename 'a' to 'b'`, `write 10`: one word of the script -> another one."""
    pairs = [
        (shown.quoted[-1:], re.search(r"^did you mean '?([^'?]+)'?\?", shown.fix)),
        (re.findall(r"^rename '(\w+)'", shown.fix), re.search(r"to '(\w+)'", shown.fix)),
        (re.findall(r"declared as (\d+)", shown.what), re.search(r"^write (\d+)", shown.fix)),
        (re.findall(r"is ([\d.]+),", shown.what), re.search(r"give it as (\d+\.?\d*)", shown.fix)),
    ]
    for old, new in pairs:
        if old and new:
            changed = re.sub(rf"(?<![\w.]){re.escape(old[0])}(?![\w.])", new[1], script)
            assert changed != script, f"the script has no {old[0]!r}"
            return changed
    return None


def other_expression(script: str, shown: Shown) -> str | None:
    """`anyshape.dim(1, 64)`, `Net()`, `input.to(torch.float32)`: in the place of the expression that it corrects."""
    fix = _expression(shown.fix)
    if not isinstance(fix, ast.Call):
        return None
    tree = ast.parse(script)
    called = ast.unparse(fix.func)
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.expr) and (new := _corrected(child, called, fix, shown)) is not None:
                    value[place] = new if place is not None else value[place]
                    if place is None:
                        setattr(node, name, new)
                    return ast.unparse(ast.fix_missing_locations(tree))
    return None


def _corrected(old: ast.expr, called: str, fix: ast.Call, shown: Shown) -> ast.expr | None:
    text = ast.unparse(old)
    if isinstance(old, ast.Call) and ast.unparse(old.func) == called and text != ast.unparse(fix):
        return fix
    if isinstance(old, ast.Name) and text == called and f"class {called}" in shown.what:
        return fix
    if isinstance(fix.func, ast.Attribute) and fix.func.attr == "to" and text.startswith("torch.randn("):
        return ast.Call(ast.Attribute(old, "to"), fix.args, [])
    return None


def line_before(script: str, shown: Shown) -> str | None:
    """`model.eval() before the export`, `torch.library.register_fake(...)`: a statement before the call."""
    match = re.match(r"(model\.eval\(\)) before|(torch\.library\..*)", shown.fix)
    if match is None:
        return None
    return _inserted(script, match[1] or match[2])


def run_command(script: str, shown: Shown) -> str | None:
    """`mkdir -p out`, `anyshape inspect m.onnx      shows ...`: the script runs it before its call, or after its end."""
    command = re.split(r" {3,}", shown.fix)[0]
    if command.startswith("mkdir "):
        return f"import subprocess\nsubprocess.run({command.split()!r}, check=True)\n{script}"
    if re.match(r"anyshape (check|inspect) ", command):
        tree = ast.parse(script)
        is_export = ast.unparse(_last_call(tree).func).endswith(".export")  # it writes the file that the command reads
        del tree.body[_place_of_call(tree) + is_export :]
        return "\n".join(
            [
                ast.unparse(tree),
                "from pathlib import Path",
                "from anyshape.cli.main import app",
                f"Path('model.py').write_text({_MODEL_FILE!r})",
                f"print('exit status', app({command.split()[1:]!r}, standalone_mode=False) or 0)",
            ]
        )
    if command.startswith("anyshape export writes "):
        check = _last_call(ast.parse(script))
        model, inputs = map(ast.unparse, check.args[1:3])
        return _inserted(script, f"anyshape.export({model}, {inputs}, {ast.unparse(check.args[0])})")
    return None


def apply_diff(script: str, shown: Shown) -> str | None:
    """Fix: apply result.repair.diff ...: and a diff of one hunk"""
    if "\n+++ b/" not in shown.fix:
        return None
    hunk = re.split(r"^@@.*$\n", textwrap.dedent(shown.fix.partition("\n")[2]), flags=re.MULTILINE)[1].splitlines()
    before = "\n".join(line[1:] for line in hunk if not line.startswith("+"))
    after = "\n".join(line[1:] for line in hunk if not line.startswith("-"))
    assert script.count(before) == 1, "the diff is not of this script"
    return script.replace(before, after)


APPLIERS: tuple[Callable[[str, Shown], str | None], ...] = (
    apply_diff,
    edit_line,
    set_options,
    set_table,
    leave_out,
    other_word,
    other_expression,
    line_before,
    run_command,
)


def apply_fix(script: str, shown: Shown) -> str | None:
    """The script after the fix; None where the fix is none that could be applied without thinking."""
    found = (applied for applier in APPLIERS if (applied := applier(script, shown)) is not None)
    return next(found, None)


def _keywords(text: str) -> Iterator[tuple[str, Any]]:
    """`name=value` in a text, for the options of our calls, as far as the value is a literal."""
    for match in re.finditer(r"\b([a-z_]+)=", text):
        value = _literal(text[match.end() :])
        if match[1] in _OPTIONS and value is not None and "Ellipsis" not in repr(value):
            yield match[1], value
            return


def _literal(text: str) -> Any:
    """The longest beginning of a text that is a literal of Python; None where there is none."""
    for end in range(len(text), 0, -1):
        if text[:end].rstrip().endswith(","):  # would make a tuple
            continue
        try:
            return ast.literal_eval(text[:end])
        except (SyntaxError, ValueError, TypeError):
            continue
    return None


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _merged(old: ast.expr, new: Any, *, adds_to_lists: bool = False) -> ast.expr:
    """Rules after rules, tables into tables, everything else in the place of what was there."""
    try:
        before = ast.literal_eval(old)
    except ValueError:
        before = None
    if adds_to_lists and isinstance(before, list) and isinstance(new, list):
        new = [*before, *new]
    if isinstance(before, dict) and isinstance(new, dict):
        new = {**before, **new}
    return ast.parse(repr(new), mode="eval").body


def _inserted(script: str, line: str) -> str:
    """The script with a line before the statement that has its last call of anyshape."""
    tree = ast.parse(script)
    place = _place_of_call(tree)
    tree.body[place:place] = ast.parse(line).body
    return ast.unparse(tree)


def _place_of_call(tree: ast.Module) -> int:
    return max(index for index, each in enumerate(tree.body) if any(_is_call(node) for node in ast.walk(each)))


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLS


def _last_call(tree: ast.Module) -> ast.Call:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_call(node)]
    return max(calls, key=lambda call: call.lineno)
