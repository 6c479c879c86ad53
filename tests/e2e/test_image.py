"""The image: what is in it, that anyone gets the same one, and that it finds servers by name and trusts the public
authorities with nothing but what it holds."""
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import tarfile
import threading

import pytest

from harness import OUT, ROOT, die_with_parent, kubectl, run, wait

IMAGE = ROOT / "build/faasrl-mpa.tar"
LIMIT_MIB = 60
BUNDLE = "etc/ssl/certs/ca-certificates.crt"
NAME = "prometheus.monitoring.svc.cluster.local"
NAMESERVER = "127.0.0.77"


def read(archive=IMAGE):
    """The image's manifest digest, its config and its layer as a tar."""
    with tarfile.open(archive) as tar:
        def blob(digest):
            return tar.extractfile("blobs/" + digest.replace(":", "/")).read()
        entry = json.load(tar.extractfile("index.json"))["manifests"][0]
        manifest = json.loads(blob(entry["digest"]))
        layer = gzip.decompress(blob(manifest["layers"][0]["digest"]))
        return entry["digest"], json.loads(blob(manifest["config"]["digest"])), tarfile.open(fileobj=io.BytesIO(layer))


def test_it_is_small_and_holds_no_more_than_it_needs():
    assert IMAGE.stat().st_size < LIMIT_MIB << 20
    _, config, layer = read()
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/faasrl-mpa"]
    names = layer.getnames()
    assert {"faasrl-mpa", "mpactl", BUNDLE, "etc/passwd", "etc/nsswitch.conf"} <= set(names)
    programs = [m.name for m in layer if m.isfile() and m.mode & 0o111 and not re.search(r"\.so(\.|$)", m.name)]
    assert sorted(programs) == ["faasrl-mpa", "mpactl"], "no shell, no tools"
    for member in layer:
        assert member.uid == member.gid == 0 and not member.mode & 0o6022, f"{member.name} could be changed"
        assert member.isfile() or member.isdir()
    assert b".debug_info" not in layer.extractfile("faasrl-mpa").read()


def test_two_builds_are_the_same(tmp_path):
    """Here and in another place, as two people would build it; with the policy that was learned here, as that
    it is learned alike twice is tested with mpactl policy."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CONTROLLER")}
    where = tmp_path / "another" / "place"
    (where / "build").mkdir(parents=True)
    for part in ("Makefile", "pkg", "cmd", "tools", "build/policy"):
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, where / part)
    subprocess.run(["make", "-j2", "image"], cwd=where, env=env, check=True, stdout=subprocess.DEVNULL, timeout=600)
    there = read(where / "build/faasrl-mpa.tar")[0]
    shutil.rmtree(where)
    assert there == read()[0]


def test_the_sbom_names_every_file_and_where_it_is_from(tmp_path):
    told = []
    for name in ("one", "two"):
        run(ROOT / "tools/sbom", "--image", IMAGE, "--version", "0.1.0", "--out", tmp_path / name)
        told.append((tmp_path / name).read_bytes())
    assert told[0] == told[1], "the same image, another SBOM"
    bom = json.loads(told[0])
    digest, _, layer = read()
    assert bom["spdxVersion"] == "SPDX-2.3" and digest.split(":")[1] in bom["documentNamespace"]
    files = {f["fileName"].removeprefix("./"): {c["algorithm"]: c["checksumValue"] for c in f["checksums"]}["SHA256"]
             for f in bom["files"]}
    assert files == {m.name: hashlib.sha256(layer.extractfile(m).read()).hexdigest() for m in layer if m.isfile()}

    named = {element["SPDXID"]: element for element in bom["files"] + bom["packages"]}
    assert len(named) == len(bom["files"]) + len(bom["packages"]), "two have the same identifier"
    relations = bom["relationships"]
    assert {r[end] for r in relations for end in ("spdxElementId", "relatedSpdxElement")} <= {"SPDXRef-DOCUMENT", *named}
    held = [r["relatedSpdxElement"] for r in relations if r["relationshipType"] == "CONTAINS"]
    assert sorted(held) == sorted(f["SPDXID"] for f in bom["files"]), "each file belongs to one package"

    installed = dict(line.split(" ") for line in run(
        "dpkg-query", "-W", "-f", "${Package} ${Version}\n").stdout.splitlines())
    debian = {p["name"]: p["versionInfo"] for p in bom["packages"] if p["name"] != "faasrl-mpa"}
    assert {"libc6", "libssl3", "libuv1", "ca-certificates"} <= debian.keys()
    assert debian == {name: installed[name] for name in debian}
    known = set(re.findall(r"LicenseRef-[\w.-]+", json.dumps(bom["packages"])))
    assert known == {e["licenseId"] for e in bom["hasExtractedLicensingInfos"]}


def test_docker_builds_from_the_same_recipe(tmp_path):
    """Docker is not here; the steps that the Dockerfile adds to `make image` are run as they stand there."""
    text = (ROOT / "deploy/Dockerfile").read_text()
    assert "make image" in text and "FROM scratch" in text and "USER 65532:65532" in text
    unpack = re.search(r"^RUN (layer=(?:.*\\\n)*.*)", text, re.M)[1].replace("/rootfs", str(tmp_path / "rootfs"))
    subprocess.run(["sh", "-ec", unpack], cwd=ROOT, check=True)
    _, _, layer = read()
    found = {str(p.relative_to(tmp_path / "rootfs")) for p in (tmp_path / "rootfs").rglob("*")}
    assert found == set(layer.getnames())


# --- by name, with TLS, from the image's own files -------------------------------------------------
class Names(threading.Thread):
    """A DNS server that knows one name."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((NAMESERVER, 53))
        self.asked = set()

    def run(self):
        while True:
            try:
                query, client = self.socket.recvfrom(512)
            except OSError:
                return
            if len(query) > 12:  # closing the socket wakes recvfrom with nothing
                self.socket.sendto(self.answer(query), client)

    def answer(self, query):
        end = query.index(b"\0", 12) + 1
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack(">H", query[end:end + 2])[0]
        self.asked.add(".".join(labels))
        known = ".".join(labels) == NAME and kind == 1
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("127.0.0.1") if known else b""
        head = query[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, int(known), 0, 0)
        return head + query[12:end + 4] + record


class Prometheus(http.server.BaseHTTPRequestHandler):
    """Knows nothing, and says so as Prometheus does."""
    asked = []

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append((self.headers["Host"], self.path.split("?")[0]))
        body = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args):
        pass


@pytest.fixture
def prometheus(tmp_path):
    """With a certificate for NAME; gives its port and the certificate."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=test", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", tmp_path / "key", "-out",
        tmp_path / "cert")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], (tmp_path / "cert").read_text()
    server.shutdown()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for chroot and port 53")
def test_it_resolves_names_and_trusts_its_own_bundle(tmp_path, prometheus):
    port, certificate = prometheus
    root = tmp_path / "root"
    _, _, layer = read()
    layer.extractall(root)
    (root / "etc/resolv.conf").write_text(f"search svc.cluster.local\nnameserver {NAMESERVER}\n")
    (root / "kubeconfig").write_text(kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    assert (root / BUNDLE).read_text().count("BEGIN CERTIFICATE") > 100
    names = Names()
    names.start()

    def start(log):
        return subprocess.Popen(
            ["chroot", "--userspec=65532:65532", root, "/faasrl-mpa", "--kubeconfig=/kubeconfig", "--interval=1s",
             "--leader-elect=false", "--namespace=nobody-is-here", f"--prometheus-url=https://{NAME}:{port}",
             "--listen=127.0.0.1:0", "--log-level=debug"], stdout=log, stderr=log, preexec_fn=die_with_parent)
    log = OUT / "image.log"
    try:
        with open(log, "w") as out:
            process = start(out)
        wait("it finds the name", lambda: NAME in names.asked, 20)
        wait("it has tried", lambda: log.read_text().count("a pass is done") >= 2, 20)
        assert not Prometheus.asked, "it trusts somebody for whom nobody vouches"
        process.terminate()
        assert process.wait(20) == 0
        with open(root / BUNDLE, "a") as bundle:
            bundle.write(certificate)
        with open(log, "w") as out:
            process = start(out)
        wait("it asks", lambda: Prometheus.asked, 20)
        assert Prometheus.asked[0] == (f"{NAME}:{port}", "/api/v1/query")
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        names.socket.close()
