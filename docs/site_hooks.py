"""Hooks of MkDocs: shows notebooks and the list of modules as pages, plays recordings of the lab.

A notebook becomes a Markdown page with its cells and their outputs; the notebook itself stays
beside it, to download. The page that plays runs of the lab is the package's own front end, and its
runs are recorded while the site is built. Nothing is loaded from elsewhere.
"""

import base64
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from thinveil.lab.recording import site


@cache
def _recorded() -> dict[str, bytes]:
    return site("../lab.html")  # once, however often a server builds the pages again


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page, and its pictures, for each notebook; all modules; the lab without an install."""
    house = runpy.run_path(str(Path(config.config_file_path).parent / "tools" / "house.py"))
    listed = f"---\nhide: [toc]\n---\n\n{house['house']()}"  # its lines are long
    files.append(File.generated(config, "house.md", content=listed))
    for name, content in _recorded().items():
        files.append(File.generated(config, f"lab/{name}", content=content))
    for notebook in [each for each in files if each.src_uri.endswith(".ipynb")]:
        source = Path(notebook.abs_src_path or "")
        stem = notebook.src_uri.removesuffix(".ipynb")
        page, pictures = written(nbformat.read(source, as_version=4), source.stem)
        files.append(File.generated(config, f"{stem}.md", content=page))
        folder = stem.rpartition("/")[0]
        for name, picture in pictures.items():
            files.append(File.generated(config, f"{folder}/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to the page of a notebook, not to its file, and say what is output."""
    markdown = re.sub(r"^```\n\n```text$", '```\n\n```text title="Output"', markdown, flags=re.M)
    return re.sub(r"(?<!download\]\()(\]\([^):]+)\.ipynb(\)|#)", r"\1.md\2", markdown)


def written(notebook: Any, stem: str) -> tuple[str, dict[str, bytes]]:
    """Write a notebook as Markdown, and return it with its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            if output.output_type == "stream":
                parts.append(_text(output.text))
            elif "image/png" in output.data:
                name = f"{stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(output.data["image/png"])
                parts.append(f"![{output.metadata.get('alt', '')}]({name})")
            else:
                parts.append(_text(output.data["text/plain"]))
    parts.append(f"The notebook itself, to run: [download]({stem}.ipynb).")
    return "\n\n".join(parts) + "\n", pictures


def _text(output: str) -> str:
    return f'```text title="Output"\n{output.rstrip()}\n```'
