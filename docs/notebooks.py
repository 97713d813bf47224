"""Builds the tutorials: python docs/notebooks.py turns docs/tutorials/*.py into notebooks.

A source is plain Python in the percent format: `# %% [markdown]` starts a text, `# %%` a cell of
code; `# %% alt="..."` says what the picture of that cell shows. Cells are executed one after the
other, and outputs are kept.
"""

import re
import sys
from pathlib import Path
from typing import Any

import nbformat

TUTORIALS = Path(__file__).parent / "tutorials"
_CELL = re.compile(r"^# %%(?P<text> \[markdown\])?(?: alt=\"(?P<alt>[^\"]*)\")?$", re.MULTILINE)


def built(path: Path) -> Any:
    """Read a source as a notebook that was not executed yet."""
    source = path.read_text("utf-8")
    starts = list(_CELL.finditer(source))
    ends = [*(each.start() for each in starts[1:]), len(source)]
    cells = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        body = source[start.end() : end].strip("\n")
        if start["text"]:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.splitlines()]
            cell = nbformat.v4.new_markdown_cell("\n".join(lines))
        else:
            cell = nbformat.v4.new_code_cell(body)
            cell.metadata.update({"alt": start["alt"]} if start["alt"] else {})
        cell.id = f"cell-{number}"
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def executed(notebook: Any, folder: Path) -> Any:
    """Execute a notebook in a folder, with this Python, and return it with its outputs."""
    from nbclient import NotebookClient

    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        _join(cell)
        for output in cell.get("outputs", []):
            if "alt" in cell.metadata and "image/png" in output.get("data", {}):
                output.metadata["alt"] = cell.metadata["alt"]
    return notebook


def _join(cell: Any) -> None:
    """Put what was printed in pieces together; where a kernel cuts it is a matter of time."""
    joined: list[Any] = []
    for output in cell.get("outputs", []):
        before = joined[-1] if joined else None
        if before is not None and output.output_type == before.output_type == "stream":
            before.text += output.text
        else:
            joined.append(output)
    if "outputs" in cell:
        cell.outputs = joined


def texts(cell: Any) -> list[str]:
    """Return the texts that a cell printed; pictures count as there, not by their bytes."""
    return [
        output.text if output.output_type == "stream"
        else "a picture" if "image/png" in output.data
        else output.data["text/plain"]
        for output in cell.outputs
    ]  # fmt: skip


def main(names: list[str]) -> None:
    """Build and execute the tutorials of these names, or all."""
    for path in sorted(TUTORIALS.glob("*.py")):
        if not names or path.stem in names:
            notebook = executed(built(path), TUTORIALS)
            nbformat.write(notebook, path.with_suffix(".ipynb"))
            print(path.stem, path.with_suffix(".ipynb").stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
