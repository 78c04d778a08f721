// The bench client on the official TypeScript SDK: a handler for updates, or with `sess` its sessions.
//   client.mjs stream N LEN | jitter N LEN | rtt N | call N | sess SESSIONS N LEN -- AGENT COMMAND
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const words = process.argv.slice(2);
const cut = words.indexOf("--");
const [mode, ...numbers] = words.slice(0, cut);
const [program, ...args] = words.slice(cut + 1);
const [n, len, sessions] =
  mode === "sess" ? [numbers[1], numbers[2], numbers[0]].map(Number) : [Number(numbers[0]), Number(numbers[1] ?? 0), 1];
const order = mode === "call" ? `read ${n}` : `stream ${n} ${len}`;

const kilobytes = (key) => Number(readFileSync("/proc/self/status", "utf8").match(new RegExp(`^${key}:\\s+(\\d+)`, "m"))[1]);
const cpuMicros = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

let handled = 0;
let outOfOrder = 0;
function count(update) {
  if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") return;
  if (Number(update.content.text.slice(0, 8)) !== handled) outOfOrder++;
  handled++;
}

let app = acp.client({ name: "bench" });
if (mode !== "sess") {
  const handler =
    mode === "jitter"
      ? async ({ params }) => {
          await pause(3 - (Number(params.update.content.text.slice(0, 8)) % 3));
          count(params.update);
        }
      : ({ params }) => count(params.update);
  app = app
    .onNotification(acp.methods.client.session.update, handler)
    .onRequest(acp.methods.client.fs.readTextFile, () => ({ content: "hello from the file" }));
}

let wall, cpu;
function start() {
  cpu = cpuMicros();
  wall = performance.now();
}

const runs = {
  async rtt({ open }) {
    const times = [];
    start();
    for (let i = 0; i < n; i++) {
      const sent = performance.now();
      await open();
      times.push((performance.now() - sent) * 1e3);
    }
    times.sort((a, b) => a - b);
    return { p50_us: times[n >> 1], p99_us: times[Math.floor(n * 0.99)] };
  },
  async handler({ open, prompt }) {
    const { sessionId } = await open();
    start();
    await prompt(sessionId);
    const handled_at_response = handled;
    while (mode !== "call" && handled < n) await pause(1);
    return { handled_at_response };
  },
  async sess({ context }) {
    const rss_1_kb = kilobytes("VmRSS");
    const opening = performance.now();
    const open = [];
    for (let i = 0; i < sessions; i++) open.push(await context.buildSession("/tmp").start());
    const open_us_per = ((performance.now() - opening) * 1e3) / sessions;
    const rss_s_kb = kilobytes("VmRSS");
    const session = open[sessions >> 1];
    start();
    void session.prompt(order);
    for (;;) {
      const message = await session.nextUpdate();
      if (message.kind === "stop") return { sessions, open_us_per, rss_1_kb, rss_s_kb };
      handled++;
    }
  },
};

const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (context) => {
  const { agent } = acp.methods;
  const clientCapabilities = { fs: { readTextFile: true, writeTextFile: false }, terminal: false };
  await context.request(agent.initialize, { protocolVersion: 1, clientCapabilities });
  const open = () => context.request(agent.session.new, { cwd: "/tmp", mcpServers: [] });
  const prompt = (sessionId) => context.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text: order }] });
  const more = await (runs[mode] ?? runs.handler)({ context, open, prompt });
  const secs = (performance.now() - wall) / 1e3;
  console.log(
    JSON.stringify({
      test: `client-${mode}`,
      n,
      ...more,
      secs,
      per_s: n / secs,
      cpu_us_per: (cpuMicros() - cpu) / n,
      handled,
      order_errors: outOfOrder,
      rss_kb: kilobytes("VmRSS"),
      hwm_kb: kilobytes("VmHWM"),
    }),
  );
});
child.stdin.end();
process.exit(0);
