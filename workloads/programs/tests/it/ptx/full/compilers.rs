//! Kernels from every installed device compiler can be traced. Prints their sizes next to the build's.

use std::path::Path;

use warptrace_build::{Build, Compiler};
use warptrace_ptx::splice::{Options, Recording, splice};

use super::super::stored_code::{CodeStore, Function};
use super::super::{Assembled, STORE, compiled, kernels, workspace};

const ARCHITECTURE: &str = "sm_90";

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

fn assemble(store: &CodeStore, text: &str) -> Option<Assembled> {
    let names: Vec<&str> = kernels().into_iter().collect();
    let chosen = splice(text, &Options { kernels: Some(&names), ..Options::default() });
    let text = chosen.unwrap_or_else(|error| panic!("{error}")).text;
    Assembled::new(store, &text, Recording::default(), ARCHITECTURE)
}

#[test]
fn kernels_of_other_compilers_can_be_traced() {
    let Some(ptx) = compiled() else { return };
    let store = CodeStore::open(STORE);
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
    let Some(before) = assemble(&store, ptx) else { return };
    for other in others {
        let number = other.version.split([' ', '-']).nth(1).unwrap_or_default();
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rustc-{number}"));
        let Some(now) = assemble(&store, &compile(&other, &made)) else { return };
        println!("{ARCHITECTURE}: {}, and {}", own.version, other.version);
        println!(
            "| kernel | registers | instructions | traced: registers | instructions | spills in bytes |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        for (kernel, _) in &now.limits {
            let ([a, c], [b, d]) = (before.both(kernel), now.both(kernel));
            let two = |of: fn(Function) -> u32, [a, b]: [Function; 2]| format!("{}, {}", of(a), of(b));
            let [registers, code, bytes]: [fn(Function) -> u32; 3] =
                [|of| of.registers, |of| of.instructions, |of| of.spill_bytes];
            println!(
                "| {kernel} | {} | {} | {} | {} | {} |",
                two(registers, [a, b]),
                two(code, [a, b]),
                two(registers, [c, d]),
                two(code, [c, d]),
                two(bytes, [c, d])
            );
            assert!(0 < b.instructions && b.instructions < d.instructions, "{kernel}: {b:?}, {d:?}");
        }
        now.check_registers();
    }
}
