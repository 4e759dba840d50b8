"""Where does the user's own module answer? Found by trying, before anything is captured."""

from anyshape.explore.stage import AFFORDABLE, explore

__all__ = ["AFFORDABLE", "explore"]
