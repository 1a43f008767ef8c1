# SPDX-License-Identifier: Apache-2.0

"""LocalStack's runtime executor for functions of the runtimes ``provided.*``, without Docker.

One executor is one execution environment. LocalStack decides how many there are (one per concurrent
invocation, within the limits of the function) and gives each one invocation at a time.

Like AWS: the environment variables, a fresh process after a crash or a timeout, output in LogResult and in
CloudWatch Logs. Unlike AWS: /var/task and /opt do not exist (the code is in LAMBDA_TASK_ROOT), the memory
size is not enforced, the architecture label is ignored, layers are refused.
"""

import logging
import os
import threading
import time

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.runtime_executor import LambdaRuntimeException, RuntimeExecutor

from hostmode.runtimeapi import HOST, Invocation
from hostmode.sandbox import Sandbox

LOG = logging.getLogger(__name__)

# Set by start.sh on every process of the server; stop.sh finds bootstraps by it.
MARK = "LULL_E2E_SERVER"


class ProcessRuntimeExecutor(RuntimeExecutor):
    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id=id, function_version=function_version)
        self._env: dict[str, str] = {}
        self._sandbox: Sandbox | None = None
        self._lock = threading.RLock()

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        """Refuses what a plain process cannot run; the function's state then says why."""
        settings = function_version.config
        if not (settings.runtime or "").startswith("provided"):
            raise LambdaRuntimeException(f"host mode runs provided.* only, not {settings.runtime}")
        if settings.layers:
            raise LambdaRuntimeException("host mode has no layers: put the files beside the bootstrap")
        settings.code.prepare_for_execution()
        bootstrap = settings.code.get_unzipped_code_location() / "bootstrap"
        if not bootstrap.is_file():
            raise LambdaRuntimeException("the code has no file named bootstrap at its root")

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """The unpacked code belongs to LocalStack, which removes it with the function."""

    def start(self, env_vars: dict[str, str]) -> None:
        with self._lock:
            self._env = env_vars
            self._launch()

    def stop(self) -> None:
        with self._lock:
            if self._sandbox:
                self._sandbox.stop()
                self._sandbox = None

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        with self._lock:
            if self._sandbox is None or not self._sandbox.alive():
                self._launch()  # the last invocation timed out or crashed
            sandbox = self._sandbox
        settings = self.function_version.config
        invocation = Invocation(payload, settings.timeout)
        began = time.perf_counter()
        sandbox.run(invocation, settings.timeout)
        duration_ms = (time.perf_counter() - began) * 1000
        logs = (
            f"START RequestId: {invocation.id} Version: {self.function_version.id.qualifier}\n"
            f"{sandbox.output()}"
            f"END RequestId: {invocation.id}\n"
            f"REPORT RequestId: {invocation.id}\tDuration: {duration_ms:.2f} ms\t"
            f"Billed Duration: {int(duration_ms) + 1} ms\tMemory Size: {settings.memory_size} MB\n"
        )
        return InvocationResult(invocation.id, invocation.result, is_error=invocation.is_error, logs=logs)

    def get_logs(self) -> str:
        return self._sandbox.output() if self._sandbox else ""

    def get_address(self) -> str:
        return HOST

    def get_endpoint_from_executor(self) -> str:
        return HOST

    def get_runtime_endpoint(self) -> str:
        # Only LocalStack's own init program calls this; the interface wants an address all the same.
        return f"http://{HOST}:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    def _launch(self) -> None:
        task_root = str(self.function_version.config.code.get_unzipped_code_location())
        sandbox = Sandbox(task_root, self._environment(task_root))
        if not sandbox.wait_started(config.LAMBDA_RUNTIME_ENVIRONMENT_TIMEOUT):
            sandbox.stop()
            raise LambdaRuntimeException("the bootstrap did not ask for work in time")
        if sandbox.api.init_error is not None:
            error = sandbox.api.init_error
            sandbox.stop()
            LOG.warning(
                "start of %s failed: %s\n%s", self.function_version.qualified_arn, error.decode(), sandbox.output()
            )
            raise StatusErrorException("the bootstrap failed while starting", payload=error)
        self._sandbox = sandbox

    def _environment(self, task_root: str) -> dict[str, str]:
        """The function's environment as LocalStack composed it, corrected for the place it runs in.

        Nothing of LocalStack's own environment gets through except the mark.
        """
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "en_US.UTF-8"}
        env |= {name: str(value) for name, value in self._env.items()}
        env |= {
            "LAMBDA_TASK_ROOT": task_root,
            "TZ": ":UTC",
            "NO_PROXY": f"{HOST},localhost",
            "no_proxy": f"{HOST},localhost",
        }
        if mark := os.environ.get(MARK):
            env[MARK] = mark
        return env
