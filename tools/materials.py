"""Holds a wheel's bill of materials to what the wheel has, and an environment to the bill.

`tools/sbom.py` writes the bill, `tools/package.py` calls this. Nothing is taken from the sources:
what is read is what somebody gets who downloads the wheel.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_FOREIGN = re.compile(
    rb"copyright|licen[cs]ed under|@licen|spdx-|hereby granted|redistribution and use|\(c\) ?\d{4}",
    re.IGNORECASE,
)
_LONGEST = 400  # bytes of a line; a script that a tool has packed has longer ones
_REQUIRES = "thinveil:requires"
_INSTALLED = """
import json
from importlib.metadata import distributions
print(json.dumps([[each.name, each.version, each.requires or []] for each in distributions()]))
"""


def compare(what: str, there: set[str], wanted: set[str]) -> None:
    """Stop where two sets differ."""
    for text, names in (("lacks", wanted - there), ("should not have", there - wanted)):
        if names:
            raise SystemExit(f"{what} {text} {', '.join(sorted(names))}")


def is_foreign(content: bytes) -> bool:
    """Tell whether a file looks as if somebody else had written it.

    >>> is_foreign(b"x = 1"), is_foreign(b"/* (c) 2017 Ann */"), is_foreign(b"x" * 999)
    (False, True, True)
    """
    return (
        bool(_FOREIGN.search(content)) or max(map(len, content.splitlines()), default=0) > _LONGEST
    )


def bill_of(wheel: Path) -> dict[str, Any]:
    """Return the bill of a wheel, after holding it to its schema and to all that the wheel has."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    with zipfile.ZipFile(wheel) as archive:
        files = {each: archive.read(each) for each in archive.namelist()}
    about = {each.partition(".dist-info/")[2]: each for each in files}
    [name] = (each for each in about if each.startswith("sboms/"))
    text = files[about[name]].decode()
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"{name} is not as CycloneDX has it: {error.data}")
    bill: dict[str, Any] = json.loads(text)
    check(bill, files)
    scripts = [each for each in bill["components"] if "evidence" in each]
    inside = {other["name"] for each in scripts for other in each["components"]}
    needed = len(bill["components"]) - len(scripts)
    print(f"{name}: {len(scripts)} scripts, {len(inside)} packages inside them, {needed} needed")
    return bill


def check(bill: dict[str, Any], files: dict[str, bytes]) -> None:
    """Stop where a bill differs from the files of its wheel."""
    about = {each.partition(".dist-info/")[2]: each for each in files}
    metadata = BytesParser().parsebytes(files[about["METADATA"]])
    own = bill["metadata"]["component"]
    compare("the bill", {own["name"], own["version"]}, {metadata["Name"], metadata["Version"]})
    needs = required(bill), declared(metadata.get_all("Requires-Dist", []))
    compare(
        "the bill",
        *({f"{need} ({extra or 'always'})" for extra, need in each} for each in needs),
    )
    foreign = {each for each in files if ".dist-info/" not in each and is_foreign(files[each])}
    compare(
        "the bill",
        {f"{where} ({digest})" for each in bill["components"] for where, digest in shipped(each)},
        {f"{each} ({hashlib.sha256(files[each]).hexdigest()})" for each in foreign},
    )
    texts = b"\n".join(files[each] for each in files if ".dist-info/licenses/" in each).decode()
    scripts = [each for each in bill["components"] if "evidence" in each]
    names = {each["name"] for every in scripts for each in (every, *every["components"])}
    licensed = {each for each in names if re.search(rf"(?m)(^|, ){each} \d", texts)}
    compare("the licences of the wheel", licensed, names)


def shipped(part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield which files of the wheel belong to a part of the bill, with their hashes."""
    for each in part.get("evidence", {}).get("occurrences", ()):
        yield each["location"], part["hashes"][0]["content"]
    for each in part.get("externalReferences", ()):
        yield each["url"], each["hashes"][0]["content"]


def required(bill: dict[str, Any]) -> set[tuple[str, str]]:
    """Return each extra with what a bill says that it requires; "" is no extra."""
    return {
        (each["name"].removeprefix(_REQUIRES).removeprefix(":"), normal(each["value"]))
        for part in bill["components"]
        for each in part.get("properties", ())
    }


def declared(requirements: Iterable[str]) -> set[tuple[str, str]]:
    """Return the same of the metadata of a wheel, where extras name each other.

    >>> sorted(declared(["a>1", "b; extra == 'x'", "thinveil[x]; extra == 'y'"]))
    [('', 'a>1'), ('x', 'b'), ('y', 'b')]
    """
    extras: dict[str, list[Requirement]] = {}
    for each in map(Requirement, requirements):
        extra = re.search(r"extra == \"([^\"]+)", str(each.marker or ""))
        extras.setdefault(extra[1] if extra else "", []).append(each)

    def leaves(extra: str) -> set[str]:
        found = set[str]()
        for each in extras[extra]:
            if each.name == "thinveil":
                found = found.union(*map(leaves, each.extras))
            else:
                found.add(normal(str(each).partition(";")[0]))
        return found

    return {(extra, each) for extra in extras for each in leaves(extra)}


def normal(requirement: str) -> str:
    """Return a requirement in one of the ways to write it.

    >>> normal("Ann_B[y,x] <3, >=2")
    'ann-b[x,y]<3,>=2'
    """
    parsed = Requirement(requirement)
    parsed.name = canonicalize_name(parsed.name)
    return str(parsed)


def installed(python: Path) -> dict[str, tuple[str, list[str]]]:
    """Return what an environment has: the version and the requirements of each distribution."""
    listed = json.loads(subprocess.check_output([python, "-c", _INSTALLED], text=True))
    return {canonicalize_name(name): (version, needs) for name, version, needs in listed}


def check_environment(bill: dict[str, Any], there: dict[str, tuple[str, list[str]]]) -> None:
    """Stop where an environment lacks what the bill requires, or has what it does not lead to."""
    wanted = [Requirement(need) for extra, need in sorted(required(bill)) if not extra]
    for each in wanted:
        version, _ = there.get(each.name, ("", []))
        if not version or not each.specifier.contains(version, prereleases=True):
            raise SystemExit(f"the bill requires {each}, and {version or 'none'} is installed")
    reached, seen = {"thinveil"}, set[str]()
    while wanted:
        each = wanted.pop()
        name = canonicalize_name(each.name)
        if str(each) in seen or name not in there:  # a marker may leave it out
            continue
        seen.add(str(each))
        reached.add(name)
        extras = [{"extra": extra} for extra in ("", *each.extras)]
        inner = map(Requirement, there[name][1])
        wanted += [
            other
            for other in inner
            if other.marker is None or any(map(other.marker.evaluate, extras))
        ]
    if beyond := set(there) - reached:
        raise SystemExit(f"the bill does not lead to {', '.join(sorted(beyond))}")
    print(f"{len(reached) - 1} distributions came along, and the bill leads to each of them")
