// A scale with a visible range, for canvases that share it: strips of lanes, the timeline, and blocks.
"use strict";
/** `extent` returns the length of the scale, `least` the minimum length of the visible range; `draw` redraws. */
function makeScale({ make, clamp, said }, extent, least, draw) {
  const scale = { from: 0, to: 1, whole, move, at, left, follow, wheel, key, pen, mark, near };
  function whole() { [scale.from, scale.to] = [0, extent()]; }
  /** Sets the visible range. Returns true if it changed. */
  function move(first, last) {
    const { from, to } = scale;
    const wide = clamp(last - first, Math.min(least(), extent()), extent()), start = clamp(first, 0, extent() - wide);
    if (Math.abs(start - from) + Math.abs(start + wide - to) < 1e-9) return false;
    [scale.from, scale.to] = [start, start + wide];
    draw();
    return true;
  }
  function zoom(by, around) {
    const { from, to } = scale, middle = from + around * (to - from);
    return move(middle - (middle - from) * by, middle + (to - middle) * by);
  }
  /** `at` converts a pixel of a canvas to a position on the scale, `left` a position to a pixel. */
  function at(canvas, x) { return scale.from + (x / canvas.clientWidth) * (scale.to - scale.from); }
  function left(canvas, position) { return ((position - scale.from) / (scale.to - scale.from)) * canvas.clientWidth; }
  /** Centres the visible range on a position. */
  function follow(position) {
    const half = (scale.to - scale.from) / 2;
    return move(position - half, position + half);
  }
  /** Moves and zooms with the wheel over a canvas. At the limits, the page scrolls instead. */
  function wheel(canvas) {
    canvas.addEventListener("wheel", (event) => {
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = ((event.deltaX || event.deltaY) / canvas.clientWidth) * (scale.to - scale.from);
        if (move(scale.from + by, scale.to + by)) event.preventDefault();
      } else if (zoom(Math.exp(clamp(event.deltaY, -200, 200) / 300), event.offsetX / canvas.clientWidth)) event.preventDefault();
    }, { passive: false });
  }
  /** Zooms if the key is a zoom key. Returns true if it is. */
  function key(event) {
    const by = { "+": 0.7, "=": 0.7, "-": 1 / 0.7 }[event.key];
    if (by) zoom(by, 0.5);
    return by !== undefined;
  }
  /** Returns a cleared drawing context with the resolution of the screen, or null while the canvas is not shown. */
  function pen(canvas, background) {
    const width = canvas.clientWidth, height = canvas.clientHeight, dots = window.devicePixelRatio || 1;
    if (width === 0) return null;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    const made = canvas.getContext("2d");
    made.scale(dots, dots);
    made.fillStyle = background;
    made.fillRect(0, 0, width, height);
    return made;
  }
  /** Writes positions below a canvas. The first has the unit `what`. */
  function mark(axis, what) {
    const { from, to } = scale;
    axis.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((part) =>
      make("span", { textContent: `${part === 0 ? `${what} ` : ""}${said(Math.floor(from + part * (to - from)))}${part === 1 ? " →" : ""}` })));
  }
  /** Places a tooltip next to a pixel of a canvas. */
  function near(tip, canvas, x) {
    tip.classList.add("near");
    tip.style.left = `${clamp(x + 12, 0, Math.max(0, canvas.clientWidth - tip.offsetWidth))}px`;
  }
  return scale;
}
/** Returns the index of the last of the first `count` starts that is at or before a position. */
function lastStart(starts, count, position) {
  let low = 0, high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= position) low = middle; else high = middle - 1;
  }
  return low;
}
