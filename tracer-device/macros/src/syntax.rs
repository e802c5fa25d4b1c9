//! Pieces of syntax, taken apart and put together.

use std::collections::HashSet;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::quote;
use syn::visit::Visit;
use syn::{
    Attribute, Block, Expr, ExprBlock, ExprCall, ExprField, ExprTuple, Ident, Index, Member, PatIdent, Path,
    Stmt, token,
};

use crate::decisions::{Noisy, attributes};

/// Gives all tokens one span.
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

/// Names of the variables that a function's patterns bind.
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

/// The last name of a path.
pub(crate) fn last_name(path: &Expr) -> Option<&Ident> {
    match path {
        Expr::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// Where a function in `noisy` is called, if that is what an expression does.
pub(crate) fn call_of(expression: &Expr, noisy: &Noisy) -> Option<Span> {
    let name = match expression {
        Expr::Call(call) => last_name(&call.func)?,
        Expr::MethodCall(call) => &call.method,
        _ => return None,
    };
    noisy.contains(&name.to_string()).then(|| name.span())
}

/// Lets the simulator know where a call stands: `calls(function)(arguments)`, or
/// `(calls(()), call of a method).1`. Any operator may follow, and what the call borrows from lives as long
/// as without it.
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

/// A block as an expression; written such that it gets parentheses where it must have them.
pub(crate) fn braced(attrs: Vec<Attribute>, stmts: Vec<Stmt>) -> Expr {
    Expr::Block(ExprBlock {
        attrs,
        label: None,
        block: Block { brace_token: token::Brace::default(), stmts },
    })
}

/// The attributes that say whether code is there.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

/// A statement that is there where these attributes say so.
pub(crate) fn under(conditions: Vec<Attribute>, tokens: TokenStream) -> Stmt {
    if conditions.is_empty() {
        return statement(tokens);
    }
    Stmt::Expr(braced(conditions, vec![statement(tokens)]), None)
}

/// What stands for an expression while it is taken apart.
pub(crate) fn nothing() -> Expr {
    Expr::Verbatim(TokenStream::new())
}

/// Puts statements before those of a block.
pub(crate) fn prepend(block: &mut Block, tokens: TokenStream) {
    block.stmts.insert(0, statement(tokens));
}

/// Tokens that stand where a statement does.
pub(crate) fn statement(tokens: TokenStream) -> Stmt {
    Stmt::Expr(Expr::Verbatim(tokens), None)
}
