"""Odd model files, manifests, command lines and Python arguments."""

from __future__ import annotations

from random import Random
from typing import Any

GOOD = {
    "model": "def model(): return torch.nn.Linear(4, 2)",
    "inputs": "def inputs(batch=3): return torch.randn(batch, 4)",
    "where": 'where = ["1 <= batch <= 8"]',
}
_VALUES = [
    "None", "True", "0", "5", "-1", "2**70", "1.5", "float('nan')", "''", "'x'", "b'x'", "[]", "()", "{}", "[5]", "[None]",
    "[[]]", "{'x': 5}", "{'batch': 5}", "{5: 'x'}", "{None: None}", "['batch']", "['batch <= 8', 5]",
    "'batch <= ' + '9' * 5000", "['batch <= 10**40']", "['batch <= ' + '1' + '0' * 400]",
    "['1 <= batch <= 99999999999999999999']", "['(' * 500]", "['batch' + '+1' * 3000 + ' <= 8']", "['batch <= 8\\0']",
    "['b\\x1b[31m <= 3']", "['batch % 0 == 0']", "['batch // 0 == 0']", "['batch*batch*batch == 7']", "['nope <= 3']",
    "object()", "torch", "torch.nn.Linear", "torch.zeros(3)", "torch.empty(3, device='meta')", "lambda: None",
    "lambda *a: 1 / 0", "print", "Odd()", "Odd", "set()", "range(3)", "iter([])", "iter(['batch <= 8'])", "(x for x in [1])",
    "type", "Exception('x')", "Ellipsis", "NotImplemented", "__import__('numpy').zeros((2, 2))",
    "__import__('numpy').array(['batch <= 8'])", "'given'", "{'input': 'given'}", "{'input': '0 <= input'}",
    "{'input': 'input'}", "{'input': 5}", "{'input': ''}", "{'input': '\\0'}", "{'nope': '0 <= nope'}",
    "{'input': {0: 'batch'}}", "{'input': {'x': 1}}", "{'input': [1]}", "({0: 'batch'},)", "{'input': {0: 5}}",
    "{'input': {99: 'batch'}}", "{'input': {-9: 'batch'}}", "{'input': {0: 'a b'}}", "{'input': {0: object()}}",
    "torch.export.Dim('batch')", "{'input': {0: torch.export.Dim('batch', min=4, max=5)}}",
    "{'input': {0: torch.export.Dim.AUTO}}",
]  # fmt: skip
_ODD = """
class Odd:
    def __bool__(self): raise RuntimeError("bool")
    def __len__(self): raise RuntimeError("len")
    def __iter__(self): raise RuntimeError("iter")
    def __eq__(self, other): raise RuntimeError("eq")
    def __hash__(self): raise RuntimeError("hash")
    def __repr__(self): raise RuntimeError("repr")
    def __getattr__(self, name): raise RuntimeError(name)
class Silent(Exception):
    def __str__(self): raise ValueError("no text")
class Empty(Exception):
    def __str__(self): return ""
class Number(Exception):
    def __str__(self): return 5
"""
_RAISED = [
    "Silent()", "Empty()", "Number()", "ValueError('\\x1b[2J\\0\\r')", "ValueError('x' * 100000)", "ValueError()",
    "KeyError(5)", "AssertionError", "SystemExit(3)", "KeyboardInterrupt()", "StopIteration", "GeneratorExit()",
    "BaseException('x')", "RecursionError()", "MemoryError()", "ExceptionGroup('x', [ValueError('y')])", "OSError(2, 'x')",
    "UnicodeDecodeError('utf8', b'x', 0, 1, 'y')", "SyntaxError('x')", "ImportError()", "ValueError('\\ud800')",
    "torch._dynamo.exc.Unsupported('x')",
]  # fmt: skip
_BODIES = [
    "def f(): return f()\nf()", "import sys; sys.exit(0)", "import nope", "from linear import nope", "x = ", "\tx = 1\n  y",
    "\0", "# -*- coding: nope -*-", "print('x' * 10000)", "import os; os.close(1)", "import sys; sys.stdout = None",
    "del torch", "__name__ = 5", "__file__ = None", "import warnings; warnings.simplefilter('error')",
    "torch.set_default_dtype(torch.float64)",
]  # fmt: skip


def model_file(random: Random) -> str:
    """The text of a model file in which one or two definitions are odd."""
    parts = dict(GOOD)
    extra: list[str] = []
    for _ in range(random.choice([1, 1, 2])):
        kind = random.randrange(6)
        if kind == 0:
            name = random.choice(["model", "inputs", "where", "values", "dynamic", "input_names", "output_names"])
            parts[name] = f"{name} = {random.choice(_VALUES)}"
        elif kind == 1:
            name = random.choice(["where", "values", "dynamic", "input_names", "output_names"])
            parts[name] = f"{name} = {random.choice(_VALUES)}"
        elif kind == 2:
            name = random.choice([
                "model()", "inputs(batch=3)", "inputs()", "inputs(batch)", "inputs(batch=3, *, seq)", "inputs(batch='x')",
                "inputs(batch=0)", "inputs(batch=-1)", "inputs(batch=2**70)", "inputs(*batch)", "inputs(batch=None)",
            ])  # fmt: skip
            parts[name.partition("(")[0]] = f"def {name}: return {random.choice(_VALUES)}"
        elif kind == 3:
            name = random.choice(["model()", "inputs(batch=3)"])
            parts[name.partition("(")[0]] = f"def {name}: raise {random.choice(_RAISED)}"
        elif kind == 4:
            body = random.choice([f"raise {random.choice(_RAISED)}", f"return {random.choice(_VALUES)}"])
            parts["model"] = f"class Net(torch.nn.Module):\n    def forward(self, x): {body}\ndef model(): return Net()"
        else:
            extra.append(random.choice([*_BODIES, f"raise {random.choice(_RAISED)}"]))
    return "\n".join(["import torch", _ODD, *parts.values(), *extra]) + "\n"


_TOML = [
    "0", "-1", "1.5", "nan", "inf", "true", "''", "'x'", "[]", "[1]", "['x']", "{}", "{a = 1}", "1979-05-27", "'1' ",
    "99999999999999999999", "'\\u0000'", "'''\n'''", "['1 <= batch', 5]", "'" + "x" * 5000 + "'", "[" * 50 + "]" * 50,
]  # fmt: skip
_KEYS = [
    "source", "name", "where", "time_limit", "memory_limit", "cpus", "files", "rtol", "atol", "opset", "seed", "budget",
    "nope", "force", "values", "output", "jobs", "dynamic", "providers", "optimize", "strategy", "target",
]  # fmt: skip


def manifest(random: Random) -> str:
    """The text of a manifest. No model in it is valid, so that nothing is exported."""
    kind = random.randrange(8)
    if kind == 0:
        return "a = " + "[" * random.choice([10, 1000, 100_000])
    if kind == 1:
        return "a" + ".a" * random.choice([10, 1000, 20_000]) + " = 1"
    if kind == 2:
        return "[" + "a." * random.choice([10, 1000, 20_000]) + "a]"
    if kind == 3:
        return random.choice(
            [
                "",
                "\0",
                "[[model]]",
                "[model]",
                "model = 5",
                "model = [5]",
                "[[model]]\n[[model]]",
                "defaults = 5",
                "a = " + "{b = " * 5000,
            ]
        )
    lines = []
    if random.random() < 0.5:
        lines += [f"{random.choice(['output', 'jobs', 'nope'])} = {random.choice(_TOML)}"]
    if random.random() < 0.5:
        lines += ["[defaults]", f"{random.choice(_KEYS)} = {random.choice(_TOML)}"]
    lines += [
        "[[model]]",
        f"source = {random.choice(['5', chr(39) * 2, chr(39) + 'no.py' + chr(39), chr(39) + 'a:b:c' + chr(39)])}",
    ]
    for key in random.sample(_KEYS[1:], random.randrange(4)):
        lines += [f"{key} = {random.choice(_TOML)}"]
    return "\n".join(lines)


_ARGUMENTS = [
    "", "x", "-", "--", "\x1b", "é", "0", "-1", "1e999", "nan", "99999999999999999999", "batch=1", "batch=", "=1",
    "batch=-1", "batch=x", "batch=1,batch=2", "batch=٣", "batch=" + "9" * 30, "batch=" + "9" * 5000, "nope=1",
    "seq=99999999999", "batch=1..", "batch=5..1", "x: batch 3", "x:", ":", "x: " + "a " * 100, "60s", "-5s", "1h1h",
    "x" * 5000, ".", "/", "/dev/null", "linear.onnx", "linear.py", "linear.py:model", "linear.py:nope", "hf:.", "hf:",
    "hf:no/such", "timm:", "timm:nope", "a:b", "os:path", "no.such:Class",
]  # fmt: skip
_OPTIONS = [
    "--where", "-w", "--sizes", "--rtol", "--atol", "--seed", "--budget", "--time-limit", "--provider", "--runtime",
    "--values", "--json", "--quiet", "--to", "--at", "--max", "--profile", "--read", "-d", "--dynamic", "--model", "-m",
    "-o", "--output", "--report", "--sign", "--measure", "--count", "--threads", "--seconds", "--task", "--config-only",
    "--plot", "--ort-web", "--opset", "--strategy", "--nope", "-vv",
]  # fmt: skip


def command_line(random: Random) -> list[str]:
    """A command with the files that it needs, and arguments of which some are odd."""
    command = random.choice(
        [
            "inspect",
            "freeze",
            "fix",
            "check",
            "bench",
            "compare",
            "deploy",
            "explain",
            "axes",
            "batch",
            "nope",
            "export",
        ]
    )
    start = {
        "inspect": ["linear.onnx"],
        "freeze": ["linear.onnx", random.choice(_ARGUMENTS), "-o", "one.onnx"],
        "fix": ["static.onnx", "-d", random.choice(["x: batch 3 4", *_ARGUMENTS]), "-o", "fixed.onnx"],
        "check": ["linear.onnx", "-m", "linear.py", "--sizes", "batch=2"],
        "bench": ["linear.onnx", "-m", "linear.py", "--sizes", "batch=2", "--seconds", "0.01s"],
        "compare": ["linear.onnx", "outside.onnx", "-m", "linear.py", "--sizes", "batch=2", "--measure", "0"],
        "deploy": ["linear.onnx", "--to", "triton", "-o", "served"],
        "explain": [random.choice(["AS102", "size-baked-in", *_ARGUMENTS])],
        "axes": ["missing.py"],
        "batch": ["missing.toml"],
        "export": ["missing.py", "-o", "out.onnx"],
        "nope": [],
    }[command]
    arguments = list(start)
    for _ in range(random.choice([1, 1, 2, 3])):
        kind = random.randrange(4)
        if kind == 0 and arguments:
            arguments[random.randrange(len(arguments))] = random.choice(_ARGUMENTS)
        elif kind == 1:
            arguments += [random.choice(_OPTIONS), random.choice(_ARGUMENTS)]
        elif kind == 2:
            arguments.append(random.choice(_OPTIONS))
        elif arguments:
            del arguments[random.randrange(len(arguments))]
    if "--budget" not in arguments and command in ("check", "compare"):
        arguments += ["--budget", "2s", "--time-limit", "10s"]
    return [command, *arguments]


def python_value(random: Random, depth: int = 2) -> Any:
    """An argument that a caller may pass by mistake."""
    import numpy as np
    import torch

    makers: list[Any] = [
        lambda: None, lambda: 5, lambda: -1, lambda: 2**70, lambda: 1.5, lambda: float("nan"), lambda: "x", lambda: "",
        lambda: b"x", lambda: b"", lambda: "a\0b", lambda: object(), list, dict, lambda: (), lambda: set(),
        lambda: {"batch": 2}, lambda: {"batch": "x"}, lambda: {"batch": 2.5}, lambda: {"batch": None}, lambda: {5: 5},
        lambda: {"nope": 1}, lambda: {"batch": -1}, lambda: {"batch": 10**30}, lambda: {"batch": True}, lambda: range(3),
        lambda: type, lambda: print, lambda: Ellipsis, lambda: np.zeros((2, 64), np.float32),
        lambda: np.zeros((0, 64), np.float32), lambda: np.array("x"), lambda: np.array([None]),
        lambda: np.zeros((2, 64), ">f4"), lambda: np.ma.masked_array(np.zeros((2, 64), np.float32)),
        lambda: np.zeros(3, "M8[s]"), lambda: np.zeros(3, [("a", int)]), lambda: np.zeros((2, 64), np.float32)[::-1],
        lambda: torch.zeros(2, 64), lambda: torch.zeros(2, 64, device="meta"), lambda: torch.zeros(2, 64).to_sparse(),
        lambda: torch.zeros(2, 64).to_sparse_csr(),
        lambda: torch.quantize_per_tensor(torch.zeros(2, 64), 0.1, 0, torch.quint8),
        lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)]),
        lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)], layout=torch.jagged),
        lambda: torch.zeros(2, 64, requires_grad=True), lambda: torch.zeros(2, 64, dtype=torch.complex64).conj(),
        lambda: torch.zeros(2, 64, dtype=torch.bfloat16), lambda: torch.zeros(2, 64).to_mkldnn(),
        lambda: torch.zeros(2, 64, dtype=torch.float8_e4m3fn),
        lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.zeros(2, 64)), lambda: torch.nn.Linear(4, 2),
        lambda: torch.zeros(2, 64, dtype=torch.complex64), lambda: torch._efficientzerotensor(2, 64),
        lambda: torch.zeros(2, 64).expand(2, 64), lambda: torch.nn.Parameter(torch.zeros(2, 64)), lambda: _Odd(),
        lambda: _OddArray(), lambda: _OddMapping(),
    ]  # fmt: skip
    if depth and random.random() < 0.15:
        inner = [python_value(random, depth - 1) for _ in range(random.randrange(3))]
        return random.choice([inner, tuple(inner), {f"k{number}": each for number, each in enumerate(inner)}])
    return random.choice(makers)()


class _Odd:
    def __len__(self) -> int:
        raise RuntimeError("len")

    def __iter__(self):
        raise RuntimeError("iter")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class _OddArray:
    def __array__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("array")


class _OddMapping(dict):  # type: ignore[type-arg]
    def items(self):
        raise RuntimeError("items")

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("item")
