//! `cargo xtask test`: the checks of a change. CI runs the fast tier; `--all` runs every suite in full.

use std::process::{Command, ExitCode};

use clap::ValueEnum;

use crate::steps::{Outcome, Steps};
use crate::{aarch64, book, budget, idle, junit, package, process, setup, wheel, workspace};

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run every suite in full, not only the fast tier
    #[arg(long)]
    all: bool,
    /// Run only this part; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Install nothing
    #[arg(long)]
    no_setup: bool,
}

/// A part of the run, in the order in which parts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Find or install compilers, assemblers and readers
    SetUp,
    /// Check the format of all sources
    Format,
    /// Check the links of all pages
    Links,
    /// Compare lines, crates, the size of the tool and hard-to-read phrases with `results/budget.json`
    Budget,
    /// Build unit and integration tests with Clippy's lints, and run them; with --all, build them without
    Tests,
    /// Run the examples in the documentation
    DocTests,
    /// Run Clippy, also on benchmarks (not in the fast tier)
    Lints,
    /// Build the documentation of all packages (not in the fast tier)
    Docs,
    /// Lint and test `warptrace query` (not in the fast tier)
    Query,
    /// Build the shim for aarch64, and run its tests with QEMU (not in the fast tier)
    Aarch64,
    /// Build the Python wheel and check it (not in the fast tier)
    Wheel,
    /// Package all crates; build and run the examples from the packages (not in the fast tier)
    Packages,
    /// Build the documentation as a book (not in the fast tier)
    Book,
}

impl Part {
    fn is_fast(self) -> bool {
        (self as u8) < Part::Lints as u8
    }
}

/// Packages of the fast tier, with features that only tests need. All commands of a tier use the same list,
/// because cargo rebuilds crates for other features. Of the evaluation, it has the programs on small inputs.
const FAST: [&str; 11] = [
    "--workspace",
    "--exclude",
    "warptrace-query",
    "--exclude",
    "warptrace-python",
    "--exclude",
    "warptrace-tables",
    "--exclude",
    "warptrace-bench",
    "--features",
    "warptrace-ptx/interpreter,warptrace-analysis/bytes",
];

/// Packages of the full tier: also `warptrace-bench`, packages that need Arrow, and all optional features.
const FULL: [&str; 5] = [
    "--workspace",
    "--exclude",
    "warptrace-query",
    "--features",
    "warptrace-ptx/interpreter,warptrace-analysis/bytes,warptrace-cli/full",
];

/// `warptrace-query` and the tool with all features, built separately because DataFusion takes long.
const QUERY: [&str; 6] = [
    "--package",
    "warptrace-query",
    "--package",
    "warptrace-cli",
    "--features",
    "warptrace-cli/full,warptrace-cli/query",
];

const OF_QUERY: &str = "package(warptrace-query) | test(/^query/)";

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::default();
    let mut tests = Vec::new();
    let chosen = |part: &Part| match options.only.is_empty() {
        true => options.all || part.is_fast(),
        false => options.only.contains(part),
    };
    for part in Part::value_variants().iter().filter(|part| chosen(part)) {
        if *part == Part::SetUp && options.no_setup {
            continue;
        }
        run_part(*part, options.all || !part.is_fast(), &mut steps, &mut tests);
    }
    if options.all && !tests.is_empty() {
        steps.step("slow tests", || junit::check_slow(&tests));
    }
    junit::print_slowest(&tests);
    let passed = steps.summary();
    junit::write(&steps, &tests)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one part as one or more steps. `full` selects its full tier.
fn run_part(part: Part, full: bool, steps: &mut Steps, tests: &mut Vec<junit::Test>) {
    let packages = if full { &FULL[..] } else { &FAST };
    match part {
        Part::SetUp => {
            steps.step("set-up", || {
                let whom = if full { setup::For::AllTests } else { setup::For::Tests };
                match setup::all(whom) {
                    Ok(()) => Outcome::Passed(String::new()),
                    Err(missing) => Outcome::Skipped(format!("without {}", missing.join(" and "))),
                }
            });
        }
        Part::Format => {
            steps.step("format", check_format);
        }
        Part::Links => {
            steps.step("links", book::check_links);
        }
        Part::Budget => {
            steps.step("budget", || budget::check(full));
        }
        Part::Tests => {
            let build = if full { "build tests" } else { "build and lint tests" };
            let suite = Suite { build, run: "tests", packages, filter: None, lints: !full };
            suite.add_steps(full, steps, tests);
        }
        Part::DocTests => {
            steps.step("doc tests", || {
                let mut command = workspace::cargo();
                command.arg("test").args(packages).args(["--doc", "--no-fail-fast"]);
                process::run(with_compiler(&mut command, !full))
            });
        }
        Part::Lints => {
            steps.step("lints", || {
                let mut command = workspace::cargo();
                command.arg("clippy").args(packages).args(["--all-targets", "--", "-D", "warnings"]);
                // Clippy runs build scripts separately. They would compile all kernels a second time.
                process::run(command.env("WARPTRACE_NO_DEVICE_CODE", "1"))
            });
        }
        Part::Docs => {
            steps.step("docs", || {
                let mut command = workspace::cargo();
                command.arg("doc").args(packages).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings");
                process::run(&mut command)
            });
        }
        Part::Query => {
            let suite = Suite {
                build: "build and lint tests of query",
                run: "tests of query",
                packages: &QUERY,
                filter: Some(OF_QUERY),
                lints: true,
            };
            suite.add_steps(full, steps, tests);
        }
        Part::Aarch64 => {
            steps.step("aarch64", aarch64::test);
        }
        Part::Wheel => {
            // The tests of `query` build the wheel's programs. Alone, cargo would select other features of
            // some dependencies and compile DataFusion again.
            steps.step("wheel", || {
                process::run(with_compiler(workspace::cargo().args(["test", "--no-run"]).args(QUERY), true))?;
                wheel::check_debug()
            });
        }
        Part::Packages => {
            steps.step("packages", || package::check(&package::Options::default()));
        }
        Part::Book => {
            steps.step("book", || book::set_up().and_then(|()| book::build()).map(drop));
        }
    }
}

fn check_format() -> anyhow::Result<()> {
    process::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
    for example in package::examples()? {
        let manifest = example.join("Cargo.toml");
        process::run(workspace::cargo().args(["fmt", "--check", "--manifest-path"]).arg(manifest))?;
    }
    Ok(())
}

/// Selects the compiler of the workspace's packages: Clippy's driver, which also lints, for the fast tier and
/// `query`; otherwise rustc. If commands of a tier used different ones, cargo would compile everything twice.
fn with_compiler(command: &mut Command, lints: bool) -> &mut Command {
    if lints {
        command.args(["--config", "build.rustc-workspace-wrapper='clippy-driver'"]);
        // The form in which `cargo clippy` passes `-D warnings`.
        command.env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    }
    command
}

struct Suite<'a> {
    build: &'static str,
    run: &'static str,
    packages: &'a [&'a str],
    /// Filter of nextest; all tests if `None`.
    filter: Option<&'a str>,
    /// Whether Clippy's driver compiles the packages.
    lints: bool,
}

impl Suite<'_> {
    /// Builds and runs the tests, and adds their times to `tests`. Without nextest, runs the tests without
    /// the filter and without times.
    fn add_steps(&self, full: bool, steps: &mut Steps, tests: &mut Vec<junit::Test>) {
        let has_nextest = workspace::has_subcommand("nextest");
        let command = |more: &[&str]| {
            let mut cargo = workspace::cargo();
            cargo.args(if has_nextest { &["nextest", "run"][..] } else { &["test"] });
            cargo.args(self.packages);
            with_compiler(&mut cargo, self.lints).args(more);
            cargo
        };
        let built = steps.step(self.build, || process::run(&mut command(&["--no-run"])));
        if matches!(built, Outcome::Failed(_)) {
            return;
        }
        let profile = if full { "full" } else { "default" };
        let load = idle::Load::start();
        steps.step(self.run, || {
            process::run(&mut match (has_nextest, full) {
                (true, _) => {
                    let mut command = command(&["--no-fail-fast", "--profile", profile]);
                    command.args(self.filter.iter().flat_map(|filter| ["-E", filter]));
                    command
                }
                (false, true) => command(&["--no-fail-fast"]),
                (false, false) => command(&["--no-fail-fast", "--", "--skip", "full::"]),
            })
        });
        if !has_nextest {
            return;
        }
        let mut found = times(profile, &load);
        if let Some(filter) = junit::slow_filter(&found).filter(|_| full) {
            // Next to other tests, a test takes up to twice as long.
            let load = idle::Load::start();
            steps.step("slow tests alone", || {
                let alone = ["--no-fail-fast", "--profile", profile, "--test-threads", "1", "-E", &filter];
                process::run(&mut command(&alone))
            });
            junit::replace(&mut found, &times(profile, &load));
        }
        tests.extend(found);
    }
}

/// Reads the times of the last run of nextest. Prints the error if they cannot be read.
fn times(profile: &str, load: &idle::Load) -> Vec<junit::Test> {
    junit::read(profile, load.of_others()).unwrap_or_else(|error| {
        eprintln!("times of tests: {error:#}");
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_tier_builds_no_library_of_the_evaluation_but_robust() {
        let tree = |packages: &[&str], edges| {
            let mut cargo = workspace::cargo();
            cargo.args(["tree", "--offline", "--prefix", "none", "--format", "{p}", "--edges", edges]);
            let output = cargo.args(packages).output().expect("cargo runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("names are UTF-8")
        };
        let found = |tree: &str| {
            let names = ["bzip2", "liblzma", "plotters", "png", "robust", "spade"];
            names.into_iter().filter(|name| tree.contains(&format!("\n{name} v"))).collect::<Vec<_>>()
        };
        assert_eq!(found(&tree(&[], "normal,build")), Vec::<&str>::new(), "what `cargo build` compiles");
        // Meshes are built with exact predicates.
        assert_eq!(found(&tree(&FAST, "normal,build,dev")), ["robust"]);
        assert_eq!(found(&tree(&FULL, "normal,build,dev")).len(), 6);
    }
}
