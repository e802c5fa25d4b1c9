//! Marks: instructions that hardware counters count at each event.

use super::LABEL_PREFIX;
use super::plan::{MarkerPlace, Plan};
use crate::{Body, Edits, Span, Statement, StatementKind};
use warptrace_abi::marker::Marker;

/// Returns the marks for the events of a marker; empty if `marks` is 0.
pub(super) fn mark_text(marker: Marker, marks: u32) -> String {
    let Some((location, count)) = marker.events().filter(|_| marks != 0) else { return String::new() };
    let delay = "pmevent.mask 0;\n\t".repeat(marks as usize - 1);
    format!("pmevent.mask {location};\n\t{delay}").repeat(count as usize)
}

/// Inserts delay instructions at a kernel's start. `start` is the offset of the kernel's text.
pub(super) fn delay(edits: &mut Edits, body: &Body<'_>, start: usize, instructions: u32) {
    let is_code = |statement: &&Statement<'_>| {
        matches!(statement.kind, StatementKind::Instruction(_) | StatementKind::Label(_))
    };
    if let Some(first) = body.statements.iter().find(is_code) {
        edits.insert(first.span.start - start, "pmevent.mask 0;\n\t".repeat(instructions as usize));
    }
}

/// Inserts marks at each marker of an untraced body. `start` is the offset of the function's text.
pub(super) fn mark(edits: &mut Edits, body: &Body<'_>, start: usize, plan: &Plan, marks: u32) {
    if marks == 0 {
        return;
    }
    for place in &plan.places {
        edits.insert(body.statements[place.statement].span.start - start, mark_text(place.marker, marks));
    }
    let mut ends = if plan.falls_off_its_end { "\n\tret;\n".to_owned() } else { String::new() };
    for (number, exit) in plan.exits.iter().enumerate() {
        let Some(target) = body.statements[exit.branch].instruction().and_then(|it| it.operands.last())
        else {
            continue;
        };
        let label = format!("{LABEL_PREFIX}exit{number}");
        let place = |place: &MarkerPlace| {
            let comment = body.statements[place.statement].comment().unwrap_or_default();
            format!("{}{comment}\n\t", mark_text(place.marker, marks))
        };
        let text: String = plan.places_in(exit).map(place).collect();
        ends.push_str(&format!("\n{label}:\n\t{text}ret;\n"));
        edits.replace(Span::new(target.span.start - start, target.span.end - start), label);
    }
    edits.insert(body.close - start, ends);
}
