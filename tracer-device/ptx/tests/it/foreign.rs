//! PTX of nvcc, NVRTC, rustc, llc and numba: marked, spliced, and assembled if an assembler is available.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use warptrace_format::Counting;
use warptrace_ptx::points::{Marked, PointKind, PointOptions, Points, mark};
use warptrace_ptx::splice::{Options, Recording, TRACED_SUFFIX, splice};
use warptrace_ptx::{Body, Module, StatementKind, fuzzing};

use crate::STORE;
use crate::hashes::{self, Ways};
use crate::stored_code::CodeStore;

macro_rules! texts {
    ($($name:literal, $architecture:literal;)*) => {
        [$(($name, include_str!(concat!("../", $name)), $architecture)),*]
    };
}

const TEXTS: [(&str, &str, &str); 14] = texts! {
    "data/foreign/flow.ptx", "sm_90";
    "data/foreign/flow-lineinfo.ptx", "sm_90";
    "data/foreign/flow-debug.ptx", "sm_90";
    "data/foreign/flow-100.ptx", "sm_100";
    "data/foreign/shapes.ptx", "sm_90";
    "data/foreign/shapes-unoptimised.ptx", "sm_90";
    "data/foreign/named.ptx", "sm_90";
    "golden/nvcc.ptx", "sm_90";
    "golden/nvcc-lineinfo.ptx", "sm_90";
    "golden/nvcc-debug.ptx", "sm_90";
    "golden/nvrtc.ptx", "sm_100";
    "golden/rustc.ptx", "sm_90";
    "golden/llc.ptx", "sm_90";
    "golden/numba.ptx", "sm_90";
};

/// Returns the texts. Existing markers are turned into plain comments.
fn texts() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    TEXTS
        .iter()
        .map(|(name, text, architecture)| (*name, text.replace("// warptrace.", "// "), *architecture))
}

fn marked(text: &str, points: Points) -> Marked {
    mark(text, &PointOptions { points, ..PointOptions::default() }).expect("compilers write PTX")
}

fn spliced(marked: &Marked, recording: Recording) -> String {
    let options = Options { recording: Some(recording), architecture: 90, ..Options::default() };
    splice(&marked.text, &options).expect("marked text can be spliced").text
}

const RECORDINGS: [Recording; 3] = [
    Recording { counting: Counting::Never, ..Recording::DEFAULT },
    Recording::DEFAULT,
    Recording { counting: Counting::All, dual: true, ..Recording::DEFAULT },
];

#[test]
fn all_functions_of_compilers_are_marked() {
    for (name, text, _) in texts() {
        assert!(fuzzing::check(&text), "{name}");
        let module = Module::parse(&text).expect("compilers write PTX");
        for points in Points::ALL {
            let marked = marked(&text, points);
            assert_eq!(marked.skipped, [], "{name}");
            let entries = marked.points.iter().filter(|point| point.kind == PointKind::Entry);
            assert_eq!(entries.count(), module.definitions().count(), "{name}");
            let kernels = module.definitions().filter(|function| function.is_entry()).count();
            assert_eq!(marked.kernels.len(), kernels, "{name}");
        }
    }
}

fn counts(text: &str, points: Points) -> (usize, usize, usize) {
    let marked = marked(text, points);
    let implied = marked.implied.iter().map(|implied| implied.points.len()).sum();
    (marked.points.len(), implied, marked.points.iter().filter(|point| point.counted).count())
}

#[test]
fn how_many_points_compilers_make() {
    let table: Vec<String> = texts()
        .map(|(name, text, _)| {
            let [blocks, branches, loops, functions, waits] = Points::ALL.map(|points| counts(&text, points));
            format!(
                "{name}: blocks {blocks:?}, branches {}, loops {loops:?}, functions {}, waits {}",
                branches.0, functions.0, waits.0
            )
        })
        .collect();
    insta::with_settings!({ snapshot_path => "../data/foreign", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("points", table.join("\n"));
    });
}

/// Compares hashes of spliced texts. With `is_part`, tests some of the ways for each kind of points.
pub(crate) fn check_hashes(is_part: bool) {
    let shim = include_str!("../../../../tracer-host/shim/tests/data/kernels.ptx").to_owned();
    let texts: Vec<String> = texts().map(|(_, text, _)| text).chain([shim]).collect();
    let ways = |remainder| match is_part {
        true => Ways::Part { remainder, of: 2 * Points::ALL.len() },
        false => Ways::All,
    };
    let lines = Points::ALL.into_iter().enumerate().flat_map(|(number, points)| {
        let marked: Vec<String> = texts.iter().map(|text| marked(text, points).text).collect();
        let marked: Vec<&str> = marked.iter().map(String::as_str).collect();
        hashes::of_spliced(points.name(), &marked, ways(number))
    });
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/foreign/hashes.txt");
    hashes::check(&golden, &lines.collect::<Vec<_>>(), ways(0));
}

#[test]
fn what_is_spliced_stays_the_same_text() {
    check_hashes(true);
}

#[test]
fn lines_and_inlined_calls_are_those_of_the_source() {
    let marked = marked(include_str!("../data/foreign/flow-lineinfo.ptx"), Points::Blocks);
    let source = include_str!("../data/foreign/flow.cu");
    let calls = include_str!("../data/foreign/calls.cuh");
    let mut kernels = BTreeSet::new();
    for point in &marked.points {
        let Some(place) = &point.source else { continue };
        let text = match &*place.file {
            "flow.cu" => source,
            "calls.cuh" => calls,
            other => panic!("{other}"),
        };
        let line = text.lines().nth(place.line as usize - 1).expect("the file has the line");
        assert!(place.column as usize <= line.len() + 1, "{place:?}: {line}");
        if point.kind == PointKind::Entry && !point.function.contains("weigh") {
            // The function's head, or the branch that ends its first block.
            let head = text.lines().position(|line| line.contains(&format!("{}(", point.function)));
            let head = head.expect("the function has a head") + 1;
            assert!((head..head + 20).contains(&(place.line as usize)), "{}: {line}", point.function);
        }
        if let Some(call) = point.inlined_at.last() {
            assert_eq!((&*point.function, &*call.place.file), ("longest", "flow.cu"));
            assert!(
                source
                    .lines()
                    .nth(call.place.line as usize - 1)
                    .is_some_and(|line| line.contains("collatz_steps"))
            );
        }
        kernels.insert((point.function.clone(), point.inlined_at.len()));
    }
    let depth = |name: &str| {
        kernels.iter().filter(|(function, _)| &**function == name).map(|(_, depth)| *depth).max()
    };
    assert_eq!((depth("longest"), depth("escape")), (Some(1), Some(0)));
}

#[test]
fn parameters_lie_as_the_source_says() {
    let marked = marked(include_str!("../data/foreign/shapes.ptx"), Points::Functions);
    let layout = |name: &str| -> Vec<(usize, usize, usize)> {
        let kernel =
            marked.kernels.iter().find(|kernel| kernel.name.contains(name)).expect("the kernel is there");
        kernel.parameters.iter().map(|param| (param.size, param.align, param.offset)).collect()
    };
    assert_eq!(layout("scaleIfLi5"), [(20, 4, 0), (8, 8, 24), (1, 1, 32), (2, 2, 34)]);
    assert_eq!(layout("scaleIdLi3"), [(24, 8, 0), (8, 8, 24), (1, 1, 32), (2, 2, 34)]);
    assert_eq!(layout("3big"), [(40, 8, 0), (8, 8, 40)]);
    assert_eq!(layout("empty"), []);
}

/// Checks that each branch leads to a label of the same or an enclosing scope.
fn check_labels(body: &Body<'_>) {
    let mut scopes = vec![0];
    let mut labels: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    let mut branches = Vec::new();
    let mut last = 0;
    for statement in &body.statements {
        match &statement.kind {
            StatementKind::ScopeOpen => {
                last += 1;
                scopes.push(last);
            }
            StatementKind::ScopeClose => {
                scopes.pop();
            }
            StatementKind::Label(label) => {
                *labels.entry((scopes[scopes.len() - 1], label.name)).or_default() += 1;
            }
            StatementKind::Instruction(instruction) if instruction.name() == "bra" => {
                branches.push((instruction.operands[0].text, scopes.clone()));
            }
            _ => {}
        }
    }
    assert!(labels.values().all(|count| *count == 1), "labels are unique in their scope");
    for (label, scopes) in branches {
        let seen = scopes.iter().any(|scope| labels.contains_key(&(*scope, label)));
        assert!(seen, "`{label}` cannot be seen from a branch to it");
    }
}

#[test]
fn branches_of_spliced_text_see_their_labels() {
    for (_, text, _) in texts() {
        for points in Points::ALL {
            let marked = marked(&text, points);
            for recording in RECORDINGS {
                let text = spliced(&marked, recording);
                let module = Module::parse(&text).expect("splicing gives PTX");
                module.definitions().filter_map(|function| function.body.as_ref()).for_each(check_labels);
            }
        }
    }
}

pub(crate) fn check_machine_code(store: &CodeStore) {
    for (name, text, architecture) in texts() {
        let all = [
            (Points::Blocks, RECORDINGS[1]),
            (Points::Branches, RECORDINGS[0]),
            (Points::Loops, RECORDINGS[2]),
        ];
        let some = if name.starts_with("data") && !name.contains('-') { &all[..] } else { &all[..1] };
        for (points, recording) in some.iter().copied() {
            let spliced = spliced(&marked(&text, points), recording);
            let Some(functions) = store.functions(&spliced, architecture) else { return };
            let traced = functions.iter().filter(|(name, _)| name.ends_with(TRACED_SUFFIX));
            assert!(
                traced.map(|(_, function)| function.exits).sum::<u32>() > 0,
                "{name}, {points}, {recording:?}"
            );
        }
    }
}

#[test]
fn the_assembler_takes_what_is_spliced() {
    check_machine_code(&CodeStore::open(STORE));
}
