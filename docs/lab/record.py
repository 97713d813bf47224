"""Record the runs that the page without a server plays: python docs/lab/record.py.

Everything beside this file is written by it: the page is the package's own, the recordings are
real runs on the embedded people. tests/test_lab.py checks that they are up to date.
"""

from pathlib import Path

from thinveil.lab.recording import write

if __name__ == "__main__":
    print(f"{write(Path(__file__).parent):,} bytes")
