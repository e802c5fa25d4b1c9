// A scale of which a part is shown, and canvases along it: strips of lanes, and the timeline.
"use strict";
/** `extent` returns how long the scale is, `least` how much of it is shown at least; `draw` draws it anew. */
function makeScale({ make, clamp, said }, extent, least, draw) {
  const scale = { from: 0, to: 1, whole, move, at, left, follow, wheel, key, pen, mark, near };
  function whole() { [scale.from, scale.to] = [0, extent()]; }
  /** Shows another part; says whether it is another. */
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
  /** The position on the scale of a pixel of a canvas, and the pixel of a position. */
  function at(canvas, x) { return scale.from + (x / canvas.clientWidth) * (scale.to - scale.from); }
  function left(canvas, position) { return ((position - scale.from) / (scale.to - scale.from)) * canvas.clientWidth; }
  /** Shows a position in the middle. */
  function follow(position) {
    const half = (scale.to - scale.from) / 2;
    return move(position - half, position + half);
  }
  /** Moves and zooms by the wheel over a canvas; the page scrolls where there is no more to show. */
  function wheel(canvas) {
    canvas.addEventListener("wheel", (event) => {
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = ((event.deltaX || event.deltaY) / canvas.clientWidth) * (scale.to - scale.from);
        if (move(scale.from + by, scale.to + by)) event.preventDefault();
      } else if (zoom(Math.exp(clamp(event.deltaY, -200, 200) / 300), event.offsetX / canvas.clientWidth)) event.preventDefault();
    }, { passive: false });
  }
  /** Takes a key, if it zooms; says whether it does. */
  function key(event) {
    const by = { "+": 0.7, "=": 0.7, "-": 1 / 0.7 }[event.key];
    if (by) zoom(by, 0.5);
    return by !== undefined;
  }
  /** Returns what draws on a canvas, as sharp as the screen; nothing while it is not shown. */
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
  /** Writes positions below a canvas; the first says what they are. */
  function mark(axis, what) {
    const { from, to } = scale;
    axis.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((part) =>
      make("span", { textContent: `${part === 0 ? `${what} ` : ""}${said(Math.floor(from + part * (to - from)))}${part === 1 ? " →" : ""}` })));
  }
  /** Puts what is read beside a pixel of a canvas. */
  function near(tip, canvas, x) {
    tip.classList.add("near");
    tip.style.left = `${clamp(x + 12, 0, Math.max(0, canvas.clientWidth - tip.offsetWidth))}px`;
  }
  return scale;
}
/** The last of the first `count` starts that is not behind a position. */
function lastStart(starts, count, position) {
  let low = 0, high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= position) low = middle; else high = middle - 1;
  }
  return low;
}
