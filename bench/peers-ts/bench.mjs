// The bench agent on the official TypeScript SDK, for standard streams and for servers.
import { setTimeout as pause } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";

const { agent: served, client: offered } = acp.methods;
let sessions = 0;

async function turn({ params, client }) {
  const { sessionId, prompt } = params;
  const text = prompt[0]?.type === "text" ? prompt[0].text.slice(0, 64) : "";
  const [verb, n = 0, len = 0] = text.split(" ").map((word, i) => (i === 0 ? word : Number(word)));
  switch (verb) {
    case "stream":
    case "streamy": {
      // Awaiting the notification is how the SDK's examples write it; it gives way after each.
      const padding = "x".repeat(Math.max(0, len - 8));
      for (let i = 0; i < n; i++) {
        const content = { type: "text", text: String(i).padStart(8, "0") + padding };
        await client.notify(offered.session.update, {
          sessionId,
          update: { sessionUpdate: "agent_message_chunk", content },
        });
      }
      break;
    }
    case "read":
      for (let i = 0; i < n; i++) {
        await client.request(offered.fs.readTextFile, { sessionId, path: "/tmp/x.txt" });
      }
      break;
    case "perm":
      for (let i = 0; i < n; i++) {
        await client.request(offered.session.requestPermission, {
          sessionId,
          toolCall: { toolCallId: "t1", title: "edit" },
          options: [
            { optionId: "a", name: "Allow", kind: "allow_once" },
            { optionId: "r", name: "Reject", kind: "reject_once" },
          ],
        });
      }
      break;
    case "paced": {
      // Late updates are caught up with; the text says when each was made, on the clock that all processes share.
      const start = performance.now();
      for (let i = 0; i < n; i++) {
        await pause(Math.max(0, start + i * len - performance.now()));
        const content = { type: "text", text: String(process.hrtime.bigint() / 1000n).padStart(20, "0") };
        await client.notify(offered.session.update, {
          sessionId,
          update: { sessionUpdate: "agent_message_chunk", content },
        });
      }
      break;
    }
  }
}

// Makes the agent of one connection. Its sessions are s-1, s-2, ….
export function benchAgent() {
  return acp
    .agent({ name: "bench" })
    .onRequest(served.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
    .onRequest(served.session.new, () => ({ sessionId: `s-${++sessions}` }))
    .onRequest(served.session.prompt, async (context) => {
      await turn(context);
      return { stopReason: "end_turn" };
    })
    .onNotification(served.session.cancel, () => {});
}
