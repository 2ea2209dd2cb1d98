"""Chat templates rendered as transformers renders them. Requests come as JSON lines, answers go out as JSON lines.

    {"template": "...", "messages": [...], "tools": [...] | null, "generation": true}  ->  {"text": "..."} | {"error": "..."}
"""

import json
import sys
from datetime import datetime

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what an assistant said; it prints what stands in it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    def _said(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation]
)
environment.filters["tojson"] = to_json
environment.globals["raise_exception"] = refuse
# Always the same day: what a template prints of it must not depend on when the tests run.
environment.globals["strftime_now"] = lambda form: datetime(2026, 11, 21).strftime(form)
templates = {}


def answer(request):
    source = request["template"]
    if source not in templates:
        templates[source] = environment.from_string(source)
    return templates[source].render(
        messages=request["messages"],
        tools=request["tools"],
        documents=None,
        add_generation_prompt=request["generation"],
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )


for line in sys.stdin:
    try:
        said = {"text": answer(json.loads(line))}
    except Exception as error:  # A template may fail in any way; that is an answer too.
        said = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), flush=True)
