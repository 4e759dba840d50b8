"""The rung that rolls Python loops up again: traces that grow with a dim contain a repeated block.

Files, in the order in which data flows:

    growth         whether traces grow with a dim, and at which sizes to trace
    rerolled_rung  the rung itself; loops that take a dim in parts
    functional     writes into tensors -> new tensors
    blocks         x a b c a b c y -> x (a b c)*2 y
    demands        which values of a loop the rest needs
    emit           a block of the template -> a node anyshape::loop and its body
"""

from anyshape.capture.rerolled.rerolled_rung import capture_rerolled

__all__ = ["capture_rerolled"]
