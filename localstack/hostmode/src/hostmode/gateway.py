# SPDX-License-Identifier: Apache-2.0

"""The gateway on the addresses it was told to listen on.

LocalStack's own server takes the port of GATEWAY_LISTEN and binds every interface of the machine.
"""

from localstack.aws.serving.twisted import TLSMultiplexerFactory
from localstack.runtime.server.twisted import TwistedRuntimeServer
from rolo.serving.twisted import TwistedGateway
from twisted.internet import endpoints, reactor, ssl


class LoopbackRuntimeServer(TwistedRuntimeServer):
    def register(self, gateway, listen, ssl_creds=None):
        factory = TwistedGateway(gateway)
        if ssl_creds:
            certificate, key = ssl_creds
            context = ssl.DefaultOpenSSLContextFactory(key, certificate)
            context.getContext().use_certificate_chain_file(certificate)
            factory = TLSMultiplexerFactory(context, False, factory)
        for address in listen:
            endpoint = endpoints.TCP4ServerEndpoint(reactor, address.port, interface=address.host)
            endpoint.listen(factory)
