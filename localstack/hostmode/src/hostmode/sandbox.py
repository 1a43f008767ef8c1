# SPDX-License-Identifier: Apache-2.0

"""One execution environment: a bootstrap process, its Runtime API and what it printed."""

import errno
import json
import os
import select
import signal
import subprocess
import threading
import time

from hostmode.runtimeapi import Invocation, RuntimeAPI

# A fork elsewhere in LocalStack may hold the freshly written bootstrap open for a moment.
BUSY_ATTEMPTS = 50
BUSY_PAUSE_SECONDS = 0.02


class Sandbox:
    def __init__(self, task_root: str, env: dict[str, str]):
        """Starts the bootstrap in task_root with exactly the environment given, plus the API's address."""
        self.api = RuntimeAPI()
        self._log = _Log()
        try:
            self._process = _spawn(task_root, env | {"AWS_LAMBDA_RUNTIME_API": self.api.address}, self._log.inlet)
        except BaseException:
            self.api.close()
            self._log.close()
            raise
        finally:
            self._log.close_inlet()
        self._stopping = False
        threading.Thread(target=self._watch, daemon=True).start()

    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_started(self, seconds: float) -> bool:
        return self.api.started.wait(seconds)

    def run(self, invocation: Invocation, timeout_seconds: float) -> None:
        """Runs one invocation to its end. At the timeout the process is killed, as on AWS: no signal first."""
        self.api.submit(invocation)
        if not self.alive():
            self.api.interrupt("Runtime.ExitError", "Runtime exited before the invocation")
        if not invocation.wait(timeout_seconds) and invocation.fail(
            "Sandbox.Timedout", f"Task timed out after {timeout_seconds:.2f} seconds"
        ):
            self.stop()

    def output(self) -> str:
        """What the process printed since the last call; everything written before its last request is there."""
        return self._log.take()

    def stop(self) -> None:
        """Kills the process and what it started; an invocation in progress ends with an error."""
        self._stopping = True
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def _watch(self) -> None:
        """Follows the process to its end, whatever ended it, and then closes the API."""
        code = self._process.wait()
        status = f"signal: {signal.strsignal(-code).lower()}" if code < 0 else f"exit status {code}"
        message = f"Runtime exited with error: {status}"
        if not self.api.started.is_set():
            self.api.failed_to_start(json.dumps({"errorType": "Runtime.ExitError", "errorMessage": message}).encode())
        if self._stopping:
            message = "execution environment stopped"
        self.api.interrupt("Runtime.ExitError", message)
        self.api.close()


def _spawn(task_root: str, env: dict[str, str], output: int) -> subprocess.Popen:
    for attempt in range(1, BUSY_ATTEMPTS + 1):
        try:
            return subprocess.Popen(
                [os.path.join(task_root, "bootstrap")],
                cwd=task_root,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,  # stop() ends the bootstrap's children too
            )
        except OSError as error:
            if error.errno != errno.ETXTBSY or attempt == BUSY_ATTEMPTS:
                raise
            time.sleep(BUSY_PAUSE_SECONDS)
    raise AssertionError("unreachable")


class _Log:
    """A pipe, drained by a thread so that the process never blocks, and by take() so that nothing is missed."""

    def __init__(self):
        self._outlet, self.inlet = os.pipe()
        os.set_blocking(self._outlet, False)
        self._lock = threading.Lock()
        self._chunks: list[bytes] = []
        self._open = True

    def close_inlet(self) -> None:
        """Leaves the inlet to the process alone and begins to drain."""
        os.close(self.inlet)
        if self._open:
            threading.Thread(target=self._drain, daemon=True).start()

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                os.close(self._outlet)

    def take(self) -> str:
        with self._lock:
            self._read()
            text = b"".join(self._chunks).decode(errors="replace")
            self._chunks.clear()
        return text

    def _drain(self) -> None:
        poller = select.poll()
        poller.register(self._outlet, select.POLLIN)
        while self._open:
            poller.poll()
            with self._lock:
                if not self._read():
                    break
        self.close()

    def _read(self) -> bool:
        """Reads what is there, under the lock. False at the end of the output."""
        while self._open:
            try:
                chunk = os.read(self._outlet, 1 << 16)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._chunks.append(chunk)
        return False
