// SPDX-License-Identifier: Apache-2.0

import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * DynamoDB Local on 127.0.0.1 only. Its own main class binds every interface and has no option against it, so
 * this one creates the same server from the same arguments and sets the host before the server starts.
 *
 * <p>LocalStack also passes the jar of a Java agent that raises the limit of indices per table; that agent is not
 * in Maven and lull's tables need none of it, so premain does nothing.
 */
public final class LoopbackServer {
  private LoopbackServer() {}

  public static void premain(String arguments) {}

  public static void main(String[] arguments) throws Exception {
    DynamoDBProxyServer proxy = ServerRunner.createServerFromCommandLineArgs(arguments);
    Field field = DynamoDBProxyServer.class.getDeclaredField("server");
    field.setAccessible(true);
    for (Connector connector : ((Server) field.get(proxy)).getConnectors()) {
      ((ServerConnector) connector).setHost("127.0.0.1");
    }
    proxy.safeStart();
    proxy.join();
  }
}
