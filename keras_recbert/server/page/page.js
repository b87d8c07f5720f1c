// The page: fields, requests while one types, a panel for each model.

import { agreement, answered, make, waiting } from "/answers.js";
import { Told, bodyOf, curlOf, get, predict } from "/ask.js";
import { WAYS, isClassifier } from "/colours.js";

const PAUSE = 250; // milliseconds without a key, after which the text is asked
const LABELS = { question: "Question", context: "Context", choices: "Choices, one a line" };
const ROWS = { question: 2, text_pair: 3, choices: 4, context: 7 };

const $ = (id) => document.getElementById(id);
const state = { cards: [], panels: [], stop: null, timer: 0, colours: false };

// What one types ----------------------------------------------------------------------

function labelOf(name, fields) {
  const isPair = fields.some((field) => field.name === "text_pair");
  if (name === "text") return isPair ? "First text" : "Text";
  if (name === "text_pair") return "Second text";
  return LABELS[name] ?? name;
}

function makeFields(card) {
  for (const { name, is_list } of card.fields) {
    const input = make("textarea");
    input.id = `field-${name}`;
    input.name = name;
    input.rows = ROWS[name] ?? 3;
    const value = card.example[name];
    input.value = is_list ? [value].flat().join("\n") : value;
    input.addEventListener("input", () => {
      clearTimeout(state.timer);
      state.timer = setTimeout(ask, PAUSE);
    });
    input.addEventListener("keydown", (event) => {
      const asks = event.ctrlKey || event.metaKey || (!event.shiftKey && !is_list);
      if (event.key !== "Enter" || event.isComposing || !asks) return;
      event.preventDefault();
      ask();
    });
    const label = make("label", "", labelOf(name, card.fields));
    label.htmlFor = input.id;
    $("fields").append(make("div", `field field-${name}`, label, input));
  }
}

/** The example that is typed: a value for each field; a sentence where it is none. */
function readExample() {
  const example = {};
  for (const { name, is_list } of state.cards[0].fields) {
    const typed = $(`field-${name}`).value;
    example[name] = is_list ? typed.split("\n").filter((line) => line.trim()) : typed;
    if (is_list && example[name].length < 2) throw new Told("Type two choices or more, one a line.");
  }
  if (Object.values(example).every((value) => !value.length)) throw new Told("Type a text.");
  return example;
}

// A panel of a model ------------------------------------------------------------------

function makePanel(card, index) {
  const title = make("h2", "", card.name);
  title.id = `model-${index}`;
  const panel = {
    card,
    seen: {},
    time: make("p", "time quiet", "–"),
    answer: make("div", "answer", ...waiting(card)),
    words: make("div", "words"),
    error: make("p", "error"),
    curl: make("code"),
  };
  panel.words.hidden = true;
  panel.error.hidden = true;
  panel.error.setAttribute("role", "alert");
  const head = make("header", "", title, panel.time);
  panel.element = make("article", "model", head, panel.error, panel.answer, panel.words);
  panel.element.setAttribute("aria-labelledby", title.id);
  $("models").append(panel.element);
  $("curls").append(makeCurl(panel));
  return panel;
}

function makeCurl(panel) {
  const button = make("button", "", "Copy");
  button.type = "button";
  button.setAttribute("aria-label", `Copy the line for ${panel.card.name}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(panel.curl.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(panel.curl);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const line = make("pre", "", panel.curl);
  line.tabIndex = 0;
  line.setAttribute("aria-label", `Line for ${panel.card.name}`);
  return make("div", "curl", line, button);
}

function showError(panel, error) {
  panel.element.removeAttribute("aria-busy");
  panel.error.textContent = error.message;
  panel.error.hidden = false;
  panel.element.classList.add("failed");
  panel.time.textContent = "–";
  if (!(error instanceof Told)) throw error;
}

function showAnswer(panel, prediction, example) {
  const { value, milliseconds, server } = prediction;
  panel.said = answered(panel.card, value.predictions[0], example, panel.seen);
  panel.answer.replaceChildren(...panel.said.parts);
  panel.element.classList.remove("failed");
  panel.element.removeAttribute("aria-busy");
  panel.error.hidden = true;
  const own = server === null ? "" : ` (server ${server.toFixed(1)} ms)`;
  panel.time.textContent = `${milliseconds.toFixed(1)} ms${own}`;
}

// Asking ------------------------------------------------------------------------------

async function ask() {
  clearTimeout(state.timer);
  state.stop?.abort();
  const stop = (state.stop = new AbortController());
  let example;
  try {
    example = readExample();
  } catch (error) {
    if (!(error instanceof Told)) throw error;
    $("problem").textContent = error.message;
    $("problem").hidden = false;
    for (const panel of state.panels) {
      panel.element.removeAttribute("aria-busy");
      panel.element.classList.add("failed");
    }
    return;
  }
  $("problem").hidden = true;
  const body = bodyOf(example);
  for (const panel of state.panels) {
    panel.said = null;
    panel.element.setAttribute("aria-busy", "true");
    panel.curl.textContent = curlOf(panel.card.name, body);
    clearWords(panel);
  }
  try {
    // One after the other, as side by side each would wait for its neighbour.
    for (const panel of state.panels) await askPanel(panel, body, example, stop.signal);
    summarize();
    if (state.colours) {
      for (const panel of state.panels) await colour(panel, example, stop.signal);
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error; // a newer text is asked
  }
}

async function askPanel(panel, body, example, signal) {
  try {
    showAnswer(panel, await predict(panel.card.name, body, signal), example);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    showError(panel, error);
  }
}

function summarize() {
  const models = state.panels
    .filter((panel) => panel.said)
    .map((panel) => ({ name: panel.card.name, answer: panel.said }));
  let sentence = "";
  if (models.length > 1) {
    const { same, text } = agreement(models);
    sentence = text;
    $("agreement").textContent = text;
    $("agreement").className = same ? "same" : "other";
  } else if (state.panels.length > 1) {
    $("agreement").textContent = "";
    $("agreement").className = "";
  }
  const told = models.map(({ name, answer }) => `${name}: ${answer.said}.`);
  $("live").textContent = [...told, sentence].join(" ");
}

// Words -------------------------------------------------------------------------------

function clearWords(panel) {
  panel.words.hidden = !state.colours;
  panel.words.classList.add("stale");
}

async function colour(panel, example, signal) {
  panel.words.hidden = !panel.said;
  if (!panel.said) return;
  const way = WAYS[$("by").value];
  try {
    if (!way.fits(panel.card)) throw new Told(way.lacks(panel.card));
    if (!panel.words.childElementCount) showWords(panel, make("p", "coloured quiet", "Asking word by word …"));
    showWords(panel, ...(await way.ask(panel, example, signal)));
  } catch (error) {
    if (!(error instanceof Told)) throw error; // a newer text, too
    showWords(panel, make("p", "coloured quiet", error.message));
  }
}

function showWords(panel, ...content) {
  panel.words.classList.remove("stale");
  panel.words.replaceChildren(...content);
}

/** The button and, where there are two ways, the choice between these. */
function makeColourTools(cards) {
  const ways = Object.keys(WAYS).filter((way) => cards.some(WAYS[way].fits));
  const isOld = !ways.length && cards.some(isClassifier); // what is lacking is told
  const [button, choice] = [$("words"), $("by")];
  for (const way of isOld ? ["masks"] : ways) choice.append(new Option(WAYS[way].name, way));
  button.hidden = !choice.length;
  choice.addEventListener("change", ask);
  button.addEventListener("click", () => {
    state.colours = !state.colours;
    choice.hidden = !state.colours || choice.length < 2;
    button.setAttribute("aria-pressed", String(state.colours));
    ask();
  });
}

// The beginning -----------------------------------------------------------------------

function describe({ name, kind, labels }) {
  const said = `${name ? `${name}, ` : ""}${kind.replace("_", " ")}`;
  if (!labels.length) return said;
  return `${said}: ${labels.slice(0, 8).join(", ")}${labels.length > 8 ? ", …" : ""}`;
}

async function begin() {
  const { models } = await get("/v1/models");
  const cards = models.map((name) => get(`/v1/models/${encodeURIComponent(name)}/card`));
  state.cards = await Promise.all(cards);
  const title = `Play with ${models.join(" and ")}`;
  document.title = title;
  $("title").textContent = title;
  const heads = state.cards.flatMap((card) => card.heads);
  $("about").textContent = [...new Set(heads.map(describe))].join("; ");
  makeFields(state.cards[0]);
  state.panels = state.cards.map(makePanel);
  if (models.length > 1) {
    document.body.classList.add("several");
    $("agreement").hidden = false;
  }
  makeColourTools(state.cards);
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  $("form").querySelector("textarea").focus();
  await ask();
}

begin().catch((error) => {
  $("title").textContent = "Play";
  $("problem").textContent = error.message;
  $("problem").hidden = false;
  throw error;
});
