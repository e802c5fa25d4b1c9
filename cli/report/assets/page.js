// Makes the page interactive: lines, folds, sorting, search, strips, the flame graph. The page is readable without it.
"use strict";
// Runs after the first paint.
requestAnimationFrame(() => setTimeout(async () => {
  const one = (what, at = document) => at.querySelector(what);
  const all = (what, at = document) => [...at.querySelectorAll(what)];
  const make = (tag, fields = {}) => Object.assign(document.createElement(tag), fields);
  const clamp = (number, least, most) => Math.max(least, Math.min(most, number));
  const said = (number) => number.toLocaleString("en");
  const figures = JSON.parse(one("#figures").textContent);
  const rankOf = new Map(figures.lines.flatMap((line, at) => line.locations.map((id) => [id, at + 1])));
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  for (const hidden of all("#tools, .choice")) hidden.hidden = false;

  // Navigation between lines by keys, buttons and links.
  const rows = all(".hot").sort((a, b) => a.dataset.rank - b.dataset.rank);
  const where = one("#where");
  let at = -1;
  function show(row) {
    const folded = row.closest(".folded");
    if (folded?.hidden) unfold(folded, true);
    const file = row.closest("details");
    if (file) file.open = true;
    row.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  }
  function go(to) {
    if (rows.length === 0) return;
    at = clamp(to, 0, rows.length - 1);
    const row = rows[at];
    show(row);
    row.focus({ preventScroll: true });
    const line = one(".number", row).textContent;
    where.textContent = `${at + 1} of ${rows.length}${line ? `: line ${line}` : ""}`;
    const heat = one(".heat", row);
    where.title = `${one(".where", row).textContent}, ${heat.dataset.label} ${heat.textContent}`;
  }
  /** Goes to the next line, in order of heat, that is not dimmed. */
  function step(by) {
    let to = at + by;
    while (rows[to]?.classList.contains("off")) to += by;
    go(rows[to] ? to : clamp(at, 0, rows.length - 1));
  }
  // Traces with times have a selection of the measure of heat.
  one("#heat")?.addEventListener("change", ({ target: { value } }) => {
    const of = (row) => figures.lines[row.dataset.rank - 1][value], most = Math.max(1, ...rows.map(of));
    const label = { warp_cycles: "cycles", idle_lane_cycles: "idle cycles", caused: "caused", idle: "idle here" }[value];
    for (const row of rows) {
      row.style.setProperty("--heat", of(row) / most);
      for (const cell of all("[data-label]", row)) cell.classList.toggle("heat", cell.dataset.label === label);
    }
    rows.sort((a, b) => of(b) - of(a) || a.dataset.rank - b.dataset.rank);
    at = -1;
  });
  const goToRank = (rank) => go(rows.findIndex((row) => row.dataset.rank === String(rank)));
  one("#next")?.addEventListener("click", () => step(1));
  one("#previous")?.addEventListener("click", () => step(-1));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"], a[*|href^="#"]');
    const to = link?.getAttribute("href");
    if (to?.startsWith("#hot-")) {
      event.preventDefault();
      goToRank(to.slice(5));
    } else if (link?.dataset?.warp) {
      event.preventDefault();
      strips.add(link.dataset.warp);
    } else if (!link && event.target.closest(".hot") && String(getSelection()) === "") {
      // A click that ends a text selection does not navigate.
      go(rows.indexOf(event.target.closest(".hot")));
    }
  });
  const search = one("#search");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input, textarea")) return;
    if (event.key === "n" || event.key === "j") step(1);
    else if (event.key === "p" || event.key === "k") step(-1);
    else if (event.key === "/") search.focus();
    else return;
    event.preventDefault();
  });
  // Scrolls each file to its hottest line when it is first opened.
  function open(file) {
    const box = one(".box", file);
    const hottest = all(".hot", box).reduce((a, b) => (a && +a.dataset.rank < +b.dataset.rank ? a : b), null);
    if (!hottest) return;
    box.scrollTop += hottest.getBoundingClientRect().top - box.getBoundingClientRect().top - Math.min(160, box.clientHeight / 3);
  }
  for (const file of all(".file")) {
    if (file.open) open(file);
    else file.addEventListener("toggle", () => open(file), { once: true });
  }
  if (location.hash.startsWith("#hot-")) goToRank(location.hash.slice(5));

  // Folds.
  function unfold(lines, is) {
    lines.hidden = !is;
    one("button", lines.previousElementSibling).setAttribute("aria-expanded", is);
  }
  for (const button of all(".fold button")) {
    const lines = button.closest("tbody").nextElementSibling;
    button.addEventListener("click", () => unfold(lines, lines.hidden));
  }

  // Tables: a click on a column head sorts by the column. In tables with several bodies, rows of one body stay together.
  const units = (table) => (table.tBodies.length > 1 ? [...table.tBodies] : [...table.tBodies[0].rows]);
  const value = (unit, column) => {
    const text = (unit.rows?.[0] ?? unit).cells[column]?.textContent.trim() ?? "";
    const number = Number(text.replace(/[,%~+]/g, "").replace("−", "-"));
    return text === "" || Number.isNaN(number) ? text : number;
  };
  for (const table of all("table.cards")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (head.textContent.trim() === "") return;
      const button = make("button", { type: "button", className: "sort", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
        all("[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "descending" ? -1 : 1;
        const sorted = units(table).map((unit) => [value(unit, column), unit]).sort(([a], [b]) =>
          sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
        sorted.forEach(([, unit]) => unit.parentNode.append(unit));
      });
    });
  }

  // Search, and selection of a kernel: rows that do not match are hidden in tables, and dimmed in the source.
  const kernel = one("#kernel");
  const found = one("#found");
  let matches = [], match = -1;
  function filter() {
    const wanted = search.value.trim().toLowerCase();
    const isOther = (row) => Boolean(kernel?.value) && !row.dataset.kernels.split(" ").includes(kernel.value);
    for (const row of all(".hot")) row.classList.toggle("off", isOther(row));
    for (const other of all("[data-kernels]:not(.hot)")) other.hidden = isOther(other);
    for (const unit of all("table.cards").flatMap(units)) {
      const isOff = unit.dataset.kernels !== undefined && isOther(unit);
      unit.hidden = isOff || (wanted !== "" && !unit.textContent.toLowerCase().includes(wanted));
    }
    matches = wanted === "" ? [] : all(".source tbody:not(.fold) tr").filter((row) => row.textContent.toLowerCase().includes(wanted));
    match = -1;
    found.textContent = wanted === "" ? "" : `${said(matches.length)} lines`;
    paint("found", wanted === "" ? [] : matches.flatMap((row) => all("code, .where", row)).flatMap((code) => ranges(code, wanted)));
  }
  function ranges(element, wanted) {
    const node = element.firstChild, text = node?.data?.toLowerCase() ?? "", list = [];
    for (let from = text.indexOf(wanted); from >= 0; from = text.indexOf(wanted, from + wanted.length)) list.push(range(node, from, from + wanted.length));
    return list;
  }
  const range = (node, from, to) => { const made = new StaticRange({ startContainer: node, startOffset: from, endContainer: node, endOffset: to }); return made; };
  const paint = (name, list) => { if (window.Highlight && CSS.highlights) CSS.highlights.set(name, new Highlight(...list.slice(0, 20000))); };
  search?.addEventListener("input", filter);
  search?.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; filter(); search.blur(); }
    if (event.key !== "Enter" || matches.length === 0) return;
    match = (match + (event.shiftKey ? matches.length - 1 : 1)) % matches.length;
    show(matches[match]);
    found.textContent = `${said(match + 1)} of ${said(matches.length)} lines`;
  });
  kernel?.addEventListener("change", () => { filter(); blocks.begin(); timeline.begin(); strips.begin(); flame(); });

  // Flame graph: the row of a part is its depth. In the list, the parts inside a part follow it.
  const box = one("#flame");
  function flame() {
    if (!box) return;
    const chosen = one("#measure").value, isTime = chosen.endsWith("_cycles");
    const measure = (part) => part[chosen];
    const shown = figures.parts.filter((part) => !kernel?.value || part.kernel === Number(kernel.value));
    const whole = shown.filter((part) => part.depth === 0).reduce((sum, part) => sum + measure(part), 0);
    const from = [0];
    let deepest = 0;
    box.replaceChildren(...shown.flatMap((part) => {
      const wide = (100 * measure(part)) / (whole || 1), left = from[part.depth];
      from.length = part.depth + 1;
      from[part.depth] += wide;
      from.push(left);
      if (wide < 0.05) return [];
      deepest = Math.max(deepest, part.depth);
      const slots = part.slots, lanes = part.active_lane_cycles + part.idle_lane_cycles;
      const heat = isTime ? part.idle_lane_cycles / (lanes || 1) : part.idle / (slots || 1);
      const rank = rankOf.get(part.location);
      const name = part.location === null ? part.name : figures.names[part.location] ?? part.name;
      const text = `${part.kind === "loop" ? "↻ " : ""}${name}`;
      const element = make(rank ? "a" : "span", { textContent: text, className: part.kind });
      if (rank) element.href = `#hot-${rank}`;
      const cycles = part.warp_cycles === undefined ? "" : `${said(part.warp_cycles)} cycles of warps, ${((100 * part.idle_lane_cycles) / (lanes || 1)).toFixed(1)}% of the lanes' idle; `;
      element.title = `${part.kind} ${name}: ${cycles}${said(slots)} slots, ${((100 * part.idle) / (slots || 1)).toFixed(1)}% idle, own ${said(part.own.slots)}; ` +
        `caused ${said(part.caused)} idle slots; ${said(part.visits)} visits`;
      element.style.cssText = `left:${left}%;width:${wide}%;top:${part.depth * 1.6}rem;--heat:${heat}`;
      return element;
    }));
    box.style.height = `${(deepest + 1) * 1.6}rem`;
  }
  one("#measure")?.addEventListener("change", flame);

  // Data of warps is compressed.
  let unpacked;
  const unpack = () => (unpacked ??= (async () => {
    const bytes = Uint8Array.from(atob(one("#packed").textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
  })());
  const page = { figures, one, all, make, clamp, said, rankOf, goToRank, kernel, calm, range, paint, unpack };
  const strips = drawStrips(page);
  const timeline = drawTimeline(page, strips.add);
  const blocks = drawBlocks(page, strips.add);

  colourSource(page);
  flame();
  // Centres graphs that are wider than their frame.
  for (const graph of all(".graph")) graph.scrollLeft = (graph.scrollWidth - graph.clientWidth) / 2;
  await blocks.begin();
  await timeline.begin();
  await strips.begin();
  document.body.dataset.ready = "";
}));
