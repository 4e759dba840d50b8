"""Damaged ONNX files: bytes, protobuf fields, contracts, external data, and paths that are no regular file."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import onnx
from google.protobuf.message import Message

KEY = "anyshape.contract"
TEXTS = [
    "",
    "\0",
    "a\0b",
    "x" * 5000,
    "../secret",
    "/etc/passwd",
    "é\u202e",
    "\x1b[31m",
    "1",
    "-1",
    "nan",
    "batch",
    "batch*batch",
]
NUMBERS = [0, 1, -1, 2, 7, 64, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**63 - 1, -(2**63)]
JSON_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**40, 1.5, 1e308, "", "x", "hello", "\0", "x" * 5000, "nan", "batch//0",
    "0 <= x", "batch >= 1 and", "((((((((1", "n*n*n*n == 3", "zz + 1", "__import__('os')", [], [1], [[]], ["x"], [None],
    {}, {"x": 1}, {"x": "hello"}, {"version": 1}, [{}], [{"a": []}],
]  # fmt: skip


def damage_bytes(data: bytes, random: Random) -> bytes:
    """A few bytes changed, removed, inserted or repeated, or the end cut off."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 5, 20])):
        at = random.randrange(max(1, len(changed)))
        kind = random.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes([random.randrange(256)])
        elif kind == 1:
            del changed[at : at + random.choice([1, 2, 8, 64])]
        elif kind == 2:
            changed[at:at] = random.randbytes(random.choice([1, 2, 8, 64]))
        elif kind == 3:
            changed[at:at] = changed[at : at + random.choice([4, 32])]
        else:
            del changed[at:]
    return bytes(changed)


def damage_fields(model: onnx.ModelProto, random: Random) -> None:
    """A few fields of the message, at any depth, cleared, repeated, exchanged or set to an unusual value."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        messages = list(_messages(model))
        message = random.choice(messages)
        _damage(message, random, messages)


def _messages(message: Message):
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if _is_repeated(field) else [value]:
                yield from _messages(each)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _damage(message: Any, random: Random, others: list[Message]) -> None:
    present = [field for field, _ in message.ListFields()]
    fields = list(message.DESCRIPTOR.fields) if not present or random.random() < 0.2 else present
    field = random.choice(fields)
    if random.random() < 0.2:
        message.ClearField(field.name)
        return
    if _is_repeated(field):
        values = getattr(message, field.name)
        kind = random.randrange(4)
        if kind == 0 and len(values):
            del values[random.randrange(len(values))]
        elif kind == 1 and len(values):
            values.extend([random.choice(list(values))])
        elif field.message_type is not None:
            alike = [each for each in others if each.DESCRIPTOR is field.message_type]
            copied = random.choice(alike).SerializePartialToString() if alike and random.random() < 0.7 else b""
            values.add().MergeFromString(copied)
        elif len(values) and kind == 2:
            values[random.randrange(len(values))] = _scalar(field, random)
        else:
            values.append(_scalar(field, random))
    elif field.message_type is not None:
        alike = [each for each in others if each.DESCRIPTOR is field.message_type and each is not message]
        if alike and random.random() < 0.7:
            # By way of bytes: a message cannot be copied into its own part.
            getattr(message, field.name).MergeFromString(random.choice(alike).SerializePartialToString())
        else:
            getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _scalar(field, random))


def _scalar(field: Any, random: Random) -> Any:
    kind = field.cpp_type
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return random.choice([0.0, 1.0, -1.0, 1e30, float("nan"), float("inf")])
    if kind == field.CPPTYPE_STRING:
        text = random.choice([*TEXTS, "x", "y", "input", "output"])
        return text.encode() if field.type == field.TYPE_BYTES else text
    if kind == field.CPPTYPE_ENUM:
        return random.choice([value.number for value in field.enum_type.values])
    small = kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32)
    unsigned = kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    number = random.choice([*NUMBERS, *range(30), 99, 1000])
    bits = 32 if small else 64
    number &= (1 << bits) - 1
    return number if unsigned or number < 1 << (bits - 1) else number - (1 << bits)


def damage_contract(model: onnx.ModelProto, random: Random) -> None:
    """A few places of the contract replaced, removed or added, or its text cut."""
    entry = next((each for each in model.metadata_props if each.key == KEY), None)
    if entry is None:
        entry = model.metadata_props.add(key=KEY, value="{}")
    if random.random() < 0.1:
        entry.value = random.choice(
            ["", "{", "[" * 100_000, '{"a":' * 50_000, "1" * 5000, entry.value[:-3], entry.value * 2]
        )
        return
    plain = json.loads(entry.value)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        _damage_json(plain, random)
    entry.value = json.dumps(plain)


OPTIONAL = ["values", "state", "refused", "needs", "random", "target", "digest", "rule"]


def _damage_json(plain: Any, random: Random) -> None:
    places = [(plain, key) for key in plain] if isinstance(plain, dict) else []
    if isinstance(plain, dict) and random.random() < 0.3:
        plain[random.choice(OPTIONAL)] = copy.deepcopy(_json_value(random))
        return
    inner = list(_places(plain))
    owner, key = random.choice(inner if inner and random.random() < 0.8 else places or [(plain, "x")])
    kind = random.randrange(4)
    if kind == 0 and isinstance(owner, dict):
        owner.pop(key, None)
    elif kind == 1 and isinstance(owner, list):
        owner.append(copy.deepcopy(_json_value(random)))
    else:
        owner[key] = copy.deepcopy(_json_value(random))  # JSON_VALUES stay as they are


def _json_value(random: Random) -> Any:
    state = {"name": "s", "input": "x", "output": "y", "dtype": "float32", "shape": [1, "batch"], "data": ""}
    if random.random() < 0.2:
        state[random.choice(list(state))] = random.choice(JSON_VALUES)
        return [state]
    if random.random() < 0.2:
        return {random.choice(["x", "input", "ids", "batch"]): random.choice(JSON_VALUES)}
    return random.choice(JSON_VALUES)


def _places(plain: Any):
    for key in list(plain) if isinstance(plain, dict) else range(len(plain)) if isinstance(plain, list) else ():
        yield plain, key
        yield from _places(plain[key])


def damage_external(model: onnx.ModelProto, folder: Path, random: Random) -> None:
    """Entries of external data that lead elsewhere, or to other bytes."""
    tensors = list(model.graph.initializer)
    tensor = random.choice(tensors)
    if not tensor.external_data:
        (folder / "w.data").write_bytes(tensor.raw_data + bytes(16))
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.data")
    entries = {each.key: each.value for each in tensor.external_data}
    kind = random.randrange(4)
    if kind < 2:
        entries["location"] = _location(folder, random)
    if kind in (1, 2):
        key = random.choice(["offset", "length"])
        entries[key] = random.choice(
            ["-1", "x", "", "1.5", str(2**63), str(2**70), "1" * 5000, "3", "0", "4096", " 8", "\0", "٣"]
        )
    if kind == 3:
        entries[random.choice(["checksum", "location", "zz", "", "offset"])] = random.choice(TEXTS)
    if random.random() < 0.1:
        entries.pop("location", None)
    del tensor.external_data[:]
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    if random.random() < 0.1:
        damage_fields(model, random)


def _location(folder: Path, random: Random) -> str:
    kind = random.randrange(12)
    if kind == 0:
        os.mkfifo(folder / "fifo")
        return "fifo"
    if kind == 1:
        (folder / "sub").mkdir(exist_ok=True)
        return "sub"
    if kind == 2:
        (folder / "link").symlink_to("../outside/secret.bin")
        return "link"
    if kind == 3:
        (folder / "loop").symlink_to("loop")
        return "loop"
    if kind == 4:
        (folder / "device").symlink_to("/dev/zero")
        return "device"
    if kind == 5:
        (folder / "hard").hardlink_to(folder.parent / "outside" / "secret.bin")
        return "hard"
    return random.choice(
        ["/dev/zero", "../outside/secret.bin", "a\0b", "x" * 5000, "", ".", "..", "/etc/passwd", "w.data/", "no.data",
         "w.data\n", "//w.data", "C:\\w.data", "sub/../w.data", "model.onnx", "~/w.data", "*ORT_MEM_ADDR*"]
    )  # fmt: skip


def no_regular_file(path: Path, random: Random) -> str:
    """The path of something else than a file."""
    kind = random.randrange(9)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.symlink_to(path.name)
    elif kind == 4:
        path.write_bytes(b"")
    elif kind == 5:
        path.write_bytes(
            random.choice([b"<html>", b"PK\x03\x04", b"\x80\x04.", b"\x08", b"\x08\x08" * 1000, random.randbytes(300)])
        )
    else:
        return random.choice(
            [
                "",
                ".",
                "/",
                "/dev/null",
                "/dev/stdin",
                "/dev/tty",
                "a\0b",
                "x" * 5000,
                "no/such/model.onnx",
                "~",
                "model.onnx/",
            ]
        )
    return str(path)


def grow(model: onnx.ModelProto, random: Random) -> None:
    """Structures that no exporter writes: recursive and doubling functions, deep graphs, doubled names, unknown types."""
    kind = random.randrange(9)
    helper = onnx.helper
    if kind == 0:  # a function that calls itself, or another that calls it back
        names = ["f", "g"] if random.random() < 0.5 else ["f", "f"]
        for name, called in zip(dict.fromkeys(names), reversed(names), strict=False):
            node = helper.make_node(called, ["a"], ["b"], domain="own")
            model.functions.append(
                helper.make_function("own", name, ["a"], ["b"], [node], [helper.make_opsetid("own", 1)])
            )
        _call(model, "f")
    elif kind == 1:  # 2**40 nodes when it is inlined
        for level in range(40):
            called = f"f{level + 1}" if level < 39 else "Relu"
            domain = "own" if level < 39 else ""
            nodes = [
                helper.make_node(called, ["a"], ["m"], domain=domain),
                helper.make_node(called, ["m"], ["b"], domain=domain),
            ]
            opsets = [helper.make_opsetid("own", 1), helper.make_opsetid("", 18)]
            model.functions.append(helper.make_function("own", f"f{level}", ["a"], ["b"], nodes, opsets))
        _call(model, "f0")
    elif kind == 2:  # outputs of one name
        model.graph.output.append(model.graph.output[0])
    elif kind == 3:
        model.graph.input.append(model.graph.input[0])
    elif kind == 4:
        model.graph.node.extend(list(model.graph.node))
    elif kind == 5:
        random.choice([*model.graph.input, *model.graph.output]).type.tensor_type.elem_type = random.choice(
            [0, 26, 99, 1000, 8, 16, 20]
        )
    elif kind == 6 and model.graph.initializer:
        tensor = random.choice(list(model.graph.initializer))
        tensor.data_type = random.choice([0, 26, 99, 8, 16, 22, 21])
    elif kind == 7:
        dim = random.choice([*model.graph.input, *model.graph.output]).type.tensor_type.shape.dim.add()
        dim.dim_value = random.choice(NUMBERS)
    else:  # deeper than any exporter nests, within what protobuf reads
        graph = helper.make_graph(
            [helper.make_node("Identity", [model.graph.input[0].name], ["deep"])],
            "deep",
            [],
            [helper.make_tensor_value_info("deep", 1, None)],
        )
        for _ in range(random.choice([5, 25, 31])):
            node = (
                helper.make_node("If", ["c"], ["deep"], then_branch=graph, else_branch=graph)
                if random.random() < 0.02
                else helper.make_node("If", ["c"], ["deep"], then_branch=graph)
            )
            graph = helper.make_graph([node], "deep", [], [helper.make_tensor_value_info("deep", 1, None)])
        model.graph.node.extend(graph.node)


def _call(model: onnx.ModelProto, name: str) -> None:
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    model.graph.node.append(onnx.helper.make_node(name, [model.graph.input[0].name], ["called"], domain="own"))
    model.graph.output.append(onnx.helper.make_tensor_value_info("called", 1, None))
