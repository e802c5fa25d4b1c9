// Runs on the page itself, behind its own script. The result is an attribute of the body.
"use strict";
addEventListener("load", () => {
  const wrong = [];
  const check = (ok, what) => { if (!ok) wrong.push(what); };
  const number = (text) => Number(text.replaceAll(",", ""));
  const figures = JSON.parse(document.getElementById("figures").textContent);

  // Numbers of each hot line.
  const rows = [...document.querySelectorAll(".hot")];
  check(rows.length === figures.lines.length, "as many lines as figures");
  for (const row of rows) {
    const line = figures.lines[row.dataset.rank - 1];
    const cell = (label) => row.querySelector(`[data-label="${label}"]`);
    check(number(cell("idle lane slots").querySelector("b").textContent) === line.idle, `idle of ${line.names}`);
    check(number(cell("visits").textContent) === line.visits, `visits of ${line.names}`);
    check(number(cell("warps").textContent) === line.warps, `warps of ${line.names}`);
    check(Math.abs(number(cell("splits").textContent.replace("%", "")) - 100 * line.splits / line.visits) < 0.06,
      `splits of ${line.names}`);
    const bars = (cell("active lanes").querySelector("path").getAttribute("d").match(/M/g) ?? []).length;
    check(bars === line.active.filter((visits) => visits > 0).length, `histogram of ${line.names}`);
  }
  check(document.querySelector("h1").textContent === figures.finding, "the finding");
  check(document.querySelectorAll("#loops tbody .first").length === figures.loops.length, "loops");

  // Keys, clicks and buttons go from line to line.
  const rank = () => Number(document.activeElement.dataset?.rank ?? 0);
  const press = (key, on = document.body) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  press("n");
  check(rank() === 1, "n goes to the hottest line");
  press("j");
  check(rank() === Math.min(2, rows.length), "j goes on");
  press("p");
  press("k");
  check(rank() === 1, "p and k go back, and stay at the first");
  document.getElementById("next").click();
  check(rank() === Math.min(2, rows.length), "the button goes on");
  document.getElementById("previous").click();
  check(rank() === 1, "the button goes back");
  rows.at(-1).click();
  check(document.activeElement === rows.at(-1), "a click chooses a line");
  for (const file of document.querySelectorAll(".file")) file.open = false;
  document.querySelector(".hottest a").click();
  check(rank() === 1, "the list at the top goes to its line, and opens its file");
  check(document.getElementById("where").textContent.startsWith(`1 of ${rows.length}: `), "it says where one is");

  // Strips are drawn, and read with keys and pointer.
  for (const canvas of document.querySelectorAll("canvas")) {
    const strip = figures.strips[canvas.dataset.strip];
    const output = document.getElementById(canvas.getAttribute("aria-describedby"));
    press("Home", canvas);
    check(output.textContent.includes(figures.names[strip.runs[0][0]]), "a strip says its first event");
    press("End", canvas);
    const last = strip.runs.at(-1);
    check(output.textContent.includes(`0x${last[1].toString(16).padStart(8, "0")}`), "a strip says its last mask");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    check(pixels.some((value, at) => at % 4 !== 3 && value !== pixels[at % 4]), "a strip is drawn");
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: canvas.getBoundingClientRect().left + 1, bubbles: true }));
    check(/^events? 0/.test(output.textContent), "a strip is read with the pointer");
  }
  const scale = document.getElementById("scale");
  scale.value = "runs";
  scale.dispatchEvent(new Event("change"));

  // Nothing is wider than the screen, each table has heads, each picture has words.
  check(document.documentElement.scrollWidth <= innerWidth, "the page is not wider than the screen");
  for (const table of document.querySelectorAll("table")) check(table.querySelector("th[scope=col]"), "a table has heads");
  for (const picture of document.querySelectorAll("svg, canvas")) check(picture.getAttribute("aria-label"), "a picture has words");
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  check(new Set(ids).size === ids.length, "ids are unique");
  document.body.dataset.tested = wrong.length === 0 ? "passed" : wrong.join("; ");
});
