//! Selects which parts of a function get which calls.

use quote::quote;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{AngleBracketedGenericArguments, Attribute, Block, Expr, ExprRepeat, Item, Pat, Stmt, Type, token};

use super::Insert;
use crate::decisions::{attributes, first_trace, has, is_trace, is_trace_loop};
use crate::loops::last_loop;
use crate::syntax::{braced, call_of, conditions, nothing, statement, told, under};
use crate::table::Kind;
use crate::text::{end, source};

impl VisitMut for Insert<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        if let Some(attributes) = attributes(expression)
            && has(attributes, "untraced")
        {
            attributes.retain(|attribute| !attribute.path().is_ident("untraced"));
            if !self.only_marked {
                return;
            }
        }
        match expression {
            Expr::If(_) | Expr::Match(_) | Expr::Return(_) | Expr::Try(_) if !self.traces_decisions() => {
                visit_mut::visit_expr_mut(self, expression);
            }
            Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_) if self.only_waits => {
                visit_mut::visit_expr_mut(self, expression);
            }
            Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_) if self.only_marked => self.joined(expression),
            Expr::If(found) => {
                let rejoin = end(found);
                self.if_else(found, rejoin);
            }
            Expr::Match(found) => self.arms(found),
            Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_) => self.looped(expression, false),
            Expr::Return(found) => {
                let span = found.return_token.span;
                let is_implied = self.implied == Some(span.start());
                let text = source(found);
                if let Some(value) = &mut found.expr {
                    self.visit_expr_mut(value);
                }
                if !is_implied {
                    let id = self.add(Kind::Return, &text, span, self.end);
                    let point = statement(self.point(id, span));
                    let attributes = std::mem::take(&mut found.attrs);
                    let leaves = std::mem::replace(expression, nothing());
                    *expression =
                        braced(attributes, vec![point, Stmt::Expr(leaves, Some(token::Semi(span)))]);
                }
            }
            Expr::Try(found) => self.question(found),
            Expr::Call(_) if self.is_wait(expression) => self.waiting(expression),
            Expr::Call(_) | Expr::MethodCall(_) => {
                let span = call_of(expression, self.noisy);
                let span = span.filter(|_| !self.only_waits && !self.calls_variable(expression));
                visit_mut::visit_expr_mut(self, expression);
                if let Some(span) = span {
                    told(expression, span, self.device);
                }
            }
            Expr::Macro(found) if is_trace(&found.mac) => {
                let point = statement(self.marked(&found.mac));
                *expression = braced(Vec::new(), vec![point]);
            }
            Expr::Macro(found) if is_trace_loop(&found.mac) => {
                *expression = Expr::Verbatim(self.marked_loop(&found.mac));
            }
            Expr::Closure(_) | Expr::Async(_) | Expr::Const(_) => {
                if let Some(call) = first_trace(expression) {
                    self.errors.push(syn::Error::new(
                        call.path.span(),
                        "trace points cannot stand in a closure, which is not looked into: trace the function that \
                         calls it, or write a loop",
                    ));
                }
            }
            _ => visit_mut::visit_expr_mut(self, expression),
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let last = last_loop(&block.stmts).filter(|_| self.is_called && !self.in_loop);
        for (number, mut found) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
            match &mut found {
                Stmt::Macro(call) if is_trace(&call.mac) => {
                    let tokens = self.marked(&call.mac);
                    block.stmts.push(under(conditions(&call.attrs), tokens));
                }
                Stmt::Local(local) if self.traces_decisions() => {
                    let next = self.let_else(local);
                    block.stmts.push(found);
                    block.stmts.extend(next);
                }
                Stmt::Expr(expression @ (Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_)), _)
                    if !self.only_waits =>
                {
                    let attributes: &[Attribute] = attributes(expression).map_or(&[], |found| found);
                    if self.only_marked {
                        let goes_ahead = last == Some(number) && self.goes_ahead(expression);
                        self.visit_expr_mut(expression);
                        block.stmts.push(found);
                        if goes_ahead {
                            let device = self.device;
                            block
                                .stmts
                                .push(statement(quote!(let _warptrace_ahead = #device::trace::ahead();)));
                        }
                        continue;
                    }
                    if has(attributes, "untraced") {
                        self.visit_expr_mut(expression);
                    } else {
                        let is_last = last == Some(number) && conditions(attributes).is_empty();
                        self.looped(expression, is_last);
                    }
                    block.stmts.push(found);
                }
                _ => {
                    self.visit_stmt_mut(&mut found);
                    block.stmts.push(found);
                }
            }
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}

    // The compiler evaluates code in types and patterns, so it holds no decision of a lane.
    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_pat_mut(&mut self, _: &mut Pat) {}

    fn visit_angle_bracketed_generic_arguments_mut(&mut self, _: &mut AngleBracketedGenericArguments) {}

    fn visit_expr_repeat_mut(&mut self, found: &mut ExprRepeat) {
        self.visit_expr_mut(&mut found.expr);
    }
}
