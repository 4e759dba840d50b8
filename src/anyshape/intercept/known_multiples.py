"""While a module is traced, torch knows which sizes are multiples: under `h % 32 == 0` the symbol of `h` is 32 times another.

torch forgets such a rule: of a picture behind five strides of 2 it keeps `(1 + (1 + (1 + (3 + h)//4)//2)//2)//2`, of which each
condition and each proof is made. As a multiple the same is one symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from anyshape.intercept.patching import patched

_parts: WeakKeyDictionary[Any, dict[str, tuple[str, int]]] = WeakKeyDictionary()
"""For each shape environment: the names of symbols that were replaced, with the name of the other symbol and the multiple."""


def replace_by_multiple(size: Any, multiple: int) -> None:
    """Replace the symbol of a size by a multiple of a new one, in the shape environment of the trace that runs."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    node = getattr(size, "node", None)
    if node is None or not node._expr.is_Symbol or node._expr in node.shape_env.replacements:
        return
    symbol, environment = node._expr, node.shape_env
    source = ConstantSource(f"__part_of_{symbol.name}")
    part = environment.create_symbol(node.hint // multiple, source, DimDynamic.DYNAMIC, None)
    environment._set_replacement(symbol, multiple * part, "a declared multiple")
    if environment.replacements.get(symbol) == multiple * part:
        _parts.setdefault(environment, {})[symbol.name] = part.name, multiple
        # A step of the program from which torch makes expressions of the new symbol; nobody takes its result here.
        _ = size // multiple


def part_of(size: Any) -> tuple[str, int] | None:
    """The name of the symbol of which the symbol of this open size is a multiple, and that multiple; None without one."""
    node = size.node
    return _parts.get(node.shape_env, {}).get(getattr(node._expr, "name", ""))


@contextmanager
def multiples_known() -> Iterator[None]:
    """Enter around torch.export: it finds the new symbols when it writes its guards."""
    from torch.fx.experimental.symbolic_shapes import EqualityConstraint, ShapeEnv

    own = ShapeEnv.produce_guards_verbose

    def produce_guards(environment: Any, *args: Any, equalities_inputs: Any = None, **kwargs: Any) -> Any:
        added = list(_symbols_in(environment))
        if added:
            if equalities_inputs is None:
                equalities_inputs = EqualityConstraint(
                    warn_only=False, source_pairs=[], derived_equalities=[], phantom_symbols=[], relaxed_sources=set()
                )
            equalities_inputs.phantom_symbols.extend(added)
        return own(environment, *args, equalities_inputs=equalities_inputs, **kwargs)

    with patched([(ShapeEnv, "produce_guards_verbose", produce_guards)]):
        yield


def _symbols_in(environment: Any) -> Iterable[Any]:
    names = {name for name, _ in _parts.get(environment, {}).values()}
    return [symbol for symbol in environment.var_to_sources if symbol.name in names]
