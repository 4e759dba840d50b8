"""Give the values, weights and nodes of a file names and source lines that a person can read.

Names that a person can read: inputs and outputs by the user's paths, weights by the module's, dims by the domain's.

torch names a size `s77`, which means nothing to a reader of the file. A size that is no expression of the dims is
left without a name, never with torch's.

The user's line on every node of the file, and nothing of the machine that made it.

torch.onnx writes whole stack traces with absolute paths into each node: twice the file, and another file on another
machine. We keep `anyshape.source`, a file and a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from anyshape.domain import Compare, Condition, Domain, Expr, Number, format_expr, is_readable, parse_expr, simplify
from anyshape.domain.solver_questions import simplify_within
from anyshape.findings import DeclarationError
from anyshape.modules.user_code import source_of_stack_text
from anyshape.records.captured import Guard, OutputTensor

_SYMBOL = re.compile(r"\b[su]\d+\b")
_MODULE_PREFIX = "module."  # FlatModule holds the user's module under this name
SOURCE = "anyshape.source"
_TORCH_STACK = "pkg.torch.onnx.stack_trace"


def name_inputs(model: ir.Model, names: Sequence[str]) -> None:
    """Graph inputs get the names, in order; another value that has such a name gives way."""
    _give_names(model, model.graph.inputs, names)


def name_outputs(model: ir.Model, names: Sequence[str]) -> None:
    """Graph outputs get the names, in order; an input or a weight given back, or a value twice, goes through Identity."""
    graph = model.graph
    seen: set[int] = set()
    for index, value in enumerate(list(graph.outputs)):
        if value.producer() is None or id(value) in seen:
            copy = ir.node("Identity", [value])
            copy.outputs[0].shape, copy.outputs[0].type = value.shape, value.type
            graph.append(copy)
            graph.outputs[index] = copy.outputs[0]
        seen.add(id(value))
    _give_names(model, graph.outputs, names)


def name_weights(model: ir.Model) -> None:
    """module.encoder.weight  ->  encoder.weight, as in the user's state_dict."""
    for name, value in list(model.graph.initializers.items()):
        short = name.removeprefix(_MODULE_PREFIX)
        if short != name and short not in model.graph.initializers:
            model.graph.initializers.pop(name)
            value.name = short
            model.graph.initializers[short] = value


def name_dims(model: ir.Model, symbols: Mapping[str, Expr], domain: Domain | None = None) -> None:
    """s77*2  ->  2*seq, on every value of the model; a size that cannot be expressed loses its name.

    With a domain: the shortest expression that its rules allow.
    """
    known: dict[str, str | None] = {}
    for value in all_values(model):
        if value.shape is None:
            continue
        sizes: list[int | str | None] = []
        for size in value.shape:
            if isinstance(size, int):
                sizes.append(size)
                continue
            text = size.value
            if text is not None and text not in known:
                known[text] = in_dims(text, symbols, domain)
            sizes.append(known[text] if text is not None else None)
        value.shape = ir.Shape(sizes)


def leave_false_sizes_open(
    model: ir.Model, guards: Iterable[Guard], inputs: Sequence[Sequence[Expr]], outputs: Sequence[OutputTensor]
) -> None:
    """Sizes that torch took for numbers, and that are none: no runtime may plan its memory by them.

    Where torch fixed a dim that varies (`n == 3`, which is refuted), any number in a shape may come from it.
    """
    if any(guard.status == "refuted" and _fixes(guard.condition) for guard in guards):
        for node in ir.traversal.RecursiveGraphIterator(model.graph):
            for value in node.outputs:
                if value.shape is not None and not value.is_graph_output():
                    value.shape = ir.Shape([None if _is_number(size) else size for size in value.shape])
    for value, axes in zip(model.graph.inputs, inputs, strict=True):
        if value.shape is not None and len(value.shape) == len(axes):
            sizes = zip(value.shape, axes, strict=True)
            value.shape = ir.Shape([written_axis(axis) if _is_number(size) else size for size, axis in sizes])
    for value, output in zip(model.graph.outputs, outputs, strict=True):
        if output.any_rank or value.shape is None or len(value.shape) != len(output.axes):
            value.shape = None
            continue
        told = zip(value.shape, output.axes, strict=True)
        value.shape = ir.Shape([None if axis is None and _is_number(size) else size for size, axis in told])


def written_axis(axis: Expr | None) -> int | str | None:
    """The size of an axis as a file has it: a number, a text, or None (open)."""
    return axis.value if isinstance(axis, Number) else format_expr(axis) if axis is not None else None


def _fixes(condition: Condition | None) -> bool:
    return isinstance(condition, Compare) and condition.op == "==" and isinstance(condition.right, Number)


def _is_number(size: int | ir.SymbolicDim) -> bool:
    return isinstance(size, int) or (size.value is not None and size.value.isdigit())


def all_values(model: ir.Model) -> Iterator[ir.Value]:
    """Every value of the model: inputs, weights, and what nodes give, in subgraphs too."""
    yield from model.graph.inputs
    yield from model.graph.initializers.values()
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        yield from node.outputs


def in_dims(text: str, symbols: Mapping[str, Expr], domain: Domain | None = None) -> str | None:
    """A size in torch's symbols as an expression of the dims; None where a symbol has none."""
    if any(symbol not in symbols for symbol in _SYMBOL.findall(text)):
        return None
    replaced = _SYMBOL.sub(lambda match: f"({format_expr(symbols[match[0]])})", text)
    replaced = replaced.replace("Max(", "max(").replace("Min(", "min(")
    replaced = re.sub(r"\bMod\(([^,()]+|\([^()]*\)), (\d+)\)", r"((\1) % \2)", replaced)
    try:
        size = simplify(parse_expr(replaced))
        size = size if domain is None else simplify_within(size, domain)
        return format_expr(size) if is_readable(size) else None
    except DeclarationError:
        return None


def _give_names(model: ir.Model, values: Sequence[ir.Value], names: Sequence[str]) -> None:
    wanted = set(names)
    chosen = {id(value) for value in values}
    for value in all_values(model):
        if value.name in wanted and id(value) not in chosen:
            fresh = f"{value.name}_inside"
            if value.is_initializer():
                model.graph.initializers.pop(value.name)
                value.name = fresh
                model.graph.initializers[fresh] = value
            else:
                value.name = fresh
    for value, name in zip(values, names, strict=True):
        value.name = name


def keep_sources(model: ir.Model) -> None:
    """torch's metadata and doc strings on nodes, values and graph  ->  `anyshape.source` on nodes."""
    model.doc_string = model.graph.doc_string = None
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        value.metadata_props.clear()
    cache: dict[str, str] = {}
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        stack = node.metadata_props.get(_TORCH_STACK, "")
        if stack not in cache:
            source = source_of_stack_text(stack)
            cache[stack] = f"{source.file}:{source.line}" if source else ""
        node.metadata_props.clear()
        node.doc_string = None
        if cache[stack]:
            node.metadata_props[SOURCE] = cache[stack]
        for value in node.outputs:
            value.metadata_props.clear()
