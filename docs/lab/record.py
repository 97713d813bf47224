"""Record real runs for the page without a server: python docs/lab/record.py FOLDER.

The documentation site records them anew each time it is built (docs/site_hooks.py).
"""

import sys
from pathlib import Path

from thinveil.lab.recording import write

if __name__ == "__main__":
    print(f"{write(Path(sys.argv[1])):,} bytes")
