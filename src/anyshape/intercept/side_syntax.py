"""The syntax of branches in loops whose sides only set variables, write elements or append: both run, and a value selects.

if TEST:            test = TEST, with `and`, `or` and `not` of tensors as tensors
    h = X           if it is a tensor:   h_one = X;  h_other = Y;  h = selected(test, h_one, h_other)
else:               else:                the statement as it was
    h = Y

A side with any other statement (`return`, `break`, `raise`, a call by itself) is left as it was. So are branches outside of
loops, where only the side that is needed should run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

SELECTED, IS_TENSOR, EVERY, ANY, NOT, WRITTEN = (
    f"__anyshape_{each}__" for each in ("selected", "is_tensor", "every", "any_of", "not_of", "written")
)
_LOOPS = (ast.For, ast.While)
Names = dict[str, str]


def select_sides(function: ast.FunctionDef) -> ast.FunctionDef | None:
    """A copy of the function that selects by tensors what its branches set; None where it has no such branch."""
    copied = copy.deepcopy(function)
    writer = _Writer()
    copied.body = writer.write(copied.body, in_loop=False)
    return ast.fix_missing_locations(copied) if writer.count else None


class _Writer:
    def __init__(self) -> None:
        self.count = 0

    def write(self, block: Sequence[ast.stmt], *, in_loop: bool, is_body: bool = False) -> list[ast.stmt]:
        block = _without_continue(block) if is_body else block
        return [each for statement in block for each in self._written(statement, in_loop)]

    def _written(self, statement: ast.stmt, in_loop: bool) -> list[ast.stmt]:
        branch = _as_branch(statement) if in_loop else None
        if branch is not None and _can_select(branch):
            test = self._new("test")
            both = self._branch(branch, test, {})
            own = ast.If(_load(test), [copy.deepcopy(each) for each in branch.body], copy.deepcopy(branch.orelse))
            chosen = ast.If(_call(IS_TENSOR, _load(test)), both, [own])
            return [_placed(each, statement) for each in (_set(test, _as_test(branch.test)), chosen)]
        if isinstance(statement, (ast.If, ast.With, *_LOOPS)):
            in_loop = in_loop or isinstance(statement, _LOOPS)
            statement.body = self.write(statement.body, in_loop=in_loop, is_body=isinstance(statement, _LOOPS))
        if isinstance(statement, (ast.If, *_LOOPS)):
            statement.orelse = self.write(statement.orelse, in_loop=in_loop)
        return [statement]

    def _branch(self, branch: ast.If, test: str, names: Names) -> list[ast.stmt]:
        """Both sides under names of their own, then each variable, element and item as it is selected."""
        written: list[ast.stmt] = []
        sides = []
        for block in (branch.body, branch.orelse):
            own = dict(names)
            changes: dict[str, tuple[ast.expr, str]] = {}
            for statement in block:
                written += self._effect(statement, own, changes)
            sides.append((own, changes))
        (one, one_changes), (other, other_changes) = sides
        for name in dict.fromkeys([*one, *other]):
            if one.get(name) != other.get(name):
                set_to = self._new(name)
                # Read late: a side may leave a variable unset that only the other one needs.
                values = (_late(_load(side.get(name, name))) for side in (one, other))
                written.append(_set(set_to, _call(SELECTED, _load(test), *values)))
                names[name] = set_to
        for key in dict.fromkeys([*one_changes, *other_changes]):
            place = (one_changes.get(key) or other_changes[key])[0]
            values = (_load(each[key][1]) if key in each else _reading(place) for each in (one_changes, other_changes))
            written.append(_change(place, _call(SELECTED, _load(test), *map(_late, values))))
        added = set(map(_added_to, (*branch.body, *branch.orelse)))
        for name, chosen in names.items():
            value = _call(WRITTEN, _load(name), _load(chosen)) if name in added else _load(chosen)
            written.append(_set(name, value))
        return written

    def _effect(self, statement: ast.stmt, names: Names, changes: dict[str, tuple[ast.expr, str]]) -> list[ast.stmt]:
        if isinstance(statement, ast.Pass):
            return []
        place, value = _effect_of(statement)
        assert place is not None and value is not None
        renamed = _Renamed(names).visit(copy.deepcopy(value))
        into = self._new("value")
        if isinstance(place, ast.Name):
            names[place.id] = into
        else:
            changes[ast.dump(place)] = (place, into)
        return [_set(into, renamed)]

    def _new(self, name: str) -> str:
        self.count += 1
        return f"__anyshape_{name}_{self.count}__"


def _as_branch(statement: ast.stmt) -> ast.If | None:
    """An `if`, or `a = X if TEST else Y` as one."""
    if isinstance(statement, ast.If):
        return statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.IfExp):
        return None
    chosen = statement.value
    one, other = (ast.Assign(statement.targets, value) for value in (chosen.body, chosen.orelse))
    return ast.If(chosen.test, [ast.copy_location(one, statement)], [ast.copy_location(other, statement)])


def _can_select(branch: ast.If) -> bool:
    sides = (branch.body, branch.orelse)
    effects = [[_effect_of(each) for each in side if not isinstance(each, ast.Pass)] for side in sides]
    if any(value is None or _has_effects(value) for side in effects for _, value in side):
        return False
    added = {_added_to(each) for side in sides for each in side} - {None}
    if any(isinstance(each, ast.Assign) and _sets(each) in added for side in sides for each in side):
        return False
    appended = [[ast.dump(place) for place, _ in side if isinstance(place, ast.Call)] for side in effects]
    if appended[0] != appended[1] or len(set(appended[0])) != len(appended[0]):
        return False
    places = [place for side in effects for place, _ in side if place is not None]
    is_set = {place.id for place in places if isinstance(place, ast.Name)}
    in_places = {name for place in places if not isinstance(place, ast.Name) for name in _names_in(place)}
    return not is_set & in_places and all(map(_writes_last, effects))


def _effect_of(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """What a statement changes (a variable, elements, or a list by `append`), and to what; None for any other statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (target, statement.value) if isinstance(target, (ast.Name, ast.Subscript)) else (None, None)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        target = statement.target
        return target, ast.copy_location(ast.BinOp(_load(target.id), statement.op, statement.value), statement)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        is_append = isinstance(call.func, ast.Attribute) and call.func.attr == "append" and len(call.args) == 1
        if is_append and isinstance(call.func.value, ast.Name) and not call.keywords:  # type: ignore[attr-defined]
            return ast.Call(call.func, [], []), call.args[0]
    return None, None


def _added_to(statement: ast.stmt) -> str | None:
    """The variable of `x += y`, which writes into the tensor that it is."""
    is_added = isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
    return statement.target.id if is_added else None  # type: ignore[attr-defined]


def _sets(statement: ast.Assign) -> str | None:
    return statement.targets[0].id if isinstance(statement.targets[0], ast.Name) else None


def _without_continue(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop, with `if TEST: continue` as `if TEST: pass`, and what comes after it as the other side."""
    for at, statement in enumerate(block):
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Continue) and not statement.orelse:
            rest = _without_continue(block[at + 1 :])
            body = statement.body[:-1] or [ast.copy_location(ast.Pass(), statement)]
            changed = ast.copy_location(ast.If(statement.test, body, rest), statement)
            return [*block[:at], changed] if rest and _can_select(changed) else list(block)
    return list(block)


def _late(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _has_effects(value: ast.expr) -> bool:
    """Whether evaluating an expression changes something, by its look: `x.add_(1)`, `items.pop()`, `(n := 3)`."""
    for each in ast.walk(value):
        if isinstance(each, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        name = each.func.attr if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) else ""
        if name in ("append", "pop", "update", "extend", "insert") or (name.endswith("_") and not name.endswith("__")):
            return True
    return False


def _writes_last(effects: Sequence[tuple[ast.expr | None, ast.expr | None]]) -> bool:
    """Whether no later statement of a side reads what an earlier one wrote into, each place is written once, and no two
    statements write into one tensor."""
    written: set[str] = set()
    for place, value in effects:
        assert value is not None
        if _names_in(value) & written:
            return False
        if isinstance(place, (ast.Subscript, ast.Call)):
            base: Any = place.value if isinstance(place, ast.Subscript) else place.func.value  # type: ignore[attr-defined]
            if _names_in(place) & written or not isinstance(base, ast.Name):
                return False
            written.add(base.id)
    return True


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _reading(place: ast.expr) -> ast.expr:
    """The element that a side leaves as it is; both sides append, so that there is none of a list."""
    assert isinstance(place, ast.Subscript)
    return ast.Subscript(copy.deepcopy(place.value), copy.deepcopy(place.slice), ast.Load())


def _change(place: ast.expr, value: ast.expr) -> ast.stmt:
    if isinstance(place, ast.Call):
        return ast.Expr(ast.Call(copy.deepcopy(place.func), [value], []))
    return ast.Assign([copy.deepcopy(place)], value)


def _as_test(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.BoolOp):
        nothing = ast.arguments([], [], None, [], [], None, [])
        operands = [ast.Lambda(nothing, _as_test(each)) for each in test.values]
        return _call(EVERY if isinstance(test.op, ast.And) else ANY, *operands)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _call(NOT, _as_test(test.operand))
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and _is_exact(test.comparators[0]):
        return ast.copy_location(ast.Compare(_read_of(test.left, "float"), test.ops, test.comparators), test)
    inner = _read_of(test, "bool")
    return test if inner is test else _as_test(inner)


def _read_of(value: ast.expr, function: str) -> ast.expr:
    """The tensor that `x.item()`, or a function of that name, reads; any other expression as it is."""
    if not isinstance(value, ast.Call) or value.keywords:
        return value
    if isinstance(value.func, ast.Attribute) and value.func.attr == "item" and not value.args:
        return value.func.value
    is_named = isinstance(value.func, ast.Name) and value.func.id == function and len(value.args) == 1
    return value.args[0] if is_named else value


def _is_exact(value: ast.expr) -> bool:
    """Whether it is a number that every float dtype has: a tensor is compared with it as Python compares its value."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return _is_exact(value.operand)
    number = value.value if isinstance(value, ast.Constant) else None
    return type(number) in (int, float) and abs(number) <= 16 and float(number * 8).is_integer()  # type: ignore[arg-type,operator]


class _Renamed(ast.NodeTransformer):
    """Reads variables of one side under their names there."""

    def __init__(self, names: Names) -> None:
        self._names = dict(names)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


def _placed(statement: ast.stmt, like: ast.stmt) -> ast.stmt:
    for node in ast.walk(statement):
        if not hasattr(node, "lineno") and isinstance(node, (ast.stmt, ast.expr)):
            ast.copy_location(node, like)
    return statement


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _set(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_load(name), list(args), [])
