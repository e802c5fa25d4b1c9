//! Checks PTX with NVIDIA's assembler. Needs no GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BuildError;

/// Tool folder of `cargo xtask setup`, relative to the workspace root.
pub const TOOLCHAIN_FOLDER: &str = ".toolchain";

/// Folder of NVIDIA's programs in the tool folder.
pub(crate) const PROGRAMS_FOLDER: &str = "cuda/nvidia/cu13/bin";

/// The architectures that kernels are checked for: Turing, Ampere, Jetson Orin, Hopper, Blackwell (B200, B300,
/// Jetson Thor, RTX, DGX Spark). Before CUDA 13, `sm_110` was called `sm_101`.
pub const ARCHITECTURES: [&str; 9] =
    ["sm_75", "sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"];

/// NVIDIA's PTX assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// Path of `ptxas`.
    pub program: PathBuf,
}

impl Ptxas {
    /// Searches the project's tool folder under `workspace`, then `PATH`. Fails if it is not installed.
    pub fn find(workspace: &Path) -> Result<Self, BuildError> {
        let folder = workspace.join(TOOLCHAIN_FOLDER);
        [folder.join(PROGRAMS_FOLDER).join("ptxas"), PathBuf::from("ptxas")]
            .into_iter()
            .find(|program| Command::new(program).arg("--version").output().is_ok())
            .map(|program| Self { program })
            .ok_or(BuildError::NoPtxas { folder })
    }

    /// Returns the [`ARCHITECTURES`] that this assembler does not support. Fails if it cannot be run.
    pub fn unknown_architectures(&self) -> Result<Vec<&'static str>, BuildError> {
        let output =
            Command::new(&self.program).arg("--help").output().map_err(BuildError::start(&self.program))?;
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(ARCHITECTURES.into_iter().filter(|name| !help.contains(&format!("'{name}'"))).collect())
    }

    /// Returns the output path of [`assemble`](Self::assemble): next to `ptx`.
    pub fn cubin(ptx: &Path, architecture: &str) -> PathBuf {
        ptx.with_extension(format!("{architecture}.cubin"))
    }

    /// Assembles `ptx` for `architecture` (`sm_90`) and returns the assembler's report of registers, shared
    /// memory and spills. Fails if the assembler cannot be run or refuses the PTX.
    pub fn assemble(&self, ptx: &Path, architecture: &str) -> Result<String, BuildError> {
        let cubin = Self::cubin(ptx, architecture);
        let output = Command::new(&self.program)
            .arg(format!("-arch={architecture}"))
            .arg("-v")
            .arg(ptx)
            .arg("-o")
            .arg(&cubin)
            .output()
            .map_err(BuildError::start(&self.program))?;
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            Ok(said)
        } else {
            Err(BuildError::Assemble { architecture: architecture.to_owned(), output: said })
        }
    }
}
