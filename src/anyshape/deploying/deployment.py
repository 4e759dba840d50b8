"""What every target is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyshape.domain import Domain, Sizes
from anyshape.findings import Finding
from anyshape.records.contract import Contract

DimRanges = Mapping[str, tuple[int, int]]
Tell = Callable[[str, int, int], None]
CompareIr = Callable[[Path], int]
"""At how many sizes a saved form of the file answers as its PyTorch model; raises PromiseBroken where it does not."""


@dataclass(frozen=True, kw_only=True)
class DeployOptions:
    """`at` are usual sizes, `largest` ends of dims, `profiles` ranges of dims; `ort_web` is a folder of onnxruntime-web."""

    at: tuple[Sizes, ...] = ()
    largest: Sizes = field(default_factory=dict)
    profiles: tuple[DimRanges, ...] = ()
    ort_web: Path | None = None


@dataclass(frozen=True, kw_only=True)
class DeployRequest:
    """One file to deploy. `domain` is that of its contract, cut at the largest sizes; `compare` is there with a model."""

    path: Path
    contract: Contract
    domain: Domain
    options: DeployOptions
    tell: Tell
    compare: CompareIr | None = None


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a target made: lines for a person, facts for JSON, findings that stop nothing."""

    lines: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Target:
    """`build` writes into an empty folder. It raises UsageError or PromiseBroken where there is nothing to be kept.

    `takes` has the options that only some targets have: profiles, model, ort_web.
    """

    name: str
    title: str
    build: Callable[[DeployRequest, Path], Built]
    takes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A folder that was written for a target."""

    target: str
    folder: Path
    files: tuple[str, ...]
    lines: tuple[str, ...]
    facts: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        lines = [f"deployed: {self.folder} for {self.target}", *(f"  {line}" for line in self.lines)]
        return "\n\n".join(["\n".join(lines), *map(str, self.findings)])
