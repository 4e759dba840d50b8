"""Running a file behind its contract: `anyshape.load`."""
