//! Tells the simulator the structure of functions whose trace points were placed by hand.

use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Ident, Item, Path, Stmt};

use crate::decisions::Noisy;
use crate::insert::{at, call_of, prepend, statement, told};
use crate::loops::{last_loop, returns};

/// Marks the loops of a function, and the function itself if it `is_called`; `noisy` are functions whose calls
/// leave events. Trace points become those of this crate, whose position counts.
pub(crate) fn mark(block: &mut Block, ident: &Ident, device: &Path, noisy: &Noisy, is_called: bool) {
    Structure { device, noisy, is_called, in_loop: false }.visit_block_mut(block);
    if is_called {
        let call = at(ident.span(), quote!(#device::automatic::call()));
        prepend(block, quote!(let _warptrace_call = #call;));
    }
}

struct Structure<'a> {
    device: &'a Path,
    noisy: &'a Noisy,
    is_called: bool,
    in_loop: bool,
}

/// The body of a loop.
fn body(expression: &mut Expr) -> Option<&mut Block> {
    match expression {
        Expr::While(found) => Some(&mut found.body),
        Expr::ForLoop(found) => Some(&mut found.body),
        Expr::Loop(found) => Some(&mut found.body),
        _ => None,
    }
}

impl Structure<'_> {
    /// Whether something in a block leaves an event where it happens; counted iterations do not.
    fn traces(&self, block: &Block) -> bool {
        struct Search<'a>(&'a Noisy, bool);
        impl<'ast> Visit<'ast> for Search<'_> {
            fn visit_ident(&mut self, ident: &'ast Ident) {
                self.1 |=
                    ident == "trace_loc" || ident == "trace_loop" || self.0.contains(&ident.to_string());
            }
        }
        let mut search = Search(self.noisy, false);
        search.visit_block(block);
        search.1
    }
}

impl VisitMut for Structure<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let last = last_loop(&block.stmts).filter(|_| self.is_called && !self.in_loop);
        for (number, mut found) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
            let mut goes_ahead = false;
            if let Stmt::Expr(expression, _) = &mut found
                && let Some(body) = body(expression)
            {
                goes_ahead = last == Some(number) && returns(body) && self.traces(body);
            }
            self.visit_stmt_mut(&mut found);
            block.stmts.push(found);
            if goes_ahead {
                let device = self.device;
                block.stmts.push(statement(quote!(let _warptrace_ahead = #device::automatic::ahead();)));
            }
        }
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let device = self.device;
        if let Some(span) = call_of(expression, self.noisy) {
            visit_mut::visit_expr_mut(self, expression);
            return told(expression, span, device);
        }
        match expression {
            Expr::Closure(_) => return,
            Expr::Call(call) => {
                if let Expr::Path(path) = &mut *call.func
                    && let Some(last) = path.path.segments.last()
                {
                    let span = last.ident.span();
                    let own = match last.ident.to_string().as_str() {
                        "trace_loc" => Some(quote!(#device::automatic::point)),
                        "trace_loop" => Some(quote!(#device::automatic::counted)),
                        _ => None,
                    };
                    if let Some(own) = own {
                        *call.func = Expr::Verbatim(at(span, own).into_token_stream());
                    }
                }
            }
            _ => {
                if let Some(body) = body(expression)
                    && self.traces(body)
                {
                    let close = body.brace_token.span.close();
                    let around = std::mem::replace(&mut self.in_loop, true);
                    visit_mut::visit_expr_mut(self, expression);
                    self.in_loop = around;
                    let guard = at(close, quote!(#device::automatic::body()));
                    if let Some(body) = self::body(expression) {
                        prepend(body, quote!(let _warptrace_body = #guard;));
                    }
                    return;
                }
            }
        }
        visit_mut::visit_expr_mut(self, expression);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}
