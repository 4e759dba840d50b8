"""A dim of which the module takes one size only  ->  AS102, with the cause of it and an edit where there is one.

An axis that the declaration leaves static, and that keeps a dynamic one from varying:

the model answers at the example's size of the dim alone, or no rule is found   ->  AS153, an error
the same, a rule is found, and the axes of the dim were declared without a name  ->  AS153, a warning
the model answers at some sizes of the dim, by a rule in the contract           ->  AS153, a warning
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anyshape.diagnose import first_line, say_promise, say_sizes
from anyshape.diagnose.consent import may_stay
from anyshape.diagnose.value_findings import outputs_vary
from anyshape.domain import Ref, dims_of
from anyshape.findings import Finding, Reason, Remedy, Severity, Source
from anyshape.inputs import Declared
from anyshape.modules.raised_errors import HeldTensor, Layer
from anyshape.records.explored import Explored, LeftOut

_ANY = "-1"
_RESHAPING = ("view", "reshape", "expand", "zeros", "ones", "full", "empty", "randn", "new_zeros", "new_ones", "repeat")


def diagnose_left_out(declared: Declared, left_out: Iterable[LeftOut], explored: Explored) -> tuple[Finding, ...]:
    """One finding for each dim, with the declaration that has the axes of all of them."""
    found = list(left_out)
    inputs = dict.fromkeys(name for each in found for name in each.declaration)
    whole = {name: _joined(each.declaration.get(name, {}) for each in found) for name in inputs}
    return tuple(
        _left_out(
            replace(each, declaration=whole),
            is_error=not explored.is_explained or (each.dim in explored.pinned and not may_stay(declared, each.dim)),
        )
        for each in found
    )


def _joined(axes: Iterable[Mapping[int, str]]) -> Mapping[int, str]:
    """The words of an input's axes in all of the declarations."""
    return dict(sorted({axis: word for each in axes for axis, word in each.items()}.items()))


def refusals_of_others(declared: Declared, left_out: Iterable[LeftOut], explored: Explored) -> Explored:
    """The exploration without the dims that AS153 explains: their refusals are no fault of a line of the model."""
    explained = {each.dim for each in left_out}
    others = {name: size for name, size in explored.pinned.items() if name not in explained}
    if len(others) == len(explored.pinned):
        return explored
    fixed = explored.pinned.keys() - others
    if explored.is_explained and all(may_stay(declared, name) for name in fixed):
        rules = tuple(rule for rule in explored.rules if not fixed >= set(dims_of(rule.condition)))
        return replace(explored, pinned=others, rules=rules)
    return replace(explored, pinned=others, refused=explored.refused if others else ())


def _left_out(each: LeftOut, *, is_error: bool) -> Finding:
    axes = " and ".join(f"axis {axis} of input {path!r}" for path, axis in each.places)
    stay, them = ("stays", "it") if len(each.places) == 1 else ("stay", "them")
    words = ", ".join(f'"{name}": {_as_code(axes)}' for name, axes in each.declaration.items())
    sizes = ", ".join(map(str, each.tried))
    return Finding(
        code="AS153",
        name="axis-left-out",
        reason=Reason.AXIS_LEFT_OUT,
        about=tuple(f"{path}[{axis}]" for path, axis in each.places),
        severity=Severity.ERROR if is_error else Severity.WARNING,
        what=f"{axes} {stay} {each.size}: the model refuses other sizes of {each.dim!r} beside {them}.",
        why=(
            f"the declaration leaves {them} out. At {each.dim} = {sizes} the model raises with {them} at {each.size},\n"
            f"and answers with {them} at the same size as {each.dim}."
        ),
        fix=f"dynamic={{{words}}}",
        remedy=Remedy(input_axes=tuple((path, axis, each.dim) for path, axis in each.places)) if is_error else None,
        is_fix_untried=is_error,
        alternative=f"in compat.export: dynamic_axes={{{words}}}",
        narrows=not is_error,
    )


def _as_code(axes: Mapping[int, str]) -> str:
    return "{" + ", ".join(f'{axis}: "{word}"' for axis, word in axes.items()) + "}"


Pinned = Mapping[str, tuple[int, Mapping[str, int]]]
"""Each dim that answers at one size only: that size, and where it can be read (the name of an input -> its axis)."""


def propose_edit(source: Source | None, pinned: Pinned, dim: str) -> str:
    """The line with the dim's size replaced by an input's shape, or by -1; empty when the line shows no such literal.

    Sizes of the other pinned dims that the line shows are replaced as well: one edit frees all of them.
    """
    if source is None or not source.text:
        return ""
    tree = _parse(source.text)
    if tree is None:
        return ""
    found = {name: literal for name, (size, _) in pinned.items() if (literal := _only_literal(tree, size)) is not None}
    if dim not in found or len(set(found.values())) != len(found):
        return ""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    texts = {name: _read_from(pinned[name][1], names) for name in found}
    if list(texts.values()).count(_ANY) > 1:
        return ""
    line = source.text
    for name in sorted(found, key=lambda name: -found[name].col_offset):  # from the right: columns to the left stay
        line = _replaced(line, found[name], texts[name])
    return line


def propose_part(source: Source | None, held: str, shape: Sequence[int], pinned: Pinned) -> str:
    """The line with a part of a tensor that the module holds, in place of all of it; empty when the line shows no such tensor.

    `x + self.pos`, where `pos` has 16 rows and the input `x` a dim that answers at 16 only  ->  `x + self.pos[: x.shape[1]]`
    """
    tree = _parse(source.text) if source is not None else None
    if source is None or tree is None:
        return ""
    attribute = held.rpartition(".")[2]
    taken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == attribute and id(node) not in taken
    ]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    held_sizes = [size for size, _ in pinned.values()]
    if any(held_sizes.count(size) > 1 for size in shape):  # which of two dims an axis follows is not known
        return ""
    sizes = {size: _read_from(places, names) for size, places in pinned.values()}
    parts = [f": {sizes[size]}" if sizes.get(size, _ANY) != _ANY else ":" for size in shape]
    while parts and parts[-1] == ":":
        parts.pop()
    if len(uses) != 1 or not parts:
        return ""
    use = ast.get_source_segment(source.text, uses[0]) or ""
    return _replaced(source.text, uses[0], f"{use}[{', '.join(parts)}]")


def _only_literal(tree: ast.AST, size: int) -> ast.Constant | None:
    literals = [node for call in _reshaping_calls(tree) for node in _literals(call, size)]
    return literals[0] if len(literals) == 1 else None


def _read_from(places: Mapping[str, int], names: set[str]) -> str:
    """`x.shape[0]` for an input that the line names, else -1."""
    readable = [f"{name}.shape[{axis}]" for name, axis in places.items() if name in names]
    return readable[0] if readable else _ANY


def _parse(line: str) -> ast.AST | None:
    """The line as a tree; a line that opens a block is given one. Columns stay as they are."""
    for text in (line, f"{line} pass"):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    return None


def _reshaping_calls(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _RESHAPING]


def _literals(call: ast.Call, size: int) -> list[ast.Constant]:
    arguments = [
        item
        for argument in call.args
        for item in (argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument])
    ]
    return [
        item for item in arguments if isinstance(item, ast.Constant) and type(item.value) is int and item.value == size
    ]


def _replaced(line: str, literal: ast.expr, text: str) -> str:
    # Columns of the tree count bytes.
    raw = line.encode()
    start, end = literal.col_offset, literal.end_col_offset
    return (raw[:start] + text.encode() + raw[end:]).decode()


def diagnose_one_size(declared: Declared, explored: Explored, name: str) -> Finding:
    """Why this dim has one size wherever the module answers."""
    size, refusal = explored.pinned[name], explored.refusal_beside(name)
    if refusal.outputs is not None:
        return outputs_vary(refusal, f"{name} == {size}")
    broadcasts = any(sizes[name] == 1 != size for sizes in explored.answered)
    sizes = {pinned: (held, _places(declared, pinned)) for pinned, held in explored.pinned.items()}
    misfit = explored.misfit
    layer = explored.layers.get(name)
    held = misfit.held if misfit is not None and size in misfit.held.shape and layer is None else None
    edit = propose_edit(refusal.source, sizes, name)
    if held is not None and not held.is_factor and not edit:
        edit = propose_part(refusal.source, held.name, held.shape, sizes)
    fixed = _fixed_words(declared, name, size)
    advice = _advice(name, size, held, layer, fixed)
    is_width = held.is_factor if held is not None else layer is not None and layer.width == size
    return Finding(
        code="AS102",
        name="size-baked-in",
        reason=Reason.ANSWERS_AT_ONE_SIZE,
        about=(name,),
        what=(
            f"dim {name!r} is {say_promise(declared.domain, name)}, but the model works only for "
            f"{name} = {size}{' or 1' if broadcasts else ''}."
        ),
        where=refusal.source,
        why=f"at {say_sizes(refusal.sizes)} the model itself raises: {first_line(refusal.message)}"
        + (say_held(held) if layer is None else _say_layer(layer)),
        fix=edit or advice,
        remedy=Remedy(edits=((refusal.source, edit),), otherwise=advice)
        if edit and refusal.source is not None
        else None,
        is_fix_untried=bool(edit),
        alternative="" if is_width and not edit else f"if {name} is really fixed, promise that: {fixed}",
        sizes=refusal.sizes,
    )


def _advice(name: str, size: int, held: HeldTensor | None, layer: Layer | None, fixed: str) -> str:
    if held is not None and held.is_factor:
        return f"{name} is an axis of {held.name!r}, which the model holds: declare a number, {fixed}"
    if held is not None:
        return follow_dim(held, name)
    if layer is None:
        return f"let all that the line above uses follow {name}: something in it fits {name} = {size} only."
    if layer.width == size:
        return f"{name} is the width of {layer.name!r}, which its weights fix: declare a number, {fixed}"
    return (
        f"let {layer.name!r} take {layer.width} at every {name}: pool to a fixed size before it "
        f"(nn.AdaptiveAvgPool1d), or take the mean over the axis."
    )


def _say_layer(layer: Layer) -> str:
    made = f" ({layer.source.file}:{layer.source.line})" if layer.source is not None else ""
    return f"\n{layer.name!r} is {layer.kind} with {layer.attribute}={layer.width}{made}: it takes no other width."


def say_held(held: HeldTensor | None) -> str:
    """A line about a tensor that the module holds; empty without one."""
    return (
        "" if held is None else f"\n{held.name!r}, which the model holds with shape {list(held.shape)}, is used there."
    )


def follow_dim(held: HeldTensor, name: str) -> str:
    """How a tensor of one size can follow a dim."""
    return f"let {held.name!r} follow {name}: make it of the input's size, or hold a longer one and take a part of it."


def _places(declared: Declared, name: str) -> dict[str, int]:
    return {
        leaf.path: axis
        for leaf in declared.tensor_leaves
        for axis, expression in enumerate(leaf.axes)
        if expression == Ref(name)
    }


def _fixed_words(declared: Declared, name: str, size: int) -> str:
    for leaf in declared.tensor_leaves:
        if any(name in dims_of(axis) for axis in leaf.axes):
            words = " ".join(str(size) if axis == Ref(name) else str(axis).replace(" ", "") for axis in leaf.axes)
            return f"{leaf.path}: {words}"
    return f"{name} == {size}"
