//! The original instructions within a traced kernel, for warps that are not chosen to record. They are in a
//! scope with separate registers and labels. Variables that lanes share are declared by the traced part only,
//! so that a block with chosen and other warps has one instance of each.

use super::marks::mark;
use super::plan::Plan;
use super::{SpliceError, Splicer};
use crate::declaration::Space;
use crate::{Body, Directive, Edits, Function, Span, StatementKind};

impl Splicer<'_> {
    /// Returns the body of a kernel for a scope of its traced copy.
    pub(super) fn own_body(
        &self,
        function: &Function<'_>,
        body: &Body<'_>,
        plan: &Plan,
    ) -> Result<String, SpliceError> {
        let first = body.open + 1;
        let mut edits = Edits::new();
        for statement in &body.statements {
            let StatementKind::Directive(Directive::Variable(declaration)) = &statement.kind else {
                continue;
            };
            if matches!(declaration.space, Space::Param) {
                continue;
            }
            if statement.depth == 0 {
                // The traced part declares it, outside this scope.
                edits.replace(Span::new(statement.span.start - first, statement.span.end - first), "");
            } else if declaration.space != Space::Local {
                return Err(twice(function, declaration.names.first().map(|declared| declared.name)));
            }
        }
        mark(&mut edits, body, first, plan, self.options.marks);
        if plan.falls_off_its_end && self.options.marks == 0 {
            edits.insert(body.close - first, "\n\tret;\n");
        }
        Ok(edits.apply(&self.module.text[first..body.close])?)
    }
}

/// Rejects a recording function that declares variables shared by its lanes. Warps that are not chosen call
/// the original function, which has other instances of these variables.
pub(super) fn check_function(function: &Function<'_>, body: &Body<'_>) -> Result<(), SpliceError> {
    let shared = body.statements.iter().find_map(|statement| match &statement.kind {
        StatementKind::Directive(Directive::Variable(declaration))
            if !matches!(declaration.space, Space::Param | Space::Local) =>
        {
            Some(declaration)
        }
        _ => None,
    });
    match shared {
        None => Ok(()),
        Some(declaration) => Err(twice(function, declaration.names.first().map(|declared| declared.name))),
    }
}

fn twice(function: &Function<'_>, variable: Option<&str>) -> SpliceError {
    let variable = variable.unwrap_or_default().to_owned();
    SpliceError::Shared { function: function.name.to_owned(), variable }
}
