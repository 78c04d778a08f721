"""The interop client on the official Python SDK: `client.py [--skip a,b] -- AGENT ARGS…|URL`.

Runs every scenario of ../scenarios.json against the agent and prints what it saw, one JSON line per observation.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from os.path import basename, join

import acp
from acp import RequestError, schema

args = sys.argv[1:]
cut = args.index("--")
skip = set(args[1].split(",")) if cut == 2 and args[0] == "--skip" else set()
command = args[cut + 1 :]
cwd = os.getcwd()


def show(line):
    print(json.dumps(line, ensure_ascii=False), flush=True)


def read(path):
    with open(path, encoding="utf8", newline="") as file:
        return file.read()


def content(c):
    match c.type:
        case "text":
            return f"text:{c.text}"
        case "resource":
            return f"resource:{c.resource.uri}"
        case "resource_link":
            return f"resource_link:{c.name}"
        case _:
            return f"{c.type}:{c.mime_type}"


def tool_content(c):
    match c.type:
        case "diff":
            return f"diff({basename(c.path)}|{c.old_text}|{c.new_text})"
        case "terminal":
            return "terminal"
        case _:
            return f"content({content(c.content)})"


def options(items):
    return ",".join(f"{o.id}={o.current_value}" for o in items)


def brief(u):
    match u.session_update:
        case "user_message_chunk":
            return f"user:{u.content.text}"
        case "agent_message_chunk":
            return content(u.content)
        case "agent_thought_chunk":
            return f"thought:{u.content.text}"
        case "plan":
            return "plan:" + ",".join(f"{e.content}={e.priority}/{e.status}" for e in u.entries)
        case "tool_call":
            # Absent means `other` and `pending`; the SDK leaves that to its user.
            head = f"tool_call:{u.tool_call_id}:{u.kind or 'other'}:{u.status or 'pending'}:{u.title}"
            return ":".join([head, *map(tool_content, u.content or [])])
        case "tool_call_update":
            return ":".join([f"tool_call_update:{u.tool_call_id}:{u.status}", *map(tool_content, u.content or [])])
        case "available_commands_update":
            names = (f"{c.name}({c.input.root.hint})" if c.input else c.name for c in u.available_commands)
            return "commands:" + ",".join(names)
        case "current_mode_update":
            return f"mode:{u.current_mode_id}"
        case "config_option_update":
            return f"config:{options(u.config_options)}"
        case "session_info_update":
            return f"info:{u.title}:{u.updated_at}"
        case "usage_update":
            return f"usage:{u.used}/{u.size}:{u.cost.amount} {u.cost.currency}"
        case other:
            return f"other:{other}"


class Terminal:
    def __init__(self, process):
        self.process = process
        self.output = b""
        self.exit = asyncio.create_task(self.drain())

    async def drain(self):
        while part := await self.process.stdout.read(65536):
            self.output += part
        code = await self.process.wait()
        if code < 0:
            return {"signal": signal.Signals(-code).name}
        return {"exit_code": code}

    def kill(self):
        if self.process.returncode is None:
            self.process.kill()


class InteropClient(acp.Client):
    """What the sessions under test have shown so far, and what to do when they ask."""

    def __init__(self):
        self.seen = {}
        self.changed = asyncio.Condition()
        self.terminals = {}
        self.on_permission = None
        self.on_elicitation = None

    def log(self, session_id):
        return self.seen.setdefault(session_id, [])

    async def record(self, session_id, line):
        self.log(session_id).append(line)
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition):
        async with self.changed:
            await self.changed.wait_for(condition)

    async def session_update(self, session_id, update, **kwargs):
        await self.record(session_id, brief(update))

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        offered = ",".join(f"{o.option_id}/{o.kind}" for o in options)
        await self.record(session_id, f"permission:{tool_call.tool_call_id}:{offered}")
        return acp.RequestPermissionResponse(outcome=await self.on_permission())

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        try:
            lines = read(path).split("\n")
        except OSError:
            raise RequestError.resource_not_found(path) from None
        start = (line or 1) - 1
        return acp.ReadTextFileResponse(content="\n".join(lines[start:][:limit]))

    async def write_text_file(self, session_id, path, content, **kwargs):
        with open(path, "w", encoding="utf8") as file:
            file.write(content)
        return acp.WriteTextFileResponse()

    def terminal(self, terminal_id):
        if terminal_id not in self.terminals:
            raise RequestError.resource_not_found(terminal_id)
        return self.terminals[terminal_id]

    async def create_terminal(self, session_id, command, args=None, env=None, cwd=None, output_byte_limit=None, **kwargs):
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            env={**os.environ, **{e.name: e.value for e in env or []}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal_id = f"term-{process.pid}"
        self.terminals[terminal_id] = Terminal(process)
        return acp.CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(self, session_id, terminal_id, **kwargs):
        terminal = self.terminal(terminal_id)
        status = schema.TerminalExitStatus(**terminal.exit.result()) if terminal.exit.done() else None
        return acp.TerminalOutputResponse(output=terminal.output.decode(), truncated=False, exit_status=status)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **kwargs):
        return acp.WaitForTerminalExitResponse(**await asyncio.shield(self.terminal(terminal_id).exit))

    async def kill_terminal(self, session_id, terminal_id, **kwargs):
        self.terminal(terminal_id).kill()
        return acp.KillTerminalResponse()

    async def release_terminal(self, session_id, terminal_id, **kwargs):
        self.terminal(terminal_id).kill()
        del self.terminals[terminal_id]
        return acp.ReleaseTerminalResponse()

    async def create_elicitation(self, message, mode, **kwargs):
        if isinstance(mode, schema.ElicitationFormSessionMode):
            properties = mode.requested_schema.properties.items()
            what = "form:" + message + ":" + ",".join(sorted(f"{k}/{p.type}" for k, p in properties))
        else:
            what = f"url:{message}:{mode.elicitation_id} {mode.url}"
        await self.record(mode.session_id, f"elicitation:{what}")
        return self.on_elicitation()

    async def complete_elicitation(self, elicitation_id, **kwargs):
        await self.record("", f"elicitation_complete:{elicitation_id}")

    async def ext_method(self, method, params):
        if method == "interop/reverse":
            return {"text": params["text"][::-1]}
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method, params):
        if method == "interop/ping":
            await self.record("", f"ping:{params['n']}")


def choose(option_id):
    async def answer():
        return schema.AllowedOutcome(outcome="selected", option_id=option_id)

    return answer


async def code(awaitable):
    try:
        await awaitable
    except RequestError as error:
        return error.code
    return "no error"


def setup(r):
    modes = [m.id for m in r.modes.available_modes]
    return {"mode": r.modes.current_mode_id, "modes": modes, "config": options(r.config_options)}


def replayed(events):
    """What was replayed. An agent may announce its commands again; whether that has come yet is chance."""
    return [e for e in events if not e.startswith("commands:")]


class Turn:
    def __init__(self, stop, events):
        self.stop = stop
        self.events = events
        self.text = "".join(e[5:] for e in events if e.startswith("text:"))


class Scenarios:
    def __init__(self, client, agent):
        self.client = client
        self.agent = agent
        self.log = client.log

    def raw(self, method, params):
        # The SDK has no public way to send a method it does not know.
        return self.agent._conn.send_request(method, params)

    async def open(self, at=cwd, mcp_servers=None):
        r = await self.agent.new_session(cwd=at, mcp_servers=mcp_servers or [])
        await self.client.until(lambda: any(e.startswith("commands:") for e in self.log(r.session_id)))
        return r

    async def fresh(self):
        return (await self.open()).session_id

    async def turn(self, session_id, prompt, **meta):
        """Runs one turn and returns what it showed."""
        start = len(self.log(session_id))
        blocks = [acp.text_block(prompt)] if isinstance(prompt, str) else prompt
        r = await self.agent.prompt(session_id=session_id, prompt=blocks, **meta)
        # The SDK handles notifications in tasks, which may come after the answer to a POST that has just ended.
        await asyncio.sleep(0)
        return Turn(r.stop_reason, self.log(session_id)[start:])

    def ticks(self, session_id, n):
        return lambda: sum(e.startswith("text:tick") for e in self.log(session_id)) >= n

    async def initialize(self, see):
        r = await self.agent.initialize(
            protocol_version=1,
            client_info=schema.Implementation(name="interop-client", version="1.0.0"),
            client_capabilities=schema.ClientCapabilities(
                fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
                terminal=True,
                elicitation=schema.ElicitationCapabilities(
                    form=schema.ElicitationFormCapabilities(), url=schema.ElicitationUrlCapabilities()
                ),
            ),
        )
        c = r.agent_capabilities
        p, m, s = c.prompt_capabilities, c.mcp_capabilities, c.session_capabilities
        see("version", r.protocol_version)
        see("agent", r.agent_info.name)
        sessions = [k for k in ("close", "fork", "list", "resume") if getattr(s, k) is not None]
        prompt = [p.image, p.audio, p.embedded_context]
        see("capabilities", {"load": c.load_session, "prompt": prompt, "mcp": [m.http, m.sse], "session": sessions})
        see("auth_methods", [a.id for a in r.auth_methods])

    async def auth(self, see):
        see("before", await code(self.agent.new_session(cwd=cwd)))
        see("unknown", await code(self.agent.authenticate(method_id="nobody")))
        see("accepted", await code(self.agent.authenticate(method_id="pass")))
        see("after", await code(self.open()))

    async def new_session(self, see):
        env = [schema.EnvVariable(name="A", value="b")]
        header = schema.HttpHeader(name="X-Key", value="k")
        servers = [
            schema.McpServerStdio(name="local", command="/bin/true", args=["--x"], env=env),
            schema.HttpMcpServer(type="http", name="remote", url="https://example.com/mcp", headers=[header]),
        ]
        r = await self.open(mcp_servers=servers)
        see("setup", setup(r))
        see("mcp", (await self.turn(r.session_id, "mcp")).text)

    async def commands(self, see):
        see("commands", [e for e in self.log(await self.fresh()) if e.startswith("commands:")])

    async def text(self, see):
        t = await self.turn(await self.fresh(), "stream 20")
        see("chunks", len(t.events))
        see("text", t.text)
        see("stop", t.stop)

    async def stop_reasons(self, see):
        session_id = await self.fresh()
        reasons = ("end_turn", "max_tokens", "max_turn_requests", "refusal")
        see("stops", [(await self.turn(session_id, f"stop {r}")).stop for r in reasons])

    async def thought_plan(self, see):
        see("events", (await self.turn(await self.fresh(), "think")).events)

    async def permission_granted(self, see):
        await self.edit(see, "allow", "draft.txt")

    async def permission_denied(self, see):
        await self.edit(see, "reject", "kept.txt")

    async def edit(self, see, option_id, name):
        self.client.on_permission = choose(option_id)
        t = await self.turn(await self.fresh(), f"edit {join(cwd, name)}")
        see("events", t.events)
        see("stop", t.stop)
        see("file", read(name))

    async def fs(self, see):
        session_id = await self.fresh()
        see("whole", (await self.turn(session_id, f"read {join(cwd, 'lines.txt')}")).text)
        see("part", (await self.turn(session_id, f"read {join(cwd, 'lines.txt')} 2 2")).text)
        see("missing", (await self.turn(session_id, f"read {join(cwd, 'nowhere.txt')}")).text)
        see("write", (await self.turn(session_id, f"write {join(cwd, 'new.txt')} hello")).text)
        see("file", read("new.txt"))

    async def terminal(self, see):
        see("events", (await self.turn(await self.fresh(), "run")).events)
        see("open", len(self.client.terminals))

    async def terminal_kill(self, see):
        see("text", (await self.turn(await self.fresh(), "runkill")).text)
        see("open", len(self.client.terminals))

    async def cancel_streaming(self, see):
        session_id = await self.fresh()
        running = asyncio.create_task(self.turn(session_id, "forever"))
        await self.client.until(self.ticks(session_id, 3))
        await self.agent.cancel(session_id=session_id)
        t = await running
        see("stop", t.stop)
        see("start", t.events[:3])
        see("next", (await self.turn(session_id, "say again")).text)

    async def cancel_permission(self, see):
        session_id = await self.fresh()

        async def cancelling():
            await self.agent.cancel(session_id=session_id)
            return schema.DeniedOutcome(outcome="cancelled")

        self.client.on_permission = cancelling
        t = await self.turn(session_id, "ask")
        see("stop", t.stop)
        see("events", t.events)
        see("next", (await self.turn(session_id, "say again")).text)

    async def load(self, see):
        session_id = await self.fresh()
        await self.turn(session_id, "say one")
        await self.turn(session_id, "say two")
        await self.agent.close_session(session_id=session_id)
        start = len(self.log(session_id))
        r = await self.agent.load_session(cwd=cwd, session_id=session_id)
        # Unlike `prompt`, the SDK's `load_session` does not wait for the handlers of the updates before its answer.
        await asyncio.sleep(0)
        await self.agent._session_updates.wait(session_id)
        see("replay", replayed(self.log(session_id)[start:]))
        see("setup", setup(r))
        see("count", (await self.turn(session_id, "count")).text)
        see("unknown", await code(self.agent.load_session(cwd=cwd, session_id="nobody")))

    async def list(self, see):
        sub = join(cwd, "sub")
        session_id = (await self.open(sub)).session_id
        for _ in range(6):
            await self.fresh()
        ids, pages, cursor = [], 0, None
        while pages == 0 or cursor:
            r = await self.agent.list_sessions(cursor=cursor)
            ids += [s.session_id for s in r.sessions]
            cursor = r.next_cursor
            pages += 1
        see("paged", pages > 1)
        see("unique", len(set(ids)) == len(ids))
        see("found", session_id in ids)
        filtered = (await self.agent.list_sessions(cwd=sub)).sessions
        see("filtered", [[s.session_id == session_id, basename(s.cwd)] for s in filtered])

    async def resume(self, see):
        session_id = await self.fresh()
        await self.turn(session_id, "say one")
        await self.agent.close_session(session_id=session_id)
        see("closed", await code(self.turn(session_id, "count")))
        start = len(self.log(session_id))
        see("setup", setup(await self.agent.resume_session(cwd=cwd, session_id=session_id)))
        see("replay", replayed(self.log(session_id)[start:]))
        see("count", (await self.turn(session_id, "count")).text)

    async def fork(self, see):
        session_id = await self.fresh()
        await self.turn(session_id, "say one")
        r = await self.agent.fork_session(cwd=cwd, session_id=session_id)
        see("new_id", r.session_id != session_id)
        await self.turn(r.session_id, "say two")
        see("counts", [(await self.turn(i, "count")).text for i in (session_id, r.session_id)])

    async def set_mode(self, see):
        session_id = await self.fresh()
        see("set", await code(self.agent.set_session_mode(session_id=session_id, mode_id="code")))
        see("mode", (await self.turn(session_id, "mode")).text)
        see("switched", (await self.turn(session_id, "switch ask")).events)
        see("unknown", await code(self.agent.set_session_mode(session_id=session_id, mode_id="fly")))

    async def set_config_option(self, see):
        session_id = await self.fresh()

        def choice(value):
            return self.agent.set_config_option(config_id="model", session_id=session_id, value=value)

        see("set", options((await choice("deep")).config_options))
        see("config", (await self.turn(session_id, "config")).text)
        see("changed", (await self.turn(session_id, "reconfigure fast")).events)
        see("unknown", await code(choice("huge")))

    async def unknown_method(self, see):
        see("plain", await code(self.raw("interop/nothing", {})))
        see("extension", await code(self.agent.ext_method("interop/nothing", {})))
        await self.agent.ext_notification("interop/nothing", {})
        see("callback", (await self.turn(await self.fresh(), "callback-unknown")).text)

    async def extension(self, see):
        see("echo", await self.agent.ext_method("interop/echo", {"value": [1, "two", None, {"deep": True}]}))
        for i in range(3):
            await self.agent.ext_notification("interop/note", {"i": i})
        see("notes", await self.agent.ext_method("interop/notes", {}))
        start = len(self.log(""))
        see("reverse", (await self.turn(await self.fresh(), "ext")).text)
        await self.client.until(lambda: len(self.log("")) > start)
        see("ping", self.log("")[start:])

    async def big(self, see):
        session_id = await self.fresh()
        see("to_agent", (await self.turn(session_id, "size " + "x" * 5_000_000)).text)
        t = await self.turn(session_id, "big 5000000")
        see("to_client", [len(t.events), len(t.text), set(t.text) == {"y"}])

    async def parallel(self, see):
        ids = [await self.fresh(), await self.fresh()]
        turns = await asyncio.gather(*(self.turn(i, "meet") for i in ids))
        see("stops", [t.stop for t in turns])
        see("counts", [len(t.events) for t in turns])
        see("own", [t.text == "".join(f"{i}/{n};" for n in range(10)) for i, t in zip(ids, turns)])

    async def elicitation(self, see):
        session_id = await self.fresh()
        answers = {"name": "Ada", "age": 36, "role": "admin", "sure": True}
        self.client.on_elicitation = lambda: acp.AcceptElicitationResponse(action="accept", content=answers)
        see("accept", (await self.turn(session_id, "elicit")).events)
        self.client.on_elicitation = lambda: acp.DeclineElicitationResponse(action="decline")
        see("decline", (await self.turn(session_id, "elicit")).text)
        self.client.on_elicitation = lambda: acp.CancelElicitationResponse(action="cancel")
        see("cancel", (await self.turn(session_id, "elicit")).text)
        self.client.on_elicitation = lambda: acp.AcceptElicitationResponse(action="accept")
        start = len(self.log(""))
        see("url", (await self.turn(session_id, "elicit-url")).events)
        await self.client.until(lambda: len(self.log("")) > start)
        see("complete", self.log("")[start:])

    async def content(self, see):
        source = acp.embedded_text_resource("file:///code.rs", "fn main() {}", mime_type="text/rust")
        blocks = [
            acp.text_block("blocks"),
            acp.image_block("AAAA", "image/png"),
            acp.audio_block("BBBB", "audio/wav"),
            acp.resource_link_block("doc", "file:///doc.md"),
            acp.resource_block(source),
        ]
        see("events", (await self.turn(await self.fresh(), blocks)).events)

    async def info(self, see):
        see("events", (await self.turn(await self.fresh(), "info")).events)

    async def meta(self, see):
        see("trace", (await self.turn(await self.fresh(), "meta", **{"interop.example/trace": "t-42"})).text)

    async def errors(self, see):
        session_id = await self.fresh()
        see("fail", await code(self.turn(session_id, "fail")))
        see("unknown_session", await code(self.turn("nobody", "say x")))
        see("next", (await self.turn(session_id, "say again")).text)

    async def too_big(self, see):
        """Over WebSocket the SDK takes messages of up to 1 MiB; it sends larger ones."""
        session_id = await self.fresh()
        see("to_agent", (await self.turn(session_id, "size " + "x" * 5_000_000)).text)
        t = await self.turn(session_id, "big 1000000")
        see("below", [len(t.events), len(t.text), set(t.text) == {"y"}])
        see("above", await outcome(self.turn(session_id, "big 5000000")))

    async def reconnect(self, see):
        """The SDK does not connect again: each part has a connection of its own, and the session is resumed on it."""
        session_id = await self.fresh()
        await self.turn(session_id, "say one")
        await proxy("cut")
        async with again(self.client) as next:
            await next.agent.resume_session(session_id=session_id, cwd=cwd, mcp_servers=[])
            see("between", (await next.turn(session_id, "count")).text)
            start = len(self.log(session_id))
            running = asyncio.create_task(outcome(next.turn(session_id, "forever")))
            await self.client.until(lambda: sum(e.startswith("text:tick") for e in self.log(session_id)[start:]) >= 3)
            await proxy("cut")
            see("during", await running)
        async with again(self.client) as next:
            await next.agent.resume_session(session_id=session_id, cwd=cwd, mcp_servers=[])
            see("after", (await next.turn(session_id, "count")).text)
            await proxy("cut at end_turn")
            see("lost", await outcome(next.turn(session_id, "say two")))
        async with again(self.client) as next:
            await next.agent.resume_session(session_id=session_id, cwd=cwd, mcp_servers=[])
            see("once", (await next.turn(session_id, "count")).text)


async def proxy(line):
    """Sends a command to the proxy before the server, and waits until it is in force."""
    reader, writer = await asyncio.open_connection(*os.environ["ATTACHE_INTEROP_CUT"].split(":"))
    writer.write(f"{line}\n".encode())
    await reader.read()
    writer.close()


async def outcome(awaitable):
    try:
        await awaitable
    except Exception:
        return "error"
    return "no error"


SCENARIOS = (
    "initialize auth new_session commands text stop_reasons thought_plan permission_granted permission_denied fs "
    "terminal terminal_kill cancel_streaming cancel_permission load list resume fork set_mode "
    "set_config_option unknown_method extension big parallel elicitation content info meta errors reconnect too_big"
).split()


@contextlib.asynccontextmanager
async def connected(client):
    """The agent, and its process if it is one of this machine."""
    if not command[0].startswith(("ws:", "wss:", "http:", "https:")):
        async with acp.spawn_agent_process(
            client,
            command[0],
            *command[1:],
            env=dict(os.environ),
            transport_kwargs={"stderr": None},
            use_unstable_protocol=True,
        ) as pair:
            yield pair
        return
    if command[0].startswith("ws"):
        from acp.ws import create_websocket_stream

        transport = await create_websocket_stream(command[0])
    else:
        from acp.http import create_http_stream

        transport = create_http_stream(command[0])
    agent = acp.connect_to_agent(client, transport, use_unstable_protocol=True)
    yield agent, None
    await agent.close()


@contextlib.asynccontextmanager
async def again(client):
    """A new connection. The old one may be broken in any way, and so may this one be at its end."""
    async with contextlib.AsyncExitStack() as stack:
        agent, _ = await stack.enter_async_context(connected(client))
        await agent.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities())
        await agent.authenticate(method_id="pass")
        yield Scenarios(client, agent)
        with contextlib.suppress(Exception):
            await stack.aclose()


async def main():
    client = InteropClient()
    async with connected(client) as (agent, process):
        scenarios = Scenarios(client, agent)
        for name in SCENARIOS:
            if name in skip:
                continue

            def see(check, got, name=name):
                show({"scenario": name, "check": check, "got": got})

            try:
                await asyncio.wait_for(getattr(scenarios, name)(see), 20)
            except Exception as error:
                detail = getattr(error, "data", None)
                show({"scenario": name, "error": f"{type(error).__name__}: {error} {detail or ''}"})
    show({"end": process.returncode if process else None})


asyncio.run(main())
