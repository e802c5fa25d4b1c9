//! Loops of the workloads that are counted because counting provably changes no event.

use std::collections::BTreeMap;
use std::fmt::Write;

use warptrace_build::Compiler;
use warptrace_ptx::Module;
use warptrace_ptx::splice::{Marker, Options, Recording, splice};

use super::{PROGRAMS, hashes, ptx, workspace};

const BEGIN: &str = "<!-- The table of the workloads. -->\n";
const END: &str = "<!-- Its end. -->\n";

fn loops(text: &str) -> BTreeMap<&str, Vec<u16>> {
    let module = Module::parse(text).expect("the compiler writes PTX");
    let entries = module.functions.iter().filter(|function| function.is_entry());
    let loops = entries.map(|entry| {
        let statements = entry.body.iter().flat_map(|body| &body.statements);
        let mut loops: Vec<u16> = statements
            .filter_map(|statement| match Marker::parse(statement.comment()?)?.ok()? {
                Marker::Enter(location) => Some(location),
                _ => None,
            })
            .collect();
        loops.sort_unstable();
        loops.dedup();
        (entry.name, loops)
    });
    loops.collect()
}

fn table(text: &str) -> String {
    let options = Options { recording: Some(Recording::default()), architecture: 90, ..Options::default() };
    let spliced = splice(text, &options).expect("it can be spliced");
    let counted: BTreeMap<&str, &[u16]> =
        spliced.kernels.iter().map(|kernel| (kernel.name.as_str(), &*kernel.counted)).collect();
    let loops = loops(text);
    let mut table =
        String::from("| kernel | trace points | counted | not proven |\n| --- | --- | --- | --- |\n");
    for program in &PROGRAMS {
        let names: BTreeMap<u16, &str> =
            program.locations().map(|location| (location.id, location.name)).collect();
        let both = [(Some(*program), "by hand"), (program.automatic(), "automatic")];
        for (program, how) in both.into_iter().filter_map(|(program, how)| Some((program?, how))) {
            for kernel in program.kernels().filter(|kernel| !loops[kernel].is_empty()) {
                let list = |is_counted: bool| -> String {
                    let of = loops[kernel].iter().filter(|id| counted[kernel].contains(id) == is_counted);
                    let name = |id: &u16| match (how, names.get(id)) {
                        ("by hand", Some(name)) => (*name).to_owned(),
                        _ => format!("loop {id}"),
                    };
                    let list: Vec<String> = of.map(name).collect();
                    if list.is_empty() { "–".to_owned() } else { list.join(", ") }
                };
                let _ = writeln!(table, "| `{kernel}` | {how} | {} | {} |", list(true), list(false));
            }
        }
    }
    table
}

#[test]
fn the_counted_loops_are_those_of_the_results() {
    let Some(ptx) = ptx() else { return };
    let compiler = Compiler::find().expect("the kernels are compiled").version;
    let path = workspace().join("results/counted-loops.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let version: String = compiler.split(' ').take(2).collect::<Vec<_>>().join(" ");
    if !page.contains(&version) && !hashes::overwrites() {
        eprintln!("skipped: the table is of another compiler than {compiler}");
        return;
    }
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (known, after) = rest.split_once(END).expect("the table ends");
    let now = table(ptx);
    if hashes::overwrites() {
        std::fs::write(&path, format!("{before}{BEGIN}{now}{END}{after}")).expect("the page can be written");
        return;
    }
    assert!(known == now, "other loops are counted; `cargo xtask golden` writes the page anew:\n{now}");
}
