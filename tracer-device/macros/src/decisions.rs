//! Definition of decisions, and the search for code with decisions.

use std::collections::HashSet;

use syn::visit::{self, Visit};
use syn::{AngleBracketedGenericArguments, Attribute, Expr, ExprRepeat, Item, Local, Macro, Pat, Stmt, Type};

use crate::syntax::call_of;

/// Names of functions whose calls record events.
pub(crate) type Noisy = HashSet<String>;

pub(crate) fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

pub(crate) fn is_trace(call: &Macro) -> bool {
    call.path.is_ident("trace")
}

pub(crate) fn is_trace_loop(call: &Macro) -> bool {
    call.path.is_ident("trace_loop")
}

/// The code that records events, in addition to calls of functions that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traced {
    /// Every decision.
    Decisions,
    /// `trace!` and `trace_loop!`.
    Marks,
    Nothing,
}

/// Returns true if statements may record an event: they hold something `traced` or call a `noisy` function.
pub(crate) fn in_statements(statements: &[Stmt], noisy: &Noisy, traced: Traced) -> bool {
    let mut search = Search { noisy, traced, found: false };
    statements.iter().for_each(|statement| search.visit_stmt(statement));
    search.found
}

/// Like [`in_statements`], for an expression with every decision traced.
pub(crate) fn in_expression(expression: &Expr, noisy: &Noisy) -> bool {
    let mut search = Search { noisy, traced: Traced::Decisions, found: false };
    search.visit_expr(expression);
    search.found
}

/// Returns the first `trace!` or `trace_loop!` in an expression, including closures.
pub(crate) fn first_trace(expression: &Expr) -> Option<&Macro> {
    struct First<'a>(Option<&'a Macro>);
    impl<'a> Visit<'a> for First<'a> {
        fn visit_macro(&mut self, call: &'a Macro) {
            if is_trace(call) || is_trace_loop(call) {
                self.0.get_or_insert(call);
            }
        }
    }
    let mut first = First(None);
    first.visit_expr(expression);
    first.0
}

/// Returns the attributes of an expression that `#[untraced]` can exclude.
pub(crate) fn attributes(expression: &mut Expr) -> Option<&mut Vec<Attribute>> {
    Some(match expression {
        Expr::If(found) => &mut found.attrs,
        Expr::Match(found) => &mut found.attrs,
        Expr::While(found) => &mut found.attrs,
        Expr::ForLoop(found) => &mut found.attrs,
        Expr::Loop(found) => &mut found.attrs,
        Expr::Block(found) => &mut found.attrs,
        Expr::Unsafe(found) => &mut found.attrs,
        Expr::Call(found) => &mut found.attrs,
        Expr::MethodCall(found) => &mut found.attrs,
        Expr::Return(found) => &mut found.attrs,
        _ => return None,
    })
}

struct Search<'a> {
    noisy: &'a Noisy,
    traced: Traced,
    found: bool,
}

impl Search<'_> {
    fn is_left_out(expression: &Expr) -> bool {
        attributes(&mut expression.clone()).is_some_and(|attributes| has(attributes, "untraced"))
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        let decides = self.traced == Traced::Decisions;
        if self.found || decides && Self::is_left_out(expression) {
            return;
        }
        self.found = match expression {
            Expr::If(_)
            | Expr::While(_)
            | Expr::ForLoop(_)
            | Expr::Loop(_)
            | Expr::Return(_)
            | Expr::Try(_) => decides,
            Expr::Match(found) => decides && found.arms.len() > 1,
            Expr::Call(_) | Expr::MethodCall(_) => call_of(expression, self.noisy).is_some(),
            Expr::Closure(_) | Expr::Async(_) | Expr::Const(_) => return,
            _ => false,
        };
        if !self.found {
            visit::visit_expr(self, expression);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let diverges = local.init.as_ref().is_some_and(|init| init.diverge.is_some());
        self.found |= self.traced == Traced::Decisions && diverges;
        visit::visit_local(self, local);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.found |= self.traced != Traced::Nothing && is_trace(call);
        self.found |= self.traced == Traced::Marks && is_trace_loop(call);
    }

    fn visit_item(&mut self, _: &'ast Item) {}

    // The compiler evaluates code in types and patterns, so it holds no decision of a lane.
    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast AngleBracketedGenericArguments) {}

    fn visit_expr_repeat(&mut self, found: &'ast ExprRepeat) {
        self.visit_expr(&found.expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decides(text: &str) -> bool {
        let block: syn::Block = syn::parse_str(&format!("{{ {text} }}")).unwrap();
        in_statements(&block.stmts, &Noisy::from(["walk".to_owned()]), Traced::Decisions)
    }

    #[test]
    fn decisions_are_told_from_plain_code() {
        for text in [
            "if x {}",
            "let y = if x { 1 } else { 2 };",
            "match x { 0 => 1, _ => 2 };",
            "while x {}",
            "return;",
            "f(g()?);",
            "let Some(x) = y else { panic!() };",
            "trace!(\"here\");",
            "walk(1);",
            "self::walk(1);",
            "a.b().walk();",
            "unsafe { x[if y { 1 } else { 2 }] };",
        ] {
            assert!(decides(text), "{text}");
        }
        for text in [
            "x += a && b || c;",
            "match x { (a, b) => a };",
            "let f = |x| if x { 1 } else { 2 };",
            "assert!(if x { true } else { false });",
            "fn inner() { return }",
            "let x: [u32; if y { 1 } else { 2 }] = [z; if y { 1 } else { 2 }];",
            "x::<{ if y { 1 } else { 2 } }>(1);",
            "#[untraced] for x in y { if z {} }",
            "walks(1);",
        ] {
            assert!(!decides(text), "{text}");
        }
    }

    #[test]
    fn a_trace_in_a_closure_is_found() {
        let closure: Expr = syn::parse_str("|x| { trace!(\"here\"); x }").unwrap();
        assert!(first_trace(&closure).is_some());
    }
}
