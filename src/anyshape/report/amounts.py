"""Amounts of bytes, as people read them."""

from __future__ import annotations

_UNITS = ("kB", "MB", "GB", "TB")


def format_bytes(count: int) -> str:
    """`12 bytes`, `1.23 MB`, `498 MB`: three digits, in powers of 1000, as `memory_limit` of a batch takes them."""
    if count < 1000:
        return f"{count} bytes"
    value, unit = count / 1000, 0
    while value >= 999.5 and unit < len(_UNITS) - 1:  # 999.6 would be written as 1e+03
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}" if value < 999.5 else f"{value:.0f} {_UNITS[unit]}"
