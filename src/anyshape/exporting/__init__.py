"""The story of an export: the pipeline, the ladder of rungs, and what is decided between the stages."""
