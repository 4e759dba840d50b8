"""Whether this run is a thorough one: all rows of long tables, and more examples of each property."""

from __future__ import annotations

import os

IS_THOROUGH = os.environ.get("ANYSHAPE_THOROUGH") == "1"
