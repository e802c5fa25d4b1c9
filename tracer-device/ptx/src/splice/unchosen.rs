//! The kernel's own instructions inside of a traced kernel, for warps that were not chosen to record.
//!
//! They stand in a scope, which has registers and labels of its own. Variables that lanes share are those of
//! the traced part: a block whose warps were not all chosen has them once.

use super::marks::mark;
use super::plan::Plan;
use super::{SpliceError, Splicer};
use crate::declaration::Space;
use crate::{Body, Directive, Edits, Function, Span, StatementKind};

impl Splicer<'_> {
    /// What stands between the braces of a kernel, to be put into a scope of its traced copy.
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
                // The traced part declares it, around this scope.
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

/// Refuses a function that records and has variables that its lanes share: warps that were not chosen call
/// the function that it was made of, whose variables are others.
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
