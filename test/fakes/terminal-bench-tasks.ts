/** Tasks in the form of Terminal-Bench 1. */
import { baseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { harborFolder } from "./harbor-tasks.ts";

export type TerminalBenchFiles = Record<string, string>;

/** Its tests need pytest in `/opt/pytest` of the image. */
export const terminalBenchFiles = {
  "task.yaml": "instruction: Write hello into greeting.txt.\ndifficulty: easy\n",
  Dockerfile: `FROM ${baseImage}\nWORKDIR /app\nUSER root\n`,
  "docker-compose.yaml": `services:
  client:
    build:
      dockerfile: Dockerfile
    image: \${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: \${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    environment:
      - TEST_DIR=\${T_BENCH_TEST_DIR}
    volumes:
      - \${T_BENCH_TASK_LOGS_PATH}:\${T_BENCH_CONTAINER_LOGS_PATH}
      - \${T_BENCH_TASK_AGENT_LOGS_PATH}:\${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
`,
  "run-tests.sh": `#!/bin/bash
python3 -m pytest "$TEST_DIR/test_outputs.py" -rA -p no:cacheprovider
`,
  "solution.sh": "#!/bin/bash\necho hello > greeting.txt\n",
  "tests/test_outputs.py": `from pathlib import Path

def test_the_greeting_is_there():
    assert Path("/app/greeting.txt").read_text() == "hello\\n"
`,
} satisfies TerminalBenchFiles;

/** A folder of task folders, named by their keys. */
export function terminalBenchFolder(tasks: Record<string, TerminalBenchFiles>): Promise<string> {
  return harborFolder(tasks);
}
