"""All rows of the table."""

from __future__ import annotations

import broadcasts
import convolutions
import promises
import tables
import values
import views
from rows import Row

ROWS: tuple[Row, ...] = tuple(
    row for kind in (views, convolutions, tables, broadcasts, promises, values) for row in kind.ROWS
)
