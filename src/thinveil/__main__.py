"""Lets `python -m thinveil` do what `thinveil` does."""

from thinveil.commands.main import main

if __name__ == "__main__":
    main()
