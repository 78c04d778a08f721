"""The bench agent on the official Python SDK over WebSocket and Streamable HTTP, under uvicorn. Prints its port."""

import socket

import uvicorn
from acp.http.asgi import create_asgi_app
from bench import Bench

# Python turns Nagle's algorithm off only for sockets whose protocol is named.
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(4096)
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(create_asgi_app(Bench), log_level="error", access_log=False)
uvicorn.Server(config).run(sockets=[listener])
