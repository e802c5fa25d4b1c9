//! Reading machine code with NVIDIA's disassembler, which needs no GPU.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ptxas::PROGRAMS_FOLDER;
use crate::{BuildError, TOOLCHAIN_FOLDER};

/// The disassembler: `cuobjdump`, which has `nvdisasm` do the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembler {
    /// `cuobjdump`.
    pub program: PathBuf,
}

impl Disassembler {
    /// Looks in the project's own folder under `workspace`, then on the `PATH`.
    ///
    /// # Errors
    /// [`BuildError::NoDisassembler`] where there is none.
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

    /// Disassembles a file of machine code (`cubin`): all functions, each behind a line `Function : NAME`.
    ///
    /// # Errors
    /// If the disassembler cannot be run or refuses the file.
    pub fn disassemble(&self, cubin: &Path) -> Result<String, BuildError> {
        let mut command = Command::new(&self.program);
        command.arg("-sass").arg(cubin);
        // It looks for `nvdisasm` on the path.
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
