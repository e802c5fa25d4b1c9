// Goes from hot line to hot line, and draws the strips. The page can be read without it.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);

  // Hot lines: n and p.
  const rows = [...document.querySelectorAll(".hot")].sort((a, b) => a.dataset.rank - b.dataset.rank);
  const where = document.getElementById("where");
  let at = -1;
  function go(to) {
    if (rows.length === 0) return;
    at = Math.max(0, Math.min(rows.length - 1, to));
    const row = rows[at];
    row.closest("details").open = true;
    row.focus({ preventScroll: true });
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    row.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    const name = row.querySelector(".where").textContent;
    const line = row.querySelector(".number").textContent;
    const idle = row.querySelector(".heat b").textContent;
    where.textContent = `${at + 1} of ${rows.length}: ${line ? `line ${line}, ` : ""}${name}, ${idle} idle`;
  }
  for (const row of rows) {
    row.addEventListener("click", () => {
      // Text that is being selected stays selected.
      if (String(getSelection()) === "") go(rows.indexOf(row));
    });
  }
  if (rows.length > 0) {
    document.getElementById("jump").hidden = false;
    document.getElementById("next").addEventListener("click", () => go(at + 1));
    document.getElementById("previous").addEventListener("click", () => go(at - 1));
  }
  for (const link of document.querySelectorAll(".hottest a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      go(rows.findIndex((row) => row.dataset.rank === link.dataset.rank));
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input, textarea")) return;
    if (event.key === "n" || event.key === "j") go(at + 1);
    else if (event.key === "p" || event.key === "k") go(at - 1);
    else return;
    event.preventDefault();
  });

  // Strips: lanes downwards, events to the right.
  const LANES = 32;
  const scale = document.getElementById("scale");
  const strips = [...document.querySelectorAll("canvas[data-strip]")].map((canvas) => {
    const strip = figures.strips[canvas.dataset.strip];
    return { canvas, strip, output: document.getElementById(`read-${canvas.dataset.strip}`), chosen: -1, starts: [] };
  });
  const bit = (mask, lane) => (mask >>> lane) & 1;
  const count = (mask) => { let n = 0; for (let lane = 0; lane < LANES; lane++) n += bit(mask, lane); return n; };

  /** First position of each run, and behind the last one where they end. */
  function lay(view) {
    let end = 0;
    view.starts = view.strip.runs.map(([, , times]) => { const start = end; end += scale.value === "runs" ? 1 : times; return start; });
    view.starts.push(end);
  }

  function draw(view) {
    const { canvas, strip, starts } = view;
    // Browsers limit how wide a canvas can be.
    canvas.style.width = scale.value === "runs" ? `max(100%, ${Math.min(strip.runs.length * 3, 9000)}px)` : "";
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (width === 0) return;
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    const dots = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    pen.fillStyle = value("--idle");
    pen.fillRect(0, 0, width, height);
    const row = height / LANES, step = width / starts[starts.length - 1];
    strip.runs.forEach(([location, mask], run) => {
      const left = starts[run] * step, wide = Math.max((starts[run + 1] - starts[run]) * step, 0.5);
      // A gap between runs where there is room for one.
      const gap = wide > 6 ? 1 : 0;
      pen.fillStyle = value(`--c${figures.colours[location]}`);
      for (let lane = 0; lane < LANES; lane++) {
        if (bit(mask, lane)) pen.fillRect(left, lane * row, wide - gap, row - (row > 3 ? 0.5 : 0));
      }
    });
    pen.fillStyle = value("--absent");
    for (let lane = 0; lane < LANES; lane++) {
      if (!bit(strip.lane_mask, lane)) pen.fillRect(0, lane * row, width, row);
    }
    if (view.chosen >= 0) {
      pen.strokeStyle = value("--ink");
      pen.lineWidth = 1.5;
      const left = starts[view.chosen] * step;
      pen.strokeRect(left, 0.75, Math.max((starts[view.chosen + 1] - starts[view.chosen]) * step, 2), height - 1.5);
    }
  }

  function choose(view, run) {
    view.chosen = Math.max(0, Math.min(view.strip.runs.length - 1, run));
    const [location, mask, times] = view.strip.runs[view.chosen];
    const first = view.strip.runs.slice(0, view.chosen).reduce((sum, [, , more]) => sum + more, 0);
    const events = times === 1 ? `event ${first.toLocaleString("en")}`
      : `events ${first.toLocaleString("en")} to ${(first + times - 1).toLocaleString("en")}`;
    const hex = (mask >>> 0).toString(16).padStart(8, "0");
    view.output.textContent = `${events}: ${figures.names[location]}, ${count(mask)} lanes (0x${hex})`;
    draw(view);
  }

  function runAt(view, x) {
    const { starts } = view;
    const at = (x / view.canvas.clientWidth) * starts[starts.length - 1];
    let low = 0, high = starts.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= at) low = middle; else high = middle - 1;
    }
    return low;
  }

  for (const view of strips) {
    view.canvas.addEventListener("pointermove", (event) => choose(view, runAt(view, event.offsetX)));
    view.canvas.addEventListener("pointerdown", (event) => choose(view, runAt(view, event.offsetX)));
    view.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[event.key];
      if (step) choose(view, view.chosen + step);
      else if (event.key === "Home") choose(view, 0);
      else if (event.key === "End") choose(view, view.strip.runs.length - 1);
      else return;
      event.preventDefault();
    });
  }
  // What does not fit is cut off at both sides alike.
  for (const graph of document.querySelectorAll(".graph")) graph.scrollLeft = (graph.scrollWidth - graph.clientWidth) / 2;

  const redraw = () => strips.forEach((view) => { lay(view); draw(view); });
  if (scale) {
    scale.addEventListener("change", redraw);
    addEventListener("resize", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    redraw();
  }
})();
