/** What the pages say of tokens and turns: which tokens are not trained, which part is shown, and why a page opens where it does. */
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { writeViewedRun } from "../../fakes/records/viewed-run.ts";
import { serveView } from "../../fakes/view/served-view.ts";

const scratch = scratchFolder("view-words");

test("the pages name single tokens that are not trained, and say which part of a turn they show", async () => {
  const folder = join(scratch, "run");
  await writeViewedRun(folder);
  {
    await using view = await serveView(folder);
    const page = await view.text("tokens?id=ses5");
    assert.match(page, /not trained: 1 forced: “<code>[^<]+<\/code>” <span/);
    assert.match(page, /not trained: 12 grammar: “<code>I&#39;ll <\/code>” to “<code>[^<]+<\/code>”, “<code>/);
    const lost = await view.text("tokens?id=ses3&trace=t0");
    assert.match(lost, /not trained: \d+ undelivered: the whole turn </);
    const [, low = "", logprob = ""] = /<a href="#(low-\d+)">lowest logprob (-[\d.]+)<\/a>/.exec(page) ?? assert.fail();
    assert.match(page, new RegExp(`<i class="m-trained[^"]*" title="id \\d+ · logprob ${logprob} [^"]*" id="${low}">`));
    const [, from = "", length = ""] = /from position ([\d,]+)[\s\S]*the end: ([\d,]+) tokens/.exec(page) ?? assert.fail();
    assert.ok(Number(from) > 0 && Number(length) > Number(from));
    assert.match(await view.text(`tokens?id=ses5&from=${Number(from) - 2}`), /prompt of turn 1, tokens (\d+) to (\d+) of \2</);
    const opened = await view.text("rollout?id=ses3");
    assert.match(opened, /opened at turn 3: the last one whose tool answered with an error/);
    assert.match(opened, /the request of turn 2 again: the conversation begins at <a class="" href="rollout\?id=ses3&amp;turn=1">turn 1</);
    assert.ok(!(await view.text("rollout?id=ses3&turn=3")).includes("opened at"));
  }
  await rm(join(folder, "vocabulary"), { recursive: true });
  await using view = await serveView(folder);
  assert.match(
    await view.text("tokens?id=ses5"),
    /[\d,]+ tokens are shown as ids, each in a frame: their texts are not on record .*--tokenizer FILE/,
  );
});
