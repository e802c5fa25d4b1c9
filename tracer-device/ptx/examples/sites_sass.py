"""Counts what sites take in machine code: `python3 sites_sass.py EXAMPLES CUDA`, with the folders of the examples
`mark` and `splice`, and of ptxas and cuobjdump.

The kernel is a loop of 24 loads, whose addresses differ by a register, so that each has a site that is recorded, or by
constants, so that they follow from the first one. A path through a site is the shortest one around the loop that passes what it names,
in instructions; the path of the same kernel without sites is taken away.
"""
import os
import re
import subprocess
import sys
import tempfile

examples, cuda = sys.argv[1:3]
SITES = 24

def kernel(sites, version, apart):
    to_next = "\tadd.s64 %rd1, %rd1, %rd4;\n" if apart else ""
    offset = lambda at: 0 if apart else 16 * at
    loads = "".join(f"\tld.global.f32 %f2, [%rd1+{offset(at)}];\n\tadd.f32 %f1, %f1, %f2;\n{to_next}" for at in range(sites))
    return f""".version {version}
.target {"sm_70" if version == "6.3" else "sm_80"}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{{
	.reg .pred %p<3>; .reg .b32 %r<10>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd3, %r2, 4;
	mul.wide.u32 %rd4, %r1, 4;
	add.s64 %rd1, %rd1, %rd3;
	mov.f32 %f1, 0f00000000;
	mov.u32 %r3, 0;
LOOP:
	.pragma "nounroll";
{loads}	add.s64 %rd1, %rd1, 4096;
	add.u32 %r3, %r3, 1;
	setp.lt.u32 %p1, %r3, %r1;
	@%p1 bra LOOP;
	add.s64 %rd2, %rd2, %rd3;
	st.global.f32 [%rd2], %f1;
	ret;
}}
"""

def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True)

def assembled(folder, arch, sites, data, version, apart=True):
    path = lambda name: os.path.join(folder, name)
    open(path("k.ptx"), "w").write(kernel(sites, version, apart))
    run(f"{examples}/mark", path("k.ptx"), "functions", path("m.ptx"), *(["all"] if data else []))
    old = ["old"] if arch == 80 else []
    run(f"{examples}/splice", path("m.ptx"), path("s.ptx"), "each", *(["data"] if data else []), *old)
    said = run(f"{cuda}/ptxas", f"-arch=sm_{arch}", "-v", path("s.ptx"), "-o", path("s.cubin")).stderr
    sass = run(f"{cuda}/cuobjdump", "-sass", path("s.cubin")).stdout
    part = sass.split("Function : k$traced")[1].split("Function : ")[0]
    found = re.findall(r"^\s+/\*([0-9a-f]{4,5})\*/\s+(.*?) ?;", part, re.M)
    entry = said.split("k$traced'")[1].split("Compiling")[0]
    registers = int(re.search(r"Used (\d+) registers", entry).group(1))
    stack, stores, loads = (int(re.search(rf"(\d+) bytes {what}", entry).group(1)) for what in ("stack frame", "spill stores", "spill loads"))
    return [(int(at, 16), text) for at, text in found], registers, stack, stores + loads

def cycle(code, through):
    """The fewest instructions from the loop's head around it by way of instructions that `through` finds, each in a place of its own."""
    index = {at: number for number, (at, _) in enumerate(code)}
    branch = re.compile(r"BRA(?:\.\S+)? (?:!?U?P\d+, )?0x([0-9a-f]+)$")
    to_of = {number: index[int(found.group(1), 16)] for number, (_, text) in enumerate(code) if (found := branch.search(text))}
    # The program's loop is the longest one: only this loop has its loads.
    is_conditional = lambda text: text.startswith("@") or bool(re.search(r"BRA(?:\.\S+)? !?U?P", text))
    loads = [number for number, (_, text) in enumerate(code) if re.search(r"LDG\.E (?!.*128)", text)]
    back = [(number, to) for number, to in to_of.items() if to < number]
    (last, head) = max(back, key=lambda b: sum(b[1] <= l <= b[0] for l in loads))
    def next_of(number):
        text = code[number][1]
        if "EXIT" in text and not text.startswith("@"):
            return []
        if number in to_of:
            return [to_of[number], number + 1] if is_conditional(text) else [to_of[number]]
        return [number + 1]
    # Breadth-first search. A state is a position and the number of wanted instructions passed.
    seen, row, steps = {(head, 0)}, [(head, 0)], 0
    while row:
        following = []
        for number, passed in row:
            passed += passed < len(through) and bool(re.search(through[passed], code[number][1]))
            for to in next_of(number):
                if to == head and passed == len(through):
                    return steps + 1
                state = (to, passed)
                if to < len(code) and to != head and state not in seen:
                    seen.add(state)
                    following.append(state)
        row, steps = following, steps + 1
    return None

print("| architecture | PTX | hit | of 24 that differ by constants, each | group, affine or generic | instructions a site in all | registers without, with | frame, spills | `YIELD` without, with |")
print("| --- | --- | --: | --: | --: | --: | --: | --: | --: |")
with tempfile.TemporaryDirectory() as folder:
    for arch in (80, 90, 100, 120):
        for version in ("6.3", "8.0") if arch == 80 else ("8.0",):
            plain, registers, _, _ = assembled(folder, arch, SITES, False, version)
            code, with_data, stack, spills = assembled(folder, arch, SITES, True, version)
            more, *_ = assembled(folder, arch, SITES + 1, True, version)
            length = lambda code: sum("NOP" not in text for _, text in code)
            yields = [sum("YIELD" in text for _, text in it) for it in (plain, code)]
            without, hits = cycle(plain, []), cycle(code, [])
            group = cycle(code, [r"STG\.E\.128", r"STG\.E\.128"])
            each = (hits - without) / SITES
            neighbours = [cycle(assembled(folder, arch, SITES, data, version, False)[0], []) for data in (False, True)]
            derived = (neighbours[1] - neighbours[0]) / SITES
            count = lambda value: "?" if value is None else str(value - hits + round(each))
            print(f"| sm_{arch} | {version} | {each:.1f} | {derived:.2f} | {count(group)} | {length(more) - length(code)} | {registers}, {with_data} | {stack}, {spills} | {yields[0]}, {yields[1]} |", flush=True)
