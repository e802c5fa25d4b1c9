//! The trace points of a kernel, read from its source: those in its body and in the functions that it calls.
//!
//! Knows just enough of Rust for that: functions, braces, calls by a plain name.

use warptrace_device::{TracePoint, TracePoints};
use warptrace_workloads::ProgramInfo;

/// The trace points that `kernel` passes, one for each place in the source and each call that leads there.
///
/// # Panics
/// If there is no such kernel, or the source names a trace point that is not declared.
pub(crate) fn trace_points(program: &ProgramInfo, kernel: &str) -> Vec<TracePoint> {
    let functions: Vec<Function> = program.points.iter().flat_map(functions).collect();
    let kernel = functions.iter().find(|function| function.name == kernel);
    let mut points = Vec::new();
    collect(kernel.expect("the kernel's source is one with trace points"), &functions, 0, &mut points);
    points
}

struct Function {
    name: String,
    body: String,
    points: TracePoints,
}

fn functions(points: &TracePoints) -> Vec<Function> {
    let text: String = points
        .source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
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
        found.push(Function { name, body: rest[open..end].to_owned(), points: *points });
    }
    found
}

fn collect(function: &Function, functions: &[Function], depth: u32, points: &mut Vec<TracePoint>) {
    assert!(depth < 8, "{} calls itself", function.name);
    for (at, _) in function.body.match_indices('(') {
        let before = &function.body[..at];
        let name_at = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let name = &before[name_at..];
        if name == "trace_loc" {
            let argument = function.body[at + 1..].split(')').next().unwrap_or_default();
            let constant = argument.rsplit("::").next().unwrap_or_default();
            let point = function.points.points.iter().find(|point| point.name == constant);
            points.push(*point.unwrap_or_else(|| panic!("{}: `{argument}` is not declared", function.name)));
        } else if !before[..name_at].ends_with('.') {
            // The file's own functions first, as Rust has it.
            let of_file = |called: &&Function| called.points.file == function.points.file;
            let mut named = functions.iter().filter(|called| called.name == name);
            if let Some(called) = named.clone().find(of_file).or_else(|| named.next()) {
                collect(called, functions, depth + 1, points);
            }
        }
    }
}

#[test]
fn follows_calls_to_where_the_trace_points_are() {
    const POINTS: TracePoints = TracePoints {
        module: "at",
        file: "a.rs",
        source: "fn helper() { trace_loc(at::STEP); }
            pub fn kernel(a: u32) {
                trace_loc(at::ENTER); // trace_loc(at::GONE)
                if a > 0 { a.helper(); helper(); }
            }",
        points: &[
            TracePoint { id: 1, name: "ENTER", what: "" },
            TracePoint { id: 2, name: "STEP", what: "" },
        ],
    };
    let program = ProgramInfo { name: "p", kernels: &[("kernel", "a.rs")], points: &[POINTS] };
    let ids: Vec<u16> = trace_points(&program, "kernel").iter().map(|point| point.id).collect();
    assert_eq!(ids, [1, 2]);
}
