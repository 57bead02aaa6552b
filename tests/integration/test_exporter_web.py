"""The exporter's port as a process: TLS, passwords, tokens, files that change, and crowds."""

import base64
import datetime
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import bcrypt
import pytest
from prometheus_client.parser import text_string_to_metric_families as read_text

from slicewatch.service import certificates

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 30.0
DAY = datetime.timedelta(days=1)
QUICK = ("--tick-seconds", "0.2", "--window-seconds", "1", "--stale-seconds", "2")
PASSWORD = "Basic " + base64.b64encode(b"alice:secret").decode()
VALID = "slicewatch_config_last_reload_successful"
VALID_AT = "slicewatch_config_last_reload_success_timestamp_seconds"


class Exporter:
    """A running exporter, its log, and ways to ask it."""

    def __init__(self, process):
        self.process = process
        self.log = []
        self.context = None
        threading.Thread(target=self._read, daemon=True).start()
        _, _, port = self.wait_for("serving")["address"].rpartition(":")
        self.port = int(port)

    def _read(self):
        for line in self.process.stderr:
            is_entry = line.startswith("{")
            self.log.append(json.loads(line) if is_entry else {"event": line})

    def wait_for(self, event, **fields):
        """Return the first entry of that event with these fields."""

        def found():
            for entry in list(self.log):
                if entry["event"].startswith(event) and fields.items() <= entry.items():
                    return entry
            assert self.process.poll() is None, self.log
            return None

        return until(found)

    def get(self, path, context=None, **headers):
        """Return status and text over a new connection."""
        if context is None:
            context = self.context
        made = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            if context is None
            else http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
        )
        try:
            made.request("GET", path, headers=headers)
            response = made.getresponse()
            return response.status, response.read().decode()
        finally:
            made.close()

    def samples(self, **headers):
        _, text = self.get("/metrics", **headers)
        return [s for family in read_text(text) for s in family.samples]

    def value(self, name, **headers):
        return next((s.value for s in self.samples(**headers) if s.name == name), None)

    def look(self):
        """Tell the exporter to look at its files now."""
        self.process.send_signal(signal.SIGHUP)


def until(condition):
    """Return the first true result of a condition; fail where none comes in time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if result := condition():
            return result
        threading.Event().wait(0.02)
    raise AssertionError("it never came to be")


def command(*arguments):
    return [
        sys.executable, "-m", "cli", "exporter", "--listen", "127.0.0.1:0",
        "--kubelet-socket", "", "--simulate", "demo", *QUICK, *map(str, arguments),
    ]  # fmt: skip


@pytest.fixture
def start():
    """Start exporters that are ended with the test, however it ends."""
    processes = []

    def start(*arguments, within=()):
        process = subprocess.Popen(
            [*within, *command(*arguments)], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return Exporter(process)

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


class Mounted:
    """A folder as the kubelet mounts ConfigMaps and Secrets: links through ``..data``."""

    def __init__(self, folder, **files):
        self.folder = folder
        self.number = 0
        folder.mkdir()
        self.swap(**files)
        for name in files:
            (folder / name.replace("_", ".")).symlink_to(f"..data/{name.replace('_', '.')}")

    def swap(self, **files):
        """Replace all files at once; their times stay the same."""
        self.number += 1
        new = self.folder / f"..{self.number}"
        new.mkdir()
        for name, content in files.items():
            path = new / name.replace("_", ".")
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            os.utime(path, (1, 1))
        (self.folder / "..data_tmp").symlink_to(new.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        if self.number > 1:
            shutil.rmtree(self.folder / f"..{self.number - 1}")

    def __truediv__(self, name):
        return self.folder / name


@pytest.fixture(scope="module")
def authority():
    return certificates.issue("authority", lifetime=DAY, authority=True)


def server_files(authority):
    made = certificates.issue(
        "exporter", lifetime=DAY, issuer=authority, server_names=["127.0.0.1"]
    )
    return {"tls_crt": made.certificate_pem, "tls_key": made.key_pem}


def client_context(authority, folder=None, name=""):
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    if name:
        made = certificates.issue(name, lifetime=DAY, issuer=authority, client=True)
        path = folder / f"{name}.pem"
        path.write_bytes(made.certificate_pem + made.key_pem)
        context.load_cert_chain(path)
    return context


TLS = "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"


def test_a_certificate_is_rotated_as_kubernetes_does_it(start, tmp_path, authority):
    """dcgm-exporter #248, and the ``..data`` swap that its watcher misses."""
    mounted = Mounted(tmp_path / "web", web_yml=TLS, **server_files(authority))
    exporter = start("--web-config-file", mounted / "web.yml")
    exporter.context = client_context(authority)
    assert exporter.value(VALID) == 1
    since = exporter.value(VALID_AT)
    assert since == pytest.approx(time.time(), abs=60)

    mounted.swap(web_yml=TLS, tls_crt=b"garbled", tls_key=b"")
    exporter.look()
    fault = exporter.wait_for("not reloaded")["fault"]
    assert "certificate and key cannot be used" in fault
    until(lambda: exporter.value(VALID) == 0)
    assert exporter.value(VALID_AT) == since

    successor = certificates.issue("successor", lifetime=DAY, authority=True)
    mounted.swap(web_yml=TLS, **server_files(successor))
    # Without a signal: the files are looked at every few seconds.
    exporter.wait_for("reloaded", what="web_config_file")
    with pytest.raises(ssl.SSLError):
        exporter.get("/metrics")
    exporter.context = client_context(successor)
    until(lambda: exporter.value(VALID) == 1)
    assert exporter.value(VALID_AT) > since


def test_passwords_and_tokens_guard_what_they_are_for(start, tmp_path):
    web = tmp_path / "web.yml"
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(10)).decode()
    web.write_text(f"basic_auth_users: {{alice: {hashed}}}\n")
    tokens = tmp_path / "tokens"
    tokens.write_text("first\n")
    exporter = start("--web-config-file", web, "--snapshot-token-file", tokens)
    assert exporter.get("/metrics")[0] == 401
    assert exporter.get("/")[0] == 401
    assert exporter.get("/livez")[0] == 200
    until(lambda: exporter.get("/readyz")[0] == 200)
    assert exporter.get("/metrics", Authorization=PASSWORD)[0] == 200
    began = time.monotonic()
    for _ in range(20):
        assert exporter.get("/metrics", Authorization=PASSWORD)[0] == 200
    assert time.monotonic() - began < 20 * 0.05, "a password is hashed for every scrape"

    status, text = exporter.get("/snapshot", Authorization=PASSWORD)
    assert status == 401
    assert "snapshot_token_file" in text
    assert exporter.get("/snapshot", Authorization="Bearer first")[0] == 200
    tokens.write_text("second\nthird\n")
    exporter.look()
    exporter.wait_for("reloaded", what="snapshot_token_file")
    assert exporter.get("/snapshot", Authorization="Bearer first")[0] == 401
    for token in ("second", "third"):
        assert exporter.get("/snapshot", Authorization=f"Bearer {token}")[0] == 200
    tokens.unlink()
    exporter.look()
    exporter.wait_for("not reloaded", what="snapshot_token_file")
    assert exporter.get("/snapshot", Authorization="Bearer third")[0] == 200


def test_a_client_certificate_of_a_listed_name_reads_snapshots(start, tmp_path, authority):
    web = (
        "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
        "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: ca.crt\n"
    )
    mounted = Mounted(
        tmp_path / "web", web_yml=web, ca_crt=authority.certificate_pem, **server_files(authority)
    )
    exporter = start(
        "--web-config-file", mounted / "web.yml", "--snapshot-client-names", "adapter"
    )
    exporter.context = client_context(authority)
    until(lambda: exporter.get("/readyz")[0] == 200)
    assert exporter.get("/metrics")[0] == 200
    assert exporter.get("/snapshot")[0] == 403
    adapter, other = (client_context(authority, tmp_path, name) for name in ("adapter", "other"))
    assert exporter.get("/snapshot", adapter)[0] == 200
    status, text = exporter.get("/snapshot", other)
    assert status == 403
    assert "certificate of other" in text

    successor = certificates.issue("clients", lifetime=DAY, authority=True)
    mounted.swap(web_yml=web, ca_crt=successor.certificate_pem, **server_files(authority))
    exporter.look()
    exporter.wait_for("reloaded", what="web_config_file")
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        exporter.get("/snapshot", adapter)


def test_an_open_snapshot_is_said_once_at_the_start(start):
    exporter = start()
    exporter.wait_for("whoever reaches the port can read", level="info")
    until(lambda: exporter.get("/snapshot")[0] == 200)


def test_settings_take_effect_while_the_exporter_runs(start, tmp_path):
    """dcgm-exporter #248, #480: a changed ConfigMap needs no restart, and never an empty page."""

    def settings(**given):
        return json.dumps({"metrics": ["gpu_power_usage_watts"], "labels": {"a": "1"}} | given)

    mounted = Mounted(tmp_path / "settings", exporter_json=settings())
    exporter = start("--config", mounted / "exporter.json")

    def shown():
        return {s.name: s.labels for s in exporter.samples() if s.name.startswith("gpu_")}

    until(lambda: shown().get("gpu_power_usage_watts", {}).get("a") == "1")
    assert "gpu_temperature_celsius" not in shown()

    mounted.swap(
        exporter_json=settings(
            metrics=["gpu_temperature_celsius"],
            labels={"b": "2"},
            log_level="debug",
            scrape_interval="20s",
            node_name="other",
        )
    )
    exporter.look()
    names = exporter.wait_for("settings took effect")["names"]
    assert names == ["labels", "log_level", "metrics", "scrape_interval"]
    assert exporter.wait_for("settings take effect after")["names"] == ["node_name"]

    def changed():
        labels = shown().get("gpu_temperature_celsius", {})
        return labels.get("b") == "2" and "a" not in labels

    until(changed)
    assert "gpu_power_usage_watts" not in shown()

    mounted.swap(exporter_json='{"metrics": ["gpu_temprature_celsius"]}')
    exporter.look()
    assert "did you mean" in exporter.wait_for("not reloaded", what="settings")["fault"]
    assert "gpu_temperature_celsius" in shown()
    until(lambda: exporter.value(VALID) == 0)


def test_a_new_price_takes_effect_while_the_exporter_runs(start, tmp_path):
    mounted = Mounted(tmp_path / "settings", exporter_json='{"prices": {"H100-80GB": 2.5}}')
    exporter = start("--config", mounted / "exporter.json")
    price = "gpu_price_dollars_per_hour"
    until(lambda: exporter.value(price) == 2.5)

    mounted.swap(exporter_json='{"prices": {"H100-80GB": 3}}')
    exporter.look()
    until(lambda: exporter.value(price) == 3)

    mounted.swap(exporter_json='{"prices": {"H100": 3}}')
    exporter.look()
    assert "write '*H100*'" in exporter.wait_for("not reloaded", what="settings")["fault"]
    assert exporter.value(price) == 3

    mounted.swap(exporter_json='{"prices": {}}')
    exporter.look()
    until(lambda: exporter.value(price) is None)


def test_a_file_that_cannot_be_served_with_ends_the_start_with_what_to_do(tmp_path):
    web = tmp_path / "web.yml"
    web.write_text("tls_server_config: {cert_files: x}\n")
    tokens = tmp_path / "tokens"
    tokens.write_text("")
    for arguments, why in (
        (("--web-config-file", web), "unknown key 'cert_files'; did you mean cert_file?"),
        (("--snapshot-token-file", tokens), "has no token; write one on a line"),
        (("--snapshot-token-file", tmp_path / "none"), "No such file"),
        (("--snapshot-client-names", "adapter"), "set web_config_file"),
    ):
        ended = subprocess.run(
            command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
        assert ended.returncode == 2
        assert why in ended.stderr
        assert "Traceback" not in ended.stderr
        assert "Warning" not in ended.stderr


def test_a_crowd_of_silent_connections_keeps_no_scrape_from_being_answered(start):
    """dcgm-exporter #599: whoever asks too much takes nothing from those who ask normally."""
    exporter = start(within=("sh", "-c", 'ulimit -n 256; exec "$@"', "sh"))
    silent = [socket.create_connection(("127.0.0.1", exporter.port), 10) for _ in range(400)]
    try:
        for _ in range(3):
            assert exporter.get("/metrics")[0] == 200
        assert len([*Path(f"/proc/{exporter.process.pid}/fd").iterdir()]) < 200
        exporter.wait_for("too many connections")
    finally:
        for connection in silent:
            connection.close()
