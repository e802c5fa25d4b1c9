//! Checks that the compiled kernels contain all trace points as comments, and nothing else of the tracer.

use std::collections::{BTreeMap, BTreeSet};

use warptrace_ptx::{Module, call_graph, fuzzing};

use super::{PROGRAMS, compiled, kernels, ptx, source};

const PREFIX: &str = "// warptrace.";

/// Counts each kernel's markers, with called functions, by kind (`loc`, `loop.tick`) and location.
fn markers(text: &str) -> BTreeMap<String, BTreeMap<(String, u16), usize>> {
    let module = Module::parse(text).expect("the compiler writes PTX");
    let graph = call_graph(&module);
    let mut found = BTreeMap::new();
    for (entry, kernel) in module.functions.iter().enumerate().filter(|(_, function)| function.is_entry()) {
        let mut reached = BTreeSet::from([entry]);
        let mut next = vec![entry];
        while let Some(index) = next.pop() {
            assert!(!graph.calls(index).indirect, "{}: no kernel calls through a register", kernel.name);
            next.extend(graph.calls(index).direct.iter().filter(|callee| reached.insert(**callee)));
        }
        let mut of_kernel = BTreeMap::new();
        for index in reached {
            let statements = module.functions[index].body.iter().flat_map(|body| &body.statements);
            for marker in statements.filter_map(|statement| statement.comment()?.strip_prefix(PREFIX)) {
                let mut words = marker.split(' ');
                let (kind, location) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let location = location.parse().unwrap_or_else(|_| panic!("{}: `{marker}`", kernel.name));
                *of_kernel.entry((kind.to_owned(), location)).or_default() += 1;
            }
        }
        found.insert(kernel.name.to_owned(), of_kernel);
    }
    found
}

fn without_comments(text: &str) -> String {
    assert!(!text.contains("/*"), "the compiler writes no other comments");
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_kernel_is_there_and_no_other() {
    let Some(ptx) = compiled() else { return };
    let module = Module::parse(ptx).expect("the compiler writes PTX");
    let entries: BTreeSet<String> = module
        .functions
        .iter()
        .filter(|function| function.is_entry())
        .map(|function| function.name.to_owned())
        .collect();
    assert_eq!(entries, kernels().into_iter().map(str::to_owned).collect());
}

/// The compiler may duplicate a marker with the code around it. So a kernel must contain each marker at least
/// as often as its source, and no other markers.
#[test]
fn each_trace_point_of_a_kernel_is_in_it() {
    let Some(ptx) = ptx() else { return };
    let found = markers(ptx);
    for program in &PROGRAMS {
        for kernel in program.kernels() {
            let mut found = found.get(kernel).expect("it is compiled").clone();
            let mut written: BTreeMap<(&str, u16), (&str, usize)> = BTreeMap::new();
            for used in source::uses(program, kernel) {
                let kinds: &[&str] =
                    if used.is_loop { &["loop.enter", "loop.tick", "loop.leave"] } else { &["loc"] };
                for kind in kinds {
                    written.entry((kind, used.point.id)).or_insert((used.point.name, 0)).1 += 1;
                }
            }
            for ((kind, location), (name, uses)) in written {
                let copies = found.remove(&(kind.to_owned(), location)).unwrap_or_default();
                assert!(
                    copies >= uses,
                    "{kernel} has {copies} markers `{kind}` of {name} ({location}), its source {uses}"
                );
            }
            assert!(found.is_empty(), "{kernel} has markers that its source does not have: {found:?}");
        }
    }
}

#[test]
fn every_declared_trace_point_is_in_some_kernel() {
    for program in &PROGRAMS {
        let used: BTreeSet<u16> = program
            .kernels()
            .flat_map(|kernel| source::uses(program, kernel))
            .map(|used| used.point.id)
            .collect();
        let declared: BTreeSet<u16> = program.locations().map(|point| point.id).collect();
        assert_eq!(used, declared, "{}", program.name);
    }
}

#[test]
fn nothing_of_the_tracer_is_there_but_comments() {
    let Some(ptx) = ptx() else { return };
    assert!(ptx.contains(PREFIX));
    let text = without_comments(ptx);
    for word in ["warptrace", "WARPTRACE", "activemask", "pmevent", "%wt_", "$traced", "%clock"] {
        assert!(!text.contains(word), "the untraced kernels contain `{word}`");
    }
}

#[test]
fn the_reader_keeps_what_it_promises_of_any_module() {
    let Some(ptx) = ptx() else { return };
    assert!(fuzzing::check(ptx), "it is no module");
}
