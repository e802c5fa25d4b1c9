//! Edited PTX is valid: NVIDIA's assembler accepts texts with a probe at the entry of each basic block, an
//! additional parameter for each kernel and an additional variable for each module.

use warptrace_ptx::{Cfg, Edits, FunctionKind, Module};

use crate::STORE;
use crate::stored_code::CodeStore;

const TEXTS: [(&str, &str, &str); 7] = [
    ("nvcc", include_str!("../golden/nvcc.ptx"), "sm_75"),
    ("nvcc-lineinfo", include_str!("../golden/nvcc-lineinfo.ptx"), "sm_90"),
    ("nvcc-debug", include_str!("../golden/nvcc-debug.ptx"), "sm_75"),
    ("nvrtc", include_str!("../golden/nvrtc.ptx"), "sm_100"),
    ("rustc", include_str!("../golden/rustc.ptx"), "sm_75"),
    ("llc", include_str!("../golden/llc.ptx"), "sm_75"),
    ("numba", include_str!("../golden/numba.ptx"), "sm_80"),
];

const PROBE: &str =
    "\n{ .reg .b32 probe; mov.u32 probe, %clock; st.volatile.global.u32 [warptrace_probe], probe; }\n";

fn probed(text: &str) -> (String, usize) {
    let module = Module::parse(text).expect("compilers write PTX");
    let mut edits = Edits::new();
    edits.insert(module.header_end, "\n.global .align 4 .b32 warptrace_probe;\n");
    let mut probes = 0;
    for function in module.definitions() {
        if function.kind == FunctionKind::Entry {
            let (at, text) = function.append_param(".param .u32 warptrace_extra");
            edits.insert(at, text);
        }
        let body = function.body.as_ref().expect("definitions have bodies");
        let cfg = Cfg::new(body).expect("compilers write all labels");
        for block in cfg.blocks() {
            edits.insert(block.entry, PROBE);
            probes += 1;
        }
    }
    (edits.apply(text).expect("insertions do not overlap"), probes)
}

pub(crate) fn check_probes(store: &CodeStore) {
    for (name, text, architecture) in TEXTS {
        let (edited, probes) = probed(text);
        assert!(probes > 2, "{name}: {probes} blocks");
        assert_eq!(edited.matches(PROBE).count(), probes);
        let Some(functions) = store.functions(&edited, architecture) else { return };
        assert!(functions.values().any(|function| function.exits > 0), "{name}");
    }
}

#[test]
fn the_assembler_takes_a_probe_in_each_block() {
    check_probes(&CodeStore::open(STORE));
}

#[test]
fn a_parameter_is_appended_to_any_list() {
    for (header, expected) in [
        (".entry k", ".entry k(.param .u32 x)"),
        (".entry k ( )", ".entry k ( .param .u32 x)"),
        (".entry k(.param .u64 a // last\n)", ".entry k(.param .u64 a, .param .u32 x // last\n)"),
    ] {
        let text = format!(".version 7.8\n.target sm_80\n{header} {{ ret; }}");
        let module = Module::parse(&text).expect("it is PTX");
        let (at, insertion) = module.functions[0].append_param(".param .u32 x");
        let mut edits = Edits::new();
        edits.insert(at, insertion);
        let edited = edits.apply(&text).expect("one edit");
        assert!(edited.contains(expected), "{edited}");
    }
}

pub(crate) fn check_values(store: &CodeStore) {
    let text = include_str!("../../../../tracer-host/warptrace/tests/known/values.ptx");
    assert_eq!(text.matches("// warptrace.value ").count(), 26);
    for architecture in ["sm_75", "sm_90"] {
        let Some(functions) = store.functions(text, architecture) else { return };
        let [named, unnamed] = ["named", "unnamed"].map(|function| functions[function]);
        assert!(named.instructions > 20, "{architecture}: {named:?}");
        assert_eq!(named, unnamed, "{architecture}");
    }
}

#[test]
fn a_value_that_is_there_anyway_costs_no_instruction() {
    check_values(&CodeStore::open(STORE));
}
