"""`python -m anyshape`: the command line."""

import os
import sys

try:  # not contextlib: it may be one of the files
    if __name__ == "__main__" and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - pathlib may be one of them
        sys.path.append(
            sys.path.pop(0)
        )  # a file in the working folder must not replace a module of Python's (`queue.py`)
except OSError:  # the working folder is gone
    pass

from anyshape.cli.main import main

if __name__ == "__main__":
    main()
