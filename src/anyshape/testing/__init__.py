"""anyshape in the user's own tests."""
