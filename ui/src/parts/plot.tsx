// One small plot: lines over the last minutes, with their newest values beside their names.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colours } from "../state/theme";
import type { Points } from "../metrics/history";
import { clockTime } from "./words";

export interface Line {
  label: string;
  points: Points;
}

interface PlotProps {
  title: string;
  /** What it tells, and of whom: this node, or the cluster. */
  about: string;
  /** Milliseconds since 1970. */
  times: number[];
  lines: Line[];
  form: (value: number) => string;
}

const HEIGHT = 130;
/** The plots of a page show one moment under the pointer. */
const SYNC = uPlot.sync("plots");

export function Plot({ title, about, times, lines, form }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [under, setUnder] = useState<number | null>(null);
  const formed = useRef(form);
  formed.current = form;
  const names = lines.map((line) => line.label).join("\n");
  const drawn = colours.value;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const made = new uPlot(options(element, names.split("\n"), (value) => formed.current(value), setUnder), [[]], element);
    plot.current = made;
    const measure = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    measure.observe(element);
    return () => {
      measure.disconnect();
      plot.current = null;
      made.destroy();
    };
  }, [names, drawn]);

  useEffect(() => {
    const seconds = times.map((time) => time / 1000);
    plot.current?.setData([seconds, ...lines.map((line) => line.points)]);
  });

  const at = under ?? times.length - 1;
  return (
    <section class="plot" aria-label={title}>
      <h2 title={about}>{title}</h2>
      <ul class="legend">
        {lines.map((line, index) => {
          const value = line.points[at];
          return (
            <li key={line.label} class={`line${index}`}>
              {line.label} <b>{value === null || value === undefined ? "–" : form(value)}</b>
            </li>
          );
        })}
      </ul>
      <div class="canvas" ref={box} aria-hidden="true" />
    </section>
  );
}

function options(
  element: HTMLElement,
  names: string[],
  form: (value: number) => string,
  setUnder: (index: number | null) => void,
): uPlot.Options {
  // A canvas needs the colour itself, not what it depends on: the browser is asked what it makes of it.
  const colour = (name: string) => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  const axis = {
    stroke: colour("--dim"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: { key: SYNC.key } },
    hooks: { setCursor: [(self) => setUnder(self.cursor.idx ?? null)] },
    scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1e-9)] } },
    axes: [
      { ...axis, size: 22, space: 70, values: (_, ticks) => ticks.map((tick) => clockTime(new Date(tick * 1000))) },
      { ...axis, size: 58, space: 32, values: (_, ticks) => once(ticks.map(form)) },
    ],
    series: [
      {},
      ...names.map((label, index) => ({
        label,
        stroke: colour(`--line${index}`),
        width: 1.5,
        spanGaps: false,
        points: { show: false },
      })),
    ],
  };
}

/** Labels of ticks that are closer than they can be told apart stand there once. */
function once(labels: string[]): string[] {
  return labels.map((label, at) => (label === labels[at - 1] ? "" : label));
}
