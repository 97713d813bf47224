"""The description and the addresses of a package, made from README.md while it is built.

A package index shows the README where the repository's files are not: relative pictures and links
lead nowhere there. Where the environment variable THINVEIL_REPOSITORY names the repository, as in
the publishing workflow, they become addresses at the tag of this version. Elsewhere nothing knows
an address: pictures become their alternative texts, and links their plain texts. Both are written
as Markdown there; a test finds what is written otherwise.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[((?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\(([^)\s]+)\)")
_ABSOLUTE = re.compile(r"[a-z]+:", re.IGNORECASE)


def description(readme: str, repository: str | None, version: str) -> str:
    """Return the README as it is shown where its relative addresses lead nowhere."""
    raw = f"{repository}/raw/v{version}/" if repository else None
    blob = f"{repository}/blob/v{version}/" if repository else None

    def picture(found: re.Match[str]) -> str:
        return _moved(found[0], found[1], found[2], raw)

    def link(found: re.Match[str]) -> str:
        return _moved(found[0], found[1], found[2], blob)

    parts = _FENCED.split(_COMMENT.sub("", readme))
    return "".join(
        part if part.startswith("```") else _LINK.sub(link, _PICTURE.sub(picture, part))
        for part in parts
    )


def addresses(repository: str | None, version: str) -> dict[str, str]:
    """Return the addresses that a package index lists beside the description."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def _moved(whole: str, text: str, address: str, base: str | None) -> str:
    if _ABSOLUTE.match(address):
        return whole
    if base is None:
        return text
    inside = f"README.md{address}" if address.startswith("#") else address.removeprefix("./")
    return whole.replace(f"({address})", f"({base}{inside})")


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme` and `urls` when an sdist or an editable install is made.

    A wheel that is built from an sdist takes both from the sdist.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the description and the addresses into the metadata."""
        repository = os.environ.get("THINVEIL_REPOSITORY", "").rstrip("/") or None
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": description(readme, repository, metadata["version"]),
        }
        metadata["urls"] = addresses(repository, metadata["version"])
