import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Environment } from "../../../base/schema/task.ts";
import { browserKeys, toolKeys } from "../../../rollouts/accepted/browser-keys.ts";
import { browserPolicy } from "../../../sandboxes/desktop/browser-policy.ts";
import { desktopWord, packagesOfDesktop } from "../../../sandboxes/desktop/desktop-word.ts";
import { displayClash } from "../../../sandboxes/desktop/display-clash.ts";
import { isAtWork } from "../../../sandboxes/desktop/inside/programs-at-work.ts";
import { withDisplay } from "../../../sandboxes/desktop/with-display.ts";
import { desktopImageOf } from "../../../sandboxes/docker/images/made/desktop-image.ts";
import { loadTasks } from "../../../tasks/index.ts";

const desk = { network: "apart", command: ["python3", "/srv/files/server.py"] };
const display = { service: "screen", page: "http://desk:8080/tickets" };

test("a display becomes a service apart that waits for the others, and a server of tools in it", () => {
  const { services, tools } = withDisplay(Environment.parse({ services: { desk }, display }));
  const screen = services?.screen ?? assert.fail("no service");
  assert.deepEqual([screen.image, screen.network, screen.user, screen.expose], [desktopWord, "apart", "901", []]);
  assert.deepEqual(screen.command, ["1280x800", "page", "http://desk:8080/tickets"]);
  assert.deepEqual(screen.depends_on, { desk: "ready" });
  assert.deepEqual(
    tools?.map(({ name, service, port }) => [name, service, port]),
    [["computer", "screen", undefined]],
  );
});

test("a display that already is a service stays as it is, and an environment without one too", () => {
  const once = withDisplay(Environment.parse({ services: { desk }, display }));
  assert.deepEqual(withDisplay(once), once);
  const none = Environment.parse({ services: { desk } });
  assert.equal(withDisplay(none), none);
});

test("a service of the task's own shows the program that it names, in its own image", () => {
  const services = { screen: { image: "acme/office:1", command: ["gnumeric", "book.xls"], user: "office" } };
  const { services: made } = withDisplay(Environment.parse({ services, display: { service: "screen", tools: "none" } }));
  assert.deepEqual(made?.screen?.command, ["1280x800", "program", "gnumeric", "book.xls"]);
  assert.deepEqual([made?.screen?.image, made?.screen?.user], ["acme/office:1", "office"]);
});

test("a display with packages has an image of these in the browser's place", () => {
  const program = { network: "apart", command: ["gnumeric", "book.gnumeric"] };
  const packages = ["gnumeric", "fonts-dejavu", "gnumeric"];
  const { services } = withDisplay(Environment.parse({ services: { screen: program }, display: { service: "screen", packages } }));
  assert.deepEqual(packagesOfDesktop(services?.screen?.image ?? null), ["fonts-dejavu", "gnumeric"]);
  assert.deepEqual(services?.screen?.command, ["1280x800", "program", "gnumeric", "book.gnumeric"]);
  assert.ok(desktopImageOf(["gnumeric"]).startsWith("alidade/desktop:"));
  assert.notEqual(desktopImageOf(["gnumeric"]), desktopImageOf([]));
  assert.deepEqual(
    [packagesOfDesktop(desktopWord), packagesOfDesktop("alidade/desktop-other:1"), packagesOfDesktop(null)],
    [[], null, null],
  );
});

test("packages that are no names of Debian's, or stand beside a browser or another image, are refused by field", () => {
  const pathOf = (wrong: object) =>
    Environment.safeParse({ display: { service: "screen", ...wrong } }).error?.issues[0]?.path.join(".") ?? null;
  for (const name of ["a b", "--option", "x; true", "Gnumeric", "g++", "x", "../x", "gnumeric-", "gnumeric."])
    assert.equal(pathOf({ packages: [name] }), "display.packages.0", name);
  assert.equal(pathOf({ packages: [] }), "display.packages");
  assert.equal(pathOf({ packages: ["a", "b"].map((name) => name.repeat(62)) }), "display.packages");
  assert.equal(pathOf({ packages: ["gnumeric"], page: "http://desk/" }), "display.packages");
  assert.equal(pathOf({ packages: ["gnumeric"], tools: "playwright" }), "display.packages");
  assert.equal(pathOf({ packages: ["gnumeric"] }), null);
  const own = {
    services: { screen: { image: "acme/office:1", network: "apart" } },
    display: { service: "screen", packages: ["gnumeric"] },
  };
  assert.deepEqual(displayClash(Environment.parse(own)), {
    field: "display.packages",
    message: "are given, and the service screen has an image of its own: leave out one of them",
  });
});

test("a program is at work while it runs or is held by a disk; what was started from outside does not count", () => {
  assert.equal(isAtWork("44 (soffice.bin) R 30 1 1 0 -1 4194304"), true);
  assert.equal(isAtWork("44 (a) S (b) D 30 1 1 0 -1 4194304"), true);
  assert.equal(isAtWork("44 (soffice.bin) S 30 1 1 0 -1 4194304"), false);
  assert.equal(isAtWork("44 (a) R 30 1) S 30 1 1 0"), false);
  assert.equal(isAtWork("45 (test) R 0 45 45 0 -1 4194304"), false);
  assert.equal(isAtWork(""), false);
});

test("tools that run any script in a page cannot be allowed, and usual ones leave out requests and files", () => {
  const playwright = (allow?: string[]) => Environment.safeParse({ display: { service: "screen", tools: "playwright", allow } });
  for (const never of ["browser_evaluate", "browser_run_code_unsafe"]) assert.equal(playwright([never]).success, false);
  assert.equal(playwright(["browser_network_requests"]).success, true);
  const { tools } = withDisplay(playwright().data ?? assert.fail("refused"));
  const usual = tools?.[0]?.allow ?? [];
  assert.ok(usual.includes("browser_click"));
  assert.deepEqual(
    usual.filter((name) => /evaluate|run_code|network|file_upload/.test(name)),
    [],
  );
});

test("the browser opens the task's origins alone, and its tools are shut where the agent has a keyboard", () => {
  const policyOf = (tools: "computer" | "playwright") =>
    JSON.parse(
      browserPolicy({
        service: "screen",
        size: "1280x800",
        origins: ["http://wiki:80"],
        tools,
        ...(tools === "computer" && { page: display.page }),
      }),
    );
  const policy = policyOf("computer");
  assert.deepEqual(policy.URLAllowlist, ["http://.desk:8080", "http://.wiki:80"]);
  for (const one of ["*", "javascript:*", "view-source:*", "chrome://*", "file://*", "devtools://*", "data:*"])
    assert.ok(policy.URLBlocklist.includes(one), one);
  assert.equal(policy.DeveloperToolsAvailability, 2);
  assert.equal(policyOf("playwright").DeveloperToolsAvailability, undefined);
});

test("a size that is no screen and a page that is no web page are refused by field", () => {
  const pathOf = (wrong: object) => Environment.safeParse({ display: { ...display, ...wrong } }).error?.issues[0]?.path.join(".");
  assert.equal(pathOf({ size: "9000x800" }), "display.size");
  assert.equal(pathOf({ size: "800" }), "display.size");
  assert.equal(pathOf({ page: "javascript:alert(1)" }), "display.page");
  assert.equal(pathOf({ page: "file:///etc/passwd" }), "display.page");
});

test("a display that clashes with the task's services or servers of tools is refused in one sentence", () => {
  const clashOf = (environment: object) => {
    const { field, message } = displayClash(Environment.parse(environment)) ?? { field: null, message: null };
    return field && `${field} ${message}`;
  };
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, desk]));
  const tool = (name: string) => ({ name, service: "desk", port: 8000 });
  assert.equal(clashOf({ services: { desk }, tools: [tool("shop")], display }), null);
  assert.equal(clashOf(withDisplay(Environment.parse({ services: { desk }, display }))), null);
  assert.equal(clashOf({ services: many(7), display }), null);
  assert.equal(clashOf({ services: many(8), display }), "services are 8, and display.service adds screen: a task has at most 8");
  assert.equal(
    clashOf({ services: { desk: { ...desk, aliases: ["Screen"] } }, display }),
    "display.service is screen, a name that is taken: choose another",
  );
  assert.match(clashOf({ services: { desk }, display: { ...display, service: "main" } }) ?? "", /^display\.service is main, a name/);
  const twice = clashOf({ services: { desk }, tools: [tool("shop"), tool("computer")], display });
  assert.equal(twice, "tools.1.name is computer, the name of the display's own server of tools (tools: computer): choose another");
  const playwright = { service: "screen", tools: "playwright" };
  assert.match(clashOf({ services: { desk }, tools: [tool("playwright")], display: playwright }) ?? "", /^tools\.0\.name is playwright/);
  assert.equal(clashOf({ services: { desk }, tools: [tool("computer")], display: { ...display, tools: "none" } }), null);
  const eight = Array.from({ length: 8 }, (_, at) => tool(`t${at}`));
  assert.match(clashOf({ services: { desk }, tools: eight, display }) ?? "", /^tools are 8, and the display's own server .* at most 8$/);
});

test("a task does not load if its display has a bad name, or adds one server of tools too many", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-display-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(join(import.meta.dirname, "../../../examples/tasks/ticket-desk"), folder, { recursive: true });
  const path = join(folder, "task.yaml");
  const written = await readFile(path, "utf8");
  const loaded = async (text: string) => {
    assert.notEqual(text, written);
    await writeFile(path, text);
    return loadTasks(path);
  };
  await assert.rejects(
    loaded(written.replace("service: screen", 'service: "my screen"')),
    /environment\.display\.service: is "my screen": letters, digits/,
  );
  const twice = written.replace("  display:", "  tools: [{ name: computer, service: desk, port: 8080 }]\n  display:");
  await assert.rejects(loaded(twice), {
    code: "task_invalid",
    message: /environment\.tools\.0\.name.* is computer, the name of the display's own/,
  });
});

test("the known calls of a task may name the server of tools that its display brings", async () => {
  const folder = join(import.meta.dirname, "../../../examples/tasks/ticket-desk");
  for (const path of [folder, join(folder, "playwright.yaml")]) {
    const [task] = await loadTasks(path);
    assert.deepEqual(new Set(task?.gold_calls?.map(({ server }) => server)), new Set(task?.environment.tools?.map(({ name }) => name)));
  }
});

test("the probe of a screen presses each key that opens a console, and types scripts where addresses go", () => {
  assert.ok(toolKeys.every((call) => browserKeys.includes(call)));
  const typed = browserKeys.map(({ arguments: args }) => String(args.text ?? args.key ?? "")).join("\n");
  for (const one of ["ctrl+shift+j", "F12", "javascript:", "chrome://", "view-source:", "file:///"]) assert.ok(typed.includes(one), one);
});
