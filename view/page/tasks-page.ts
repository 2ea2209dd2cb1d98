/** Screen 3, first half: lists tasks, most interesting first. */
import { type GroupLook, type GroupRow, groupQuery, type TaskRow } from "../run/group-table.ts";
import { link, type PageLinks } from "./links.ts";
import { type Markup, markup } from "./markup.ts";
import { samplePill } from "./sample-pill.ts";
import { counted, figure, number, sorted, spaced } from "./words.ts";

/** `perPage`: tasks on one page. A static folder shows all on one page. */
export type TasksPage = { tasks: readonly TaskRow[]; page: number; links: PageLinks; perPage?: number | undefined };

const tasksAPage = 100;
const groupsATask = 8;
const samplesAGroup = 16;

const looks: Record<GroupLook, string> = { flat: "no variance", mixed: "mixed", unmeasured: "no reward", open: "not over" };

export function tasksPage({ tasks, page, links, perPage = tasksAPage }: TasksPage): Markup {
  const from = (page - 1) * perPage;
  const shown = tasks.slice(from, from + perPage);
  const sum = (look: GroupLook) => tasks.reduce((all, task) => all + task.groups.filter((group) => group.look === look).length, 0);
  const counts = (Object.keys(looks) as GroupLook[]).filter((look) => sum(look) > 0).map((look) => `${number(sum(look))} ${looks[look]}`);
  return markup`<h1>Tasks and groups <small>${counted(tasks.length, "task")}; groups: ${counts.join(", ")}</small></h1>
<p class="quiet">A group without variance teaches nothing. Those come first: what always fails, then what always passes, then tasks with nulls, then mixed ones.</p>
<table class="rows tasks"><thead><tr><th>task</th><th>mean</th><th>nulls</th><th>groups, a pill for each sample</th></tr></thead><tbody>
${shown.map((task) => row(task, links))}</tbody></table>
${pager(tasks.length, page, perPage)}`;
}

function row({ task_id, mean, groups, nulls }: TaskRow, links: PageLinks): Markup {
  const more = groups.length - groupsATask;
  const query = task_id === null ? "" : new URLSearchParams({ task: task_id }).toString();
  return markup`<tr><td>${link(links.run(query), task_id ?? "no task")}</td><td>${figure(mean)}</td><td>${sorted(nulls).map(([reason, count]) => `${count} ${spaced(reason)} `)}</td>
<td>${groups.slice(0, groupsATask).map((group) => groupLine(task_id, group, links))}${more > 0 ? `and ${number(more)} more ${more === 1 ? "group" : "groups"}` : ""}</td></tr>`;
}

function groupLine(task: string | null, { group_id, rollouts, look }: GroupRow, links: PageLinks): Markup {
  const query = groupQuery(task, group_id);
  const samples = rollouts
    .slice(0, samplesAGroup)
    .map(({ id, entry }) => markup`${link(links.rollout(id, { query }), samplePill(entry), "sample")} `);
  const more = rollouts.length > samplesAGroup ? ` and ${number(rollouts.length - samplesAGroup)} more` : "";
  return markup`<div class="groupline">${link(links.group(task, group_id), looks[look], `look ${look}`)} ${samples}${more}</div>`;
}

function pager(count: number, page: number, perPage: number): Markup {
  const last = Math.ceil(count / perPage);
  if (last < 2) return markup``;
  return markup`<p class="pager">${page > 1 ? link(`tasks?page=${page - 1}`, "← before") : ""} page ${page} of ${number(last)} ${page < last ? link(`tasks?page=${page + 1}`, "next →") : ""}</p>`;
}
