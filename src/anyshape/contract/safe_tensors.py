"""The tensors of a model of unknown origin: whether each holds what it declares, in the model or in a file beside it."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.findings import Finding, UsageError

if TYPE_CHECKING:
    import onnx

_DIGITS = re.compile(r"[0-9]{1,18}")
_LONGEST_NAME = 4096
_LONGEST_SHOWN = 60
_PACKED = {4: 2, 2: 4}  # elements in one number of int32_data, by their bits


@dataclass(frozen=True)
class Beside:
    """The files beside a model: `name` is how messages name it, `path` where it lies; without a path, the working folder."""

    name: str
    path: Path | None = None

    def folders(self) -> tuple[Path, ...]:
        """The model's folder, and that of the file that a link leads to: models in Hugging Face's cache are links."""
        real = [] if self.path is None else [Path(os.path.realpath(self.path)).parent]
        return (Path() if self.path is None else self.path.parent, *real)

    def holds(self, target: Path) -> bool:
        """Whether the file lies in one of these folders, where no link leads out of them."""
        return any(Path(os.path.realpath(folder)) in target.parents for folder in self.folders())


def check_tensor(tensor: onnx.TensorProto, beside: Beside) -> str | None:
    """The place of data that is not there. Raises UsageError for a tensor that does not hold what it declares."""
    import onnx

    texts = (tensor.name, *(part for entry in tensor.external_data for part in (entry.key, entry.value)))
    if any(type(text) is not str for text in texts):  # protobuf gives what is no UTF-8 as bytes
        raise UsageError(unsafe(beside.name, "a name of one of its tensors is no text.", "names are UTF-8."))
    name, called = beside.name, f"the tensor {short(tensor.name)}"
    if any(size < 0 for size in tensor.dims):
        raise UsageError(unsafe(name, f"{called} has a negative size.", "no tensor has."))
    bits = known_bits().get(tensor.data_type)
    if not bits:
        raise UsageError(
            unsafe(name, f"{called} has the unknown element type {tensor.data_type}.", "a newer ONNX may have it.")
        )
    count = prod(tensor.dims)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        if tensor.data_type == onnx.TensorProto.STRING:
            raise UsageError(unsafe(name, f"{called} has texts in another file.", "texts lie in the model itself."))
        return _check_external(tensor, beside, -(-count * bits // 8))
    if tensor.raw_data and tensor.data_type != onnx.TensorProto.STRING:
        held, needed, unit = len(tensor.raw_data), -(-count * bits // 8), "bytes"
    else:
        held, needed, unit = len(_numbers_of(tensor)), _needed_numbers(tensor.data_type, bits, count), "elements"
    if held != needed:
        why = f"the file holds {held} {unit} of {needed}."
        raise UsageError(unsafe(name, f"{called} is declared with {many(tensor.dims)} elements.", why))
    return None


def _numbers_of(tensor: onnx.TensorProto) -> list[object]:
    """The content of a tensor that is not stored as bytes, from the field of its type."""
    import onnx

    kinds = onnx.TensorProto
    fields: dict[int, str] = {
        kinds.FLOAT: "float_data",
        kinds.COMPLEX64: "float_data",
        kinds.DOUBLE: "double_data",
        kinds.COMPLEX128: "double_data",
        kinds.INT64: "int64_data",
        kinds.UINT32: "uint64_data",
        kinds.UINT64: "uint64_data",
        kinds.STRING: "string_data",
    }
    found: list[object] = getattr(tensor, fields.get(tensor.data_type, "int32_data"))
    return found


def _needed_numbers(data_type: int, bits: int, count: int) -> int:
    import onnx

    if data_type in (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128):
        return 2 * count
    return -(-count // _PACKED.get(bits, 1))


@cache
def known_bits() -> dict[int, int]:
    """The bits of an element of each type that onnx and onnx-ir both have; a text counts as one."""
    import onnx
    import onnx_ir as ir

    known = set(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
    common = (each for each in ir.DataType if each.value in known)
    return {each.value: 1 if each is ir.DataType.STRING else int(each.bitwidth) for each in common}


def _check_external(tensor: onnx.TensorProto, beside: Beside, needed: int) -> str | None:
    name, called = beside.name, f"the weights {short(tensor.name)}"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    named = [folder / location for folder in beside.folders()] if _is_path(location) else []
    inside = [path for path in named if beside.holds(Path(os.path.realpath(path)))]
    # `x/../../m/w.data` may lie inside, and lead out of another folder that the file is copied to.
    if not inside or Path(location).is_absolute() or ".." in Path(location).parts or location.endswith("/"):
        raise UsageError(
            unsafe(
                name,
                f"{called} lie at {short(location)}, outside the model's folder.",
                "a model reads nothing but what lies beside it.",
            )
        )
    numbers = {key: _whole(entries.get(key, "")) for key in ("offset", "length")}
    for key, number in numbers.items():
        if number is None:
            what = f"{called} have the {key} {short(entries[key])}."
            raise UsageError(unsafe(name, what, "it is a number of bytes."))
    try:
        found = next((found for found in map(_status, inside) if found is not None), None)
    except OSError as error:
        what = f"{called} lie at {short(location)}, which cannot be read."
        raise UsageError(unsafe(name, what, f"the system says: {error.strerror}.")) from error
    if found is None:
        return location
    if not stat.S_ISREG(found.st_mode):
        what = f"{called} lie at {short(location)}, which is no regular file."
        raise UsageError(unsafe(name, what, "weights lie in files."))
    length, offset = numbers["length"], numbers["offset"] or 0
    if length and length != needed:
        what = f"{called} have the length {length}."
        raise UsageError(unsafe(name, what, f"a tensor of {many(tensor.dims)} elements has {needed} bytes."))
    if offset + needed > found.st_size:
        raise UsageError(
            unsafe(
                name,
                f"{called} reach beyond the end of {short(location)}.",
                "that file was cut short, or belongs to another model.",
            )
        )
    return None


def _is_path(location: str) -> bool:
    """Whether a location can be the path of a file."""
    return "\0" not in location and 0 < len(location) <= _LONGEST_NAME


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _whole(text: str) -> int | None:
    return int(text) if _DIGITS.fullmatch(text) else 0 if not text else None


def many(sizes: object) -> str:
    """Sizes in a message."""
    return " x ".join(map(str, sizes)) or "1"  # type: ignore[call-overload]


def short(text: str) -> str:
    """A text of the file in a message, not longer than a line."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…")


def unsafe(name: str, what: str, why: str) -> Finding:
    """AS505: the file is not what an exporter writes."""
    return Finding(
        code="AS505",
        name="unsafe-file",
        what=f"{name!r} is not opened: {what}",
        why=why,
        fix="nothing was read beyond the file itself, and nothing was written. Use a file that an exporter wrote.",
    )
