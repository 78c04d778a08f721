"""The bench client on the official Python SDK, which has no session handles: `sess` opens plain sessions.

client.py stream N LEN | jitter N LEN | rtt N | call N | sess SESSIONS N LEN -- AGENT COMMAND
"""

import asyncio
import json
import sys
import time

from acp import spawn_agent_process, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities, ReadTextFileResponse

words = sys.argv[1:]
cut = words.index("--")
mode, numbers, command = words[0], [int(word) for word in words[1:cut]], words[cut + 1 :]
sessions = numbers.pop(0) if mode == "sess" else 1
n, length = (numbers + [0])[:2]
order = f"read {n}" if mode == "call" else f"stream {n} {length}"


def kilobytes(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))


class Bench:
    handled = 0
    out_of_order = 0

    async def session_update(self, session_id, update, **_):
        if update.session_update != "agent_message_chunk":
            return
        number = int(update.content.text[:8])
        if mode == "jitter":
            await asyncio.sleep((3 - number % 3) / 1000)
        self.out_of_order += number != self.handled
        self.handled += 1

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        return ReadTextFileResponse(content="hello from the file")


async def main():
    bench = Bench()
    report = {"test": f"client-{mode}", "n": n}
    pipes = {"stderr": None}
    async with spawn_agent_process(bench, command[0], *command[1:], transport_kwargs=pipes) as (agent, _):
        files = FileSystemCapabilities(read_text_file=True, write_text_file=False)
        await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities(fs=files))
        if mode == "rtt":
            times = []
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(n):
                sent = time.perf_counter()
                await agent.new_session(cwd="/tmp", mcp_servers=[])
                times.append((time.perf_counter() - sent) * 1e6)
            times.sort()
            report |= {"p50_us": times[n // 2], "p99_us": times[n * 99 // 100]}
        else:
            before, opening = kilobytes("VmRSS"), time.perf_counter()
            opened = [await agent.new_session(cwd="/tmp", mcp_servers=[]) for _ in range(sessions)]
            each = (time.perf_counter() - opening) * 1e6 / sessions
            report |= {"sessions": sessions, "open_us_per": each, "rss_1_kb": before, "rss_s_kb": kilobytes("VmRSS")}
            session = opened[sessions // 2].session_id
            cpu, wall = time.process_time(), time.perf_counter()
            await agent.prompt(session_id=session, prompt=[text_block(order)])
            report["handled_at_response"] = bench.handled
            while mode != "call" and bench.handled < n:
                await asyncio.sleep(0.001)
        secs, cpu = time.perf_counter() - wall, time.process_time() - cpu
        report |= {
            "secs": secs,
            "per_s": n / secs,
            "cpu_us_per": cpu * 1e6 / n,
            "handled": bench.handled,
            "order_errors": bench.out_of_order,
            "rss_kb": kilobytes("VmRSS"),
            "hwm_kb": kilobytes("VmHWM"),
        }
        print(json.dumps(report), flush=True)


asyncio.run(main())
