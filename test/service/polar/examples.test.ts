/**
 * Polar's own example requests, in the shape in which its examples and its bridge to slime send them: taken as they are, or
 * refused by the field that cannot be meant here, with what to write instead. Written so, they are taken.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Claim } from "../../../service/ledger/index.ts";
import { serviceAt } from "../../fakes/proxies/service-at.ts";

const folder = join(import.meta.dirname, "examples");

type Request = {
  task_id: string;
  num_samples: number;
  runtime: { image: string; prepare: { type: string; command: string }[]; kwargs?: object } | null;
  agent: { harness: string | null; settings: Record<string, unknown> };
  evaluator: object | null;
  metadata: Record<string, unknown>;
};

/** `instead`: matches the advice in the refusal. `change`: makes the request follow it. */
type Refusal = { field: string; instead: RegExp; change: (request: Request) => void };

const asTask: Refusal = {
  field: "evaluator.config.tests_dir",
  instead: /metadata\.alidade_task with its name in place of runtime and evaluator/,
  change(request) {
    Object.assign(request, { runtime: null, evaluator: null });
    request.metadata = { ...request.metadata, alidade_task: "task_000123_ab12cd34" };
  },
};

const examples: Record<string, { refusals: Refusal[]; check: (claim: Claim) => void }> = {
  calculator: {
    refusals: [
      {
        field: "runtime.prepare.1.type",
        instead: /send the content in a command/,
        change({ runtime }) {
          for (const step of runtime?.prepare ?? [])
            if (step.type === "upload_file")
              Object.assign(step, { type: "exec", command: "base64 -d > x <<'END'\neA==\nEND", source: null, target: null });
        },
      },
      {
        field: "agent.settings.version",
        instead: /leave it out/,
        change({ agent }) {
          delete agent.settings.version;
        },
      },
    ],
    check({ spec, task: { environment, grader, limits } }) {
      assert.deepEqual([spec.harness, spec.sampling, spec.early_stop], ["codex", { reasoning_effort: "xhigh" }, null]);
      // Without a word of the internet `prepare` has it, and the agent has none.
      assert.deepEqual([environment.setup?.network, environment.network, environment.grading_network], ["public", "none", "none"]);
      assert.deepEqual([grader.kind, environment.work, limits.grade_seconds], ["script", "layer", 120]);
      assert.ok((grader.protected as string[]).includes(".codex/**"));
      assert.match(String(grader.command), /PASSED test_calculator.*git diff --cached|git diff --cached[\s\S]*test_calculator\tPASSED/);
    },
  },
  "tmax-15k": { refusals: [asTask], check: ({ task }) => assert.equal(task.task_id, "task_000123_ab12cd34") },
  swebench_verified: {
    refusals: [],
    check({ spec, task: { environment, grader } }) {
      assert.deepEqual([spec.harness, environment.image], ["opencode", "polar-swebench-runtime:django--django-15098"]);
      // What the agent left in the repository itself counts for nothing, and its history is gone.
      assert.deepEqual([environment.workdir, environment.work], ["/polar/session/workspace", ["/polar/session/workspace"]]);
      assert.match(String(environment.conceal), /\/testbed[\s\S]*commit-tree/);
      assert.deepEqual([grader.kind, grader.fail_to_pass], ["tests", ["test_get_language_from_path_real (i18n.tests.MiscTests)"]]);
      assert.match(String(grader.command), /git diff --cached[\s\S]*cd \/testbed[\s\S]*git apply[\s\S]*runtests\.py/);
    },
  },
  swegym_slime_grpo: {
    refusals: [
      {
        field: "runtime.image",
        instead: /name the Docker image/,
        change({ runtime }) {
          Object.assign(runtime ?? {}, { image: "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365:latest" });
        },
      },
      {
        field: "runtime.kwargs",
        instead: /the harness is mounted by the service: leave it out/,
        change({ runtime }) {
          delete runtime?.kwargs;
        },
      },
    ],
    check({ spec, task: { grader, environment } }) {
      assert.deepEqual([spec.early_stop, spec.samples, environment.env.HOME], [14, 16, "/polar/session/home"]);
      assert.match(
        String(grader.command),
        /git config --global core\.pager[\s\S]*--ignore-submodules=all[\s\S]*git apply .*--exclude='\$HOME\/\*\*'/,
      );
    },
  },
  tmax_slime_grpo: {
    refusals: [
      asTask,
      {
        field: "agent.settings.response_token_budget",
        instead: /limit calls by step_limit/,
        change({ agent }) {
          delete agent.settings.response_token_budget;
        },
      },
      {
        field: "agent.harness",
        instead: /start the service with it as its command, and send null/,
        change({ agent }) {
          agent.harness = null;
        },
      },
    ],
    check({ spec, task }) {
      const { budgets, sampling, harness } = spec;
      assert.deepEqual([budgets, harness, task.limits.agent_seconds], [{ max_turns: 64 }, null, 1200]);
      assert.deepEqual(sampling, { temperature: 1, top_p: 1, max_tokens: 16384, chat_template_kwargs: { enable_thinking: true } });
    },
  },
};

test("each of Polar's examples is a fixture", () => {
  const files = readdirSync(folder).map((name) => name.replace(/\.json$/, ""));
  assert.deepEqual(files.toSorted(), Object.keys(examples).toSorted());
});

for (const [name, { refusals, check }] of Object.entries(examples))
  test(`Polar's example ${name} is taken${refusals.length > 0 ? " once it says what the refusals of its fields ask for" : " as it is"}`, async (t) => {
    const { call, ledger, lease } = await serviceAt(t, {
      known: { task_id: "task_000123_ab12cd34", instruction: "x", grader: { kind: "script", command: ["true"] } },
    });
    const { request } = JSON.parse(await readFile(join(folder, `${name}.json`), "utf8")) as { request: Request };
    for (const { field, instead, change } of refusals) {
      const { status, body } = await call("POST", "/rollout/task/submit", request);
      assert.deepEqual([status, body.error?.param], [400, field], body.error?.message);
      assert.match(body.error.message, instead);
      assert.ok(body.error.message.includes(field), body.error.message);
      change(request);
    }
    const { status, body } = await call("POST", "/rollout/task/submit", request);
    assert.deepEqual([status, body], [200, { task_id: request.task_id, status: "running" }], body.error?.message);
    const claims = await ledger.claim(lease, 100);
    assert.equal(claims.length, request.num_samples);
    check(claims[0] as Claim);
  });
