"""Findings about a call: what it is made of, which arguments it lacks, and the names given to it.

Every function gives a Finding; its caller raises. Inputs are named by the path that the user would write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anyshape.findings import Finding, Severity, Source, counted, nearest
from anyshape.findings.finding import text_of_error


def unknown_container(path: str, value: Any) -> Finding:
    kind = type(value).__qualname__
    return Finding(
        code="AS010",
        name="unknown-container",
        what=f"{_input(path)} is of class {kind}, which anyshape cannot look into.",
        why="inputs are tensors, numbers and strings, in tuples, lists, dicts, dataclasses, named tuples and caches.",
        fix=f"make {type(value).__name__} a dataclass, or register it with torch.utils._pytree.register_pytree_node.",
    )


def no_output_of_a_file(path: str, value: Any) -> Finding:
    shown = repr(value) if isinstance(value, str) and len(value) < 20 else f"of class {type(value).__qualname__}"
    return Finding(
        code="AS156",
        name="output-no-tensor",
        what=f"the model returns {path!r}, which is {shown}: a file returns tensors and numbers only.",
        why="outputs are tensors, numbers and truth values, in tuples, lists, dicts, dataclasses, named tuples and caches.",
        fix=f"leave {path!r} out of what forward returns, or export a module that calls the model and returns the rest.",
    )


def input_not_dense(path: str, form: str) -> Finding:
    return Finding(
        code="AS158",
        name="tensor-not-dense",
        what=f"{_input(path)} is {form}: a file takes dense tensors only.",
        why="ONNX operators, and the inputs of onnxruntime, are dense.",
        fix="give x.to_dense(), or export a module that takes indices and values as tensors of their own.",
    )


def input_without_values(path: str, form: str) -> Finding:
    return Finding(
        code="AS158",
        name="tensor-not-dense",
        what=f"{_input(path)} is {form}, which has no values.",
        why="the model is called with the inputs, and the file is compared with its answers.",
        fix="give a tensor with values: torch.zeros(x.shape, dtype=x.dtype)",
    )


def output_not_dense(path: str, form: str) -> Finding:
    return Finding(
        code="AS158",
        name="tensor-not-dense",
        what=f"the model returns {path!r}, which is {form}: a file returns dense tensors only.",
        why="ONNX operators, and the outputs of onnxruntime, are dense.",
        fix="return y.to_dense(), or indices and values as tensors of their own.",
    )


def unknown_input(name: str, inputs: Sequence[str], outputs: Sequence[str] = ()) -> Finding:
    near = nearest(name, [*inputs, *outputs])
    others = f" The outputs are {', '.join(outputs)}." if outputs else ""
    return Finding(
        code="AS011",
        name="unknown-input",
        what=f"the declaration speaks of {name!r}, which is no input of the module.",
        why=f"the inputs are {', '.join(inputs)}.{others}" if inputs else "the module is called without inputs.",
        fix=f"did you mean {near!r}?" if near else "use one of these names, or the beginning of a path.",
    )


def unknown_output(name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Finding:
    near = nearest(name, [*outputs, *inputs])
    return Finding(
        code="AS029",
        name="unknown-output",
        what=f"the declaration speaks of {name!r}, which is neither an input nor an output.",
        why=f"the inputs are {', '.join(inputs)}; the outputs are {', '.join(outputs)}.",
        fix=f"did you mean {near!r}?" if near else "use one of these names.",
    )


def missing_argument(names: Sequence[str], given: Sequence[str], signature: str) -> Finding:
    what = f"argument {names[0]!r} is" if len(names) == 1 else f"arguments {_listed(names)} are"
    return Finding(
        code="AS019",
        name="missing-argument",
        what=f"{what} missing from the inputs.",
        why=f"the module takes {signature}; given are {', '.join(given) if given else 'none'}.",
        fix=f"add {_listed(names)} to the inputs.",
    )


def returns_nothing(function: str, source: Source | None, signature: str) -> Finding:
    """The function of sizes returned None."""
    return Finding(
        code="AS019",
        name="missing-argument",
        what=f"{function} returns None, where the inputs of the module are expected.",
        where=source,
        why=f"the module takes {signature}; a function without `return` returns None.",
        fix="return the inputs: a tensor, a tuple of them, or a dict by name.",
    )


def unexpected_argument(name: str, accepted: Sequence[str], signature: str) -> Finding:
    near = nearest(name, accepted)
    return Finding(
        code="AS020",
        name="unexpected-argument",
        what=f"the module takes no argument {name!r}.",
        why=f"it takes {signature}.",
        fix=f"did you mean {near!r}?" if near else f"leave {name!r} out of the inputs.",
    )


def unknown_parameter(name: str, parameters: Sequence[str]) -> Finding:
    near = nearest(name, parameters)
    return Finding(
        code="AS020",
        name="unexpected-argument",
        what=f"the function of sizes takes no parameter {name!r}.",
        why=f"it takes {', '.join(parameters) if parameters else 'none'}.",
        fix=f"did you mean {near!r}?" if near else f"leave {name!r} out of example_sizes.",
    )


def unreadable_range(name: str, text: str, error: BaseException) -> Finding:
    return Finding(
        code="AS018",
        name="unreadable-declaration",
        what=f"the annotation of parameter {name!r} cannot be read: {text}.",
        why=f"{type(error).__name__}: {_first_line(error)}",
        fix=f"import what it names where the function is defined, or say it as a rule: where=['1 <= {name} <= 64'].",
    )


def too_many_arguments(given: int, taken: int, signature: str) -> Finding:
    return Finding(
        code="AS020",
        name="unexpected-argument",
        what=f"the module takes {counted(taken, 'positional input')}, and {given} are given.",
        why=f"it takes {signature}.",
        fix="leave out the last ones; several examples go into a list, one example into a tuple.",
    )


def argument_given_twice(name: str, signature: str) -> Finding:
    return Finding(
        code="AS020",
        name="unexpected-argument",
        what=f"argument {name!r} is given twice, by position and by name.",
        why=f"the module takes {signature}.",
        fix=f"leave {name!r} out of one of the two.",
    )


def duplicate_name(name: str, first: str, second: str) -> Finding:
    return Finding(
        code="AS021",
        name="duplicate-name",
        what=f"the name {name!r} is given to {first} and to {second}.",
        why="every input and every output of the file has a name of its own.",
        fix="give one of them another name.",
    )


def too_many_names(names: Sequence[str], paths: Sequence[str], kind: str = "input") -> Finding:
    return Finding(
        code="AS022",
        name="too-many-names",
        what=f"{kind}_names has {counted(len(names), 'name')}, and the module has {counted(len(paths), kind)}.",
        why=f"the names are {', '.join(names)}; the {kind}s are {', '.join(paths) if paths else 'none'}.",
        fix=f"give at most one name to each {kind}.",
    )


def function_refuses(sizes: Mapping[str, Any], error: BaseException, source: Source | None, signature: str) -> Finding:
    return Finding(
        code="AS023",
        name="function-refuses",
        what=f"the function of sizes gives no inputs at {_sizes(sizes)}.",
        where=source,
        why=f"{type(error).__name__}: {_first_line(error)}",
        fix=f"make {signature} answer at every size of the domain, or say which sizes are meant: where=[...].",
        sizes={name: size for name, size in sizes.items() if type(size) is int},
    )


def structure_changes(first: str, second: str, where: str) -> Finding:
    among_examples = "a list is several examples; several inputs of one example go into a tuple."
    return Finding(
        code="AS024",
        name="structure-changes",
        what=f"the inputs are not built alike {where}.",
        why=f"first {first}, then {second}.",
        fix="only sizes may vary: the number of inputs, their dtypes and their ranks stay.",
        alternative=among_examples if where.startswith("in example") else "",
    )


def no_examples() -> Finding:
    return Finding(
        code="AS018",
        name="unreadable-declaration",
        what="the list of examples is empty.",
        why="a list is several examples of what the module is called with.",
        fix="give one example as a tuple, or several in the list.",
    )


def not_an_axis_owner(path: str, kind: str, declared: str) -> Finding:
    return Finding(
        code="AS026",
        name="not-a-tensor",
        what=f"input {path!r} is {kind}, and {declared} is declared for it.",
        why="tensors have axes; a Python int or float can be made an input as a whole.",
        fix=f"leave {path!r} out, or for an int or float write dynamic={{{path!r}: 'value'}}.",
    )


def tensor_declared_as_value(path: str) -> Finding:
    return Finding(
        code="AS026",
        name="not-a-tensor",
        what=f"input {path!r} is a tensor, and 'value' is declared for it.",
        why="a tensor's values are always free; 'value' makes a Python int or float an input.",
        fix=f"say which axes of {path!r} vary, or leave it out.",
    )


def example_refused(error: BaseException, source: Source | None) -> Finding:
    return Finding(
        code="AS105",
        name="example-refused",
        what="the module does not answer at the example itself.",
        where=source,
        why=f"{type(error).__name__}: {_first_line(error)}",
        fix="give an example at which model(*inputs) runs.",
    )


def nothing_dynamic() -> Finding:
    return Finding(
        code="AS028",
        name="nothing-dynamic",
        severity=Severity.NOTE,
        what="no axis is declared dynamic: the file is for the example's sizes alone.",
        fix='dynamic="auto" finds by trying which axes can vary; or give a function of sizes, several examples, or words.',
    )


def _input(path: str) -> str:
    return f"input {path!r}" if path else "the value"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _sizes(sizes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "no sizes"


def _first_line(error: BaseException) -> str:
    lines = text_of_error(error).strip().splitlines()
    return lines[0] if lines else "no message"
