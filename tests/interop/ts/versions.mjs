// Clients of each version on the official TypeScript SDK, before an agent that serves one version or both:
// `versions.mjs [--only 1] -- AGENT ARGS…`, where `--only` names the version that the agent has.
// Prints `ok NAME` or `not ok NAME: WHY` for each of its checks.
import * as v1 from "@agentclientprotocol/sdk/unstable";
import * as v2 from "@agentclientprotocol/sdk/experimental/v2/unstable";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const isV1Only = process.argv[2] === "--only";
const [command, ...args] = process.argv.slice(process.argv.indexOf("--") + 1);
const cwd = process.cwd();
const name = "interop-versions";

// Runs `use` with the streams of an agent of its own, and waits for the end of that.
async function started(use) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => child.on("exit", resolve));
  try {
    return await use(v1.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  } finally {
    if (!child.stdin.destroyed) child.stdin.end();
    await exited;
  }
}

const helloV2 = { protocolVersion: 2, info: { name, version: "1" }, capabilities: {} };
const helloV1 = { protocolVersion: 1, clientInfo: { name, version: "1" }, clientCapabilities: { fs: { readTextFile: true } } };

// A conversation of version 1: the text of one turn. Files are those of the client.
async function talkV1(stream, prompt) {
  let text = "";
  const connection = v1
    .client({ name })
    .onNotification("session/update", ({ params }) => {
      if (params.update.sessionUpdate === "agent_message_chunk") text += params.update.content.text;
    })
    .onRequest("fs/read_text_file", () => ({ content: "from the client" }))
    .connect(stream);
  const { agent } = connection;
  const hello = await agent.request("initialize", helloV1);
  assert.equal(hello.protocolVersion, 1);
  await agent.request("authenticate", { methodId: "pass" });
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });
  const { stopReason } = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: prompt }] });
  assert.equal(stopReason, "end_turn");
  connection.close();
  return text;
}

// One conversation of version 2.
async function talkV2(stream, prompt) {
  const connection = v2.client({ name }).connect(stream);
  const { agent } = connection;
  const hello = await agent.request("initialize", helloV2);
  assert.equal(hello.protocolVersion, 2);
  await agent.request("auth/login", { methodId: "pass" });
  const session = await agent.buildSession(cwd).start();
  session.prompt(prompt);
  let text = "";
  for (;;) {
    const { kind, update } = await session.nextUpdate();
    if (update.sessionUpdate === "agent_message_chunk") text += update.content.text;
    if (kind === "stop") {
      assert.equal(update.stopReason, "end_turn");
      connection.close();
      return text;
    }
  }
}

// Sends requests one after the other, as they are, and returns the answers.
async function answers(stream, requests) {
  const [reader, writer] = [stream.readable.getReader(), stream.writable.getWriter()];
  const seen = [];
  for (const [id, [method, params]] of requests.entries()) {
    await writer.write({ jsonrpc: "2.0", id, method, params });
    let answer;
    do answer = (await reader.read()).value;
    while (answer.id !== id);
    seen.push(answer);
  }
  await writer.close();
  return seen;
}

const unsupported = (answer, requested, supported) => {
  assert.equal(answer.error?.code, -32022);
  assert.deepEqual(answer.error.data, { requested, supported });
};
const version = (answer) => answer.result?.protocolVersion;

const both = {
  version_1: async () => assert.equal(await started((stream) => talkV1(stream, `read ${cwd}/lines.txt`)), "from the client"),
  version_2: async () => assert.equal(await started((stream) => talkV2(stream, "say hello")), "hello"),
  // The highest version at or below the one that is offered.
  async newer_offer() {
    const [hello] = await started((stream) => answers(stream, [["initialize", { ...helloV2, protocolVersion: 3 }]]));
    assert.equal(version(hello), 2);
  },
  // A connection of version 2 does not become one of version 1, and goes on.
  async lower_repeat() {
    const [hello, lower, again, session] = await started((stream) =>
      answers(stream, [["initialize", helloV2], ["initialize", helloV1], ["initialize", helloV2], ["session/new", { cwd }]]),
    );
    assert.equal(version(hello), 2);
    unsupported(lower, 1, [2]);
    assert.equal(version(again), 2);
    assert.equal(session.error.code, -32000);
  },
  // A connection of version 1 that was not used does.
  async higher_repeat() {
    const [hello, higher] = await started((stream) => answers(stream, [["initialize", helloV1], ["initialize", helloV2]]));
    assert.equal(version(hello), 1);
    assert.equal(version(higher), 2);
    assert.equal(higher.result.info.name, "interop-agent");
  },
  // Before `initialize` there is nothing; afterwards it cannot be repeated.
  async order() {
    const [early, hello, , late] = await started((stream) =>
      answers(stream, [["session/list", {}], ["initialize", helloV2], ["auth/login", { methodId: "pass" }], ["initialize", helloV2]]),
    );
    assert.equal(early.error.code, -32600);
    assert.equal(version(hello), 2);
    assert.equal(late.error.code, -32600);
  },
};

const onlyV1 = {
  version_1: both.version_1,
  // The SDK's client of version 2 refuses the answer of version 1; its user starts the agent again, and files work.
  async fallback() {
    const refused = await started(async (stream) => {
      const connection = v2.client({ name }).connect(stream);
      const error = await connection.agent.request("initialize", helloV2).catch((error) => error);
      connection.close();
      return error;
    });
    assert.ok(refused instanceof Error, JSON.stringify(refused));
    assert.equal(await started((stream) => talkV1(stream, `read ${cwd}/lines.txt`)), "from the client");
  },
  // An answer of version 1 to the offer of version 2, with nothing of the client enabled.
  async answer_to_an_offer_of_2() {
    const [hello, repeated] = await started((stream) => answers(stream, [["initialize", helloV2], ["initialize", helloV1]]));
    assert.equal(version(hello), 1);
    assert.equal(hello.result.agentInfo.name, "interop-agent");
    assert.equal(version(repeated), 1);
  },
};

let failed = false;
for (const [check, run] of Object.entries(isV1Only ? onlyV1 : both)) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("timed out")), 20_000)));
  try {
    await Promise.race([run(), late]);
    console.log(`ok ${check}`);
  } catch (error) {
    failed = true;
    console.log(`not ok ${check}: ${String(error.message).replaceAll("\n", " ")}`);
  } finally {
    clearTimeout(timer);
  }
}
process.exit(failed ? 1 : 0);
