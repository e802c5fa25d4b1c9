//! Names, calls and declarations of modules.

use warptrace_ptx::{
    Calls, Directive, FunctionKind, Linkage, Module, Space, Statement, StatementKind, call_graph,
};

const CONSTRUCTS: &str = include_str!("../golden/constructs.ptx");

fn constructs() -> Module<'static> {
    Module::parse(CONSTRUCTS).expect("it is PTX")
}

fn parse(items: &str) -> (String, impl Fn(&str) -> usize) {
    let text = format!(".version 7.8\n.target sm_80\n{items}");
    let names: Vec<String> = Module::parse(&text)
        .expect("it is PTX")
        .functions
        .iter()
        .map(|function| function.name.to_owned())
        .collect();
    (text, move |name: &str| names.iter().rposition(|known| known == name).expect("it is there"))
}

#[test]
fn the_header_answers() {
    let module = constructs();
    assert_eq!(module.version(), (8, 7));
    assert_eq!(module.target(), "sm_90a");
    assert_eq!(module.targets(), ["sm_90a", "texmode_independent", "debug"]);
    assert_eq!(module.address_size(), Some(64));
    assert_eq!(module.file(2), Some("plain.cu"));
    assert_eq!(module.file(3), None);
    assert_eq!(module.dynamic_shared().collect::<Vec<_>>(), ["dynamic", "second"]);
}

#[test]
fn the_header_ends_behind_its_line_or_its_directive() {
    for (header, rest) in [
        (".version 6.3\n.target sm_70\n.address_size 64\r\n", "\n.global .b32 a;"),
        (".version 6.3 .target sm_70", " .global .b32 a;\n"),
        (".version 6.3\n.target sm_70, debug // c\n", "// d\n.global .b32 a;"),
        (".version 6.3\n.target sm_70 /* c */", ".global .b32 a; .target sm_80"),
        (".version 6.3\n.target sm_70", ""),
    ] {
        // A block comment on the header's line belongs to the next item.
        let end = header.find(" /*").unwrap_or(header.len());
        let text = format!("{header}{rest}");
        assert_eq!(Module::parse(&text).expect("it is PTX").header_end, end, "{text}");
    }
}

#[test]
fn functions_answer() {
    let module = constructs();
    let kernel = module.function("kernel").expect("it is there");
    assert_eq!((kernel.kind, kernel.linkage), (FunctionKind::Entry, Linkage::Visible));
    assert_eq!(kernel.params.len(), 2);
    assert_eq!((kernel.params[0].align, kernel.params[1].align), (None, Some(8)));
    assert_eq!(kernel.directive(".maxntid").map(|directive| directive.values), Some("256, 1, 1"));
    assert_eq!(kernel.directive(".pragma").map(|directive| directive.values), Some("\"nounroll\""));
    assert_eq!(kernel.params_close().map(|close| &CONSTRUCTS[close - 1..=close]), Some("\n)"));
    assert!(kernel.span.text(CONSTRUCTS).starts_with(".visible"));
    assert!(kernel.span.text(CONSTRUCTS).ends_with("\tret;\n}"));
    let bare = module.function("bare").expect("it is there");
    assert_eq!((bare.param_list, bare.params.len()), (None, 0));
    let vprintf = module.function("vprintf").expect("it is there");
    assert_eq!((vprintf.linkage, vprintf.body.is_none()), (Linkage::Extern, true));
    assert_eq!(vprintf.returns.len(), 1);
    assert!(module.function("missing").is_none());
}

#[test]
fn declarations_answer() {
    let module = constructs();
    let elements = |name: &str| {
        let mut declared = module.variables().flat_map(|(_, declaration)| &declaration.names);
        declared.find(|declared| declared.name == name).expect("it is there").elements()
    };
    assert_eq!(elements("tile"), Some(128));
    assert_eq!(elements("dynamic"), None);
    assert_eq!(elements("both"), None);
    let body = module.function("kernel").and_then(|kernel| kernel.body.as_ref()).expect("it has a body");
    let registers: Vec<_> = body
        .statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Directive(Directive::Registers(declaration)) => Some(declaration),
            _ => None,
        })
        .collect();
    assert!(registers.iter().all(|declaration| declaration.space == Space::Register));
    assert_eq!(registers[1].names[0].count, Some(9));
    assert_eq!((registers[1].names[1].name, registers[1].names[1].count), ("extra", None));
}

#[test]
fn markers_are_comments_where_inline_assembly_wrote_them() {
    let module = Module::parse(include_str!("../golden/rustc.ptx")).expect("it is PTX");
    let markers = |name: &str| {
        let function =
            module.functions.iter().find(|function| function.name.contains(name)).expect("it is there");
        let statements = &function.body.as_ref().expect("it is defined").statements;
        let mut ids: Vec<u32> = statements
            .iter()
            .filter_map(Statement::comment)
            .filter_map(|comment| comment.strip_prefix("// warptrace.loc ")?.parse().ok())
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(markers("mix"), [1; 9]);
    let mut table = markers("table");
    table.dedup();
    assert_eq!(table, (2..=10).collect::<Vec<_>>());
}

#[test]
fn calls_find_definitions_through_prototypes_and_aliases() {
    let (text, index) = parse(
        ".func callee(.param .b32 a);
         .extern .func outside();
         .func other() { call other; ret; }
         .entry k() { call callee, (a); call.uni second, (b); call outside; call nowhere, (); ret; }
         .func callee(.param .b32 a) { call (r), %rd1, (a), proto; call other; ret; }
         .alias second, other;",
    );
    let module = Module::parse(&text).expect("it is PTX");
    let graph = call_graph(&module);
    let kernel = index("k");
    assert_eq!(
        *graph.calls(kernel),
        Calls {
            direct: [index("callee"), index("other"), index("outside")].into(),
            unknown: ["nowhere"].into(),
            indirect: false,
        }
    );
    assert!(module.functions[index("callee")].body.is_some());
    assert!(graph.calls(index("callee")).indirect);
    assert_eq!(graph.reachable(kernel), [index("callee"), index("other"), index("outside")].into());
    assert_eq!(graph.reachable(index("other")), [index("other")].into());
    assert!(!graph.reachable(kernel).contains(&kernel));
}

#[test]
fn calls_without_arguments_can_be_indirect() {
    let (text, _) =
        parse(".entry k() { call f; call f, (a); call (r), f, (a); call f, p; call f, (a), p; call %rd1; }");
    let module = Module::parse(&text).expect("it is PTX");
    let body = module.functions[0].body.as_ref().expect("it has a body");
    let callees: Vec<_> =
        body.instructions().map(|(_, call)| (call.callee(), call.is_indirect_call())).collect();
    let direct = (Some("f"), false);
    assert_eq!(callees, [direct, direct, direct, (None, true), (None, true), (None, true)]);
}

#[test]
fn instructions_answer() {
    let (text, _) = parse(".entry k() { @!p ld.global.u32 %r1, [a]; bar.sync 0; }");
    let module = Module::parse(&text).expect("it is PTX");
    let body = module.functions[0].body.as_ref().expect("it has a body");
    let load = body.statements[0].instruction().expect("it is one");
    assert_eq!(load.name(), "ld");
    assert_eq!(load.modifiers().collect::<Vec<_>>(), ["global", "u32"]);
    assert!(load.has_modifier("u32") && !load.has_modifier("ld"));
    let guard = load.guard.expect("it has one");
    assert_eq!((guard.negated, guard.predicate, guard.span.text(&text)), (true, "p", "@!p"));
    assert!(!load.is_call() && load.callee().is_none());
}
