"""Messages without the folders of the machine that they were made on: `/home/me/x/m.onnx` is `m.onnx`.

Names of nodes have slashes as well (`/layers.0/Reshape`), and stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.+-]+/)+(?=[\w.+-]+\.(?:py|onnx|data|h|cc|cpp)\b)")


def plain(value: Any) -> Any:
    """The same rows and figures, their texts without folders."""
    if isinstance(value, str):
        return _FOLDERS.sub("", value)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value
