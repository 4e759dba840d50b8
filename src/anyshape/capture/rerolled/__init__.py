"""The rung that rolls Python loops up again: traces that grow with a dim contain a repeated block."""

from anyshape.capture.rerolled.rerolled_rung import capture_rerolled

__all__ = ["capture_rerolled"]
