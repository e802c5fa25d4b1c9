//! Disassembly of machine code with NVIDIA's tools. Needs no GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ptxas::PROGRAMS_FOLDER;
use crate::{BuildError, TOOLCHAIN_FOLDER};

/// The disassembler: `cuobjdump`, which runs `nvdisasm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembler {
    /// Path of `cuobjdump`.
    pub program: PathBuf,
}

impl Disassembler {
    /// Searches the project's tool folder under `workspace`, then `PATH`. Fails if it is not installed.
    pub fn find(workspace: &Path) -> Result<Self, BuildError> {
        let folder = workspace.join(TOOLCHAIN_FOLDER);
        let programs = folder.join(PROGRAMS_FOLDER);
        let runs = |program: &Path| Command::new(program).arg("--version").output().is_ok();
        [programs, PathBuf::new()]
            .into_iter()
            .find(|folder| runs(&folder.join("cuobjdump")) && runs(&folder.join("nvdisasm")))
            .map(|folder| Self { program: folder.join("cuobjdump") })
            .ok_or(BuildError::NoDisassembler { folder })
    }

    /// Disassembles a file of machine code (`cubin`). Each function follows a line `Function : NAME`. Fails
    /// if the disassembler cannot be run or refuses the file.
    pub fn disassemble(&self, cubin: &Path) -> Result<String, BuildError> {
        let mut command = Command::new(&self.program);
        command.arg("-sass").arg(cubin);
        // `cuobjdump` searches for `nvdisasm` on the path.
        if let Some(folder) = self.program.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let others = std::env::var_os("PATH").unwrap_or_default();
            let path = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others));
            if let Ok(path) = std::env::join_paths(path) {
                command.env("PATH", path);
            }
        }
        let output = command.output().map_err(BuildError::start(&self.program))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        Err(BuildError::Disassemble { file: cubin.to_owned(), output: said })
    }
}
