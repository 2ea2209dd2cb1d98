// Keys, the window of tokens, the chart, and live rows. Without it all can be read but those.
"use strict";
(() => {
  const find = (selector) => document.querySelector(selector);
  const follow = (selector) => {
    const to = find(selector);
    if (to?.href) location.assign(to.href);
    return Boolean(to?.href);
  };

  const keys = {
    j: () => follow("a.key-j") || step(1),
    k: () => follow("a.key-k") || step(-1),
    n: () => follow("a.key-n"),
    p: () => follow("a.key-p"),
    t: () => follow("a.key-t"),
    d: () => follow("a.key-d"),
    g: () => follow("a.key-g"),
    r: () => follow("a.key-r"),
    u: () => follow("h1 a[href^=rollout]") || follow(".steps a[class='']"),
    Enter: () => find("tr.at a, section.at a")?.click(),
    "/": () => find(".filters input")?.focus(),
    "?": showKeys,
  };
  function showKeys() {
    for (const row of document.querySelectorAll("#keys tr")) row.hidden = !find(row.dataset.where);
    find("#keys").showModal();
  }
  const help = find("button.keys");
  if (help) {
    help.hidden = false;
    help.addEventListener("click", showKeys);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, dialog[open]")) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!act) return;
    if (event.key === "/" || event.key === "?") event.preventDefault();
    act();
  });

  // In a list, j and k move a mark, and Enter opens what it marks.
  function step(by) {
    const rows = [...document.querySelectorAll("table.list tbody tr, table.tasks tbody tr, .samples section")];
    if (rows.length === 0) return;
    const at = rows.findIndex((row) => row.classList.contains("at"));
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    rows[at]?.classList.remove("at");
    next.classList.add("at");
    // Enter is for the marked row, not for the button that was used last.
    document.activeElement?.blur();
    next.scrollIntoView({ block: "nearest" });
  }
  find(".turns li.shown")?.scrollIntoView({ block: "nearest" });

  // Tokens: what is on record of one, the colour, and further windows as they are scrolled to.
  const tokens = find("#tokens");
  if (tokens) {
    const said = find("#token");
    const show = (target) => {
      const token = target.closest?.(".run i");
      if (!token) return;
      find(".run i.at")?.classList.remove("at");
      token.classList.add("at");
      said.textContent = `${JSON.stringify(token.textContent)}  ${token.title}`;
    };
    tokens.addEventListener("click", (event) => show(event.target));
    tokens.addEventListener("mouseover", (event) => show(event.target));
    const paint = (colour) => {
      tokens.dataset.colour = colour;
      for (const legend of document.querySelectorAll(".legend-tokens [data-of]")) legend.classList.toggle("on", legend.dataset.of === colour);
      for (const link of document.querySelectorAll("a.colour")) link.classList.toggle("chosen", link.classList.contains(`colour-${colour}`));
    };
    paint(tokens.dataset.colour);
    for (const link of document.querySelectorAll("a.colour"))
      link.addEventListener("click", (event) => {
        event.preventDefault();
        paint(link.textContent);
      });
    // So many windows are in the page at once; the first ones leave as others come.
    const most = 5;
    let isReading = false;
    const readOn = async (link) => {
      if (isReading) return;
      isReading = true;
      try {
        const answer = await fetch(link.href);
        if (!answer.ok) return;
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        const more = next.querySelector("a.more, .end");
        for (const window of next.querySelectorAll("#tokens > .window")) tokens.append(document.adoptNode(window));
        link.replaceWith(document.adoptNode(more));
        watch();
        while (tokens.children.length > most) {
          const height = tokens.firstElementChild.getBoundingClientRect().height;
          tokens.firstElementChild.remove();
          scrollBy(0, -height);
        }
      } finally {
        isReading = false;
      }
    };
    const observer = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) readOn(target);
    });
    const watch = () => {
      observer.disconnect();
      const link = find("a.more");
      if (link && location.protocol !== "file:") observer.observe(link);
    };
    watch();
  }

  // The chart is drawn from its table.
  const chart = find(".chart");
  if (chart && globalThis.uPlot) {
    const rows = [...document.querySelectorAll(`#${chart.dataset.table} tbody tr`)].filter((row) => row.dataset.x !== "");
    const column = (name) => rows.map((row) => (row.dataset[name] === "" ? null : Number(row.dataset[name])));
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const line = style.getPropertyValue("--line").trim();
    const run = style.getPropertyValue("--run").trim();
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const plot = new uPlot(
      {
        width: chart.clientWidth,
        height: 220,
        scales: { x: { time: false } },
        axes: [{ ...axis, label: "policy step", labelSize: 18, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6] }, axis],
        series: [
          { label: "step" },
          { label: "mean reward", stroke: run, width: 2, points: { show: true, fill: run } },
          { label: "low", stroke: `${run}66`, width: 1, points: { show: false } },
          { label: "high", stroke: `${run}66`, width: 1, points: { show: false } },
        ],
        bands: [{ series: [3, 2], fill: `${run}22` }],
      },
      [column("x"), column("y"), column("low"), column("high")],
      chart,
    );
    new ResizeObserver(() => plot.setSize({ width: chart.clientWidth, height: 220 })).observe(chart);
    plot.over.addEventListener("click", () => rows[plot.cursor.idx]?.querySelector("a")?.click());
  }

  // Fetches the screen of a running rollout again a second after each picture came. A hidden page fetches none.
  for (const screen of document.querySelectorAll("img.live-screen")) {
    const { src } = screen;
    const next = () => {
      if (document.hidden) document.addEventListener("visibilitychange", next, { once: true });
      else screen.src = `${src}&at=${Date.now()}`;
    };
    screen.addEventListener("load", () => setTimeout(next, 1000));
    screen.addEventListener("error", () => {
      screen.previousElementSibling.textContent = "the screen has gone: reload the page";
      screen.remove();
    });
  }

  // Live: the server says which rollouts changed. A page that was away goes on behind its last event.
  const events = document.body.dataset.live;
  const note = find(".live");
  if (events && note && globalThis.EventSource) {
    let changed = 0;
    const source = new EventSource(events);
    source.addEventListener("rollouts", (event) => {
      const { rows, total } = JSON.parse(event.data);
      changed += rows.length;
      note.hidden = false;
      note.textContent = `live · ${total} rollouts · ${changed} changes · reload`;
      for (const { id, html } of rows) {
        const old = document.querySelector(`#rows tr[data-id="${CSS.escape(id)}"]`);
        if (!old) continue;
        const made = new DOMParser().parseFromString(`<table><tbody>${html}</tbody></table>`, "text/html").querySelector("tr");
        if (made) old.replaceWith(document.adoptNode(made));
      }
    });
    note.addEventListener("click", () => location.reload());
    addEventListener("pagehide", () => source.close());
  }
})();
