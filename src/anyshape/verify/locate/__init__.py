"""Where in the file it goes wrong: the first node whose value differs, its line, the frozen size, and whose fault it is."""

from anyshape.verify.locate.locate_fault import locate

__all__ = ["locate"]
