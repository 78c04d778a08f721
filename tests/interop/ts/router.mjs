// The agents of both versions behind the router of the official TypeScript SDK: `router.mjs [--only 1|2]`.
import { agentProtocolRouter, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { Readable, Writable } from "node:stream";
import { agent } from "./agent.mjs";
import { agentV2 } from "./agent_v2.mjs";

const only = process.argv[2] === "--only" ? process.argv[3] : null;
const router = agentProtocolRouter();
if (only !== "2") router.withV1(agent());
if (only !== "1") router.withV2(agentV2());
router.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
