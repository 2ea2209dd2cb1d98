"""Serves the tools of one task of a set over Streamable HTTP (MCP), and tells at /graded what came of it.

    python3 serve.py tau2 retail 17

The agent reaches /mcp alone, through a relay that passes messages of MCP and no paths. /graded is asked from outside once the
agent has ended.
"""

import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from sets import open_task
from inspect_ai.model import ChatMessageAssistant, execute_tools
from inspect_ai.tool import ToolCall, ToolDef

PORT = 8000
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
#: A gold list has at most a few dozen calls, and the relay ends a session at 10 000.
MOST_CALLS = 10_000


class Service:
    """One task. Its calls run one after the other in one loop, so each is whole before the next begins."""

    def __init__(self, task):
        self.task = task
        self.calls = []
        self.turn = Lock()
        self.loop = asyncio.new_event_loop()
        Thread(target=self.loop.run_forever, daemon=True).start()
        self.tools = [self.described(ToolDef(tool)) for tool in task.tools]

    @staticmethod
    def described(tool):
        schema = tool.parameters.model_dump(exclude_none=True)
        return {"name": tool.name, "description": tool.description, "inputSchema": schema}

    def wait(self, work):
        with self.turn:
            return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def call(self, name, arguments):
        if len(self.calls) >= MOST_CALLS:
            return content("this service takes no more calls", True)
        call = ToolCall(id=str(len(self.calls) + 1), function=name, arguments=arguments)
        self.calls.append(call)
        try:
            said, _ = await execute_tools([ChatMessageAssistant(content="", tool_calls=[call])], self.task.tools)
        # What the set's own code does not expect is an error to the model, as in the set's own harness.
        except Exception as error:  # noqa: BLE001
            return content(f"{type(error).__name__}: {error}", True)
        [result] = said
        return content(result.text, False) if result.error is None else content(result.error.message, True)

    def answer(self, method, params):
        if method == "initialize":
            wanted = params.get("protocolVersion")
            version = wanted if wanted in VERSIONS else VERSIONS[0]
            info = {"name": "set", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": self.tools}
        if method == "tools/call":
            return self.wait(self.call(str(params.get("name")), params.get("arguments") or {}))
        return None


def content(text, is_error):
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def handler_of(service):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path == "/mcp":
                return self.relayed(json.loads(body))
            if self.path == "/graded":
                said = json.loads(body)["answers"]
                return self.send(200, service.wait(service.task.graded(said, service.calls)))
            return self.send(404, {})

        def relayed(self, message):
            if "id" not in message:
                return self.send(202, None)
            result = service.answer(message.get("method"), message.get("params") or {})
            told = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
            self.send(200, {"jsonrpc": "2.0", "id": message["id"], **told})

        def do_GET(self):
            self.send(405, None)

        def send(self, status, value):
            body = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


if __name__ == "__main__":
    served = Service(open_task(*sys.argv[1:]))
    ThreadingHTTPServer(("127.0.0.1", PORT), handler_of(served)).serve_forever()
