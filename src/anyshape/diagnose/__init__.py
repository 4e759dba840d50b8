"""Stage: facts of the other stages -> findings in the user's own words, one file for each kind of cause.

Here are the words that several files share: sizes, dims and their ranges as the user wrote them.

Files, in the order in which data flows:

    refusals              the module refuses sizes of the domain
    one_size              the module works at one size of a dim (AS102)
    value_findings        values that decide or are not taken; outputs that are not as declared
    state_and_randomness  models that keep state or draw numbers
    captures              no capture, or no translation: which line, which operator
    consent               smaller promises: lowered by the user, or by time, memory and 64 bits
    differences           the file's outputs differ from the module's; RULES: the rules about a compared file, in order
    comparison_notes      notes on what was compared
"""

from __future__ import annotations

from collections.abc import Mapping

from anyshape.domain import Dim, Domain, format_sizes


def say_sizes(sizes: Mapping[str, int]) -> str:
    """`batch=1, seq=7`; `these inputs` where nothing varies."""
    return format_sizes(sizes) or "these inputs"


def say_range(dim: Dim) -> str:
    """`1..64`, `1 and more`, `32..96 in steps of 32`."""
    ends = f"{dim.min} and more" if dim.max is None else f"{dim.min}..{dim.max}"
    return ends if dim.multiple == 1 else f"{ends} in steps of {dim.multiple}"


def say_promise(domain: Domain, name: str) -> str:
    """`promised as 1..64` for a range that the user wrote, `dynamic` for a bare name."""
    dim = domain.dim(name)
    return f"promised as {say_range(dim)}" if dim.declared else "dynamic"


def replay_option(sizes: Mapping[str, int]) -> str:
    """`batch=1,seq=7`, as `--sizes` takes it."""
    return format_sizes(sizes, ",")


def first_line(message: str, limit: int = 160) -> str:
    """The first line of a foreign message that is not empty, cut to a length that fits a log."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"
