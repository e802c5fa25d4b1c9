//! Kernels of each device compiler that is installed: they can be traced, and what they take is told beside
//! what the build's own compiler makes of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warptrace_build::{Build, Compiler, Disassembler, Ptxas};
use warptrace_ptx::splice::{Options, Recording, TRACED_SUFFIX, splice};

use crate::usage::{self, Usage};
use crate::{assembler, compiled, kernels, registers, sass, traced, workspace};

const ARCHITECTURE: &str = "sm_90";
/// A kernel whose limit leaves recording fewer registers than this may spill a little: stores and loads, in
/// bytes of a lane.
const ROOM: u32 = 16;
const FEW_BYTES: u32 = 256;

/// What the machine code of a kernel takes: registers and spills, and instructions.
type Taken = (Usage, usize);

/// Compiles the kernels with another compiler.
fn compile(compiler: &Compiler, folder: &Path) -> String {
    let build = Build {
        crate_folder: workspace().join("workloads/kernels"),
        output_folder: folder.to_owned(),
        shared_folder: folder.join("shared"),
        name: "kernels".to_owned(),
        features: Vec::new(),
    };
    let compiled = build.compile(compiler).unwrap_or_else(|error| panic!("{}: {error}", compiler.version));
    std::fs::read_to_string(compiled.ptx).expect("it was written")
}

/// Assembles all kernels, untraced and traced, and returns what each takes, and how many registers each may
/// have.
fn measure(
    text: &str,
    (assembler, disassembler): (&Ptxas, &Disassembler),
    folder: &Path,
) -> (BTreeMap<String, Taken>, Vec<(&'static str, u32)>) {
    let names: Vec<&str> = kernels().into_iter().collect();
    let chosen = splice(text, &Options { kernels: Some(&names), ..Options::default() });
    let text = chosen.unwrap_or_else(|error| panic!("{error}")).text;
    let limits = registers(assembler, folder, &text, ARCHITECTURE);
    let path = folder.join("traced.ptx");
    let spliced = traced(&text, Recording::default(), ARCHITECTURE, &limits);
    std::fs::write(&path, spliced).expect("the folder takes files");
    let said = assembler.assemble(&path, ARCHITECTURE).unwrap_or_else(|error| panic!("{error}"));
    let code = disassembler.disassemble(&Ptxas::cubin(&path, ARCHITECTURE));
    let code = sass::functions(&code.unwrap_or_else(|error| panic!("{error}")));
    let of = |(name, usage): (String, Usage)| {
        let instructions = code.get(&name).map_or(0, Vec::len);
        (name, (usage, instructions))
    };
    (usage::parse(&said).into_iter().map(of).collect(), limits)
}

#[test]
fn kernels_of_other_compilers_can_be_traced() {
    let (Some(ptx), Some(assembler)) = (compiled(), assembler()) else { return };
    let disassembler = match Disassembler::find(&workspace()) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let own = Compiler::find().expect("the kernels are compiled");
    let others: Vec<Compiler> =
        Compiler::all().into_iter().filter(|other| other.version != own.version).collect();
    if others.is_empty() {
        eprintln!(
            "skipped: {} is the only device compiler here; another one is what `rustup component add rust-src \
             --toolchain nightly` makes of a recent nightly toolchain",
            own.version
        );
        return;
    }
    let tools = (&assembler, &disassembler);
    let folder = tempfile::tempdir().expect("a folder for the assembler");
    let (before, _) = measure(ptx, tools, folder.path());
    for other in others {
        let number = other.version.split([' ', '-']).nth(1).unwrap_or_default();
        let made: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rustc-{number}"));
        let text = compile(&other, &made);
        let (now, limits) = measure(&text, tools, folder.path());
        println!("{ARCHITECTURE}: {}, and {}", own.version, other.version);
        println!(
            "| kernel | registers | instructions | traced: registers | instructions | spills in bytes |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        let mut spills = Vec::new();
        for (kernel, limit) in limits {
            let copy = format!("{kernel}{TRACED_SUFFIX}");
            let of = |name: &str| [before[name], now[name]];
            let ([a, b], [c, d]) = (of(kernel), of(&copy));
            let two = |of: fn(Taken) -> usize, [a, b]: [Taken; 2]| format!("{}, {}", of(a), of(b));
            let [registers, bytes]: [fn(Taken) -> usize; 2] =
                [|(usage, _)| usage.registers as usize, |(usage, _)| usage.spill_bytes as usize];
            println!(
                "| {kernel} | {} | {} | {} | {} | {} |",
                two(registers, [a, b]),
                two(|(_, code)| code, [a, b]),
                two(registers, [c, d]),
                two(|(_, code)| code, [c, d]),
                two(bytes, [c, d])
            );
            let ((untraced, code), (traced, traced_code)) = (b, d);
            assert!((1..=limit).contains(&traced.registers), "{kernel}: {traced:?}, at most {limit}");
            assert!(0 < code && code < traced_code, "{kernel}: {code} and {traced_code} instructions");
            let allowed = if untraced.registers + ROOM > limit { FEW_BYTES } else { 0 };
            if traced.spill_bytes > untraced.spill_bytes + allowed {
                spills.push(format!("{kernel}: {traced:?}, {untraced:?}"));
            }
        }
        assert!(spills.is_empty(), "{}: traced kernels spill:\n{}", other.version, spills.join("\n"));
    }
}
