"""Clients of tus by others upload to `wakeai serve` and go on after their connection was cut.

`scripts/test-peers` runs this. WAKEAI names the program, NODE_MODULES the packages of package.json.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from tusclient import client as tus

HERE = Path(__file__).parent
WAKEAI = os.environ["WAKEAI"]
MODULES = Path(os.environ["NODE_MODULES"])
SIZE = 8_000_000
# A cut comes after so many bytes of a client: in the middle of a request.
CUT = 2_500_000


def pattern(size: int) -> bytes:
    return bytes((at ^ (at >> 8) ^ (at >> 16)) & 255 for at in range(size))


BODY = pattern(SIZE)


class Serve:
    """A running server."""

    def __init__(self, directory: Path, *options: str) -> None:
        command = [WAKEAI, "serve", str(directory), "--listen", "127.0.0.1:0", "--json", *options]
        self.directory = directory
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        host, port = json.loads(self.process.stdout.readline())["address"].split(":")
        self.address = (host, int(port))

    def kept(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0


class Cutter:
    """A forwarder on another port, which cuts its first connections after CUT bytes of the client, together."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.to = to
        self.left: int | None = CUT
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(self.to)
            threading.Thread(target=self.up, args=(near, far), daemon=True).start()
            threading.Thread(target=self.copy, args=(far, near), daemon=True).start()

    def up(self, near: socket.socket, far: socket.socket) -> None:
        try:
            while piece := near.recv(65536):
                if self.left is not None:
                    self.left -= len(piece)
                    if self.left <= 0:
                        self.left = None
                        self.cuts += 1
                        for end in (near, far):
                            end.shutdown(socket.SHUT_RDWR)
                        return
                far.sendall(piece)
            far.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def copy(self, far: socket.socket, near: socket.socket) -> None:
        try:
            while piece := far.recv(65536):
                near.sendall(piece)
            near.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    directory = tmp_path / "uploads"
    directory.mkdir()
    server = Serve(directory)
    yield server
    server.stop()


@pytest.fixture
def cutter(serve: Serve) -> Iterator[Cutter]:
    cutter = Cutter(serve.address)
    yield cutter
    cutter.listener.close()


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo 1.jpg"
    path.write_bytes(BODY)
    return path


def test_tus_js_client_in_node_uploads_and_goes_on_after_a_cut(serve: Serve, cutter: Cutter, photo: Path, tmp_path: Path) -> None:
    # Node looks for packages beside the script.
    script = tmp_path / "upload.mjs"
    shutil.copy(HERE / "upload.mjs", script)
    (tmp_path / "node_modules").symlink_to(MODULES)
    command = ["node", str(script), str(photo), f"http://127.0.0.1:{cutter.port}/files"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    print(f"tus-js-client: {said}")
    assert (cutter.cuts, said["interruptions"] >= 1) == (1, True)
    assert serve.kept(photo.name) == BODY


def test_tuspy_uploads_and_goes_on_after_a_cut(serve: Serve, cutter: Cutter, photo: Path) -> None:
    client = tus.TusClient(f"http://127.0.0.1:{cutter.port}/files")
    metadata = {"filename": photo.name}
    uploader = client.uploader(str(photo), chunk_size=1_000_000, metadata=metadata)
    with pytest.raises(Exception) as cut:  # whichever its HTTP library raises
        uploader.upload()
    assert cutter.cuts == 1
    again = client.uploader(str(photo), chunk_size=1_000_000, url=uploader.url)
    print(f"tuspy: {type(cut.value).__name__} after a cut, goes on at {again.offset}")
    assert again.offset > 0
    again.upload()
    assert serve.kept(photo.name) == BODY


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """The address of the page with Uppy: another origin than the server's."""
    root = tmp_path / "page"
    root.mkdir()
    shutil.copy(HERE / "page.html", root)
    shutil.copy(MODULES / "uppy/dist/uppy.min.js", root)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(root))
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://localhost:{site.server_address[1]}/page.html"
    site.shutdown()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


UPLOAD = "const done = arguments[3]; upload(arguments[0], arguments[1], arguments[2]).then(done, (error) => done(String(error)))"


def test_uppy_in_chromium_uploads_from_a_page_of_another_origin_and_goes_on_after_a_cut(
    serve: Serve, cutter: Cutter, page: str, browser: webdriver.Chrome
) -> None:
    browser.get(page)
    said = browser.execute_async_script(UPLOAD, f"http://127.0.0.1:{cutter.port}/files", "clip.bin", SIZE)
    log = browser.get_log("browser")
    print(f"Uppy: {said}")
    assert said["failed"] == [], (said, log)
    assert cutter.cuts == 1
    assert len(said["urls"]) == 1
    assert serve.kept("clip.bin") == BODY


def test_uppy_in_chromium_is_refused_by_a_server_for_other_origins(tmp_path: Path, page: str, browser: webdriver.Chrome) -> None:
    directory = tmp_path / "uploads"
    directory.mkdir()
    server = Serve(directory, "--allow-origin", "https://app.example")
    browser.get(page)
    script = "const done = arguments[1]; fetch(arguments[0], {method: 'POST', headers: {'Tus-Resumable': '1.0.0', 'Upload-Length': '5'}}).then((answer) => done(answer.status), (error) => done(String(error)))"
    said = browser.execute_async_script(script, "http://%s:%d/files" % server.address)
    assert "Failed to fetch" in str(said)
    server.stop()


NGINX = """
daemon off;
pid {root}/nginx.pid;
error_log stderr;
events {{}}
http {{
  client_body_temp_path {root}/body;
  proxy_temp_path {root}/proxy;
  fastcgi_temp_path {root}/fastcgi;
  uwsgi_temp_path {root}/uwsgi;
  scgi_temp_path {root}/scgi;
  access_log off;
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 0;
    location /up/ {{
      proxy_pass http://{serve}/;
      proxy_request_buffering off;
      {more}
    }}
  }}
}}
"""


@pytest.mark.parametrize("more", ["", "proxy_http_version 1.1; proxy_set_header X-Forwarded-For $remote_addr;"])
def test_tuspy_uploads_through_nginx_below_a_path_of_its_own(serve: Serve, photo: Path, tmp_path: Path, more: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX.format(root=tmp_path, port=port, serve="%s:%d" % serve.address, more=more))
    nginx = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(tmp_path), "-c", str(config)])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert nginx.poll() is None, "nginx ended"
        client = tus.TusClient(f"http://127.0.0.1:{port}/up/files")
        uploader = client.uploader(str(photo), chunk_size=1_000_000, metadata={"filename": photo.name})
        uploader.upload()
        assert uploader.url.startswith(f"http://127.0.0.1:{port}/up/files/"), uploader.url
        assert serve.kept(photo.name) == BODY
    finally:
        nginx.terminate()
        nginx.wait(60)
