"""Models by their names: `hf:DIR`, `timm:NAME`, `model.py`, `package.module:Class`, or what a package registers.

from anyshape import sources
sources.export("hf:DIR", "out")
"""

from anyshape.sources.exporting_sources import SourceExport, export
from anyshape.sources.resolving import load_part, resolve
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

__all__ = ["ModelSource", "Part", "SourceExport", "SourceKind", "SourceOptions", "export", "load_part", "resolve"]
