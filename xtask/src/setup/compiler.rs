//! The device compiler: a `rustc` with matching `rust-src`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use warptrace_build::{BuildError, Compiler, DEVICE_COMPILER_VARIABLE, Origin};

use super::{Missing, SetUpResult};
use crate::process::quietly;

/// Debian packages. They can be installed next to toolchains of rustup.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];
/// Oldest Rust that can compile the device crate, as in `warptrace-build`.
const OLDEST_MINOR: u32 = 96;
/// Time limit: long enough for a slow mirror, short enough for a network that does not respond.
const LIMIT: Duration = Duration::from_secs(600);

const HELP: &str = "`rustup toolchain install stable --component rust-src` (Rust 1.96 or later), or on Debian \
    `apt-get install rustc-web rust-web-src`, or name a rustc that has rust-src in WARPTRACE_RUSTC";
const WITHOUT: &str =
    "Without it everything works except `--device cuda`: the simulator runs the same kernels.";

pub(super) fn set_up() -> SetUpResult {
    let first = match Compiler::find() {
        Ok(compiler) => return Ok(describe(&compiler)),
        Err(BuildError::NoCompiler { tried }) => tried,
        Err(error) => error.to_string(),
    };
    let missing = |tried| Missing { tried, help: HELP.to_owned(), without: WITHOUT };
    if std::env::var_os(DEVICE_COMPILER_VARIABLE).is_some_and(|value| !value.is_empty()) {
        // A compiler named by the user is not replaced.
        return Err(missing(vec![first]));
    }
    let mut tried = vec![first];
    for install in [with_rustup, with_apt] {
        match install() {
            Ok(done) => match Compiler::find() {
                Ok(compiler) => return Ok(format!("{}; installed by {done}", describe(&compiler))),
                Err(error) => tried.push(format!("{done} succeeded, and yet: {error}")),
            },
            Err(Some(reason)) => tried.push(reason),
            Err(None) => {}
        }
    }
    Err(missing(tried))
}

fn describe(compiler: &Compiler) -> String {
    let origin = match compiler.origin {
        Origin::Variable => "named by WARPTRACE_RUSTC",
        Origin::Rustup => "a toolchain of rustup",
        Origin::Debian => "Debian's rustc-web",
    };
    format!("{} at {} ({origin})", compiler.version, compiler.rustc.display())
}

/// Description, or the reason of a failure; `Err(None)` if the method does not apply to this machine.
type Installed = Result<String, Option<String>>;

/// Adds `rust-src` to a recent toolchain of rustup. Skips nightlies, which change from day to day.
fn with_rustup() -> Installed {
    let output = Command::new("rustup").args(["toolchain", "list"]).output().map_err(|_| None)?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut failed = None;
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        if name.starts_with("nightly") || !is_recent(name) {
            continue;
        }
        let mut command = Command::new("rustup");
        command.args(["component", "add", "rust-src", "--toolchain", name]);
        match quietly(&mut command, LIMIT) {
            Ok(ended) if ended.success => {
                return Ok(format!("`rustup component add rust-src --toolchain {name}`"));
            }
            Ok(ended) => {
                failed = Some(format!("rustup could not add rust-src to {name}: {}", ended.last_line()));
            }
            Err(error) => failed = Some(format!("rustup cannot be run: {error}")),
        }
    }
    Err(failed)
}

/// Returns true if the toolchain `name` is Rust 1.96 or later.
fn is_recent(name: &str) -> bool {
    let output = Command::new("rustup").args(["run", name, "rustc", "--version"]).output();
    output.is_ok_and(|output| {
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let minor = version.strip_prefix("rustc 1.").and_then(|rest| rest.split('.').next()?.parse().ok());
        output.status.success() && minor.is_some_and(|minor: u32| minor >= OLDEST_MINOR)
    })
}

fn with_apt() -> Installed {
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(None);
    }
    let as_root = if is_root() {
        vec![]
    } else if quietly(Command::new("sudo").args(["-n", "true"]), Duration::from_secs(10))
        .is_ok_and(|ended| ended.success)
    {
        vec!["sudo", "-n"]
    } else {
        return Err(Some(format!(
            "`apt-get install {}` needs root, or sudo without a password",
            PACKAGES.join(" ")
        )));
    };
    let apt = |arguments: &[&str]| {
        let words: Vec<&str> =
            as_root.iter().copied().chain(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(arguments);
        match quietly(&mut command, LIMIT) {
            Ok(ended) if ended.success => Ok(()),
            Ok(ended) => {
                Err(Some(format!("`apt-get {}` failed: {}", arguments.join(" "), ended.last_line())))
            }
            Err(error) => Err(Some(format!("apt-get cannot be run: {error}"))),
        }
    };
    println!("installing {} with apt-get, which takes about half a minute ...", PACKAGES.join(" and "));
    // The installation may succeed with an outdated list, so a failed update is not an error.
    let updated = apt(&["update"]);
    // `--no-remove`: Debian's other Rust packages conflict with these, and a user may need them.
    let mut install = vec!["install", "--yes", "--no-remove", "--no-install-recommends"];
    install.extend(PACKAGES);
    apt(&install).map_err(|failed| updated.err().unwrap_or(failed))?;
    Ok(format!("`apt-get install {}`", PACKAGES.join(" ")))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
