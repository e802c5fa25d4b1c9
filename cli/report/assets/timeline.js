// Draws the warps of a launch along their own time, a row for each. Returns how to begin anew.
"use strict";
function drawTimeline({ figures, one, make, clamp, said, rankOf, goToRank, kernel, unpack }, show) {
  const canvas = one("#time");
  if (!canvas) return { begin() {} };
  const style = getComputedStyle(document.documentElement), tip = one("#read-time"), axis = one("#cycles");
  const launch = one("#launch"), order = one("#rows");
  let timelines = [], timeline, rows = [], from = 0, to = 1, chosen = [0, 0], held = null;
  const OTHERS = 10;
  const extent = () => Math.max(1, ...rows.map((row) => row.cycles));
  const named = (name) => style.getPropertyValue(name).trim();
  const colour = (id) => named(id === 0 ? "--absent" : `--c${figures.colours[id] ?? OTHERS}`);

  /** Takes a launch: each row with where its columns begin. */
  function take() {
    timeline = timelines[Number(launch.value)];
    rows = timeline.rows.map((row) => {
      let column = 0;
      return { ...row, starts: row.columns.map(([, times]) => { const start = column; column += times; return start * timeline.width; }) };
    });
    if (order.value === "cycles") rows.sort((a, b) => b.cycles - a.cycles || a.warp - b.warp);
    [from, to, chosen] = [0, extent(), [0, 0]];
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
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (width === 0) return;
    const dots = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    pen.fillStyle = named("--absent");
    pen.fillRect(0, 0, width, height);
    const high = height / rows.length, unit = width / (to - from), colours = new Map();
    rows.forEach((row, at) => {
      for (let part = partAt(row, from); part < row.columns.length && row.starts[part] < to; part++) {
        const [id, times] = row.columns[part];
        if (!colours.has(id)) colours.set(id, colour(id));
        pen.fillStyle = colours.get(id);
        const left = Math.max(row.starts[part], from), right = Math.min(row.starts[part] + times * timeline.width, row.cycles, to);
        pen.fillRect((left - from) * unit, at * high, Math.max((right - left) * unit, 0.5), Math.max(high - (high > 4 ? 1 : 0), 1));
      }
    });
    pen.strokeStyle = named("--ink");
    if (document.activeElement === canvas) pen.strokeRect((chosen[1] - from) * unit, chosen[0] * high, Math.max(timeline.width * unit, 2), high);
    axis.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((part) =>
      make("span", { textContent: `${part === 0 ? "cycle " : ""}${said(Math.floor(from + part * (to - from)))}${part === 1 ? " →" : ""}` })));
  }
  /** The stretch of columns at a time. */
  function partAt({ starts }, time) {
    let low = 0, high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  }
  /** Says what a row shows at a time. */
  function read(at, time) {
    const row = rows[clamp(at, 0, rows.length - 1)];
    const start = Math.floor(clamp(time, 0, extent() - 1) / timeline.width) * timeline.width;
    chosen = [rows.indexOf(row), start];
    const id = start < row.cycles ? row.columns[partAt(row, start)]?.[0] ?? 0 : 0;
    const end = Math.min(start + timeline.width, row.cycles);
    const what = start >= row.cycles ? "it has ended" : id === 0 ? "not known" : figures.names[id];
    tip.textContent = `${row.name}, ${said(row.cycles)} cycles; cycle ${said(start)}${end > start + 1 ? ` to ${said(end)}` : ""}: ${what}`;
    const wide = canvas.clientWidth, x = ((start - from) / (to - from)) * wide;
    tip.classList.add("near");
    tip.style.left = `${clamp(x + 12, 0, Math.max(0, wide - tip.offsetWidth))}px`;
    return id;
  }
  function move(first, last) {
    const wide = clamp(last - first, Math.min(8 * timeline.width, extent()), extent()), start = clamp(first, 0, extent() - wide);
    if (Math.abs(start - from) + Math.abs(start + wide - to) < 1e-9) return false;
    [from, to] = [start, start + wide];
    draw();
    return true;
  }
  function zoom(by, around) {
    const middle = from + around * (to - from);
    return move(middle - (middle - from) * by, middle + (to - middle) * by);
  }
  const at = (event) => [Math.floor((event.offsetY / canvas.clientHeight) * rows.length), from + (event.offsetX / canvas.clientWidth) * (to - from)];
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, from, to, false]; });
  canvas.addEventListener("pointermove", (event) => {
    if (held && event.buttons) {
      const by = ((held[0] - event.clientX) / canvas.clientWidth) * (held[2] - held[1]);
      held[3] ||= Math.abs(held[0] - event.clientX) > 3;
      move(held[1] + by, held[2] + by);
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
  canvas.addEventListener("wheel", (event) => {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = ((event.deltaX || event.deltaY) / canvas.clientWidth) * (to - from);
      if (move(from + by, to + by)) event.preventDefault();
    } else if (zoom(Math.exp(clamp(event.deltaY, -200, 200) / 300), event.offsetX / canvas.clientWidth)) event.preventDefault();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], PageDown: [16, 0], PageUp: [-16, 0] }[event.key];
    if (by) {
      read(chosen[0] + by[0], chosen[1] + by[1] * timeline.width);
      if (chosen[1] < from || chosen[1] >= to) move(chosen[1] - (to - from) / 2, chosen[1] + (to - from) / 2);
      draw();
    } else if (event.key === "Home") { read(0, 0); draw(); } else if (event.key === "+" || event.key === "=") zoom(0.7, 0.5);
    else if (event.key === "-") zoom(1 / 0.7, 0.5);
    else if (event.key === "Enter") goToRank(rankOf.get(read(...chosen)));
    else return;
    event.preventDefault();
  });
  for (const event of ["focus", "blur"]) canvas.addEventListener(event, draw);
  for (const field of [launch, order]) field.addEventListener("change", take);
  one("#whole-time").addEventListener("click", () => move(0, extent()));
  addEventListener("resize", () => timeline && draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline && draw());
  /** Begins with the first launch of the kernel that is chosen. */
  async function begin() {
    ({ timelines } = await unpack());
    const found = timelines.findIndex((other) => kernel?.value && other.kernel === Number(kernel.value));
    launch.value = String(Math.max(found, 0));
    take();
  }
  return { begin };
}
