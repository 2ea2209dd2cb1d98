/**
 * Opens pages in a frame of the size of a task's screen. Solves the pages below as a person would: from the instruction and the screen.
 * Notes each step as a call of the tool `computer`, and does it in the page at once. So the next step sees its effect.
 */
(function () {
  var screen = 320;
  var sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  var send = (value) => fetch("/", { method: "POST", body: JSON.stringify(value) });

  async function listAll() {
    for (var name of names) for (var seed = 0; seed < seeds; seed++) await send(await rowOf(name, seed));
    await send(null);
  }

  async function rowOf(name, seed) {
    var frame = document.createElement("iframe");
    frame.width = frame.height = screen;
    frame.src = "/" + seed + "/miniwob/" + name + ".html";
    var loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    document.body.append(frame);
    await loaded;
    // Some pages still change after they were loaded.
    await sleep(30);
    var page = new Page(frame.contentWindow);
    var row = { page: name, seed: seed, utterance: page.asked, calls: null, why: "" };
    if (name in solutions) {
      try {
        await solutions[name](page);
        if (page.window.WOB_RAW_REWARD_GLOBAL >= 1) row.calls = page.calls;
        else row.why = "the reward is " + page.window.WOB_RAW_REWARD_GLOBAL;
      } catch (error) {
        row.why = String(error && error.message);
      }
    }
    frame.remove();
    return row;
  }

  class Page {
    constructor(window) {
      this.window = window;
      this.document = window.document;
      this.calls = [];
      // Some pages return an object that has the instruction and its parts.
      var said = window.core.getUtterance();
      this.asked = typeof said === "string" ? said : said.utterance;
    }

    all(selector) {
      return [...this.document.querySelectorAll(selector)];
    }

    one(selector) {
      var found = this.document.querySelector(selector);
      if (found === null) throw new Error("there is no " + selector);
      return found;
    }

    /** Returns the first visible element with this text. */
    withText(selector, text) {
      var found = this.all(selector).find((one) => one.textContent.trim() === text && one.getClientRects().length > 0);
      if (found === undefined) throw new Error("there is no " + selector + " with " + text);
      return found;
    }

    /** Returns the groups of `pattern` in the instruction. */
    said(pattern) {
      var found = pattern.exec(this.asked);
      if (found === null) throw new Error("what is asked has another form");
      return found.length === 2 ? found[1] : found.slice(1);
    }

    async click(element) {
      // The centre of a link over two lines may lie beside it.
      var rect = [...element.getClientRects()].find(({ width, height }) => width > 0 && height > 0);
      if (rect === undefined) throw new Error("what is to be clicked cannot be seen");
      var [x, y] = [Math.floor(rect.left + rect.width / 2), Math.floor(rect.top + rect.height / 2)];
      await this.clickAt(x, y, element);
    }

    async clickAt(x, y, element) {
      if (x < 0 || y < 0 || x >= screen || y >= screen) throw new Error("what is to be clicked is outside the screen");
      var target = this.document.elementFromPoint(x, y);
      var isRight = element === undefined || element.contains(target) || (target !== null && target.contains(element));
      if (!isRight) throw new Error("something lies over what is to be clicked");
      this.calls.push({ action: "click", x: x, y: y });
      var { MouseEvent, PointerEvent } = this.window;
      var about = { bubbles: true, cancelable: true, view: this.window, clientX: x, clientY: y, detail: 1 };
      for (var kind of ["mousemove", "mouseover", "mouseenter"]) target.dispatchEvent(new MouseEvent(kind, about));
      target.dispatchEvent(new PointerEvent("pointerdown", about));
      target.dispatchEvent(new MouseEvent("mousedown", about));
      var field = target.closest("input, textarea, button, select, label");
      if (field !== null) field.focus();
      target.dispatchEvent(new PointerEvent("pointerup", about));
      target.dispatchEvent(new MouseEvent("mouseup", about));
      target.dispatchEvent(new MouseEvent("click", about));
      await sleep(0);
    }

    async wait(seconds) {
      this.calls.push({ action: "wait", seconds: seconds });
      await sleep(seconds * 1000);
    }

    async type(text) {
      this.calls.push({ action: "type", text: text });
      var field = this.document.activeElement;
      if (!("value" in field)) throw new Error("no field has the keyboard");
      field.value += text;
      for (var kind of ["keydown", "input", "keyup"]) field.dispatchEvent(new this.window.Event(kind, { bubbles: true }));
      await sleep(0);
    }

    async fill(field, text) {
      await this.click(field);
      await this.type(text);
    }

    async submit() {
      var known = this.document.querySelector("#subbtn, #submit");
      await this.click(known ?? this.withText("button", "Submit"));
    }
  }

  var unfoldSeconds = 1;

  async function clickNamed(page) {
    await page.click(page.withText("button", page.said(/"(.*)"/)));
  }

  async function clickBoth(page) {
    await page.click(page.one("#subbtn"));
    await page.click(page.one("#subbtn2"));
  }

  /** Clicks the boxes or circles with these labels. */
  async function choose(page, list) {
    for (var name of list) await page.click(page.withText("label", name).querySelector("input"));
    await page.submit();
  }

  async function chooseSaid(page) {
    var said = page.said(/^Select (.*) and click Submit\.$/);
    await choose(page, said === "nothing" ? [] : said.split(", "));
  }

  async function enter(page, text) {
    await page.fill(page.one("#area input[type=text], #area input:not([type])"), text);
    await page.submit();
  }

  async function openAndSubmit(page) {
    await page.click(page.one("#area h3"));
    await page.wait(unfoldSeconds);
    await page.submit();
  }

  /** Opens one part after the other until the link is visible. */
  async function findLink(page, parts, seconds) {
    var word = page.said(/"(.*)"/);
    var isSeen = () => page.all(".alink").some((one) => one.textContent === word && one.getClientRects().length > 0);
    for (var part of page.all(parts)) {
      if (isSeen()) break;
      await page.click(part);
      if (seconds > 0) await page.wait(seconds);
    }
    await page.click(page.withText(".alink", word));
  }

  var findLinkByTabs = (page) => findLink(page, "#area ul a", 0);
  var findLinkBySections = (page) => findLink(page, "#area h3", unfoldSeconds);

  async function login(page) {
    var [user, word] = page.said(/username "(.*)" and the password "(.*)" into/);
    await page.fill(page.one("#username"), user);
    await page.fill(page.one("#password"), word);
    await page.submit();
  }

  async function clickInMail(page, name, selector) {
    var mail = page.all("#main .email-thread").find((one) => one.querySelector(".email-sender").textContent === name);
    await page.click(mail.querySelector(selector));
  }

  function tableValue(page, key) {
    return page.withText("#tab td:first-child", key).nextElementSibling.textContent;
  }

  var solutions = {
    "click-test": (page) => page.click(page.one("#subbtn")),
    "click-test-2": (page) => page.click(page.withText("button", page.said(/button (\w+)\./))),
    "click-test-transfer": (page) => page.click(page.withText("button", page.said(/button (\w+)\./))),
    "click-button": clickNamed,
    "unicode-test": clickNamed,
    "click-button-sequence": clickBoth,
    "click-link": (page) => page.click(page.withText(".alink", page.said(/"(.*)"/))),
    "click-dialog": (page) => page.click(page.one("button.ui-button")),
    "click-dialog-2": async (page) => {
      var name = page.said(/"(.*)"/);
      await page.click(name === "x" ? page.one(".ui-dialog-titlebar button") : page.withText(".ui-dialog-buttonset button", name));
    },
    "click-checkboxes": chooseSaid,
    "click-checkboxes-large": chooseSaid,
    "click-checkboxes-transfer": chooseSaid,
    "click-option": chooseSaid,
    "click-tab": (page) => page.click(page.withText("#area ul a", page.said(/on (Tab #\d)\./))),
    "click-tab-2": findLinkByTabs,
    "click-tab-2-easy": findLinkByTabs,
    "click-tab-2-medium": findLinkByTabs,
    "click-tab-2-hard": findLinkByTabs,
    "click-collapsible": openAndSubmit,
    "click-collapsible-nodelay": openAndSubmit,
    "click-collapsible-2": findLinkBySections,
    "click-collapsible-2-nodelay": findLinkBySections,
    "click-widget": (page) => page.click(page.one("[data-type=" + page.said(/"(.*)"/) + "]")),
    "click-color": (page) => page.click(page.one("#area [data-color=" + page.said(/on the (\w+) colored/) + "]")),
    "click-shades": async (page) => {
      for (var shade of page.all("#area span[data-color=" + page.said(/shades of (\w+) and/) + "]")) await page.click(shade);
      await page.submit();
    },
    "enter-text": (page) => enter(page, page.said(/"(.*)"/)),
    "enter-text-dynamic": (page) => enter(page, page.said(/"(.*)"/)),
    "enter-text-2": async (page) => {
      var [text, form] = page.said(/"(.*)".*(upper|lower) case/);
      await enter(page, form === "upper" ? text.toUpperCase() : text.toLowerCase());
    },
    "enter-password": async (page) => {
      var word = page.said(/"(.*)"/);
      await page.fill(page.one("#password"), word);
      await page.fill(page.one("#verify"), word);
      await page.submit();
    },
    "focus-text": (page) => page.click(page.one("#tt")),
    "focus-text-2": (page) => page.click(page.one("#tt" + page.said(/the (\d)/))),
    "login-user": login,
    "login-user-popup": async (page) => {
      var [user, word] = page.said(/username "(.*)" and the password "(.*)" into/);
      for (var [field, text] of [
        ["#username", user],
        ["#password", word],
      ]) {
        await page.click(page.one(field));
        if (page.document.querySelector("#popup-cancel") !== null) {
          await page.click(page.one("#popup-cancel"));
          await page.click(page.one(field));
        }
        await page.type(text);
      }
      await page.submit();
    },
    "grid-coordinate": (page) => page.click(page.document.getElementById(page.said(/(\(.*\))/))),
    "simple-arithmetic": async (page) => {
      var [, one, sign, other] = /(\d+) ([-+x]) (\d+) =/.exec(page.one("#math-problem").textContent);
      var [a, b] = [Number(one), Number(other)];
      await enter(page, String(sign === "+" ? a + b : sign === "-" ? a - b : a * b));
    },
    "simple-algebra": async (page) => {
      var [, first, sign, second, sum] = /(\w+) ([-+]) (\w+) = (\d+)/.exec(page.one("#math-problem").textContent);
      var known = Number(first === "x" ? second : first);
      await enter(page, String(sign === "+" ? sum - known : first === "x" ? Number(sum) + known : known - sum));
    },
    "visual-addition": (page) => enter(page, String(page.all(".addition-block").length)),
    "odd-or-even": async (page) => {
      for (var row of page.all(".row")) {
        var isOdd = Math.abs(Number(row.querySelector(".display-number").textContent)) % 2 === 1;
        await page.click(row.querySelector(isOdd ? ".odd" : ".even"));
      }
      await page.submit();
    },
    "find-word": async (page) => {
      var words = page.one("#area p").textContent.trim().split(/\s+/);
      await enter(page, words[Number(page.said(/the (\d+)/)) - 1].replace(/[^a-zA-Z]/g, ""));
    },
    "text-transform": (page) => enter(page, page.one("#captcha").textContent),
    "read-table": async (page) => {
      await page.fill(page.one("#tt"), tableValue(page, page.said(/value of (.*) into/)));
      await page.submit();
    },
    "read-table-2": async (page) => {
      for (var n of [1, 2])
        await page.fill(
          page.one("#tt" + n),
          tableValue(
            page,
            page
              .one("#ll" + n)
              .textContent.replace(":", "")
              .trim(),
          ),
        );
      await page.submit();
    },
    "multi-orderings": async (page) => {
      var [genre, name, year] = page.said(/for (.*) movies directed by (.*) from year (\d+)\./);
      for (var [label, text] of [
        ["Genre", genre],
        ["Director", name],
        ["Year", year],
      ])
        await page.fill(page.withText("th", label).nextElementSibling.querySelector("input"), text);
      await page.click(page.withText("div.final", "Submit"));
    },
    "form-sequence-2": async (page) => {
      var [radio, text, field] = page.said(/the (\d).. radio button and enter the number "(.*)" into the (\d).. textbox/);
      await page.click(page.one("input[type=radio][value='" + radio + "']"));
      await page.fill(page.one("#input-" + field), text);
      await page.submit();
    },
    "number-checkboxes": async (page) => {
      var pattern = page.window.PATTERNS[Number(page.said(/"(\d)"/))].flat();
      for (var [index, box] of page.all("#area input[type=checkbox]").entries()) if (pattern[index] === 1) await page.click(box);
      await page.submit();
    },
    "guess-number": async (page) => {
      for (var guess = 0; guess < 10 && !page.window.WOB_DONE_GLOBAL; guess++) {
        await page.click(page.one("#tt"));
        // The typed number replaces the earlier one.
        page.calls.push({ action: "key", key: "ctrl+a" });
        page.one("#tt").value = "";
        await page.type(String(guess));
        await page.submit();
      }
    },
    "ascending-numbers": async (page) => {
      var places = [1, 2, 3, 4, 5].map((number) => {
        var { left, top, width, height } = page.withText("svg text", String(number)).getBoundingClientRect();
        return [Math.floor(left + width / 2), Math.floor(top + height / 2)];
      });
      for (var [x, y] of places) await page.clickAt(x, y);
    },
    "identify-shape": async (page) => {
      var [shape] = page.all("#area_svg *");
      var isText = shape.tagName === "text";
      var forms = { rect: "rectangle", circle: "circle", polygon: "triangle" };
      var kind = isText ? (/\d/.test(shape.textContent) ? "digit" : "letter") : forms[shape.tagName];
      await page.click(page.one("[data-type=" + kind + "]"));
    },
    "phone-book": async (page) => {
      var [name, property] = page.said(/Find (.*) in the contact book and click on their (phone|email|address)/);
      for (var turn = 0; turn < 5 && page.one("#contact .name").textContent !== name; turn++) {
        await page.click(page.withText("#pagination a", ">"));
      }
      await page.click(page.one("#contact a." + property));
    },
    "navigate-tree": async (page) => {
      var name = page.said(/"(.*)"/);
      var seen = () => page.all("#tree span").find((one) => one.textContent === name && one.getClientRects().length > 0);
      for (var folder of page.all("#tree span.folder")) {
        if (seen()) break;
        if (folder.getClientRects().length > 0) await page.click(folder);
      }
      await page.click(page.withText("#tree span", name));
    },
    "email-inbox-delete": (page) => clickInMail(page, page.said(/by (.*) and click the trash/), ".trash"),
    "email-inbox-important": (page) => clickInMail(page, page.said(/by (.*) and click the star/), ".star"),
    "sign-agreement": async (page) => {
      if (!/cancel button/.test(page.asked)) throw new Error("a text is to be scrolled");
      await page.click(page.one("#cancel"));
    },
    "tic-tac-toe": async (page) => {
      // The opponent plays by the seed, so the same moves win again.
      while (!page.window.WOB_DONE_GLOBAL) await page.click(page.one("#ttt-" + bestMove(page.window.gameState)));
    },
    "find-greatest": async (page) => {
      var cards = page.all(".card");
      var numbers = [];
      for (var card of cards) {
        await page.click(card);
        numbers.push(Number(card.textContent));
      }
      await page.click(cards[numbers.indexOf(Math.max(...numbers))]);
      await page.submit();
    },
    "generate-number": async (page) => {
      var isWanted = wantedNumber(page.asked);
      do await page.click(page.one("#generate"));
      while (!isWanted(Number(page.one("#display-number").textContent)));
      await page.submit();
    },
  };

  function wantedNumber(asked) {
    var limit = Number((/than (\d+)/.exec(asked) || [])[1]);
    if (/less than/.test(asked)) return (number) => number < limit;
    if (/greater than/.test(asked)) return (number) => number > limit;
    return (number) => number % 2 === (/odd/.test(asked) ? 1 : 0);
  }

  /** Wins if possible, else blocks the opponent, else takes the middle, a corner or any field. */
  function bestMove(state) {
    var lines = [
      [0, 1, 2],
      [3, 4, 5],
      [6, 7, 8],
      [0, 3, 6],
      [1, 4, 7],
      [2, 5, 8],
      [0, 4, 8],
      [2, 4, 6],
    ];
    for (var side of [1, -1])
      for (var line of lines) {
        var values = line.map((place) => state[place]);
        if (values.filter((value) => value === side).length === 2 && values.includes(0)) return line[values.indexOf(0)];
      }
    return [4, 0, 2, 6, 8, 1, 3, 5, 7].find((place) => state[place] === 0);
  }

  window.addEventListener("load", listAll);
})();
