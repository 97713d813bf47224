"""A real PostgreSQL server for tests: a free port, a temporary folder, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

USER = "thinveil"
_PATIENCE = 60.0  # seconds until a server must answer


def absent(what: str) -> None:
    """Skip a test that needs what is not installed; on the project's own machines, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI=true: it must be there")
    pytest.skip(what)


def postgres_binaries() -> Path | None:
    """Return the folder with PostgreSQL's server programs, the newest version first."""
    found = [each.parent for each in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(
            found, key=lambda each: int(each.parent.name) if each.parent.name.isdigit() else 0
        )
    at = shutil.which("initdb")
    return None if at is None else Path(at).resolve().parent


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server and yield its address. Only this machine can reach it.

    The server refuses to run as root, so root starts it as another user.
    """
    programs = postgres_binaries()
    if programs is None:
        absent("PostgreSQL's server programs are not installed (Debian: postgresql)")
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="thinveil-postgres-") as folder:
        who = _other_user(folder)
        data = str(Path(folder) / "data")
        subprocess.run(
            [
                programs / "initdb",
                "-D",
                data,
                "-U",
                USER,
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=folder,
            **who,
        )
        port = _free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": folder,
            "fsync": "off",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with open(Path(folder) / "log", "wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, *options],
                stdout=log,
                stderr=log,
                cwd=folder,
                **who,
            )
            try:
                address = f"postgresql://{USER}@127.0.0.1:{port}/postgres"
                _wait(address, server)
                yield address
            finally:
                server.send_signal(signal.SIGINT)  # disconnects everybody, then stops
                server.wait(_PATIENCE)


def _other_user(folder: str) -> dict[str, Any]:
    """Return how to start a program as somebody else, where this is root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL does not run as root, and there is no other user")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    last = time.monotonic() + _PATIENCE
    while True:
        try:
            psycopg.connect(address, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > last:
                raise RuntimeError("the PostgreSQL server did not start") from None
            time.sleep(0.05)
