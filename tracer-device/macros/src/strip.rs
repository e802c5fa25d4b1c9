//! Removal of marks from functions.

use std::collections::HashSet;

use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Item, Pat, Stmt};

use crate::decisions::{is_trace, is_trace_loop};
use crate::syntax::last_name;

/// Removes `trace!`, `trace_loop!` and all uses of the latter's value from a function.
pub(crate) fn strip(block: &mut Block) {
    Strip { loops: HashSet::new() }.visit_block_mut(block);
}

struct Strip {
    /// Names of the variables that hold a `LoopTrace`.
    loops: HashSet<String>,
}

impl Strip {
    fn traces(&mut self, statement: &Stmt) -> bool {
        match statement {
            Stmt::Macro(call) => is_trace(&call.mac),
            Stmt::Expr(Expr::Call(call), _) => {
                last_name(&call.func).is_some_and(|name| name == "drop")
                    && call.args.first().is_some_and(|argument| self.is_loop(argument))
            }
            Stmt::Expr(Expr::MethodCall(call), _) => self.is_loop(&call.receiver),
            Stmt::Local(local) => match (&local.pat, &local.init) {
                (Pat::Ident(variable), Some(init)) => match &*init.expr {
                    Expr::Macro(call) if is_trace_loop(&call.mac) => {
                        self.loops.insert(variable.ident.to_string());
                        true
                    }
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        }
    }

    fn is_loop(&self, expression: &Expr) -> bool {
        last_name(expression).is_some_and(|name| self.loops.contains(&name.to_string()))
    }
}

impl VisitMut for Strip {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let before = self.loops.clone();
        block.stmts.retain(|statement| !self.traces(statement));
        visit_mut::visit_block_mut(self, block);
        self.loops = before;
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    fn stripped(text: &str) -> String {
        let mut block: Block = syn::parse_str(&format!("{{ {text} }}")).unwrap();
        strip(&mut block);
        block.to_token_stream().to_string()
    }

    fn plain(text: &str) -> String {
        let block: Block = syn::parse_str(&format!("{{ {text} }}")).unwrap();
        block.to_token_stream().to_string()
    }

    #[test]
    fn what_traces_is_gone_and_nothing_else() {
        let text = "let mut rounds = trace_loop!(\"ROUND\"); let a = 1;
            unsafe { while a < 2 { rounds.tick(); rounds.ticks::<8>(); a += walk.tick(); } }
            drop(rounds); drop(a); if a == 1 { trace!(\"ONE\"); } else { trace!(\"TWO\" = 7); pass(at::TWO) }";
        let expected = "let a = 1; unsafe { while a < 2 { a += walk.tick(); } }
            drop(a); if a == 1 { } else { pass(at::TWO) }";
        assert_eq!(stripped(text), plain(expected));
    }

    #[test]
    fn names_of_loops_end_with_their_block() {
        let text = "{ let mut rounds = trace_loop!(\"ROUND\"); rounds.tick(); } rounds.tick();";
        assert_eq!(stripped(text), plain("{ } rounds.tick();"));
    }
}
