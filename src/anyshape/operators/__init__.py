"""Operators of our own, `torch.ops.anyshape.*`: what a capture records whole and a translation knows by name.

Importing a module of this package registers its operators with torch; Python's import cache makes that happen once.
A real kernel is torch's own function, so that a captured program still runs; a fake kernel gives the symbolic shapes.
`registered` is about the user's own operators, and imports nothing of torch.
"""
