// The interop agent on the official TypeScript SDK. What each prompt does is written in ../README.md.
// With `--http` it serves WebSocket and Streamable HTTP on a port, which it prints.
import * as acp from "@agentclientprotocol/sdk/unstable";
import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

const PAGE = 5;
const { methods, RequestError } = acp;
const any = (params) => params;

const sessions = new Map();
let authenticated = false;
let notes = 0;
let meeting = null;

const modes = (s) => ({
  currentModeId: s.mode,
  availableModes: [
    { id: "ask", name: "Ask" },
    { id: "code", name: "Code" },
  ],
});
const configOptions = (s) => [
  {
    id: "model",
    name: "Model",
    category: "model",
    type: "select",
    currentValue: s.model,
    options: [
      { value: "fast", name: "Fast" },
      { value: "deep", name: "Deep" },
    ],
  },
];
const setup = (s) => ({ modes: modes(s), configOptions: configOptions(s) });
const open = (id) => {
  const s = sessions.get(id);
  if (!s || !s.open) throw RequestError.sessionNotFound(id);
  return s;
};
const kept = (id) => {
  const s = sessions.get(id);
  if (!s) throw RequestError.sessionNotFound(id);
  return s;
};
const make = ({ cwd, mcpServers }, history = []) => {
  const s = { id: randomUUID(), cwd, mcpServers: mcpServers ?? [], mode: "ask", model: "fast", history, open: true, abort: null };
  sessions.set(s.id, s);
  return s;
};
const signedIn = () => {
  if (!authenticated) throw RequestError.authRequired();
};

const announce = (client, s) =>
  client.notify(methods.client.session.update, {
    sessionId: s.id,
    update: {
      sessionUpdate: "available_commands_update",
      availableCommands: [
        { name: "plan", description: "Make a plan" },
        { name: "web", description: "Search the web", input: { hint: "query" } },
      ],
    },
  });

// One turn. Returns the stop reason; everything said on the way goes through `send`.
async function turn(ctx, s, signal) {
  const { params, client } = ctx;
  const sessionId = s.id;
  const send = (update) => client.notify(methods.client.session.update, { sessionId, update });
  const say = (text) => send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const think = (text) => send({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  const entry = (content, priority, status) => ({ content, priority, status });
  const first = params.prompt[0];
  const text = first?.type === "text" ? first.text : "";
  const space = text.indexOf(" ");
  const verb = space < 0 ? text : text.slice(0, space);
  const rest = space < 0 ? "" : text.slice(space + 1);

  const ask = (toolCallId) =>
    client.request(methods.client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId },
      options: [
        { optionId: "allow", name: "Allow", kind: "allow_once" },
        { optionId: "reject", name: "Reject", kind: "reject_once" },
      ],
    });

  switch (verb) {
    case "say":
      await say(rest);
      s.history.push({ user: text, text: rest });
      return "end_turn";
    case "count":
      await say(String(s.history.length));
      return "end_turn";
    case "stream":
      for (let i = 0; i < Number(rest); i++) await say(`${i}:é\u2028😀;`);
      return "end_turn";
    case "stop":
      return rest;
    case "think":
      await think("hm, ");
      await think("let me see");
      await send({ sessionUpdate: "plan", entries: [entry("look", "high", "pending"), entry("leap", "low", "pending")] });
      await send({ sessionUpdate: "plan", entries: [entry("look", "high", "completed"), entry("leap", "low", "in_progress")] });
      await say("done");
      return "end_turn";
    case "edit": {
      const path = rest;
      const name = basename(path);
      const { content: oldText } = await client.request(methods.client.fs.readTextFile, { sessionId, path });
      const newText = oldText.replace("two", "TWO");
      const toolCallId = `edit-${name}`;
      await send({ sessionUpdate: "tool_call", toolCallId, title: `Edit ${name}`, kind: "edit", status: "pending", locations: [{ path, line: 2 }], rawInput: { path } });
      const { outcome } = await ask(toolCallId);
      if (outcome.outcome === "cancelled") return "cancelled";
      if (outcome.optionId !== "allow") {
        const content = [{ type: "content", content: { type: "text", text: "not allowed" } }];
        await send({ sessionUpdate: "tool_call_update", toolCallId, status: "failed", content });
        await say("denied");
        return "end_turn";
      }
      await send({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content: newText });
      await send({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content: [{ type: "diff", path, oldText, newText }] });
      await say("applied");
      return "end_turn";
    }
    case "read": {
      const [path, line, limit] = rest.split(" ");
      try {
        const at = line ? { line: Number(line), limit: Number(limit) } : {};
        const { content } = await client.request(methods.client.fs.readTextFile, { sessionId, path, ...at });
        await say(content.trimEnd());
      } catch (e) {
        await say(`error ${e.code}`);
      }
      return "end_turn";
    }
    case "write": {
      const [path, content] = rest.split(" ");
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content });
      await say("written");
      return "end_turn";
    }
    case "run": {
      const terminal = await client.createTerminal({
        sessionId,
        command: "sh",
        args: ["-c", `printf "$GREETING\\ntwo\\n"; exit 3`],
        env: [{ name: "GREETING", value: "one" }],
        cwd: s.cwd,
        outputByteLimit: 1000,
      });
      const toolCallId = "run-1";
      await send({ sessionUpdate: "tool_call", toolCallId, title: "Run", kind: "execute", status: "pending", content: [{ type: "terminal", terminalId: terminal.id }] });
      await send({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
      const exit = await terminal.waitForExit();
      const { output, truncated, exitStatus } = await terminal.currentOutput();
      await terminal.release();
      await send({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
      await say(`exit ${exit.exitCode}/${exitStatus?.exitCode} truncated ${truncated} output ${JSON.stringify(output)}`);
      return "end_turn";
    }
    case "runkill": {
      const terminal = await client.createTerminal({ sessionId, command: "sleep", args: ["600"] });
      await terminal.kill();
      const exit = await terminal.waitForExit();
      const { exitStatus } = await terminal.currentOutput();
      await terminal.release();
      await say(exit.exitCode !== 0 && exitStatus ? "killed" : "alive");
      return "end_turn";
    }
    case "forever":
      for (let i = 0; ; i++) {
        if (signal.aborted) return "cancelled";
        await say(`tick ${i};`);
        await sleep(5, undefined, { signal }).catch(() => {});
      }
    case "ask": {
      const toolCallId = "ask-1";
      await send({ sessionUpdate: "tool_call", toolCallId, title: "Ask", status: "pending" });
      const { outcome } = await ask(toolCallId);
      await send({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" });
      return outcome.outcome === "cancelled" ? "cancelled" : "end_turn";
    }
    case "mode":
      await say(s.mode);
      return "end_turn";
    case "switch":
      s.mode = rest;
      await send({ sessionUpdate: "current_mode_update", currentModeId: rest });
      return "end_turn";
    case "config":
      await say(s.model);
      return "end_turn";
    case "reconfigure":
      s.model = rest;
      await send({ sessionUpdate: "config_option_update", configOptions: configOptions(s) });
      return "end_turn";
    case "callback-unknown":
      try {
        await client.request("_interop/nothing", {});
        await say("no error");
      } catch (e) {
        await say(`error ${e.code}`);
      }
      return "end_turn";
    case "ext": {
      await client.notify("_interop/ping", { n: 1 });
      const answer = await client.request("_interop/reverse", { text: "abc" });
      await say(answer.text);
      return "end_turn";
    }
    case "size":
      await say(String(rest.length));
      return "end_turn";
    case "big":
      await say("y".repeat(Number(rest)));
      return "end_turn";
    case "meet": {
      // The first to come waits for the second: only turns that run side by side get through.
      if (meeting) {
        meeting();
        meeting = null;
      } else {
        await new Promise((resolve) => (meeting = resolve));
      }
      for (let i = 0; i < 10; i++) {
        await say(`${sessionId}/${i};`);
        await new Promise((r) => setImmediate(r));
      }
      return "end_turn";
    }
    case "elicit": {
      const answer = await client.request(methods.client.elicitation.create, {
        sessionId,
        mode: "form",
        message: "Who are you?",
        requestedSchema: {
          type: "object",
          properties: {
            name: { type: "string", title: "Name", minLength: 1 },
            age: { type: "integer", minimum: 0 },
            role: { type: "string", oneOf: [{ const: "admin", title: "Admin" }, { const: "guest", title: "Guest" }] },
            sure: { type: "boolean", default: false },
          },
          required: ["name"],
        },
      });
      const fields = Object.entries(answer.content ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
      await say([answer.action, ...fields.map(([k, v]) => `${k}=${v}`)].join(" "));
      return "end_turn";
    }
    case "elicit-url": {
      const elicitationId = "link-1";
      const answer = await client.request(methods.client.elicitation.create, {
        sessionId,
        mode: "url",
        message: "Please sign in",
        elicitationId,
        url: "https://example.com/sign-in",
      });
      await client.notify(methods.client.elicitation.complete, { elicitationId });
      await say(answer.action);
      return "end_turn";
    }
    case "blocks": {
      const brief = (b) =>
        ({ text: () => "text", image: () => `image(${b.mimeType},${b.data})`, audio: () => `audio(${b.mimeType},${b.data})`, resource_link: () => `resource_link(${b.name},${b.uri})`, resource: () => `resource(${b.resource.uri},${b.resource.text})` })[b.type]();
      await say(params.prompt.map(brief).join(" "));
      for (const content of params.prompt.slice(1)) await send({ sessionUpdate: "agent_message_chunk", content });
      return "end_turn";
    }
    case "info":
      await send({ sessionUpdate: "session_info_update", title: "A fine title", updatedAt: "2026-01-02T03:04:05Z" });
      await send({ sessionUpdate: "usage_update", used: 1200, size: 200000, cost: { amount: 0.25, currency: "USD" } });
      return "end_turn";
    case "mcp":
      await say(s.mcpServers.map((m) => `${m.name}=${m.type ?? "stdio"}`).join(","));
      return "end_turn";
    case "meta":
      await say(String(params._meta?.["interop.example/trace"]));
      return "end_turn";
    case "fail":
      throw RequestError.internalError(undefined, "as asked");
    default:
      throw RequestError.invalidParams(undefined, `no such prompt: ${verb}`);
  }
}

export const agent = () => acp
  .agent({ name: "interop-agent" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentInfo: { name: "interop-agent", version: "1.0.0" },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: true, embeddedContext: true },
      mcpCapabilities: { http: true, sse: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, fork: {}, delete: {} },
      auth: { logout: {} },
    },
    authMethods: [{ id: "pass", name: "Pass", description: "Lets everybody in" }],
  }))
  .onRequest(methods.agent.authenticate, ({ params }) => {
    if (params.methodId !== "pass") throw RequestError.invalidParams();
    authenticated = true;
    return {};
  })
  .onRequest(methods.agent.logout, () => {
    authenticated = false;
    return {};
  })
  .onRequest(methods.agent.session.new, ({ params, client }) => {
    signedIn();
    const s = make(params);
    // After the answer: a client cannot know the session before it.
    setImmediate(() => announce(client, s));
    return { sessionId: s.id, ...setup(s) };
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    const s = kept(params.sessionId);
    for (const { user, text } of s.history) {
      const chunk = (sessionUpdate, text) => client.notify(methods.client.session.update, { sessionId: s.id, update: { sessionUpdate, content: { type: "text", text } } });
      await chunk("user_message_chunk", user);
      await chunk("agent_message_chunk", text);
    }
    s.open = true;
    return setup(s);
  })
  .onRequest(methods.agent.session.resume, ({ params }) => {
    const s = kept(params.sessionId);
    s.open = true;
    return setup(s);
  })
  .onRequest(methods.agent.session.fork, ({ params }) => {
    const s = make(params, [...kept(params.sessionId).history]);
    return { sessionId: s.id, ...setup(s) };
  })
  .onRequest(methods.agent.session.close, ({ params }) => {
    const s = kept(params.sessionId);
    s.abort?.abort();
    s.open = false;
    return {};
  })
  .onRequest(methods.agent.session.delete, ({ params }) => {
    sessions.delete(params.sessionId);
    return {};
  })
  .onRequest(methods.agent.session.list, ({ params }) => {
    const all = [...sessions.values()].filter((s) => !params.cwd || s.cwd === params.cwd);
    const from = params.cursor ? Number(params.cursor) : 0;
    const next = from + PAGE;
    return {
      sessions: all.slice(from, next).map((s) => ({ sessionId: s.id, cwd: s.cwd, title: s.history[0]?.user })),
      ...(next < all.length ? { nextCursor: String(next) } : {}),
    };
  })
  .onRequest(methods.agent.session.setMode, ({ params }) => {
    const s = open(params.sessionId);
    if (!["ask", "code"].includes(params.modeId)) throw RequestError.invalidParams();
    s.mode = params.modeId;
    return {};
  })
  .onRequest(methods.agent.session.setConfigOption, ({ params }) => {
    const s = open(params.sessionId);
    if (params.configId !== "model" || !["fast", "deep"].includes(params.value)) throw RequestError.invalidParams();
    s.model = params.value;
    return { configOptions: configOptions(s) };
  })
  .onRequest(methods.agent.session.prompt, async (ctx) => {
    const s = open(ctx.params.sessionId);
    s.abort = new AbortController();
    const stopReason = await turn(ctx, s, AbortSignal.any([s.abort.signal, ctx.signal]));
    if (ctx.signal.aborted) throw RequestError.requestCancelled();
    return { stopReason };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.abort?.abort())
  .onRequest("_interop/echo", any, ({ params }) => params)
  .onNotification("_interop/note", any, () => void notes++)
  .onRequest("_interop/notes", any, () => ({ count: notes }));

if (process.argv[2] === "--http") {
  const { AcpServer } = await import("@agentclientprotocol/sdk/experimental/server");
  const node = await import("@agentclientprotocol/sdk/experimental/node");
  const { createServer } = await import("node:http");
  const { WebSocketServer } = await import("ws");
  const acpServer = new AcpServer({ createAgent: agent });
  const server = createServer(node.createNodeHttpHandler(acpServer));
  server.on("upgrade", node.createNodeWebSocketUpgradeHandler(acpServer, new WebSocketServer({ noServer: true })));
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
} else if (basename(process.argv[1]) === "agent.mjs") {
  // The router imports this file.
  agent().connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}
