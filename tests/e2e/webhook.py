"""An admission webhook that denies all it is asked about, at an address that the API server of this machine reaches."""
import base64
import contextlib
import json
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(review["request"]["resource"]["resource"] + "/" + review["request"]["subResource"])
        answer = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": False, "status": {"message": self.server.why}}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def denying(directory, why):
    """The server and what a configuration of it needs, as clientConfig."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=denying",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.why, server.asked = why, []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, {"url": f"https://127.0.0.1:{server.server_port}/",
                       "caBundle": base64.b64encode(certificate.read_bytes()).decode()}
    finally:
        server.shutdown()
        server.server_close()
