"""The syntax of branches whose two sides may both run: they set variables to numbers, pad a tensor, resize, slice or copy it.

if TEST:            test = TEST, with `or` and `and` of open conditions as one open condition
    a = X           if it is open:   try:      a_one = X;  a_other = Y;  a = choice(test, a_one, a_other);  joined = True
else:                                except:   joined = False
    a = Y           if not joined:   the statement as it was

And that of two expressions that become calls: `a is b` of two values that may be sizes, and
`torch.tensor([h for _ in range(n)])`, whose length may be a size.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Sequence

CHOICE, EITHER, FLAG, IS_OPEN, PADDED, RESIZED, SLICED, COPIED, IS_SAME, REPEATED = (
    f"__anyshape_{each}__"
    for each in ("choice", "either", "flag", "is_open", "padded", "resized", "sliced", "copied", "is_same", "repeated")
)
_CHANGES = {"pad": PADDED, "interpolate": RESIZED}
_CALLS = ("min", "max", "abs", "int", "len", "pow")
_METHODS = ("size", "numel", "dim")
_EXPRESSIONS = (ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Compare)
_COMPARISONS, _LOOPS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE), (ast.For, ast.While)


def has_branch(block: Sequence[ast.stmt]) -> bool:
    """Whether a branch of this block, or of one inside of it, can be joined as far as the branch itself shows."""
    for statement in block:
        branch = _as_branch(statement)
        is_block = isinstance(statement, (ast.If, ast.With, *_LOOPS))
        inside = [*statement.body, *getattr(statement, "orelse", ())] if is_block else []  # type: ignore[attr-defined]
        if has_branch(inside) or (branch is not None and _can_join(branch)):
            return True
    return False


def has_called(function: ast.FunctionDef) -> bool:
    """Whether it has an expression that becomes a call."""
    return any(_is_identity(each) or _is_repeated(each) for each in ast.walk(function))


def write_calls(function: ast.FunctionDef) -> None:
    """Write these expressions as calls."""
    _AsCalls().visit(function)


class _AsCalls(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if not _is_identity(node):
            return node
        is_same = _call(IS_SAME, node.left, node.comparators[0])
        return _at(is_same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), is_same), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not _is_repeated(node):
            return node
        made = node.args[0]
        assert isinstance(made, ast.ListComp) and isinstance(made.generators[0].iter, ast.Call)
        element = ast.Lambda(ast.arguments([], [], None, [], [], None, []), made.elt)
        call = _call(REPEATED, node.func, element, made.generators[0].iter.args[0])
        call.keywords = node.keywords
        return _at(call, node)


def _at(made: ast.expr, like: ast.expr) -> ast.expr:
    """The expression, whose new parts have the line of another one."""
    for each in ast.walk(made):
        if not hasattr(each, "lineno") and isinstance(each, ast.expr):
            ast.copy_location(each, like)
    return made


def _is_repeated(node: ast.AST) -> bool:
    """Whether it is `torch.tensor([NUMBER for _ in range(n)])`, with a number that does not depend on the position."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="tensor" | "as_tensor"),
            args=[
                ast.ListComp(
                    elt=number,
                    generators=[
                        ast.comprehension(
                            target=ast.Name(id=name),
                            iter=ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]),
                            ifs=[],
                            is_async=0,
                        )
                    ],
                )
            ],
        ):
            return _is_plain(number) and _is_plain(count) and not _loads(name, number)
    return False


def _is_identity(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return False
    sides = (node.left, *node.comparators)
    return all(_is_plain(side) for side in sides) and not any(isinstance(side, ast.Constant) for side in sides)


def join_branches(function: ast.FunctionDef) -> bool:
    """Join the branches of the function; False where it has none that can be."""
    writer = _Writer(function)
    function.body = writer.write(function.body, ())
    return writer.count > 0


class _Writer:
    """Writes the statements of one function."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.count = 0
        self._tested, self._shared = _only_tested(function), _shared_with_others(function)
        self._has_jumps = any(isinstance(node, (ast.Break, ast.Continue, ast.Try)) for node in ast.walk(function))

    def write(self, block: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, after which those of `after` may run."""
        written: list[ast.stmt] = []
        for at, statement in enumerate(block):
            later = [*block[at + 1 :], *after]
            branch = _as_branch(statement)
            if branch is not None and _can_join(branch) and not self._shared.intersection(_targets(branch)):
                written += self._join(branch, statement, later)
            else:
                written.append(self._inside(statement, later))
        return written

    def _inside(self, statement: ast.stmt, later: Sequence[ast.stmt]) -> ast.stmt:
        if isinstance(statement, _LOOPS):
            later = [statement, *later]
        if isinstance(statement, (ast.If, ast.With, *_LOOPS)):
            statement.body = self.write(statement.body, later)
        if isinstance(statement, (ast.If, *_LOOPS)):
            statement.orelse = self.write(statement.orelse, later)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BoolOp):
            names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
            if names & self._tested and _is_test(statement.value):
                statement.value = _as_test(statement.value)
        return statement

    def _join(self, branch: ast.If, own: ast.stmt, later: Sequence[ast.stmt]) -> list[ast.stmt]:
        self.count += 1
        test, joined = (f"__anyshape_{each}_{self.count}__" for each in ("test", "joined"))
        # One operand after the other where it is not joined: each is a condition of its own.
        is_compared = isinstance(branch.test, (ast.Compare, ast.Name))
        asked = _load(test) if is_compared else copy.deepcopy(branch.test)
        fallback = ast.If(asked, own.body, own.orelse) if isinstance(own, ast.If) else None
        if isinstance(own, ast.Assign) and isinstance(own.value, ast.IfExp):
            fallback = ast.Assign(own.targets, ast.IfExp(asked, own.value.body, own.value.orelse))  # type: ignore[assignment]
        assert fallback is not None
        both = [*self._both_sides(branch, test, later), _set(joined, ast.Constant(True))]
        failed = ast.ExceptHandler(_load("Exception"), None, [ast.Pass()])
        written: list[ast.stmt] = [
            _set(test, _as_test(branch.test)),
            _set(joined, ast.Constant(False)),
            ast.If(_call(IS_OPEN, _load(test)), [ast.Try(both, [failed], [], [])], []),
            ast.If(ast.UnaryOp(ast.Not(), _load(joined)), [fallback], []),
        ]
        return [_placed(each, own) for each in written]

    def _both_sides(self, branch: ast.If, test: str, later: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        """Both sides with variables of their own, what is chosen of them, and then each variable: a choice may raise."""
        sides: list[dict[str, str]] = []
        for ending, block in (("one", branch.body), ("other", branch.orelse)):
            sides.append({})
            for statement in copy.deepcopy(block):
                assert isinstance(statement, ast.Assign)
                name, changed = _target(statement), _changed_tensor(statement)
                assert name is not None
                value = statement.value if changed is None else _under(changed, test)
                if changed is not None and changed is not statement.value:
                    value = _call(COPIED, value)
                renamed = _Renamed(sides[-1]).visit(value)
                sides[-1][name] = f"__anyshape_{name}_{ending}__"
                yield _set(sides[-1][name], renamed)
        kept = {name for each in branch.body if _changed_tensor(each) is not None and (name := _target(each))}
        results: dict[str, str] = {}
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            one, other = (side.get(name, name) for side in sides)
            if name in kept:
                results[name] = one
            elif self._has_jumps or _is_read(name, later):  # a jump may lead to any statement
                results[name] = f"__anyshape_{name}_chosen__"
                choice = FLAG if name in self._tested else CHOICE
                yield _set(results[name], _call(choice, _load(test), _load(one), _load(other)))
        yield from (_set(name, _load(result)) for name, result in results.items())


def _only_tested(function: ast.FunctionDef) -> set[str]:
    """The variables that are read nowhere but as the test of branches that can be joined."""
    read = Counter(
        each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    )
    tested = Counter(
        each.test.id
        for each in ast.walk(function)
        if isinstance(each, ast.If) and isinstance(each.test, ast.Name) and _can_join(each)
    )
    return {name for name, count in tested.items() if read[name] == count}


def _shared_with_others(function: ast.FunctionDef) -> set[str]:
    """The variables that other functions may read whenever they run: globals, and those of the functions inside of this one."""
    found: set[str] = set()
    for each in ast.walk(function):
        if isinstance(each, (ast.Global, ast.Nonlocal)):
            found.update(each.names)
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)) and each is not function:
            found.update(name.id for name in ast.walk(each) if isinstance(name, ast.Name))
    return found


def _targets(branch: ast.If) -> list[str]:
    return [name for each in (*branch.body, *branch.orelse) if (name := _target(each)) is not None]


def _placed(statement: ast.stmt, like: ast.stmt) -> ast.stmt:
    """The statement, whose new parts have the line of the branch."""
    for node in ast.walk(statement):
        if not hasattr(node, "lineno") and isinstance(node, (ast.stmt, ast.expr, ast.excepthandler)):
            ast.copy_location(node, like)
    return statement


def _as_branch(statement: ast.stmt) -> ast.If | None:
    """An `if`, or `a = X if TEST else Y` as one."""
    if isinstance(statement, ast.If):
        return statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.IfExp):
        return None
    chosen = statement.value
    one, other = (ast.Assign(statement.targets, value) for value in (chosen.body, chosen.orelse))
    return ast.If(chosen.test, [ast.copy_location(one, statement)], [ast.copy_location(other, statement)])


def _can_join(branch: ast.If) -> bool:
    changed = [each for each in (*branch.body, *branch.orelse) if _changed_tensor(each) is not None]
    if not _is_test(branch.test) or (changed and branch.orelse):
        return False
    sides = (*branch.body, *branch.orelse)
    names = [_target(each) for each in sides]
    once = len(set(names[: len(branch.body)])) == len(branch.body)
    return once and None not in names and all(each in changed or _is_number(each) for each in sides)


def _target(statement: ast.stmt) -> str | None:
    """The one variable that a statement sets."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def _is_number(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and _is_plain(statement.value)


def _is_plain(expression: ast.expr) -> bool:
    """Whether evaluating it does nothing else: arithmetic of variables, attributes and numbers."""
    if isinstance(expression, ast.Subscript):
        return _is_plain(expression.value) and _is_plain(expression.slice)
    if isinstance(expression, ast.Call):
        called = expression.func
        is_known = isinstance(called, ast.Name) and called.id in _CALLS
        is_known = is_known or (isinstance(called, ast.Attribute) and called.attr in _METHODS and _is_plain(called))
        return is_known and not expression.keywords and all(map(_is_plain, expression.args))
    parts = [each for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr)]
    return isinstance(expression, _EXPRESSIONS) and all(map(_is_plain, parts))


def _is_test(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return all(map(_is_test, test.values))
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not) and _opposite(test.operand) is not None and _is_test(test.operand)
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], _COMPARISONS) and _is_plain(test)
    return isinstance(test, ast.Name)


def _opposite(test: ast.expr) -> ast.Compare | None:
    """`a != b` of `a == b`, and the other way round; None for what has no such opposite (`not a < b` is no `a >= b` of NaN)."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    other = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}.get(type(test.ops[0]))
    return None if other is None else ast.Compare(test.left, [other()], test.comparators)


def _as_test(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp):
        opposite = _opposite(test.operand)
        assert opposite is not None
        return opposite
    if not isinstance(test, ast.BoolOp):
        return test
    nothing = ast.arguments([], [], None, [], [], None, [])
    operands = [ast.Lambda(nothing, _as_test(each)) for each in test.values]
    return _call(EITHER, ast.Constant(isinstance(test.op, ast.Or)), *operands)


def _changed_tensor(statement: ast.stmt) -> ast.expr | None:
    """`pad(x, ...)`, `interpolate(x, ...)`, `x[...]` or, of `x.contiguous()`, `x`, where the statement sets x to it.

    The first three may have a call of `contiguous`, which is left out.
    """
    if not isinstance(statement, ast.Assign):
        return None
    value, name = statement.value, _target(statement)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "contiguous":
        value = value.func.value
        if isinstance(value, ast.Name):
            return value if value.id == name else None
    if isinstance(value, ast.Call) and _called(value) in _CHANGES:
        given = [*value.args[1:], *(each.value for each in value.keywords)]
        taken = value.args[0] if value.args and given else None
        is_known = _is_plain(value.func) and all(map(_is_plain, given)) and all(each.arg for each in value.keywords)
    elif isinstance(value, ast.Subscript):
        taken, is_known = value.value, all(map(_is_range, _slices(value)))
    else:
        return None
    return value if is_known and isinstance(taken, ast.Name) and taken.id == name else None


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _slices(value: ast.Subscript) -> list[ast.expr]:
    return list(value.slice.elts) if isinstance(value.slice, ast.Tuple) else [value.slice]


def _is_range(each: ast.expr) -> bool:
    is_slice = isinstance(each, ast.Slice) and each.step is None
    return is_slice and all(part is None or _is_plain(part) for part in (each.lower, each.upper))  # type: ignore[attr-defined]


def _under(changed: ast.expr, test: str) -> ast.expr:
    """The call that pads, resizes or slices under a condition; a tensor that is only copied is equal on both sides."""
    if isinstance(changed, ast.Name):
        return changed
    if isinstance(changed, ast.Call):
        return ast.Call(_load(_CHANGES[_called(changed)]), [_load(test), changed.func, *changed.args], changed.keywords)
    assert isinstance(changed, ast.Subscript)
    limits = [each for each in _slices(changed) if isinstance(each, ast.Slice)]
    ends = [[each.lower or ast.Constant(None), each.upper or ast.Constant(None)] for each in limits]
    return _call(SLICED, _load(test), changed.value, *(ast.Tuple(each, ast.Load()) for each in ends))


class _Renamed(ast.NodeTransformer):
    """Reads variables of one side under their names there."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = dict(names)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(_load(self._names.get(node.id, node.id)), node)


def _is_read(name: str, later: Sequence[ast.stmt]) -> bool:
    """Whether a variable may be read by these statements before they set it."""
    for statement in later:
        sides = [statement.body, statement.orelse] if isinstance(statement, ast.If) else []
        if sides and isinstance(statement, ast.If):
            if _loads(name, statement.test) or any(_is_read(name, side) for side in sides):
                return True
            continue
        value = statement.value if isinstance(statement, ast.Assign) else statement
        if _loads(name, value):
            return True
        if _target(statement) == name:
            return False
    return False


def _loads(name: str, node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load) for each in ast.walk(node)
    )


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _set(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_load(name), list(args), [])
