// Requests to the server, and the lines of a shell that ask the same.

/** An error whose message is a sentence for the user. */
export class Told extends Error {}

async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Told("The server does not answer. Start it again: recbert play MODEL.");
  }
}

async function parsed(response) {
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Told(`The server answered what is not JSON: ${text.slice(0, 80)}`);
  }
  if (!response.ok) throw new Told(value.error ?? `The server answered ${response.status}.`);
  return value;
}

/** The value of JSON at a path. */
export async function get(path) {
  return parsed(await fetched(path));
}

export const addressOf = (model) => `/v1/models/${encodeURIComponent(model)}:predict`;

/** The answer to a body; its milliseconds, here and by the server's own clock. */
export async function predict(model, body, signal) {
  const begin = performance.now();
  const response = await fetched(addressOf(model), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const value = await parsed(response);
  const milliseconds = performance.now() - begin;
  const told = /predict;dur=([\d.]+)/.exec(response.headers.get("Server-Timing") ?? "");
  return { value, milliseconds, server: told ? Number(told[1]) : null };
}

/** A body that asks for one example. */
export function bodyOf(example) {
  const values = Object.values(example);
  return { instances: [values.length === 1 ? values[0] : example] };
}

/** The line of a shell that asks the same. */
export function curlOf(model, body) {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl -d '${quoted}' ${location.origin}${addressOf(model)}`;
}
