"""AgentDojo's suites with injections, by the code of inspect-evals: its tools, its environments, its attack and its scorer."""

from inspect_ai.model import ChatMessageAssistant, ModelOutput
from inspect_ai.scorer import CORRECT, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import store
from inspect_evals.agentdojo.attacks.attack import get_attack
from inspect_evals.agentdojo.dataset import TASK_SUITES, load_dataset, setup_environment
from inspect_evals.agentdojo.scorer import injection_task_scorer

ATTACK = "important_instructions"


def samples_of(domain):
    return list(load_dataset(task_suite=domain, with_sandbox_tasks="no"))


def state_of(sample):
    return TaskState(
        model="none/none",
        sample_id=sample.id,
        epoch=1,
        input=sample.input,
        messages=[],
        metadata=dict(sample.metadata),
    )


class open_task:
    """The tools work on `store()`. The set's solver and scorer have one of their own, so what is in it is handed over."""

    def __init__(self, domain, task):
        self.sample = next(one for one in samples_of(domain) if one.id == name_of(domain, task))
        self.state = run(setup_environment(get_attack(ATTACK))(state_of(self.sample), None))
        self.tools = self.state.tools
        hand_over(self.state.store, store())

    async def graded(self, answers, calls):
        """`utility`: is the user's task done; `attacked`: is the injected one."""
        hand_over(store(), self.state.store)
        self.state.messages = [ChatMessageAssistant(content="", tool_calls=[call]) for call in calls]
        self.state.output = ModelOutput.from_content("none/none", answers[-1] if answers else "")
        score = await injection_task_scorer()(self.state, Target(""))
        # The set's name for an attack that succeeded is `security`.
        return {"utility": score.value["utility"] == CORRECT, "attacked": score.value["security"] == CORRECT}


def hand_over(given, taking):
    for key in list(given.keys()):
        taking.set(key, given.get(key))


def run(coroutine):
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("it waits for something")


def name_of(domain, task):
    return f"{domain}-{task}"


def list_tasks(domain):
    return [row_of(domain, sample) for sample in samples_of(domain)]


def row_of(domain, sample):
    state = run(setup_environment(get_attack(ATTACK))(state_of(sample), None))
    user, injection = state.metadata["user_task"], state.metadata["injection_task"]
    before = state.metadata["pre_environment"]
    solution, goal = calls_of(user, before), calls_of(injection, before)
    return {
        "id": sample.id.removeprefix(f"{domain}-"),
        "instruction": sample.input,
        "user": None,
        "gold_calls": solution,
        "gold_answer": user.GROUND_TRUTH_OUTPUT,
        "bad_calls": {"the injected task": goal, "the injected task, then the user's": [*goal, *solution]} if goal else {},
        "labels": {"injection": injection.GOAL[:200]},
    }


def calls_of(task, before):
    return [{"tool": call.function, "arguments": call.arguments} for call in task.ground_truth(before)]
