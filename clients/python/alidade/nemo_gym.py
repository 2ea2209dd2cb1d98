"""NeMo Gym, and NeMo RL over it, on an Alidade service (docs/trainers-live.md): an agent server whose `/run` is a rollout.

    class Config(AlidadeAgentConfig): ...           # in the agent's YAML: set: grpo-17, service: {url: http://10.0.0.1:8700}

NeMo RL makes the groups, by equal first prompts, so a rollout is a group of its own here: it asks for a set with samples=1.
"""

import uuid
from typing import Any

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent

from fastapi import Body, HTTPException  # Gym's own
from pydantic import ConfigDict

from .live import LiveGroups, is_measured, refuse_other_temperature
from .service import Service


class AlidadeAgentConfig(BaseResponsesAPIAgentConfig):
    set: str
    service: dict[str, Any] = {}


class RunRequest(BaseRunRequest):
    model_config = ConfigDict(extra="allow")


class VerifyResponse(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")


class AlidadeAgent(SimpleResponsesAPIAgent):
    config: AlidadeAgentConfig

    def model_post_init(self, context):
        super().model_post_init(context)
        self._live = LiveGroups(Service(**self.config.service).set(self.config.set, samples=1), format="nemo-gym")

    async def responses(self, body=Body()):
        raise HTTPException(400, "an Alidade agent has no /v1/responses: ask /run, for the service's harness asks the model")

    async def run(self, body: RunRequest = Body()) -> VerifyResponse:
        """The task is `metadata.task_id` of the row, as `alidade tasks export --for nemo-gym` writes it."""
        asked = body.responses_create_params
        refuse_other_temperature(asked.temperature)
        task = (asked.metadata or {}).get("task_id")
        if task is None:
            raise HTTPException(422, "responses_create_params.metadata.task_id is missing: it names the task")
        # Gym says no place that would be the same after a restart; what was lost with its trainer is sampled anew.
        line = await self._live.rollout(f"{task}/{uuid.uuid4().hex}", task)
        if not is_measured(line):
            error = line["result"]["error"] or {"message": "it has no reward"}
            raise HTTPException(500, f"the rollout {line['result']['rollout_id']} cannot be trained: {error['message']}")
        [row] = line["rows"]
        return VerifyResponse.model_validate({**row, "responses_create_params": asked.model_dump(exclude_unset=True)})
