/** The ways out of a Docker container and into it: through its network namespace where that is on this machine, else through an exec. */
import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import type { Connector } from "../door/connector.ts";
import { type DoorKind, doorError, type OnConnection } from "../door/door-kind.ts";
import { ForwarderConnector } from "../door/forwarder-connector.ts";
import { ForwarderDoor } from "../door/forwarder-door.ts";
import type { StartForwarder } from "../door/forwarder-process.ts";
import { NamespaceConnector } from "../door/namespace-connector.ts";
import { canEnter, openNamespaceDoor } from "../door/namespace-door.ts";
import type { Door } from "../sandbox.ts";
import { demultiplex, type StreamChunk } from "./attached-stream.ts";
import { engineWork } from "./client.ts";
import { doorId } from "./container.ts";
import { attach } from "./exec.ts";

export async function openContainerDoor(
  docker: Docker,
  containerId: string,
  kind: DoorKind,
  onConnection: OnConnection,
  port?: number,
): Promise<Door> {
  const pid = kind === "forwarder" ? null : await localPid(docker, containerId);
  if (pid === null && kind === "namespace") throw doorError(new Error(needsNamespace));
  if (pid !== null) {
    try {
      return await openNamespaceDoor(pid, onConnection, port);
    } catch (error) {
      if (kind === "namespace") throw doorError(error);
    }
  }
  return ForwarderDoor.open(startIn(docker, containerId), onConnection, port);
}

const needsNamespace = "it needs root and a Docker engine on this Linux machine";

/** Connections into its network namespace, the same way as its door leaves it. */
export async function containerConnector(docker: Docker, containerId: string, kind: DoorKind): Promise<Connector> {
  const isNear = kind !== "forwarder" && (await localPid(docker, containerId)) !== null;
  if (isNear) return new NamespaceConnector(() => localPid(docker, containerId));
  if (kind === "namespace") throw doorError(new Error(needsNamespace));
  return new ForwarderConnector(startIn(docker, containerId));
}

/** The container's process as this machine knows it; null where the engine's pids are not ours (virtual machine, remote). */
export async function localPid(docker: Docker, containerId: string): Promise<number | null> {
  const { State, Id } = await docker.getContainer(containerId).inspect();
  return State.Running && (await canEnter(State.Pid, Id)) ? State.Pid : null;
}

function startIn(docker: Docker, containerId: string): StartForwarder {
  return async (argv, env, signal) => {
    const command = { argv, env, user: `${doorId}:${doorId}`, cwd: "/" };
    const { stream } = await engineWork(docker).run(signal, () => attach(docker, containerId, command, true));
    return { stream, output: complaintsApart(stream) };
  };
}

/** Docker reports on stdout why it could not start a process. */
async function* complaintsApart(stream: Duplex): AsyncGenerator<StreamChunk, void, undefined> {
  for await (const chunk of demultiplex(stream)) {
    const isComplaint = chunk.bytes.subarray(0, 3).toString("latin1") === "OCI";
    yield isComplaint ? { ...chunk, stream: "stderr" } : chunk;
  }
}
