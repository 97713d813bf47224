"""Where a result comes from: versions, the command, and a hash of what was asked and answered."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Provenance:
    """What somebody needs to repeat a run, and to see that nothing was changed.

    There is no command line where it was started from Python, no hash where nothing was asked.
    """

    command: str | None
    transcript: str | None
    finished: datetime

    @staticmethod
    def now(command: str | None, transcript: str | None) -> Provenance:
        """Return the provenance of a run that ends now."""
        return Provenance(command, transcript, datetime.now(UTC).replace(microsecond=0))

    def to_plain(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "thinveil": version("thinveil"),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "command": self.command,
            "options": dict(options),
            "finished": self.finished.isoformat().replace("+00:00", "Z"),
            "transcript_sha256": self.transcript,
        }
