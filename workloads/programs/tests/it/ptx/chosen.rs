//! Kernels with recording code and their original instructions, for launches with chosen warps.

use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, TRACED_SUFFIX, splice};
use warptrace_ptx::{Body, Cfg, Module, fuzzing};

use super::stored_code::CodeStore;
use super::{Assembled, DISTINCT, RECORDINGS, kernels, ptx, store};

fn choosing(recording: Recording, chooses: bool) -> Recording {
    Recording { chooses, ..recording }
}

fn body<'m, 'a>(module: &'m Module<'a>, name: &str) -> &'m Body<'a> {
    let function = module.functions.iter().find(|function| function.name == name);
    function.and_then(|function| function.body.as_ref()).expect("a kernel")
}

fn instructions(text: &str) -> Vec<&str> {
    let is_shared = |line: &str| line.starts_with(".shared") || line.starts_with(".local");
    // Omits comments: markers at waits are removed if waits are not events.
    let is_left_out = |line: &str| line.is_empty() || line.starts_with("//") || is_shared(line);
    text.lines().map(str::trim).filter(|line| !is_left_out(line)).collect()
}

#[test]
fn a_kernel_holds_its_own_instructions_as_they_are() {
    let Some(ptx) = ptx() else { return };
    let original = Module::parse(ptx).expect("the compiler writes PTX");
    for (recording, placement) in [(RECORDINGS[1], Some(Placement::Shared)), (RECORDINGS[3], None)] {
        let recording = Recording { placement, chooses: true, ..recording };
        let options = Options { recording: Some(recording), ..Options::default() };
        let text = splice(ptx, &options).unwrap_or_else(|error| panic!("{options:?}: {error}")).text;
        assert!(fuzzing::check(&text), "it is no module");
        let module = Module::parse(&text).expect("it is PTX");
        for kernel in kernels() {
            let (own, both) = (body(&original, kernel), body(&module, &format!("{kernel}{TRACED_SUFFIX}")));
            let scope = &text[both.open..both.close];
            let scope = &scope[scope.rfind("\n\t{\n").expect("a scope")..];
            // The first and the last line are the braces of the scope.
            let found = instructions(scope);
            let expected = instructions(&ptx[own.open + 1..own.close]);
            assert!(found[1..found.len() - 1] == expected, "{kernel}: not its own instructions");
            let loops = |body: &Body<'_>| Cfg::new(body).expect("all labels are there").loops().len();
            assert!(loops(both) >= 2 * loops(own), "{kernel}");
        }
    }
}

pub(crate) fn check_registers(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    for (architecture, recording) in DISTINCT.into_iter().zip(RECORDINGS.into_iter().cycle()) {
        let recording = choosing(recording, true);
        let Some(assembled) = Assembled::new(store, ptx, recording, architecture) else { return };
        assembled.check_registers();
    }
}

#[test]
fn they_assemble_for_each_generation() {
    check_registers(&store());
}

pub(crate) fn check_streamed(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    // Covers both ways to reserve a segment.
    for (architecture, recording) in ["sm_80", "sm_90"].into_iter().zip([RECORDINGS[0], RECORDINGS[3]]) {
        let logs = LogKind::Streamed;
        let recording = choosing(Recording { logs, ..recording }, true);
        let Some(assembled) = Assembled::new(store, ptx, recording, architecture) else { return };
        assert!(kernels().iter().all(|kernel| assembled.both(kernel)[1].registers > 0));
    }
}

#[test]
fn they_assemble_with_streamed_logs() {
    check_streamed(&store());
}

pub(crate) fn check_yields(store: &CodeStore) {
    let Some(ptx) = ptx() else { return };
    let assembled = |chooses| Assembled::new(store, ptx, choosing(RECORDINGS[0], chooses), "sm_90");
    let (Some(without), Some(with)) = (assembled(false), assembled(true)) else { return };
    for kernel in kernels() {
        // The sum of the recording code's and the original instructions' YIELDs.
        let [own, traced] = without.both(kernel).map(|function| function.yields);
        assert_eq!(with.both(kernel)[1].yields, traced + own, "{kernel}");
    }
}

#[test]
fn the_question_brings_no_yield() {
    check_yields(&store());
}
