//! Insertion of trace points into functions.

mod visit;

use std::collections::{BTreeMap, HashSet};

use proc_macro2::{Ident, LineColumn, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprIf, ExprMatch, ExprTry, Local, Macro, Pat, Path, Stmt, parse_quote};

use crate::decisions::{Noisy, Traced, attributes, in_statements};
use crate::loops::{self, Loop, returns};
use crate::mark::Mark;
use crate::syntax::{at, braced, conditions, nothing, prepend, statement, under, variables};
use crate::table::{Kind, Location, LocationTable};
use crate::text::{end, source};
use crate::waits;

/// Inserts trace points at decisions or only at marks, and reports the function's structure to the simulator.
pub(crate) struct Insert<'a> {
    pub(crate) device: &'a Path,
    only_marked: bool,
    only_waits: bool,
    pub(crate) noisy: &'a Noisy,
    own: HashSet<String>,
    pub(crate) table: &'a mut LocationTable,
    pub(crate) errors: &'a mut Vec<syn::Error>,
    function: String,
    /// Id of the location that contains the visited code; 0 before the function's entry.
    parent: u16,
    end: LineColumn,
    /// Whether the function records events and is not a kernel.
    is_called: bool,
    in_loop: bool,
    /// Position of a `return` that needs no event, because it comes first in a branch.
    implied: Option<LineColumn>,
    /// Names of the function's variables. A call may refer to one.
    variables: HashSet<String>,
    /// Line of each manual trace point, by function and name.
    marks: BTreeMap<(String, String), usize>,
}

impl<'a> Insert<'a> {
    pub(crate) fn new(
        device: &'a Path,
        only_marked: bool,
        (noisy, own): (&'a Noisy, HashSet<String>),
        table: &'a mut LocationTable,
        errors: &'a mut Vec<syn::Error>,
    ) -> Self {
        let end = Span::call_site().end();
        Self {
            device,
            only_marked,
            only_waits: false,
            noisy,
            own,
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

    /// Traces a function. `is_called` is true if it records events and is not a kernel.
    pub(crate) fn function(&mut self, name: &str, ident: &Ident, block: &mut Block, is_called: bool) {
        (self.function, self.parent, self.end) = (name.to_owned(), 0, end(block));
        (self.implied, self.is_called, self.in_loop) = (None, is_called, false);
        self.variables = variables(block);
        let mut first = TokenStream::new();
        if is_called {
            let device = self.device;
            let call = at(ident.span(), quote!(#device::trace::call()));
            first = quote!(let _warptrace_call = #call;);
        }
        if self.only_marked {
            self.visit_block_mut(block);
        } else {
            let entry = self.add(Kind::Entry, "", ident.span(), self.end);
            first.extend(self.point(entry, ident.span()));
            self.inside(entry, |insert| insert.visit_block_mut(block));
        }
        if !first.is_empty() {
            prepend(block, first);
        }
    }

    fn traces_decisions(&self) -> bool {
        !self.only_marked && !self.only_waits
    }

    /// Traces the waits of a function without decisions.
    pub(crate) fn only_waits(&mut self, name: &str, block: &mut Block) {
        (self.function, self.parent, self.only_waits) = (name.to_owned(), 0, true);
        self.variables = variables(block);
        self.visit_block_mut(block);
        self.only_waits = false;
    }

    /// Returns true if a call is a traced wait, and does not call a function or variable of the module.
    fn is_wait(&self, call: &Expr) -> bool {
        let Some((name, is_short)) = waits::wait_call(call).and_then(|(call, _)| waits::callee(call)) else {
            return false;
        };
        let is_own = is_short && (self.own.contains(&name) || self.variables.contains(&name));
        !self.only_marked && !is_own
    }

    /// Returns the function's name, and the location that contains the visited code.
    pub(crate) fn place(&self) -> (String, u16) {
        (self.function.clone(), self.parent)
    }

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

    /// Adds a location and returns its id. The location's name is the function's name, followed by `what`.
    fn add(&mut self, kind: Kind, what: &str, span: Span, rejoin: LineColumn) -> u16 {
        let function = &self.function;
        let name = if what.is_empty() { function.clone() } else { format!("{function}: {what}") };
        self.add_as(None, kind, name, span, rejoin)
    }

    /// Adds a location with this name and returns its id, which is `id` if that is set.
    fn add_as(&mut self, id: Option<u16>, kind: Kind, name: String, span: Span, rejoin: LineColumn) -> u16 {
        let (function, parent) = (self.function.clone(), self.parent);
        self.table.add(Location { kind, name, function, parent, at: span.start(), rejoin }, id, span)
    }

    fn point(&self, id: u16, span: Span) -> TokenStream {
        let device = self.device;
        at(span, quote!(#device::trace::point::<#id>();))
    }

    fn inside(&mut self, id: u16, visit: impl FnOnce(&mut Self)) {
        let parent = std::mem::replace(&mut self.parent, id);
        visit(self);
        self.parent = parent;
    }

    fn branch(&mut self, id: u16, span: Span, block: &mut Block) {
        if let Some(Stmt::Expr(Expr::Return(first), _)) = block.stmts.first() {
            self.implied = Some(first.return_token.span.start());
        }
        self.inside(id, |insert| insert.visit_block_mut(block));
        prepend(block, self.point(id, span));
    }

    /// Traces both outcomes of `if`, and of each `else if`. The outcomes reconverge at `rejoin`.
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

    /// Traces the arms of `match`, if it has more than one.
    fn arms(&mut self, found: &mut ExprMatch) {
        let (subject, rejoin) = (source(&found.expr), end(found));
        self.visit_expr_mut(&mut found.expr);
        let has_choice = found.arms.len() > 1;
        for arm in &mut found.arms {
            if let Pat::Guard(found) = &mut arm.pat {
                self.visit_expr_mut(&mut found.guard);
            }
            if !has_choice {
                self.visit_expr_mut(&mut arm.body);
                continue;
            }
            let span = arm.fat_arrow_token.span();
            let span = arm.fat_arrow_token.spans.first().copied().unwrap_or(span);
            let pattern = match &arm.pat {
                Pat::Guard(found) => format!("{} if {}", source(&found.pat), source(&found.guard)),
                pattern => source(pattern),
            };
            let name = format!("match {subject}: {pattern}");
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

    /// Traces the iterations of a loop and its end. If the loop `is_last` in its function, code after it runs
    /// in the enclosing block, so that lanes that have left the loop can run ahead of lanes that may still
    /// return from inside it.
    fn looped(&mut self, expression: &mut Expr, is_last: bool) {
        let Some(Loop { name, is_plain, has_end, has_value, open, close }) =
            Loop::new(expression, self.noisy)
        else {
            return;
        };
        if let Expr::ForLoop(found) = expression {
            // The iterator is evaluated once, before the loop.
            self.visit_expr_mut(&mut found.expr);
        }
        let id = self.add(Kind::LoopBody, &name, open, close.end());
        if let Expr::While(found) = expression {
            self.inside(id, |insert| insert.visit_expr_mut(&mut found.cond));
        }
        let Some(body) = loops::body(expression) else { return };
        let device = self.device;
        let goes_ahead = is_last && has_end && !has_value && returns(body);
        let counter = format_ident!("_warptrace_loop_{id}", span = open);
        let (before, after) = if is_plain {
            // The body has no decision.
            let around = std::mem::replace(&mut self.only_waits, true);
            self.inside(id, |insert| insert.visit_block_mut(body));
            self.only_waits = around;
            prepend(body, at(open, quote!(#counter.tick();)));
            let opened = at(open, quote!(#device::LoopTrace::<#id>::open()));
            (quote!(let mut #counter = #opened;), quote!(::core::mem::drop(#counter);))
        } else {
            let around = std::mem::replace(&mut self.in_loop, true);
            self.inside(id, |insert| insert.visit_block_mut(body));
            self.in_loop = around;
            let point = self.point(id, open);
            let guard = at(close, quote!(#device::trace::body()));
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
            let ahead = quote!(let _warptrace_ahead = #device::trace::ahead(););
            *expression = Expr::Verbatim(quote!(#before #expression #ahead #after));
            return;
        }
        // Attributes are valid only before a statement, so they move before the whole block.
        let attributes = attributes(expression).map(std::mem::take).unwrap_or_default();
        let value = format_ident!("_warptrace_value_{id}", span = open);
        let tokens = if has_value {
            quote!(#before let #value = #expression; #after #value)
        } else {
            quote!(#before #expression #after)
        };
        *expression = braced(attributes, vec![statement(tokens)]);
    }

    /// Returns true if lanes that have left a loop run ahead of lanes that may still return from inside it.
    /// Used for the last loop of a function, in modules that trace only marks.
    fn goes_ahead(&self, expression: &mut Expr) -> bool {
        loops::body(expression).is_some_and(|body| returns(body) && self.leaves_events(body))
    }

    /// Returns true if a block records events where only marks are traced. Counted loops record theirs later.
    fn leaves_events(&self, block: &Block) -> bool {
        in_statements(&block.stmts, self.noisy, Traced::Marks)
    }

    /// Visits a loop where only marks are traced. Lanes reconverge at the body's end if it records events.
    fn joined(&mut self, expression: &mut Expr) {
        let guard = loops::body(expression).filter(|body| self.leaves_events(body)).map(|body| {
            let device = self.device;
            at(body.brace_token.span.close(), quote!(#device::trace::body()))
        });
        let around = self.in_loop;
        self.in_loop |= guard.is_some();
        visit_mut::visit_expr_mut(self, expression);
        self.in_loop = around;
        if let (Some(guard), Some(body)) = (guard, loops::body(expression)) {
            prepend(body, quote!(let _warptrace_body = #guard;));
        }
    }

    fn question(&mut self, found: &mut ExprTry) {
        let text = source(&*found.expr);
        self.visit_expr_mut(&mut found.expr);
        let span = found.question_token.span;
        let returns = self.add(Kind::Else, &format!("{text}? returns"), span, self.end);
        let has_value_id = self.add(Kind::Then, &format!("{text}? has a value"), span, self.end);
        let device = self.device;
        let [returned, passed] = [returns, has_value_id].map(|id| self.point(id, span));
        let value = format_ident!("_warptrace_value_{has_value_id}", span = span);
        let fails = at(span, quote!(#device::trace::Fallible::fails(&#value)));
        // `match` does not change the lifetimes of temporaries in the value.
        let mut looked_at: ExprMatch = parse_quote!(match () {
            #value => {
                if #fails { #returned } else { #passed }
                #value
            }
        });
        std::mem::swap(&mut looked_at.expr, &mut found.expr);
        *found.expr = Expr::Match(looked_at);
    }

    fn mark(&mut self, call: &Macro, mark: Mark) -> (u16, Mark) {
        let span = call.path.span();
        let name = mark.name.value();
        if let Some(line) = self.marks.insert((self.function.clone(), name.clone()), span.start().line) {
            self.errors.push(syn::Error::new(
                mark.name.span(),
                format!("line {line} of this function has a trace point of this name: the trace could not tell them apart"),
            ));
        }
        // Unless only marks are traced, the function's name comes first, as in the names of decisions.
        let name = if self.only_marked { name } else { format!("{}: {name}", self.function) };
        (self.add_as(mark.id, Kind::Marked, name, span, end(call)), mark)
    }

    /// Returns the replacement of `trace!`: a trace point, or the values that it names.
    fn marked(&mut self, call: &Macro) -> TokenStream {
        match call.parse_body::<Mark>() {
            Ok(Mark { values, .. }) if !values.is_empty() => {
                let (device, span) = (self.device, call.path.span());
                let statements = values.into_iter().map(|(name, value)| {
                    let id = self.table.add_value(name.value(), self.parent, span);
                    let called = at(span, quote!(#device::trace::value::<#id>));
                    // The span makes the compiler report errors about the value at the value.
                    quote_spanned!(value.span()=> #called(#value);)
                });
                statements.collect()
            }
            Ok(mark) => {
                let (id, mark) = self.mark(call, mark);
                let point = self.point(id, call.path.span());
                mark.condition.map_or(point.clone(), |condition| quote!(if #condition { #point }))
            }
            Err(error) => {
                self.errors.push(error);
                TokenStream::new()
            }
        }
    }

    /// Returns the replacement of `trace_loop!`: the counter of a loop.
    fn marked_loop(&mut self, call: &Macro) -> TokenStream {
        let refuse = |text: &str| Err(syn::Error::new(call.path.span(), text));
        let mark = call.parse_body::<Mark>();
        let made = match mark {
            _ if !self.only_marked => refuse(
                "every loop of this module is traced: `trace_loop!` stands in a module with \
                 #[warptrace::kernels(only_marked)]",
            ),
            Ok(Mark { condition: Some(_), .. }) => {
                refuse("a loop is traced for all lanes: leave the condition out")
            }
            Ok(Mark { values, .. }) if !values.is_empty() => {
                refuse("a loop has no value: name it by `trace!` in the loop")
            }
            other => other.map(|mark| self.mark(call, mark)),
        };
        let device = self.device;
        match made {
            Ok((id, _)) => at(call.path.span(), quote!(#device::LoopTrace::<#id>::open())),
            Err(error) => {
                self.errors.push(error);
                quote!(#device::LoopTrace::<1>::open())
            }
        }
    }

    /// Traces a `let ... else` and returns the statement to insert after it.
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
