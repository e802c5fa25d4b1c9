//! Puts trace points into functions.

use std::collections::{BTreeMap, HashSet};

use proc_macro2::{Group, Ident, LineColumn, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{
    AngleBracketedGenericArguments, Attribute, Block, Expr, ExprBlock, ExprCall, ExprField, ExprIf,
    ExprMatch, ExprRepeat, ExprTry, ExprTuple, Index, Item, Local, Macro, Member, Pat, PatIdent, Path, Stmt,
    Type, parse_quote, token,
};

use crate::decisions::{Noisy, attributes, first_trace, has, is_trace};
use crate::loops::{Breaks, is_plain, is_plain_loop, last_loop, returns};
use crate::mark::Mark;
use crate::table::{Kind, Location, Table};
use crate::text::{end, source};

/// Walks through a function and puts a trace point at each decision.
pub(crate) struct Insert<'a> {
    pub(crate) device: &'a Path,
    pub(crate) noisy: &'a Noisy,
    pub(crate) table: &'a mut Table,
    pub(crate) errors: &'a mut Vec<syn::Error>,
    /// The function's name.
    function: String,
    /// Id of the location that the visited code lies in; 0 before the function's entry.
    parent: u16,
    /// Where the function ends.
    end: LineColumn,
    /// Whether the function is no kernel.
    is_called: bool,
    /// Whether the visited code lies in a loop.
    in_loop: bool,
    /// A `return` at this position needs no event: it comes first in a branch.
    implied: Option<LineColumn>,
    /// Names of the function's variables, which may be those of functions, too.
    variables: HashSet<String>,
    /// Function, name and line of each trace point that was named by hand.
    marks: BTreeMap<(String, String), usize>,
}

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

impl<'a> Insert<'a> {
    pub(crate) fn new(
        device: &'a Path,
        noisy: &'a Noisy,
        table: &'a mut Table,
        errors: &'a mut Vec<syn::Error>,
    ) -> Self {
        let end = Span::call_site().end();
        Self {
            device,
            noisy,
            table,
            errors,
            function: String::new(),
            parent: 0,
            end,
            is_called: false,
            in_loop: false,
            implied: None,
            variables: HashSet::new(),
            marks: BTreeMap::new(),
        }
    }

    /// Traces a function. `is_called`: it is no kernel.
    pub(crate) fn function(&mut self, name: &str, ident: &Ident, block: &mut Block, is_called: bool) {
        (self.function, self.parent, self.end) = (name.to_owned(), 0, end(block));
        (self.implied, self.is_called, self.in_loop) = (None, is_called, false);
        self.variables = variables(block);
        let entry = self.add(Kind::Entry, "", ident.span(), self.end);
        let mut first = self.point(entry, ident.span());
        if is_called {
            let device = self.device;
            let call = at(ident.span(), quote!(#device::automatic::call()));
            first = quote!(let _warptrace_call = #call; #first);
        }
        self.inside(entry, |insert| insert.visit_block_mut(block));
        prepend(block, first);
    }

    /// Whether what is called is a variable.
    fn calls_variable(&self, call: &Expr) -> bool {
        match call {
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => {
                    path.path.get_ident().is_some_and(|name| self.variables.contains(&name.to_string()))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Adds a location and answers its id; `what` follows the function's name in its own.
    fn add(&mut self, kind: Kind, what: &str, span: Span, rejoin: LineColumn) -> u16 {
        let function = self.function.clone();
        let name = if what.is_empty() { function.clone() } else { format!("{function}: {what}") };
        self.table.add(Location { kind, name, function, parent: self.parent, at: span.start(), rejoin }, span)
    }

    /// The statement that traces location `id`, as if it stood at `span`.
    fn point(&self, id: u16, span: Span) -> TokenStream {
        let device = self.device;
        at(span, quote!(#device::automatic::point(#device::automatic::Point::<#id>);))
    }

    /// Visits what lies in location `id`.
    fn inside(&mut self, id: u16, visit: impl FnOnce(&mut Self)) {
        let parent = std::mem::replace(&mut self.parent, id);
        visit(self);
        self.parent = parent;
    }

    /// Traces the branch `block`, whose event is that of `id`.
    fn branch(&mut self, id: u16, span: Span, block: &mut Block) {
        if let Some(Stmt::Expr(Expr::Return(first), _)) = block.stmts.first() {
            self.implied = Some(first.return_token.span.start());
        }
        self.inside(id, |insert| insert.visit_block_mut(block));
        prepend(block, self.point(id, span));
    }

    /// Traces both outcomes of `if`, and of each `if` that follows its `else`. They rejoin at `rejoin`.
    fn if_else(&mut self, found: &mut ExprIf, rejoin: LineColumn) {
        let condition = format!("if {}", source(&found.cond));
        self.visit_expr_mut(&mut found.cond);
        let open = found.then_branch.brace_token.span.open();
        let close = found.then_branch.brace_token.span.close();
        let id = self.add(Kind::Then, &condition, open, rejoin);
        self.branch(id, open, &mut found.then_branch);
        let otherwise = format!("else of {condition}");
        match &mut found.else_branch {
            Some((_, next)) => match &mut **next {
                Expr::If(next) => self.if_else(next, rejoin),
                Expr::Block(last) => {
                    let open = last.block.brace_token.span.open();
                    let id = self.add(Kind::Else, &otherwise, open, rejoin);
                    self.branch(id, open, &mut last.block);
                }
                other => self.visit_expr_mut(other),
            },
            None => {
                let id = self.add(Kind::Else, &otherwise, close, rejoin);
                let point = statement(self.point(id, close));
                found.else_branch = Some((parse_quote!(else), Box::new(braced(Vec::new(), vec![point]))));
            }
        }
    }

    /// Traces the arms of `match`, if there is a choice.
    fn arms(&mut self, found: &mut ExprMatch) {
        let (subject, rejoin) = (source(&found.expr), end(found));
        self.visit_expr_mut(&mut found.expr);
        let has_choice = found.arms.len() > 1;
        for arm in &mut found.arms {
            if let Some((_, guard)) = &mut arm.guard {
                self.visit_expr_mut(guard);
            }
            if !has_choice {
                self.visit_expr_mut(&mut arm.body);
                continue;
            }
            let span = arm.fat_arrow_token.span();
            let span = arm.fat_arrow_token.spans.first().copied().unwrap_or(span);
            let guard =
                arm.guard.as_ref().map_or(String::new(), |(_, guard)| format!(" if {}", source(guard)));
            let name = format!("match {subject}: {}{guard}", source(&arm.pat));
            let id = self.add(Kind::Arm, &name, span, rejoin);
            match &mut *arm.body {
                Expr::Block(body) if body.label.is_none() => self.branch(id, span, &mut body.block),
                body => {
                    if let Expr::Return(first) = body {
                        self.implied = Some(first.return_token.span.start());
                    }
                    self.inside(id, |insert| insert.visit_expr_mut(body));
                    let point = statement(self.point(id, span));
                    let inner = std::mem::replace(body, nothing());
                    *body = braced(Vec::new(), vec![point, Stmt::Expr(inner, None)]);
                }
            }
        }
    }

    /// Traces the iterations of a loop and its end. Of a loop that `is_last` in its function the block around it sees
    /// what follows it, so that lanes that have left it may go ahead of those that may yet return from in it.
    fn looped(&mut self, expression: &mut Expr, is_last: bool) {
        let (name, plain, has_end, has_value, open, close) = match &*expression {
            Expr::While(found) => {
                let plain = is_plain(&found.body, self.noisy)
                    && !crate::decisions::in_expression(&found.cond, self.noisy);
                let span = found.body.brace_token.span;
                (format!("while {}", source(&found.cond)), plain, true, false, span.open(), span.close())
            }
            Expr::ForLoop(found) => {
                let name = format!("for {} in {}", source(&found.pat), source(&found.expr));
                let span = found.body.brace_token.span;
                (name, is_plain(&found.body, self.noisy), true, false, span.open(), span.close())
            }
            Expr::Loop(found) => {
                let plain = is_plain_loop(found.label.as_ref(), &found.body, self.noisy);
                let breaks = Breaks::of(found.label.as_ref(), &found.body);
                let span = found.body.brace_token.span;
                ("loop".to_owned(), plain, breaks.count != 0, breaks.has_value, span.open(), span.close())
            }
            _ => return,
        };
        if let Expr::ForLoop(found) = expression {
            // Once, before the loop.
            self.visit_expr_mut(&mut found.expr);
        }
        let id = self.add(Kind::LoopBody, &name, open, close.end());
        if let Expr::While(found) = expression {
            self.inside(id, |insert| insert.visit_expr_mut(&mut found.cond));
        }
        let body = match expression {
            Expr::While(found) => &mut found.body,
            Expr::ForLoop(found) => &mut found.body,
            Expr::Loop(found) => &mut found.body,
            _ => return,
        };
        let device = self.device;
        let goes_ahead = is_last && has_end && !has_value && returns(body);
        let counter = format_ident!("_warptrace_loop_{id}", span = open);
        let (before, after) = if plain {
            prepend(body, at(open, quote!(#counter.tick();)));
            let opened = at(open, quote!(#device::automatic::counted(#device::automatic::Point::<#id>)));
            (quote!(let mut #counter = #opened;), quote!(::core::mem::drop(#counter);))
        } else {
            let around = std::mem::replace(&mut self.in_loop, true);
            self.inside(id, |insert| insert.visit_block_mut(body));
            self.in_loop = around;
            let point = self.point(id, open);
            let guard = at(close, quote!(#device::automatic::body()));
            prepend(body, quote!(let #counter = #guard; #point));
            (TokenStream::new(), TokenStream::new())
        };
        let after = if has_end {
            let id = self.add(Kind::LoopExit, &format!("end of {name}"), close, close.end());
            let point = self.point(id, close);
            quote!(#after #point)
        } else {
            TokenStream::new()
        };
        if goes_ahead {
            let ahead = quote!(let _warptrace_ahead = #device::automatic::ahead(););
            *expression = Expr::Verbatim(quote!(#before #expression #ahead #after));
            return;
        }
        // Attributes may stand before a statement only: before all of it, then.
        let attributes = attributes(expression).map(std::mem::take).unwrap_or_default();
        let value = format_ident!("_warptrace_value_{id}", span = open);
        let tokens = if has_value {
            quote!(#before let #value = #expression; #after #value)
        } else {
            quote!(#before #expression #after)
        };
        *expression = braced(attributes, vec![statement(tokens)]);
    }

    /// Traces both outcomes of `?`.
    fn question(&mut self, found: &mut ExprTry) {
        let text = source(&*found.expr);
        self.visit_expr_mut(&mut found.expr);
        let span = found.question_token.span;
        let returns = self.add(Kind::Else, &format!("{text}? returns"), span, self.end);
        let has_value_id = self.add(Kind::Then, &format!("{text}? has a value"), span, self.end);
        let device = self.device;
        let [returned, passed] = [returns, has_value_id].map(|id| self.point(id, span));
        let value = format_ident!("_warptrace_value_{has_value_id}", span = span);
        let fails = at(span, quote!(#device::automatic::Fallible::fails(&#value)));
        // What the value borrows from lives as long as without this.
        let mut looked_at: ExprMatch = parse_quote!(match () {
            #value => {
                if #fails { #returned } else { #passed }
                #value
            }
        });
        std::mem::swap(&mut looked_at.expr, &mut found.expr);
        *found.expr = Expr::Match(looked_at);
    }

    /// Replaces `trace!` by a trace point.
    fn marked(&mut self, call: &Macro) -> TokenStream {
        let mark: Mark = match call.parse_body() {
            Ok(mark) => mark,
            Err(error) => {
                self.errors.push(error);
                return TokenStream::new();
            }
        };
        let span = call.path.span();
        let name = mark.name.value();
        if let Some(line) = self.marks.insert((self.function.clone(), name.clone()), span.start().line) {
            self.errors.push(syn::Error::new(
                mark.name.span(),
                format!("line {line} of this function has a trace point of this name: the trace could not tell them apart"),
            ));
        }
        let id = self.add(Kind::Marked, &name, span, end(call));
        let point = self.point(id, span);
        mark.condition.map_or(point.clone(), |condition| quote!(if #condition { #point }))
    }

    /// Traces a `let ... else`; answers what follows it.
    fn let_else(&mut self, local: &mut Local) -> Option<Stmt> {
        let init = local.init.as_mut()?;
        self.visit_expr_mut(&mut init.expr);
        let (_, diverge) = init.diverge.as_mut()?;
        let conditions = conditions(&local.attrs);
        let name = format!("let {} = {}", source(&local.pat), source(&*init.expr));
        let after = local.semi_token.span;
        if let Expr::Block(otherwise) = &mut **diverge {
            let open = otherwise.block.brace_token.span.open();
            let id = self.add(Kind::Else, &format!("else of {name}"), open, after.end());
            self.branch(id, open, &mut otherwise.block);
        }
        let id = self.add(Kind::Then, &name, after, after.end());
        Some(under(conditions, self.point(id, after)))
    }
}

/// Names of the variables that a function's patterns bind.
fn variables(block: &Block) -> HashSet<String> {
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

/// Where a function in `noisy` is called, if that is what an expression does.
pub(crate) fn call_of(expression: &Expr, noisy: &Noisy) -> Option<Span> {
    let name = match expression {
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => path.path.segments.last().map(|last| &last.ident)?,
            _ => return None,
        },
        Expr::MethodCall(call) => &call.method,
        _ => return None,
    };
    noisy.contains(&name.to_string()).then(|| name.span())
}

/// Lets the simulator know where a call stands: `calls(function)(arguments)`, or `(calls(()), call of a method).1`. Any
/// operator may follow, and what the call borrows from lives as long as without it.
pub(crate) fn told(call: &mut Expr, span: Span, device: &Path) {
    let here = |callee: Expr| {
        Expr::Call(ExprCall {
            attrs: Vec::new(),
            func: Box::new(Expr::Verbatim(at(span, quote!(#device::automatic::calls)))),
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
fn braced(attrs: Vec<Attribute>, stmts: Vec<Stmt>) -> Expr {
    Expr::Block(ExprBlock {
        attrs,
        label: None,
        block: Block { brace_token: token::Brace::default(), stmts },
    })
}

/// The attributes that say whether code is there.
fn conditions(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

/// A statement that is there where these attributes say so.
fn under(conditions: Vec<Attribute>, tokens: TokenStream) -> Stmt {
    if conditions.is_empty() {
        return statement(tokens);
    }
    Stmt::Expr(braced(conditions, vec![statement(tokens)]), None)
}

/// What stands for an expression while it is taken apart.
fn nothing() -> Expr {
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

impl VisitMut for Insert<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        if let Some(attributes) = attributes(expression)
            && has(attributes, "untraced")
        {
            attributes.retain(|attribute| !attribute.path().is_ident("untraced"));
            return;
        }
        match expression {
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
            Expr::Call(_) | Expr::MethodCall(_) => {
                let span = call_of(expression, self.noisy).filter(|_| !self.calls_variable(expression));
                visit_mut::visit_expr_mut(self, expression);
                if let Some(span) = span {
                    told(expression, span, self.device);
                }
            }
            Expr::Macro(found) if is_trace(&found.mac) => {
                let point = statement(self.marked(&found.mac));
                *expression = braced(Vec::new(), vec![point]);
            }
            Expr::Closure(_) | Expr::Async(_) | Expr::Const(_) => {
                if let Some(call) = first_trace(expression) {
                    self.errors.push(syn::Error::new(
                        call.path.span(),
                        "`trace!` cannot stand in a closure, which is not looked into: trace the function that \
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
                Stmt::Local(local) => {
                    let next = self.let_else(local);
                    block.stmts.push(found);
                    block.stmts.extend(next);
                }
                Stmt::Expr(expression @ (Expr::While(_) | Expr::ForLoop(_) | Expr::Loop(_)), _) => {
                    let attributes: &[Attribute] = attributes(expression).map_or(&[], |found| found);
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

    // What the compiler evaluates is no decision of a lane.
    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_pat_mut(&mut self, _: &mut Pat) {}

    fn visit_angle_bracketed_generic_arguments_mut(&mut self, _: &mut AngleBracketedGenericArguments) {}

    fn visit_expr_repeat_mut(&mut self, found: &mut ExprRepeat) {
        self.visit_expr_mut(&mut found.expr);
    }
}
