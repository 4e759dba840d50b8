"""The rung that learns one program from concrete traces: every number that differs becomes an expression of the dims."""

from anyshape.capture.generalized.generalized_rung import capture_generalized

__all__ = ["capture_generalized"]
