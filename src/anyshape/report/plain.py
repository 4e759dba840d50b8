"""Results as plain dicts, lists, strings and numbers: what `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anyshape.findings import Finding
from anyshape.records.export import Export
from anyshape.records.verdict import Verdict, as_plain


def export_as_plain(result: Export, contract: Any) -> dict[str, Any]:
    """An export; `contract` is the contract's own JSON form."""
    return {
        "kept": result.is_kept,
        "path": str(result.path) if result.path is not None else None,
        "strategy": result.strategy,
        "device": result.device,
        "seconds": round(result.seconds, 3),
        **(
            {} if result.run is None else {"stages": {each.stage: round(each.seconds, 3) for each in result.run.stages}}
        ),
        "contract": contract,
        "verdict": as_plain(result.verdict),
        "findings": findings_as_plain(result.findings),
        **({"repair": result.repair.as_plain()} if result.repair is not None else {}),
    }


def check_as_plain(verdict: Verdict, findings: Iterable[Finding], path: str, signed: bool = False) -> dict[str, Any]:
    """A check of an existing file; `signed`: its contract is about the file as it is now."""
    found = findings_as_plain(findings)
    kept = all(finding["severity"] != "error" for finding in found)
    return {"kept": kept, "path": path, "signed": signed, "verdict": as_plain(verdict), "findings": found}


def findings_as_plain(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings with their facts, and the text that a person would see."""
    return [{**as_plain(finding), "text": str(finding)} for finding in findings]
