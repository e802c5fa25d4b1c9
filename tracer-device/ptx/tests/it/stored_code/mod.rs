//! Properties of the machine code of PTX texts, and the store: a file that keeps them.
//!
//! Tests of the fast tier look up a text in the store, and assemble it only if the store lacks it. A test of
//! the full tier assembles all texts and compares the results with the store. `cargo xtask golden` makes that
//! test write the store.
//!
//! ```text
//! # ptxas V13.5.37, rustc 1.96.0
//! text sm_90 CRC-32 BYTES
//! FUNCTION REGISTERS STACK SPILLS INSTRUCTIONS YIELDS CLAIMS EXITS REDUCTIONS CRC-32
//! ```

mod sass;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock};

use warptrace_build::{Disassembler, Ptxas};

use super::hashes;

const TEXT: &str = "text ";

/// Properties of a function's machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) registers: u32,
    pub(crate) stack_bytes: u32,
    /// Bytes of spill stores and loads.
    pub(crate) spill_bytes: u32,
    /// Instructions, without `NOP`s.
    pub(crate) instructions: u32,
    pub(crate) yields: u32,
    /// `YIELD`s at the head of a loop that reserves a segment.
    pub(crate) claims: u32,
    pub(crate) exits: u32,
    /// Atomic operations without a result.
    pub(crate) reductions: u32,
    pub(crate) crc: u32,
}

pub(crate) type Functions = BTreeMap<String, Function>;

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            registers,
            stack_bytes,
            spill_bytes,
            instructions,
            yields,
            claims,
            exits,
            reductions,
            crc,
        } = self;
        write!(
            f,
            "{registers} {stack_bytes} {spill_bytes} {instructions} {yields} {claims} {exits} {reductions} {crc:08x}"
        )
    }
}

impl FromStr for Function {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (numbers, crc) = line.rsplit_once(' ').ok_or(line)?;
        let numbers: Result<Vec<u32>, _> = numbers.split(' ').map(str::parse).collect();
        let &[registers, stack_bytes, spill_bytes, instructions, yields, claims, exits, reductions] =
            &*numbers.map_err(|_| line)?
        else {
            return Err(line.to_owned());
        };
        let crc = u32::from_str_radix(crc, 16).map_err(|_| line)?;
        Ok(Self { registers, stack_bytes, spill_bytes, instructions, yields, claims, exits, reductions, crc })
    }
}

struct Tools {
    assembler: Ptxas,
    disassembler: Disassembler,
}

impl Tools {
    fn find() -> Result<Self, String> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let assembler = Ptxas::find(&workspace).map_err(|error| error.to_string())?;
        let unknown = assembler.unknown_architectures().map_err(|error| error.to_string())?;
        if !unknown.is_empty() {
            return Err(format!("ptxas is too old for {}; run `cargo xtask setup`", unknown.join(", ")));
        }
        let disassembler = Disassembler::find(&workspace).map_err(|error| error.to_string())?;
        Ok(Self { assembler, disassembler })
    }

    fn version(&self) -> String {
        let output = Command::new(&self.assembler.program).arg("--version").output().expect("it was found");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines()
            .find_map(|line| Some(line.split_once("release ")?.1.split_once(", ")?.1))
            .unwrap_or(&said)
            .into()
    }

    fn assemble(&self, text: &str, architecture: &str) -> Functions {
        let folder = tempfile::tempdir().expect("a folder for the assembler");
        let path = folder.path().join("text.ptx");
        std::fs::write(&path, text).expect("the folder takes files");
        let said = self.assembler.assemble(&path, architecture).unwrap_or_else(|error| panic!("{error}"));
        let code = self.disassembler.disassemble(&Ptxas::cubin(&path, architecture));
        let code = sass::functions(&code.unwrap_or_else(|error| panic!("{error}")));
        let mut functions = usage::parse(&said);
        for (name, function) in &mut functions {
            if let Some(instructions) = code.get(name) {
                sass::count(instructions, function);
            }
        }
        functions
    }
}

pub(crate) struct CodeStore {
    path: PathBuf,
    is_fresh: bool,
    /// By architecture, CRC-32 and length of the text.
    known: Mutex<BTreeMap<String, Arc<OnceLock<Functions>>>>,
    tools: Result<Tools, String>,
}

impl CodeStore {
    pub(crate) fn open(path: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let known = parse(&text).into_iter().map(|(key, made)| (key, Arc::new(OnceLock::from(made))));
        Self { known: Mutex::new(known.collect()), tools: Tools::find(), is_fresh: false, path }
    }

    /// Makes an empty store. Prints a message and returns `None` if NVIDIA's programs are missing.
    pub(crate) fn fresh(path: &str) -> Option<Self> {
        let fresh = Self { known: Mutex::default(), is_fresh: true, ..Self::open(path) };
        match &fresh.tools {
            Ok(_) => Some(fresh),
            Err(error) => {
                eprintln!("skipped: {error}");
                None
            }
        }
    }

    /// Returns the functions of a text's machine code; `None`, with a message, if neither the store nor
    /// NVIDIA's programs provide it. Panics if the assembler rejects the text.
    pub(crate) fn functions(&self, text: &str, architecture: &str) -> Option<Functions> {
        let key = format!("{architecture} {}", hashes::hash(text));
        let mut known = self.known.lock().expect("no thread panics while it holds the lock");
        let made = known.entry(key.clone()).or_default().clone();
        drop(known);
        if let Some(made) = made.get() {
            return Some(made.clone());
        }
        let tools = self.tools.as_ref().map_err(|error| eprintln!("skipped: {error}")).ok()?;
        if !self.is_fresh {
            eprintln!("`{key}` is not in {}, which `cargo xtask golden` writes", self.path.display());
        }
        // Other threads that need the same text wait.
        Some(made.get_or_init(|| tools.assemble(text, architecture)).clone())
    }

    /// Compares the store's file with a fresh store, or writes it if requested. Panics if they differ.
    /// `compiler` names the texts' compiler. Does not compare a store of other program versions.
    pub(crate) fn check(self, compiler: &str) {
        let tools = self.tools.unwrap_or_else(|error| panic!("{error}"));
        let made_by = format!("# ptxas {}{compiler}", tools.version());
        let known = self.known.into_inner().expect("no thread has panicked");
        let known: BTreeMap<String, Functions> =
            known.into_iter().filter_map(|(key, made)| Some((key, made.get()?.clone()))).collect();
        if hashes::overwrites() {
            let mut text = made_by + "\n";
            for (key, functions) in &known {
                let _ = writeln!(text, "{TEXT}{key}");
                for (name, function) in functions {
                    let _ = writeln!(text, "{name} {function}");
                }
            }
            std::fs::write(&self.path, text).expect("the store can be written");
            return;
        }
        let golden = std::fs::read_to_string(&self.path).unwrap_or_default();
        let of = golden.lines().next().unwrap_or_default();
        if of != made_by {
            eprintln!("skipped: {} is of `{of}`, this is of `{made_by}`", self.path.display());
            return;
        }
        let golden = parse(&golden);
        let keys: BTreeSet<&String> = known.keys().chain(golden.keys()).collect();
        let differing: Vec<String> = keys
            .into_iter()
            .filter_map(|key| match (golden.get(key), known.get(key)) {
                (Some(golden), Some(now)) if golden == now => None,
                (Some(_), Some(_)) => Some(format!("{key} is assembled otherwise")),
                (None, _) => Some(format!("{key} is missing")),
                (_, None) => Some(format!("{key} is not used")),
            })
            .collect();
        assert!(
            differing.is_empty(),
            "{}: `cargo xtask golden` writes it anew:\n{}",
            self.path.display(),
            differing.join("\n")
        );
    }
}

fn parse(store: &str) -> BTreeMap<String, Functions> {
    let mut texts: BTreeMap<String, Functions> = BTreeMap::new();
    let mut functions = None;
    for line in store.lines().filter(|line| !line.starts_with('#')) {
        if let Some(key) = line.strip_prefix(TEXT) {
            functions = Some(texts.entry(key.to_owned()).or_default());
        } else {
            let (name, function) = line.split_once(' ').unwrap_or((line, ""));
            let function = function.parse().unwrap_or_else(|line| panic!("the store has `{name} {line}`"));
            functions.as_mut().expect("a text comes first").insert(name.to_owned(), function);
        }
    }
    texts
}

#[test]
fn what_is_stored_is_read_again() {
    const STORE: &str = "# ptxas V13.5.37
text sm_90 0000abcd 17
f 30 16 20 100 3 1 2 4 000000ff
f$traced 40 0 0 200 0 0 2 4 deadbeef
text sm_75 0000abcd 17
f 31 0 0 90 0 0 1 0 00000001
";
    let texts = parse(STORE);
    let function = Function {
        registers: 30,
        stack_bytes: 16,
        spill_bytes: 20,
        instructions: 100,
        yields: 3,
        claims: 1,
        exits: 2,
        reductions: 4,
        crc: 255,
    };
    assert_eq!(texts["sm_90 0000abcd 17"]["f"], function);
    assert_eq!((texts.len(), texts["sm_90 0000abcd 17"].len()), (2, 2));
    assert!(STORE.contains(&format!("\nf {function}\n")));
}
