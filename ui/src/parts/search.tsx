// The field that narrows a view down to names that begin with a text. What was typed is in the URL.
import { useEffect, useState } from "preact/hooks";
import { go, toPrefix } from "../state/route";

/** Typing is over when nothing was typed for so long. */
const SETTLED_MS = 200;

export function Search({ view, prefix }: { view: "locks" | "events"; prefix: string }) {
  const [text, setText] = useState(prefix);
  useEffect(() => setText(prefix), [prefix]);
  useEffect(() => {
    if (text === prefix) return undefined;
    const timer = setTimeout(() => go(toPrefix(view, text), true), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text, prefix, view]);
  return (
    <label class="search">
      <span class="dim">begins with</span>
      <input
        type="search"
        data-search
        value={text}
        placeholder="a prefix, such as orders/"
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}
