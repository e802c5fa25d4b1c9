//! Checking PTX with NVIDIA's assembler, which needs no GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BuildError;

/// Where `cargo xtask setup` puts tools, under the workspace's root.
pub const TOOLCHAIN_FOLDER: &str = ".toolchain";

/// The folder of NVIDIA's programs in it.
pub(crate) const PROGRAMS_FOLDER: &str = "cuda/nvidia/cu13/bin";

/// The architectures that the kernels are checked for: Turing, Ampere, Hopper, Blackwell (two).
pub const ARCHITECTURES: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

/// The assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// The program.
    pub program: PathBuf,
}

impl Ptxas {
    /// Looks in the project's own folder under `workspace`, then on the `PATH`.
    ///
    /// # Errors
    /// [`BuildError::NoPtxas`] where there is none.
    pub fn find(workspace: &Path) -> Result<Self, BuildError> {
        let folder = workspace.join(TOOLCHAIN_FOLDER);
        [folder.join(PROGRAMS_FOLDER).join("ptxas"), PathBuf::from("ptxas")]
            .into_iter()
            .find(|program| Command::new(program).arg("--version").output().is_ok())
            .map(|program| Self { program })
            .ok_or(BuildError::NoPtxas { folder })
    }

    /// Names the architectures of [`ARCHITECTURES`] that this assembler is too old for.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn unknown_architectures(&self) -> Result<Vec<&'static str>, BuildError> {
        let output =
            Command::new(&self.program).arg("--help").output().map_err(BuildError::start(&self.program))?;
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(ARCHITECTURES.into_iter().filter(|name| !help.contains(&format!("'{name}'"))).collect())
    }

    /// Where [`assemble`](Self::assemble) puts what it makes of `ptx`: beside it.
    pub fn cubin(ptx: &Path, architecture: &str) -> PathBuf {
        ptx.with_extension(format!("{architecture}.cubin"))
    }

    /// Assembles `ptx` for `architecture` (`sm_90`) and returns what the assembler says of registers, shared
    /// memory and spills.
    ///
    /// # Errors
    /// If the assembler refuses it.
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
