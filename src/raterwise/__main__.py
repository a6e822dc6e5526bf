"""`python -m raterwise`: the command line, where the program itself is not on the path."""

from raterwise.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
