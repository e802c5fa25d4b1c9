//! Code of the fuzz target `ptx_parse`, as a library so that tests can run it too. Panics on a finding.

use std::collections::BTreeSet;

use crate::points::{PointError, PointOptions, Points, mark};
use crate::splice::{Marker, Options, Recording, splice};
use crate::{Body, Cfg, Edits, Module, Span, Statement, StatementKind, call_graph};
use warptrace_format::Counting;

const MARK: &str = "\n/*warptrace-check*/\n";

/// Calls [`check`] if `data` is UTF-8.
pub fn parse_arbitrary(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
}

/// Parses `text` and, if it is a module, checks the library's invariants: spans are in order with only blanks
/// between them, an empty list of edits changes nothing, text inserted before each statement leaves all
/// statements unchanged, control flow is consistent, and points are consistent with their markers. Returns
/// true if `text` is a module. Panics if an invariant does not hold.
pub fn check(text: &str) -> bool {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(error) => {
            assert!(error.offset() <= text.len() && !error.to_string().is_empty());
            return false;
        }
    };
    assert_eq!(Edits::new().apply(text).as_deref(), Ok(text));
    assert!(text.is_char_boundary(module.header_end));
    check_cover(text, Span::new(0, text.len()), module.items.iter().map(|item| item.span));
    let graph = call_graph(&module);
    for (index, function) in module.functions.iter().enumerate() {
        assert!(graph.calls(index).direct.iter().all(|callee| *callee < module.functions.len()));
        assert_eq!(function.name_span.text(text), function.name);
        for param in function.params.iter().chain(&function.returns) {
            assert!(function.span.start < param.span.start && param.span.end < function.span.end);
            assert_eq!(param.name_span.text(text), param.name);
        }
        assert!(function.params_close().is_none_or(|close| text.as_bytes()[close] == b')'));
        let Some(body) = &function.body else { continue };
        assert_eq!(&text[function.span.end - 1..function.span.end], "}");
        let inside = Span::new(body.open + 1, body.close);
        check_cover(text, inside, body.statements.iter().map(|statement| statement.span));
        check_instructions(text, body);
        check_flow(body);
    }
    check_insertions(text, &module);
    Points::ALL.into_iter().for_each(|points| check_points(text, &module, points));
    true
}

/// Marks the text and checks the invariants of [`mark`]: only markers are added, each point has a unique id
/// and either a marker or an implied entry, and the marked text can be spliced if the original can.
fn check_points(text: &str, module: &Module<'_>, points: Points) {
    let marked = match mark(text, &PointOptions { points, ..PointOptions::default() }) {
        Ok(marked) => marked,
        Err(error) => return assert!(matches!(error, PointError::AlreadyMarked { .. }), "{error}"),
    };
    let again = Module::parse(&marked.text).expect("comments change nothing");
    let mut markers = BTreeSet::new();
    let mut original = statements(module);
    for statement in statements(&again) {
        let marker = statement.comment().and_then(Marker::parse);
        if let Some(marker) = marker {
            if let Some((location, _)) = marker.expect("markers are well-formed").events() {
                assert!(markers.insert(location), "a point has one marker");
            }
            continue;
        }
        let before = original.next().expect("nothing else is added");
        assert_eq!(before.span.text(text), statement.span.text(&marked.text));
        assert_eq!(before.depth, statement.depth);
    }
    assert!(original.next().is_none(), "nothing is left out");
    for implied in &marked.implied {
        assert!(markers.contains(&implied.after) && !implied.points.is_empty());
        for point in &implied.points {
            assert!(markers.insert(*point), "a point is implied once, and has no marker then");
        }
    }
    assert!(marked.points.iter().map(|point| point.id).eq(markers), "each point has a marker or is implied");
    for point in &marked.points {
        assert!(point.parent < point.id && point.ptx_line > 0 && point.ptx_column > 0);
    }
    let recording = Some(Recording { counting: Counting::All, ..Recording::DEFAULT });
    let options = Options { recording, ..Options::default() };
    match (splice(text, &options), splice(&marked.text, &options)) {
        (Ok(_), Ok(spliced)) => {
            Module::parse(&spliced.text).expect("splicing gives PTX");
        }
        (Ok(_), Err(error)) => panic!("marked text cannot be spliced: {error}"),
        (Err(_), _) => {}
    }
}

/// Checks that `spans` are in order within `outer` with only blanks between them.
fn check_cover(text: &str, outer: Span, spans: impl Iterator<Item = Span>) {
    let mut at = outer.start;
    for span in spans.chain([Span::new(outer.end, outer.end)]) {
        let gap = &text[at..span.start];
        let blank = gap.chars().all(|char| matches!(char, ' ' | '\t' | '\r' | '\n' | '\x0b' | '\x0c' | '\0'));
        assert!(blank, "`{gap}` belongs to nothing");
        assert!(!span.is_empty() || span.start == outer.end);
        at = span.end;
    }
    assert_eq!(at, outer.end);
}

fn check_instructions(text: &str, body: &Body<'_>) {
    for (index, instruction) in body.instructions() {
        let span = body.statements[index].span;
        assert_eq!(body.statement_at(span.start), Some(index));
        assert_eq!(instruction.opcode_span.text(text), instruction.opcode);
        assert!(span.start <= instruction.opcode_span.start);
        let mut at = instruction.opcode_span.end;
        for operand in &instruction.operands {
            assert_eq!(operand.span.text(text), operand.text);
            assert!(at <= operand.span.start && operand.span.end < span.end);
            at = operand.span.end;
        }
    }
}

fn check_flow(body: &Body<'_>) {
    let Ok(cfg) = Cfg::new(body) else { return };
    assert!(cfg.is_reachable(0) && cfg.predecessors(0).is_empty());
    let mut at = 0;
    for (index, block) in cfg.blocks().iter().enumerate() {
        assert_eq!(block.statements.start, at);
        at = block.statements.end;
        assert!(block.statements.clone().all(|statement| cfg.block_of(statement) == index));
        assert!(body.open < block.entry && block.entry <= body.close);
        for edge in &block.successors {
            assert!(cfg.predecessors(edge.to).contains(&index));
            assert!(cfg.is_reachable(edge.to) || !cfg.is_reachable(index));
        }
        let outer = cfg.loop_of(index).map(|inner| &cfg.loops()[inner]);
        assert!(outer.is_none_or(|found| cfg.dominates(found.header, index)));
    }
    assert_eq!(at, body.statements.len());
}

/// Inserts a comment before each statement and item, parses the text again and compares.
fn check_insertions(text: &str, module: &Module<'_>) {
    if text.contains(MARK.trim()) {
        return;
    }
    let mut edits = Edits::new();
    for item in &module.items {
        edits.insert(item.span.start, MARK);
    }
    for statement in statements(module) {
        edits.insert(statement.span.start, MARK);
    }
    let edited = edits.apply(text).expect("insertions between statements do not overlap");
    let again = Module::parse(&edited).expect("comments change nothing");
    let marked = statements(&again).filter(|statement| statement.comment() == Some(MARK.trim())).count();
    assert_eq!(marked, statements(module).count());
    let without = statements(&again).filter(|statement| statement.comment() != Some(MARK.trim()));
    for (before, after) in statements(module).zip(without) {
        assert_eq!(before.span.text(text), after.span.text(&edited));
        assert_eq!(before.depth, after.depth);
        assert_eq!(std::mem::discriminant(&before.kind), std::mem::discriminant(&after.kind));
        if let (StatementKind::Directive(before), StatementKind::Directive(after)) =
            (&before.kind, &after.kind)
        {
            assert_eq!(std::mem::discriminant(before), std::mem::discriminant(after));
        }
    }
}

fn statements<'m, 'a>(module: &'m Module<'a>) -> impl Iterator<Item = &'m Statement<'a>> {
    module.definitions().filter_map(|function| function.body.as_ref()).flat_map(|body| &body.statements)
}
