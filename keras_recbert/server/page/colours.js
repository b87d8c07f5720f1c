// Words of a text, coloured by what the answer owes them.

import { make } from "/answers.js";
import { predict } from "/ask.js";
import { entropy, findWords, maskEach, placeOfByte } from "/words.js";

const MOST_MASKED = 64; // texts of a request

export const isClassifier = ({ heads }) => heads.length === 1 && heads[0].kind === "classifier";

/** Ways to colour words: which models they fit, and what they ask and show. */
export const WAYS = {
  masks: { name: "by masking", fits: (card) => card.can_mask, lacks: lacksMasks, ask: askMasks },
  gradients: {
    name: "by gradients",
    fits: (card) => card.has_gradients,
    lacks: lacksGradients,
    ask: askGradients,
  },
};

function lacksMasks(card) {
  return isClassifier(card)
    ? "This SavedModel has no signature `tokenize`, with which words are masked. Write it " +
        "again: recbert export MODEL FOLDER."
    : "Words are masked for classifiers of one head.";
}

function lacksGradients() {
  return (
    "This SavedModel has no signature `input_x_gradient`. Write it again: " +
    "recbert export MODEL FOLDER --gradients."
  );
}

function wordsOf(example) {
  return Object.entries(example).flatMap(([field, text], number) =>
    findWords(text).map((span) => ({ field, number, span })),
  );
}

// Masking -----------------------------------------------------------------------------

/** Each word masked in turn (Liu 2020, section 3.5.4): the entropy without it. */
async function askMasks(panel, example, signal) {
  const words = wordsOf(example);
  const masked = words.map(({ field, span }) => ({
    ...example,
    [field]: maskEach(example[field], [span])[0],
  }));
  const found = [];
  for (let begin = 0; begin < masked.length; begin += MOST_MASKED) {
    const part = masked.slice(begin, begin + MOST_MASKED);
    found.push(...(await askMasked(panel.card.name, part, signal)));
  }
  const most = Math.log2(panel.card.heads[0].labels.length);
  const whole = panel.said.heads[0].said;
  const texts = coloured(example, words, (word, element, index) => {
    const { label, bits } = found[index];
    element.classList.toggle("turns", label !== whole);
    element.style.setProperty("--share", bits / most);
    element.title = `masked: ${label}, ${bits.toFixed(2)} bits`;
  });
  const legend = make(
    "p",
    "legend quiet",
    "Entropy without the word: 0",
    make("span", "ramp"),
    `${Number(most.toFixed(2))} ${most === 1 ? "bit" : "bits"}. `,
    make("span", "word turns", "Another answer"),
  );
  const rows = found.map(({ bits, label }) => [bits.toFixed(2), label]);
  return [...texts, legend, table(panel, example, words, ["masked", "bits", "answer"], rows)];
}

/** Entropy and label of each of some examples with a mask. */
async function askMasked(model, examples, signal) {
  const names = Object.keys(examples[0]);
  const inputs = Object.fromEntries(
    names.map((name) => [name, examples.map((one) => one[name])]),
  );
  const tokenized = await predict(model, { signature_name: "tokenize", inputs }, signal);
  const ids = { signature_name: "ids", inputs: tokenized.value.outputs };
  const { scores, label } = (await predict(model, ids, signal)).value.outputs;
  return scores.map((row, index) => ({ bits: entropy(row), label: label[index] }));
}

// Gradients times inputs --------------------------------------------------------------

/** What each word added to the answer's logit, or took: the sum over its tokens. */
async function askGradients(panel, example, signal) {
  const inputs = Object.fromEntries(Object.entries(example).map(([name, text]) => [name, [text]]));
  const body = { signature_name: "input_x_gradient", inputs };
  const { outputs } = (await predict(panel.card.name, body, signal)).value;
  const places = Object.values(example).map(placeOfByte);
  const words = wordsOf(example).map((word) => ({ ...word, owed: 0 }));
  outputs.input_x_gradient[0].forEach((owed, index) => {
    const number = outputs.segment_ids[0][index];
    if (outputs.begins[0][index] < 0) return; // a special token, or padding
    const begin = places[number](outputs.begins[0][index]);
    const end = places[number](outputs.ends[0][index]);
    const word = words.find((one) => one.number === number && one.span[0] < end && begin < one.span[1]);
    if (word) word.owed += owed;
  });
  const most = Math.max(...words.map(({ owed }) => Math.abs(owed)), 1e-30);
  const signed = (owed) => `${owed < 0 ? "−" : "+"}${Math.abs(owed).toPrecision(2)}`;
  const texts = coloured(example, words, ({ owed }, element) => {
    element.classList.toggle("against", owed < 0);
    element.style.setProperty("--share", Math.abs(owed) / most);
    element.title = `${signed(owed)} of the answer's logit`;
  });
  const legend = make(
    "p",
    "legend quiet",
    "Gradient times input: against the answer",
    make("span", "ramp against"),
    "0",
    make("span", "ramp"),
    "for it",
  );
  const rows = words.map(({ owed }) => [signed(owed)]);
  return [...texts, legend, table(panel, example, words, ["word", "gradient × input"], rows)];
}

// What is shown -----------------------------------------------------------------------

/** A paragraph a field, in which `style(word, element, index)` colours each word. */
function coloured(example, words, style) {
  return Object.entries(example).map(([field, text]) => {
    const paragraph = make("p", "coloured");
    let end = 0;
    words.forEach((word, index) => {
      if (word.field !== field) return;
      const element = make("span", "word", text.slice(...word.span));
      style(word, element, index);
      paragraph.append(text.slice(end, word.span[0]), element);
      end = word.span[1];
    });
    paragraph.append(text.slice(end));
    return paragraph;
  });
}

function table(panel, example, words, names, rows) {
  const head = make("tr", "", ...names.map((name) => make("th", "", name)));
  const lines = words.map(({ field, span }, index) => {
    const [number, ...rest] = rows[index];
    const cells = rest.map((cell) => make("td", "", cell));
    const word = make("td", "", example[field].slice(...span));
    return make("tr", "", word, make("td", "number", number), ...cells);
  });
  const details = make("details", "", make("summary", "", "As a table"));
  details.open = panel.words.querySelector("details")?.open ?? false;
  details.append(make("table", "", make("thead", "", head), make("tbody", "", ...lines)));
  return details;
}
