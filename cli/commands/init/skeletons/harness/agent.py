"""A small agent of one's own: it gives the model a shell until the model answers in words.

It runs in the task's folder, inside the sandbox. Alidade sets OPENAI_BASE_URL, OPENAI_API_KEY and ALIDADE_MODEL;
any SDK that reads them works as well. It needs Python's standard library alone; packages go into requirements.txt,
named by `python: requirements.txt` in the run file.
"""
import json
import os
import subprocess
import sys
import urllib.request

SHELL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Runs a command in the task's folder and returns what it prints.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def ask(messages):
    """One call of the model: its message."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": os.environ["ALIDADE_MODEL"], "messages": messages, "tools": [SHELL]}).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


def run(arguments):
    """What the model's command prints; a mistake of the model is told to it, so that it can go on."""
    try:
        command = json.loads(arguments)["command"]
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, errors="replace", timeout=60)
        return (done.stdout + done.stderr)[-10_000:] + f"\n(exit code {done.returncode})"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(instruction):
    messages = [{"role": "user", "content": instruction}]
    for _ in range(20):
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message.get("content") or "")
            return
        for call in message["tool_calls"]:
            output = run(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


main(sys.argv[1])
