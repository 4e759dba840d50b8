"""Findings about `values=`, the declared values of inputs."""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.findings import Finding
from anyshape.inputs.near import nearest


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
