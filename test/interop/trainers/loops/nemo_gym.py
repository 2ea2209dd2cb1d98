"""NeMo Gym: its agent server, asked over HTTP as NeMo RL asks it, and its own classes of what comes back. It has no trainer: the
groups by equal first prompts and the update are ours, as NeMo RL makes them."""

import asyncio
import socket
import threading
import time

import aiohttp
import torch
import uvicorn
from actor import SAMPLES, STEPS, TASKS, Actor, say, worst
from alidade.live import fenced
from alidade.nemo_gym import AlidadeAgent, AlidadeAgentConfig
from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.openai_utils import TokenIDLogProbMixin
from nemo_gym.server_utils import ServerClient

PACKAGE = "nemo-gym"


def run(rig):
    actor = Actor(rig)
    server, url = serve(AlidadeAgentConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="alidade", set=rig.key, service=rig.address))
    for step in range(STEPS):
        with fenced(rig.service, step):
            actor.load(f"step-{step}")
        rows = asyncio.run(ask(url))
        live = update(actor, rows)
        export = update(actor, exported(rig, rows))
        say(step=step + 1, **worst(*live[1:]), **actor.compared(live[0], export[0]), rows=len(rows), rollouts=len(rows))
        actor.step(live[0])
    server.should_exit = True


def serve(config):
    bound = socket.create_server(("127.0.0.1", 0))
    agent = AlidadeAgent(config=config, server_client=ServerClient.model_construct())
    server = uvicorn.Server(uvicorn.Config(agent.setup_webserver(), log_level="warning"))
    threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{bound.getsockname()[1]}"


async def ask(url):
    """A row of `alidade tasks export --format nemo-gym` for each place of a group."""
    asked = [{"responses_create_params": {"input": [{"role": "user", "content": task}], "metadata": {"task_id": task}}} for task in TASKS for _ in range(SAMPLES)]
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(300)) as session:

        async def one(row):
            async with session.post(f"{url}/run", json=row) as response:
                response.raise_for_status()
                return await response.json()

        return await asyncio.gather(*map(one, asked))


def exported(rig, rows):
    """The same rollouts as an export writes them."""
    run, found = rig.service.set(rig.key, samples=1), {}
    for line in rig.service.stream(f"/sets/{run.id}/results", {"format": "nemo-gym", "payload": "rows", "limit": 1000, "whole_groups": "true"}, 5):
        found.update((row["response"]["id"], row) for row in line["rows"])
    return [found[row["response"]["id"]] for row in rows]


def update(actor, rows):
    loss, new, old, groups = 0, [], [], {}
    results = [BaseVerifyResponse.model_validate(row) for row in rows]
    turns = [[item for item in result.response.output if isinstance(item, TokenIDLogProbMixin)] for result in results]
    for result, items in zip(results, turns):
        groups.setdefault(tuple(items[0].prompt_token_ids), []).append(result.reward)
    assert [len(group) for group in groups.values()] == [SAMPLES] * len(TASKS), "the first prompts of a group differ"
    for result, items in zip(results, turns):
        rewards = groups[tuple(items[0].prompt_token_ids)]
        for item in items:
            got = actor.logprobs(torch.tensor(item.prompt_token_ids + item.generation_token_ids))[len(item.prompt_token_ids) - 1 :]
            sampled = torch.tensor(item.generation_log_probs)
            loss = loss - torch.exp(got - sampled).sum() * (result.reward - sum(rewards) / len(rewards))
            new.append(got), old.append(sampled)
    return loss, torch.cat(new), torch.cat(old), torch.ones(sum(map(len, new)))
