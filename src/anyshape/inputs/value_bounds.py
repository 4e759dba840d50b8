"""Which values an input may have, as the user declares it: `{"ids": "0 <= ids < 1000", "lengths": "1 <= lengths <= seq"}`.

An input whose name is no Python name (`cache.0`) is called `value` in its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyshape.domain import Domain, Expr, dims_of
from anyshape.domain.bounded_values import GIVEN, ValueBounds, name_in_bounds, parse_bounds
from anyshape.findings import DeclarationError, Finding, check_choice
from anyshape.findings.choices import nearest
from anyshape.inputs.declared import Declared, InputLeaf, Sizes
from anyshape.inputs.making import BoundedMaker


def unknown_input_of_values(name: str, inputs: Sequence[str]) -> Finding:
    near = nearest(name, inputs)
    return Finding(
        code="AS311",
        name="value-bounds",
        what=f"values= has bounds for {name!r}, which is no tensor among the inputs.",
        why=f"the tensors are {', '.join(inputs)}." if inputs else "the module takes no tensors.",
        fix=f"did you mean {near!r}?" if near else "use one of these names.",
    )


def no_bounds(name: str, text: str, called: str) -> Finding:
    return Finding(
        code="AS311",
        name="value-bounds",
        what=f"values= has {text!r} for {name!r}, which does not bound its values.",
        why=f"a bound compares {called} with a number or with an expression of the dims: < <= == >= >, joined by and.",
        fix=f'values={{"{name}": "0 <= {called} <= 1"}}',
    )


def unknown_dim_in_bounds(name: str, dim: str, dims: Sequence[str]) -> Finding:
    near = nearest(dim, dims)
    return Finding(
        code="AS311",
        name="value-bounds",
        what=f"the values of {name!r} are bounded by {dim!r}, which is no dim.",
        why=f"the dims are {', '.join(dims)}." if dims else "the declaration has no dims.",
        fix=f"did you mean {near!r}?" if near else "use one of these, or a number.",
    )


def example_outside(name: str, text: str, seen: tuple[float, float]) -> Finding:
    return Finding(
        code="AS312",
        name="example-values",
        what=f"the values of {name!r} are declared as {text}, but the example has others.",
        why=f"its values lie between {seen[0]:.6g} and {seen[1]:.6g}.",
        fix="widen the bounds, or give an example inside of them.",
    )


def declare_values(declared: Declared, values: Mapping[str, str] | str | None) -> Declared:
    """The declaration with the bounds of its inputs' values. Raises DeclarationError on bounds that say nothing."""
    if values is None:
        return declared
    if isinstance(values, str):
        check_choice("values", values, (GIVEN,))
        return replace(declared, value_texts={leaf.name: GIVEN for leaf in declared.tensor_leaves})
    found = {
        leaf.name: (leaf, _parse(leaf, text, declared.domain))
        for leaf, text in ((_leaf_called(name, declared), text) for name, text in values.items())
    }
    for leaf, bounds in found.values():
        _check_example(leaf, bounds, declared)

    def ranges(sizes: Sizes) -> dict[str, tuple[float, float]]:
        return {name: bounds.range_at(sizes, leaf.dtype) for name, (leaf, bounds) in found.items()}

    texts = {name: bounds.text for name, (_, bounds) in found.items()}
    make = declared.make if declared.source == "function" else BoundedMaker(declared, ranges)
    return replace(declared, make=make, value_texts=texts, value_ranges=ranges)


def promised_values(declared: Declared, promised: Mapping[str, str]) -> Declared:
    """The declaration with the values that a file's contract has, where the user declares none."""
    names = {leaf.name for leaf in declared.tensor_leaves}
    known = {name: text for name, text in promised.items() if name in names}
    if declared.value_texts or not known:
        return declared
    return declare_values(declared, GIVEN if GIVEN in known.values() else known)


def _leaf_called(name: str, declared: Declared) -> InputLeaf:
    for leaf in declared.tensor_leaves:
        if name in (leaf.name, leaf.path):
            return leaf
    raise DeclarationError(unknown_input_of_values(name, [leaf.name for leaf in declared.tensor_leaves]))


def _parse(leaf: InputLeaf, text: Any, domain: Domain) -> ValueBounds:
    name = name_in_bounds(leaf.name)
    try:
        parsed = parse_bounds(str(text), (name, leaf.path))
    except (SyntaxError, ValueError, DeclarationError) as error:
        raise DeclarationError(no_bounds(leaf.name, str(text), name)) from error
    for bound in parsed.bounds:
        unknown = [
            dim for dim in (dims_of(bound.limit) if isinstance(bound.limit, Expr) else ()) if dim not in domain.names
        ]
        if unknown:
            raise DeclarationError(unknown_dim_in_bounds(leaf.name, unknown[0], domain.names))
    return parsed


def _check_example(leaf: InputLeaf, bounds: ValueBounds, declared: Declared) -> None:
    values = dict(zip(declared.open_leaves, declared.open_values(declared.example), strict=True))
    low, high = bounds.range_at(declared.example_sizes, leaf.dtype)
    tensor = values[leaf]
    if tensor.numel() and not tensor.is_complex() and (float(tensor.min()) < low or float(tensor.max()) > high):
        raise DeclarationError(example_outside(leaf.name, bounds.text, (float(tensor.min()), float(tensor.max()))))
