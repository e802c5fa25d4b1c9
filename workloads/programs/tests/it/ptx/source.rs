//! Finds the trace points of a kernel in its source: in its body and in the functions that it calls.
//!
//! The parser understands only functions, braces and calls by a plain name.

use warptrace_device::{KernelModule, SourceLocation};
use warptrace_workloads::ProgramInfo;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PointUse {
    pub(crate) point: SourceLocation,
    pub(crate) is_loop: bool,
}

/// Returns the uses of trace points by `kernel`: one for each use in the source, on each call path.
///
/// # Panics
/// If the kernel does not exist, the source names an undeclared trace point, or `tick` is called on something
/// that is not a traced loop.
pub(crate) fn uses(program: &ProgramInfo, kernel: &str) -> Vec<PointUse> {
    let functions: Vec<Function> = program.modules.iter().flat_map(functions).collect();
    let kernel = functions.iter().find(|function| function.name == kernel);
    let mut uses = Vec::new();
    collect(kernel.expect("the kernel's source is one with trace points"), &functions, 0, &mut uses);
    uses
}

struct Function {
    name: String,
    body: String,
    module: &'static KernelModule,
}

impl Function {
    fn point(&self, arguments: &str) -> SourceLocation {
        let name = arguments.split('"').nth(1).unwrap_or_default();
        let point = self.module.locations.iter().find(|point| point.name == name);
        *point.unwrap_or_else(|| panic!("{}: `{name}` is no location", self.name))
    }
}

fn functions(module: &'static KernelModule) -> Vec<Function> {
    let lines = module.source.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (start, _) in text.match_indices("fn ") {
        let rest = &text[start + 3..];
        let name: String = rest.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        let Some(open) = rest.find('{') else { continue };
        let mut depth = 0;
        let end = rest[open..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let end = end.expect("braces match") + open;
        found.push(Function { name, body: rest[open..end].to_owned(), module });
    }
    found
}

fn collect(function: &Function, functions: &[Function], depth: u32, uses: &mut Vec<PointUse>) {
    assert!(depth < 8, "{} calls itself", function.name);
    for (at, _) in function.body.match_indices('(') {
        let before = &function.body[..at];
        let name_at = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let name = &before[name_at..];
        if before.ends_with("trace!") || before.ends_with("trace_loop!") {
            let point = function.point(&function.body[at + 1..]);
            uses.push(PointUse { point, is_loop: before.ends_with("trace_loop!") });
        } else if matches!(name, "tick" | "ticks") && before[..name_at].ends_with('.') {
            let guard = before[..name_at - 1].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
            let opened = format!("let mut {} = trace_loop!(", guard.unwrap_or_default());
            assert!(before.contains(&opened), "{}: no `{opened}`", function.name);
        } else if !before[..name_at].ends_with('.') {
            // Prefers functions of the same file, as Rust does.
            let of_file = |called: &&Function| called.module.file == function.module.file;
            let mut named = functions.iter().filter(|called| called.name == name);
            if let Some(called) = named.clone().find(of_file).or_else(|| named.next()) {
                collect(called, functions, depth + 1, uses);
            }
        }
    }
}

#[test]
fn follows_calls_to_where_the_trace_points_are() {
    const fn point(id: u16, name: &'static str) -> SourceLocation {
        SourceLocation {
            id,
            name,
            function: "",
            kind: warptrace_device::LocationKind::Marked,
            line: 1,
            column: 1,
            parent: 0,
            rejoin_line: 1,
            rejoin_column: 1,
        }
    }
    const MODULE: KernelModule = KernelModule {
        name: "a",
        file: "a.rs",
        kernels: &["kernel"],
        waits: &[],
        values: &[],
        ptx: "",
        without_ptx: "",
        source: "fn helper() { trace!(\"STEP\"); }
            pub fn kernel(a: u32) {
                trace!(\"ENTER\" = 1); // trace!(\"GONE\")
                if a > 0 { a.helper(); helper(); }
                let mut rounds = trace_loop!(\"ROUND\");
                while more() { rounds.tick(); rounds.ticks(2); }
                drop(rounds);
                let mut rounds = trace_loop!(\"STEP\");
                while more() { rounds.tick(); }
            }",
        locations: &[point(1, "ENTER"), point(2, "STEP"), point(3, "ROUND")],
    };
    let program = ProgramInfo { name: "p", modules: &[MODULE], automatic: &[] };
    let found: Vec<_> = uses(&program, "kernel").iter().map(|used| (used.point.id, used.is_loop)).collect();
    assert_eq!(found, [(1, false), (2, false), (3, true), (2, true)]);
}
