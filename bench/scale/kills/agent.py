"""An agent of four calls: it says what it has done, waits as a command would take its time, and leaves done.txt behind."""

import json
import os
import random
import sys
import time
import urllib.request

CALLS = 4


def ask(messages):
    body = {"model": os.environ["ALIDADE_MODEL"], "messages": messages, "max_tokens": 32}
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    for tries_left in (2, 1, 0):
        try:
            request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.loads(answer.read())["choices"][0]["message"]["content"] or ""
        except OSError:
            if tries_left == 0:
                raise
            time.sleep(0.5)


messages = [{"role": "user", "content": sys.argv[1]}]
for turn in range(CALLS):
    messages.append({"role": "assistant", "content": ask(messages)})
    with open("done.txt", "a") as file:
        file.write(f"{turn}\n")
    time.sleep(random.random())
    messages.append({"role": "user", "content": f"Turn {turn + 1}: go on."})
