"""The interop agent on the official Python SDK. What each prompt does is written in ../README.md."""

import asyncio
import json
import os
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any

import acp
from acp import RequestError, schema

PAGE = 5


@dataclass
class Session:
    cwd: str
    mcp_servers: list[Any]
    history: list[tuple[str, str]] = field(default_factory=list)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    mode: str = "ask"
    model: str = "fast"
    open: bool = True
    cancelled: bool = False

    def modes(self):
        available = [schema.SessionMode(id="ask", name="Ask"), schema.SessionMode(id="code", name="Code")]
        return schema.SessionModeState(current_mode_id=self.mode, available_modes=available)

    def config_options(self):
        options = [
            schema.SessionConfigSelectOption(value="fast", name="Fast"),
            schema.SessionConfigSelectOption(value="deep", name="Deep"),
        ]
        return [
            schema.SessionConfigOptionSelect(
                id="model", name="Model", category="model", type="select", current_value=self.model, options=options
            )
        ]

    def setup(self):
        return {"modes": self.modes(), "config_options": self.config_options()}


def not_found(session_id):
    return RequestError(-32002, "Resource not found", {"sessionId": session_id})


class InteropAgent(acp.Agent):
    def __init__(self):
        self.sessions: dict[str, Session] = {}
        self.authenticated = False
        self.notes = 0
        self.meeting: asyncio.Event | None = None
        self.tasks: set[asyncio.Task] = set()

    def on_connect(self, conn):
        self.conn = conn

    # Which session a request may touch.

    def kept(self, session_id):
        if session_id not in self.sessions:
            raise not_found(session_id)
        return self.sessions[session_id]

    def live(self, session_id):
        session = self.kept(session_id)
        if not session.open:
            raise not_found(session_id)
        return session

    def make(self, cwd, mcp_servers, history=()):
        session = Session(cwd, mcp_servers or [], list(history))
        self.sessions[session.id] = session
        return session

    # Requests.

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        return acp.InitializeResponse(
            protocol_version=1,
            agent_info=schema.Implementation(name="interop-agent", version="1.0.0"),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=True, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                ),
            ),
            auth_methods=[schema.AuthMethodAgent(id="pass", name="Pass", description="Lets everybody in")],
        )

    async def authenticate(self, method_id, **kwargs):
        if method_id != "pass":
            raise RequestError.invalid_params()
        self.authenticated = True
        return acp.AuthenticateResponse()

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        if not self.authenticated:
            raise RequestError.auth_required()
        session = self.make(cwd, mcp_servers)
        # After the answer: a client cannot know the session before it.
        task = asyncio.create_task(self.announce(session))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return acp.NewSessionResponse(session_id=session.id, **session.setup())

    async def announce(self, session):
        hint = schema.AvailableCommandInput(root=schema.UnstructuredCommandInput(hint="query"))
        commands = [
            schema.AvailableCommand(name="plan", description="Make a plan"),
            schema.AvailableCommand(name="web", description="Search the web", input=hint),
        ]
        update = schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)
        await self.conn.session_update(session.id, update)

    async def load_session(self, cwd, session_id, mcp_servers=None, additional_directories=None, **kwargs):
        session = self.kept(session_id)
        for user, text in session.history:
            await self.conn.session_update(session_id, acp.update_user_message_text(user))
            await self.conn.session_update(session_id, acp.update_agent_message_text(text))
        session.open = True
        return acp.LoadSessionResponse(**session.setup())

    async def resume_session(self, session_id, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        session = self.kept(session_id)
        session.open = True
        return schema.ResumeSessionResponse(**session.setup())

    async def fork_session(self, session_id, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        session = self.make(cwd, mcp_servers, self.kept(session_id).history)
        return schema.ForkSessionResponse(session_id=session.id, **session.setup())

    async def close_session(self, session_id, **kwargs):
        session = self.kept(session_id)
        session.cancelled = True
        session.open = False
        return schema.CloseSessionResponse()

    async def list_sessions(self, cwd=None, cursor=None, **kwargs):
        every = [s for s in self.sessions.values() if cwd is None or s.cwd == cwd]
        start = int(cursor) if cursor else 0
        infos = [
            schema.SessionInfo(session_id=s.id, cwd=s.cwd, title=s.history[0][0] if s.history else None)
            for s in every[start : start + PAGE]
        ]
        more = start + PAGE < len(every)
        return schema.ListSessionsResponse(sessions=infos, next_cursor=str(start + PAGE) if more else None)

    async def set_session_mode(self, session_id, mode_id, **kwargs):
        session = self.live(session_id)
        if mode_id not in ("ask", "code"):
            raise RequestError.invalid_params()
        session.mode = mode_id
        return acp.SetSessionModeResponse()

    async def set_config_option(self, config_id, session_id, value, **kwargs):
        session = self.live(session_id)
        if config_id != "model" or value not in ("fast", "deep"):
            raise RequestError.invalid_params()
        session.model = value
        return acp.SetSessionConfigOptionResponse(config_options=session.config_options())

    async def cancel(self, session_id, **kwargs):
        if session := self.sessions.get(session_id):
            session.cancelled = True

    async def ext_method(self, method, params):
        if method == "interop/echo":
            return params
        if method == "interop/notes":
            return {"count": self.notes}
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method, params):
        if method == "interop/note":
            self.notes += 1

    async def prompt(self, session_id, prompt, **kwargs):
        session = self.live(session_id)
        session.cancelled = False
        return acp.PromptResponse(stop_reason=await self.turn(session, prompt, kwargs))

    # One turn: the first text decides what happens.

    async def turn(self, session, prompt, meta):
        conn, session_id = self.conn, session.id

        async def send(update):
            await conn.session_update(session_id, update)

        async def say(text):
            await send(acp.update_agent_message_text(text))

        async def ask(tool_call_id):
            response = await conn.request_permission(
                session_id=session_id,
                tool_call=schema.ToolCallUpdate(tool_call_id=tool_call_id),
                options=[
                    schema.PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
                    schema.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
                ],
            )
            return response.outcome

        text = getattr(prompt[0], "text", "")
        verb, _, rest = text.partition(" ")
        match verb:
            case "say":
                await say(rest)
                session.history.append((text, rest))
            case "count":
                await say(str(len(session.history)))
            case "stream":
                for i in range(int(rest)):
                    await say(f"{i}:é\u2028😀;")
            case "stop":
                return rest
            case "think":
                await send(acp.update_agent_thought_text("hm, "))
                await send(acp.update_agent_thought_text("let me see"))
                for look, leap in (("pending", "pending"), ("completed", "in_progress")):
                    entries = [
                        acp.plan_entry("look", priority="high", status=look),
                        acp.plan_entry("leap", priority="low", status=leap),
                    ]
                    await send(acp.update_plan(entries))
                await say("done")
            case "edit":
                name = os.path.basename(rest)
                old = (await conn.read_text_file(session_id=session_id, path=rest)).content
                new = old.replace("two", "TWO")
                call = f"edit-{name}"
                await send(
                    acp.start_tool_call(
                        call,
                        f"Edit {name}",
                        kind="edit",
                        status="pending",
                        locations=[schema.ToolCallLocation(path=rest, line=2)],
                        raw_input={"path": rest},
                    )
                )
                outcome = await ask(call)
                if outcome.outcome == "cancelled":
                    return "cancelled"
                if outcome.option_id != "allow":
                    why = acp.tool_content(acp.text_block("not allowed"))
                    await send(acp.update_tool_call(call, status="failed", content=[why]))
                    await say("denied")
                    return "end_turn"
                await send(acp.update_tool_call(call, status="in_progress"))
                await conn.write_text_file(session_id=session_id, path=rest, content=new)
                diff = acp.tool_diff_content(path=rest, new_text=new, old_text=old)
                await send(acp.update_tool_call(call, status="completed", content=[diff]))
                await say("applied")
            case "read":
                path, *window = rest.split(" ")
                line, limit = (int(n) for n in window) if window else (None, None)
                try:
                    answer = await conn.read_text_file(session_id=session_id, path=path, line=line, limit=limit)
                    await say(answer.content.rstrip())
                except RequestError as error:
                    await say(f"error {error.code}")
            case "write":
                path, content = rest.split(" ")
                await conn.write_text_file(session_id=session_id, path=path, content=content)
                await say("written")
            case "run":
                terminal = await conn.create_terminal(
                    session_id=session_id,
                    command="sh",
                    args=["-c", 'printf "$GREETING\\ntwo\\n"; exit 3'],
                    env=[schema.EnvVariable(name="GREETING", value="one")],
                    cwd=session.cwd,
                    output_byte_limit=1000,
                )
                ids = {"session_id": session_id, "terminal_id": terminal.terminal_id}
                content = [acp.tool_terminal_ref(terminal.terminal_id)]
                await send(acp.start_tool_call("run-1", "Run", kind="execute", status="pending", content=content))
                await send(acp.update_tool_call("run-1", status="in_progress"))
                done = await conn.wait_for_terminal_exit(**ids)
                shown = await conn.terminal_output(**ids)
                await conn.release_terminal(**ids)
                await send(acp.update_tool_call("run-1", status="completed"))
                truncated = str(shown.truncated).lower()
                codes = f"{done.exit_code}/{shown.exit_status.exit_code}"
                await say(f"exit {codes} truncated {truncated} output {json.dumps(shown.output)}")
            case "runkill":
                terminal = await conn.create_terminal(session_id=session_id, command="sleep", args=["600"])
                ids = {"session_id": session_id, "terminal_id": terminal.terminal_id}
                await conn.kill_terminal(**ids)
                done = await conn.wait_for_terminal_exit(**ids)
                shown = await conn.terminal_output(**ids)
                await conn.release_terminal(**ids)
                await say("killed" if done.exit_code != 0 and shown.exit_status else "alive")
            case "forever":
                i = 0
                while not session.cancelled:
                    await say(f"tick {i};")
                    await asyncio.sleep(0.005)
                    i += 1
                return "cancelled"
            case "ask":
                await send(acp.start_tool_call("ask-1", "Ask", status="pending"))
                outcome = await ask("ask-1")
                await send(acp.update_tool_call("ask-1", status="failed"))
                return "cancelled" if outcome.outcome == "cancelled" else "end_turn"
            case "mode":
                await say(session.mode)
            case "switch":
                session.mode = rest
                await send(schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=rest))
            case "config":
                await say(session.model)
            case "reconfigure":
                session.model = rest
                options = session.config_options()
                await send(schema.ConfigOptionUpdate(session_update="config_option_update", config_options=options))
            case "callback-unknown":
                try:
                    await conn.ext_method("interop/nothing", {})
                    await say("no error")
                except RequestError as error:
                    await say(f"error {error.code}")
            case "ext":
                await conn.ext_notification("interop/ping", {"n": 1})
                await say((await conn.ext_method("interop/reverse", {"text": "abc"}))["text"])
            case "size":
                await say(str(len(rest)))
            case "big":
                await say("y" * int(rest))
            case "meet":
                # The first to come waits for the second: only turns that run side by side get through.
                if self.meeting:
                    self.meeting.set()
                    self.meeting = None
                else:
                    self.meeting = event = asyncio.Event()
                    await event.wait()
                for i in range(10):
                    await say(f"{session_id}/{i};")
                    await asyncio.sleep(0)
            case "elicit":
                await say(await self.elicit(session_id))
            case "elicit-url":
                mode = schema.ElicitationUrlSessionMode(
                    session_id=session_id, elicitation_id="link-1", url="https://example.com/sign-in"
                )
                answer = await conn.create_elicitation("Please sign in", mode)
                await conn.complete_elicitation("link-1")
                await say(answer.action)
            case "blocks":
                await say(" ".join(map(brief, prompt)))
                for content in prompt[1:]:
                    await send(acp.update_agent_message(content))
            case "info":
                await send(
                    schema.SessionInfoUpdate(
                        session_update="session_info_update", title="A fine title", updated_at="2026-01-02T03:04:05Z"
                    )
                )
                cost = schema.Cost(amount=0.25, currency="USD")
                await send(schema.UsageUpdate(session_update="usage_update", used=1200, size=200000, cost=cost))
            case "mcp":
                await say(",".join(f"{m.name}={getattr(m, 'type', 'stdio')}" for m in session.mcp_servers))
            case "meta":
                await say(str(meta.get("interop.example/trace")))
            case "fail":
                raise RequestError.internal_error({"details": "as asked"})
            case _:
                raise RequestError.invalid_params({"details": f"no such prompt: {verb}"})
        return "end_turn"

    async def elicit(self, session_id):
        form = schema.ElicitationSchema(
            properties={
                "name": acp.ElicitationStringPropertySchema(type="string", title="Name", min_length=1),
                "age": acp.ElicitationIntegerPropertySchema(type="integer", minimum=0),
                "role": acp.ElicitationStringPropertySchema(
                    type="string",
                    one_of=[
                        schema.EnumOption(const="admin", title="Admin"),
                        schema.EnumOption(const="guest", title="Guest"),
                    ],
                ),
                "sure": acp.ElicitationBooleanPropertySchema(type="boolean", default=False),
            },
            required=["name"],
        )
        mode = schema.ElicitationFormSessionMode(session_id=session_id, requested_schema=form)
        answer = await self.conn.create_elicitation("Who are you?", mode)
        fields = sorted((getattr(answer, "content", None) or {}).items())
        said = (f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in fields)
        return " ".join([answer.action, *said])


def brief(block):
    match block.type:
        case "image" | "audio":
            return f"{block.type}({block.mime_type},{block.data})"
        case "resource_link":
            return f"resource_link({block.name},{block.uri})"
        case "resource":
            return f"resource({block.resource.uri},{block.resource.text})"
        case other:
            return other


def serve():
    """Serves WebSocket and Streamable HTTP on a port, which is printed."""
    import functools
    import socket

    import uvicorn
    from acp.http import server
    from acp.http.asgi import create_asgi_app

    # The app has no switch for unstable methods.
    server.AgentSideConnection = functools.partial(server.AgentSideConnection, use_unstable_protocol=True)

    # A session outlives the connection that it was made on.
    sessions = {}

    def create(conn):
        agent = InteropAgent()
        agent.sessions = sessions
        agent.on_connect(conn)
        return agent

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(create_asgi_app(create), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if sys.argv[1:] == ["--http"]:
    serve()
else:
    asyncio.run(acp.run_agent(InteropAgent(), use_unstable_protocol=True))
