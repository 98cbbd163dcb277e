// Prometheus' text format, as far as a node writes it.

export interface Series {
  name: string;
  labels: Record<string, string>;
}

/** Value by series, which is named as in the text: `name{label="value"}`. */
export type Sample = Map<string, number>;

const known = new Map<string, Series>();

/** Reads the lines that are numbers. */
export function parse(text: string): Sample {
  const sample: Sample = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const at = line.lastIndexOf(" ");
    const value = Number(line.slice(at + 1).replace("Inf", "Infinity"));
    if (at > 0 && !Number.isNaN(value)) sample.set(line.slice(0, at), value);
  }
  return sample;
}

/** Takes a series' name apart; each is done once. */
export function series(key: string): Series {
  const found = known.get(key);
  if (found) return found;
  const brace = key.indexOf("{");
  const labels: Record<string, string> = {};
  if (brace >= 0) {
    for (const [, label = "", value = ""] of key.slice(brace).matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
      labels[label] = value;
    }
  }
  const made = { name: brace < 0 ? key : key.slice(0, brace), labels };
  known.set(key, made);
  return made;
}
