"""A private page that sends the browser on to the lab.

Everybody on a machine may read the arguments of all its programs, with ps or in /proc. So a
browser is not given the address, which holds the key, but the name of a file that only its owner
may read. The file is made when the lab answers, and is gone once the lab was entered or ends.
"""

from __future__ import annotations

import html
import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from thinveil.errors import OutputError
from thinveil.files import write_file

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>thinveil lab</title>
<p><a href="{address}">Open the lab</a>
"""


class Signpost:
    """A page on disk that leads to an address, for this user alone."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._folder: TemporaryDirectory[str] | None = None

    def put_up(self) -> str:
        """Write the page, in a new folder of its own; return its address.

        Raises:
            OutputError: It cannot be written.
        """
        try:
            self._folder = TemporaryDirectory(prefix="thinveil-lab-", ignore_cleanup_errors=True)
        except OSError as error:
            raise OutputError(f"a folder for it: {error.strerror}") from None
        path = Path(self._folder.name) / f"{secrets.token_hex(16)}.html"
        write_file(path, _PAGE.format(address=html.escape(self._address)), "its page")
        return path.as_uri()

    def take_down(self) -> None:
        """Remove the page and its folder, where they are still there."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
