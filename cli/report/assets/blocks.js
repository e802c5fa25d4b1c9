// Draws the blocks of a launch by multiprocessor on a common time axis. Returns a function that redraws them.
"use strict";
function drawBlocks({ figures, one, make, clamp, said, rankOf, goToRank, kernel, unpack }, show) {
  const canvas = one("#placed-blocks");
  if (!canvas) return { begin() {} };
  const style = getComputedStyle(document.documentElement), tip = one("#read-block"), axis = one("#nanoseconds");
  const launch = one("#placed"), labels = one("#sms"), OTHERS = 10;
  let placed = [], drawn, rows = [], chosen = [0, 0], held = null;
  const extent = () => Math.max(1, drawn?.nanoseconds ?? 1);
  const part = makeScale({ make, clamp, said }, extent, () => 8, draw);
  const named = (name) => style.getPropertyValue(name).trim();
  const colour = (id) => named(id === 0 ? "--soft" : `--c${figures.colours[id] ?? OTHERS}`);
  const end = (block) => (block.nanoseconds === null ? drawn.nanoseconds : block.begin_nanoseconds + block.nanoseconds);

  /** Loads the selected launch: its rows, each with its blocks in order of begin. */
  function take() {
    drawn = placed[Number(launch.value)];
    rows = drawn.sms.flatMap(({ sm, rows, blocks }) =>
      Array.from({ length: rows }, (_, row) => ({ sm, first: row === 0, blocks: blocks.filter((block) => block.row === row) })));
    chosen = [0, 0];
    part.whole();
    const blocks = drawn.sms.reduce((sum, { blocks }) => sum + blocks.length, 0);
    const some = blocks < drawn.blocks ? `${said(blocks)} of ${said(drawn.blocks)} blocks, on ${said(drawn.sms.length)} of ${said(drawn.multiprocessors)} SMs: that of the last block, and others evenly spread` : `all ${said(blocks)} blocks, on ${said(drawn.sms.length)} SMs`;
    one("#placed-said").textContent = `${some}. The launch ran for ${said(drawn.nanoseconds)} ns.`;
    canvas.style.height = `${clamp(rows.length * 16, 48, 640)}px`;
    const high = canvas.clientHeight / rows.length;
    let free = 0;
    labels.replaceChildren(...rows.flatMap(({ sm, first }, at) => {
      if (!first || at * high < free) return [];
      free = at * high + 14;
      const label = make("span", { textContent: `SM ${sm}` });
      label.style.top = `${at * high}px`;
      return label;
    }));
    const ids = [...new Set(rows.flatMap((row) => row.blocks.map(({ location }) => location)))].sort((a, b) => (figures.colours[a] ?? -1) - (figures.colours[b] ?? -1));
    const key = (id, text) => { const item = make("li"), swatch = make("span", { className: "swatch" }); swatch.style.background = colour(id); item.append(swatch, text); return item; };
    const own = ids.filter((id) => id > 0 && figures.colours[id] < OTHERS), others = ids.filter((id) => id > 0 && figures.colours[id] >= OTHERS);
    one("#block-colours").replaceChildren(...own.map((id) => key(id, figures.names[id])),
      ...(others.length ? [key(others[0], `${said(others.length)} others`)] : []), ...(ids.includes(0) ? [key(0, "no location is known")] : []));
    draw();
  }
  function draw() {
    const pen = part.pen(canvas, named("--idle"));
    if (!pen) return;
    const width = canvas.clientWidth, height = canvas.clientHeight, { from, to } = part;
    const high = height / rows.length, unit = width / (to - from), colours = new Map();
    rows.forEach((row, number) => {
      const top = number * high, gap = high > 4 ? 1 : 0;
      for (const block of row.blocks) {
        const left = Math.max(block.begin_nanoseconds, from), right = Math.min(end(block), to), wide = (right - left) * unit;
        if (right < from || left > to) continue;
        if (!colours.has(block.location)) colours.set(block.location, colour(block.location));
        pen.fillStyle = colours.get(block.location);
        // Wide blocks have a gap after them. Blocks without an end have half the height.
        const half = block.nanoseconds === null ? 2 : 1;
        pen.fillRect((left - from) * unit, top + gap, Math.max(wide - (wide > 4 ? 1 : 0), 0.5), Math.max((high - gap) / half, 1));
      }
      if (row.first && number > 0) {
        pen.fillStyle = named("--line");
        pen.fillRect(0, Math.round(top), width, 1);
      }
    });
    const block = rows[chosen[0]]?.blocks[chosen[1]];
    pen.strokeStyle = named("--ink");
    if (document.activeElement === canvas && block) pen.strokeRect((block.begin_nanoseconds - from) * unit, chosen[0] * high + 0.5, Math.max((end(block) - block.begin_nanoseconds) * unit, 2), Math.max(high - 1, 2));
    part.mark(axis, "ns");
  }
  /** Returns the last block of a row that began at or before a time. */
  function blockAt(row, time) { return lastStart(row.blocks.map((block) => block.begin_nanoseconds), row.blocks.length, time); }
  function name(block) {
    const [x, y, z] = drawn.grid, at = [block % x, Math.floor(block / x) % y, Math.floor(block / x / y)];
    return at.slice(0, z > 1 ? 3 : y > 1 ? 2 : 1).join(",");
  }
  /** Selects and describes the block of a row at a time. */
  function read(at, time) {
    const number = clamp(at, 0, rows.length - 1), row = rows[number], found = blockAt(row, time), block = row.blocks[found];
    chosen = [number, found];
    const isHere = block && time >= block.begin_nanoseconds && time < Math.max(end(block), block.begin_nanoseconds + 1);
    tip.textContent = isHere ? tell(row, block) : `SM ${row.sm}: no block at ${said(Math.floor(time))} ns`;
    part.near(tip, canvas, part.left(canvas, time));
    return isHere ? block : undefined;
  }
  const tell = ({ sm }, block) => `SM ${sm}, block ${name(block.block)}, wave ${block.wave}: from ${said(block.begin_nanoseconds)} ns ` +
    (block.nanoseconds === null ? "on; its end is not known" : `for ${said(block.nanoseconds)} ns`) + (block.location ? `; most at ${figures.names[block.location]}` : "");
  /** Describes the selected block and scrolls to it. */
  function readChosen() {
    const row = rows[chosen[0]], block = row?.blocks[chosen[1]];
    if (!block) return;
    tip.textContent = tell(row, block);
    if (block.begin_nanoseconds < part.from || block.begin_nanoseconds >= part.to) part.follow(block.begin_nanoseconds);
    part.near(tip, canvas, part.left(canvas, block.begin_nanoseconds));
    draw();
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
    const block = wasMoved ? undefined : read(...at(event));
    if (block) show(`${drawn.launch}:${block.block * drawn.warps_per_block}`);
  });
  part.wheel(canvas);
  canvas.addEventListener("keydown", (event) => {
    const row = rows[chosen[0]], by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[event.key];
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) chosen[1] = clamp(chosen[1] + by, 0, row.blocks.length - 1);
    else if (down) {
      const time = row.blocks[chosen[1]]?.begin_nanoseconds ?? 0;
      chosen[0] = clamp(chosen[0] + down, 0, rows.length - 1);
      chosen[1] = blockAt(rows[chosen[0]], time);
    } else if (event.key === "Home") chosen = [0, 0];
    else if (event.key === "Enter") goToRank(rankOf.get(row.blocks[chosen[1]]?.location));
    else if (!part.key(event)) return;
    if (event.key !== "Enter") readChosen();
    event.preventDefault();
  });
  for (const event of ["focus", "blur"]) canvas.addEventListener(event, draw);
  launch.addEventListener("change", take);
  one("#whole-launch").addEventListener("click", () => { part.whole(); draw(); });
  addEventListener("resize", () => drawn && draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn && take());
  /** Shows the first launch of the selected kernel. */
  async function begin() {
    ({ blocks: placed } = await unpack());
    const found = placed.findIndex((other) => kernel?.value && other.kernel === Number(kernel.value));
    launch.value = String(Math.max(found, 0));
    take();
  }
  return { begin };
}
