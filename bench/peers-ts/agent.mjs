// The bench agent on the official TypeScript SDK over standard streams.
import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { benchAgent } from "./bench.mjs";

const stdio = ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await benchAgent().connect(stdio).closed;
