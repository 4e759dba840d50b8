"""A dim at which the module answers at one size only  ->  AS102, with the cause of it and an edit where there is one.

the line shows the number                     x.view(3, 10)            the edit x.view(x.shape[0], 10)
a tensor of that size is used there           x + self.pos             the edit self.pos[: x.shape[1]]
a layer or a factor has that width            self.head(x)             the layer, its in_features and the line that makes it
"""

from __future__ import annotations

from anyshape.diagnose.edits import propose_edit, propose_part
from anyshape.diagnose.varying_outputs import outputs_vary
from anyshape.diagnose.wording import first_line, say_promise, say_sizes
from anyshape.domain import Ref, dims_of
from anyshape.findings import Finding, Reason, Remedy
from anyshape.inputs import Declared
from anyshape.modules.raised_errors import HeldTensor, Layer
from anyshape.records.explored import Explored


def diagnose_one_size(declared: Declared, explored: Explored, name: str) -> Finding:
    """Why this dim has one size wherever the module answers."""
    size, refused = explored.pinned[name], explored.refusal_beside(name)
    if refused.outputs is not None:
        return outputs_vary(refused, f"{name} == {size}")
    broadcasts = any(sizes[name] == 1 != size for sizes in explored.answered)
    sizes = {pinned: (held, _places(declared, pinned)) for pinned, held in explored.pinned.items()}
    misfit = explored.misfit
    layer = explored.layers.get(name)
    held = misfit.held if misfit is not None and size in misfit.held.shape and layer is None else None
    edit = propose_edit(refused.source, sizes, name)
    if held is not None and not held.is_factor and not edit:
        edit = propose_part(refused.source, held.name, held.shape, sizes)
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
        where=refused.source,
        why=f"at {say_sizes(refused.sizes)} the model itself raises: {first_line(refused.message)}"
        + (say_held(held) if layer is None else _say_layer(layer)),
        fix=edit or advice,
        remedy=Remedy(edits=((refused.source, edit),), otherwise=advice)
        if edit and refused.source is not None
        else None,
        is_fix_untried=bool(edit),
        alternative="" if is_width and not edit else f"if {name} is really fixed, promise that: {fixed}",
        sizes=refused.sizes,
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
