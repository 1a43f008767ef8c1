# SPDX-License-Identifier: Apache-2.0

"""LocalStack in host mode, without Docker.

LocalStack loads two plugins from here (see pyproject.toml):

``process``   runs functions of the runtimes ``provided.*`` as plain processes (executor, sandbox, runtimeapi);
``loopback``  serves the gateway on the addresses of GATEWAY_LISTEN and nowhere else (gateway), and applies
              the repairs to LocalStack that the tests need (repairs).
"""
