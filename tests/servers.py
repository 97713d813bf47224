"""Real database servers for tests: a free port, a temporary folder, gone at the end."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

USER = "thinveil"
_PATIENCE = 60.0  # seconds until a server must answer
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/bin"


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
                _wait(partial(_open_postgres, address), server, "PostgreSQL")
                yield address
            finally:
                server.send_signal(signal.SIGINT)  # disconnects everybody, then stops
                server.wait(_PATIENCE)


@contextmanager
def mariadb() -> Iterator[str]:
    """Run a MariaDB server and yield its address. Only this machine can reach it."""
    programs = [shutil.which(each, path=_PATH) for each in ("mariadb-install-db", "mariadbd")]
    if None in programs or not shutil.which("my_print_defaults", path=_PATH):
        absent("MariaDB's server programs are not installed (Debian: mariadb-server-core)")
    install, program = map(str, programs)
    with tempfile.TemporaryDirectory(prefix="thinveil-mariadb-") as folder:
        who = _other_user(folder)
        port = _free_port()
        small = ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M"]
        with open(Path(folder) / "log", "wb") as log:
            said: dict[str, Any] = {"stdout": log, "stderr": log, "cwd": folder, **who}
            rights = ["--auth-root-authentication-method=normal", "--skip-test-db"]
            here = ["--no-defaults", f"--datadir={folder}/data", "--skip-name-resolve", *small]
            subprocess.run([install, *here, *rights], check=True, **said)
            settings = ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder}/socket"]
            settings += [f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0"]
            server = subprocess.Popen([program, *here, *settings], **said)
            try:
                _wait(partial(_open_mariadb, port), server, "MariaDB")
                yield f"mariadb://{USER}@127.0.0.1:{port}/census"
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(_PATIENCE)


def _open_mariadb(port: int) -> None:
    """Make a user and a database, once the server answers."""
    import pymysql

    with pymysql.connect(host="127.0.0.1", port=port, user="root") as root, root.cursor() as cursor:
        cursor.execute("CREATE DATABASE census CHARACTER SET utf8mb4")
        cursor.execute(f"CREATE USER {USER}@'%'")
        cursor.execute(f"GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION")


def _open_postgres(address: str) -> None:
    import psycopg

    psycopg.connect(address, connect_timeout=2).close()


def needs_java() -> None:
    """Skip a test where Spark cannot be started."""
    if importlib.util.find_spec("pyspark") is None:
        absent("PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        absent("Java is not installed")


@contextmanager
def spark_connect() -> Iterator[str]:
    """Run PySpark's own server of Spark Connect, with Java, and yield its address."""
    needs_java()
    from pyspark.find_spark_home import _find_spark_home

    from thinveil.curator.database.spark.tuning import QUICK

    home, port = _find_spark_home(), _free_port()
    with tempfile.TemporaryDirectory(prefix="thinveil-connect-") as folder:
        settings = {
            **QUICK,
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": folder,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
        submit = [f"{home}/bin/spark-submit", "--master", "local[2]", "--class", kind]
        command = [*submit, *conf, "spark-internal"]
        with _connect(command, port, {"PYSPARK_PYTHON": sys.executable}, folder) as address:
            yield address


@contextmanager
def sail() -> Iterator[str]:
    """Run Sail, a server of Spark Connect without Java, and yield its address.

    Its 0.7 wants PySpark below 4.2 in its own process.
    """
    python = os.environ.get("THINVEIL_SAIL")
    if python is None:
        absent(
            "Sail is not installed: make a virtual environment with pysail, numpy, pandas, pyarrow "
            "and pyspark<4.2, and give its Python in THINVEIL_SAIL"
        )
    port = _free_port()
    code = (
        "from pysail.spark import SparkConnectServer as S; "
        f"S('127.0.0.1', {port}).start(background=False)"
    )
    with (
        tempfile.TemporaryDirectory(prefix="thinveil-sail-") as folder,
        _connect([str(python), "-c", code], port, {"RUST_LOG": "error"}, folder) as address,
    ):
        yield address


@contextmanager
def _connect(
    command: list[str], port: int, environment: dict[str, str], folder: str
) -> Iterator[str]:
    process = subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        start_new_session=True,
    )

    def knock() -> None:
        socket.create_connection(("127.0.0.1", port), 1).close()

    try:
        _wait(knock, process, "Spark Connect", 5 * _PATIENCE)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
    raise RuntimeError("database servers do not run as root, and there is no other user")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(
    connect: Callable[[], None],
    server: subprocess.Popen[bytes],
    name: str,
    patience: float = _PATIENCE,
) -> None:
    last = time.monotonic() + patience
    while True:
        try:
            return connect()
        except Exception:  # of a driver
            if server.poll() is not None or time.monotonic() > last:
                raise RuntimeError(f"the {name} server did not start") from None
            time.sleep(0.05)
