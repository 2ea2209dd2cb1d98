/** Draws bars as SVG. The page's policy forbids inline styles, but allows attributes of SVG. */
import { type Markup, markup } from "./markup.ts";

/** `kind`: a class in the style sheet. */
export type BarPart = { kind: string; size: number; title: string };

/** Draws the parts of one whole side by side. */
export function stackedBar(parts: readonly BarPart[]): Markup {
  const whole = parts.reduce((sum, { size }) => sum + size, 0) || 1;
  let at = 0;
  const rects = parts
    .filter(({ size }) => size > 0)
    .map(({ kind, size, title }) => {
      const x = at;
      at += (100 * size) / whole;
      return markup`<rect class="${kind}" x="${x.toFixed(3)}%" width="${((100 * size) / whole).toFixed(3)}%" height="100%"><title>${title}</title></rect>`;
    });
  return markup`<svg class="bar" role="img" width="100%" height="14" aria-label="${parts.map(({ title }) => title).join("; ")}">${rects}</svg>`;
}

/** Draws one bar of a list. Its length is its share of the largest value. */
export function shareBar(value: number, most: number, kind = "fill"): Markup {
  const width = most === 0 ? 0 : Math.max(0.5, (100 * value) / most);
  return markup`<svg class="share" width="100%" height="10" aria-hidden="true"><rect class="${kind}" width="${width.toFixed(2)}%" height="100%"/></svg>`;
}
