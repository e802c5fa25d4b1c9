//! Compares the automatic trace points of the programs with the branches in the compiler's MIR before
//! optimisation.
//!
//! The rules are in `decisions.rs`. By design, the following have no trace point:
//!
//! - Checks of overflow, bounds and division (`assert` in MIR): lanes that fail do not continue.
//! - Unwinding: device code does not unwind.
//! - `&&` and `||` that produce a value and not a condition ([`VALUES`]).
//! - Functions outside the module (such as DMR's plane geometry, which has no hand-placed trace points
//!   either), closures, and functions without a decision.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod decisions;
mod parse;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use decisions::{Known, Problem, problems};
use parse::Function;
use warptrace_device::{KernelModule, LocationKind, SourceLocation};
use warptrace_workloads::{ProgramInfo, dmr, fractal, matmul, mis, mst, nbody, stress, triad};

const PROGRAMS: [&ProgramInfo; 8] = [
    &fractal::PROGRAM,
    &nbody::PROGRAM,
    &mis::PROGRAM,
    &mst::PROGRAM,
    &dmr::PROGRAM,
    &matmul::PROGRAM,
    &stress::PROGRAM,
    &triad::PROGRAM,
];

/// Operands of `&&` and `||` that produce a value: end of the file name, and text of the line.
const VALUES: [(&str, &str); 5] = [
    ("dmr/commit.rs", "won = state == state::HELD || state == state::CONTENDER;"),
    ("dmr/commit.rs", "let open = is_split && edges == triangles + 1;"),
    ("dmr/commit.rs", "(b == end_a || b == end_b) as u32"),
    ("dmr/commit.rs", "(a == end_a || a == end_b) as u32"),
    ("dmr/mark.rs", "let open = splitting && growth.edges == growth.triangles + 1;"),
];

type Locations = BTreeMap<u16, &'static SourceLocation>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles the kernels for the host, in a separate target folder, and returns their MIR.
fn mir() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mir");
    let output = folder.join("kernels.mir");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["rustc", "--quiet", "--package", "warptrace-kernels", "--lib", "--target-dir"])
        .arg(&folder)
        .args(["--", "-Zmir-include-spans=on", "-Zmir-opt-level=0"])
        .arg(format!("--emit=mir={}", output.display()))
        // Enables the unstable flags above for this crate on the stable compiler.
        .env("RUSTC_BOOTSTRAP", "warptrace_kernels")
        .env_remove("RUSTFLAGS")
        .current_dir(workspace());
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // Cargo does not track this file. It creates the file again only when the kernels change.
    let text = std::fs::read_to_string(&output);
    text.unwrap_or_else(|error| panic!("{}: {error}; remove {}", output.display(), folder.display()))
}

/// Returns the programs' modules with a trace point at every decision.
fn modules() -> Vec<&'static KernelModule> {
    PROGRAMS.iter().flat_map(|program| program.automatic).collect()
}

/// Returns the path of a module's automatic copy in the compiler's short form: `mark::kernels::automatic::`.
fn path(module: &KernelModule) -> String {
    let (_, file) = module.file.rsplit_once('/').unwrap();
    format!("{}::kernels::automatic::", file.trim_end_matches(".rs"))
}

/// Returns the traced functions of a module: names of their bodies in the MIR, and names in the module.
fn traced(module: &KernelModule) -> BTreeMap<String, &'static str> {
    let functions: BTreeSet<&str> = module.locations.iter().map(|location| location.function).collect();
    let is_kernel = |name: &str| module.kernels.contains(&format!("{name}_automatic").as_str());
    // On the host, the body of a kernel is a closure.
    let body = |name: &str| if is_kernel(name) { "::{closure#0}" } else { "" };
    functions.into_iter().map(|name| (format!("{}{name}{}", path(module), body(name)), name)).collect()
}

fn checked(text: &str) -> Vec<(Function, Locations)> {
    let functions = parse::functions(text);
    let mut found = Vec::new();
    for module in modules() {
        let locations: Locations = module.locations.iter().map(|location| (location.id, location)).collect();
        for name in traced(module).keys() {
            let mut named = functions.iter().filter(|function| function.name == *name);
            let function = named.next().unwrap_or_else(|| panic!("{name} is not in the MIR"));
            assert!(named.next().is_none(), "{name} is there twice");
            found.push((function.clone(), locations.clone()));
        }
    }
    found
}

/// Returns the violations in a function, except [`VALUES`].
fn wrong(function: &Function, locations: &Locations) -> Vec<Problem> {
    let names: BTreeSet<String> = modules().into_iter().flat_map(traced).map(|(path, _)| path).collect();
    let is_traced = |callee: &str| names.contains(callee);
    let source = |file: &str| std::fs::read_to_string(workspace().join(file)).unwrap();
    let mut problems = problems(function, &Known { locations, is_traced: &is_traced, source: &source });
    problems.retain(|problem| {
        let Some(span) = &problem.span else { return true };
        let text = source(&span.file);
        let line = text.lines().nth(span.start.0 - 1).unwrap();
        !VALUES.iter().any(|(file, value)| span.file.ends_with(file) && line.contains(value))
    });
    problems
}

mod full {
    #[test]
    fn every_branch_has_its_point() {
        super::check_branches();
    }
}

fn check_branches() {
    let text = mir();
    let mut said = Vec::new();
    let (mut switches, mut functions) = (0, 0);
    let checked = checked(&text);
    for (function, locations) in &checked {
        functions += 1;
        switches += function.blocks.iter().filter(|block| block.is_switch).count();
        for Problem { what, span } in wrong(function, locations) {
            let place =
                span.map_or(String::new(), |span| format!("{}:{}:{}", span.file, span.start.0, span.start.1));
            said.push(format!("{}: {place}: {what}", function.name));
        }
    }
    assert!(said.is_empty(), "{}", said.join("\n"));
    assert!(functions >= 25 && switches >= 100, "{functions} functions with {switches} switches are too few");

    // The check must fail if the point of any branch, arm or loop is removed.
    let mut taken = 0;
    for (function, locations) in &checked {
        let points: BTreeSet<u16> = function.blocks.iter().filter_map(|block| block.point).collect();
        for id in points {
            let mut changed = function.clone();
            for block in changed.blocks.iter_mut().filter(|block| block.point == Some(id)) {
                block.point = None;
            }
            let is_noticed = !wrong(&changed, locations).is_empty();
            // The end of a `loop`, like a `return`, follows a branch that has its own point.
            let may_be_missed = matches!(
                locations.get(&id).map(|location| location.kind),
                Some(LocationKind::Return | LocationKind::Marked | LocationKind::LoopExit)
            );
            if !is_noticed && !may_be_missed {
                said.push(format!("{}: no lane misses location {id}", function.name));
            }
            taken += usize::from(is_noticed);
        }
    }
    assert!(said.is_empty(), "{}", said.join("\n"));
    assert!(taken >= 150, "{taken} points were missed");
}

/// Checks that each `return` has its own point, or is the first statement after the point of its branch.
#[test]
fn every_return_has_its_point() {
    let mut returns = 0;
    for module in modules() {
        let text = std::fs::read_to_string(workspace().join(module.file)).unwrap();
        let at = |location: &SourceLocation| {
            let before: usize =
                text.split_inclusive('\n').take(location.line as usize - 1).map(str::len).sum();
            before + location.column as usize - 1
        };
        let start = text.find("mod kernels {").unwrap();
        for (found, _) in text.match_indices("return").filter(|(found, _)| *found > start) {
            let line = text[..found].rsplit('\n').next().unwrap();
            let is_word = text[found + 6..].starts_with([';', ' ']) && line.ends_with([' ', '\t']);
            if line.contains("//") || !is_word {
                continue;
            }
            returns += 1;
            let last = module.locations.iter().filter(|location| at(location) <= found).max_by_key(|l| at(l));
            let last = last.unwrap();
            let own = last.kind == LocationKind::Return && at(last) == found;
            let between = text[at(last)..found].lines().map(|line| line.split("//").next().unwrap());
            let between: String = between.collect();
            let between = between.trim_start_matches("=>").trim_start_matches('{').trim();
            // The automatic copy does not contain hand-placed marks.
            let first =
                between.split(';').all(|part| part.trim().is_empty() || part.trim().starts_with("trace!("));
            assert!(own || first, "{}: a `return` without a point: {line}", module.file);
        }
    }
    assert!(returns >= 10, "{returns} returns are too few");
}
