"""Names of resampling methods, and a class without content."""

import enum


class Resampling(enum.IntEnum):
    NEAREST = 0
    LANCZOS = 1
    BILINEAR = 2
    BICUBIC = 3
    BOX = 4
    HAMMING = 5


class Image:
    """Never made here."""
