"""One door prints: no name, value, file or service sends a control character to a terminal.

The adversary writes a table, names a file, runs a service or a plug-in, or hands over a result, and
wants the clipboard (OSC 52), the cursor, or a line that looks like ours.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

import thinveil
from services import served
from test_http_target import PLAIN, hostile
from test_plugins import GOOD, Install
from test_plugins import install as install  # a fixture
from thinveil.commands import main
from thinveil.commands.main import run
from thinveil.commands.shared import logs
from thinveil.language.schema import Categories, Schema
from thinveil.language.schema_file import read_schema, write_schema
from thinveil.language.texts import in_json, in_toml, one_line, quoted, visible
from thinveil.report.text.screen import Screen, Text, lines
from worlds import sweep

ROOT = Path(thinveil.__file__).parent
DRAWN = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Signs that Unicode calls formats, and that have a shape."""
HIDDEN = [
    sign
    for sign in map(chr, range(0x110000))
    if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") and sign not in DRAWN
]
UNDRAWN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u2065\u3164\uffa0\ufff0\ufff8\U000e0080\U000e01f0\U000e0fff"
)
"""Signs of other classes that no font draws; and below, those that stand behind others."""
VARIANTS = "\u180b\u180c\u180d\u180f\ufe00\ufe0e\ufe0f\U000e0100\U000e01ef"
CLIPBOARD = "\x1b]52;c;eW91cnM=\x07"
FORGED = "\nINJECTED: nothing was found"
PAYLOADS = [
    # all of them at once, but those that no table can have in a name
    f"x{CLIPBOARD}{''.join(sorted({*HIDDEN} - {*chr(0), chr(10), chr(13)}))}{FORGED}",
    f"a{CLIPBOARD}b",
    "a\x1b]52;c;eW91cnM=\x1b\\b",
    "a\x9d52;c;eW91cnM=\x9cb",
    "a\x1b[2J\x1b[77;7Hb",
    "a\x1bPqb\x1b\\",
    "a\x9b77;7Hb",
    "abcdef\rINJECTED",
    "abc\b\b\bINJECTED",
    "a\x7f\x07\x0b\x0cb",
    f"a{FORGED}",
    "a\u2028INJECTED\u2029b\x85c",
    "a\u202egnp.b\u2066c\u2069\u200e\u200f",
    "a\u200b\u2060\ufeff\u00ad\u200db",
    "a\U000e0001\U000e0041\U000e007fb",
    f"a{UNDRAWN}b{VARIANTS}{'b'.join(VARIANTS)}",
    "[red]a[/red][link=http://evil]:smile:",
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def table(bad: str, records: int = 24) -> None:
    """Write a table whose name, header and values are the adversary's, in three forms."""
    cells = [f"{bad}{number % 3}" for number in range(records)]
    quote = [f'"{each}",{number * 7}' for number, each in enumerate(cells)]
    Path("plain.csv").write_text("\n".join([f'"{bad}",pay', *quote]) + "\n", newline="")
    shutil.copyfile("plain.csv", named(bad, "csv"))
    with closing(sqlite3.connect("base.sqlite")) as base:
        name = '"' + bad.replace('"', '""') + '"'
        base.execute(f"CREATE TABLE {name} ({name} TEXT, pay BIGINT)")
        rows = [(each, number * 7) for number, each in enumerate(cells)]
        base.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
        base.commit()
    Path("mine.toml").write_text(
        f'[[attribute]]\nname = {json.dumps(bad)}\nkind = "category"\nvalues = [{json.dumps(bad)}]'
    )


def named(bad: str, end: str) -> str:
    """Return the name of a file, as long as file systems let it be."""
    kept = bad.replace("/", "").replace("\0", "").encode()[:200].decode(errors="ignore")
    return f"{kept}.{end}"


def commands(bad: str) -> Iterator[list[str]]:
    """Yield commands on the adversary's table that go well, and some that do not."""
    small = ["--max-queries", "9", "--transcript", f"t{named(bad, 'transcript')}"]
    yield ["audit", named(bad, "csv"), "--json", "run.json", "--show-records", "-vv"]
    yield ["audit", "plain.csv", "--attack", "column", "--column", bad, "--json", "-"]
    yield ["audit", "plain.csv", "--attack", "column", "--column", f"{bad}?"]
    yield ["audit", "plain.csv", "--attack", "membership", "--known", f"{bad}={bad}0", "--k", "2"]
    yield ["audit", "plain.csv", "--attack", "attribute", "--known", "pay=7", "--column", bad]
    yield ["audit", "plain.csv", "--attack", "membership", "--known", f"{bad}=nobody"]
    yield ["audit", "plain.csv", "--schema", "mine.toml"]
    yield ["audit", "plain.csv", "--drop", f"{bad}x"]
    yield ["audit", "plain.csv", "--precision", f"{bad}=7"]
    yield ["audit", "plain.csv", *small]
    yield ["audit", "--resume", f"t{named(bad, 'transcript')}"]
    yield ["audit", "sqlite://base.sqlite", "--table", bad, "--strategy", "adaptive", "-v"]
    yield ["audit", "sqlite://base.sqlite", "--table", f"{bad}?"]
    yield ["audit", f"{bad}.nothing"]
    yield ["audit", f"http://{bad}/"]
    yield ["audit", f"mine:{bad}"]
    yield ["schema", named(bad, "csv")]
    yield ["schema", named(bad, "csv"), "--json", "-"]
    yield ["schema", named(bad, "csv"), "--output", named(bad, "toml")]
    yield ["schema", "sqlite://base.sqlite", "--table", bad]
    yield ["people", "--records", "2", "--output", f"p{named(bad, 'csv')}"]
    yield ["report", "run.json", "--show-records", "--output", named(bad, "html")]
    yield ["report", named(bad, "json")]
    yield ["reproduce", "membership", "--data", named(bad, "csv")]
    yield ["doctor", bad]
    yield [bad]


def searched(said: str, bad: str = "") -> int:
    """Look for control characters and for lines that are not ours; return how much was read."""
    left = [sign for sign in set(said) - {"\n"} if one_line(sign) != sign]
    assert not left, (left, bad)
    assert not [line for line in said.splitlines() if line.startswith("INJECTED")]
    assert "\U0001f604" not in said  # the emoji that :smile: stands for
    return len(said)


@pytest.mark.parametrize("bad", sweep(PAYLOADS, len(PAYLOADS)), ids=lambda bad: str(len(bad)))
def test_a_hostile_table_sends_nothing(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    table(bad)
    read = []
    for words in commands(bad):
        code = run(words)
        said = capsys.readouterr()
        assert "This is a bug" not in said.err, words
        assert code in (0, 1, 2, 3)
        read.append(searched(said.out + said.err, bad))
    assert len(read) == 26
    assert sum(read) > 10_000
    assert json.loads(Path("run.json").read_text("utf-8"))["exact"]


@pytest.mark.parametrize("name", sweep(main._COMMANDS, len(main._COMMANDS)))
def test_words_of_every_option_come_back_visible(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("small.csv").write_text("age\n" + "".join(f"{20 + n}\n" for n in range(8)))
    source = {"reproduce": "sensitivity", "completion": "bash", "report": "small.csv"}
    positional = {
        each.name for each in main._loaded(name).params if not each.opts[0].startswith("-")
    }
    words = [source.get(name, "small.csv")] if positional else []
    words += ["--port", "q"] if name in ("serve", "lab") else []  # no server is wanted
    words += ["--people", "1"] if name == "compare" else []
    for option in main._loaded(name).params:
        if isinstance(option, click.Option) and not option.is_flag and not option.count:
            run([name, *words, option.opts[-1], PAYLOADS[0]])
            said = capsys.readouterr()
            searched(said.out + said.err, option.opts[-1])
            assert "This is a bug" not in said.err, option.opts


def test_a_hostile_service_sends_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, mechanisms and refusals of a service are its owner's."""
    bad = PAYLOADS[0]
    facts = json.loads(json.dumps(PLAIN))
    facts["attributes"][0]["name"] = bad
    refusal = {"error": {"code": "x", "message": bad}}
    scripts: list[Any] = [
        (200, facts), (200, {**facts, "claim": {**facts["claim"], "name": bad}}),
        (200, {**facts, "service": bad, "format": bad}), (200, {bad: bad}),
        (200, bad.encode()), (403, refusal), (409, refusal), (429, refusal), (500, refusal),
        (200, facts, f"text/{CLIPBOARD}".replace("\x07", "")),
    ]  # fmt: skip
    for script in scripts:
        with hostile(*script) as url:
            for words in (["audit", url], ["doctor", url]):
                code = run([*words, "--patience", "0.2", "-vv"])
                said = capsys.readouterr()
                searched(said.out + said.err, str(script[0]))
                assert code in (1, 2, 3)
                assert "This is a bug" not in said.err
    table(bad)
    with served(thinveil.load("plain.csv"), thinveil.idp(), Path()) as service:
        monkeypatch.setenv("THINVEIL_TOKEN", service.tokens["analyst"])
        assert run(["audit", service.url, "--attack", "column", "--column", bad]) == 0
        assert searched(capsys.readouterr().out) > 1000


def test_a_hostile_plug_in_sends_nothing(
    install: Install,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = PAYLOADS[0].replace("\n", "")
    install(GOOD.replace('"a window"', ascii(bad)))
    install(f"import thinveil\ndef make(k, universe):\n    raise ValueError({bad!a})",
            "their-other", worse="make")  # fmt: skip
    table("a")
    for words in (["audit", "plain.csv"], ["compare", "plain.csv", "--people", "3"]):
        for mechanism in ("mine", "worse", bad):
            run([*words, "--mechanism", mechanism])
            said = capsys.readouterr()
            searched(said.out + said.err, mechanism)
            assert "This is a bug" not in said.err


def test_a_hostile_result_makes_a_page_and_sends_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table("a")
    assert run(["audit", "plain.csv", "--json", "run.json", "--show-records"]) == 0
    whole = json.loads(Path("run.json").read_text())

    left = 0

    def spoilt(value: Any, place: int, bad: str) -> Any:
        nonlocal left
        if isinstance(value, dict):
            return {key: spoilt(each, place, bad) for key, each in value.items()}
        if isinstance(value, list):
            return [spoilt(each, place, bad) for each in value]
        if isinstance(value, str):
            left -= 1
            return bad if left == 0 else value
        return value

    for place in range(1, 120, 6):
        left = place
        Path("bad.json").write_text(json.dumps(spoilt(whole, place, PAYLOADS[0])))
        run(["report", "bad.json", "--output", f"{place}.html"])
        said = capsys.readouterr()
        searched(said.out + said.err, str(place))
        if (page := Path(f"{place}.html")).exists():
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page.read_text())


@pytest.mark.parametrize("bad", PAYLOADS, ids=lambda bad: str(len(bad)))
def test_sentences_and_errors_of_the_library_send_nothing(bad: str) -> None:
    """At a prompt and in a notebook nothing stands between them and the screen."""
    table(bad)
    held = thinveil.load("plain.csv")
    said = thinveil.audit(held, attack="column", columns=bad).sentence()
    wrong = (
        lambda: thinveil.load(bad),
        lambda: thinveil.load(f"sqlite://{bad}"),
        lambda: thinveil.load("plain.csv", drop=[f"{bad}?"]),
        lambda: thinveil.audit(held, attack="column", columns=f"{bad}?"),
    )
    for each in wrong:
        with pytest.raises(thinveil.ThinveilError) as caught:
            each()
        shown = "".join(traceback.format_exception_only(caught.value))
        assert shown.removesuffix("\n").isprintable()
    assert searched(said, bad) > 50


OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r(?=\n|\x1b\[)")
"""What rich itself sends: colours, the cursor hidden and shown, a line up, a line cleared."""


def at_terminal(*words: str, code: str = "", **environment: str) -> tuple[int, str]:
    """Run a command in a terminal of its own; return its exit code and all that came."""
    child, screen = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", **environment)
        what = ["-c", code] if code else ["-m", "thinveil"]
        os.execv(sys.executable, [sys.executable, *what, *words])
    came = bytearray()
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:
            break
        if not part:
            break
        came += part
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), came.decode()


@pytest.mark.parametrize("place", sweep(range(26), 26))
@pytest.mark.parametrize("colour", [{"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}], ids=str)
def test_a_real_terminal_gets_only_what_rich_itself_sends(
    place: int, colour: dict[str, str]
) -> None:
    bad = PAYLOADS[0].replace("\x1b[", "\x1b?")
    table(bad)
    assert run([*next(commands(bad))]) == 0
    words = [*commands(bad)][place]
    if place == 0:
        words[3] = "again.json"
        if "NO_COLOR" in colour:
            words = ["schema", words[1]]
    _, came = at_terminal(*words, **colour)
    searched(OURS.sub("", came))
    assert place or "\\x1b]52;c;" in came or "\\u001b]52;c;" in came


def test_what_others_write_passes_the_door() -> None:
    """Warnings, tracebacks and prints of libraries; colours of ours pass it unharmed."""
    code = """
    import sys, warnings
    from thinveil.report.text.streams import guard
    guard()
    bad = sys.argv[1]
    print(bad)
    sys.stderr.writelines([bad, "\\n"])
    warnings.warn(bad)
    warnings.warn_explicit("x", UserWarning, bad, 1)
    from thinveil.report.text.screen import Screen, Text
    Screen(force_terminal=True, color_system="standard").print(Text("red", "red"))
    raise ValueError(bad)
    """
    bad = PAYLOADS[0].replace("\udcff", "")
    done = subprocess.run(
        [sys.executable, "-c", re.sub("^    ", "", code.strip("\n"), flags=re.MULTILINE), bad],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "\x1b[31mred" in out
    left = {*OURS.sub("", out), *err} - {"\n", "\t"}
    assert not [sign for sign in left if one_line(sign) != sign]
    assert err.count("\\x1b]52") == 4


BAR = """
import sys, warnings
from types import SimpleNamespace as Any
from thinveil.report.text.progress import progress
from thinveil.report.text.screen import screen
from thinveil.report.text.streams import guard
guard()
for console in (screen(stderr=True), screen(stderr=False)):
    with progress(console) as seen:
        seen(Any(queries=5), Any(label=sys.argv[1], done=0.5))
        print(sys.argv[1])
        print(sys.argv[1], file=sys.stderr)
        warnings.warn(sys.argv[1])
    with console.status("opening"):
        print(sys.argv[1], file=sys.stderr)
assert sys.stdout.bare and sys.stderr.bare
"""


def test_what_others_write_beside_a_bar_is_shown_whole() -> None:
    """A bar reads escapes in it as styles and links, and leaves out what stands before a return."""
    bad = "kept\rover \x1b[8mhidden \x1b]8;;http://evil\x1b\\link\x1b[0m"
    ended, came = at_terminal(bad, code=BAR, COLUMNS="300")
    assert ended == 0, came
    shown = OURS.sub("", came)
    searched(shown)
    assert "\x1b[8m" not in came
    # once for each print and warning, and once more where a warning shows its line
    assert shown.count(one_line(bad)) >= 8


def test_a_log_has_one_line_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    end = logs.show(2)
    try:
        logging.getLogger("thinveil.x").info("opened %s", PAYLOADS[0])
        try:
            raise ValueError(CLIPBOARD)
        except ValueError:
            logging.getLogger("thinveil.x").exception("failed")
    finally:
        end()
    said = capsys.readouterr().err
    searched(said)
    assert "Traceback" in said
    assert [line.count("opened") for line in said.splitlines() if "thinveil.x" in line] == [1, 0]


def test_cells_are_as_wide_as_what_they_show() -> None:
    """Texts are made visible before they are laid out: nothing is cut off."""
    from rich.table import Table

    with Path("out").open("w+") as file:
        console = Screen(file=file, width=60)
        found = Table()
        found.add_column(f"[b]{CLIPBOARD}")
        found.add_row(Text(CLIPBOARD))
        found.add_row(lines(["one", f"two{FORGED}"]))
        console.print(found)
        file.seek(0)
        said = file.read()
    searched(said)
    assert said.count("\\x1b]52;c;eW91cnM=\\x07") == 2
    assert "│ one " in said
    assert f"│ two{FORGED}".replace("\n", "\\n") in said


def test_every_hidden_character_is_shown_once() -> None:
    for sign in [*HIDDEN, *UNDRAWN, *VARIANTS, "\ud800", "\udc9b", "\udfff"]:
        shown = one_line(sign)
        assert shown.isascii()
        assert shown.isprintable()
        assert shown == ascii(sign)[1:-1]
        assert one_line(shown) == shown
        assert visible(f"a{sign}") == (f"a{sign}" if sign in "\n\t" else f"a{shown}")
    for text in PAYLOADS:
        assert visible(visible(text)) == visible(text)
        assert one_line(one_line(text)) == one_line(text)


def test_variants_hide_nothing() -> None:
    """A face, and behind it a message of selectors: 4 bits each would reach whoever copies it."""
    message = "\U0001f600" + "".join(chr(0xFE00 + ord(each) % 16) for each in "a message")
    assert visible(message) == "\U0001f600\ufe01" + ascii(message[2:])[1:-1]


@pytest.mark.parametrize(
    "text",
    ["Größe (kg)", "\u0645\u06cc\u200c\u062e\u0648", "\U0001f468\u200d\U0001f469",
     "क\u094d\u200dष",
     "日本\u3000", "naïve", "e\u0301", DRAWN, "C:\\x1b", "\u2764\ufe0f\u200d\U0001f525",
     "葛\U000e0100", "1\ufe0f\u20e3", "\xa9\ufe0f", "\u1820\u180b"],
)  # fmt: skip
def test_honest_texts_stay(text: str) -> None:
    assert visible(text) == one_line(text) == text


@pytest.mark.parametrize("bad", PAYLOADS, ids=lambda bad: str(len(bad)))
def test_files_mean_the_same_with_their_escapes(bad: str) -> None:
    plain = json.dumps({bad: [bad]}, ensure_ascii=False, indent=2)
    assert json.loads(in_json(plain)) == {bad: [bad]}
    assert visible(in_json(plain)) == in_json(plain)
    schema = Schema((Categories(bad, (bad, f"{bad}x")),))
    written = write_schema(schema)
    assert visible(written) == in_toml(written) == written
    Path("s.toml").write_text(written, "utf-8", newline="")
    assert read_schema("s.toml") == schema
    assert tomllib.loads(written)["attribute"][0]["name"] == bad


def test_copied_commands_name_the_same_files() -> None:
    """A file called $(rm -rf ~).csv or with an escape is one harmless word in bash."""
    words = ["$(touch owned).csv", "`touch owned`", "a;touch owned", "it's", "a\\b", "-x", "",
             "\udc9b.csv", "a\\'\n$(touch owned)", *PAYLOADS]  # fmt: skip
    line = " ".join(map(quoted, words))
    assert one_line(line) == line
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]
    assert not Path("owned").exists()


DOORS = {"report/text/streams.py", "report/text/screen.py"}
ALLOWED = {
    ("commands/shared/interruptions.py", "os.write"),
    ("auditing/transcript.py", "os.write"),
    ("auditing/http.py", "warnings.warn"),
}
"""A constant text while modules are imported; a descriptor of a file; an origin, which is ASCII."""
PRINTING = re.compile(
    r"print|pprint|input|click\.(echo|secho|echo_via_pager|confirm|prompt|progressbar|pause|clear|edit)"
    r"|sys\.(__)?(stdout|stderr)(__)?(\.buffer)?(\.raw)?\.write(lines)?|os\.(writev?|system|popen|exec\w+)"
    r"|(rich\.)?Console|.*\.Console|(rich\.)?text\.Text|rich\.\w+|.*\.from_(markup|ansi)"
    r"|logging\.(StreamHandler|basicConfig|lastResort)|traceback\.print_\w+|warnings\.(warn|showwarn)\w*"
    r"|.*\bsys\.(displayhook|excepthook)"
)
BARS = ("Progress", "track", "Live", "Status")
"""What draws on a console of its own unless it is given one."""
PRINTERS = {
    "click": {
        "echo",
        "secho",
        "confirm",
        "prompt",
        "progressbar",
        "echo_via_pager",
        "pause",
        "edit",
    },
    "rich": {"print", "print_json", "inspect", "get_console", "pretty"},
    "rich.text": {"Text"},
    "rich.console": {"capture"},
    "pprint": {"pprint", "pp"},
    "sys": {"stdout", "stderr", "__stdout__", "__stderr__"},
    "logging": {"StreamHandler", "basicConfig"},
    "warnings": {"warn"},
}


def prints(source: str) -> list[str]:
    """Return what a module calls or imports to print by itself, or lets a child print."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = PRINTERS.get(node.module or "", set())
            found += [each.name for each in node.names if each.name in names]
            found += [
                f"{each.name} as {each.asname}" for each in node.names if each.asname == "Console"
            ]
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if each.asname and each.name in PRINTERS]
        if not isinstance(node, ast.Call):
            continue
        called, given = ast.unparse(node.func), {each.arg for each in node.keywords}
        words = [
            ast.unparse(each) for each in (*node.args, *(each.value for each in node.keywords))
        ]
        held = [
            each for each in words if re.fullmatch(r"sys\.(__)?std(out|err)(__)?(\.\w+)?", each)
        ]
        bare = called in BARS and "console" not in given
        child = called.startswith("subprocess.") and not given & {"capture_output", "stdout"}
        if PRINTING.fullmatch(called) or held or bare or child:
            found.append(called)
    return found


def test_one_place_prints() -> None:
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        calls = {(name, each) for each in prints(path.read_text("utf-8"))}
        assert name in DOORS or calls <= ALLOWED, calls


@pytest.mark.parametrize(
    "line",
    ["print(1)", "click.echo('x')", "sys.stdout.write('x')", "sys.stderr.buffer.write(b'x')",
     "from rich.text import Text", "from click import echo", "Console()", "rich.console.Console()",
     "logging.StreamHandler()", "os.write(1, b'x')", "traceback.print_exc()",
     "from sys import stdout", "from click import confirm", "import click as c", "rich.inspect(x)",
     "Progress(BarColumn())", "track(x)", "subprocess.run(['x'])", "os.system('x')",
     "Text.from_markup(x)", "logging.Handler(sys.stderr)", "open(sys.stdout.fileno)",
     "shutil.copyfileobj(x, sys.stdout.buffer)", "warnings.showwarning(x)"],
)  # fmt: skip
def test_the_guard_sees_a_second_place(line: str) -> None:
    assert prints(line)
