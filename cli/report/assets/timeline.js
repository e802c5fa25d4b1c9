// Draws the warps of a launch along their own time, one row each. Returns a function that redraws them.
"use strict";
function drawTimeline({ figures, one, make, clamp, said, rankOf, goToRank, kernel, unpack }, show) {
  const canvas = one("#time");
  if (!canvas) return { begin() {} };
  const style = getComputedStyle(document.documentElement), tip = one("#read-time"), axis = one("#cycles");
  const launch = one("#launch"), order = one("#rows");
  let timelines = [], timeline, rows = [], chosen = [0, 0], held = null;
  const OTHERS = 10;
  const extent = () => Math.max(1, ...rows.map((row) => row.cycles));
  const part = makeScale({ make, clamp, said }, extent, () => 8 * timeline.width, draw);
  const named = (name) => style.getPropertyValue(name).trim();
  const colour = (id) => named(id === 0 ? "--absent" : `--c${figures.colours[id] ?? OTHERS}`);

  /** Loads the selected launch: each row with the start of its columns. */
  function take() {
    timeline = timelines[Number(launch.value)];
    rows = timeline.rows.map((row) => {
      let column = 0;
      return { ...row, starts: row.columns.map(([, times]) => { const start = column; column += times; return start * timeline.width; }) };
    });
    if (order.value === "cycles") rows.sort((a, b) => b.cycles - a.cycles || a.warp - b.warp);
    chosen = [0, 0];
    part.whole();
    const some = rows.length < timeline.warps ? `${said(rows.length)} of ${said(timeline.warps)} warps: an eighth with the most cycles, others evenly spread` : `all ${said(rows.length)} warps`;
    one("#timed").textContent = `${some}; a column is ${said(timeline.width)} ${timeline.width === 1 ? "cycle" : "cycles"}.`;
    canvas.style.height = `${clamp(rows.length * 6, 48, 512)}px`;
    const ids = [...new Set(rows.flatMap((row) => row.columns.map(([id]) => id)))].sort((a, b) => (figures.colours[a] ?? -1) - (figures.colours[b] ?? -1));
    const own = ids.filter((id) => id > 0 && figures.colours[id] < OTHERS);
    const key = (id, text) => { const item = make("li"), swatch = make("span", { className: "swatch" }); swatch.style.background = colour(id); item.append(swatch, text); return item; };
    const others = ids.filter((id) => id > 0 && figures.colours[id] >= OTHERS);
    one("#time-colours").replaceChildren(
      ...own.map((id) => key(id, figures.names[id])),
      ...(others.length ? [key(others[0], `${said(others.length)} others`)] : []), key(0, "the warp has ended, or its time is not known"));
    draw();
  }
  function draw() {
    const pen = part.pen(canvas, named("--absent"));
    if (!pen) return;
    const width = canvas.clientWidth, height = canvas.clientHeight, { from, to } = part;
    const high = height / rows.length, unit = width / (to - from), colours = new Map();
    rows.forEach((row, number) => {
      for (let at = columnAt(row, from); at < row.columns.length && row.starts[at] < to; at++) {
        const [id, times] = row.columns[at];
        if (!colours.has(id)) colours.set(id, colour(id));
        pen.fillStyle = colours.get(id);
        const left = Math.max(row.starts[at], from), right = Math.min(row.starts[at] + times * timeline.width, row.cycles, to);
        pen.fillRect((left - from) * unit, number * high, Math.max((right - left) * unit, 0.5), Math.max(high - (high > 4 ? 1 : 0), 1));
      }
    });
    pen.strokeStyle = named("--ink");
    if (document.activeElement === canvas) pen.strokeRect((chosen[1] - from) * unit, chosen[0] * high, Math.max(timeline.width * unit, 2), high);
    part.mark(axis, "cycle");
  }
  /** Returns the group of equal columns at a time. */
  function columnAt({ starts }, time) { return lastStart(starts, starts.length, time); }
  /** Selects and describes the column of a row at a time. */
  function read(at, time) {
    const row = rows[clamp(at, 0, rows.length - 1)];
    const start = Math.floor(clamp(time, 0, extent() - 1) / timeline.width) * timeline.width;
    chosen = [rows.indexOf(row), start];
    const id = start < row.cycles ? row.columns[columnAt(row, start)]?.[0] ?? 0 : 0;
    const end = Math.min(start + timeline.width, row.cycles);
    const what = start >= row.cycles ? "it has ended" : id === 0 ? "not known" : figures.names[id];
    tip.textContent = `${row.name}, ${said(row.cycles)} cycles; cycle ${said(start)}${end > start + 1 ? ` to ${said(end)}` : ""}: ${what}`;
    part.near(tip, canvas, part.left(canvas, start));
    return id;
  }
  const at = (event) => [Math.floor((event.offsetY / canvas.clientHeight) * rows.length), part.at(canvas, event.offsetX)];
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, part.from, part.to, false]; });
  canvas.addEventListener("pointermove", (event) => {
    if (held && event.buttons) {
      const by = ((held[0] - event.clientX) / canvas.clientWidth) * (held[2] - held[1]);
      held[3] ||= Math.abs(held[0] - event.clientX) > 3;
      part.move(held[1] + by, held[2] + by);
    } else read(...at(event));
  });
  canvas.addEventListener("pointerleave", () => { tip.classList.remove("near"); });
  canvas.addEventListener("click", (event) => {
    const wasMoved = held?.[3];
    held = null;
    if (wasMoved) return;
    read(...at(event));
    show(`${timeline.launch}:${rows[chosen[0]].warp}`);
  });
  part.wheel(canvas);
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], PageDown: [16, 0], PageUp: [-16, 0] }[event.key];
    if (by) {
      read(chosen[0] + by[0], chosen[1] + by[1] * timeline.width);
      if (chosen[1] < part.from || chosen[1] >= part.to) part.follow(chosen[1]);
      draw();
    } else if (event.key === "Home") { read(0, 0); draw(); } else if (event.key === "Enter") goToRank(rankOf.get(read(...chosen)));
    else if (!part.key(event)) return;
    event.preventDefault();
  });
  for (const event of ["focus", "blur"]) canvas.addEventListener(event, draw);
  for (const field of [launch, order]) field.addEventListener("change", take);
  one("#whole-time").addEventListener("click", () => { part.whole(); draw(); });
  addEventListener("resize", () => timeline && draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline && draw());
  /** Shows the first launch of the selected kernel. */
  async function begin() {
    ({ timelines } = await unpack());
    const found = timelines.findIndex((other) => kernel?.value && other.kernel === Number(kernel.value));
    launch.value = String(Math.max(found, 0));
    take();
  }
  return { begin };
}
