#!/usr/bin/env node
// Starts the program from the package for this system, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const name = `@attache-acp/attache-${process.platform}-${process.arch}`;

let program;
try {
  program = require.resolve(`${name}/bin/attache`);
} catch {
  console.error(`attache: the package ${name} is not installed`);
  console.error("hint: install without --omit=optional; if there is no such package, build from source");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });

child.on("error", (error) => {
  console.error(`attache: ${program}: ${error.message}`);
  process.exit(1);
});

// A terminal sends Ctrl-C to both processes; without one, only this process gets the signal.
const forwarded = process.stdin.isTTY ? ["SIGTERM", "SIGHUP"] : ["SIGTERM", "SIGHUP", "SIGINT"];
for (const signal of forwarded) process.on(signal, () => child.kill(signal));
if (process.stdin.isTTY) process.on("SIGINT", () => {});

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
