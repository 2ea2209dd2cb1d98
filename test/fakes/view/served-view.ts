/** The view of a run folder, served on loopback as `alidade view` serves it. */
import type { ShownWork } from "../../../view/index.ts";
import { openView, type ViewOrder } from "../../../view/server/index.ts";

export const viewKey = "sk-ali-test";

export async function serveView(folder: string, work: ShownWork = null, other?: string, parts: Pick<ViewOrder, "texts" | "trainer"> = {}) {
  const view = await openView({ folder, port: 0, key: viewKey, other, ...parts, workOf: async () => work });
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${view.url}/${path}`, { redirect: "manual", headers: { authorization: `Bearer ${viewKey}`, ...headers } });
  return {
    ...{ url: view.url, reader: view.reader, get },
    text: async (path: string): Promise<string> => (await get(path)).text(),
    [Symbol.asyncDispose]: () => view[Symbol.asyncDispose](),
  };
}
