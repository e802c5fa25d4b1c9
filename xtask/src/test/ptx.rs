//! Assembling the kernels' PTX for the architectures that are supported.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use warptrace_build::{ARCHITECTURES, Ptxas, VARIANTS};

use super::report::{self, Report};
use crate::steps::Outcome;
use crate::{process, setup, workspace};

/// The package whose build script compiles the kernels.
const PACKAGE: &str = "warptrace-workloads";

/// Builds all tests, and answers the PTX that the build embedded: one file for each variant, none without a device
/// compiler.
pub(super) fn build() -> anyhow::Result<Vec<PathBuf>> {
    let mut command = workspace::cargo();
    command
        .args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"])
        .stdout(Stdio::piped());
    let output = command.spawn()?.wait_with_output()?;
    if !output.status.success() {
        bail!("`{}` failed ({})", process::line(&command), output.status);
    }
    // Cargo names the build script's folder, so the kernels need not be compiled again for this step.
    let out = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "build-script-executed")
        .filter(|message| message["package_id"].as_str().is_some_and(|id| id.contains(PACKAGE)))
        .find_map(|message| message["out_dir"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo does not say where {PACKAGE} was built"))?;
    let table =
        std::fs::read_to_string(out.join("ptx_table.rs")).context("cannot read the table of PTX modules")?;
    // Files of an earlier build may lie there still; the table is what counts.
    if table.trim() == "&[]" {
        return Ok(Vec::new());
    }
    Ok(VARIANTS.iter().map(|variant| out.join("ptx").join(format!("{}.ptx", variant.name))).collect())
}

/// Assembles `modules` for every architecture and prints a table of what that took.
pub(super) fn assemble(modules: &[PathBuf]) -> anyhow::Result<Outcome> {
    if modules.is_empty() {
        return Ok(Outcome::Skipped("no device compiler, so no PTX: `cargo xtask setup`".to_owned()));
    }
    let ptxas = match setup::find_ptxas() {
        Ok(ptxas) => ptxas,
        Err(reason) => return Ok(Outcome::Skipped(reason)),
    };
    // Copies in a place that people find, and where the assembler's output disturbs no build.
    let folder = workspace::target()?.join("ptx");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut work = Vec::new();
    for module in modules {
        let copy = folder.join(module.file_name().context("a file has a name")?);
        std::fs::copy(module, &copy).with_context(|| format!("cannot copy {}", module.display()))?;
        work.extend(ARCHITECTURES.map(|architecture| (copy.clone(), architecture)));
    }
    let reports = assemble_all(&ptxas, &work)?;
    print!("{}", report::table(&reports));
    let notes = report::notes(&reports);
    for note in &notes {
        println!("note: {note}");
    }
    println!("The PTX and its machine code are in {}.", workspace::shown(&folder));
    Ok(Outcome::Passed(format!(
        "{} modules for {} architectures; notes: {}",
        modules.len(),
        ARCHITECTURES.len(),
        notes.len()
    )))
}

/// Assembles on all cores; the reports are in the order of `work`.
fn assemble_all(ptxas: &Ptxas, work: &[(PathBuf, &'static str)]) -> anyhow::Result<Vec<Report>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((path, architecture)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = ptxas.assemble(path, architecture);
                    done.lock().expect("no thread panics").push((path.clone(), *architecture, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics");
    done.sort_by_key(|(path, architecture, _)| {
        work.iter().position(|item| (&item.0, item.1) == (path, *architecture))
    });
    done.into_iter()
        .map(|(path, architecture, result)| {
            let said = result.with_context(|| format!("{} for {architecture}", path.display()))?;
            Ok(Report::parse(&variant(&path), architecture, &said))
        })
        .collect()
}

fn variant(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
