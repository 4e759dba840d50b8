"""Around the search for edits: sizes at which the module is called; edits as new lines, as a unified diff, and as
findings.
"""

from __future__ import annotations

import difflib
import os
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from anyshape.domain import Domain, Sizes
from anyshape.domain.telling_points import primes_between
from anyshape.findings import Finding, Severity, Source
from anyshape.modules.user_code import make_source
from anyshape.records.runs import SourceRepair
from anyshape.repair.source.source_sites import Site

_MOST = 14
_PRIMES = primes_between(7, 47)
_YOURSELF = "change the line yourself, or give the module as it should be: repaired=..."


def probe_sizes(
    domain: Domain,
    own: Sizes,
    names: Sequence[str] | None = None,
    multiples: Collection[str] = (),
    smaller: Collection[str] = (),
) -> list[dict[str, int]]:
    """Sizes of the domain other than the example's; no dim is 1, where tensors broadcast.

    Only `names` vary, all dims by default. Some dims are multiples of their size in the example, others only smaller.
    """
    limited = {name: [2 * own[name], 3 * own[name]] for name in multiples}
    limited |= {name: [size for size in (own[name] - 1, own[name] // 2, 2) if size > 1] for name in smaller}
    found: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
    for sizes in _wished(domain, own, domain.names if names is None else names, limited):
        is_new = any(sizes[name] != own[name] for name in domain.names)
        if is_new and domain.contains(sizes):
            found.setdefault(tuple(sizes.items()), sizes)
    return list(found.values())[:_MOST]


def _wished(
    domain: Domain, own: Sizes, names: Sequence[str], limited: Mapping[str, Sequence[int]]
) -> Iterator[dict[str, int]]:
    free = [name for name in names if name not in limited]
    for name in names:
        for size in limited.get(name, (own[name] + 1, 2 * own[name] + 1, 2 * own[name])):
            yield {**own, name: size}
    far = [prime for prime in _PRIMES if prime not in own.values()]
    others = {**own, **{name: limited[name][0] for name in names if limited.get(name)}}
    yield {**others, **{name: far[index % len(far)] for index, name in enumerate(free)}}
    yield {**others, **{name: own[name] + 1 + index for index, name in enumerate(free)}}
    for name in free:
        for size in (own[name] - 1, own[name] + 2, own[name] + domain.dim(name).multiple):
            if size > 1:
                yield {**own, name: size}
    for step in (1, 2, 3):
        yield {**others, **{name: own[name] + step * domain.dim(name).multiple for name in free}}


Texts = Mapping[Site, str]


def line_edits(texts: Texts) -> list[tuple[Source, str]]:
    """Each line that changes, with its new text."""
    found = []
    for (file, number), sites in _by_line(texts).items():
        with tokenize.open(file) as stream:
            line = stream.readlines()[number - 1].rstrip("\n")
        found.append((make_source(file, number), _replaced(line, sites, texts).strip()))
    return found


def unified_diff(texts: Texts) -> tuple[str, str]:
    """The diff, and the folder in which `git apply` applies it: the current one, if all files lie in it."""
    files = sorted({site.file for site in texts})
    here = Path.cwd()
    is_here = all(Path(file).resolve().is_relative_to(here) for file in files)
    folder = here if is_here else Path(os.path.commonpath([Path(file).resolve().parent for file in files]))
    parts = [_diff_of(file, Path(file).resolve().relative_to(folder).as_posix(), texts) for file in files]
    return "".join(parts), "" if is_here else str(folder)


def _diff_of(file: str, name: str, texts: Texts) -> str:
    with Path(file).open("rb") as raw:
        encoding, _ = tokenize.detect_encoding(raw.readline)
    with Path(file).open(encoding=encoding, newline="") as stream:
        before = stream.readlines()
    after = list(before)
    for (changed, number), sites in _by_line(texts).items():
        if changed == file:
            after[number - 1] = _replaced(before[number - 1], sites, texts)
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _by_line(texts: Texts) -> dict[tuple[str, int], list[Site]]:
    found: dict[tuple[str, int], list[Site]] = {}
    for site in texts:
        found.setdefault((site.file, site.line), []).append(site)
    return found


def _replaced(line: str, sites: Iterable[Site], texts: Texts) -> str:
    raw = line.encode()
    for site in sorted(sites, key=lambda site: -site.start):  # from the right: columns to the left stay
        raw = raw[: site.start] + texts[site].encode() + raw[site.end :]
    return raw.decode()


def module_repaired(repair: SourceRepair) -> Finding:
    """AS506: the file is of the edited source."""
    lines = "\n".join(str(edit) for edit in repair.edits)
    where = f" in {repair.folder}" if repair.folder else ""
    return Finding(
        code="AS506",
        name="module-repaired",
        severity=Severity.WARNING,
        what=f"the model answers at one size; the file is of its source with {_count(len(repair.edits))}.",
        excerpt=lines,
        where=repair.edits[0].source,
        why=";\n".join(repair.evidence) + ".",
        fix=f"apply result.repair.diff (--write-diff FILE) to your source with `git apply`{where}:\n{repair.diff.rstrip()}",
    )


def _count(edits: int) -> str:
    return "1 edit" if edits == 1 else f"{edits} edits"


def not_repaired(where: Source | None, why: str, suggestion: str = "") -> Finding:
    """AS507: no edit was found that makes the module follow its sizes."""
    return Finding(
        code="AS507",
        name="not-repaired",
        what="no edit of the source was found that is sure to be right.",
        where=where,
        why=why,
        fix=suggestion or _YOURSELF,
        alternative=_YOURSELF if suggestion else "",
        is_fix_untried=False,
    )


def source_readings(where: Source, text: str, readings: Sequence[str], why: str) -> Finding:
    """AS502: what a line of the source has at the example's size can be read in several ways."""
    return Finding(
        code="AS502",
        name="several-readings",
        what=f"{text!r} has {len(readings)} readings that fit: {' or '.join(readings)}.",
        where=where,
        why=why,
        fix="write the one that you mean into the line.",
        alternative="give an example whose sizes differ from all other numbers, or the module as it should be: repaired=...",
    )


def example_too_small(dim: str, size: int) -> Finding:
    """AS503: a dim so small in the example that its size has no meaning."""
    return Finding(
        code="AS503",
        name="size-too-small",
        what=f"dim {dim!r} has the size {size} in the example, which other numbers have as well.",
        why="the rows along it are not independent, so that nothing confirms a reading.",
        fix=f"write the model for a larger {dim}, or give the module as it should be: repaired=...",
    )


def source_repair_differs(where: Source | None, why: str) -> Finding:
    """AS504: the evidence is against the edits."""
    return Finding(
        code="AS504",
        name="repair-differs",
        what="the edited source does not answer as it should.",
        where=where,
        why=why,
        fix=_YOURSELF,
    )
