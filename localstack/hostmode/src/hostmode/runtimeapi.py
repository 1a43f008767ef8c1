# SPDX-License-Identifier: Apache-2.0

"""The Lambda Runtime API (2018-06-01) for one execution environment.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html

A bootstrap asks for work (GET next), which blocks until there is some, and posts the response or the error.
Every execution environment has a server of its own on 127.0.0.1, so a request needs no further address.
"""

import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"
BASE = "/2018-06-01/runtime"


class Invocation:
    """One event on its way through a bootstrap. The first outcome wins; later ones are ignored."""

    def __init__(self, payload: dict, timeout_seconds: float):
        self.id: str = payload["invoke-id"]
        self.arn: str = payload["invoked-function-arn"]
        self.trace: str = payload["trace-id"]
        self.event: bytes = (payload.get("payload") or "").encode()
        self.deadline_ms = int((time.time() + timeout_seconds) * 1000)
        self.result: bytes = b""
        self.is_error = False
        self._decided = threading.Event()
        self._lock = threading.Lock()

    def finish(self, result: bytes, is_error: bool) -> bool:
        """Records the outcome and says whether it was the first."""
        with self._lock:
            if self._decided.is_set():
                return False
            self.result, self.is_error = result, is_error
            self._decided.set()
            return True

    def fail(self, error_type: str, message: str) -> bool:
        body = {"errorType": error_type, "errorMessage": f"RequestId: {self.id} Error: {message}"}
        return self.finish(json.dumps(body).encode(), True)

    def wait(self, seconds: float) -> bool:
        return self._decided.wait(seconds)


class RuntimeAPI:
    """The server. ``started`` is set by the bootstrap's first request: it is up, or its start failed."""

    def __init__(self):
        self.started = threading.Event()
        self.init_error: bytes | None = None
        self._waiting: queue.Queue[Invocation | None] = queue.Queue()
        self._current: Invocation | None = None
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    @property
    def address(self) -> str:
        return f"{HOST}:{self._server.server_port}"

    def submit(self, invocation: Invocation) -> None:
        """Hands an invocation to the bootstrap; LocalStack sees to it that there is one at a time."""
        self._current = invocation
        self._waiting.put(invocation)

    def interrupt(self, error_type: str, message: str) -> None:
        """Ends the invocation in progress, if any, with an error."""
        if self._current:
            self._current.fail(error_type, message)

    def close(self) -> None:
        self._waiting.put(None)  # releases a bootstrap's blocked GET next
        self._server.shutdown()
        self._server.server_close()

    # What the bootstrap asks for, called by the handler.

    def take(self) -> Invocation | None:
        self.started.set()
        return self._waiting.get()

    def outcome(self, request_id: str, body: bytes, is_error: bool) -> bool:
        invocation = self._current
        if invocation is None or invocation.id != request_id:
            return False
        invocation.finish(body, is_error)
        return True

    def failed_to_start(self, body: bytes) -> None:
        self.init_error = body
        self.started.set()


def _handler(api: RuntimeAPI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave in one segment. In two, the second waits for the acknowledgement of the first,
        # which the client delays: an invocation took 113 ms instead of 55.
        disable_nagle_algorithm = True
        wbufsize = 1 << 16

        def log_message(self, *_):
            pass

        def reply(self, code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def read(self) -> bytes:
            """The request's body; Go clients send it in chunks when they do not know its length."""
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = bytearray()
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                pass  # trailers
            return bytes(body)

        def do_GET(self):
            if self.path != f"{BASE}/invocation/next":
                return self.reply(404)
            invocation = api.take()
            if invocation is None:
                self.close_connection = True
                return None
            return self.reply(
                200,
                invocation.event,
                {
                    "Content-Type": "application/json",
                    "Lambda-Runtime-Aws-Request-Id": invocation.id,
                    "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
                    "Lambda-Runtime-Invoked-Function-Arn": invocation.arn,
                    "Lambda-Runtime-Trace-Id": invocation.trace,
                },
            )

        def do_POST(self):
            body = self.read()
            if self.path == f"{BASE}/init/error":
                api.failed_to_start(body)
                return self.reply(202, b'{"status":"OK"}')
            # BASE/invocation/<request id>/response, or .../error
            parts = self.path.removeprefix(f"{BASE}/invocation/").split("/")
            if len(parts) != 2 or parts[1] not in ("response", "error"):
                return self.reply(404)
            if not api.outcome(parts[0], body, parts[1] == "error"):
                return self.reply(400, b'{"errorType":"InvalidRequestID"}')
            return self.reply(202, b'{"status":"OK"}')

    return Handler
