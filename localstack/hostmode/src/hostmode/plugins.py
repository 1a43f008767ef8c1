# SPDX-License-Identifier: Apache-2.0

"""What LocalStack finds by name. Imports wait for load(): LocalStack scans plugins before it is configured."""

from localstack.runtime.server.core import RuntimeServerPlugin
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin


class ProcessExecutor(RuntimeExecutorPlugin):
    """LAMBDA_RUNTIME_EXECUTOR=process"""

    name = "process"

    def load(self, *args, **kwargs):
        from hostmode.executor import ProcessRuntimeExecutor

        return ProcessRuntimeExecutor


class LoopbackServer(RuntimeServerPlugin):
    """GATEWAY_SERVER=loopback"""

    name = "loopback"

    def load(self, *args, **kwargs):
        from hostmode import models, repairs
        from hostmode.gateway import LoopbackRuntimeServer

        repairs.apply()
        models.judge_requests()
        return LoopbackRuntimeServer()
