// Words of a text, what they owe, and bytes of UTF-8 as places in a string of UTF-16.

// As `find_words` of keras_recbert/data/word_spans.py, with the browser's Unicode.
const CJK =
  "\\u{3400}-\\u{4DBF}\\u{4E00}-\\u{9FFF}\\u{F900}-\\u{FAFF}\\u{20000}-\\u{2A6DF}" +
  "\\u{2A700}-\\u{2B81F}\\u{2B920}-\\u{2CEAF}\\u{2F800}-\\u{2FA1F}";
const LETTER = `[^\\s\\p{P}$+<=>^\`|~${CJK}]`;
const CLITIC = `(?:[sS]|[mM]|[dD]|[lL][lL]|[rR][eE]|[vV][eE])(?!${LETTER})`;
const NOT = `(?:[nN]['’][tT])(?!${LETTER})`;
const WORD = new RegExp(
  [
    "\\[MASK\\]|-[lLrR][rRcCsS][bB]-",
    `(?<!${LETTER})(?:${LETTER}\\.){2,}(?!${LETTER})`,
    `${LETTER}+?(?=${NOT})|${NOT}`,
    `['’]${CLITIC}`,
    `${LETTER}+(?:(?:-|(?<=\\d)[.,:\\/](?=\\d)|['’](?!${CLITIC}))${LETTER}+)*`,
    `[${CJK}]`,
    "(\\S)\\1*",
  ].join("|"),
  "gu",
);

/** Where each word of a text begins and ends: a list of pairs. */
export function findWords(text) {
  return [...text.matchAll(WORD)].map((found) => [
    found.index,
    found.index + found[0].length,
  ]);
}

/** The text with each of its words masked in turn. */
export function maskEach(text, spans) {
  return spans.map(([begin, end]) => `${text.slice(0, begin)}[MASK]${text.slice(end)}`);
}

/** Entropy of probabilities, in bits. */
export function entropy(scores) {
  const sum = scores.reduce((all, p) => all - (p > 0 ? p * Math.log2(p) : 0), 0);
  return Math.max(0, sum);
}

/** A function from a byte of a text in UTF-8 to a place in its string. */
export function placeOfByte(text) {
  const places = [];
  let place = 0;
  for (const character of text) {
    const code = character.codePointAt(0);
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let count = 0; count < bytes; count += 1) places.push(place);
    place += character.length;
  }
  return (byte) => (byte < places.length ? places[byte] : text.length);
}
