"""Retail and airline of tau2, by the code of inspect-evals: its tools, its data and its scorers."""

from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import CORRECT, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import store
from inspect_evals.tau2.airline.AirlineAgentTools import get_airline_tools
from inspect_evals.tau2.airline.agents import get_domain_policy as airline_policy
from inspect_evals.tau2.airline.dataset import read_dataset as read_airline
from inspect_evals.tau2.airline.tools import all_airline_tools
from inspect_evals.tau2.common.scorer import db_match, get_expected_db, score_communicated_info
from inspect_evals.tau2.data_model.tasks import Task
from inspect_evals.tau2.retail.agents import get_domain_policy as retail_policy
from inspect_evals.tau2.retail.dataset import read_dataset as read_retail
from inspect_evals.tau2.retail.tools import all_retail_tools, get_retail_tools

DOMAINS = {
    "retail": (read_retail, all_retail_tools, get_retail_tools, retail_policy),
    "airline": (read_airline, all_airline_tools, get_airline_tools, airline_policy),
}
#: Tools that leave the database as it is.
READING = ("get_", "find_", "list_", "search_", "calculate", "transfer_to_human_agents")
#: Paths of the database that differ, for a person.
MOST_SHOWN = 50


def samples_of(domain):
    return list(DOMAINS[domain][0]("agent"))


def task_of(sample):
    return Task.model_validate(sample.metadata["task"])


class open_task:
    def __init__(self, domain, task):
        _, tools, self.state_of, _ = DOMAINS[domain]
        self.domain = domain
        self.sample = next(one for one in samples_of(domain) if str(one.id) == task)
        self.tools = [tool() for tool in tools]
        self.state_of()

    async def graded(self, answers, _calls):
        """`database` and `said`: what does not hold, [] where all does."""
        messages = [self.sample.input[-1], *(ChatMessageUser(content=text) for text in answers)]
        state = TaskState(
            model="none/none",
            sample_id=self.sample.id,
            epoch=1,
            input=self.sample.input,
            messages=messages,
            metadata=self.sample.metadata,
            store=store(),
        )
        database = await db_match(domain=self.domain)(state, Target(""))
        said = await score_communicated_info()(state, Target(""))
        return {
            "database": [] if database.value == CORRECT else self.differences(),
            "said": [] if said.value == CORRECT else [said.explanation],
        }

    def differences(self):
        actions = task_of(self.sample).evaluation_criteria.actions or []
        expected = get_expected_db(self.domain, actions).db.model_dump(mode="json")
        found = list(differing(expected, self.state_of().db.model_dump(mode="json"), ""))
        return found[:MOST_SHOWN] or ["the hash"]


def differing(expected, found, path):
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            yield from differing(expected.get(key), found.get(key), f"{path}/{key}")
    elif expected != found:
        yield path


#: A write that no task wants, and that always succeeds: what a gold list may not have besides.
def one_more_write(domain, tools):
    user = sorted(tools.db.users)[0]
    if domain == "airline":
        return {"tool": "send_certificate", "arguments": {"user_id": user, "amount": 1}}
    address = tools.db.users[user].address.model_dump()
    return {"tool": "modify_user_address", "arguments": {"user_id": user, **address, "address2": "Door 1"}}


def list_tasks(domain):
    policy = DOMAINS[domain][3]()
    more = one_more_write(domain, get_expected_db(domain, []))
    return [row_of(sample, policy, more) for sample in samples_of(domain)]


def row_of(sample, policy, more):
    task = task_of(sample)
    criteria = task.evaluation_criteria
    actions = criteria.actions or []
    calls = [{"tool": one.name, "arguments": one.arguments} for one in actions]
    writes = [index for index, call in enumerate(calls) if not call["tool"].startswith(READING)]
    bad = {"one more write": [*calls, more]}
    if writes:
        fewer = [call for index, call in enumerate(calls) if index != writes[-1]]
        bad |= {"without the last write": fewer} if fewer else {}
    informed = criteria.communicate_info or []
    return {
        "id": str(sample.id),
        "instruction": policy,
        "user": {"instructions": sample.input[0].text, "begins": sample.input[-1].text},
        "gold_calls": calls,
        "gold_answer": ", ".join(informed),
        "bad_calls": bad,
        "labels": {"writing_calls": str(len(writes)), "assertions_not_graded": str(len(criteria.nl_assertions or []))},
    }
