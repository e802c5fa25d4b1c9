//! Output of the assembler for a text.

use std::collections::HashMap;
use std::path::Path;

use object::{Object, ObjectSection};
use warptrace_build::Ptxas;

/// A kernel in machine code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kernel {
    /// Size of the instructions in bytes.
    pub(crate) bytes: u64,
    pub(crate) registers: u64,
    /// Size of the stack frame in bytes.
    pub(crate) stack: u64,
    /// Bytes of spill stores.
    pub(crate) spilt: u64,
}

pub(crate) struct Assembled {
    pub(crate) kernels: HashMap<String, Kernel>,
}

impl Assembled {
    /// Assembles a text for `target`.
    ///
    /// # Errors
    /// Returns the assembler's message if it rejects the text, or the reason why it cannot be run.
    pub(crate) fn new(ptxas: &Ptxas, text: &str, target: &str, work: &Path) -> Result<Self, String> {
        let path = work.join("torture.ptx");
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        let said = ptxas.assemble(&path, target).map_err(|error| error.to_string())?;
        let cubin = std::fs::read(Ptxas::cubin(&path, target)).map_err(|error| error.to_string())?;
        let mut kernels = said_of_kernels(&said);
        let file = object::File::parse(&*cubin).map_err(|error| error.to_string())?;
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            if let Some(kernel) = name.strip_prefix(".text.").and_then(|name| kernels.get_mut(name)) {
                kernel.bytes = section.size();
            }
        }
        Ok(Self { kernels })
    }
}

/// Parses the output of `ptxas -v` for each kernel.
fn said_of_kernels(said: &str) -> HashMap<String, Kernel> {
    let mut kernels: HashMap<String, Kernel> = HashMap::new();
    let (mut kernel, mut properties_of) = (String::new(), String::new());
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.entry(kernel.clone()).or_default();
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            properties_of = name.trim().to_owned();
        } else if let Some(registers) = before(line, " registers") {
            if let Some(found) = kernels.get_mut(&kernel) {
                found.registers = registers;
            }
        } else if let Some(stack) = before(line, " bytes stack frame")
            && let Some(found) = kernels.get_mut(&properties_of)
        {
            found.stack = stack;
            found.spilt = before(line, " bytes spill stores").unwrap_or_default();
        }
    }
    kernels
}

/// Returns the number before some words.
fn before(line: &str, words: &str) -> Option<u64> {
    line.split_once(words)?.0.rsplit(' ').next()?.parse().ok()
}
