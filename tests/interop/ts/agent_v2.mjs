// An agent of protocol version 2 on the official TypeScript SDK. What each prompt does is written in ../README.md.
import * as acp from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { Readable, Writable } from "node:stream";
import { setImmediate as tick } from "node:timers/promises";

const { RequestError } = acp;
const sessions = new Map();
const text = (text) => ({ type: "text", text });
const find = (id) => {
  const s = sessions.get(id);
  if (!s) throw RequestError.sessionNotFound(id);
  return s;
};

// Only what every agent takes: no media in prompts, no MCP servers.
const refuse = (unsupported) => {
  if (unsupported) throw RequestError.invalidParams();
};

class Session {
  id = randomUUID();
  open = true;
  history = [];
  background = null;
  abort = null;
  // Prompts run one after the other.
  last = Promise.resolve();

  constructor(cwd) {
    this.cwd = cwd;
    sessions.set(this.id, this);
  }
}

// One prompt: what it sends, and the stop reason.
async function work(s, prompt, send, client, signal) {
  const said = randomUUID();
  const say = (words) => send({ sessionUpdate: "agent_message_chunk", messageId: said, content: text(words) });
  const state = (state, rest = {}) =>
    send({ sessionUpdate: "state_update", state, ...rest, ...(s.background ? { background: s.background } : {}) });
  const tool = (toolCallId, members) => send({ sessionUpdate: "tool_call_update", toolCallId, ...members });
  const [, verb, rest] = /^(\S*) ?([\s\S]*)$/.exec(prompt[0]?.text ?? "");
  switch (verb) {
    case "say":
      await say(rest);
      s.history.push({ user: `say ${rest}`, text: rest });
      return { stopReason: "end_turn" };
    case "replace":
      await say("draft");
      await send({ sessionUpdate: "agent_message", messageId: said, content: [text("final")] });
      return { stopReason: "end_turn" };
    case "stop":
      return { stopReason: rest };
    case "fail":
      return { stopReason: "error", error: { code: -32603, message: "as asked" } };
    case "edit": {
      const path = rest;
      const id = `edit-${basename(path)}`;
      const old = await readFile(path, "utf8");
      const patch = `diff --git ${path} ${path}\n--- ${path}\n+++ ${path}\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n`;
      const diff = { type: "diff", changes: [{ operation: "modify", path, fileType: "text" }], patch: { format: "git_patch", text: patch } };
      await tool(id, { title: `Edit ${basename(path)}`, kind: "edit", status: "pending", content: [diff], locations: [{ path, line: 2 }] });
      await state("requires_action");
      const options = [
        { optionId: "allow", name: "Allow", kind: "allow_once" },
        { optionId: "reject", name: "Reject", kind: "reject_once" },
      ];
      const subject = { type: "tool_call", toolCall: { toolCallId: id } };
      const question = { sessionId: s.id, title: `Edit ${basename(path)}?`, subject, options };
      const cancelled = new Promise((resolve) => signal.addEventListener("abort", () => resolve(null)));
      const answer = await Promise.race([client.request("session/request_permission", question), cancelled]);
      if (signal.aborted) {
        await tool(id, { status: "cancelled" });
        return { stopReason: "cancelled" };
      }
      await state("running");
      if (answer.outcome.outcome !== "selected" || answer.outcome.optionId !== "allow") {
        await tool(id, { status: "failed", content: [{ type: "content", content: text("not allowed") }] });
        await say("denied");
        return { stopReason: "end_turn" };
      }
      await tool(id, { status: "in_progress" });
      await writeFile(path, old.replace("two", "TWO"));
      await tool(id, { status: "completed" });
      await say("applied");
      return { stopReason: "end_turn" };
    }
    case "run": {
      const data = (bytes) => Buffer.from(bytes).toString("base64");
      await tool("run-1", { title: "Run", kind: "execute", status: "in_progress" });
      await send({ sessionUpdate: "terminal_update", terminalId: "term-1", command: "greet", cwd: s.cwd });
      await send({ sessionUpdate: "tool_call_content_chunk", toolCallId: "run-1", content: { type: "terminal", terminalId: "term-1" } });
      // A character in two pieces.
      await send({ sessionUpdate: "terminal_output_chunk", terminalId: "term-1", data: data([0x68, 0xc3]) });
      await send({ sessionUpdate: "terminal_output_chunk", terminalId: "term-1", data: data([0xa4, 0x0a]) });
      await send({ sessionUpdate: "terminal_update", terminalId: "term-1", exitStatus: { exitCode: 3 } });
      await tool("run-1", { status: "failed" });
      return { stopReason: "end_turn" };
    }
    case "forever":
      for (let i = 0; !signal.aborted; i++) {
        await say(`tick ${i};`);
        await tick();
      }
      return { stopReason: "cancelled" };
    case "background":
      await tool("bg-1", { title: "Watch", kind: "execute", status: "in_progress" });
      s.background = [{ type: "tool_call", toolCallId: "bg-1" }];
      await state("running");
      await say("started");
      return { stopReason: "end_turn" };
    case "finish":
      await tool("bg-1", { status: "completed" });
      s.background = [];
      await state("running");
      await say("finished");
      return { stopReason: "end_turn" };
    default:
      return { stopReason: "refusal" };
  }
}

async function prompt({ params, client, signal }) {
  const s = find(params.sessionId);
  if (!s.open) throw RequestError.sessionNotFound(s.id);
  refuse(params.prompt.some((block) => block.type !== "text" && block.type !== "resource_link"));
  const send = (update) => client.notify("session/update", { sessionId: s.id, update });
  const before = s.last;
  let done;
  s.last = new Promise((resolve) => (done = resolve));
  const abort = new AbortController();
  const held = new Promise((resolve) => abort.signal.addEventListener("abort", resolve));
  s.waiting = [...(s.waiting ?? []), abort];
  await Promise.race([before, held, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
  if (abort.signal.aborted || signal.aborted) {
    before.then(done);
    s.waiting = s.waiting.filter((other) => other !== abort);
    throw RequestError.requestCancelled();
  }
  const messageId = randomUUID();
  await send({ sessionUpdate: "user_message", messageId, content: params.prompt });
  const listed = () => (s.background ? { background: s.background } : {});
  (async () => {
    await send({ sessionUpdate: "state_update", state: "running", ...listed() });
    const stop = await work(s, params.prompt, send, client, abort.signal).catch((error) => ({
      stopReason: "error",
      error: { code: -32603, message: String(error.message) },
    }));
    const reason = abort.signal.aborted ? { stopReason: "cancelled" } : stop;
    await send({ sessionUpdate: "state_update", state: "idle", ...reason, ...listed() });
    s.waiting = s.waiting.filter((other) => other !== abort);
    done();
  })();
  return { messageId };
}

const cancel = (s) => [...(s?.waiting ?? [])].reverse().forEach((abort) => abort.abort());

export const agentV2 = () => acp
  .agent({ name: "interop-agent" })
  .onRequest("initialize", () => ({
    protocolVersion: 2,
    info: { name: "interop-agent", version: "1.0.0" },
    capabilities: { session: {} },
  }))
  .onRequest("session/new", ({ params }) => {
    refuse(params.mcpServers?.length);
    return { sessionId: new Session(params.cwd).id };
  })
  .onRequest("session/list", ({ params }) => {
    refuse(params.cursor != null); // There is only one page.
    const listed = [...sessions.values()].filter((s) => params.cwd == null || s.cwd === params.cwd);
    return { sessions: listed.map((s) => ({ sessionId: s.id, cwd: s.cwd })) };
  })
  .onRequest("session/resume", async ({ params, client }) => {
    const s = find(params.sessionId);
    const send = (update) => client.notify("session/update", { sessionId: s.id, update });
    refuse(params.mcpServers?.length || (params.replayFrom && params.replayFrom.type !== "start"));
    if (params.replayFrom)
      for (const turn of s.history) {
        await send({ sessionUpdate: "user_message", messageId: randomUUID(), content: [text(turn.user)] });
        await send({ sessionUpdate: "agent_message", messageId: randomUUID(), content: [text(turn.text)] });
      }
    s.open = true;
    await send({ sessionUpdate: "state_update", state: "idle", ...(s.background ? { background: s.background } : {}) });
    return {};
  })
  .onRequest("session/close", async ({ params }) => {
    const s = sessions.get(params.sessionId);
    if (!s) return {};
    cancel(s);
    await s.last;
    s.open = false;
    s.background = null;
    return {};
  })
  .onRequest("session/prompt", prompt)
  .onNotification("session/cancel", ({ params }) => cancel(sessions.get(params.sessionId)));

// The router imports this file.
if (basename(process.argv[1]) === "agent_v2.mjs")
  agentV2().connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
