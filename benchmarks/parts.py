"""Count the parts of the package, so that a change can be compared with what was there before.

python benchmarks/parts.py [FOLDER]     FOLDER: src/anyshape of any checkout; this one's by default

Statements leave docstrings out, and comments and blank lines do not count. A function counts wherever it is defined.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).resolve().parents[1] / "src" / "anyshape"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LONG = 300


def count_parts(folder: Path) -> dict[str, int]:
    """How many there are of each kind of part in the Python files of a folder."""
    files = sorted(folder.rglob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    functions = [node for node in nodes if isinstance(node, _FUNCTIONS)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name)) + Counter(
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    )
    private = [each for each in functions if each.name.startswith("_") and not each.name.endswith("__")]
    return {
        "top folders": sum(each.is_dir() and any(each.glob("*.py")) for each in folder.iterdir()),
        "files": len(files),
        f"files over {_LONG} lines": sum(text.count("\n") > _LONG for text in texts),
        "lines": sum(text.count("\n") for text in texts),
        "statements": sum(map(_statements, nodes)),
        "functions": len(functions),
        "private functions": len(private),
        "private functions named once": sum(uses[each.name] == 1 for each in private),
        "classes": len(classes),
        "dataclasses": sum(_is_dataclass(each) for each in classes),
    }


def _statements(node: ast.AST) -> int:
    """1 for a statement that is no docstring, else 0."""
    if not isinstance(node, ast.stmt):
        return 0
    return 0 if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else 1


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in name for name in _decorators(node))


def _decorators(node: ast.ClassDef) -> Iterator[str]:
    return (ast.unparse(each) for each in node.decorator_list)


if __name__ == "__main__":
    for kind, number in count_parts(Path((*sys.argv[1:], _HERE)[0])).items():
        print(f"{number:>8,}  {kind}")
