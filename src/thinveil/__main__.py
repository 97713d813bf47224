"""The first thing that runs, of `thinveil` and of `python -m thinveil`."""

from thinveil.commands.shared import interruptions


def main() -> None:
    """Run the command line of this process."""
    interruptions.at_once()
    from thinveil.commands.main import main as run

    run()


if __name__ == "__main__":
    main()
