// An MCP client on both official TypeScript SDKs, against `attache mcp-server`: node client.mjs SERVER…
//
// SDK 2 speaks revision 2026-07-28, in which a question of the server is a result of the call. SDK 1 begins with
// `initialize`, and a question is a request. The program prints `ok NAME` for each check that held.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Transport2 } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...serverArgs] = process.argv.slice(2);
const info = { name: "attache-interop", version: "1.0.0" };
const home = mkdtempSync(join(tmpdir(), "attache-mcp-"));
let failed = false;

async function check(name, work) {
  try {
    await work();
    console.log(`ok ${name}`);
  } catch (error) {
    failed = true;
    console.log(`not ok ${name}: ${error?.stack ?? error}`.replaceAll("\n", " "));
  }
}

function same(seen, expected) {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

// Connects with one of the SDKs. `questions` is undefined for a client without forms, else it is called with each one.
async function connect(sdk, flags, cwd, questions) {
  const capabilities = questions ? { elicitation: {} } : {};
  const server = { command, args: [...serverArgs, ...flags], cwd, env: { ...process.env, ATTACHE_HOME: home } };
  if (sdk === 2) {
    const client = new Client2(info, { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } });
    if (questions) client.setRequestHandler("elicitation/create", (request) => questions(request.params));
    await client.connect(new Transport2(server));
    return client;
  }
  const client = new Client1(info, { capabilities });
  if (questions) client.setRequestHandler(ElicitRequestSchema, (request) => questions(request.params));
  await client.connect(new Transport1(server));
  return client;
}

async function checks(sdk) {
  const dir = mkdtempSync(join(tmpdir(), "attache-mcp-"));
  writeFileSync(join(dir, "a.txt"), "one\ntwo\nthree\n");
  const name = (text) => `sdk${sdk} ${text}`;
  const text = (result) => result.content[0].text;

  const client = await connect(sdk, ["--approve-all"], dir);
  await check(name("tools"), async () => {
    const { tools } = await client.listTools();
    same(tools.map((tool) => tool.name), ["read_file", "write_file", "run_command"]);
  });
  await check(name("files"), async () => {
    const read = await client.callTool({ name: "read_file", arguments: { path: "a.txt", line: 2, limit: 1 } });
    same([text(read), read.isError], ["two\n", false]);
    await client.callTool({ name: "write_file", arguments: { path: join(dir, "b.txt"), content: "b" } });
    same(readFileSync(join(dir, "b.txt"), "utf8"), "b");
    const outside = await client.callTool({ name: "read_file", arguments: { path: "/etc/passwd" } });
    same(outside.isError, true);
  });
  await check(name("commands"), async () => {
    const run = await client.callTool({ name: "run_command", arguments: { command: "echo out; exit 3" } });
    same([run.structuredContent.output, run.structuredContent.exitCode], ["out\n", 3]);
  });
  await check(name("cancel"), async () => {
    const stop = new AbortController();
    const call = { name: "run_command", arguments: { command: "touch begun; sleep 1000" } };
    const running = client.callTool(call, ...(sdk === 2 ? [] : [undefined]), { signal: stop.signal }).then(
      () => "ended",
      () => "cancelled",
    );
    while (!existsSync(join(dir, "begun"))) await new Promise((next) => setImmediate(next));
    stop.abort();
    same(await running, "cancelled");
    const after = await client.callTool({ name: "read_file", arguments: { path: "a.txt", limit: 1 } });
    same(text(after), "one\n");
  });
  await check(name("unknown_tool"), async () => {
    const code = await client.callTool({ name: "format_disk", arguments: {} }).then(
      () => 0,
      (error) => error.code,
    );
    same(code, -32602);
  });
  await client.close();

  const asked = [];
  const answers = [
    { action: "decline" },
    { action: "accept", content: { decision: "Yes, once" } },
  ];
  const asking = await connect(sdk, [], dir, (params) => {
    asked.push(params.message);
    return answers[asked.length - 1];
  });
  await check(name("questions"), async () => {
    const write = { name: "write_file", arguments: { path: "c.txt", content: "c\n" } };
    same((await asking.callTool(write)).isError, true);
    same(existsSync(join(dir, "c.txt")), false);
    same((await asking.callTool(write)).isError, false);
    same(readFileSync(join(dir, "c.txt"), "utf8"), "c\n");
    same(asked.length, 2);
  });
  await asking.close();

  const mute = await connect(sdk, [], dir);
  await check(name("no_questions"), async () => {
    const refused = await mute.callTool({ name: "run_command", arguments: { command: "touch d.txt" } });
    same([refused.isError, text(refused).includes("elicitation"), existsSync(join(dir, "d.txt"))], [true, true, false]);
  });
  await mute.close();
  rmSync(dir, { recursive: true });
}

await checks(1);
await checks(2);
rmSync(home, { recursive: true });
process.exit(failed ? 1 : 0);
