"""Wrong declarations, and the exact words in which they are refused: one row each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from anyshape.findings import DeclarationError
from anyshape.inputs import Inputs, declare


class Two(nn.Module):
    def forward(self, x: Any, mask: Any = None, k: int = 0, mode: str = "fast") -> Any:
        return x


class Pair(nn.Module):
    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        return input_ids


class Nested(nn.Module):
    def forward(self, x: Any, past: Any = None) -> Any:
        return x


class Picky(nn.Module):
    def forward(self, x: Any) -> Any:
        raise ValueError("nothing pleases me")


class Opaque:
    pass


R = torch.randn
X, M = R(3, 5, 8), R(3, 5)
IDS = torch.zeros(2, 7, dtype=torch.int64)


def refuses(n: int, m: int = 4) -> torch.Tensor:
    if n > m:
        raise ValueError(f"{n} is too many")
    return R(n, m)


def layers(n: int) -> dict[str, Any]:
    return {"x": R(n), "past": [R(2)] * n}


def ragged(n: int) -> torch.Tensor:
    return R(n if n < 12 else n + 1) if n != 13 else R(99)


def flag(n: int) -> tuple[Any, ...]:
    return (R(n), R(n), 0, "fast" if n < 10 else "slow")


def annotated(n: range(1, limit)) -> torch.Tensor:  # type: ignore  # noqa: F821
    return R(n)


def fixed(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return R(batch, 5)


def counted(n: int = 3, past: int = 2) -> torch.Tensor:
    return torch.arange(past, past + n)


ROWS: dict[str, tuple[Callable[[], Any], str]] = {
    "an input that does not exist": (
        lambda: declare(Pair(), (IDS, IDS), dynamic={"input_idz": "batch seq"}),
        """\
AS011 unknown-input: the declaration speaks of 'input_idz', which is no input of the module.
  Why:    the inputs are input_ids, attention_mask.
  Fix:    did you mean 'input_ids'?""",
    ),
    "a path that does not exist": (
        lambda: declare(Nested(), (R(2), [R(3)]), dynamic={"past.1": "n"}),
        """\
AS011 unknown-input: the declaration speaks of 'past.1', which is no input of the module.
  Why:    the inputs are x, past.0.
  Fix:    did you mean 'past.0'?""",
    ),
    "a key in a tree that does not exist": (
        lambda: declare(Nested(), (R(2), {"keys": R(3)}), dynamic={"past": {"key": "n"}}),
        """\
AS011 unknown-input: the declaration speaks of 'past.key', which is no input of the module.
  Why:    the inputs are x, past.keys.
  Fix:    did you mean 'past.keys'?""",
    ),
    "an input that is neither input nor output": (
        lambda: declare(Two(), X, dynamic={"y": "n"}, output_names=["logits"]),
        """\
AS011 unknown-input: the declaration speaks of 'y', which is no input of the module.
  Why:    the inputs are x. The outputs are logits.
  Fix:    use one of these names, or the beginning of a path.""",
    ),
    "too few words": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq"}),
        """\
AS012 wrong-rank: input 'x' has 3 axes, and 'batch seq' speaks of 2.
  Why:    its shape in the example is [3, 5, 8].
  Fix:    one word for each axis: a name, a number, an expression, _ for as it is, ... for any number of axes.""",
    ),
    "too many words": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq 8 1"}),
        """\
AS012 wrong-rank: input 'x' has 3 axes, and 'batch seq 8 1' speaks of 4.
  Why:    its shape in the example is [3, 5, 8].
  Fix:    one word for each axis: a name, a number, an expression, _ for as it is, ... for any number of axes.""",
    ),
    "too many words around an ellipsis": (
        lambda: declare(Two(), (X, M), dynamic={"mask": "a ... b c"}),
        """\
AS012 wrong-rank: input 'mask' has 2 axes, and 'a ... b c' speaks of 3.
  Why:    its shape in the example is [3, 5].
  Fix:    one word for each axis: a name, a number, an expression, _ for as it is, ... for any number of axes.""",
    ),
    "two ellipses": (
        lambda: declare(Two(), X, dynamic={"x": "... a ..."}),
        """\
AS018 unreadable-declaration: what is declared for 'x' cannot be read: '... a ...'.
  Why:    '...' can stand once only.
  Fix:    for example dynamic={'x': {0: 'batch'}}, or a word for each axis, such as 'batch seq 64'.""",
    ),
    "too short a tuple": (
        lambda: declare(Two(), X, dynamic={"x": ("batch", None)}),
        """\
AS012 wrong-rank: input 'x' has 3 axes, and "('batch', None)" speaks of 2.
  Why:    its shape in the example is [3, 5, 8].
  Fix:    one word for each axis: a name, a number, an expression, _ for as it is, ... for any number of axes.""",
    ),
    "a number that is not the size": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq 64"}),
        """\
AS013 wrong-size: axis 2 of input 'x' is declared as 64, and is 8 in the example.
  Why:    a number in 'batch seq 64' is a size that never changes.
  Fix:    write 8, or a name if the size varies.""",
    ),
    "a number that is not the size, by axis": (
        lambda: declare(Two(), X, dynamic={"x": {0: 4}}),
        """\
AS013 wrong-size: axis 0 of input 'x' is declared as 4, and is 3 in the example.
  Why:    a number in '4' is a size that never changes.
  Fix:    write 3, or a name if the size varies.""",
    ),
    "one name with two sizes": (
        lambda: declare(Two(), (X, R(4, 5)), dynamic={"x": "batch seq 8", "mask": "batch seq"}),
        """\
AS014 inconsistent-sizes: dim 'batch' is 3 on axis 0 of 'x' and 4 on axis 0 of 'mask'.
  Why:    the same name is the same size.
  Fix:    give one of the two axes another name, or inputs that agree in 'batch'.""",
    ),
    "one name with two sizes in one input": (
        lambda: declare(Two(), R(3, 5), dynamic={"x": "n n"}),
        """\
AS014 inconsistent-sizes: dim 'n' is 3 on axis 0 of 'x' and 5 on axis 1 of 'x'.
  Why:    the same name is the same size.
  Fix:    give one of the two axes another name, or inputs that agree in 'n'.""",
    ),
    "a sum that does not hold": (
        lambda: declare(Two(), (X, R(3, 4)), dynamic={"x": "batch seq 8", "mask": "batch past+seq"}),
        """\
AS014 inconsistent-sizes: axis 1 of input 'mask' is declared as past + seq, and is 4 in the example.
  Why:    no sizes make past + seq equal to 4 where seq = 5.
  Fix:    correct the expression, or give inputs that follow it.""",
    ),
    "an expression that does not hold": (
        lambda: declare(Two(), (X, R(5)), dynamic={"x": "n _ _", "mask": "2*n"}),
        """\
AS014 inconsistent-sizes: axis 0 of input 'mask' is declared as 2*n, and is 5 in the example.
  Why:    no sizes make 2*n equal to 5 where n = 3.
  Fix:    correct the expression, or give inputs that follow it.""",
    ),
    "a dim that the example does not tell": (
        lambda: declare(Two(), R(3), dynamic={"x": "(t+1)//2"}),
        """\
AS015 undetermined-dim: the example does not tell the size of dim 't': it may be 5 or 6.
  Why:    it stands only inside (t + 1)//2, on axis 0 of input 'x'.
  Fix:    give 't' alone on some axis, or write axis 0 of 'x' as a dim of its own.""",
    ),
    "two dims in one sum": (
        lambda: declare(Two(), (X, R(7)), dynamic={"x": "batch _ _", "mask": "past+seq"}),
        """\
AS015 undetermined-dim: the example does not tell the size of dim 'past': it may be 0 or 1.
  Why:    it stands only inside past + seq, on axis 0 of input 'mask'.
  Fix:    give 'past' alone on some axis, or write axis 0 of 'mask' as a dim of its own.""",
    ),
    "an axis that does not exist": (
        lambda: declare(Two(), (X, M), dynamic={"mask": {2: "batch"}}),
        """\
AS016 no-such-axis: input 'mask' has no axis 2.
  Why:    its shape in the example is [3, 5]: its axes are 0 to 1.
  Fix:    count axes from 0, or from the end with -1.""",
    ),
    "an axis of a number": (
        lambda: declare(Two(), (X, torch.tensor(3)), dynamic={"mask": {0: "n"}}),
        """\
AS016 no-such-axis: input 'mask' has no axis 0.
  Why:    its shape in the example is []: it has no axes.
  Fix:    count axes from 0, or from the end with -1.""",
    ),
    "an axis in a list that does not exist": (
        lambda: declare(Two(), X, dynamic={"x": [0, 3]}),
        """\
AS016 no-such-axis: input 'x' has no axis 3.
  Why:    its shape in the example is [3, 5, 8]: its axes are 0 to 2.
  Fix:    count axes from 0, or from the end with -1.""",
    ),
    "words that cannot be read": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq/2 8"}),
        """\
AS002 unreadable-expression: the words for 'x' cannot be read at 'seq/2'.
    batch seq/2 8
          ^^^^^
  Why:    cannot read 'seq/2': only simple arithmetic on dims is read.
  Fix:    sizes are whole numbers: write // for division.""",
    ),
    "words with an unfinished sum": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq+ 8"}),
        """\
AS012 wrong-rank: input 'x' has 3 axes, and 'batch seq+ 8' speaks of 2.
  Why:    its shape in the example is [3, 5, 8].
  Fix:    one word for each axis: a name, a number, an expression, _ for as it is, ... for any number of axes.""",
    ),
    "a word that is no name": (
        lambda: declare(Two(), X, dynamic={"x": "batch 2seq 8"}),
        """\
AS002 unreadable-expression: the words for 'x' cannot be read at '2seq'.
    batch 2seq 8
          ^^^^
  Why:    cannot read '2seq': it stops making sense at the mark.
  Fix:    an expression is made of dims, whole numbers, + - * // %, min(...) and max(...).""",
    ),
    "a keyword as name": (
        lambda: declare(Two(), X, dynamic={"x": "batch for 8"}),
        """\
AS002 unreadable-expression: the words for 'x' cannot be read at 'for'.
    batch for 8
          ^^^
  Why:    cannot read 'for': it stops making sense at the mark.
  Fix:    an expression is made of dims, whole numbers, + - * // %, min(...) and max(...).""",
    ),
    "a rule about a dim that does not exist": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq 8"}, where=["1 <= bacth <= 64"]),
        """\
AS001 unknown-dim: there is no dim 'bacth'.
    1 <= bacth <= 64
         ^^^^^
  Why:    the dims are batch, seq.
  Fix:    did you mean 'batch'?""",
    ),
    "a rule about a parameter that does not exist": (
        lambda: declare(Two(), lambda batch: R(batch), where=["batches <= 64"]),
        """\
AS001 unknown-dim: there is no dim 'batches'.
    batches <= 64
    ^^^^^^^
  Why:    the dims are batch.
  Fix:    did you mean 'batch'?""",
    ),
    "a rule that the example breaks": (
        lambda: declare(Two(), X, dynamic={"x": "batch seq 8"}, where=["batch >= 4"]),
        """\
AS025 example-outside-domain: the example lies outside its own domain: batch = 3.
  Why:    the domain says batch >= 4.
  Fix:    widen the rule, or give another example.""",
    ),
    "a size of 0 outside the range": (
        lambda: declare(Two(), R(0, 4), dynamic={"x": "n _"}, where=["n <= 8"]),
        """\
AS025 example-outside-domain: the example lies outside its own domain: n = 0.
  Why:    the domain says n >= 1.
  Fix:    widen the rule, or give another example.""",
    ),
    "a default outside the range": (
        lambda: declare(Two(), lambda n=3: R(n), where=["4 <= n <= 9"]),
        """\
AS025 example-outside-domain: the example lies outside its own domain: n = 3.
  Why:    the domain says n >= 4.
  Fix:    widen the rule, or give another example.""",
    ),
    "rules that contradict each other": (
        lambda: declare(Two(), lambda n: R(n), where=["n <= 3", "n >= 5"]),
        """\
AS003 empty-domain: no size is left for dim 'n'.
  Why:    'n >= 5' and 'n <= 3' cannot hold together.""",
    ),
    "a missing argument": (
        lambda: declare(Pair(), {"attention_mask": IDS}, dynamic={"attention_mask": "b s"}),
        """\
AS019 missing-argument: argument 'input_ids' is missing from the inputs.
  Why:    the module takes (input_ids, attention_mask); given are attention_mask.
  Fix:    add 'input_ids' to the inputs.""",
    ),
    "a function of sizes without return": (
        lambda: declare(Pair(), lambda b: None),
        """\
AS019 missing-argument: the lambda returns None, where the inputs of the module are expected.
  Where:  test_declaration_messages.py:LINE:   lambda: declare(Pair(), lambda b: None),
  Why:    the module takes (input_ids, attention_mask); a function without `return` returns None.
  Fix:    return the inputs: a tensor, a tuple of them, or a dict by name.""",
    ),
    "a misspelt argument": (
        lambda: declare(Pair(), {"input_ids": IDS, "attn_mask": IDS}),
        """\
AS020 unexpected-argument: the module takes no argument 'attn_mask'.
  Why:    it takes (input_ids, attention_mask).
  Fix:    did you mean 'attention_mask'?""",
    ),
    "too many arguments": (
        lambda: declare(Pair(), (IDS, IDS, IDS)),
        """\
AS020 unexpected-argument: the module takes 2 positional inputs, and 3 are given.
  Why:    it takes (input_ids, attention_mask).
  Fix:    leave out the last ones; several examples go into a list, one example into a tuple.""",
    ),
    "an argument given twice": (
        lambda: declare(Pair(), Inputs((IDS, IDS), {"input_ids": IDS})),
        """\
AS020 unexpected-argument: argument 'input_ids' is given twice, by position and by name.
  Why:    the module takes (input_ids, attention_mask).
  Fix:    leave 'input_ids' out of one of the two.""",
    ),
    "the same name for two inputs": (
        lambda: declare(Pair(), (IDS, IDS), input_names=["ids", "ids"]),
        """\
AS021 duplicate-name: the name 'ids' is given to input 'input_ids' and to input 'attention_mask'.
  Why:    every input and every output of the file has a name of its own.
  Fix:    give one of them another name.""",
    ),
    "the same name for an input and an output": (
        lambda: declare(Two(), X, output_names=["x"]),
        """\
AS021 duplicate-name: the name 'x' is given to input 'x' and to output 0.
  Why:    every input and every output of the file has a name of its own.
  Fix:    give one of them another name.""",
    ),
    "more names than inputs": (
        lambda: declare(Two(), X, input_names=["a", "b"]),
        """\
AS022 too-many-names: input_names has 2 names, and the module has 1 input.
  Why:    the names are a, b; the inputs are x.
  Fix:    give at most one name to each input.""",
    ),
    "a name for an input that does not exist": (
        lambda: declare(Pair(), (IDS, IDS), input_names={"mask": "m"}),
        """\
AS011 unknown-input: the declaration speaks of 'mask', which is no input of the module.
  Why:    the inputs are input_ids, attention_mask.
  Fix:    did you mean 'attention_mask'?""",
    ),
    "an object of an unknown class": (
        lambda: declare(Nested(), (X, {"state": Opaque()})),
        """\
AS010 unknown-container: input 'past.state' is of class Opaque, which anyshape cannot look into.
  Why:    inputs are tensors, numbers and strings, in tuples, lists, dicts, dataclasses, named tuples and caches.
  Fix:    make Opaque a dataclass, or register it with torch.utils._pytree.register_pytree_node.""",
    ),
    "axes of a string": (
        lambda: declare(Two(), (X, M, 0, "fast"), dynamic={"mode": "n"}),
        """\
AS026 not-a-tensor: input 'mode' is the str 'fast', and 'n' is declared for it.
  Why:    tensors have axes; a Python int or float can be made an input as a whole.
  Fix:    leave 'mode' out, or for an int or float write dynamic={'mode': 'value'}.""",
    ),
    "axes of an int": (
        lambda: declare(Two(), (X, M, 3), dynamic={"k": {0: "n"}}),
        """\
AS026 not-a-tensor: input 'k' is the int 3, and {0: 'n'} is declared for it.
  Why:    tensors have axes; a Python int or float can be made an input as a whole.
  Fix:    leave 'k' out, or for an int or float write dynamic={'k': 'value'}.""",
    ),
    "the value of a tensor": (
        lambda: declare(Two(), X, dynamic={"x": {"value": "n"}}),
        """\
AS026 not-a-tensor: input 'x' is a tensor, and 'value' is declared for it.
  Why:    a tensor's values are always free; 'value' makes a Python int or float an input.
  Fix:    say which axes of 'x' vary, or leave it out.""",
    ),
    "a form that means nothing": (
        lambda: declare(Two(), X, dynamic={"x": 3.5}),
        """\
AS018 unreadable-declaration: what is declared for 'x' cannot be read: 3.5.
  Why:    axes are declared by words, {axis: name}, a list of axes, or torch's Dim.
  Fix:    for example dynamic={'x': {0: 'batch'}}, or a word for each axis, such as 'batch seq 64'.""",
    ),
    "a declaration that means nothing": (
        lambda: declare(Two(), X, dynamic=7),
        """\
AS018 unreadable-declaration: the declaration cannot be read: dynamic=7.
  Why:    it is {input: words}, a tree that mirrors the inputs, or 'auto'.
  Fix:    for example dynamic={'x': 'batch seq 64'}.""",
    ),
    "an axis that is no number": (
        lambda: declare(Two(), X, dynamic={"x": {"first": "n"}}),
        """\
AS018 unreadable-declaration: what is declared for 'x' cannot be read: {'first': 'n'}.
  Why:    'first' is no axis: axes are numbers.
  Fix:    for example dynamic={'x': {0: 'batch'}}, or a word for each axis, such as 'batch seq 64'.""",
    ),
    "words for several tensors": (
        lambda: declare(Two(), (X, M), dynamic="batch seq"),
        """\
AS018 unreadable-declaration: the declaration cannot be read: dynamic='batch seq'.
  Why:    words alone are enough for one tensor, and there are 2: x, mask.
  Fix:    for example dynamic={'x': 'batch seq 64'}.""",
    ),
    "a tree of another shape": (
        lambda: declare(Two(), (X, M), dynamic=({0: "n"},)),
        """\
AS018 unreadable-declaration: the declaration cannot be read: dynamic=({0: 'n'},).
  Why:    it has 1 part, and the call has 2.
  Fix:    for example dynamic={'x': 'batch seq 64'}.""",
    ),
    "a list of another length": (
        lambda: declare(Nested(), (X, [M, M]), dynamic={"past": [{0: "n"}]}),
        """\
AS018 unreadable-declaration: what is declared for 'past' cannot be read: [{0: 'n'}].
  Why:    it has 1 part, and past has 2.
  Fix:    for example dynamic={'past': {0: 'batch'}}, or a word for each axis, such as 'batch seq 64'.""",
    ),
    "a function that refuses": (
        lambda: declare(Two(), refuses, where=["1 <= n <= 64", "1 <= m <= 64"]),
        """\
AS023 function-refuses: the function of sizes gives no inputs at n = 41, m = 37.
  Where:  test_declaration_messages.py:LINE, in refuses:   raise ValueError(f"{n} is too many")
  Why:    ValueError: 41 is too many
  Fix:    make refuses answer at every size of the domain, or say which sizes are meant: where=[...].""",
    ),
    "a function whose inputs change": (
        lambda: declare(Nested(), layers),
        """\
AS024 structure-changes: the inputs are not built alike at n = 41.
  Why:    first 8 inputs, then 42 inputs with past.7: float32 of 1 axis.
  Fix:    only sizes may vary: the number of inputs, their dtypes and their ranks stay.""",
    ),
    "an axis that follows nothing": (
        lambda: declare(Two(), ragged),
        """\
AS017 axis-follows-nothing: axis 0 of input 'x' follows no expression of the sizes.
  Why:    it is 7 at n = 7,
          and 42 at n = 41,
          and 3 at n = 3.
  Fix:    let the size follow from the parameters by + - * // % min max, or make it a parameter of its own.""",
    ),
    "a string that follows a size": (
        lambda: declare(Two(), flag),
        """\
AS033 value-varies: input 'mode' is 'fast' and 'slow', and only tensors, ints and floats can vary.
  Why:    a string, a bool or None decides what the module does: it is part of the file.
  Fix:    keep 'mode' the same, and export once for each of its values.""",
    ),
    "words that the function contradicts": (
        lambda: declare(Two(), lambda n: R(n, 2 * n), dynamic={"x": "n n"}),
        """\
AS030 declarations-disagree: axis 1 of input 'x' is declared as n, but is 2*n.
  Why:    the function of sizes makes it 2*n, and says by itself what every axis is.
  Fix:    leave dynamic out, or correct one of the two.""",
    ),
    "auto with a function": (
        lambda: declare(Two(), lambda n: R(n), dynamic="auto"),
        """\
AS018 unreadable-declaration: the declaration cannot be read: dynamic='auto'.
  Why:    a function of sizes says by itself which axes vary.
  Fix:    for example dynamic={'x': 'batch seq 64'}.""",
    ),
    "examples that are built differently": (
        lambda: declare(Two(), [(X, M), (X,)]),
        """\
AS024 structure-changes: the inputs are not built alike in example 2.
  Why:    first 2 inputs with mask: float32 of 2 axes, then 1 input.
  Fix:    only sizes may vary: the number of inputs, their dtypes and their ranks stay.
  Or:     a list is several examples; several inputs of one example go into a tuple.""",
    ),
    "examples of different dtypes": (
        lambda: declare(Two(), [R(3), R(4).double()]),
        """\
AS024 structure-changes: the inputs are not built alike in example 2.
  Why:    first x: float32 of 1 axis, then x: float64 of 1 axis.
  Fix:    only sizes may vary: the number of inputs, their dtypes and their ranks stay.
  Or:     a list is several examples; several inputs of one example go into a tuple.""",
    ),
    "a string that varies": (
        lambda: declare(Two(), [(X, M, 0, "fast"), (X, M, 0, "slow")]),
        """\
AS033 value-varies: input 'mode' is 'fast' and 'slow', and only tensors, ints and floats can vary.
  Why:    a string, a bool or None decides what the module does: it is part of the file.
  Fix:    keep 'mode' the same, and export once for each of its values.""",
    ),
    "examples that break a name": (
        lambda: declare(Two(), [(R(2), R(2)), (R(3), R(4))], names={"x": "n", "mask": "n"}),
        """\
AS014 inconsistent-sizes: dim 'n' is 3 on axis 0 of 'x' and 4 on axis 0 of 'mask'.
  Why:    the same name is the same size, in example 2.
  Fix:    give one of the two axes another name, or inputs that agree in 'n'.""",
    ),
    "a made-up name that does not exist": (
        lambda: declare(Two(), [R(2), R(3)], names={"x_1": "n"}),
        """\
AS001 unknown-dim: there is no dim 'x_1'.
  Why:    the dims are x_0.
  Fix:    did you mean 'x_0'?""",
    ),
    "an example that the module refuses": (
        lambda: declare(Picky(), X, dynamic="auto"),
        """\
AS105 example-refused: the module does not answer at the example itself.
  Where:  test_declaration_messages.py:LINE, in Picky.forward:   raise ValueError("nothing pleases me")
  Why:    ValueError: nothing pleases me
  Fix:    give an example at which model(*inputs) runs.""",
    ),
    "a misspelt dim on an output": (
        lambda: declare(Two(), X, dynamic={"x": "batch _ _", "out": {0: "bacth"}}, output_names=["out"]),
        """\
AS001 unknown-dim: output 'out' uses dim 'bacth', which no input has.
  Why:    the dims are batch.
  Fix:    did you mean 'batch'?""",
    ),
    "an output that does not exist": (
        lambda: declare(Two(), X, dynamic={"x": "batch _ _", "logits": {0: "batch"}}).name_outputs(["output"]),
        """\
AS029 unknown-output: the declaration speaks of 'logits', which is neither an input nor an output.
  Why:    the inputs are x; the outputs are output.
  Fix:    use one of these names.""",
    ),
    "more names than outputs": (
        lambda: declare(Two(), X, output_names=["a", "b"]).name_outputs(["output"]),
        """\
AS022 too-many-names: output_names has 2 names, and the module has 1 output.
  Why:    the names are a, b; the outputs are output.
  Fix:    give at most one name to each output.""",
    ),
    "a size for a parameter that does not exist": (
        lambda: declare(Two(), lambda batch: R(batch), example_sizes={"bach": 2}),
        """\
AS020 unexpected-argument: the function of sizes takes no parameter 'bach'.
  Why:    it takes batch.
  Fix:    did you mean 'batch'?""",
    ),
    "no examples at all": (
        lambda: declare(Two(), []),
        """\
AS018 unreadable-declaration: the list of examples is empty.
  Why:    a list is several examples of what the module is called with.
  Fix:    give one example as a tuple, or several in the list.""",
    ),
    "an annotation that cannot be read": (
        lambda: declare(Two(), annotated),
        """\
AS018 unreadable-declaration: the annotation of parameter 'n' cannot be read: range(1, limit).
  Why:    NameError: name 'limit' is not defined
  Fix:    import what it names where the function is defined, or say it as a rule: where=['1 <= n <= 64'].""",
    ),
    "a number that differs between examples": (
        lambda: declare(Two(), [R(2, 8), R(3, 9)], names={"x": "n 8"}),
        """\
AS014 inconsistent-sizes: axis 1 of input 'x' is declared as 8, and is 9 in example 2.
  Why:    no sizes make 8 equal to 9.
  Fix:    correct the expression, or give inputs that follow it.""",
    ),
    "a number that is not the size that it is said to be": (
        lambda: declare(Two(), (R(2), R(2), 3), dynamic={"x": "n", "k": {"value": "n+2"}}),
        """\
AS014 inconsistent-sizes: the value of input 'k' is declared as n + 2, and is 3 in the example.
  Why:    no sizes make n + 2 equal to 3 where n = 2.
  Fix:    correct the expression, or give inputs that follow it.""",
    ),
    "a parameter that decides nothing": (
        lambda: declare(Two(), fixed, where=["1 <= seq <= 64"]),
        """\
AS068 reaches-no-axis: parameter 'seq' of the function of sizes decides no axis and no value.
  Where:  test_declaration_messages.py:LINE, in fixed:   return R(batch, 5)
  Why:    axis 1 of input 'x' has its size, 5, and is fixed in the function.
  Fix:    make axis 1 of 'x' from 'seq', or remove the parameter, and its rules: seq >= 1, seq <= 64.""",
    ),
    "a rule about a parameter that decides values only": (
        lambda: declare(Two(), counted, where=["past + n <= 16"]),
        """\
AS068 reaches-no-axis: the rule past + n <= 16 bounds sizes through 'past', which no axis follows.
  Why:    it decides values of the inputs alone, so that neither the contract nor the file can check the rule.
  Fix:    write the rule for sizes, such as where=['n <= 64'], or make an axis from 'past'.""",
    ),
    "a range of a dim that only an output has": (
        lambda: declare(Two(), X, dynamic={"x": {0: "b"}, "y": {0: Dim("rows", max=8)}}, output_names=["y"]),
        """\
AS068 reaches-no-axis: dim 'rows' has a range, and is no axis of an input.
  Why:    declared is rows in 1..8; the dims of the inputs are b.
  Fix:    use 'rows' for an axis of an input, or give it no range.""",
    ),
    "axes of an input that is None": (
        lambda: declare(Two(), (X, None), dynamic={"x": "b s 8", "mask": "b s"}),
        """\
AS068 reaches-no-axis: input 'mask' has no tensors in the example, and axes are declared for it.
  Why:    declared is 'b s'; it is None, or an empty container.
  Fix:    give an example in which 'mask' has tensors, or declare nothing for it.""",
    ),
    "two Dims of one name": (
        lambda: declare(Two(), (X, M), dynamic={"x": {0: Dim("b", max=64)}, "mask": {0: Dim("b", max=8)}}),
        """\
AS007 dim-declared-twice: dim 'b' is declared twice.
  Why:    it is b in 1..64, and b in 1..8.
  Fix:    use one Dim for all of its axes, or give the second a name of its own.""",
    ),
}


def text_of(call: Callable[[], Any]) -> str:
    with pytest.raises(DeclarationError) as refusal:
        call()
    return re.sub(r"\S*test_declaration_messages\.py:\d+", "test_declaration_messages.py:LINE", str(refusal.value))


@pytest.mark.parametrize(("call", "golden"), ROWS.values(), ids=ROWS.keys())
def test_a_wrong_declaration_is_refused_in_these_words(call: Callable[[], Any], golden: str) -> None:
    assert text_of(call) == golden


@pytest.mark.parametrize("golden", [golden for _, golden in ROWS.values()], ids=ROWS.keys())
def test_the_first_line_stands_alone(golden: str) -> None:
    first = golden.splitlines()[0]
    assert re.match(r"AS[01]\d\d [a-z-]+: \S", first) and first.endswith(".")
    assert len(first) <= 110


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 30


def test_a_right_declaration_is_not_refused() -> None:
    with pytest.raises(pytest.fail.Exception):
        text_of(lambda: declare(Two(), X, dynamic={"x": "batch seq 8"}))
