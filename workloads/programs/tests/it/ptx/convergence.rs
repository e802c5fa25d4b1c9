//! Compares where lanes reconverge in the untraced, the marked and the traced build of each kernel.
//!
//! The assembler decides which branches become predicates and where diverged lanes wait for each other. Both
//! decisions depend on the code in between, and marks and recording sequences add code. `convergence.txt` has
//! counts for each kernel and build, and the regions that only the marked or only the traced build has. It
//! lists its texts by hash; the test assembles them only if they have changed.
//! `docs/evaluation/convergence.md` explains the table.
//!
//! Marked and traced kernels have an instruction (`PMTRIG`) at each trace point. Recording sequences add
//! regions and `YIELD`s that contain no trace point.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use warptrace_build::{Compiler, Disassembler, Ptxas};
use warptrace_host::traced_registers;
use warptrace_ptx::splice::{Options, Recording, TRACED_SUFFIX, splice};

use super::{hashes, kernels, number, ptx, store, workspace};

const ARCHITECTURE: &str = "sm_90";
/// Bytes of an instruction.
const BYTES: usize = 16;
const TABLE: &str = "tests/it/ptx/convergence.txt";
const HEAD: &str = "\
# KERNEL BUILD: BSSY BSYNC BREAK YIELD | conditional BRA, EXIT, PMTRIG | regions with a trace point, YIELDs of loops with one
# KERNEL only in BUILD: lanes whose next trace points are {A} wait for each other before {B}
";
/// Kernels whose marked and traced builds differ. `docs/evaluation/convergence.md` has the reasons.
const DIFFERING: [&str; 5] = ["dmr_check", "dmr_reclaim", "mis_find_automatic", "stress_automatic", "triad"];

struct Instruction<'a> {
    /// The name without modifiers.
    name: &'a str,
    operands: &'a str,
    /// True if the instruction has a predicate, as a guard or as a branch operand.
    is_conditional: bool,
    /// Index of the instruction that it branches to, or at which its region ends.
    target: Option<usize>,
}

impl<'a> Instruction<'a> {
    /// Parses an instruction such as `@!P0 BRA.U UP0, 0x400`.
    fn new(text: &'a str) -> Self {
        let guarded = text.strip_prefix('@').and_then(|guarded| guarded.split_once(' '));
        let rest = guarded.map_or(text, |(_, rest)| rest.trim_start());
        let (full, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let name = full.split('.').next().unwrap_or_default();
        let address =
            operands.rsplit(' ').next().filter(|_| matches!(name, "BRA" | "BSSY")).and_then(from_hex);
        let is_conditional = guarded.is_some() || name == "BRA" && operands.contains(", ");
        Self { name, operands, is_conditional, target: address.map(|address| address / BYTES) }
    }

    /// Returns the location that a mark counts. Marks with the mask 0 only take time.
    fn point(&self) -> Option<usize> {
        from_hex(self.operands).filter(|location| self.name == "PMTRIG" && *location != 0)
    }

    /// Returns true if control does not fall through. Conditional instructions do fall through.
    fn leaves(&self) -> bool {
        matches!(self.name, "BRA" | "BRX" | "BRXU" | "EXIT" | "RET")
    }
}

fn from_hex(text: &str) -> Option<usize> {
    usize::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The instructions of a function, and the successors of each instruction.
struct Flow<'a> {
    code: Vec<Instruction<'a>>,
    next: Vec<Vec<usize>>,
}

impl<'a> Flow<'a> {
    fn new(lines: &[&'a str]) -> Self {
        let code: Vec<Instruction<'a>> = lines.iter().map(|line| Instruction::new(line)).collect();
        // Indirect branches lead to the instructions that are reached in no other way.
        let named: BTreeSet<usize> = code.iter().filter_map(|it| it.target).collect();
        let is_unentered = |&at: &usize| code[at - 1].leaves() && !code[at - 1].is_conditional;
        let is_place = |at: &usize| is_unentered(at) && code[*at].name != "NOP" && !named.contains(at);
        let places: Vec<usize> = (1..code.len()).filter(is_place).collect();
        let successors = |(at, it): (usize, &Instruction<'_>)| {
            let taken = match it.name {
                "BRA" => it.target.into_iter().collect(),
                "BRX" | "BRXU" => places.clone(),
                _ => Vec::new(),
            };
            let falls = (!it.leaves() || it.is_conditional) && at + 1 < code.len();
            taken.into_iter().chain(falls.then_some(at + 1)).collect()
        };
        let next = code.iter().enumerate().map(successors).collect();
        Self { code, next }
    }

    /// Returns the instructions reachable from `from`, which are included. The search does not pass
    /// instructions for which `stops` returns true, but includes them.
    fn reached(&self, from: &[usize], stops: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut seen = vec![false; self.code.len()];
        let mut work = from.to_vec();
        let mut reached = Vec::new();
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                reached.push(at);
                work.extend(self.next[at].iter().filter(|_| !stops(at)));
            }
        }
        reached
    }

    fn is_point(&self, at: usize) -> bool {
        self.code[at].point().is_some()
    }

    /// Returns the next trace points on all paths, formatted as `{7 22 end}`.
    fn next_points(&self, from: &[usize]) -> String {
        let reached = self.reached(from, |at| self.is_point(at));
        let points: BTreeSet<usize> = reached.iter().filter_map(|&at| self.code[at].point()).collect();
        let mut names: Vec<String> = points.iter().map(usize::to_string).collect();
        names.extend(reached.iter().any(|&at| self.code[at].name == "EXIT").then(|| "end".to_owned()));
        format!("{{{}}}", names.join(" "))
    }

    /// Returns the regions that contain a trace point, with the number of each.
    fn regions(&self) -> BTreeMap<String, usize> {
        let mut regions = BTreeMap::new();
        for at in (0..self.code.len()).filter(|&at| self.code[at].name == "BSSY") {
            let target = self.code[at].target.expect("a region names its end");
            let inside = self.reached(&self.next[at], |inside| inside == target);
            if inside.iter().any(|&inside| inside != target && self.is_point(inside)) {
                let [before, after] = [&*self.next[at], &[target]].map(|from| self.next_points(from));
                *regions.entry(format!("lanes before {before} wait before {after}")).or_insert(0) += 1;
            }
        }
        regions
    }

    fn line(&self, kernel: &str, build: &str) -> String {
        let count = |name| self.code.iter().filter(|it| it.name == name).count();
        let conditional = |name| self.code.iter().filter(|it| it.name == name && it.is_conditional).count();
        let [bssy, bsync, breaks, yields] = ["BSSY", "BSYNC", "BREAK", "YIELD"].map(count);
        let [branches, exits, marks] = ["BRA", "EXIT", "PMTRIG"].map(conditional);
        let counts = format!("{bssy} {bsync} {breaks} {yields} | {branches} {exits} {marks}");
        if build == "untraced" {
            return format!("{kernel} {build}: {counts}");
        }
        // Counts only `YIELD`s that cannot be executed again without passing a trace point.
        let is_of_loop = |at: &usize| !self.reached(&self.next[*at], |it| self.is_point(it)).contains(at);
        let yields =
            (0..self.code.len()).filter(|&at| self.code[at].name == "YIELD").filter(is_of_loop).count();
        format!("{kernel} {build}: {counts} | {} {yields}", self.regions().values().sum::<usize>())
    }
}

fn functions(text: &str) -> BTreeMap<&str, Flow<'_>> {
    // The second half of an encoding is on a separate line, which begins with `0x`.
    let is_address = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let instruction = |line| {
        let (address, rest) = str::trim(line).strip_prefix("/*")?.split_once("*/")?;
        Some(rest.split(';').next()?.trim()).filter(|_| is_address(address))
    };
    let bodies = text.split("Function : ").skip(1).filter_map(|function| function.split_once('\n'));
    bodies
        .map(|(name, body)| {
            (name.trim(), Flow::new(&body.lines().filter_map(instruction).collect::<Vec<_>>()))
        })
        .collect()
}

fn compare(untraced: &BTreeMap<&str, Flow<'_>>, spliced: &BTreeMap<&str, Flow<'_>>) -> String {
    let mut table = String::new();
    for kernel in kernels() {
        let [marked, traced] = [kernel, &format!("{kernel}{TRACED_SUFFIX}")].map(|name| &spliced[name]);
        for (build, flow) in [("untraced", &untraced[kernel]), ("marked", marked), ("traced", traced)] {
            let _ = writeln!(table, "{}", flow.line(kernel, build));
        }
        let [marked, traced] = [marked, traced].map(Flow::regions);
        for (build, one, other) in [("marked", &marked, &traced), ("traced", &traced, &marked)] {
            for (region, count) in one.iter().filter(|(region, count)| other.get(*region) < Some(*count)) {
                let more = count - other.get(region).unwrap_or(&0);
                let _ = writeln!(table, "{kernel} only in {build}: {region}, {more} x");
            }
        }
    }
    table
}

/// Overwrites the file if requested. Unless `is_fresh`, does nothing if it lists the current texts' hashes.
pub(crate) fn check(is_fresh: bool) {
    let Some(ptx) = ptx() else { return };
    let Some(untraced) = store().functions(ptx, ARCHITECTURE) else { return };
    let limit = |kernel: &'static str| (kernel, traced_registers(untraced[kernel].registers));
    let limits: Vec<_> = kernels().into_iter().map(limit).collect();
    let recording = Some(Recording::DEFAULT);
    let architecture = number(ARCHITECTURE);
    let options = Options { recording, registers: &limits, architecture, marks: 1, ..Options::default() };
    let texts = [ptx, &splice(ptx, &options).expect("it can be spliced").text];
    let names = texts.map(|text| format!("# text {ARCHITECTURE} {}\n", hashes::hash(text))).concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if !is_fresh && golden.contains(&names) {
        return;
    }
    let (assembler, disassembler) = match (Ptxas::find(&workspace()), Disassembler::find(&workspace())) {
        (Ok(assembler), Ok(disassembler)) => (assembler, disassembler),
        (Err(error), _) | (_, Err(error)) => return eprintln!("skipped: {error}"),
    };
    let said = Command::new(&assembler.program).arg("--version").output().expect("it was found").stdout;
    let said = String::from_utf8_lossy(&said);
    let version = said.lines().find_map(|line| Some(line.split_once("release ")?.1.split_once(", ")?.1));
    let compiler = Compiler::find().expect("the kernels are compiled").version;
    let made_by = format!("# ptxas {}, {compiler}\n", version.unwrap_or(&said));
    if !hashes::overwrites() && !golden.starts_with(&made_by) {
        return eprintln!("skipped: {} is not of `{}`", path.display(), made_by.trim_end());
    }
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let [untraced, spliced] = texts.map(|text| {
        let ptx = folder.path().join("text.ptx");
        std::fs::write(&ptx, text).expect("the folder takes files");
        let made = assembler.assemble(&ptx, ARCHITECTURE);
        let code = made.and_then(|_| disassembler.disassemble(&Ptxas::cubin(&ptx, ARCHITECTURE)));
        code.unwrap_or_else(|error| panic!("{error}"))
    });
    let table = compare(&functions(&untraced), &functions(&spliced));
    if hashes::overwrites() {
        return std::fs::write(&path, made_by + &names + HEAD + &table).expect("the table can be written");
    }
    let is_equal = golden.ends_with(&(HEAD.to_owned() + &table)) && (!is_fresh || golden.contains(&names));
    assert!(is_equal, "{}: `cargo xtask golden` writes it anew. Now:\n{names}{table}", path.display());
}

#[test]
fn lanes_reconverge_where_they_did() {
    check(false);
}

#[test]
fn traced_kernels_that_reconverge_elsewhere_are_known() {
    let table = include_str!("convergence.txt").lines().filter(|line| !line.starts_with('#'));
    let differing: BTreeSet<&str> = table.filter_map(|line| Some(line.split_once(" only in ")?.0)).collect();
    assert_eq!(differing, BTreeSet::from(DIFFERING), "docs/evaluation/convergence.md has the reasons");
}

#[test]
fn regions_with_trace_points_are_told_from_others() {
    // A loop with trace point 2 and a region without one. Some lanes branch from it to the end.
    const CODE: &str = "PMTRIG 0x1; BSSY B0, 0xb0; PMTRIG 0x2; BSSY B1, 0x70; @P0 BRA 0x60; YIELD; BSYNC B1;\
        @P1 BRA 0xd0; YIELD; @!P2 BRA 0x20; BSYNC B0; @P3 PMTRIG 0x3; EXIT; EXIT; BRA 0xe0";
    let flow = Flow::new(&CODE.split(';').map(str::trim).collect::<Vec<_>>());
    assert_eq!(flow.regions(), BTreeMap::from([("lanes before {2} wait before {3}".to_owned(), 1)]));
    assert_eq!(flow.line("k", "marked"), "k marked: 2 2 0 2 | 3 0 1 | 1 2");
}
