// Contrast ratios of all texts on the page, as WCAG 2 defines them for level AA. Returns the texts below the limit.
"use strict";
function faintTexts() {
  const LEAST = 4.5, LEAST_LARGE = 3;
  const parse = (text) => {
    const [, space, list] = /^(rgba?|color)\(([^)]*)\)/.exec(text) ?? [];
    const numbers = (list ?? "").replace("srgb", "").split(/[\s,/]+/).filter(Boolean).map(Number);
    const scale = space === "color" ? 255 : 1;
    return numbers.length < 3 ? null : [...numbers.slice(0, 3).map((part) => part * scale), numbers[3] ?? 1];
  };
  const over = ([r, g, b, alpha], below) => [r, g, b].map((part, at) => part * alpha + below[at] * (1 - alpha));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [a, b] = [luminance(one), luminance(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const paper = parse(getComputedStyle(document.body).backgroundColor).slice(0, 3);
  /** Returns the background colour of an element's text, blended from the page upwards. */
  function behind(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      const image = /rgba?\([^)]*\)/.exec(style.backgroundImage);
      layers.push(image && parse(image[0]), parse(style.backgroundColor));
      // Rectangles of an SVG group are the background of its texts.
      if (at instanceof SVGGElement) for (const box of [...at.querySelectorAll(":scope > rect")].reverse()) layers.push(parse(getComputedStyle(box).fill));
    }
    return layers.filter(Boolean).reverse().reduce((below, layer) => over(layer, below), paper);
  }
  const opacity = (element) => {
    let all = 1;
    for (let at = element; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity);
    return all;
  };
  const faint = new Map();
  let checked = 0;
  function check(element, colour, what) {
    const style = getComputedStyle(element), back = behind(element);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const alpha = colour[3] * opacity(element) * (element instanceof SVGElement ? Number(style.fillOpacity) : 1);
    const found = ratio(over([...colour.slice(0, 3), alpha], back), back);
    checked += 1;
    if (found < (isLarge ? LEAST_LARGE : LEAST)) faint.set(what, `${what} ${found.toFixed(2)} of ${style.color} on ${back.map(Math.round)}`);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === "" || element.closest("script, style, noscript, option, datalist, title, [hidden]")) continue;
    if (element.closest(".off")) continue;
    const style = getComputedStyle(element);
    const colour = parse(element instanceof SVGElement ? style.fill : style.color);
    const name = `${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""} in ${element.parentElement.tagName.toLowerCase()}.${element.parentElement.getAttribute("class") ?? ""}`;
    if (colour) check(element, colour, name);
    // Source text has the colours of its highlights.
    if (element.matches(".code > code")) {
      for (const kind of ["comment", "text", "number", "word", "mark"]) {
        const probe = Object.assign(document.createElement("i"), { style: `color: var(--${kind})` });
        document.body.append(probe);
        check(element, parse(getComputedStyle(probe).color), `${kind} in a line of heat ${element.closest("tr").style.getPropertyValue("--heat")}`);
        probe.remove();
      }
    }
  }
  for (const field of document.querySelectorAll("input[placeholder]")) check(field, parse(getComputedStyle(field, "::placeholder").color), "placeholder");
  return { checked, faint: [...faint.values()] };
}
