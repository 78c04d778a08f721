"""The bench agent on the official Python SDK over standard streams."""

import asyncio

from acp import run_agent
from bench import Bench

asyncio.run(run_agent(Bench()))
