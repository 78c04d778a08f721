"""The bench agent on the official Python SDK, for standard streams and for servers."""

import asyncio
import time

from acp import update_agent_message_text
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)


class Bench:
    client = None
    # Of all connections of the process.
    sessions = 0

    def __init__(self, conn=None):
        self.client = conn

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return InitializeResponse(protocol_version=protocol_version, agent_capabilities=AgentCapabilities())

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **_):
        Bench.sessions += 1
        return NewSessionResponse(session_id=f"s-{Bench.sessions}")

    async def cancel(self, session_id, **_):
        pass

    async def prompt(self, session_id, prompt, **_):
        text = prompt[0].text[:64] if prompt and prompt[0].type == "text" else ""
        verb, *numbers = text.split(" ")
        n, length = ([int(word) for word in numbers if word.isdigit()] + [0, 0])[:2]
        if verb in ("stream", "streamy"):
            padding = "x" * max(0, length - 8)
            for i in range(n):
                update = update_agent_message_text(f"{i:08d}{padding}")
                await self.client.session_update(session_id=session_id, update=update)
        elif verb == "read":
            for _ in range(n):
                await self.client.read_text_file(session_id=session_id, path="/tmp/x.txt")
        elif verb == "perm":
            for _ in range(n):
                await self.client.request_permission(
                    session_id=session_id,
                    tool_call=ToolCallUpdate(tool_call_id="t1", title="edit"),
                    options=[
                        PermissionOption(option_id="a", name="Allow", kind="allow_once"),
                        PermissionOption(option_id="r", name="Reject", kind="reject_once"),
                    ],
                )
        elif verb == "paced":
            # Late updates are caught up with; the text says when each was made, on the clock that all processes share.
            start = time.monotonic()
            for i in range(n):
                await asyncio.sleep(max(0, start + i * length / 1000 - time.monotonic()))
                update = update_agent_message_text(f"{time.monotonic_ns() // 1000:020d}")
                await self.client.session_update(session_id=session_id, update=update)
        return PromptResponse(stop_reason="end_turn")
