"""A client on the official Python SDK that connects to a server: `remote.py URL PROMPT [SESSION]`.

Sends one prompt in a new session, or in SESSION, which is loaded, and grants what is asked for.
"""

import asyncio
import os
import sys

import acp
from acp import schema

url, prompt, *rest = sys.argv[1:]
cwd = os.getcwd()


class RemoteClient(acp.Client):
    async def request_permission(self, options, session_id, tool_call, **_):
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        pass


async def main():
    if url.startswith("ws"):
        from acp.ws import create_websocket_stream

        transport = await create_websocket_stream(url)
    else:
        from acp.http import create_http_stream

        transport = create_http_stream(url)
    agent = acp.connect_to_agent(RemoteClient(), transport)
    info = schema.Implementation(name="interop-remote", version="1.0.0")
    await agent.initialize(
        protocol_version=1, client_capabilities=schema.ClientCapabilities(), client_info=info
    )
    if rest:
        session_id = rest[0]
        await agent.load_session(cwd=cwd, session_id=session_id, mcp_servers=[])
    else:
        session_id = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
    await agent.prompt(session_id=session_id, prompt=[acp.text_block(prompt)])
    await agent.close()


asyncio.run(main())
