"""Against whoever reads over a shoulder: no spelling of an address gives its password away."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import pytest

from thinveil.auditing.sources import opened
from thinveil.commands import main
from thinveil.commands.main import run
from thinveil.errors import ThinveilError
from thinveil.passwords import missing, redacted, shown

SECRET = "s3cr3tX"
PASSWORDS = tuple(
    part.replace("S", SECRET)
    for part in ("S", "se/S", "S/cret", "p@S", "S@x", "S:x", "x:S", "?S", "#S", "a&S", "a;S", "a S")
)
HEADS = (
    "postgresql://", "postgres://", "PostgreSQL://", "postgres//", "postgresql:/", "postgresl://",
    "spark://", "http://", "https://", "duckdb://", "mysql://", "mariadb://", "md:", "//", "--truth=postgresql://",
)  # fmt: skip
ENDS = ("h/db", "h:5432/db", "h1:1,h2:2/db", "/db", "[::1]:5432/db", "h", "h/db?connect_timeout=1")
KEYS = (
    "password", "PassWord", "passwd", "pass%77ord", "%70assword", "sslpassword", "pwd",
    "access_token", "motherduck_token", "api_key", "encryption_key", "oauth_client_secret",
    "scram_client_key", "options=-c%20a.password", "authorization",
)  # fmt: skip
BETWEEN = ("?", "?user=ann&", "?user=ann;", "?connect_timeout=1&", "#", "?sslmode=require&a=b&")


def _spellings() -> list[str]:
    """Return addresses with a password in every place where somebody may write one."""
    found = [
        f"{head}ann{colon}{password}{at}{end}"
        for head, password, end in itertools.product(HEADS, PASSWORDS, ENDS)
        for colon, at in ((":", "@"), ("%3A", "%40"), ("%3a", "@"), ("%253A", "%2540"))
    ]
    found += [
        f"{head}{between}{key}={password}{after}"
        for head, between, key, password, after in itertools.product(
            ("postgresql://h/db", "md:db", "http://h:1/"),
            BETWEEN,
            KEYS,
            (*PASSWORDS, quote(f"&/{SECRET}", safe="")),
            ("", "&user=ann"),
        )
    ]
    found += [f"postgresql://ann:{SECRET}", f"postgresql://ann:{SECRET}/db", f"pg://ann:{SECRET}"]
    found += [f"host=h password={SECRET} user=ann", f"service=x password='a {SECRET}'"]
    found += [f"user=ann password = {SECRET}", f"dbname=d sslpassword={SECRET} host=h"]
    found += [f"password={SECRET}", f"PGPASSWORD={SECRET}", f"pwd = '{SECRET}'"]
    found += [f"password={SECRET}:///", f"http://ann:?={SECRET}@h/", f"URL=pg://ann:{SECRET}@h"]
    found += [
        f"Server=h;Database=d;User Id=ann;Password={SECRET};Encrypt=yes",
        f"jdbc:sqlserver://h:1433;user=ann;password={SECRET};",
        f"jdbc:oracle:thin:ann/{SECRET}@h",
    ]
    # a database's name that is an address of its own, which libpq goes by
    for password in PASSWORDS:
        found += [f"postgresql://h/d?dbname=postgresql://ann:{password}@h&user=ann"]
        found += [f"dbname=postgresql://ann:{password}@h user=ann", f"dbname='password={password}'"]
        found += [f"postgresql://?dbname={quote(f'host=h password={password}')}"]
    return found


def test_no_spelling_is_shown_with_its_password() -> None:
    spellings = _spellings()
    assert len(spellings) > 8_000
    assert [each for each in spellings if SECRET in shown(each)] == []
    assert [each for each in spellings if SECRET in missing(each)] == []
    assert SECRET not in missing(f"ann:{SECRET}@h/db")


JUNK = ("", "a", *"/@:?#&; ='\"\\%[],ü\n\t", "\u202e", "://", "p@", "x:y")


def _drawn(draw: random.Random) -> str:
    """Draw an address with a password amid signs that mean something in addresses."""
    junk = "".join(draw.choices(JUNK, k=6))
    password = f"{junk[:3]}{SECRET}{junk[3:]}"
    key, equals = draw.choice(KEYS), draw.choice(("=", " = ", "%3D"))
    head, end = draw.choice(HEADS), draw.choice(ENDS)
    apart, quotes = draw.choice((" ", "\n", "\t ")), draw.choice(("", "'", '"'))
    return draw.choice((
        f"{head}ann{draw.choice((':', '%3A'))}{password}{draw.choice(('@', '%40'))}{end}",
        f"{head}{end}{draw.choice('?#;&')}user=ann&{key}{equals}{password}&sslmode=require",
        f"host=h{apart}{key}{equals.replace('%3D', '=')}{quotes}{password}{quotes}{apart}user=ann",
        f"postgresql://h/d?dbname=postgresql://ann:{password}@h/d",
        f"Server=h;Password={password};",
    ))  # fmt: skip


@pytest.mark.parametrize("many", [1_000, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_no_drawn_address_is_shown_with_its_password(many: int) -> None:
    draw = random.Random(18)
    for _ in range(many):
        address = _drawn(draw)
        said = f"Error: {address}: no; {address!r}; {ThinveilError(address)}"
        for text in (shown(address), missing(address), redacted(said, ["audit", address])):
            assert SECRET not in text, address


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann@h:5432/db",
        "postgresql://h:5432/db?user=ann@server&sslkey=/k.pem&passfile=/p",
        "postgresql://ann@h1:1,h2:2/db?target_session_attrs=any",
        "postgresql://[::1]:5432/db",
        "postgresql:///db?host=/run/postgresql&service=x",
        "spark://h1:7077,h2:7077",
        "spark://local[2]",
        "http://127.0.0.1:8321",
        "duckdb:///data/a:b.duckdb",
        "data/a:b@c.parquet",
        "data/token=5/*.parquet",
        "token=5",
        "author=ann",
        "pass=yes",
        "postgresql://h/db?dbname=d&user=ann",
        "name=a:b@c",
        'a"; drop table x; --',
        "plugin:ann@host",
    ],
)
def test_what_has_no_password_stays_as_it_is(address: str) -> None:
    assert shown(address) == address


def test_the_name_of_a_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x:ann:b@c?token=5.csv"
    assert shown(f"duckdb://{path}") != f"duckdb://{path}"
    path.write_text("a\n1\n")
    assert shown(str(path)) == missing(path) == str(path)
    assert shown(f"duckdb://{path}") == f"duckdb://{path}"


def test_a_text_is_rid_of_arguments_with_passwords() -> None:
    given = f"postgresql://ann:'{SECRET}\x1b\\@h/d"
    for form in (given, repr(given), str(Path(given)), str(ThinveilError(given))):
        assert SECRET not in redacted(f"Error: {form}: no", ["audit", given])


def test_notes_of_an_error_are_rid_of_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"postgresql://ann:{SECRET}@h/d"
    error = ThinveilError("no")
    error.add_note(f"To go on: thinveil audit {address}")
    main._say(f"Error: {address}", error, ["audit", address])
    assert SECRET not in (said := capsys.readouterr().err)
    assert said.count("ann:***@h/d") == 2


FEW = (
    f"postgresql://ann:{SECRET}@127.0.0.1:1/db?connect_timeout=1",
    f"postgresql://ann:se/{SECRET}@127.0.0.1:1/db",
    f"postgresql://127.0.0.1:1/db?sslpassword={SECRET}&pass%77ord={SECRET}",
    f"postgres//ann:{SECRET}@h/*",
    f"postgresl://ann:{SECRET}@h/db",
    f"ann:{SECRET}@h/db",
    f"http://ann:{SECRET}@127.0.0.1:1",
    f"http://127.0.0.1:1:{SECRET}",
    f"https://h:1/?access_token={SECRET}",
    f"duckdb://ann:{SECRET}@h/a.duckdb",
    f"sqlite://a.sqlite?key={SECRET}",
    f"md:db?motherduck_token={SECRET}",
    f"host=h password={SECRET}",
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("audit", "-vv", "ADDRESS"),
    ("audit", "ADDRESS", "--table", "ADDRESS"),
    ("audit", "people.csv", "ADDRESS"),
    ("audit", "people.csv", "--truth", "ADDRESS"),
    ("audit", "people.csv", "--schema", "ADDRESS"),
    ("audit", "people.csv", "--people", "ADDRESS"),
    ("audit", "people.csv", "--resume", "ADDRESS"),
    ("audit", "people.csv", "--engine", "ADDRESS"),
    ("audit", "--truth=ADDRESS", "people.csv"),
    ("compare", "ADDRESS"),
    ("schema", "-v", "ADDRESS", "--output", "x.toml"),
    ("serve", "ADDRESS", "--port", "0"),
    ("lab", "ADDRESS", "--port", "0"),
    ("doctor", "ADDRESS"),
    ("report", "ADDRESS"),
    ("reproduce", "lemma-2", "--data", "ADDRESS"),
    ("ADDRESS",),
)


FIRST = 10
"""So many commands are tried each time, each with another address; the rest at night."""


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_no_command_prints_or_writes_it(
    every: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("a,b\n" + "1,2\n2,1\n3,3\n" * 5)
    monkeypatch.setenv("THINVEIL_TOKEN", "x")
    tried = 0
    pairs: Iterable[tuple[tuple[str, ...], str]] = itertools.product(COMMANDS, FEW)
    if not every:
        pairs = zip(COMMANDS[:FIRST], FEW[::-1], strict=False)
    for words, address in pairs:
        code = run([each.replace("ADDRESS", address) for each in words])
        printed = "".join(capfd.readouterr())
        assert code != 0, (words, address)
        assert SECRET not in printed, (words, address, printed)
        tried += 1
    assert tried == (len(COMMANDS) * len(FEW) if every else FIRST)
    for path in tmp_path.rglob("*"):
        assert SECRET not in path.name
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_a_run_names_its_command_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("a,b\n" + "1,2\n2,1\n3,3\n" * 5)
    words = ["audit", "people.csv", "--json", "run.json", "--transcript", "run.transcript"]
    monkeypatch.setattr("thinveil.commands.audit.command_line", lambda ctx: _line(ctx))
    assert run([*words, "--report", "run.html", "--no-comparison"]) == 0
    assert json.loads(Path("run.json").read_bytes())
    for path in tmp_path.iterdir():
        assert SECRET not in path.read_text("utf-8", errors="replace")


def _line(ctx: object) -> str:
    from thinveil.commands.shared.common import command_line

    class Told:
        obj = ("audit", f"postgresql://ann:se/{SECRET}@h/db", f"--truth=pg://ann:{SECRET}@h")

    return command_line(Told())  # type: ignore[arg-type]


def test_errors_of_the_library_do_not_show_it(tmp_path: Path) -> None:
    for address in FEW:
        with pytest.raises(ThinveilError) as caught:
            opened(address, patience=0.0)
        assert SECRET not in f"{caught.value!r}{caught.value}"
