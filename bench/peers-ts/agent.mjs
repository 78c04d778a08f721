// The bench agent on the official TypeScript SDK.
import { Readable, Writable } from "node:stream";
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
  }
}

const stdio = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await acp
  .agent({ name: "bench" })
  .onRequest(served.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(served.session.new, () => ({ sessionId: `s-${++sessions}` }))
  .onRequest(served.session.prompt, async (context) => {
    await turn(context);
    return { stopReason: "end_turn" };
  })
  .onNotification(served.session.cancel, () => {})
  .connect(stdio).closed;
