"""`python -m anyshape`: the command line."""

from anyshape.cli.main import main

if __name__ == "__main__":
    main()
