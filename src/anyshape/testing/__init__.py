"""anyshape in the user's own tests.

Files, in the order in which data flows:

    plugin  the pytest plug-in
"""
