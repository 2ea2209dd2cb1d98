"""Live rollouts of a service with a teacher, as verl's own output and with slime's fields. Prints JSON."""

import asyncio
import enum
import json
import sys

from alidade.live import Live
from alidade.service import Service
from alidade.slime import sample_of
from alidade.teachers import is_taught
from alidade.verl import output_of


class Sample:
    """Stands for slime's, which no registry has."""

    class Status(enum.Enum):
        COMPLETED = "completed"

    index = 0


def of(row):
    verl = output_of(row).as_dict()
    return {
        "prompts": row["prompts"],
        "responses": row["responses"],
        "mask": row["response_mask"],
        "ids": verl["teacher_ids"].tolist(),
        "logprobs": verl["teacher_logprobs"].tolist(),
        "slime": sample_of(Sample(), row).teacher_log_probs,
    }


async def main(url, token):
    live = Live(Service(url, token).set("live", samples=2), format="verl")
    lines = await live.rollouts([("first", index, "a") for index in range(2)])
    taught = [line for line in lines if is_taught(line)]
    print(json.dumps({"taught": [of(row) for line in taught for row in line["rows"]], "untaught": len(lines) - len(taught)}))


asyncio.run(main(*sys.argv[1:]))
