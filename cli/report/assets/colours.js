// Highlights the source: comments, strings, numbers, attributes and keywords.
"use strict";
function colourSource({ all, range, paint }) {
  const WORDS = {
    rs: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true false type unsafe use where while",
    py: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield",
    cc: "alignas auto bool break case char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr operator private public return short signed sizeof static struct switch template this true typedef typename union unsigned using void volatile while __global__ __device__ __shared__ __restrict__ __launch_bounds__ __host__",
  };
  const kinds = { comment: [], text: [], number: [], mark: [], word: [] };
  for (const table of all(".source")) {
    const end = table.dataset.file.split(".").at(-1);
    const words = new Set((WORDS[end] ?? WORDS.cc).split(" "));
    const isPython = end === "py";
    const token = isPython
      ? /(?<comment>#.*)|(?<text>"""[^]*?(?:"""|$)|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(?<mark>@[\w.]+)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g
      : /(?<comment>\/\/.*|\/\*[^]*?(?:\*\/|$))|(?<text>"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])')|(?<mark>^\s*#.*)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g;
    let inside = "";
    for (const { firstChild: node } of all(".code > code", table)) {
      if (!node) continue;
      const text = node.data;
      token.lastIndex = 0;
      if (inside) {
        const end = text.indexOf(inside);
        kinds[inside === "*/" ? "comment" : "text"].push(range(node, 0, end < 0 ? text.length : end + inside.length));
        if (end < 0) continue;
        token.lastIndex = end + inside.length;
        inside = "";
      }
      for (let hit; (hit = token.exec(text)) && hit[0]; ) {
        const [kind] = Object.entries(hit.groups).find(([, part]) => part !== undefined);
        if (kind === "word" && !words.has(hit[0])) continue;
        kinds[kind].push(range(node, hit.index, hit.index + hit[0].length));
        if (hit[0].startsWith("/*") && !hit[0].endsWith("*/")) inside = "*/";
        if (hit[0].startsWith('"""') && (hit[0].length < 6 || !hit[0].endsWith('"""'))) inside = '"""';
      }
    }
  }
  for (const [kind, list] of Object.entries(kinds)) paint(kind, list);
}
