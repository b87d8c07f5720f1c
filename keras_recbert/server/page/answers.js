// Answers as elements, by kind. All text goes into them as text, never as HTML.

import { placeOfByte } from "/words.js";

const MOST_BARS = 8; // of more labels the likeliest are shown
const MOST_BEST = 4; // answers to a question
const LONG = 14; // characters of a label that has a line of its own

/** An element of a tag, class and text, or children. */
export function make(tag, name = "", ...content) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...content);
  return element;
}

export const percent = (share) => `${(100 * share).toFixed(1)} %`;

function bar(label, share, isBest) {
  const fill = make("span", "fill");
  fill.style.transform = `scaleX(${share ?? 0})`;
  const value = make("span", "value", share === null ? "–" : percent(share));
  const track = make("span", "track", fill);
  return make("li", isBest ? "best" : "", make("span", "name", label), track, value);
}

function list(labels, rows) {
  const isLong = labels.some((label) => label.length > LONG);
  return make("ul", isLong ? "bars long" : "bars", ...rows);
}

function bars(labels, scores, chosen) {
  let order = labels.map((_, index) => index);
  if (order.length > MOST_BARS) {
    order.sort((a, b) => scores[b] - scores[a]);
    order = order.slice(0, MOST_BARS);
  }
  const rows = order.map((i) => bar(labels[i], scores ? scores[i] : null, chosen(i)));
  return list(labels, rows);
}

const headline = (text, value) =>
  make("p", "headline", make("span", "said", text), " ", make("span", "sure", value));

function classifier(answer) {
  const best = answer.scores.indexOf(Math.max(...answer.scores));
  const sure = percent(answer.scores[best]);
  return {
    said: answer.label,
    sure,
    parts: [
      headline(answer.label, sure),
      bars(answer.label_names, answer.scores, (index) => index === best),
    ],
  };
}

function multilabel(answer) {
  const found = answer.label_names.filter((_, index) => answer.has_label[index]);
  const said = found.join(", ") || "no label";
  return {
    said,
    sure: "",
    parts: [
      headline(said, ""),
      bars(answer.label_names, answer.scores, (index) => answer.has_label[index]),
    ],
  };
}

function multipleChoice(answer, example) {
  const sure = percent(answer.scores[answer.index]);
  const choices = example.choices;
  return {
    said: answer.label,
    sure,
    parts: [
      headline(answer.label, sure),
      bars(choices, answer.scores.slice(0, choices.length), (i) => i === answer.index),
    ],
  };
}

/** The least of 1, 2, 5, 10, 20, ... that is not below a number. */
function rounded(number) {
  if (number <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(number));
  return power * [1, 2, 5, 10].find((step) => step * power >= number);
}

function regressor(answer, example, seen) {
  const score = typeof answer === "number" ? answer : answer.scores;
  seen.most = Math.max(seen.most ?? 1, rounded(score));
  seen.least = Math.min(seen.least ?? 0, score < 0 ? -rounded(-score) : 0);
  const marker = make("span", "marker");
  marker.style.left = `${(100 * (score - seen.least)) / (seen.most - seen.least)}%`;
  return {
    said: score.toFixed(3),
    sure: "",
    score,
    parts: [
      headline(score.toFixed(3), ""),
      make("div", "scale", make("span", "line"), marker),
      make("p", "ends quiet", make("span", "", `${seen.least}`), make("span", "", `${seen.most}`)),
    ],
  };
}

/** A text with some of its bytes marked; marks are dicts of start, end and label. */
function marked(text, marks) {
  const place = placeOfByte(text);
  const paragraph = make("p", "marked");
  let end = 0;
  for (const mark of marks) {
    const [begin, stop] = [place(mark.start), place(mark.end)];
    paragraph.append(text.slice(end, begin));
    const element = make("mark", "", text.slice(begin, stop));
    if (mark.label) element.append(make("span", "tag", mark.label));
    paragraph.append(element);
    end = stop;
  }
  paragraph.append(text.slice(end));
  return paragraph;
}

function questionAnswering(answer, example) {
  const context = example.context;
  const place = placeOfByte(context);
  const textOf = (start, end) =>
    start < 0 ? "no answer" : context.slice(place(start), place(end));
  const said = textOf(answer.start, answer.end);
  const marks = answer.start < 0 ? [] : [{ start: answer.start, end: answer.end }];
  const best = answer.best_scores
    .map((score, index) => ({ score, index }))
    .filter(({ score }) => score > 0)
    .slice(0, MOST_BEST);
  const texts = best.map(({ index }) =>
    textOf(answer.best_starts[index], answer.best_ends[index]),
  );
  const rows = best.map(({ score }, rank) => bar(texts[rank], score, rank === 0));
  return {
    said,
    sure: percent(answer.score),
    parts: [
      headline(said, percent(answer.score)),
      marked(context, marks),
      list(texts, rows),
    ],
  };
}

function tagger(answer, example) {
  const text = example.text;
  const spans =
    "entities" in answer
      ? [answer.entity_labels, answer.entity_starts, answer.entity_ends]
      : [answer.tags, answer.word_starts, answer.word_ends];
  const marks = spans[0]
    .map((label, i) => ({ label, start: spans[1][i], end: spans[2][i] }))
    .filter(({ label, start }) => label && start >= 0);
  const place = placeOfByte(text);
  const said =
    marks
      .map((one) => `${text.slice(place(one.start), place(one.end))} (${one.label})`)
      .join(", ") || "nothing found";
  const paragraph = marked(text, marks);
  paragraph.classList.add("tagged");
  return { said, sure: "", parts: [paragraph], key: JSON.stringify(marks) };
}

function vectors(answer) {
  const numbers = Array.isArray(answer) ? answer : answer.embeddings;
  const norm = Math.hypot(...numbers);
  const first = numbers.slice(0, 8).map((number) => number.toFixed(3));
  return {
    said: `a vector of ${numbers.length} numbers`,
    sure: "",
    parts: [
      headline(`${numbers.length} numbers`, `norm ${norm.toFixed(3)}`),
      make("p", "numbers", `${first.join("  ")} …`),
    ],
  };
}

function other(answer) {
  const said = JSON.stringify(answer);
  return { said, sure: "", parts: [make("p", "numbers", said)] };
}

const KINDS = {
  classifier,
  multilabel,
  multiple_choice: multipleChoice,
  regressor,
  question_answering: questionAnswering,
  tagger,
  vectors,
  other,
};

/** What stands where an answer will, of its height as far as that is known. */
export function waiting(card) {
  return card.heads.flatMap((head) => [
    ...(head.name ? [make("h3", "", head.name)] : []),
    head.kind === "tagger" ? make("p", "marked tagged", "–") : headline("–", ""),
    ...(head.labels.length ? [bars(head.labels.slice(0, MOST_BARS), null, () => false)] : []),
  ]);
}

/**
 * The answer of a model to an example.
 *
 * Gives `parts`, elements; `said`, in words; and `heads`, what each head said.
 */
export function answered(card, prediction, example, seen) {
  const heads = card.heads.map((head) => {
    let own = prediction;
    if (head.name) {
      const keys = Object.keys(prediction).filter((key) => key.startsWith(`${head.name}_`));
      own = Object.fromEntries(
        keys.map((key) => [key.slice(head.name.length + 1), prediction[key]]),
      );
    }
    seen[head.name] ??= {};
    const answer = KINDS[head.kind](own, example, seen[head.name]);
    if (head.name) answer.parts.unshift(make("h3", "", head.name));
    return { ...answer, name: head.name };
  });
  return {
    heads,
    parts: heads.flatMap((head) => head.parts),
    said: heads
      .map(({ name, said, sure }) => `${name ? `${name} ` : ""}${said}${sure ? `, ${sure}` : ""}`)
      .join("; "),
  };
}

/** Whether the answers of several models are the same, in a sentence. */
export function agreement(models) {
  const [first, ...others] = models;
  const said = ({ name, answer }, index) => `${name} says ${answer.heads[index].said}`;
  const sentences = first.answer.heads.map((head, index) => {
    const label = head.name ? `${head.name}: ` : "";
    const heads = others.map((one) => one.answer.heads[index]);
    if (heads.some((one) => one === undefined)) return { same: false, text: "" };
    if (head.score !== undefined) {
      const scores = [head, ...heads].map((one) => one.score);
      const apart = (Math.max(...scores) - Math.min(...scores)).toFixed(3);
      return { same: apart === "0.000", text: `${label}They differ by ${apart}.` };
    }
    const same = heads.every((one) => (one.key ?? one.said) === (head.key ?? head.said));
    return {
      same,
      text: same
        ? `${label}They agree: ${head.said}.`
        : `${label}They disagree: ${models.map((one) => said(one, index)).join(", ")}.`,
    };
  });
  return {
    same: sentences.every(({ same }) => same),
    text: sentences.map(({ text }) => text).join(" "),
  };
}
