"""Mechanisms and targets that other packages bring: found, loaded late, checked, attacked."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import thinveil
from thinveil.attacker.strategies import STRATEGIES, plugged, strategy_named, strategy_names
from thinveil.auditing.targets import Target
from thinveil.commands.main import run
from thinveil.errors import PluginError, UsageError
from thinveil.language import plugins
from thinveil.language.claims import MECHANISMS, Claim, KLocal, claim_named
from thinveil.language.plugins import claim_from_plain, claim_to_plain, mechanism_names
from thinveil.verdicts.comparing.compare import compare
from thinveil.verdicts.comparing.shared import ORDER, Settings, all_in_order

ROOT = Path(__file__).parent.parent
DOCS = (ROOT / "docs" / "plugins.md").read_text("utf-8")

Install = Callable[..., None]

GOOD = """
    from dataclasses import dataclass
    import numpy as np
    import thinveil

    @dataclass(frozen=True)
    class Window:
        k: int
        title = "a window"
        def at(self, count, threshold, records, epsilon):
            above = count - threshold
            return 0.5 * ((above > -self.k) & (above <= self.k))
        def breakpoints(self, threshold, records):
            return np.stack([threshold - self.k, threshold, threshold + self.k], axis=1)

    def make(k, universe):
        return thinveil.Claim("whatever", Window(k), "laplace", universe)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package as Python sees it: a module, and metadata with entry points."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)

    def put(source: str, package: str = "their-package", **points: str) -> None:
        points = points or {"mine": "make"}
        folder = tmp_path / "site" / package
        info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        module = package.replace("-", "_")
        (folder / f"{module}.py").write_text(textwrap.dedent(source))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        groups: dict[str, list[str]] = {}
        for name, value in points.items():
            kind, _, name = name.rpartition("__")
            point = value if ":" in value else f"{module}:{value}"
            groups.setdefault(f"thinveil.{kind or 'mechanisms'}", []).append(f"{name} = {point}")
        text = "\n".join(f"[{group}]\n" + "\n".join(lines) for group, lines in groups.items())
        (info / "entry_points.txt").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        plugins.forget()

    yield put
    for name in set(sys.modules) - before:
        if name.startswith(("their", "other", "mine")):
            del sys.modules[name]
    monkeypatch.undo()
    plugins.forget()


# ---- found and used


def test_a_mechanism_is_found_by_name(install: Install) -> None:
    assert mechanism_names() == MECHANISMS
    install(GOOD)
    assert mechanism_names() == (*MECHANISMS, "mine")
    claim = claim_named("mine", 3, "bounded")
    assert (claim.name, claim.k, claim.universe, claim.reach) == ("mine", 3, "bounded", 3)
    assert "a window" in claim.describe()
    assert claim_named("mine", 3, "bounded") == claim
    noisy = claim_named("mine", 2, offset=0.5, post="integer")
    assert (noisy.name, noisy.offset, noisy.post) == ("mine-noisy-integer", 0.5, "integer")


def test_a_plug_in_is_loaded_only_when_it_is_used(install: Install) -> None:
    install("raise SystemError('imported')")
    assert "mine" in mechanism_names()
    assert claim_named("idp").name == "idp"
    assert run(["audit", "--attack", "count", "--known", "age=30..40"]) == 0
    with pytest.raises(PluginError, match="SystemError: imported"):
        claim_named("mine")


def test_help_looks_for_no_plug_ins(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden(**group: str) -> Any:
        raise AssertionError("entry points were looked for")

    monkeypatch.setattr(plugins, "entry_points", forbidden)
    plugins.forget()
    for command in ([], ["audit"], ["compare"]):
        assert run([*command, "--help"]) == 0
    assert run(["audit", "--mechanism", "idp", "--attack", "count", "--known", "age=3..9"]) == 0


def test_the_command_line_takes_a_plug_in(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(GOOD)
    assert run(["audit", "--mechanism", "mine", "--k", "2", "--json", "out.json"]) == 0
    told = json.loads(Path("out.json").read_text())
    assert (told["mechanism"], told["k"], told["exact"]) == ("mine", 2, True)
    assert "all 2,000 records exactly" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_mechanism_lists_plug_ins(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(GOOD)
    with pytest.raises(UsageError, match=r"no mechanism 'yours'.*unprotected, mine"):
        claim_named("yours")
    for command in ("audit", "compare"):
        assert run([command, "--mechanism", "yours"]) == 2
        assert "unprotected, mine" in " ".join(capsys.readouterr().err.split())


def test_no_group_size_no_k(install: Install) -> None:
    install(
        GOOD.replace("k: int", "size = 1").replace("self.k", "1").replace("Window(k)", "Window()")
    )
    assert claim_named("mine").k is None
    with pytest.raises(UsageError, match="has no group size"):
        thinveil.Options(mechanism="mine", k=2)


# ---- strategies

PLAIN = """
    import thinveil
    from thinveil.attacker.engines import published
    from thinveil.attacker.engines.coroutines import Coroutines, Kit

    KIT = Kit("plain", published.count, published.values, published.only)

    def make():
        engine = lambda facts, care: Coroutines(facts, care, KIT)
        return thinveil.Strategy("whatever", {"zones": engine})
"""


def test_a_strategy_is_found_by_name(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    assert strategy_names() == tuple(STRATEGIES)
    install(PLAIN, strategies__plain="make")
    assert strategy_names() == (*STRATEGIES, "plain")
    assert strategy_named("plain").name == "plain"
    data = thinveil.people(20)
    attacks: dict[str, dict[str, Any]] = {
        "dataset": {},
        "column": {"columns": ["age"]},
        "count": {"known": {"age": "30..40"}},
        "membership": {"known": {"age": 30}},
        "uniqueness": {"known": {"age": 30}},
        "attribute": {"known": {"age": 30}},
    }
    for attack, settings in attacks.items():
        costs = {}
        for name in ("plain", "published"):
            verdict = thinveil.audit(data, attack=attack, strategy=name, **settings)
            assert verdict.run.ending == "complete"
            costs[name] = verdict.run.meter.queries
        assert costs["published"] - costs["plain"] == (attack == "membership")
    assert run(["audit", "--strategy", "plain", "--attack", "count", "--known", "age=3..9"]) == 0
    capsys.readouterr()
    for given, said in (
        (["--strategy", "plane"], "'plane'"),
        (["--strategy", "plain", "--mechanism", "bdp"], "shows which records exist"),
    ):
        assert run(["audit", *given]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_a_strategy_is_loaded_only_when_it_is_used(install: Install) -> None:
    install("raise SystemError('imported')", strategies__plain="make")
    assert "plain" in strategy_names()
    assert run(["audit", "--attack", "count", "--known", "age=30..40"]) == 0
    with pytest.raises(PluginError, match="SystemError: imported"):
        strategy_named("plain")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_like_it", "cannot be loaded: ModuleNotFoundError"),
        ("make = 5", "is a int, which cannot be called"),
        ("def make(): pass", "returned nothing where a thinveil Strategy is wanted"),
        ("def make(): return 'adaptive'", "returned a str where"),
        ("def make(k): pass", "failed: TypeError"),
    ],
)
def test_a_broken_strategy_is_an_error_that_names_its_package(
    source: str, said: str, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(source, strategies__plain="make")
    with pytest.raises(PluginError, match=re.escape(said)) as caught:
        strategy_named("plain")
    assert "their-package" in str(caught.value)
    assert run(["audit", "--strategy", "plain"]) == 1
    assert "their-package" in capsys.readouterr().err


def test_names_of_strategies_must_be_free(install: Install) -> None:
    install(PLAIN, strategies__adaptive="make")
    assert strategy_named("adaptive") is STRATEGIES["adaptive"]
    with pytest.raises(PluginError, match="uses the name 'adaptive', which is taken"):
        plugged("adaptive")


# ---- broken ones


def bad(**parts: str) -> str:
    """A module whose sensitivity is wrong in one place."""
    usual = {
        "at": "return (count == threshold).astype(float)",
        "cuts": "return np.stack([threshold - 1, threshold], axis=1)",
        "more": "pass",
        "frozen": "True",
        "claim": 'thinveil.Claim("mine", Bad(), "laplace", universe)',
    } | parts
    return f"""
import numpy as np, thinveil
from dataclasses import dataclass
from thinveil.language.shapes import Shape
@dataclass(frozen={usual["frozen"]})
class Bad:
    {usual["more"]}
    def at(self, count, threshold, records, epsilon):
        {usual["at"]}
    def breakpoints(self, threshold, records):
        {usual["cuts"]}
def make(k, universe):
    return {usual["claim"]}
"""


BROKEN = {
    "import": ("import nothing_like_it", "ModuleNotFoundError"),
    "syntax": ("def make(:", "SyntaxError"),
    "attribute": ("x = 1", "AttributeError"),
    "not callable": ("make = 5", "is a int, which cannot be called"),
    "returns nothing": ("def make(k, universe): pass", "returned nothing where"),
    "returns text": ("def make(k, universe): return 'idp'", "returned a str where"),
    "arguments": ("def make(): pass", "failed: TypeError"),
    "raises": ("def make(k, universe): raise ZeroDivisionError('x' * 999)", "ZeroDivisionError"),
    "universe": (bad(claim='thinveil.Claim("m", Bad(), "laplace", "bounded")'), "bounded universe"),
    "noise": (bad(claim='thinveil.Claim("m", Bad(), "gauss", universe)'), "noise law 'gauss'"),
    "post": (bad(claim='thinveil.Claim("m", Bad(), "laplace", universe, post="x")'), "post-proc"),
    "sampler": (
        bad(claim='thinveil.Claim("m", Bad(), "laplace", universe, sampler="x")'),
        "the sampler 'x'",
    ),
    "no method": (bad(claim='thinveil.Claim("m", 5, "laplace", universe)'), "the method at"),
    "no value": (
        bad(frozen="True, eq=False"), "differ from call to call"
    ),
    "by address": (bad(frozen="True, repr=False"), "differ from call to call"),
    "unhashable": (bad(frozen="False"), "cannot be hashed"),
    "shape": (bad(at="return np.zeros(3)"), "of shape"),
    "whole numbers": (bad(at="return (count == threshold).astype(int)"), "floats of shape"),
    "nan": (bad(at="return count / 0 * 0.0"), "not finite"),
    "negative": (bad(at="return -1.0 * (count == threshold)"), "not finite and at least 0"),
    "fails": (bad(at="return 1 / records[0]"), "sensitivity that fails: TypeError"),
    "shared": (bad(at="return np.broadcast_to(1.0, count.shape)"), "not a fresh array"),
    "by loss": (
        bad(at="return (count == threshold) * (2.0 if isinstance(epsilon, float) else 1.0)"),
        "a loss of its own",
    ),
    "cuts flat": (bad(cuts="return threshold"), "not a table"),
    "cuts none": (bad(cuts="return np.zeros((len(threshold), 0), int)"), "at least one column"),
    "cuts float": (bad(cuts="return threshold[:, None] * 1.0"), "not whole numbers"),
    "cuts down": (
        bad(cuts="return np.stack([threshold, threshold - 1], axis=1)"),
        "do not ascend",
    ),
    "cuts too few": (bad(cuts="return threshold[:, None]"), "changes between breakpoints"),
    "cuts miss the bit": (
        bad(at="return np.zeros(count.shape)", cuts="return threshold[:, None] - 1"),
        "changes between breakpoints",
    ),
    "wrong shape said": (bad(more="shape = Shape(reach=1)"), "its law shows"),
    "no shape said": (bad(more="shape = 'round'"), "a shape that is a str"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_mechanism_is_an_error_that_names_its_package(
    what: str, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    source, said = BROKEN[what]
    install(source)
    with pytest.raises(PluginError, match=re.escape(said)) as caught:
        claim_named("mine")
    assert "their-package" in str(caught.value)
    assert len(str(caught.value)) < 600
    assert run(["audit", "--mechanism", "mine"]) == 1
    told = capsys.readouterr().err
    assert "their-package" in told
    assert "Traceback" not in told
    assert "bug" not in told


def test_what_a_plug_in_says_in_our_words_is_passed_on(install: Install) -> None:
    install("""
        from thinveil.errors import UsageError
        def make(k, universe):
            raise UsageError("k must be even")
    """)
    with pytest.raises(UsageError, match=r"^k must be even$"):
        claim_named("mine")


def test_names_must_be_free(install: Install) -> None:
    install(GOOD, idp="make")
    assert claim_named("idp").sensitivity == KLocal(1)
    with pytest.raises(PluginError, match="their-package uses the name 'idp', which is taken"):
        plugins.mechanism("idp")
    install(GOOD, "other-package", twice="make")
    install(GOOD, "other-again", twice="make")
    assert mechanism_names().count("twice") == 1
    with pytest.raises(PluginError, match=r"other-again, other-package\. Uninstall"):
        claim_named("twice")


def test_own_parts_are_not_composed_twice(install: Install) -> None:
    install(
        GOOD.replace('"laplace", universe)', '"laplace", universe, offset=2.0, post="integer")')
    )
    claim = claim_named("mine")
    assert (claim.name, claim.offset, claim.post) == ("mine", 2.0, "integer")
    assert claim_named("mine", offset=2.0, post="integer") == claim
    for more in ({"offset": 1.0}, {"post": "binary"}):
        with pytest.raises(UsageError, match="brings its own"):
            claim_named("mine", **more)


# ---- targets


TARGET = (
    GOOD
    + """
    class Mine:
        def __init__(self, data):
            self.data = data
            self.curator = thinveil.Curator(data, make(1, "unbounded"), seed=3)
            self.facts = self.curator.facts
            self.warning = "made up"
        def answer(self, batch):
            return self.curator.answer(batch).values
        def to_dataset(self):
            return self.data

    def opened(address, *, schema=None):
        return Mine(thinveil.load(address, schema))
"""
)


def people_csv(records: int = 40) -> Path:
    data = thinveil.people(records)
    lines = [",".join(data.schema.names), *(",".join(map(str, row)) for row in data.rows())]
    path = Path("people.csv")
    path.write_text("\n".join(lines))
    return path


def test_a_target_is_audited_by_its_address(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(TARGET, targets__theirs="opened")
    people_csv()
    assert plugins.target_names() == ("theirs",)
    assert isinstance(plugins.target_maker("theirs")("people.csv"), Target)
    assert run(["audit", "theirs:people.csv", "--truth", "self", "--json", "out.json"]) == 0
    told = capsys.readouterr()
    assert "Note: made up" in told.err
    assert json.loads(Path("out.json").read_text())["exact"]
    assert run(["audit", "nobody://x"]) == 2
    assert "theirs:ADDRESS" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(UsageError, match="known: theirs"):
        plugins.target_maker("nobody")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_like_it", "ModuleNotFoundError"),
        ("opened = 3", "cannot be called"),
        ("def opened(address, *, schema=None): return 5", "returned a int where a target"),
        ("def opened(address, *, schema=None): pass", "returned nothing where a target"),
        ("def opened(address, *, schema=None): raise OSError('gone')", "failed: OSError: gone"),
        ("def opened(address): pass", "failed: TypeError"),
    ],
)
def test_a_broken_target_is_an_error_that_names_its_package(
    source: str, said: str, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(source, targets__theirs="opened")
    assert run(["audit", "theirs:x"]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert said in told
    assert "their-package" in told
    assert "Traceback" not in told


def test_addresses_of_ours_are_not_taken_over(install: Install) -> None:
    install(TARGET, targets__https="opened")
    with pytest.raises(PluginError, match="taken here"):
        plugins.target_maker("https")


# ---- compared with the rest


def test_a_plug_in_stands_in_the_comparison(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(GOOD)
    install("make = 5", "other-package", wrong="make")
    names, notes = all_in_order()
    assert sorted(names) == sorted((*ORDER, "mine"))
    assert names.index("unprotected") < names.index("mine") < names.index("dp-laplace")
    assert len(notes) == 1
    assert "other-package" in notes[0]
    found = compare(thinveil.people(40), Settings(mechanisms=("idp", "mine"), people=4))
    assert [each.mechanism for each in found.lines] == ["idp", "mine"]
    assert all(each.everything and not each.claim.control for each in found.lines)
    with pytest.raises(PluginError, match="other-package"):
        compare(thinveil.people(40), Settings(mechanisms=("wrong",), people=4))
    given = ["--mechanism", "mine", "--sample", "40", "--people", "4", "--json", "out.json"]
    assert run(["compare", *given]) == 0
    assert json.loads(Path("out.json").read_text())["mechanisms"][0]["mechanism"] == "mine"


# ---- claims on the wire


def test_claims_survive_as_plain_values_and_pickles(install: Install) -> None:
    install(GOOD)
    claims = [
        claim_named("mine", 3, "bounded"),
        claim_named("mine", 2, offset=0.25, post="integer"),
        claim_named("idp-noisy", 2),
        claim_named("bdp", post="binary"),
        claim_named("dp-smooth"),
        claim_named("unprotected", universe="bounded"),
    ]
    for claim in claims:
        plain = json.loads(json.dumps(claim_to_plain(claim)))
        assert claim_from_plain(plain) == claim
        assert pickle.loads(pickle.dumps(claim)) == claim
    with pytest.raises(UsageError, match="no mechanism by name"):
        claim_to_plain(Claim("mine", KLocal(3), "laplace"))
    with pytest.raises(UsageError, match="needs the name"):
        claim_from_plain({"k": 1})
    with pytest.raises(UsageError, match="there is no mechanism"):
        claim_from_plain({"mechanism": "lost"})


def test_a_sensitivity_may_say_less_than_its_law_shows(install: Install) -> None:
    shape = "shape = thinveil.language.shapes.Shape(level=False)"
    install(GOOD.replace('title = "a window"', shape))
    claim, data = claim_named("mine", 2), thinveil.people(30)
    assert not claim.zoned
    verdict = thinveil.audit(thinveil.Curator(data, claim), truth=data)
    assert verdict.score is not None
    assert verdict.score.exact
    assert verdict.strategy == "posterior"


# ---- the example, installed, and the page


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, built and installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--disable-pip-version-check", "--target", str(folder),
         str(ROOT / "examples" / "thinveil-staircase")],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def outside(folder: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the example at hand, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONWARNINGS": "error"}
    environment.pop("PYTEST_ADDOPTS", None)  # those of this run, such as --cov
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_the_installed_example_is_audited_and_compared(installed: Path, tmp_path: Path) -> None:
    done = outside(installed, tmp_path, "-m", "thinveil", "audit", "--mechanism", "staircase",
                   "--k", "2", "--json", "audit.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "audit.json").read_text())
    assert (told["mechanism"], told["k"], told["exact"]) == ("staircase", 2, True)
    done = outside(installed, tmp_path, "-m", "thinveil", "compare", "--mechanism", "staircase",
                   "--mechanism", "idp", "--mechanism", "dp-laplace", "--sample", "60",
                   "--people", "4", "--json", "compare.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = json.loads((tmp_path / "compare.json").read_text())["mechanisms"]
    by_name = {line["mechanism"]: line for line in lines}
    assert set(by_name) == {"staircase", "idp", "dp-laplace"}
    assert by_name["staircase"]["everything"]
    assert "a staircase of step 1" in by_name["staircase"]["which_is"]
    assert by_name["dp-laplace"]["at_baseline"]


def test_the_installed_target_is_audited(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people_csv()
    done = outside(installed, tmp_path, "-m", "thinveil", "audit", "staircase:people.csv",
                   "--truth", "self", "--json", "out.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(Path("out.json").read_text())["exact"]


@pytest.mark.nightly
def test_the_examples_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    tests = ROOT / "examples" / "thinveil-staircase" / "tests"
    done = outside(installed, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   "--rootdir", str(tmp_path), "-c", os.devnull, str(tests))  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.docs
def test_the_page_on_plug_ins_runs(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    module, law, _, target, strategy, usage, suites = blocks
    points = tomllib.loads(re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)[0])
    named = points["project"]["entry-points"]
    install(
        module + law + target + strategy, "mine",
        mine=named["thinveil.mechanisms"]["mine"],
        targets__mine=named["thinveil.targets"]["mine"],
        strategies__mine=named["thinveil.strategies"]["mine"],
    )  # fmt: skip
    people_csv(60)
    exec(compile(usage, "plugins.md", "exec"), {"thinveil": thinveil})
    exec(compile(suites, "plugins.md", "exec"), {"thinveil": thinveil})
    assert "all 60 records exactly" in capsys.readouterr().out
    lines = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)[0].strip().splitlines()
    assert len(lines) == 5
    for line in lines:
        words = line.split()
        if words[1] == "people":
            Path("people.csv").unlink()
            assert run(words[1:]) == 0, line
            continue
        if words[1] == "compare":
            words += ["--sample", "40"]
        if "--mechanism" in words and words[1] == "audit":
            words += ["--attack", "column", "--column", "age"]
        assert run([*words[1:], "--json", f"{words[1]}.json"]) == 0, line
    told = capsys.readouterr()
    assert "mine has a law of its own, so the posterior strategy is used" in " ".join(
        told.err.split()
    )
