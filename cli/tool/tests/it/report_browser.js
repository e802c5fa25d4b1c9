// Runs on the page itself, as a module after the page's script. The result is an attribute of the body.
const wrong = [];
const check = (ok, what) => { if (!ok) wrong.push(what); };
const number = (text) => Number(text.replaceAll(",", "").replace("%", ""));
// Reads pixels of a copy: browsers warn if the page's own canvas is read repeatedly.
function pixelsOf(canvas, left, top, width, height) {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [width, height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, Math.floor(left), Math.floor(top), width, height, 0, 0, width, height);
  return pen.getImageData(0, 0, width, height).data;
}
const one = (what, at = document) => at.querySelector(what);
const all = (what, at = document) => [...at.querySelectorAll(what)];
const figures = JSON.parse(one("#figures").textContent);
const packed = Uint8Array.from(atob(one("#packed").textContent), (letter) => letter.charCodeAt(0));
const carried = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
const soon = () => new Promise((done) => setTimeout(done, 20));
const near = (text, part, whole, what) => check(Math.abs(number(text) - (100 * part) / (whole || 1)) < 0.06, what);
const press = (key, on = document.body) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const change = (element, value, event = "change") => { element.value = value; element.dispatchEvent(new Event(event, { bubbles: true })); };
const isSeen = (element, box) => {
  const [a, b] = [element, box].map((at) => at.getBoundingClientRect());
  return a.top >= b.top && a.bottom <= b.bottom;
};
while (!("ready" in document.body.dataset)) await new Promise((done) => setTimeout(done, 5));

// The page opens at the hottest line, with nothing of the page above it skipped.
const rows = all(".hot");
const hottest = one('.hot[data-rank="1"]');
check(isSeen(hottest, hottest.closest(".box")) && scrollY === 0, "the source opens at the hottest line");

// Figures of each hot line.
check(rows.length === figures.lines.length, "as many lines as figures");
for (const row of rows) {
  const line = figures.lines[row.dataset.rank - 1];
  const cell = (label) => one(`[data-label="${label}"]`, row);
  check(number(cell("idle here").textContent) === line.idle, `idle of ${line.names}`);
  check(number(cell("caused").title.split(" ")[0]) === line.caused, `caused by ${line.names}`);
  near(cell("caused").textContent, line.caused, figures.totals.idle, `part caused by ${line.names}`);
  check(number(cell("visits").textContent) === line.visits, `visits of ${line.names}`);
  check(number(cell("warps").textContent) === line.warps, `warps of ${line.names}`);
  near(cell("splits").textContent, line.splits, line.visits, `splits of ${line.names}`);
  const bars = (one("path", cell("active lanes")).getAttribute("d").match(/M/g) ?? []).length;
  check(bars === line.active.filter((visits) => visits > 0).length, `histogram of ${line.names}`);
  check(row.classList.contains("cold") === (line.idle + line.caused + (line.warp_cycles ?? 0) === 0), `heat of ${line.names}`);
}
const plain = (text) => text.replaceAll("`", "");
const findings = figures.findings.map(plain);
check(String(all("h1, p.finding").map((element) => element.textContent)) === String(findings), "the findings");
const isTimed = figures.totals.warp_cycles !== undefined;
check(isTimed === Boolean(one("#heat")) && isTimed === Boolean(one("#timeline")), "time is shown if there is any");
if (isTimed) {
  for (const measure of ["idle_lane_cycles", "caused", "idle", "warp_cycles"]) {
    change(one("#heat"), measure);
    const of = (row) => figures.lines[row.dataset.rank - 1][measure], most = Math.max(...rows.map(of));
    for (const row of rows) {
      check(Math.abs(row.style.getPropertyValue("--heat") - of(row) / most) < 0.001, `heat by ${measure}`);
      check(all(".heat", row).length === 1, "one column is hot");
    }
  }
  for (const row of rows) {
    const line = figures.lines[row.dataset.rank - 1], cell = (label) => one(`[data-label="${label}"]`, row);
    near(cell("cycles").textContent, line.warp_cycles, figures.totals.warp_cycles, `cycles of ${line.names}`);
    check(number(cell("cycles").title.split(" ")[0]) === line.warp_cycles, `all cycles of ${line.names}`);
    check(number(cell("idle cycles").textContent) === line.idle_lane_cycles, `idle cycles of ${line.names}`);
  }
  check(one('.hot[data-rank="1"] .heat').dataset.label === "cycles", "cycles are hot");
}
check(all("#loops tbody").length === figures.loops.length, "loops");

// The chart: one bar for each kernel; its pieces are the lane slots on one scale.
const longest = Math.max(...figures.kernels.map((kernel) => kernel.slots));
for (const bar of all("#picture .kernel[data-kernels]")) {
  const kernel = figures.kernels[bar.dataset.kernels];
  const widths = all(".track > *", bar).map((piece) => parseFloat(piece.style.width));
  check(Math.abs(widths[0] - (100 * (kernel.slots - kernel.idle)) / longest) < 0.01, `active slots of ${kernel.kernel}`);
  const sum = widths.reduce((sum, width) => sum + width, 0);
  check(Math.abs(sum - (100 * kernel.slots) / longest) < 0.02, `slots of ${kernel.kernel}`);
}
all(".causes li > b").forEach((part, at) => near(part.textContent, figures.causes[at].idle, figures.totals.idle, "a cause"));

// Keys, clicks and buttons navigate between lines.
const rank = () => Number(document.activeElement.dataset?.rank ?? 0);
press("n");
check(rank() === 1, "n goes to the hottest line");
press("j");
check(rank() === Math.min(2, rows.length), "j goes on");
press("p");
press("k");
check(rank() === 1, "p and k go back, and stay at the first");
one("#next").click();
check(rank() === Math.min(2, rows.length), "the button goes on");
one("#previous").click();
check(rank() === 1, "the button goes back");
rows.at(-1).click();
check(document.activeElement === rows.at(-1), "a click chooses a line");
for (const file of all(".file")) file.open = false;
const link = one('.causes a[href^="#hot-"]');
link.click();
check(`#hot-${rank()}` === link.getAttribute("href"), "a cause leads to its line, and opens its file");
check(one("#where").textContent.startsWith(`${rank()} of ${rows.length}`), "it says where one is");
for (const inner of all('a[href^="#"]')) check(document.getElementById(inner.getAttribute("href").slice(1)), `${inner.outerHTML} leads somewhere`);
const node = one(".graph a");
node.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
check(`#hot-${rank()}` === node.getAttribute("href"), "a location of the graph leads to its line");

// Folds open, and search opens them.
const fold = one(".fold button"), lines = fold.closest("tbody").nextElementSibling;
check(lines.hidden, "lines are folded");
fold.click();
check(!lines.hidden && fold.getAttribute("aria-expanded") === "true", "a fold opens");
fold.click();
check(lines.hidden, "a fold closes");
const search = one("#search");
press("/");
check(document.activeElement === search, "/ goes to the search");
const wanted = [...lines.rows].map((row) => row.textContent.trim().slice(-12)).find((text) => text.trim().length > 6);
change(search, wanted.trim(), "input");
check(/^[\d,]+ lines$/.test(one("#found").textContent), "search says how many lines");
for (let times = 0; lines.hidden && times < 2000; times++) press("Enter", search);
check(!lines.hidden, "search goes into folds");
const name = figures.loops[0].name.toLowerCase();
change(search, name, "input");
for (const body of all("#loops tbody")) check(body.hidden !== body.textContent.toLowerCase().includes(name), "search leaves loops that match");
press("Escape", search);
check(all("#loops tbody").every((body) => !body.hidden), "Escape ends the search");

// A click on a column head sorts the table.
for (const table of all("table.cards")) {
  const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.classList.contains("right"));
  const units = () => (table.tBodies.length > 1 ? [...table.tBodies].map((body) => body.rows[0]) : [...table.tBodies[0].rows]);
  const values = () => units().map((row) => number(row.cells[column].textContent.replace("−", "-").replace("+", "")));
  const before = values().sort((a, b) => b - a);
  const button = one("button", table.tHead.rows[0].cells[column]);
  button.click();
  check(String(values()) === String(before), `sorts ${table.tHead.textContent}`);
  button.click();
  check(String(values()) === String(before.reverse()), `sorts ${table.tHead.textContent} the other way`);
}

// Selects a kernel.
const kernel = one("#kernel");
check(Boolean(kernel) === (figures.kernels.length > 1), "kernels can be chosen if there are several");
if (kernel) {
  change(kernel, "0");
  await soon();
  check(all("#picture .kernel[data-kernels]").every((bar) => bar.hidden === (bar.dataset.kernels !== "0")), "bars of the kernel");
  check(all("#graph figure").filter((figure) => !figure.hidden).length <= 1, "the graph of the kernel");
  const drawn = all("#drawn canvas").map((canvas) => carried.strips[canvas.dataset.strip].kernel);
  check(drawn.length > 0 && drawn.every((of) => of === 0), "warps of the kernel");
  change(kernel, "");
  await soon();
}

// Flame graph: widths of boxes are in proportion to their figures.
const first = isTimed ? "warp_cycles" : "slots", whole = figures.totals[first];
check(one("#measure").value === first && one("#parts-head").textContent.includes(isTimed ? "cycles" : "slots"), "the flame graph says what it weighs");
const top = all("#flame .kernel").reduce((sum, box) => sum + parseFloat(box.style.width), 0);
check(Math.abs(top - 100) < 1, "kernels fill the flame graph");
for (const measure of ["idle", "caused", "visits", "slots", ...(isTimed ? ["idle_lane_cycles", "warp_cycles"] : [])]) change(one("#measure"), measure);
const head = figures.parts.find((part) => part.kind === "loop");
const boxes = all("#flame .loop").map((box) => parseFloat(box.style.width));
check(boxes.some((width) => Math.abs(width - (100 * head[first]) / whole) < 0.01), `a loop is as wide as its ${first}`);

// Strips are drawn, and respond to keys and pointer; any warp can be added.
check(all("#drawn canvas").length === Math.min(3, carried.strips.length), "three warps are drawn");
const other = carried.strips.findLastIndex((strip) => !strip.title);
if (other >= 0) {
  change(one("#warp"), carried.strips[other].name.replace(/[a-z]+ /g, ""));
  await soon();
  check(one(`canvas[data-strip="${other}"]`) === document.activeElement, "a warp is added");
}
change(one("#warp"), "9999 9999 99");
await soon();
check(one("#unknown").textContent.includes("is not on this page"), "a warp that is not there is said");
one("a[data-warp]")?.click();
await soon();
check(document.activeElement.tagName === "CANVAS", "a warp's name leads to its strip");
for (const canvas of all("#drawn canvas")) {
  const strip = carried.strips[canvas.dataset.strip];
  const runs = carried.paths[strip.path].runs.map(([event]) => carried.events[event]);
  const output = document.getElementById(canvas.getAttribute("aria-describedby"));
  press("Home", canvas);
  check(output.textContent.includes(figures.names[runs[0][0]]), "a strip says its first event");
  press("End", canvas);
  check(output.textContent.includes(`0x${runs.at(-1)[1].toString(16).padStart(8, "0")}`), "a strip says its last mask");
  const pixels = pixelsOf(canvas, 0, 0, canvas.width, canvas.height);
  check(pixels.some((value, at) => at % 4 !== 3 && value !== pixels[at % 4]), "a strip is drawn");
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 1, clientY: box.top + 1, bubbles: true }));
  check(/^events? 0.*lane 0 /.test(output.textContent), "a strip is read with the pointer, lane by lane");
  check(getComputedStyle(output).visibility === "visible", "what is read stands at the pointer");
}
const axes = () => new Set(all("#drawn .axis").map((axis) => axis.textContent));
check(axes().size === 1, "strips are on one scale");
const before = [...axes()][0], canvas = one("#drawn canvas");
const wheel = (deltaY) => canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, cancelable: true, bubbles: true }));
const isLong = !wheel(-200);
check(isLong === ([...axes()][0] !== before) && axes().size === 1, "the wheel zooms all strips");
one("#whole").click();
check([...axes()][0] === before, "the whole width comes back");
check(wheel(200), "the page scrolls where there is no more to zoom");
press("+", canvas);
press("-", canvas);
change(one("#scale"), "events");

// Warps along their time: pixels have the colours of their locations; keys, wheel and clicks.
if (isTimed) {
  const canvas = one("#time"), tip = one("#read-time"), style = getComputedStyle(document.documentElement);
  for (const [at, timeline] of carried.timelines.entries()) {
    change(one("#launch"), String(at));
    check(one("#timed").textContent.includes(timeline.rows.length.toLocaleString("en")), "says how many warps are drawn");
    const row = timeline.rows.at(-1), high = canvas.clientHeight / timeline.rows.length;
    press("Home", canvas);
    check(tip.textContent.includes(`${timeline.rows[0].name}, ${timeline.rows[0].cycles.toLocaleString("en")} cycles`), "a row says its cycles");
    const longest = Math.max(...timeline.rows.map((other) => other.cycles));
    const column = row.columns.findIndex(([, times]) => (times * timeline.width * canvas.clientWidth) / longest > 4);
    if (column < 0) continue;
    const before = row.columns.slice(0, column).reduce((sum, [, times]) => sum + times, 0);
    const middle = ((before + row.columns[column][1] / 2) * timeline.width * canvas.clientWidth) / longest;
    const dots = canvas.width / canvas.clientWidth;
    const pixel = pixelsOf(canvas, middle * dots, (canvas.clientHeight - high / 2) * dots, 1, 1);
    const named = style.getPropertyValue(`--c${figures.colours[row.columns[column][0]]}`).trim();
    const shown = `#${[...pixel].slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    check(shown === named, `a column has the colour of its location: ${shown} for ${named}`);
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: canvas.getBoundingClientRect().left + middle, clientY: canvas.getBoundingClientRect().bottom - high / 2 - 1, bubbles: true }));
    check(tip.textContent.includes(row.name) && tip.textContent.includes(figures.names[row.columns[column][0]]), `the pointer reads it: ${tip.textContent}`);
  }
  const axis = () => one("#cycles").textContent, whole = axis();
  // A timeline with few cycles cannot be zoomed.
  const zooms = !canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, cancelable: true, bubbles: true }));
  check(zooms === (axis() !== whole), `the wheel zooms the timeline: from ${whole} to ${axis()}`);
  one("#whole-time").click();
  check(axis() === whole, "the whole time comes back");
  change(one("#rows"), "cycles");
  press("Home", canvas);
  const rows = carried.timelines[one("#launch").value].rows;
  check(tip.textContent.includes(`${Math.max(...rows.map((row) => row.cycles)).toLocaleString("en")} cycles`), "the longest warp comes first");
  press("ArrowDown", canvas);
  press("ArrowRight", canvas);
  canvas.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: canvas.getBoundingClientRect().left + 2, clientY: canvas.getBoundingClientRect().top + 2 }));
  await soon();
  check(document.activeElement.closest("#drawn"), "a click shows the warp lane by lane");
}

// Blocks by multiprocessor, on one axis: pixels have the colours of their locations; keys, wheel and clicks.
check(Boolean(figures.schedule) === Boolean(one("#blocks")), "blocks are shown if the trace says when they ran");
if (figures.schedule) {
  const canvas = one("#placed-blocks"), tip = one("#read-block"), style = getComputedStyle(document.documentElement);
  for (const [at, drawn] of carried.blocks.entries()) {
    change(one("#placed"), String(at));
    const rows = drawn.sms.reduce((sum, { rows }) => sum + rows, 0), high = canvas.clientHeight / rows;
    check(one("#placed-said").textContent.includes(`${drawn.nanoseconds.toLocaleString("en")} ns`), "says how long the launch ran");
    check(all("#sms > span").some((label) => label.textContent === `SM ${drawn.sms[0].sm}`), "rows have labels");
    press("Home", canvas);
    const first = drawn.sms[0].blocks[0];
    check(tip.textContent.startsWith(`SM ${drawn.sms[0].sm}, block ${first.block}, wave ${first.wave}: from ${first.begin_nanoseconds.toLocaleString("en")} ns`), `a block says when it ran: ${tip.textContent}`);
    let top = 0;
    for (const sm of drawn.sms) {
      for (const block of sm.blocks) {
        const wide = (block.nanoseconds * canvas.clientWidth) / drawn.nanoseconds;
        if (wide < 6 || high < 5) continue;
        const x = ((block.begin_nanoseconds + block.nanoseconds / 2) * canvas.clientWidth) / drawn.nanoseconds, y = (top + block.row + 0.6) * high;
        const dots = canvas.width / canvas.clientWidth, pixel = pixelsOf(canvas, x * dots, y * dots, 1, 1);
        const named = style.getPropertyValue(`--c${figures.colours[block.location]}`).trim();
        const shown = `#${[...pixel].slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("")}`;
        check(shown === named, `a block has the colour of its location: ${shown} for ${named}`);
        const box = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
        check(tip.textContent.includes(`block ${block.block},`) && tip.textContent.includes(figures.names[block.location]), `the pointer reads it: ${tip.textContent}`);
      }
      top += sm.rows;
    }
  }
  const axis = () => one("#nanoseconds").textContent, whole = axis();
  const zooms = !canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, cancelable: true, bubbles: true }));
  check(zooms && axis() !== whole && axis().startsWith("ns "), `the wheel zooms the blocks: from ${whole} to ${axis()}`);
  one("#whole-launch").click();
  check(axis() === whole, "the whole launch comes back");
  press("ArrowDown", canvas);
  press("ArrowRight", canvas);
  press("Home", canvas);
  press("Enter", canvas);
  check(document.activeElement.classList.contains("hot"), "Enter goes to the line");
  canvas.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: canvas.getBoundingClientRect().left + 1, clientY: canvas.getBoundingClientRect().top + 2 }));
  await soon();
  check(document.activeElement.closest("#drawn"), "a click shows a warp lane by lane");
  const shown = all("#blocks tbody tr"), longest = figures.schedule.launches[0];
  check(shown.length === figures.schedule.launches.length, "a row for each launch");
  near(one('[data-label="tail"]', all("#blocks tbody tr").find((row) => one("th", row).textContent.endsWith(`launch ${longest.launch}`))).textContent,
    longest.waiting_nanoseconds, longest.nanoseconds * longest.sms, "the tail");
}

// Nothing is wider than the screen, each table has heads, each graphic has a label.
check(document.documentElement.scrollWidth <= innerWidth, "the page is not wider than the screen");
for (const table of all("table")) check(one("th[scope=col]", table), "a table has heads");
for (const picture of all("svg, canvas")) check(picture.getAttribute("aria-label"), "a picture has words");
for (const field of all("select, input")) check(field.labels.length > 0 || field.getAttribute("aria-label"), "a field has a label");
const ids = all("[id]").map((element) => element.id);
check(new Set(ids).size === ids.length, "ids are unique");

// All texts have enough contrast.
for (const closed of all("details")) closed.open = true;
const contrast = faintTexts();
check(contrast.checked > 100, "texts have a contrast");
for (const faint of contrast.faint) check(false, `too faint: ${faint}`);
document.body.dataset.scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
const painted = performance.getEntriesByName("first-contentful-paint")[0];
document.body.dataset.painted = painted ? Math.round(painted.startTime) : "";
document.body.dataset.tested = wrong.length === 0 ? "passed" : [...new Set(wrong)].join("; ");
