//! Helpers to take syntax apart and to build it.

use std::collections::HashSet;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::quote;
use syn::visit::Visit;
use syn::{
    Attribute, Block, Expr, ExprBlock, ExprCall, ExprField, ExprTuple, Ident, Index, Member, PatIdent, Path,
    Stmt, token,
};

use crate::decisions::{Noisy, attributes};

pub(crate) fn at(span: Span, tokens: TokenStream) -> TokenStream {
    let respan = |token| match token {
        TokenTree::Group(group) => {
            let mut moved = Group::new(group.delimiter(), at(span, group.stream()));
            moved.set_span(span);
            TokenTree::Group(moved)
        }
        mut other => {
            other.set_span(span);
            other
        }
    };
    tokens.into_iter().map(respan).collect()
}

pub(crate) fn variables(block: &Block) -> HashSet<String> {
    struct Names(HashSet<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, found: &'ast PatIdent) {
            self.0.insert(found.ident.to_string());
        }
    }
    let mut names = Names(HashSet::new());
    names.visit_block(block);
    names.0
}

pub(crate) fn last_name(path: &Expr) -> Option<&Ident> {
    match path {
        Expr::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// Returns the position of the callee's name, if an expression calls a function in `noisy`.
pub(crate) fn call_of(expression: &Expr, noisy: &Noisy) -> Option<Span> {
    let name = match expression {
        Expr::Call(call) => last_name(&call.func)?,
        Expr::MethodCall(call) => &call.method,
        _ => return None,
    };
    noisy.contains(&name.to_string()).then(|| name.span())
}

/// Notifies the simulator of a call's position: `calls(function)(arguments)`, or `(calls(()), method
/// call).1`. Any operator may follow. The lifetimes of temporaries in the call do not change.
pub(crate) fn told(call: &mut Expr, span: Span, device: &Path) {
    let here = |callee: Expr| {
        Expr::Call(ExprCall {
            attrs: Vec::new(),
            func: Box::new(Expr::Verbatim(at(span, quote!(#device::trace::calls)))),
            paren_token: token::Paren(span),
            args: std::iter::once(callee).collect(),
        })
    };
    if let Expr::Call(call) = call {
        let callee = std::mem::replace(&mut *call.func, nothing());
        *call.func = here(callee);
        return;
    }
    let attrs = attributes(call).map(std::mem::take).unwrap_or_default();
    let told = std::mem::replace(call, nothing());
    let elems = [here(Expr::Verbatim(quote!(()))), told].into_iter().collect();
    let pair = ExprTuple { attrs: Vec::new(), paren_token: token::Paren(span), elems };
    *call = Expr::Field(ExprField {
        attrs,
        base: Box::new(Expr::Tuple(pair)),
        dot_token: token::Dot(span),
        member: Member::Unnamed(Index { index: 1, span }),
    });
}

/// Builds a block expression. It gets parentheses where the syntax requires them.
pub(crate) fn braced(attrs: Vec<Attribute>, stmts: Vec<Stmt>) -> Expr {
    Expr::Block(ExprBlock {
        attrs,
        label: None,
        block: Block { brace_token: token::Brace::default(), stmts },
    })
}

/// Returns the `cfg` attributes, which control conditional compilation.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

pub(crate) fn under(conditions: Vec<Attribute>, tokens: TokenStream) -> Stmt {
    if conditions.is_empty() {
        return statement(tokens);
    }
    Stmt::Expr(braced(conditions, vec![statement(tokens)]), None)
}

/// Returns a placeholder for an expression that is being rewritten.
pub(crate) fn nothing() -> Expr {
    Expr::Verbatim(TokenStream::new())
}

pub(crate) fn prepend(block: &mut Block, tokens: TokenStream) {
    block.stmts.insert(0, statement(tokens));
}

pub(crate) fn statement(tokens: TokenStream) -> Stmt {
    Stmt::Expr(Expr::Verbatim(tokens), None)
}
