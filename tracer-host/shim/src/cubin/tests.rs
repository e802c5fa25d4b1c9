use std::collections::HashMap;

use warptrace_ptx::{Directive, ItemKind, Module, StatementKind};

use super::*;
use crate::fatbin::{Kind, entries};

#[test]
fn registers_are_those_that_the_assembler_tells() {
    let fatbin = include_bytes!("../../tests/data/kernels-cubin.fatbin");
    let entry = entries(fatbin).unwrap().into_iter().find(|entry| entry.kind == Kind::Elf).unwrap();
    let cubin = entry.bytes().unwrap();
    let found = registers(&cubin);
    assert!(!found.is_empty() && found.iter().all(|(_, count)| (1..=255).contains(count)), "{found:?}");
    for length in 0..cubin.len() {
        let _ = registers(&cubin[..length]);
    }
    let mut broken = cubin.clone();
    for at in 0..broken.len() {
        broken[at] ^= 0xff;
        let _ = registers(&broken);
        broken[at] ^= 0xff;
    }
}

/// Cubins from Triton and CuTe DSL, the PTX that the assembler got, and its name if the cubin has it.
const KERNELS: [(&[u8], &str, &str); 3] = [
    (
        include_bytes!("../../tests/data/triton/collatz.cubin"),
        include_str!("../../tests/data/triton/collatz.ptx"),
        "ptxas-blackwell",
    ),
    (
        include_bytes!("../../tests/data/triton/softmax.cubin"),
        include_str!("../../tests/data/triton/softmax.ptx"),
        "ptxas-blackwell",
    ),
    (
        include_bytes!("../../tests/data/cute/collatz.cubin"),
        include_str!("../../tests/data/cute/collatz.ptx"),
        "",
    ),
];

fn instructions(text: &str) -> Vec<(usize, Vec<&str>)> {
    let module = Module::parse(text).unwrap();
    let bodies = module.definitions().filter_map(|function| function.body.as_ref());
    let all = bodies.flat_map(|body| &body.statements).filter(|statement| statement.instruction().is_some());
    all.map(|found| {
        (module.position(found.span.start).line, found.span.text(text).split_whitespace().collect())
    })
    .collect()
}

#[test]
fn the_text_of_a_cubin_is_what_was_assembled() {
    for (cubin, original, tool) in KERNELS {
        let embedded = ptx(cubin).unwrap();
        assert_eq!(instructions(&embedded.text), instructions(original));
        assert_eq!(embedded.assembled, Assembled { tool: tool.to_owned(), options: Vec::new() });
        // SAFETY: the whole file.
        assert_eq!(unsafe { at(cubin.as_ptr().cast()) }.map(<[u8]>::len), Some(cubin.len()));
    }
}

/// Returns file and line of each instruction by `.loc`; `None` if the compiler gives none.
fn by_loc(text: &str) -> HashMap<usize, Option<(String, u32)>> {
    let module = Module::parse(text).unwrap();
    let files: HashMap<u32, &str> = module
        .items
        .iter()
        .filter_map(|item| match item.kind {
            ItemKind::File { index, name } => Some((index, name)),
            _ => None,
        })
        .collect();
    let mut found = HashMap::new();
    for body in module.definitions().filter_map(|function| function.body.as_ref()) {
        let mut current = None;
        for statement in &body.statements {
            if let StatementKind::Directive(Directive::Loc(loc)) = statement.kind {
                current = (loc.line != 0).then(|| (files[&loc.file].to_owned(), loc.line));
            } else if statement.instruction().is_some() {
                found.insert(module.position(statement.span.start).line, current.clone());
            }
        }
    }
    found
}

#[test]
fn lines_of_the_source_are_those_of_loc() {
    for (cubin, original, _) in KERNELS {
        let (found, expected) = (ptx(cubin).unwrap().lines, by_loc(original));
        let mut known = 0;
        for (line, expected) in &expected {
            let Some((place, _)) = found.get(line) else { continue };
            known += 1;
            assert_eq!(expected.as_ref(), Some(&(place.file.to_string(), place.line)), "line {line}");
        }
        assert!(known * 2 >= expected.len(), "{known} of {}", expected.len());
        // Inlined code has its calls.
        let calls = found.values().flat_map(|(_, calls)| calls.iter());
        assert!(calls.clone().all(|call| call.place.file.ends_with(".py") && !call.function.is_empty()));
        assert_eq!(calls.count() > 0, original.contains("inlined_at"));
    }
}

fn check_damage(step: usize) {
    for (cubin, ..) in KERNELS {
        for length in (0..cubin.len()).step_by(97 * step) {
            let _ = ptx(&cubin[..length]);
        }
        let mut broken = cubin.to_vec();
        for at in (0..broken.len()).step_by(step) {
            broken[at] ^= 0xff;
            let _ = ptx(&broken);
            broken[at] ^= 0xff;
        }
    }
    let without = include_bytes!("../../tests/data/kernels-cubin.fatbin");
    let entry = entries(without).unwrap().into_iter().find(|entry| entry.kind == Kind::Elf).unwrap();
    assert_eq!(ptx(&entry.bytes().unwrap()), Err(NoText::Missing));
}

#[test]
fn damaged_cubins_have_no_text_or_another_one() {
    check_damage(13);
}

mod full {
    #[test]
    fn damaged_cubins_have_no_text_or_another_one() {
        super::check_damage(1);
    }
}
