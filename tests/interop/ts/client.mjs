// The interop client on the official TypeScript SDK: `client.mjs [--skip a,b] -- AGENT ARGS…|URL`.
// Runs every scenario of ../scenarios.json against the agent and prints what it saw, one JSON line per observation.
import * as acp from "@agentclientprotocol/sdk/unstable";
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { connect as dial } from "node:net";
import { basename, join } from "node:path";
import { Readable, Writable } from "node:stream";

const args = process.argv.slice(2);
const cut = args.indexOf("--");
const skip = new Set(cut === 2 && args[0] === "--skip" ? args[1].split(",") : []);
const [command, ...rest] = args.slice(cut + 1);
const { methods, RequestError } = acp;
const cwd = process.cwd();
const any = (params) => params;
const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

// What the session under test has shown so far, and what to do when it asks.
const seen = new Map();
const log = (id) => seen.get(id) ?? (seen.set(id, []), seen.get(id));
const watchers = new Set();
const record = (id, line) => {
  log(id).push(line);
  for (const check of watchers) check();
};
const until = (condition) =>
  new Promise((resolve) => {
    const check = () => {
      if (!condition()) return;
      watchers.delete(check);
      resolve();
    };
    watchers.add(check);
    check();
  });
let onPermission = null;
let onElicitation = null;
const terminals = new Map();

const content = (c) =>
  c.type === "text" ? `text:${c.text}` : c.type === "resource" ? `resource:${c.resource.uri}` : c.type === "resource_link" ? `resource_link:${c.name}` : `${c.type}:${c.mimeType}`;
const toolContent = (c) =>
  c.type === "diff" ? `diff(${basename(c.path)}|${c.oldText}|${c.newText})` : c.type === "terminal" ? "terminal" : `content(${content(c.content)})`;
function brief(u) {
  switch (u.sessionUpdate) {
    case "user_message_chunk":
      return `user:${u.content.text}`;
    case "agent_message_chunk":
      return content(u.content);
    case "agent_thought_chunk":
      return `thought:${u.content.text}`;
    case "plan":
      return `plan:${u.entries.map((e) => `${e.content}=${e.priority}/${e.status}`).join(",")}`;
    case "tool_call":
      // Absent means `other` and `pending`; the SDK leaves that to its user.
      return [`tool_call:${u.toolCallId}:${u.kind ?? "other"}:${u.status ?? "pending"}:${u.title}`, ...(u.content ?? []).map(toolContent)].join(":");
    case "tool_call_update":
      return [`tool_call_update:${u.toolCallId}:${u.status}`, ...(u.content ?? []).map(toolContent)].join(":");
    case "available_commands_update":
      return `commands:${u.availableCommands.map((c) => (c.input ? `${c.name}(${c.input.hint})` : c.name)).join(",")}`;
    case "current_mode_update":
      return `mode:${u.currentModeId}`;
    case "config_option_update":
      return `config:${u.configOptions.map((o) => `${o.id}=${o.currentValue}`).join(",")}`;
    case "session_info_update":
      return `info:${u.title}:${u.updatedAt}`;
    case "usage_update":
      return `usage:${u.used}/${u.size}:${u.cost.amount} ${u.cost.currency}`;
    default:
      return `other:${u.sessionUpdate}`;
  }
}

const terminal = (id) => {
  const t = terminals.get(id);
  if (!t) throw RequestError.resourceNotFound(id);
  return t;
};

const app = acp
  .client({ name: "interop-client" })
  .onNotification(methods.client.session.update, ({ params }) => record(params.sessionId, brief(params.update)))
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    record(params.sessionId, `permission:${params.toolCall.toolCallId}:${params.options.map((o) => `${o.optionId}/${o.kind}`).join(",")}`);
    return onPermission(params);
  })
  .onRequest(methods.client.fs.readTextFile, async ({ params }) => {
    let text;
    try {
      text = await readFile(params.path, "utf8");
    } catch {
      throw RequestError.resourceNotFound(params.path);
    }
    const lines = text.split("\n");
    const from = (params.line ?? 1) - 1;
    return { content: lines.slice(from, params.limit == null ? undefined : from + params.limit).join("\n") };
  })
  .onRequest(methods.client.fs.writeTextFile, async ({ params }) => {
    await writeFile(params.path, params.content);
    return {};
  })
  .onRequest(methods.client.terminal.create, ({ params }) => {
    const id = `term-${terminals.size + 1}`;
    const env = Object.fromEntries((params.env ?? []).map((e) => [e.name, e.value]));
    const child = spawn(params.command, params.args ?? [], { cwd: params.cwd ?? cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const t = { child, output: "", status: null };
    for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (d) => (t.output += d));
    t.exit = new Promise((resolve) => child.on("close", (exitCode, signal) => resolve((t.status = { exitCode, signal }))));
    terminals.set(id, t);
    return { terminalId: id };
  })
  .onRequest(methods.client.terminal.output, ({ params }) => {
    const t = terminal(params.terminalId);
    return { output: t.output, truncated: false, exitStatus: t.status };
  })
  .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminal(params.terminalId).exit)
  .onRequest(methods.client.terminal.kill, ({ params }) => {
    terminal(params.terminalId).child.kill("SIGKILL");
    return {};
  })
  .onRequest(methods.client.terminal.release, ({ params }) => {
    terminal(params.terminalId).child.kill("SIGKILL");
    terminals.delete(params.terminalId);
    return {};
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => {
    const what =
      params.mode === "form"
        ? Object.entries(params.requestedSchema.properties).map(([k, p]) => `${k}/${p.type}`).sort().join(",")
        : `${params.elicitationId} ${params.url}`;
    record(params.sessionId, `elicitation:${params.mode}:${params.message}:${what}`);
    return onElicitation(params);
  })
  .onNotification(methods.client.elicitation.complete, ({ params }) => record("", `elicitation_complete:${params.elicitationId}`))
  .onRequest("_interop/reverse", any, ({ params }) => ({ text: [...params.text].reverse().join("") }))
  .onNotification("_interop/ping", any, ({ params }) => record("", `ping:${params.n}`));

const choose = (optionId) => () => ({ outcome: { outcome: "selected", optionId } });
const code = (promise) => promise.then(() => "no error", (e) => e.code);
// What was replayed. An agent may announce its commands again; whether that has come yet is chance.
const replayed = (events) => events.filter((e) => !e.startsWith("commands:"));
const texts = (events) => events.filter((e) => e.startsWith("text:")).map((e) => e.slice(5)).join("");
const model = (r) => r.configOptions.map((o) => `${o.id}=${o.currentValue}`).join(",");
const setup = (r) => ({ mode: r.modes.currentModeId, modes: r.modes.availableModes.map((m) => m.id), config: model(r) });

// Sends a command to the proxy before the server, and waits until it is in force.
const proxy = (line) =>
  new Promise((resolve, reject) => {
    const [host, port] = process.env.ATTACHE_INTEROP_CUT.split(":");
    dial(Number(port), host).on("error", reject).on("close", resolve).end(`${line}\n`).resume();
  });
const outcome = (promise) => promise.then(() => "no error", () => "error");
const reopen = (sessionId) => ({ sessionId, cwd, mcpServers: [] });

function scenarios(agent) {
  const request = (method, params, options) => agent.request(method, params, options);
  const open = async (params = {}) => {
    const r = await request(methods.agent.session.new, { cwd, mcpServers: [], ...params });
    await until(() => log(r.sessionId).some((e) => e.startsWith("commands:")));
    return r;
  };
  // Runs one turn and returns what it showed.
  const turn = async (sessionId, prompt, options) => {
    const from = log(sessionId).length;
    const blocks = typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
    const { stopReason } = await request(methods.agent.session.prompt, { sessionId, prompt: blocks, ...options });
    const events = log(sessionId).slice(from);
    return { stop: stopReason, events, text: texts(events) };
  };
  const close = (sessionId) => request(methods.agent.session.close, { sessionId });
  const fresh = async () => (await open()).sessionId;

  return {
    request,
    turn,
    fresh,
    initialize: async (see) => {
      const r = await request(methods.agent.initialize, {
        protocolVersion: 1,
        clientInfo: { name: "interop-client", version: "1.0.0" },
        clientCapabilities: {
          fs: { readTextFile: true, writeTextFile: true },
          terminal: true,
          elicitation: { form: {}, url: {} },
        },
      });
      const c = r.agentCapabilities;
      const s = c.sessionCapabilities;
      see("version", r.protocolVersion);
      see("agent", r.agentInfo.name);
      see("capabilities", { load: c.loadSession, prompt: [c.promptCapabilities.image, c.promptCapabilities.audio, c.promptCapabilities.embeddedContext], mcp: [c.mcpCapabilities.http, c.mcpCapabilities.sse], session: ["close", "fork", "list", "resume"].filter((k) => s[k]) });
      see("auth_methods", r.authMethods.map((m) => m.id));
    },
    auth: async (see) => {
      see("before", await code(request(methods.agent.session.new, { cwd, mcpServers: [] })));
      see("unknown", await code(request(methods.agent.authenticate, { methodId: "nobody" })));
      see("accepted", await code(request(methods.agent.authenticate, { methodId: "pass" })));
      see("after", await code(open()));
    },
    new_session: async (see) => {
      const r = await open({
        mcpServers: [
          { name: "local", command: "/bin/true", args: ["--x"], env: [{ name: "A", value: "b" }] },
          { type: "http", name: "remote", url: "https://example.com/mcp", headers: [{ name: "X-Key", value: "k" }] },
        ],
      });
      see("setup", setup(r));
      see("mcp", (await turn(r.sessionId, "mcp")).text);
    },
    commands: async (see) => see("commands", log(await fresh()).filter((e) => e.startsWith("commands:"))),
    text: async (see) => {
      const t = await turn(await fresh(), "stream 20");
      see("chunks", t.events.length);
      see("text", t.text);
      see("stop", t.stop);
    },
    stop_reasons: async (see) => {
      const id = await fresh();
      const stops = [];
      for (const r of ["end_turn", "max_tokens", "max_turn_requests", "refusal"]) stops.push((await turn(id, `stop ${r}`)).stop);
      see("stops", stops);
    },
    thought_plan: async (see) => see("events", (await turn(await fresh(), "think")).events),
    permission_granted: async (see) => {
      onPermission = choose("allow");
      const t = await turn(await fresh(), `edit ${join(cwd, "draft.txt")}`);
      see("events", t.events);
      see("stop", t.stop);
      see("file", await readFile("draft.txt", "utf8"));
    },
    permission_denied: async (see) => {
      onPermission = choose("reject");
      const t = await turn(await fresh(), `edit ${join(cwd, "kept.txt")}`);
      see("events", t.events);
      see("stop", t.stop);
      see("file", await readFile("kept.txt", "utf8"));
    },
    fs: async (see) => {
      const id = await fresh();
      see("whole", (await turn(id, `read ${join(cwd, "lines.txt")}`)).text);
      see("part", (await turn(id, `read ${join(cwd, "lines.txt")} 2 2`)).text);
      see("missing", (await turn(id, `read ${join(cwd, "nowhere.txt")}`)).text);
      see("write", (await turn(id, `write ${join(cwd, "new.txt")} hello`)).text);
      see("file", await readFile("new.txt", "utf8"));
    },
    terminal: async (see) => {
      const t = await turn(await fresh(), "run");
      see("events", t.events);
      see("open", terminals.size);
    },
    terminal_kill: async (see) => {
      see("text", (await turn(await fresh(), "runkill")).text);
      see("open", terminals.size);
    },
    cancel_streaming: async (see) => {
      const id = await fresh();
      const running = turn(id, "forever");
      await until(() => log(id).filter((e) => e.startsWith("text:tick")).length >= 3);
      await agent.notify(methods.agent.session.cancel, { sessionId: id });
      const t = await running;
      see("stop", t.stop);
      see("start", t.events.slice(0, 3));
      see("next", (await turn(id, "say again")).text);
    },
    cancel_permission: async (see) => {
      const id = await fresh();
      onPermission = async () => {
        await agent.notify(methods.agent.session.cancel, { sessionId: id });
        return { outcome: { outcome: "cancelled" } };
      };
      const t = await turn(id, "ask");
      see("stop", t.stop);
      see("events", t.events);
      see("next", (await turn(id, "say again")).text);
    },
    load: async (see) => {
      const id = await fresh();
      await turn(id, "say one");
      await turn(id, "say two");
      await close(id);
      const from = log(id).length;
      const r = await request(methods.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
      see("replay", replayed(log(id).slice(from)));
      see("setup", setup(r));
      see("count", (await turn(id, "count")).text);
      see("unknown", await code(request(methods.agent.session.load, { sessionId: "nobody", cwd, mcpServers: [] })));
    },
    list: async (see) => {
      const sub = join(cwd, "sub");
      const id = (await open({ cwd: sub })).sessionId;
      for (let i = 0; i < 6; i++) await fresh();
      const ids = [];
      let pages = 0;
      let cursor;
      do {
        const r = await request(methods.agent.session.list, cursor ? { cursor } : {});
        ids.push(...r.sessions.map((s) => s.sessionId));
        cursor = r.nextCursor;
        pages++;
      } while (cursor);
      see("paged", pages > 1);
      see("unique", new Set(ids).size === ids.length);
      see("found", ids.includes(id));
      const filtered = await request(methods.agent.session.list, { cwd: sub });
      see("filtered", filtered.sessions.map((s) => [s.sessionId === id, basename(s.cwd)]));
    },
    resume: async (see) => {
      const id = await fresh();
      await turn(id, "say one");
      await close(id);
      see("closed", await code(turn(id, "count")));
      const from = log(id).length;
      see("setup", setup(await request(methods.agent.session.resume, { sessionId: id, cwd, mcpServers: [] })));
      see("replay", replayed(log(id).slice(from)));
      see("count", (await turn(id, "count")).text);
    },
    fork: async (see) => {
      const id = await fresh();
      await turn(id, "say one");
      const r = await request(methods.agent.session.fork, { sessionId: id, cwd, mcpServers: [] });
      see("new_id", r.sessionId !== id);
      await turn(r.sessionId, "say two");
      see("counts", [(await turn(id, "count")).text, (await turn(r.sessionId, "count")).text]);
    },
    delete: async (see) => {
      const gone = join(cwd, "gone");
      const id = (await open({ cwd: gone })).sessionId;
      const listed = async () => (await request(methods.agent.session.list, { cwd: gone })).sessions.length;
      see("before", await listed());
      await request(methods.agent.session.delete, { sessionId: id });
      see("after", await listed());
    },
    set_mode: async (see) => {
      const id = await fresh();
      see("set", await code(request(methods.agent.session.setMode, { sessionId: id, modeId: "code" })));
      see("mode", (await turn(id, "mode")).text);
      see("switched", (await turn(id, "switch ask")).events);
      see("unknown", await code(request(methods.agent.session.setMode, { sessionId: id, modeId: "fly" })));
    },
    set_config_option: async (see) => {
      const id = await fresh();
      const set = (value) => request(methods.agent.session.setConfigOption, { sessionId: id, configId: "model", value });
      see("set", model(await set("deep")));
      see("config", (await turn(id, "config")).text);
      see("changed", (await turn(id, "reconfigure fast")).events);
      see("unknown", await code(set("huge")));
    },
    unknown_method: async (see) => {
      see("plain", await code(request("interop/nothing", {})));
      see("extension", await code(request("_interop/nothing", {})));
      await agent.notify("_interop/nothing", {});
      see("callback", (await turn(await fresh(), "callback-unknown")).text);
    },
    extension: async (see) => {
      see("echo", await request("_interop/echo", { value: [1, "two", null, { deep: true }] }));
      for (let i = 0; i < 3; i++) await agent.notify("_interop/note", { i });
      see("notes", await request("_interop/notes", {}));
      const from = log("").length;
      see("reverse", (await turn(await fresh(), "ext")).text);
      await until(() => log("").length > from);
      see("ping", log("").slice(from));
    },
    big: async (see) => {
      const id = await fresh();
      see("to_agent", (await turn(id, `size ${"x".repeat(5_000_000)}`)).text);
      const t = await turn(id, "big 5000000");
      see("to_client", [t.events.length, t.text.length, /^y*$/.test(t.text)]);
    },
    parallel: async (see) => {
      const ids = [await fresh(), await fresh()];
      const turns = await Promise.all(ids.map((id) => turn(id, "meet")));
      see("stops", turns.map((t) => t.stop));
      see("counts", turns.map((t) => t.events.length));
      see("own", turns.map((t, n) => t.text === Array.from({ length: 10 }, (_, i) => `${ids[n]}/${i};`).join("")));
    },
    elicitation: async (see) => {
      const id = await fresh();
      onElicitation = () => ({ action: "accept", content: { name: "Ada", age: 36, role: "admin", sure: true } });
      see("accept", (await turn(id, "elicit")).events);
      onElicitation = () => ({ action: "decline" });
      see("decline", (await turn(id, "elicit")).text);
      onElicitation = () => ({ action: "cancel" });
      see("cancel", (await turn(id, "elicit")).text);
      onElicitation = () => ({ action: "accept" });
      const from = log("").length;
      see("url", (await turn(id, "elicit-url")).events);
      // The SDK may deliver a notification after an answer that came behind it, when the methods differ.
      await until(() => log("").length > from);
      see("complete", log("").slice(from));
    },
    content: async (see) => {
      const t = await turn(await fresh(), [
        { type: "text", text: "blocks" },
        { type: "image", mimeType: "image/png", data: "AAAA" },
        { type: "audio", mimeType: "audio/wav", data: "BBBB" },
        { type: "resource_link", name: "doc", uri: "file:///doc.md" },
        { type: "resource", resource: { uri: "file:///code.rs", mimeType: "text/rust", text: "fn main() {}" } },
      ]);
      see("events", t.events);
    },
    info: async (see) => see("events", (await turn(await fresh(), "info")).events),
    meta: async (see) => see("trace", (await turn(await fresh(), "meta", { _meta: { "interop.example/trace": "t-42" } })).text),
    errors: async (see) => {
      const id = await fresh();
      see("fail", await code(turn(id, "fail")));
      see("unknown_session", await code(turn("nobody", "say x")));
      see("next", (await turn(id, "say again")).text);
    },
    cancel_request: async (see) => {
      const id = await fresh();
      const abort = new AbortController();
      const forever = { sessionId: id, prompt: [{ type: "text", text: "forever" }] };
      // How the prompt is answered is seen on the wire; some clients give the answer up.
      const running = request(methods.agent.session.prompt, forever, { cancellationSignal: abort.signal }).catch(() => {});
      await until(() => log(id).filter((e) => e.startsWith("text:tick")).length >= 1);
      abort.abort();
      await running;
      see("next", (await turn(id, "say again")).text);
    },
    logout: async (see) => {
      see("logout", await code(request(methods.agent.logout, {})));
      see("after", await code(request(methods.agent.session.new, { cwd, mcpServers: [] })));
    },
  };
}

// A remote agent has no process here, and its exit code is unknown.
let child = null;
let gone = null;
async function open() {
  if (/^wss?:/.test(command)) {
    const { createWebSocketStream } = await import("@agentclientprotocol/sdk/experimental/ws-client");
    const { WebSocket } = await import("ws");
    return createWebSocketStream(command, { WebSocket });
  }
  if (/^https?:/.test(command)) {
    const { createHttpStream } = await import("@agentclientprotocol/sdk/experimental/http-client");
    return createHttpStream(command);
  }
  child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
  gone = new Promise((resolve) => child.on("exit", (exitCode) => resolve(exitCode)));
  return acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}
// Runs a part of a scenario on a new connection. How the connection ends does not matter: it may be cut. The pool of `fetch` may
// still hold connections that were cut, so the beginning is tried again.
async function again(run) {
  for (let tries = 1; ; tries++) {
    const stream = await open();
    let begun = false;
    const part = async (agent) => {
      const next = scenarios(agent);
      await next.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      await next.request(methods.agent.authenticate, { methodId: "pass" });
      begun = true;
      await run(next);
    };
    try {
      return await new Promise((resolve, reject) => {
        app.connectWith(stream, (agent) => part(agent).then(resolve, reject)).catch(() => {});
      });
    } catch (e) {
      if (begun || tries === 5) throw e;
    }
  }
}

// The SDK does not connect again: each part has a connection of its own, and the session is resumed on it.
async function reconnect(see) {
  let id;
  await again(async (next) => {
    id = await next.fresh();
    await next.turn(id, "say one");
    await proxy("cut");
  });
  await again(async (next) => {
    await next.request(methods.agent.session.resume, reopen(id));
    see("between", (await next.turn(id, "count")).text);
    const running = outcome(next.turn(id, "forever"));
    await until(() => log(id).filter((e) => e.startsWith("text:tick")).length >= 3);
    await proxy("cut");
    see("during", await running);
  });
  await again(async (next) => {
    await next.request(methods.agent.session.resume, reopen(id));
    see("after", (await next.turn(id, "count")).text);
    await proxy("cut at end_turn");
    see("lost", await outcome(next.turn(id, "say two")));
    // Returns when every connection has ended, so that none of them is taken from the pool of `fetch` for the next part.
    await proxy("cut");
  });
  await again(async (next) => {
    await next.request(methods.agent.session.resume, reopen(id));
    see("once", (await next.turn(id, "count")).text);
  });
}

async function report(scenario, run) {
  if (skip.has(scenario)) return;
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("timed out")), 20_000)));
  try {
    await Promise.race([run((check, got) => print({ scenario, check, got })), late]);
  } catch (e) {
    print({ scenario, error: `${e.message} ${JSON.stringify(e.data) ?? ""}` });
  } finally {
    clearTimeout(timer);
  }
}

const stream = await open();
await app.connectWith(stream, async (agent) => {
  const { request, turn, fresh, ...all } = scenarios(agent);
  for (const [scenario, run] of Object.entries(all)) await report(scenario, run);
});
await report("reconnect", reconnect);
if (child && !child.stdin.destroyed) child.stdin.end();
print({ end: await gone });
process.exit(0);
