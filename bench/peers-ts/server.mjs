// The bench agent on the official TypeScript SDK over WebSocket and Streamable HTTP. Prints its port.
import { createServer } from "node:http";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { WebSocketServer } from "ws";
import { benchAgent } from "./bench.mjs";

const served = new AcpServer({ createAgent: benchAgent });
const server = createServer(createNodeHttpHandler(served));
server.on("upgrade", createNodeWebSocketUpgradeHandler(served, new WebSocketServer({ noServer: true })));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
