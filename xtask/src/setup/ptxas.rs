//! `ptxas`, NVIDIA's assembler, which checks PTX without a GPU.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use warptrace_build::{ARCHITECTURES, Ptxas, TOOLCHAIN_FOLDER};

use super::{Found, Missing};
use crate::process::quietly;
use crate::workspace;

/// The wheel on PyPI that carries it. From 13 on it knows all architectures that are checked.
const WHEEL: &str = "nvidia-cuda-nvcc>=13,<14";
const LIMIT: Duration = Duration::from_secs(600);

const HELP: &str = "put the ptxas of CUDA 13 on the PATH, or install Python's pip and run this again";
const WITHOUT: &str = "Without it the PTX is not checked; nothing else needs it, a GPU's driver has its own.";

/// Finds the assembler.
///
/// # Errors
/// Why there is none that does.
pub(crate) fn find() -> Result<Ptxas, String> {
    let ptxas = Ptxas::find(workspace::root()).map_err(|error| error.to_string())?;
    let output = Command::new(&ptxas.program).arg("--help").output().map_err(|error| error.to_string())?;
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let unknown: Vec<&str> =
        ARCHITECTURES.into_iter().filter(|name| !help.contains(&format!("'{name}'"))).collect();
    if unknown.is_empty() {
        Ok(ptxas)
    } else {
        Err(format!("{} is too old for {}", ptxas.program.display(), unknown.join(", ")))
    }
}

/// Finds the assembler, or installs it into the project's own folder.
pub(super) fn set_up() -> Found {
    let mut tried = match find() {
        Ok(ptxas) => return Ok(describe(&ptxas)),
        Err(reason) => vec![reason],
    };
    println!("installing {WHEEL} with pip ...");
    match install(&workspace::root().join(TOOLCHAIN_FOLDER).join("cuda")) {
        Ok(done) => match find() {
            Ok(ptxas) => return Ok(format!("{}; installed by {done}", describe(&ptxas))),
            Err(reason) => tried.push(format!("{done} succeeded, and yet: {reason}")),
        },
        Err(reason) => tried.push(reason),
    }
    Err(Missing { tried, help: HELP.to_owned(), without: WITHOUT })
}

fn describe(ptxas: &Ptxas) -> String {
    let output = Command::new(&ptxas.program)
        .arg("--version")
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let said = String::from_utf8_lossy(&output).into_owned();
    let release =
        said.lines().find_map(|line| line.split("release ").nth(1)?.split(',').next()).unwrap_or("?");
    format!("release {release} at {}", workspace::shown(&ptxas.program))
}

/// Installs the wheel into `folder`, apart from every Python environment.
fn install(folder: &Path) -> Result<&'static str, String> {
    let mut command = Command::new("python3");
    command
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--upgrade",
            "--target",
        ])
        .arg(folder)
        .arg(WHEEL)
        .env("PIP_ROOT_USER_ACTION", "ignore");
    match quietly(&mut command, LIMIT) {
        Ok(ended) if ended.success => Ok("`python3 -m pip`"),
        Ok(ended) => Err(format!("`python3 -m pip install {WHEEL}` failed: {}", ended.last_line())),
        Err(error) => Err(format!("python3 cannot be run: {error}")),
    }
}
