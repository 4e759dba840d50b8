"""Where in the file it goes wrong: the first node whose value differs, its line, the frozen size, and whose fault it is.

Files, in the order in which data flows:

    locate_fault   a failing trial -> the node at fault, or None
    opened         the graph as one list of nodes, and the user's line behind each
    module_values  every tensor that the module computes
    find           the first node whose value the module does not compute
    size_facts     which values are sizes, and which of them is frozen
"""

from anyshape.verify.locate.locate_fault import locate

__all__ = ["locate"]
