"""While a module is traced with symbols for sizes, torch computes each product and comparison of two sizes once.

For each operator torch computes the strides of results, and compares sizes to find out what broadcasts and what is contiguous:
tens of thousands of times in a trace, and nineteen times of twenty with the same two expressions as before. Here the result
of the first time is used again, in the same shape environment, until torch replaces a symbol there. Results that depend on
more than the two expressions (sums, and remainders, for which torch reads ranges) are computed each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import patched

_METHODS = ("eq", "ne", "ge", "gt", "le", "lt", "and_", "or_", "mul", "sub", "sym_max", "sym_min", "int_floordiv")
Method = Callable[[Any, Any], Any]


@contextmanager
def sizes_computed_once() -> Iterator[None]:
    """Enter around a trace with symbolic sizes."""
    from torch.fx.experimental.sym_node import SymNode

    known: dict[Any, Any] = {}
    names = [name for name in (f"_{each}" for each in _METHODS) if name in vars(SymNode)]
    with patched([(SymNode, name, _computed_once(name, vars(SymNode)[name], known)) for name in names]):
        yield


def _computed_once(name: str, own: Method, known: dict[Any, Any]) -> Method:
    """The method of torch's SymNode, which keeps its results in `known`."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    def compute(node: Any, other: Any) -> Any:
        environment = node.shape_env
        version = getattr(environment, "_replacements_version_counter", None)
        if version is None or not _is_plain(node, environment) or not _is_plain(other, environment):
            return own(node, other)
        if get_proxy_mode() is not None:  # the operation itself is recorded
            return own(node, other)
        # An entry holds its environment, so that no other one gets the same id.
        key = name, id(environment), version, node._expr, node.pytype, other._expr, other.pytype
        if key not in known:
            known[key] = own(node, other), environment
        return known[key][0]

    return compute


def _is_plain(node: Any, environment: Any) -> bool:
    """Whether a node has a value in this trace, and no part in torch's validation of guards."""
    return getattr(node, "shape_env", None) is environment and node._hint is not None and not node.fx_node
