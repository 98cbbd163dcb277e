// Keys that work in every view, and the help that names them.
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { go } from "../state/route";

export const VIEWS = [
  { key: "1", to: "#/cluster", name: "Cluster" },
  { key: "2", to: "#/locks", name: "Locks" },
  { key: "3", to: "#/hot", name: "Hot" },
  { key: "4", to: "#/expiring", name: "Expiring" },
  { key: "5", to: "#/events", name: "Events" },
  { key: "6", to: "#/rates", name: "Rates" },
];

export const helpIsOpen = signal(false);

export function listen(): void {
  addEventListener("keydown", (event) => {
    const target = event.target;
    const typing = target instanceof HTMLInputElement || (target instanceof HTMLElement && target.closest("dialog"));
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) {
      // Out of the field and into what was found.
      if (event.key === "Escape" && target instanceof HTMLInputElement && target.matches("[data-search]")) firstRow();
      return;
    }
    const view = VIEWS.find((one) => one.key === event.key);
    if (view) go(view.to);
    else if (event.key === "/") search();
    else if (event.key === "?") helpIsOpen.value = true;
    else if ((event.key === "j" || event.key === "ArrowDown") && !isInRows(target)) firstRow();
    else return;
    event.preventDefault();
  });
}

function isInRows(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest(".rows") !== null;
}

function firstRow(): void {
  document.querySelector<HTMLElement>(".rows .body .row[tabindex='0']")?.focus();
}

/** To the field of this view, or of the locks. */
function search(): void {
  const field = () => document.querySelector<HTMLInputElement>("[data-search]");
  if (!field()) go("#/locks");
  setTimeout(() => {
    field()?.focus();
    field()?.select();
  });
}

const KEYS = [
  ["1 … 6", "the views, in the order of their names above"],
  ["/", "search locks, or narrow down events"],
  ["Esc", "out of the search field, into the rows"],
  ["↓ ↑ or j k", "from row to row; Page Down, Page Up, Home and End too"],
  ["Enter", "open the lock of a row"],
  ["Alt ←", "back, as everywhere in a browser: each view has an address"],
  ["?", "this help"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpIsOpen.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  if (!open) return null;
  return (
    <dialog ref={dialog} onClose={() => (helpIsOpen.value = false)} aria-labelledby="help-title">
      <form method="dialog">
        <h2 id="help-title">Keys</h2>
        <dl class="keys">
          {KEYS.map(([keys, what]) => (
            <div key={keys}>
              <dt>{keys}</dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <div class="buttons">
          <button type="submit">Close</button>
        </div>
      </form>
    </dialog>
  );
}
