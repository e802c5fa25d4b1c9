//! Analysis of loops.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprBreak, Label, Stmt};

use crate::decisions::{self, Noisy, Traced, in_expression};
use crate::text::source;

/// A loop with every iteration traced.
pub(crate) struct Loop {
    /// Name of its location, such as `while x < 3`.
    pub(crate) name: String,
    pub(crate) is_plain: bool,
    /// Whether it can end by its condition or by `break`, so that its end is a location.
    pub(crate) has_end: bool,
    pub(crate) has_value: bool,
    pub(crate) open: Span,
    pub(crate) close: Span,
}

impl Loop {
    /// Analyzes a loop expression. Returns `None` for other expressions.
    pub(crate) fn new(expression: &Expr, noisy: &Noisy) -> Option<Self> {
        let (name, is_plain, breaks, body) = match expression {
            Expr::While(found) => {
                let is_plain = is_plain(&found.body, noisy) && !in_expression(&found.cond, noisy);
                (format!("while {}", source(&found.cond)), is_plain, None, &found.body)
            }
            Expr::ForLoop(found) => {
                let name = format!("for {} in {}", source(&found.pat), source(&found.expr));
                (name, is_plain(&found.body, noisy), None, &found.body)
            }
            Expr::Loop(found) => {
                let is_plain = is_plain_loop(found.label.as_ref(), &found.body, noisy);
                let breaks = Breaks::new(found.label.as_ref(), &found.body);
                ("loop".to_owned(), is_plain, Some(breaks), &found.body)
            }
            _ => return None,
        };
        let has_end = breaks.is_none_or(|breaks| breaks.count != 0);
        let has_value = breaks.is_some_and(|breaks| breaks.has_value);
        let span = body.brace_token.span;
        Some(Self { name, is_plain, has_end, has_value, open: span.open(), close: span.close() })
    }
}

/// The `break` expressions that leave a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Breaks {
    pub(crate) count: usize,
    pub(crate) has_value: bool,
}

impl Breaks {
    /// Finds the breaks in `body` that end the loop with this label.
    pub(crate) fn new(label: Option<&Label>, body: &Block) -> Self {
        let mut search = Search { label, depth: 0, breaks: Self::default() };
        search.visit_block(body);
        search.breaks
    }
}

struct Search<'a> {
    label: Option<&'a Label>,
    /// Nesting depth inside the searched loop.
    depth: usize,
    breaks: Breaks,
}

impl Search<'_> {
    fn ends_loop(&self, found: &ExprBreak) -> bool {
        match &found.label {
            Some(label) => self.label.is_some_and(|own| own.name.ident == label.ident),
            None => self.depth == 0,
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Closure(_) | Expr::Async(_) | Expr::Const(_) => {}
            Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_) => {
                self.depth += 1;
                visit::visit_expr(self, expression);
                self.depth -= 1;
            }
            Expr::Break(found) => {
                if self.ends_loop(found) {
                    self.breaks.count += 1;
                    self.breaks.has_value |= found.expr.is_some();
                }
                visit::visit_expr(self, expression);
            }
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

pub(crate) fn body(expression: &mut Expr) -> Option<&mut Block> {
    match expression {
        Expr::While(found) => Some(&mut found.body),
        Expr::ForLoop(found) => Some(&mut found.body),
        Expr::Loop(found) => Some(&mut found.body),
        _ => None,
    }
}

/// Like [`decisions::in_statements`], with every decision traced.
fn in_statements(statements: &[Stmt], noisy: &Noisy) -> bool {
    decisions::in_statements(statements, noisy, Traced::Decisions)
}

/// Returns true if the iterations of `while` or `for` can be counted: nothing in the body records an event.
/// (A bare `break` would be a second exit, but it always follows a decision.)
fn is_plain(body: &Block, noisy: &Noisy) -> bool {
    !in_statements(&body.stmts, noisy)
}

/// Returns true if the iterations of `loop` can be counted: its only `break` is in an `if` of the body
/// without decisions, and nothing else records an event.
fn is_plain_loop(label: Option<&Label>, body: &Block, noisy: &Noisy) -> bool {
    let is_exit = |statement: &Stmt| is_exit(statement, noisy);
    let exits = body.stmts.iter().filter(|statement| is_exit(statement)).count();
    let is_quiet =
        |statement: &Stmt| is_exit(statement) || !in_statements(std::slice::from_ref(statement), noisy);
    exits == 1 && Breaks::new(label, body).count == 1 && body.stmts.iter().all(is_quiet)
}

/// Returns the last statement with a loop, if it is itself a loop. On GPUs, lanes that leave such a loop at
/// its end do not wait for lanes that may still return from inside it: all reconverge at the function's end.
/// If another loop follows or encloses it, they do wait.
pub(crate) fn last_loop(statements: &[Stmt]) -> Option<usize> {
    let has_loop = |statement: &Stmt| {
        let mut search = ExpressionSearch { wanted: is_loop, enters_functions: true, found: false };
        search.visit_stmt(statement);
        search.found
    };
    let last = statements.iter().rposition(has_loop)?;
    matches!(&statements[last], Stmt::Expr(expression, _) if is_loop(expression)).then_some(last)
}

fn is_loop(expression: &Expr) -> bool {
    matches!(expression, Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_))
}

/// Search for an expression, optionally including closures and nested functions.
struct ExpressionSearch<F> {
    wanted: F,
    enters_functions: bool,
    found: bool,
}

impl<'ast, F: Fn(&Expr) -> bool> Visit<'ast> for ExpressionSearch<F> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        let is_function = matches!(expression, Expr::Closure(_) | Expr::Async(_) | Expr::Const(_));
        if !is_function || self.enters_functions {
            self.found |= (self.wanted)(expression);
            visit::visit_expr(self, expression);
        }
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if self.enters_functions {
            visit::visit_item(self, item);
        }
    }
}

/// Returns true if a `return` or `?` in a loop's body leaves the function.
pub(crate) fn returns(body: &Block) -> bool {
    let is_return = |expression: &Expr| matches!(expression, Expr::Return(_) | Expr::Try(_));
    let mut search = ExpressionSearch { wanted: is_return, enters_functions: false, found: false };
    search.visit_block(body);
    search.found
}

/// Returns true if a statement is `if condition { ...; break }` without other decisions.
fn is_exit(statement: &Stmt, noisy: &Noisy) -> bool {
    let Stmt::Expr(Expr::If(branch), _) = statement else { return false };
    let Some((last, before)) = branch.then_branch.stmts.split_last() else { return false };
    let Stmt::Expr(Expr::Break(exit), _) = last else { return false };
    branch.else_branch.is_none()
        && !in_expression(&branch.cond, noisy)
        && !in_statements(before, noisy)
        && !exit.expr.as_ref().is_some_and(|value| in_expression(value, noisy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> syn::ExprLoop {
        syn::parse_str(text).unwrap()
    }

    fn counted(text: &str) -> bool {
        let found = parsed(text);
        is_plain_loop(found.label.as_ref(), &found.body, &Noisy::from(["walk".to_owned()]))
    }

    #[test]
    fn loops_with_one_way_out_and_no_decision_are_counted() {
        assert!(counted("loop { x += 1; if x > y || z { break; } }"));
        assert!(counted("loop { x += 1; if x > y { z = 1; break z } w(); }"));
        assert!(counted("'a: loop { if x { break 'a } }"));
        for text in [
            "loop { x += 1; }",
            "loop { if x { break } if y { break } }",
            "loop { if x { break } else { y() } }",
            "loop { if x { if y { break } } }",
            "loop { if x { walk(); break } }",
            "loop { if walk() { break } }",
            "loop { if x { break 'outer } }",
            "loop { if x { return } }",
            "loop { if x { break } match y { 0 => 1, _ => 2 }; }",
        ] {
            assert!(!counted(text), "{text}");
        }
    }

    #[test]
    fn breaks_are_those_of_the_loop_itself() {
        let breaks = |text: &str| {
            let found = parsed(text);
            let Breaks { count, has_value } = Breaks::new(found.label.as_ref(), &found.body);
            (count, has_value)
        };
        assert_eq!(breaks("loop { while x { break } }"), (0, false));
        assert_eq!(breaks("'a: loop { while x { break 'a } break }"), (2, false));
        assert_eq!(breaks("loop { if x { break 3 } (|| loop { break })(); }"), (1, true));
    }
}
