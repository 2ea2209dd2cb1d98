#!/usr/bin/env python3
"""Nodes of a rollout service on the machines of a Ray cluster: one a machine.

    python3 alidade_nodes.py start --join postgres://alidade@db/rollouts --trajectories /shared/trajectories -c run.yaml
    python3 alidade_nodes.py status
    python3 alidade_nodes.py stop

What follows `start` goes to each node. A machine that has its node already is left as it is, so `start` is also the command
for machines that joined later. `--only NAME` takes the machines alone that have this resource of Ray's.

`stop` waits: nodes claim nothing more, end what they have begun (for --drain-seconds at most), and are gone. Names behind it
stop single machines.

On each machine `alidade` is on the path of `ray start`, and that has PGPASSWORD in its environment, or its user ~/.pgpass. Paths
are those of the machine, from the folder in which `start` was called. Records of a node are on a disk of its machine, below
ALIDADE_OUT (default /var/tmp/alidade-<user>).
"""
import argparse
import getpass
import logging
import os
import re
import subprocess
import sys
import threading
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

# Seconds until a node that failed is started again: a database that is away is not asked without a pause.
PAUSE = 5

# A node that is sent one SIGTERM when its standard input ends: when its actor says so, and when that was killed.
ONE_NODE = """
exec 3<&0
alidade node "$@" 3<&- &
node=$!
{ cat <&3 >/dev/null; kill -TERM "$node"; } &
told=$!
exec 3<&-
wait "$node"
code=$?
kill "$told" 2>/dev/null
exit "$code"
"""


class Machine:
    """One machine's node, started again until it was told to end. Then the actor ends too."""

    def __init__(self, name, arguments, folder):
        out = os.environ.get("ALIDADE_OUT") or f"/var/tmp/alidade-{getpass.getuser()}"
        # While the node of an actor that was killed still drains, the lock of its folder keeps out the one of the next actor.
        self.command = ["sh", "-c", ONE_NODE, "sh", "--name", name, "--out", os.path.join(out, name), *arguments]
        self.name, self.arguments, self.folder = name, arguments, folder
        self.state, self.node = "", None
        self.lock, self.ending = threading.Lock(), threading.Event()
        self.begin()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        goes_on = True
        while goes_on:
            code = self.node.wait() if self.node else "no process"
            if code == 0 or self.ending.is_set():
                # It was drained, here or by the service.
                break
            self.state = f"ended with {code}; it is started again"
            print(f"alidade node on {self.name} {self.state}", file=sys.stderr, flush=True)
            self.ending.wait(PAUSE)
            goes_on = self.begin()
        # Not by an exit of the process, which Ray would take for a crash.
        ray.kill(ray.get_runtime_context().current_actor)

    def begin(self):
        """False once it is told to end."""
        with self.lock:
            if self.ending.is_set():
                return False
            try:
                # In a session of its own: Ray kills the process group of an actor that ends.
                self.node = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.PIPE, start_new_session=True)
                self.state = "runs"
            except OSError as error:
                self.node = None
                print(f"alidade node on {self.name}: {error}", file=sys.stderr, flush=True)
            return True

    def drain(self):
        """Once: a second signal would give up what runs."""
        with self.lock:
            if self.ending.is_set():
                return
            self.ending.set()
            self.state = "drains"
            if self.node:
                self.node.stdin.close()

    def describe(self):
        return self.arguments, self.state


def start(arguments, only):
    alive = [node for node in ray.nodes() if node["Alive"] and (only is None or node["Resources"].get(only, 0) > 0)]
    # Ray names a machine by its address where `ray start --node-name` gave no name.
    machines = {re.sub(r"[^\w.-]", "-", node["NodeName"]): node["NodeID"] for node in alive}
    if not machines:
        sys.exit(f"no machine of this Ray cluster has the resource {only}")
    if len(machines) < len(alive):
        sys.exit("two machines of this cluster have one name: give each its own, ray start --node-name")
    actors = {name: machine_actor(name, place, arguments) for name, place in machines.items()}
    others = 0
    for name, actor in sorted(actors.items()):
        note = why_not(actor, arguments)
        others += note is not None
        print(f"{name}: {note or 'runs'}")
    sys.exit(1 if others else 0)


def why_not(actor, arguments):
    """Why the machine has no node that goes on with these arguments; None: it has one."""
    try:
        known, state = ray.get(actor.describe.remote())
    except ray.exceptions.RayActorError:
        return "it has just ended: call start again"
    if state == "drains":
        return "drains: call start again when it has ended"
    return f"{state} with other arguments: stop it first" if known != arguments else None


def machine_actor(name, place, arguments):
    """The one that is there, or a new one. It outlives this program, and Ray starts it again where its process dies."""
    options = {
        "name": name,
        "get_if_exists": True,
        "lifetime": "detached",
        "max_restarts": -1,
        # Sandboxes take CPUs by the run file of the node, and Ray sees none of them.
        "num_cpus": 0,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=place, soft=False),
    }
    return ray.remote(Machine).options(**options).remote(name, arguments, os.getcwd())


def status():
    for name in sorted(ray.util.list_named_actors()):
        try:
            print(f"{name}: {ray.get(ray.get_actor(name).describe.remote(), timeout=10)[1]}")
        except (ValueError, ray.exceptions.RayError) as error:
            print(f"{name}: no answer ({type(error).__name__})")


def stop(names):
    unknown = set(names) - set(ray.util.list_named_actors())
    if unknown:
        sys.exit(f"there is no node of {', '.join(sorted(unknown))}: status lists them")
    while here := [name for name in ray.util.list_named_actors() if not names or name in names]:
        for name in here:
            try:
                # Again each time: one that Ray has just started anew does not know it.
                ray.get_actor(name).drain.remote()
            except ValueError:
                # It is gone meanwhile.
                pass
        time.sleep(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    starting = verbs.add_parser("start", allow_abbrev=False, add_help=False)
    starting.add_argument("--only", metavar="RESOURCE")
    verbs.add_parser("status")
    verbs.add_parser("stop").add_argument("names", nargs="*", metavar="MACHINE")
    flags, arguments = parser.parse_known_args()
    if arguments and flags.verb != "start":
        parser.error(f"{flags.verb} takes no {arguments[0]}")
    ray.init(address="auto", namespace="alidade", log_to_driver=False, logging_level=logging.WARNING)
    if flags.verb == "start":
        start(arguments, flags.only)
    elif flags.verb == "status":
        status()
    else:
        stop(flags.names)


if __name__ == "__main__":
    main()
