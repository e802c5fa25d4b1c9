//! NVIDIA's assembler and disassembler, which check PTX and machine code without a GPU.

use std::path::Path;
use std::process::Command;

use warptrace_build::{Disassembler, Ptxas, TOOLCHAIN_FOLDER};

use super::{Missing, SetUpResult};
use crate::workspace;

/// PyPI wheels. Version 13 and later support all checked architectures. pip empties the folders that it
/// writes to, so one command installs all wheels.
const WHEELS: [&str; 3] =
    ["nvidia-cuda-nvcc>=13,<14", "nvidia-cuda-cuobjdump>=13,<14", "nvidia-cuda-nvdisasm>=13,<14"];

const HELP: &str =
    "put ptxas, cuobjdump and nvdisasm of CUDA 13 on the PATH, or install Python's pip and run this again";
const WITHOUT_ASSEMBLER: &str =
    "Without it the PTX is not checked, and a GPU's driver assembles the kernels when they are first used.";
const WITHOUT_DISASSEMBLER: &str = "Without it the machine code is not checked; nothing else needs it.";

/// Finds an assembler for all checked architectures, or returns the reason why none was found.
fn find_assembler() -> Result<String, String> {
    let ptxas = Ptxas::find(workspace::root()).map_err(|error| error.to_string())?;
    let unknown = ptxas.unknown_architectures().map_err(|error| error.to_string())?;
    if unknown.is_empty() {
        Ok(describe(&ptxas.program))
    } else {
        Err(format!("{} is too old for {}", ptxas.program.display(), unknown.join(", ")))
    }
}

/// Finds the disassembler, or returns the reason why none was found.
fn find_disassembler() -> Result<String, String> {
    let found = Disassembler::find(workspace::root()).map_err(|error| error.to_string())?;
    Ok(describe(&found.program))
}

pub(super) fn set_up_assembler() -> SetUpResult {
    set_up(find_assembler, WITHOUT_ASSEMBLER)
}

pub(super) fn set_up_disassembler() -> SetUpResult {
    set_up(find_disassembler, WITHOUT_DISASSEMBLER)
}

fn set_up(find: fn() -> Result<String, String>, without: &'static str) -> SetUpResult {
    let folder = workspace::root().join(TOOLCHAIN_FOLDER).join("cuda");
    super::find_or_install(
        find,
        &folder,
        &WHEELS,
        Missing { tried: Vec::new(), help: HELP.to_owned(), without },
    )
}

fn describe(program: &Path) -> String {
    let output =
        Command::new(program).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&output).into_owned();
    let release =
        said.lines().find_map(|line| line.split("release ").nth(1)?.split(',').next()).unwrap_or("?");
    format!("release {release} at {}", workspace::shown(program))
}
