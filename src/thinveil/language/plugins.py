"""Mechanisms, targets and strategies that other packages bring, found by their entry points.

A package names what it brings in its pyproject.toml::

    [project.entry-points."thinveil.mechanisms"]
    staircase = "thinveil_staircase:staircase"

A target is a function of the text after NAME: on the command line, and of a schema where the user
gave one. A plug-in is loaded only when it is used; whatever is wrong with it becomes an error
that names its package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from itertools import product
from typing import Any, Final, TypeVar, cast, get_args

import numpy as np

from thinveil.errors import LawError, PluginError, ThinveilError, UsageError
from thinveil.language.claims import MECHANISMS, Claim, Sampler, Universe, claim_named
from thinveil.language.contracts import Fading, Law, Post, Sensitivity
from thinveil.language.facts import PublicFacts
from thinveil.language.laws import LAWS, law_from_plain, law_to_plain
from thinveil.language.laws.cauchy import CAUCHY
from thinveil.language.queries import Codes, Floats
from thinveil.language.shapes import Shape, grid, seen

_T = TypeVar("_T")

MECHANISM_GROUP: Final = "thinveil.mechanisms"
"""The entry points of mechanisms: functions `(k, universe) -> Claim`."""
TARGET_GROUP: Final = "thinveil.targets"
"""The entry points of targets: functions `(address, *, schema) -> Target`."""
STRATEGY_GROUP: Final = "thinveil.strategies"
"""The entry points of strategies: functions `() -> Strategy`."""

_TAKEN: Final = (
    "http", "https", "postgres", "postgresql", "mariadb", "mysql", "duckdb", "sqlite", "datafusion",
    "chdb", "spark", "file",
)  # fmt: skip
_SIZES: Final = (1, 2, 5, 16)
_LOSSES: Final = (1e-10, 0.5)


@lru_cache(maxsize=8)
def _found(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return all entry points of a group by name; nothing is loaded."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for each in sorted(entry_points(group=group), key=lambda each: (each.name, package(each))):
        if each not in found.setdefault(each.name, ()):
            found[each.name] += (each,)
    return found


def found(group: str) -> list[tuple[str, str]]:
    """Return the names of a group's entry points, each with the packages that bring it."""
    return [
        (name, ", ".join(dict.fromkeys(map(package, entries))))
        for name, entries in _found(group).items()
    ]


def forget() -> None:
    """Look for plug-ins anew the next time: a package was installed or removed."""
    _found.cache_clear()
    mechanism.cache_clear()


def package(entry: EntryPoint) -> str:
    """Return the name of the package that brings an entry point."""
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


def mechanism_names() -> tuple[str, ...]:
    """Return the names of all mechanisms there are: built-in ones, then those of plug-ins."""
    return (*MECHANISMS, *(name for name in _found(MECHANISM_GROUP) if name not in MECHANISMS))


def target_names() -> tuple[str, ...]:
    """Return the names of all targets that plug-ins bring, sorted."""
    return tuple(_found(TARGET_GROUP))


@lru_cache(maxsize=256)
def mechanism(name: str, k: int = 1, universe: Universe = "unbounded") -> Claim:
    """Return the claim of a plug-in's mechanism, once its law was looked at.

    A UsageError says that there is none of this name, a PluginError that it cannot be loaded or
    returns no claim that makes sense.
    """
    if name not in _found(MECHANISM_GROUP):
        known = ", ".join(mechanism_names())
        raise UsageError(f"there is no mechanism {name!r}; choose from {known}")
    entry = _only(MECHANISM_GROUP, name, MECHANISMS)
    make = _maker(entry, lambda made: isinstance(made, Claim), "a thinveil.Claim is wanted")
    claim: Claim
    claim, again = (replace(make(k, universe), name=name) for _ in range(2))
    if again != claim or repr(again) != repr(claim):
        raise _broken(
            entry,
            "returns claims that differ from call to call: make its sensitivity a frozen dataclass",
        )
    if claim.universe != universe:
        raise _broken(entry, f"claims the {claim.universe} universe where {universe} was asked for")
    try:
        check_claim(claim)
    except ThinveilError as error:
        raise _broken(entry, str(error)) from None
    except Exception as error:
        raise _broken(entry, f"has a sensitivity that fails: {_said(error)}") from error
    return claim


def target_maker(name: str) -> Callable[..., Any]:
    """Return what opens a plug-in's target: a function of an address and a schema.

    A UsageError says that there is none of this name, a PluginError that it cannot be loaded.
    """
    if name not in _found(TARGET_GROUP):
        known = ", ".join(target_names()) or "none is installed"
        raise UsageError(f"there is no plug-in with a target {name!r}; known: {known}")
    opened = _maker(
        _only(TARGET_GROUP, name, _TAKEN),
        lambda made: (
            isinstance(getattr(made, "facts", None), PublicFacts)
            and callable(getattr(made, "answer", None))
        ),
        "a target is wanted: an object with `facts` (thinveil.PublicFacts) and `answer(batch)`",
    )
    return partial(opened, schema=None)


def made(group: str, name: str, taken: tuple[str, ...], kind: type[_T]) -> _T:
    """Return what a plug-in makes when it is called without anything, or raise a PluginError."""
    wanted = f"a thinveil {kind.__name__} is wanted"
    thing = _maker(_only(group, name, taken), lambda made: isinstance(made, kind), wanted)()
    return cast(_T, thing)


def _only(group: str, name: str, taken: tuple[str, ...]) -> EntryPoint:
    """Return the one entry point of a name, or refuse a name that is not free."""
    entries = _found(group)[name]
    packages = ", ".join(dict.fromkeys(package(each) for each in entries))
    if name in taken:
        raise PluginError(f"the plug-in of {packages} uses the name {name!r}, which is taken here")
    if len(entries) > 1:
        raise PluginError(
            f"the name {name!r} is used by more than one plug-in: {packages}. Uninstall all but one"
        )
    return entries[0]


def _maker(entry: EntryPoint, fits: Callable[[Any], bool], wanted: str) -> Callable[..., Any]:
    """Load a plug-in; return what calls it and makes sure that the wanted thing came back."""
    try:
        make = entry.load()
    except Exception as error:  # whatever a stranger's module does when it is imported
        raise _broken(entry, f"cannot be loaded: {_said(error)}") from error
    if not callable(make):
        raise _broken(entry, f"is {_kind(make)}, which cannot be called")

    def called(*given: Any, **more: Any) -> Any:
        try:
            thing = make(*given, **more)
        except LawError as error:
            raise _broken(entry, f"failed: {error}") from None
        except ThinveilError:
            raise  # it says in our words what is wrong with what the user asked for
        except Exception as error:
            raise _broken(entry, f"failed: {_said(error)}") from error
        if not fits(thing):
            raise _broken(entry, f"returned {_kind(thing)} where {wanted}")
        return thing

    return called


def _broken(entry: EntryPoint, what: str) -> PluginError:
    return PluginError(
        f"the plug-in {entry.name!r} of the package {package(entry)} ({entry.value}) {what}"
    )


def _said(error: Exception) -> str:
    text = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _kind(value: object) -> str:
    return f"a {type(value).__name__}" if value is not None else "nothing"


# -- what a claim must be ------------------------------------------------------------------


def check_claim(claim: Claim) -> None:
    """Look at a claim's law on small tables.

    A UsageError says why no curator can draw from it, or no attacker weigh by it.
    """
    check_members(claim.noise)
    words = ("post-processing", claim.post, Post), ("sampler", claim.sampler, Sampler)
    for what, value, known in words:
        if value not in get_args(known):
            raise UsageError(f"has the {what} {value!r}, not one of {', '.join(get_args(known))}")
    sensitivity = claim.sensitivity
    for name in ("at", "breakpoints"):
        if not callable(getattr(sensitivity, name, None)):
            raise UsageError(f"has a sensitivity without the method {name}")
    _check_hash(sensitivity, "sensitivity")
    for records, loss in product(_SIZES, _LOSSES):
        _check_table(sensitivity, records, loss)
        if claim.sampler == "exact":
            _check_exact(sensitivity, records, loss)
    said = getattr(sensitivity, "shape", None)
    if said is not None and not isinstance(said, Shape):
        raise UsageError(f"has a shape that is {_kind(said)}, not a thinveil Shape")
    if said is not None and _promises_more(said, found := seen(sensitivity)):
        raise UsageError(f"says it has the shape {said}, but its law shows {found}")


def check_members(law: Law | None) -> None:
    """Make sure that noise is a law, as far as its members tell; `testing.check_law` does more."""
    if law is None:
        return
    wanted = [name for name in vars(Law) if not name.startswith("_")]
    if lacking := [name for name in wanted if not hasattr(law, name)]:
        raise UsageError(f"has the noise {law!r}, which is no law: it lacks {lacking[0]}")
    _check_hash(law, "noise")


def _check_hash(part: object, what: str) -> None:
    try:
        hash(part)
    except TypeError:
        raise UsageError(
            f"has a {what} that cannot be hashed: make it a frozen dataclass"
        ) from None


def _promises_more(said: Shape, found: Shape) -> bool:
    """Tell whether a sensitivity says something of its shape that its law does not show.

    It may say less: then it is attacked as any law is.
    """
    zoned = said.presence or said.reach is not None
    return (
        (said.reach is not None and said.reach != found.reach)
        or (said.presence and not found.presence)
        or (zoned and said.level and not found.level)
        or said.leaks != found.leaks
    )


def _check_table(sensitivity: Sensitivity, records: int, loss: float) -> None:
    """Look at all thresholds and counts of one table."""
    every, b = grid(records)
    given = sensitivity.at(every, b, records, loss)
    size = _array(given, every.shape).astype(np.float64)
    if not np.isfinite(size).all() or (size < 0).any():
        raise UsageError("has a sensitivity that is not finite and at least 0 everywhere")
    per_row = sensitivity.at(every, b, records, np.full((records, 1), loss))
    if not np.array_equal(_array(per_row, every.shape), size):
        raise UsageError("has a sensitivity that differs where each question has a loss of its own")
    if not np.asarray(given).flags.writeable or np.shares_memory(given, every):
        raise UsageError("returns a sensitivity that is not a fresh array: it is written to")
    cuts = np.asarray(sensitivity.breakpoints(np.arange(records), records))
    if cuts.ndim != 2 or len(cuts) != records or not cuts.shape[1]:
        raise UsageError(
            "has breakpoints that are not a table with a row for each threshold and at least "
            "one column"
        )
    if not np.issubdtype(cuts.dtype, np.integer):
        raise UsageError("has breakpoints that are not whole numbers")
    if (np.diff(cuts, axis=1) < 0).any():
        raise UsageError("has breakpoints that do not ascend")
    _check_segments(size, cuts, records)


def _check_exact(sensitivity: Sensitivity, records: int, loss: float) -> None:
    """Make sure that what is drawn exactly is what the law says."""
    assert isinstance(sensitivity, Fading)
    every, b = grid(records)
    far = np.asarray(sensitivity.distance(every, b))
    whole = np.issubdtype(far.dtype, np.integer) and far.shape == every.shape
    said = sensitivity.size * np.exp(-loss / CAUCHY * far)
    if (
        not whole
        or (far < 0).any()
        or not np.allclose(sensitivity.at(every, b, records, loss), said)
    ):
        raise UsageError(
            "draws exactly, but its sensitivity is not `size` * exp(-(epsilon / 6) * `distance`)"
        )


def _check_segments(size: Floats, cuts: Codes, records: int) -> None:
    """Make sure that nothing changes between neighbouring breakpoints."""
    count = np.arange(records + 1)
    for b in range(records):
        segment = np.searchsorted(cuts[b], count)
        changes = (np.diff(size[b]) != 0) | (count[:-1] == b)  # from a count to the next
        if (changes & (np.diff(segment) == 0)).any():
            raise UsageError(
                f"has a law that changes between breakpoints: of {records} records, at the "
                f"threshold {b}. Each count after which the sensitivity or the true bit "
                "changes must be one"
            )


def _array(value: object, shape: tuple[int, ...]) -> Floats:
    found = np.asarray(value)
    if found.shape != shape or not np.issubdtype(found.dtype, np.floating):
        raise UsageError(
            f"returns its sensitivity as {found.dtype} of shape {found.shape}, where floats of "
            f"shape {shape} are wanted: one for each count"
        )
    return found


# -- claims on the wire --------------------------------------------------------------------


def claim_to_plain(claim: Claim) -> dict[str, Any]:
    """Write a claim as plain values, by the name of its mechanism.

    A UsageError says that no mechanism by name stands for it.
    """
    ours = claim.noise if type(claim.noise) in LAWS.values() else None
    parts = product((None, ours), (claim.offset or None, None), (claim.post, None))
    for name, (noise, offset, post) in product([*MECHANISMS, *_plugged(claim.name)], [*parts]):
        try:
            made = claim_named(
                name, claim.k or 1, claim.universe, offset=offset, post=post, noise=noise
            )
        except ThinveilError:
            continue
        if made == claim:
            plain = {"mechanism": name, "k": claim.k or 1, "universe": claim.universe}
            more = {} if noise is None else {"noise": law_to_plain(noise)}
            return {**plain, "offset": offset, "post": post, **more}
    raise UsageError(f"the claim {claim.name} has no mechanism by name, so it cannot be sent")


def _plugged(name: str) -> list[str]:
    """Return the plug-ins' mechanisms that a claim's name may stand for, the longest first."""
    known = [each for each in _found(MECHANISM_GROUP) if f"{name}-".startswith(f"{each}-")]
    return sorted(known, key=len, reverse=True)


def claim_from_plain(plain: Mapping[str, Any]) -> Claim:
    """Read back what `claim_to_plain` wrote; a plug-in must be installed here, too.

    A ThinveilError says that there is no such mechanism, or that the values make no sense.
    """
    try:
        return claim_named(
            str(plain["mechanism"]),
            plain.get("k") or 1,
            plain.get("universe") or "unbounded",
            offset=plain.get("offset"),
            post=plain.get("post"),
            noise=law_from_plain(plain.get("noise") or "none"),
        )
    except KeyError:
        raise UsageError("a claim in plain values needs the name of its mechanism") from None
