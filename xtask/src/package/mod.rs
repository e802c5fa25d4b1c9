//! `cargo xtask package`: packages the workspace for a registry, and builds and runs the examples with them.
//!
//! The packages are unpacked below `target`. A patch in cargo's settings there replaces the registry by them.

mod archives;
mod mistakes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use warptrace_abi::marker::Marker;

use anyhow::{Context, bail, ensure};
use warptrace_build::Compiler;

use crate::{process, workspace};

const UNPUBLISHED: [&str; 5] =
    ["xtask", "warptrace-bench", "warptrace-fuzz", "warptrace-random-kernels", "warptrace-python"];

/// A package that is not built here, because DataFusion takes long. The part `query` of the tests builds it.
const BUILDS_LONG: &str = "warptrace-query";

/// Features of cudarc that a user's package may choose. The packages must build with each of them.
const CUDARC_CHOICES: [(&str, &str); 2] = [
    ("linked", r#"["std", "driver", "nvrtc", "dynamic-linking", "cuda-12080"]"#),
    ("loaded", r#"["std", "driver", "nvrtc", "dynamic-loading", "cuda-11080"]"#),
];

/// A package that verifies a trace and fails if it is incomplete.
const VERIFIER: &str = "verifier";
const VERIFIER_SOURCE: &str = r#"//! Verifies a trace.

use std::process::ExitCode;

use warptrace_decoder::TraceFile;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a trace")?;
    let report = TraceFile::open(path)?.verify();
    println!("{report}");
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
"#;

struct Folders {
    /// Archives and unpacked packages.
    packages: PathBuf,
    /// Examples, and generated packages.
    users: PathBuf,
    /// Target folder of the users. Device code is compiled in it, so it must be below the patch.
    target: PathBuf,
}

/// Arguments of `package`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Make the packages, and build the newcomer's mistakes with them, but nothing else
    #[arg(long)]
    mistakes: bool,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    check(options)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(options: &Options) -> anyhow::Result<()> {
    let root = workspace::target()?.join("package-test");
    let folders =
        Folders { packages: root.join("packages"), users: root.join("users"), target: root.join("target") };
    let timed = |what: &str, work: &mut dyn FnMut() -> anyhow::Result<()>| {
        let started = Instant::now();
        work()?;
        println!("   {what}: {:.0} s", started.elapsed().as_secs_f32());
        anyhow::Ok(())
    };

    let mut packages = Vec::new();
    timed("packages made", &mut || {
        packages = archives::make(&folders.packages, &UNPUBLISHED)?;
        Ok(())
    })?;
    write_patch(&root, &packages)?;
    let make_mistakes = || timed("mistakes made", &mut || mistakes::check(&folders));
    if options.mistakes {
        return make_mistakes();
    }
    timed("users of cudarc checked", &mut || {
        CUDARC_CHOICES.iter().try_for_each(|(name, features)| check_cudarc(&folders, name, features))
    })?;
    write_verifier(&folders)?;
    for example in examples()? {
        let name = example.file_name().unwrap_or_default().to_string_lossy().into_owned();
        timed(&format!("example {name}"), &mut || run_example(&folders, &example, &name))?;
    }
    make_mistakes()?;
    timed("all packages checked", &mut || check_all(&folders, &packages))?;
    archives::check_untouched(&folders.packages, &packages)?;
    println!("{} packages, in {}", packages.len(), workspace::shown(&folders.packages));
    Ok(())
}

/// Writes the patch that makes cargo use the packages in all folders below `root`.
fn write_patch(root: &Path, packages: &[archives::Package]) -> anyhow::Result<()> {
    let mut text = String::from("[patch.crates-io]\n");
    for package in packages {
        text += &format!("{} = {{ path = {:?} }}\n", package.name, package.folder.display().to_string());
    }
    write(&root.join(".cargo/config.toml"), &text)
}

/// Checks all packages as a workspace with this one's profile, so that they share outputs with the lints.
fn check_all(folders: &Folders, packages: &[archives::Package]) -> anyhow::Result<()> {
    let members: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let workspace = read(&workspace::root().join("Cargo.toml"))?;
    let profile = workspace.find("[profile.dev]").context("the workspace has no profile `dev`")?;
    let profile = workspace[profile..].split("[profile.release]").next().unwrap_or_default();
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n{profile}");
    write(&folders.packages.join("Cargo.toml"), &manifest)?;
    let mut command = user_cargo(&folders.packages, &workspace::target()?);
    command.args(["check", "--quiet", "--workspace", "--exclude", BUILDS_LONG]);
    process::run(command.env("WARPTRACE_NO_DEVICE_CODE", "1"))
}

/// Checks a package that uses cudarc directly, with other features.
fn check_cudarc(folders: &Folders, name: &str, features: &str) -> anyhow::Result<()> {
    let folder = folders.users.join(name);
    let manifest = user_manifest(name)
        + &format!(
            "warptrace = \"*\"\ncudarc = {{ version = \"0.19\", default-features = false, features = {features} }}\n\n[workspace]\n"
        );
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(
        &folder.join("src/lib.rs"),
        "//! Hands a context of its own to warptrace.\n\n\
         pub fn device(context: &std::sync::Arc<cudarc::driver::CudaContext>) -> Result<warptrace::Device, warptrace::Error> {\n    \
         warptrace::Device::from_cudarc(&context.default_stream())\n}\n",
    )?;
    // Device code is compiled once for this package and all examples.
    process::run(user_cargo(&folder, &folders.target).args(["check", "--quiet"]))
}

/// Writes a package that verifies traces, as a user of the decoder would.
fn write_verifier(folders: &Folders) -> anyhow::Result<()> {
    let folder = folders.users.join(VERIFIER);
    let profile = "\n[profile.dev]\nopt-level = 1\n\n[workspace]\n";
    let manifest = user_manifest(VERIFIER) + "warptrace-decoder = \"*\"\n" + profile;
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join("src/main.rs"), VERIFIER_SOURCE)
}

pub(crate) fn examples() -> anyhow::Result<Vec<PathBuf>> {
    let folder = workspace::root().join("examples");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut examples: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    examples.sort();
    Ok(examples)
}

/// Runs an example, which checks its result, and verifies its trace.
fn run_example(folders: &Folders, example: &Path, name: &str) -> anyhow::Result<()> {
    // The name contains a blank, as folders of users may.
    let folder = folders.users.join(format!("example {name}"));
    archives::copy_changed(example, &folder, &["target", "Cargo.lock"])?;
    let manifest = folder.join("Cargo.toml");
    write(&manifest, &from_registry(&read(&example.join("Cargo.toml"))?))?;
    let trace = folder.join(format!("{name}.wtrc"));
    process::run(user_cargo(&folder, &folders.target).args(["run", "--quiet", "--"]).arg(&trace))?;
    let verifier = folders.users.join(VERIFIER);
    process::run(user_cargo(&verifier, &folders.target).args(["run", "--quiet", "--"]).arg(&trace))?;

    // A second build without a change compiles nothing.
    let built = user_cargo(&folder, &folders.target).args(["build", "--color", "never"]).output()?;
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    ensure!(!said.contains("Compiling"), "{name} is built again without a change:\n{said}");
    check_device_code(folders, name)
}

/// Checks that the kernels were compiled for GPUs with all trace points, if device code can be compiled.
fn check_device_code(folders: &Folders, name: &str) -> anyhow::Result<()> {
    let skips =
        std::env::var_os("WARPTRACE_NO_DEVICE_CODE").is_some_and(|value| !value.is_empty() && value != "0");
    if skips || Compiler::find().is_err() {
        println!("   {name}: no device code, as there is no device compiler, or it is not wanted");
        return Ok(());
    }
    let builds = folders.target.join("debug/build");
    let entries = fs::read_dir(&builds).with_context(|| format!("cannot read {}", builds.display()))?;
    let newest = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{name}-")))
        .map(|entry| entry.path().join("out/kernels.ptx"))
        .filter(|ptx| ptx.is_file())
        .max_by_key(|ptx| ptx.metadata().and_then(|file| file.modified()).ok());
    let ptx = read(&newest.with_context(|| format!("the build script of {name} left no kernels.ptx"))?)?;
    let mut ids: Vec<u32> = ptx.lines().filter_map(location).collect();
    ids.sort_unstable();
    ids.dedup();
    let last = ids.last().copied().unwrap_or(0);
    if last == 0 || ids != (1..=last).collect::<Vec<u32>>() {
        bail!("the device code of {name} has the locations {ids:?}: one is lost");
    }
    Ok(())
}

/// Returns the location that a line of PTX marks.
fn location(line: &str) -> Option<u32> {
    match Marker::parse(line.trim())? {
        Ok(Marker::Event(id) | Marker::Tick(id, _)) => Some(id.into()),
        _ => None,
    }
}

/// Returns the manifest of an example, with warptrace from a registry instead of a path.
fn from_registry(manifest: &str) -> String {
    let lines = manifest.lines().map(|line| match line.split_once(" = { path = \"../../") {
        Some((name, _)) => format!("{name} = \"*\""),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn user_manifest(name: &str) -> String {
    format!(
        "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n"
    )
}

/// Returns a cargo command for a user's folder, with the package versions of the workspace.
fn user_cargo(folder: &Path, target: &Path) -> Command {
    let lock = folder.join("Cargo.lock");
    if !lock.exists() || is_older(&lock, &workspace::root().join("Cargo.lock")) {
        // Cargo resolves packages that are missing from the file.
        let _ = fs::copy(workspace::root().join("Cargo.lock"), &lock);
    }
    let mut cargo = workspace::cargo();
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", target);
    cargo
}

fn is_older(file: &Path, than: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    time(file) < time(than)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file unless it already has that text. Its modification time determines rebuilds.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let written = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, text));
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_take_warptrace_from_a_registry() {
        let found =
            from_registry("[dependencies]\nwarptrace = { path = \"../../warptrace\" }\nother = \"1\"\n");
        assert_eq!(found, "[dependencies]\nwarptrace = \"*\"\nother = \"1\"\n");
    }

    #[test]
    fn markers_name_their_location() {
        assert_eq!(location("\t// warptrace.loc 12"), Some(12));
        assert_eq!(location("\t// warptrace.loop.tick 4 1"), Some(4));
        assert_eq!(location("\t// begin inline asm"), None);
    }
}
