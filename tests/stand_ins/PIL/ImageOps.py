"""Imported by timm, and not used by its models."""
