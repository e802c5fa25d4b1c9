// Draws warps lane by lane, all on one scale. Returns functions that redraw the strips and that add a warp.
"use strict";
function drawStrips({ figures, one, make, clamp, said, rankOf, goToRank, kernel, calm, unpack: all }) {
  // Strips: lanes downwards, runs or events to the right, all with the visible range of one scale.
  const LANES = 32, OFFERED = 400;
  const style = getComputedStyle(document.documentElement);
  const drawn = one("#drawn"), scale = one("#scale"), chooser = one("#warp");
  const key = (strip) => `${strip.launch}:${strip.warp}`;
  let views = [];
  // The data is decompressed at its first use.
  let strips = [], paths = {}, states = [], byKey = new Map(), byName = new Map(), unpacking;
  const unpack = () => (unpacking ??= (async () => {
    ({ strips, paths, events: states } = await all());
    byKey = new Map(strips.map((strip) => [key(strip), strip]));
    byName = new Map(strips.map((strip) => [strip.name, strip]));
  })());
  const bit = (mask, lane) => (mask >>> lane) & 1;
  const count = (mask) => { let n = 0; for (let lane = 0; lane < LANES; lane++) n += bit(mask, lane); return n; };
  const share = ({ slots, idle }) => ((100 * idle) / (slots || 1)).toFixed(1);
  const runsOf = (strip) => paths[strip.path].runs;
  const drawAll = () => views.forEach(draw);
  const part = makeScale({ make, clamp, said }, () => Math.max(1, ...views.map((view) => view.starts.at(-1))), () => 8, drawAll);

  /** Computes the first position of each run, followed by the end of the last run. */
  function lay(view) {
    let end = 0;
    view.starts = runsOf(view.strip).map(([, times]) => { const start = end; end += scale.value === "runs" ? 1 : times; return start; });
    view.starts.push(end);
  }
  function view(strip) {
    const figure = make("figure", { className: "strip" });
    const path = paths[strip.path];
    const rest = path.all_runs > path.runs.length ? `; the first ${said(path.runs.length)} of ${said(path.all_runs)} runs` : "";
    const words = `${strip.name}, ${said(strip.visits)} events, ${said(strip.idle)} idle slots (${share(strip)}%)${rest}`;
    const caption = make("figcaption");
    caption.append(make("b", { textContent: strip.title ?? "chosen" }), `: ${words} `);
    const away = make("button", { type: "button", textContent: "×", title: "take away" });
    caption.append(away);
    const canvas = make("canvas", { tabIndex: 0 });
    const tip = make("output", { className: "tip", id: `read-${key(strip)}` });
    tip.setAttribute("aria-live", "polite");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Runs of ${words}, lane by lane`);
    canvas.setAttribute("aria-describedby", tip.id);
    canvas.dataset.strip = strips.indexOf(strip);
    const frame = make("div", { className: "frame" });
    frame.append(canvas, tip);
    const axis = make("div", { className: "axis" });
    figure.append(caption, frame, axis);
    const made = { strip, figure, canvas, tip, axis, chosen: -1, starts: [] };
    lay(made);
    away.addEventListener("click", () => { views = views.filter((other) => other !== made); figure.remove(); drawAll(); });
    canvas.addEventListener("pointerdown", (event) => { made.held = [event.clientX, part.from, part.to]; canvas.setPointerCapture?.(event.pointerId); });
    canvas.addEventListener("pointerup", () => { made.held = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (made.held && event.buttons) {
        const [x, first, last] = made.held, by = ((x - event.clientX) / canvas.clientWidth) * (last - first);
        part.move(first + by, last + by);
      } else choose(made, runAt(made, event.offsetX), Math.floor((event.offsetY / canvas.clientHeight) * LANES), event.offsetX);
    });
    canvas.addEventListener("pointerleave", () => { tip.classList.remove("near"); });
    canvas.addEventListener("dblclick", () => goToRank(rankOf.get(made.location)));
    part.wheel(canvas);
    canvas.addEventListener("keydown", (event) => {
      const last = runsOf(strip).length - 1;
      const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[event.key];
      if (by) choose(made, made.chosen + by);
      else if (event.key === "Home") choose(made, 0);
      else if (event.key === "End") choose(made, last);
      else if (event.key === "Enter") goToRank(rankOf.get(made.location));
      else if (!part.key(event)) return;
      event.preventDefault();
    });
    return made;
  }
  function draw(made) {
    const { canvas, strip, starts } = made, runs = runsOf(strip);
    const named = (name) => style.getPropertyValue(name).trim();
    const pen = part.pen(canvas, named("--idle"));
    if (!pen) return;
    const width = canvas.clientWidth, height = canvas.clientHeight, { from, to } = part;
    const colours = Array.from({ length: 11 }, (_, number) => named(`--c${number}`));
    const row = height / LANES, unit = width / (to - from), x = (position) => (position - from) * unit;
    for (let run = runIn(made, from); run < runs.length && starts[run] < to; run++) {
      const [location, mask] = states[runs[run][0]];
      const left = x(starts[run]), wide = Math.max((starts[run + 1] - starts[run]) * unit, 0.5);
      pen.fillStyle = colours[figures.colours[location]];
      // Wide runs have a gap after them.
      for (let lane = 0; lane < LANES; lane++) {
        if (bit(mask, lane)) pen.fillRect(left, lane * row, wide - (wide > 6 ? 1 : 0), row - (row > 3 ? 0.5 : 0));
      }
    }
    pen.fillStyle = named("--absent");
    for (let lane = 0; lane < LANES; lane++) {
      if (!bit(strip.lane_mask, lane)) pen.fillRect(0, lane * row, width, row);
    }
    if (x(starts.at(-1)) < width) pen.fillRect(x(starts.at(-1)), 0, width, height);
    if (made.chosen >= 0) {
      pen.strokeStyle = named("--ink");
      pen.lineWidth = 1.5;
      pen.strokeRect(x(starts[made.chosen]), 0.75, Math.max((starts[made.chosen + 1] - starts[made.chosen]) * unit, 2), height - 1.5);
    }
    const what = scale.value === "runs" ? "run" : "event";
    part.mark(made.axis, what);
  }
  function choose(made, run, lane = -1, x = -1) {
    const runs = runsOf(made.strip);
    made.chosen = clamp(run, 0, runs.length - 1);
    const start = made.starts[made.chosen], end = made.starts[made.chosen + 1];
    // The visible range follows a selection by keys.
    if (x < 0 && (start < part.from || end > part.to)) part.follow(start);
    const [number, times] = runs[made.chosen], [location, mask] = states[number];
    made.location = location;
    const first = runs.slice(0, made.chosen).reduce((sum, [, more]) => sum + more, 0);
    const events = times === 1 ? `event ${said(first)}` : `events ${said(first)} to ${said(first + times - 1)}`;
    const at = lane < 0 ? "" : `; lane ${lane} ${bit(mask, lane) ? "active" : bit(made.strip.lane_mask, lane) ? "idle" : "does not exist"}`;
    made.tip.textContent = `${events}: ${figures.names[location]}, ${count(mask)} lanes (0x${(mask >>> 0).toString(16).padStart(8, "0")})${at}`;
    part.near(made.tip, made.canvas, x >= 0 ? x : part.left(made.canvas, start));
    draw(made);
  }
  /** Returns the run at a position. */
  const runIn = ({ starts }, position) => lastStart(starts, starts.length - 1, position);
  const runAt = (made, x) => runIn(made, part.at(made.canvas, x));
  async function add(wanted) {
    await unpack();
    const strip = byKey.get(wanted);
    if (!strip) return;
    let made = views.find((other) => other.strip === strip);
    if (!made) {
      made = view(strip);
      views.push(made);
      drawn.append(made.figure);
      part.whole();
      drawAll();
    }
    made.figure.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    made.canvas.focus({ preventScroll: true });
  }
  /** Shows three warps of the selected kernel, or of the kernel with the most idle slots. */
  async function begin() {
    if (!drawn) return;
    await unpack();
    const of = kernel?.value ? Number(kernel.value) : strips[0].kernel;
    views = strips.filter((strip) => strip.title && strip.kernel === of).map(view);
    drawn.replaceChildren(...views.map((made) => made.figure));
    // Offers the first warps by name. Any warp on the page can be entered.
    const offered = strips.filter((strip) => !kernel?.value || strip.kernel === of).slice(0, OFFERED);
    one("#warps-here").replaceChildren(...offered.map((strip) =>
      make("option", { value: strip.name, textContent: `${said(strip.visits)} events, ${share(strip)}% idle` })));
    part.whole();
    drawAll();
  }
  /** Adds the entered warp, given by its name on the page, or by launch, block and warp. */
  async function addNamed() {
    const wanted = chooser.value.trim(), unknown = one("#unknown");
    unknown.textContent = "";
    if (wanted === "") return;
    await unpack();
    const [launch, block, warp] = wanted.match(/\d[\d,]*/g) ?? [];
    const strip = byName.get(wanted) ?? byName.get(`launch ${launch} block ${block} warp ${warp}`);
    if (!strip) { unknown.textContent = `${wanted} is not on this page`; return; }
    chooser.value = "";
    await add(key(strip));
  }
  chooser?.addEventListener("change", addNamed);
  one("#add")?.addEventListener("click", addNamed);
  one("#whole")?.addEventListener("click", () => { part.whole(); drawAll(); });
  scale?.addEventListener("change", () => { views.forEach(lay); part.whole(); drawAll(); });
  addEventListener("resize", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  return { begin, add };
}
