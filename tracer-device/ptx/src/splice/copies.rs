//! Traced copies of kernels and functions.

use super::emit::{Emitter, LAUNCH_PARAMETER};
use super::limits::limit_registers;
use super::marks::mark_text;
use super::plan::{Plan, led_to_copies};
use super::state::descriptor_bytes;
use super::style::Style;
use super::{SpliceError, Splicer, TRACED_SUFFIX, sequence_of, unchosen};
use crate::{Edits, Function, Span, StatementKind};

impl Splicer<'_> {
    pub(super) fn copy(
        &self,
        function: &Function<'_>,
        plan: &Plan,
        style: Style,
        out: &mut String,
    ) -> Result<(), SpliceError> {
        let Some(body) = &function.body else { return Ok(()) };
        let start = function.span.start;
        let mut emitter = Emitter::new(style);
        let mut edits = Edits::new();
        edits.insert(function.name_span.end - start, TRACED_SUFFIX);
        if function.is_entry() {
            let parameter = format!(
                ".param .align 8 .b8 {LAUNCH_PARAMETER}[{}]",
                descriptor_bytes(style.recording.chooses)
            );
            let (at, parameter) = function.append_param(&parameter);
            edits.insert(at - start, parameter);
        }
        let loops: &[u16] = &plan.loops;
        emitter.declarations(loops);
        limit_registers(&mut edits, function, start, &self.registers, self.options.limits_bounded);
        let unchosen = (style.recording.chooses && style.is_entry).then(|| emitter.unchosen_label());
        if function.is_entry() {
            emitter.prologue(loops, unchosen.as_deref());
        } else {
            emitter.function_prologue(loops);
        }
        edits.insert(body.open + 1 - start, format!("\n{}", emitter.take()));
        for place in &plan.places {
            let span = body.statements[place.statement].span;
            let depth = body.statements[place.statement].depth;
            let sequence = emitter.scoped(depth, |emitter| {
                // The comment stays before its sequence. A line comment ends with the line.
                emitter.text("\n\t");
                emitter.text(&mark_text(place.marker, self.options.marks));
                sequence_of(emitter, place, loops);
            });
            edits.insert(span.end - start, &sequence);
            emitter.recycle(sequence);
        }
        for place in &plan.data {
            let statement = &body.statements[place.statement];
            let sequence = emitter.scoped(statement.depth, |emitter| {
                emitter.text("\n");
                emitter.data_site(place);
            });
            edits.insert(statement.span.end - start, &sequence);
            emitter.recycle(sequence);
        }
        self.ends(function, &mut emitter, &mut edits);
        self.exits(function, plan, &mut emitter, &mut edits);
        if plan.falls_off_its_end {
            if function.is_entry() {
                emitter.epilogue();
            }
            edits.insert(body.close - start, format!("\n{}\tret;\n", emitter.take()));
        }
        // A directive such as `.loc`, which ends with its line, may precede the brace.
        edits.insert(body.close - start, format!("\n{}", emitter.take_cold()));
        if let Some(label) = unchosen {
            let own = self.own_body(function, body, plan)?;
            edits.insert(body.close - start, format!("{label}:\n\t{{{own}\t}}\n"));
        } else if style.recording.chooses {
            unchosen::check_function(function, body)?;
        }
        out.push('\n');
        edits.apply_to(function.span.text(self.module.text), out)?;
        out.push('\n');
        Ok(())
    }

    /// Redirects branches to separate ends: see [`exits`].
    fn exits(&self, function: &Function<'_>, plan: &Plan, emitter: &mut Emitter, edits: &mut Edits) {
        let Some(body) = &function.body else { return };
        for exit in &plan.exits {
            let branch = &body.statements[exit.branch];
            let Some(target) = branch.instruction().and_then(|branch| branch.operands.last()) else {
                continue;
            };
            let places = plan.places_in(exit);
            let label = emitter.end_of_its_own(|emitter| {
                let comment = |statement: usize| {
                    format!("\t{}\n\t", body.statements[statement].comment().unwrap_or_default())
                };
                for place in places {
                    emitter.text(&comment(place.statement));
                    emitter.text(&mark_text(place.marker, self.options.marks));
                    sequence_of(emitter, place, &plan.loops);
                }
                for place in plan.data_in(exit) {
                    emitter.text(&comment(place.statement));
                    emitter.data_site(place);
                }
                emitter.epilogue();
            });
            let start = function.span.start;
            edits.replace(Span { start: target.span.start - start, end: target.span.end - start }, label);
        }
    }

    /// Inserts an epilogue before each instruction that ends the thread. Redirects calls to traced copies.
    fn ends(&self, function: &Function<'_>, emitter: &mut Emitter, edits: &mut Edits) {
        let Some(body) = &function.body else { return };
        let start = function.span.start;
        for (operand, callee) in led_to_copies(body, &self.callees) {
            let span = Span { start: operand.span.start - start, end: operand.span.end - start };
            edits.replace(span, format!("{callee}{TRACED_SUFFIX}"));
        }
        for statement in &body.statements {
            let StatementKind::Instruction(instruction) = &statement.kind else { continue };
            let ends = match instruction.name() {
                "exit" => true,
                "ret" => function.is_entry(),
                _ => false,
            };
            if !ends {
                continue;
            }
            // Lanes with a false predicate continue after it.
            let mut go_on = None;
            let epilogue = emitter.scoped(statement.depth, |emitter| match instruction.guard {
                None => emitter.epilogue(),
                Some(guard) => go_on = Some(emitter.guarded_epilogue(guard.predicate, guard.negated)),
            });
            edits.insert(statement.span.start - start, format!("\n{epilogue}\t"));
            emitter.recycle(epilogue);
            if let Some(go_on) = go_on {
                edits.insert(statement.span.end - start, format!("\n{go_on}:"));
            }
        }
    }
}
