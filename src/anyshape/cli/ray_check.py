"""`check --ray`: the comparisons of a file with its model in shares, each on a worker of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyshape.records.verdict import Verdict
    from anyshape.sources import SourceOptions
    from anyshape.verify import VerifyOptions, VerifyRequest


@dataclass(frozen=True, kw_only=True)
class CheckCall:
    """What a worker needs for its share; paths are those of the worker."""

    file: str
    model: str
    where: tuple[str, ...]
    values: str | None
    source: SourceOptions
    options: VerifyOptions
    sign: bool


def compare_share(call: CheckCall, share: tuple[int, int]) -> Verdict:
    """On a worker: the verdict of a share. The plan is made again there, and is the same."""
    from anyshape.checking.compare_file import compare_file
    from anyshape.contract.metadata import find_contract
    from anyshape.inputs import declare
    from anyshape.intercept.turns import exporting
    from anyshape.sources import load_part

    loaded = load_part(call.model, Path(call.file), call.source)
    path, options = Path(call.file), replace(call.options, share=share)
    with exporting(loaded.model, _ignore) as module:
        rules = [*loaded.where, *call.where]
        given = call.values or loaded.values
        declared = declare(module, loaded.inputs, dynamic=loaded.dynamic, where=rules, values=given)
        contract = find_contract(path) if call.sign else None
        declared = replace(declared, domain=contract.domain) if contract is not None else declared
        return compare_file(path, module, declared, options, None, _ignore, call.model)[0]


def _ignore(stage: str, done: int, total: int) -> None: ...


def comparing_on_ray(
    address: str, call: CheckCall, tell: Callable[[str, int, int], None]
) -> Callable[[VerifyRequest], Verdict]:
    """A function that makes the comparisons of a request on a cluster. Samples of random models are compared here, whole."""
    from anyshape.batch.jobs import Job
    from anyshape.batch.ray_shares import spread
    from anyshape.batch.travelling_files import pack
    from anyshape.verify import verify
    from anyshape.verify.joining import join_verdicts

    data = Path(f"{call.file}.data")
    travelling = pack(Job(source=call.model, files=(call.file, *([str(data)] if data.is_file() else []))))

    def compare(request: VerifyRequest) -> Verdict:
        planned = [*request.sizes, *request.once]
        if request.options.is_random or not planned:
            return verify(request)
        there = replace(call, model=travelling.job.source, file=travelling.place_of(Path(call.file)))
        shares = spread(
            address,
            travelling,
            compare_share,
            there,
            most=len(planned),
            tell=lambda done, total: tell("comparing on the cluster, shares", done, total),
        )
        return join_verdicts(shares, planned)

    return compare
