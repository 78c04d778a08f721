// A client of protocol version 2 on the official TypeScript SDK: `client_v2.mjs [--coder] -- AGENT ARGS…`.
// Runs its checks against the agent, or with --coder those for a coding agent, and prints one line for each: `ok NAME`, or
// `not ok NAME: WHY`.
import * as acp from "@agentclientprotocol/sdk/experimental/v2/unstable";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";

const [command, ...args] = process.argv.slice(process.argv.indexOf("--") + 1);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
let answer = (params) => ({ outcome: "selected", optionId: params.options[0].optionId });
let asked = null;
const connection = acp
  .client({ name: "interop-client-v2" })
  .onRequest("session/request_permission", ({ params }) => {
    asked = params;
    return { outcome: answer(params) };
  })
  .connect(stream);
const agent = connection.agent;

const cwd = process.cwd();
const open = () => agent.buildSession(cwd).start();

// One turn: what came until the session was idle again.
async function turn(session, text, during = () => {}) {
  const inserted = session.prompt(text);
  const updates = [];
  for (;;) {
    const message = await session.nextUpdate();
    updates.push(message.update);
    during(message.update);
    if (message.kind === "stop") return { updates, stop: message.update, answer: await inserted };
  }
}
const kinds = (updates) => updates.map((u) => (u.sessionUpdate === "state_update" ? u.state : u.sessionUpdate));
const said = (updates) =>
  updates.filter((u) => u.sessionUpdate === "agent_message_chunk").map((u) => u.content.text).join("");
const code = (promise) => promise.then(() => "no error", (error) => error.code);

// Whether the agent has sessions; without them nothing else is asked of it.
let hasSessions = false;

const checks = {
  async initialize() {
    const params = { protocolVersion: 2, info: { name: "interop-client-v2", version: "1" }, capabilities: {} };
    const hello = await agent.request("initialize", params);
    hasSessions = Boolean(hello.capabilities?.session);
    assert.equal(hello.protocolVersion, 2);
    assert.equal(hello.info.name, "interop-agent");
    assert.ok(hello.capabilities.session.prompt.image);
    assert.equal(hello.authMethods[0].methodId, "pass");
  },
  async login() {
    assert.equal(await code(agent.request("session/new", { cwd })), -32000);
    await agent.request("auth/login", { methodId: "pass" });
  },
  async stream() {
    const { updates, stop, answer } = await turn(await open(), "stream 20");
    assert.deepEqual(kinds(updates).slice(0, 2), ["user_message", "running"]);
    assert.equal(updates[0].messageId, answer.messageId);
    assert.equal(said(updates), Array.from({ length: 20 }, (_, i) => `${i}:é\u2028😀;`).join(""));
    assert.equal(new Set(updates.filter((u) => u.content?.type).map((u) => u.messageId)).size, 1);
    assert.equal(stop.stopReason, "end_turn");
  },
  async thoughts_and_plans() {
    const { updates } = await turn(await open(), "think");
    const plans = updates.filter((u) => u.sessionUpdate === "plan_update").map((u) => u.plan);
    assert.equal(plans.length, 2);
    assert.equal(plans[0].planId, plans[1].planId);
    assert.ok(kinds(updates).includes("agent_thought_chunk"));
  },
  async stop_reasons() {
    const session = await open();
    for (const reason of ["max_tokens", "max_turn_requests", "refusal"])
      assert.equal((await turn(session, `stop ${reason}`)).stop.stopReason, reason);
    const { stop } = await turn(session, "fail");
    assert.equal(stop.stopReason, "error");
    assert.equal(stop.error.code, -32603);
  },
  async permission() {
    const session = await open();
    const { updates } = await turn(session, "ask");
    assert.equal(asked.subject.type, "tool_call");
    assert.equal(asked.title, "Ask");
    const states = kinds(updates).filter((kind) => ["running", "requires_action", "idle"].includes(kind));
    assert.deepEqual(states, ["running", "requires_action", "running", "idle"]);
    answer = () => ({ outcome: "cancelled" });
    assert.equal((await turn(session, "ask")).stop.stopReason, "cancelled");
  },
  async replaced_message() {
    const { updates } = await turn(await open(), "replace");
    const [chunk, whole] = updates.filter((u) => u.sessionUpdate.startsWith("agent_message"));
    assert.equal(whole.sessionUpdate, "agent_message");
    assert.equal(whole.messageId, chunk.messageId);
    assert.equal(whole.content[0].text, "final");
  },
  async edit_granted() {
    answer = (params) => ({ outcome: "selected", optionId: params.options[0].optionId });
    const { updates } = await turn(await open(), `edit ${cwd}/draft.txt`);
    assert.equal(await readFile("draft.txt", "utf8"), "one\nTWO\n");
    assert.equal(asked.title, "Edit draft.txt?");
    assert.match(asked.subject.toolCall.content[0].patch.text, /-two\n\+TWO\n/);
    assert.equal(said(updates), "applied");
  },
  async edit_denied() {
    await writeFile("draft.txt", "one\ntwo\n");
    answer = (params) => ({ outcome: "selected", optionId: params.options.at(-1).optionId });
    assert.equal(said((await turn(await open(), `edit ${cwd}/draft.txt`)).updates), "denied");
    assert.equal(await readFile("draft.txt", "utf8"), "one\ntwo\n");
  },
  async terminal() {
    const { updates } = await turn(await open(), "run");
    const pieces = updates.filter((u) => u.sessionUpdate === "terminal_output_chunk").map((u) => Buffer.from(u.data, "base64"));
    assert.equal(Buffer.concat(pieces).toString(), "hä\n");
    const [made, ended] = updates.filter((u) => u.sessionUpdate === "terminal_update");
    assert.equal(made.command, "greet");
    assert.equal(ended.exitStatus.exitCode, 3);
  },
  async background() {
    const session = await open();
    const work = [{ type: "tool_call", toolCallId: "bg-1" }];
    assert.deepEqual((await turn(session, "background")).stop.background, work);
    await agent.notify("session/cancel", { sessionId: session.sessionId });
    assert.deepEqual((await turn(session, "say still")).stop.background, work);
    assert.deepEqual((await turn(session, "finish")).stop.background, []);
  },
  async cancel() {
    const session = await open();
    let ticks = 0;
    const { stop } = await turn(session, "forever", (update) => {
      if (update.sessionUpdate === "agent_message_chunk" && ++ticks === 2)
        agent.notify("session/cancel", { sessionId: session.sessionId });
    });
    assert.equal(stop.stopReason, "cancelled");
    assert.equal(said((await turn(session, "say again")).updates), "again");
  },
  async queue() {
    const session = await open();
    const prompts = ["say one", "say two", "say three"].map((text) => session.prompt(text));
    const updates = [];
    for (let idle = 0; idle < 3; ) {
      const message = await session.nextUpdate();
      updates.push(message.update);
      if (message.kind === "stop") idle++;
    }
    assert.equal(said(updates), "onetwothree");
    assert.equal(new Set((await Promise.all(prompts)).map((answer) => answer.messageId)).size, 3);
  },
  async modes_as_an_option() {
    const offered = await agent.request("session/new", { cwd });
    assert.ok(offered.configOptions?.some((option) => option.configId === "mode"));
    const session = await open();
    const set = { configId: "mode", type: "id", value: "code" };
    const { configOptions } = await session.setConfigOption(set);
    assert.equal(configOptions.find((option) => option.configId === "mode").currentValue, "code");
    assert.equal(said((await turn(session, "mode")).updates), "code");
    const { updates } = await turn(session, "switch ask");
    const changed = updates.find((u) => u.sessionUpdate === "config_option_update");
    assert.equal(changed.configOptions.find((option) => option.configId === "mode").currentValue, "ask");
  },
  async resume_with_replay() {
    const session = await open();
    await turn(session, "say remember");
    const { sessionId } = session;
    await agent.request("session/close", { sessionId });
    const replay = { sessionId, cwd, replayFrom: { type: "start" } };
    assert.ok(await agent.request("session/resume", replay));
    assert.equal(await code(agent.request("session/resume", { ...replay, replayFrom: { type: "_x" } })), -32602);
    assert.equal(await code(agent.request("session/resume", { ...replay, sessionId: "nobody" })), -32002);
    const listed = [];
    for (let cursor; ; ) {
      const page = await agent.request("session/list", cursor === undefined ? {} : { cursor });
      listed.push(...page.sessions.map((session) => session.sessionId));
      if (page.nextCursor === undefined || page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    assert.ok(listed.includes(sessionId));
    assert.deepEqual(await agent.request("session/close", { sessionId: "nobody" }), {});
  },
};

const coderChecks = {
  async initialize() {
    const params = { protocolVersion: 2, info: { name: "interop-client-v2", version: "1" }, capabilities: {} };
    const hello = await agent.request("initialize", params);
    hasSessions = Boolean(hello.capabilities?.session);
    assert.equal(hello.info.name, "attache-agent");
  },
  async read() {
    assert.match(said((await turn(await open(), "read lines.txt")).updates), /gamma/);
  },
  async edit_granted() {
    const { updates, stop } = await turn(await open(), "edit draft.txt");
    assert.equal(await readFile("draft.txt", "utf8"), "one\nTWO\n");
    const diff = updates.flatMap((u) => u.content ?? []).find((content) => content.type === "diff");
    assert.equal(diff.changes[0].operation, "modify");
    assert.match(diff.patch.text, /-two\n\+TWO\n/);
    assert.equal(asked.subject.type, "tool_call");
    assert.ok(kinds(updates).includes("requires_action"));
    assert.equal(said(updates), "applied");
    assert.equal(stop.stopReason, "end_turn");
  },
  async edit_denied() {
    await writeFile("draft.txt", "one\ntwo\n");
    answer = (params) => ({ outcome: "selected", optionId: params.options.find((o) => o.kind === "reject_once").optionId });
    assert.equal(said((await turn(await open(), "edit draft.txt")).updates), "denied");
    assert.equal(await readFile("draft.txt", "utf8"), "one\ntwo\n");
  },
  async cancel() {
    const session = await open();
    let cancelled = false;
    const { stop } = await turn(session, "forever", (update) => {
      if (update.sessionUpdate !== "agent_message_chunk" || cancelled) return;
      cancelled = true;
      agent.notify("session/cancel", { sessionId: session.sessionId });
    });
    assert.equal(stop.stopReason, "cancelled");
    assert.equal(said((await turn(session, "say again")).updates), "again");
  },
  async resume_with_replay() {
    const session = await open();
    await turn(session, "say one");
    const { sessionId } = session;
    await agent.request("session/close", { sessionId });
    await agent.request("session/resume", { sessionId, cwd, replayFrom: { type: "start" } });
    // The SDK gives updates to the object of the session, although that was closed.
    const replayed = [];
    do replayed.push((await session.nextUpdate()).update);
    while (replayed.at(-1).state !== "idle");
    assert.deepEqual(kinds(replayed).slice(0, 2), ["user_message_chunk", "agent_message_chunk"]);
    assert.equal(said(replayed), "one");
  },
};

let failed = false;
const coder = process.argv[2] === "--coder";
for (const [name, check] of Object.entries(coder ? coderChecks : checks)) {
  if (name !== "initialize" && !hasSessions) break;
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("timed out")), 20_000)));
  try {
    await Promise.race([check(), late]);
    console.log(`ok ${name}`);
  } catch (error) {
    failed = true;
    console.log(`not ok ${name}: ${String(error.message).replaceAll("\n", " ")}`);
  } finally {
    clearTimeout(timer);
  }
}
connection.close();
if (!child.stdin.destroyed) child.stdin.end();
await new Promise((resolve) => (child.exitCode === null ? child.on("exit", resolve) : resolve()));
process.exit(failed ? 1 : 0);
