//! Resolves the labels of branches and tables by PTX's scope rules.

use std::collections::HashMap;

use super::CfgError;
use crate::body::{Body, Directive, StatementKind};
use crate::span::Span;

/// Branch targets of a body. All values are statement indices.
pub(crate) struct Targets {
    /// For each statement: whether it is a label that a branch or a table names.
    pub(super) is_target: Vec<bool>,
    /// For each `bra`, its label.
    pub(crate) branches: HashMap<usize, usize>,
    /// For each `brx.idx`, its `.branchtargets`.
    pub(super) indexed: HashMap<usize, usize>,
    /// For each `.branchtargets`, its distinct labels in the order of the table.
    pub(super) tables: HashMap<usize, Vec<usize>>,
}

/// Statements of the visible labels by name, innermost last.
struct Visible<'a> {
    by_name: HashMap<&'a str, Vec<usize>>,
    /// The label's statement if the name is unique in the body, otherwise `None`.
    anywhere: HashMap<&'a str, Option<usize>>,
}

impl Visible<'_> {
    /// Finds the label `name` in the innermost scope that has it, otherwise anywhere if the name is unique.
    fn find(&self, name: &str) -> Option<usize> {
        let innermost = self.by_name.get(name).and_then(|statements| statements.last().copied());
        innermost.or_else(|| self.anywhere.get(name).copied().flatten())
    }
}

/// Resolves all branches and tables of `body`, in time linear in its size.
pub(crate) fn resolve(body: &Body<'_>) -> Result<Targets, CfgError> {
    let scopes = labels_by_scope(body);
    let mut visible = Visible { by_name: HashMap::new(), anywhere: HashMap::new() };
    for (name, statement) in scopes.iter().flatten() {
        visible.anywhere.entry(*name).and_modify(|only| *only = None).or_insert(Some(*statement));
    }
    let mut targets = Targets {
        is_target: vec![false; body.statements.len()],
        branches: HashMap::new(),
        indexed: HashMap::new(),
        tables: HashMap::new(),
    };
    // Maps labels of directives to the directive's statement.
    let mut named: HashMap<usize, usize> = HashMap::new();
    let mut table_label = None;
    let mut brx = Vec::new();
    let mut open = vec![0];
    let mut opened = 0;
    show(&mut visible, &scopes[0]);
    for (index, statement) in body.statements.iter().enumerate() {
        match &statement.kind {
            StatementKind::ScopeOpen => {
                opened += 1;
                open.push(opened);
                show(&mut visible, &scopes[opened]);
            }
            StatementKind::ScopeClose => {
                if let Some(scope) = open.pop() {
                    hide(&mut visible, &scopes[scope]);
                }
            }
            StatementKind::Label(label) => table_label = label.names_directive.then_some(index),
            StatementKind::Directive(directive) => {
                if let Some(label) = table_label.take() {
                    named.insert(label, index);
                }
                if let Directive::BranchTargets { labels } = directive {
                    targets.table(&visible, index, labels, statement.span)?;
                }
            }
            StatementKind::Instruction(instruction) => {
                let operand = |at: usize| instruction.operands.get(at).map_or("", |operand| operand.text);
                match instruction.name() {
                    "bra" => {
                        let label = find(&visible, operand(0), statement.span)?;
                        targets.is_target[label] = true;
                        targets.branches.insert(index, label);
                    }
                    "brx" => brx.push((index, operand(1), visible.find(operand(1)))),
                    _ => {}
                }
            }
            StatementKind::Comment(_) | StatementKind::Empty => {}
        }
    }
    for (index, table, label) in brx {
        let directive = label.and_then(|label| named.get(&label)).copied();
        let directive = directive.filter(|directive| targets.tables.contains_key(directive));
        let directive = directive.ok_or_else(|| CfgError::UnknownTable {
            span: body.statements[index].span,
            table: table.to_owned(),
        })?;
        targets.indexed.insert(index, directive);
    }
    Ok(targets)
}

impl Targets {
    /// Returns the statements of the labels that a `brx.idx` selects from, in the order of its table.
    #[cfg(feature = "interpreter")]
    pub(crate) fn table_of(&self, branch: usize, body: &Body<'_>) -> Option<Vec<usize>> {
        let table = self.indexed.get(&branch)?;
        let StatementKind::Directive(Directive::BranchTargets { labels }) = &body.statements[*table].kind
        else {
            return None;
        };
        let named = |name: &&str| {
            let is_it = |label: &&usize| matches!(&body.statements[**label].kind, StatementKind::Label(found) if found.name == *name);
            self.tables.get(table)?.iter().find(is_it).copied()
        };
        labels.iter().map(named).collect()
    }

    fn table(
        &mut self,
        visible: &Visible<'_>,
        index: usize,
        labels: &[&str],
        span: Span,
    ) -> Result<(), CfgError> {
        let mut statements = Vec::with_capacity(labels.len());
        let mut seen = std::collections::HashSet::new();
        for name in labels {
            let label = find(visible, name, span)?;
            self.is_target[label] = true;
            if seen.insert(label) {
                statements.push(label);
            }
        }
        self.tables.insert(index, statements);
        Ok(())
    }
}

fn find(visible: &Visible<'_>, name: &str, span: Span) -> Result<usize, CfgError> {
    visible.find(name).ok_or_else(|| CfgError::UnknownLabel { span, label: name.to_owned() })
}

/// Returns the labels of each scope, in the order in which scopes open. Scope 0 is the body.
fn labels_by_scope<'a>(body: &Body<'a>) -> Vec<Vec<(&'a str, usize)>> {
    let mut scopes = vec![Vec::new()];
    let mut open = vec![0];
    for (index, statement) in body.statements.iter().enumerate() {
        match &statement.kind {
            StatementKind::ScopeOpen => {
                open.push(scopes.len());
                scopes.push(Vec::new());
            }
            StatementKind::ScopeClose => {
                open.pop();
            }
            StatementKind::Label(label) => {
                if let Some(scope) = open.last() {
                    scopes[*scope].push((label.name, index));
                }
            }
            _ => {}
        }
    }
    scopes
}

fn show<'a>(visible: &mut Visible<'a>, labels: &[(&'a str, usize)]) {
    for (name, statement) in labels {
        visible.by_name.entry(*name).or_default().push(*statement);
    }
}

fn hide<'a>(visible: &mut Visible<'a>, labels: &[(&'a str, usize)]) {
    for (name, _) in labels {
        if let Some(statements) = visible.by_name.get_mut(name) {
            statements.pop();
        }
    }
}
