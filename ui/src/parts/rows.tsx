// A table of which only the visible rows exist, and that the arrow keys walk through.
import type { ComponentChildren, TargetedKeyboardEvent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Pixels; the style sheet has the same. */
const ROW = 28;
/** Rows beyond what is visible, so that scrolling shows no gap. */
const SPARE = 12;

interface RowsProps {
  label: string;
  /** Class that says how wide the columns are. */
  columns: string;
  head: string[];
  count: number;
  /** The cells of a row. */
  cells: (index: number) => ComponentChildren[];
  /** What makes a row the same one when it moves. */
  name: (index: number) => string;
  /** Which rows are visible; called when that changes. */
  onVisible?: (first: number, last: number) => void;
  /** Shown in place of rows when there are none. */
  empty?: ComponentChildren;
  /** Grow with the content up to so many rows, in place of filling the window. */
  most?: number;
  mark?: (index: number) => string;
}

export function Rows(props: RowsProps) {
  const { label, columns, head, count, cells, name, onVisible, empty, most, mark } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const wanted = useRef<number | null>(null);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = new ResizeObserver(() => setHeight(element.clientHeight));
    measure.observe(element);
    return () => measure.disconnect();
  }, []);

  const first = Math.max(0, Math.min(Math.floor(top / ROW) - SPARE, count - 1));
  const last = Math.min(count, Math.ceil((top + height) / ROW) + SPARE);
  useEffect(() => onVisible?.(first, last), [first, last, count, onVisible]);

  // The row that the keys are on exists wherever the table is scrolled to, or the focus would be lost.
  const at = Math.min(active, Math.max(0, count - 1));
  const shown: number[] = [];
  if (count > 0 && at < first) shown.push(at);
  for (let index = first; index < last; index += 1) shown.push(index);
  if (count > 0 && at >= last) shown.push(at);

  useEffect(() => {
    if (wanted.current === null) return;
    const row = box.current?.querySelector<HTMLElement>(`[data-index="${wanted.current}"]`);
    if (!row) return;
    wanted.current = null;
    row.focus({ preventScroll: true });
  });

  const move = (to: number) => {
    const element = box.current;
    const next = Math.max(0, Math.min(count - 1, to));
    if (!element || count === 0) return;
    // The head stays above the rows.
    const [begin, end] = [element.scrollTop, element.scrollTop + element.clientHeight - ROW];
    if (next * ROW < begin) element.scrollTop = next * ROW;
    else if ((next + 1) * ROW > end) element.scrollTop = (next + 1) * ROW - element.clientHeight + ROW;
    wanted.current = next;
    setActive(next);
  };
  const page = Math.max(1, Math.floor(height / ROW) - 2);
  const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = steps[event.key];
    // Keys may come faster than the focus follows them: the row they are on is the one that it is on its way to.
    const coming = wanted.current === null ? null : box.current?.querySelector(`[data-index="${wanted.current}"]`);
    const row = coming ?? (event.target instanceof HTMLElement && event.target.role === "row" ? event.target : null);
    if (step !== undefined) move((wanted.current ?? at) + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(count - 1);
    else if (event.key === "Enter" && row) row.querySelector("a")?.click();
    else return;
    event.preventDefault();
  };

  const size = most === undefined ? {} : { height: `${ROW * (Math.min(Math.max(count, 2), most) + 1) + 2}px` };
  return (
    <div
      class={`rows ${columns} ${most === undefined ? "fills" : ""}`}
      style={size}
      ref={box}
      role="table"
      aria-label={label}
      aria-rowcount={count + 1}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="row header" role="row" aria-rowindex={1}>
        {head.map((title) => (
          <span role="columnheader" key={title}>
            {title}
          </span>
        ))}
      </div>
      {count === 0 && empty}
      <div class="body" role="rowgroup" style={{ height: `${count * ROW}px` }}>
        {shown.map((index) => (
          <div
            class={`row ${mark?.(index) ?? ""}`}
            role="row"
            key={name(index)}
            data-index={index}
            aria-rowindex={index + 2}
            style={{ transform: `translateY(${index * ROW}px)` }}
            tabIndex={index === at ? 0 : -1}
            onFocusIn={() => {
              wanted.current = null;
              setActive(index);
            }}
          >
            {cells(index).map((cell, column) => (
              <span role="cell" key={column}>
                {cell}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
