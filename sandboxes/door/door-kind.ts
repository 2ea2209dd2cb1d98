/** What every door of a container has in common. */
import type { Duplex } from "node:stream";
import { AlidadeError, messageOf } from "../../base/errors.ts";

/** Fixed, so that nothing random can find its way into a transcript. */
export const doorPort = 4000;
/** Where the network of a task that may reach hosts is: the usual port of such proxies. */
export const networkPort = 3128;
/** Where the forwarder's pack lies inside. */
export const doorInside = "/opt/alidade/door";

export const doorKinds = ["auto", "forwarder", "namespace"] as const;
export type DoorKind = (typeof doorKinds)[number];

/** A connection of a door, or into a service: a socket, or a stream that behaves as one. */
export type DoorConnection = Duplex & { destroySoon(): void; resetAndDestroy(): unknown };

export type OnConnection = (socket: DoorConnection) => void;

/** A loaded machine starts Node in a second or two; longer means that it never will. */
export const openMs = 20_000;

/** What listens before a door is what the image starts, or a service of the task. */
export function doorError(error: unknown): AlidadeError {
  const said = messageOf(error);
  const cure = /EADDRINUSE/.test(said)
    ? `. The image's ENTRYPOINT or a service of the task listens there: ports ${doorPort} and ${networkPort} are the sandbox's own, so let it listen at another one.`
    : "";
  return new AlidadeError("sandbox_error", `The sandbox's door could not be opened: ${said}${cure}`, { cause: error });
}

/** `$ALIDADE_DOOR`. Throws `config_invalid` for a word that is no kind. */
export function doorFromEnvironment(): DoorKind {
  const value = process.env.ALIDADE_DOOR || "auto";
  const kind = doorKinds.find((name) => name === value);
  if (kind !== undefined) return kind;
  throw new AlidadeError("config_invalid", `ALIDADE_DOOR is "${value}"; it can be ${doorKinds.join(", ")}.`, { param: "ALIDADE_DOOR" });
}
