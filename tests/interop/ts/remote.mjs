// A client on the official TypeScript SDK that connects to a server: `remote.mjs URL PROMPT [SESSION]`.
// Sends one prompt in a new session, or in SESSION, which is loaded, and grants what is asked for.
import * as acp from "@agentclientprotocol/sdk/unstable";

const [url, prompt, session] = process.argv.slice(2);
const { methods } = acp;
const cwd = process.cwd();

async function open() {
  if (url.startsWith("ws")) {
    const { createWebSocketStream } = await import("@agentclientprotocol/sdk/experimental/ws-client");
    const { WebSocket } = await import("ws");
    return createWebSocketStream(url, { WebSocket });
  }
  const { createHttpStream } = await import("@agentclientprotocol/sdk/experimental/http-client");
  return createHttpStream(url);
}

const app = acp
  .client({ name: "interop-remote" })
  .onNotification(methods.client.session.update, () => {})
  .onRequest(methods.client.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options[0].optionId },
  }));

await app.connectWith(await open(), async (agent) => {
  await agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientInfo: { name: "interop-remote", version: "1.0.0" },
    clientCapabilities: {},
  });
  let sessionId = session;
  if (session) await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  else sessionId = (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
  await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
});
process.exit(0);
