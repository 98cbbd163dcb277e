// Numbers and untrusted texts, as a person reads them.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `4.2 s`, `1 m 03 s`, `2 h 05 m`, `3 d 4 h`. */
export function duration(ms: number): string {
  const left = Math.max(0, ms);
  if (left < 10 * SECOND) return `${(Math.floor(left / 100) / 10).toFixed(1)} s`;
  if (left < MINUTE) return `${Math.floor(left / SECOND)} s`;
  if (left < HOUR) return `${Math.floor(left / MINUTE)} m ${two((left % HOUR % MINUTE) / SECOND)} s`;
  if (left < DAY) return `${Math.floor(left / HOUR)} h ${two((left % HOUR) / MINUTE)} m`;
  return `${Math.floor(left / DAY)} d ${Math.floor((left % DAY) / HOUR)} h`;
}

/** Time of day, on this browser's clock. */
export function clockTime(at: Date): string {
  return at.toTimeString().slice(0, 8);
}

function two(value: number): string {
  return String(Math.floor(value)).padStart(2, "0");
}

/** Whole numbers with thin groups: `10 000`. */
export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

/** `0.4`, `12`, `3.1 k`, `1.2 M`. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${trimmed(value / 1e6)} M`;
  if (size >= 1e4) return `${trimmed(value / 1e3)} k`;
  return trimmed(value);
}

function trimmed(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toString();
  return size >= 10 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(2).replace(/0$/, "").replace(/\.0$/, "");
}

/** `0.8 ms`, `1.2 s`. */
export function seconds(value: number): string {
  if (value === 0) return "0";
  if (value < 1e-3) return `${trimmed(value * 1e6)} µs`;
  if (value < 1) return `${trimmed(value * 1e3)} ms`;
  return value < 60 ? `${trimmed(value)} s` : duration(value * 1000);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value: number): string {
  let [left, unit] = [value, 0];
  while (left >= 1024 && unit < UNITS.length - 1) [left, unit] = [left / 1024, unit + 1];
  return `${trimmed(left)} ${UNITS[unit]}`;
}

/** Characters that can't be seen and change how others are: they could make one name look like another. */
const HIDDEN = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Somebody else's text with what is hidden in it made visible. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (found) => `⟨U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** One word of a shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
