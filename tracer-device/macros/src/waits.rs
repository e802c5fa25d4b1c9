//! Trace points around calls of functions in `warptrace::device` that wait. Their ids follow the ids of all
//! other locations, so waits do not change other ids. In a function, such an id is the sum of a module
//! constant and an offset.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, Stmt, token};

use crate::decisions::attributes;
use crate::insert::Insert;
use crate::syntax::{at, braced, nothing, statement};
use crate::table::{Kind, Location, LocationTable};
use crate::text::{end, source};

/// Returns the kind of wait of a call: `sync_threads()` is a barrier, `spin_hint()` another wait.
pub(crate) fn wait_call(expression: &Expr) -> Option<(&ExprCall, Kind)> {
    let Expr::Call(call) = expression else { return None };
    let (name, _) = callee(call).filter(|_| call.args.is_empty())?;
    match name.as_str() {
        "sync_threads" => Some((call, Kind::Barrier)),
        "spin_hint" => Some((call, Kind::Wait)),
        _ => None,
    }
}

/// Returns the name of the called function, and whether its path is empty or starts with `self` or `Self`.
pub(crate) fn callee(call: &ExprCall) -> Option<(String, bool)> {
    let Expr::Path(path) = &*call.func else { return None };
    let segments = &path.path.segments;
    let first = segments.first()?;
    let is_short = segments.len() == 1 || first.ident == "self" || first.ident == "Self";
    Some((segments.last()?.ident.to_string(), is_short))
}

fn base() -> Ident {
    format_ident!("_WARPTRACE_WAITS")
}

pub(crate) fn declared(table: &LocationTable) -> TokenStream {
    let (name, last) = (base(), table.last());
    if table.waits().is_empty() { TokenStream::new() } else { quote!(const #name: u16 = #last;) }
}

impl Insert<'_> {
    /// Inserts a trace point before and after a call that waits.
    pub(crate) fn waiting(&mut self, expression: &mut Expr) {
        let Some((call, kind)) = wait_call(expression) else { return };
        let (what, close, rejoin) = (source(call), call.paren_token.span.close(), end(call));
        let begins = self.wait(kind, &what, call.func.span(), rejoin);
        let ends = self.wait(Kind::Waited, &format!("behind {what}"), close, rejoin);
        let attributes = attributes(expression).map(std::mem::take).unwrap_or_default();
        let call = std::mem::replace(expression, nothing());
        let call = Stmt::Expr(call, Some(token::Semi(close)));
        *expression = braced(attributes, vec![statement(begins), call, statement(ends)]);
    }

    /// Adds a location of a wait and returns the statement that traces it.
    fn wait(&mut self, kind: Kind, what: &str, span: Span, rejoin: proc_macro2::LineColumn) -> TokenStream {
        let (function, parent) = self.place();
        let name = format!("{function}: {what}");
        let location = Location { kind, name, function, parent, at: span.start(), rejoin };
        let (base, offset, device) = (base(), self.table.add_wait(location), self.device);
        at(span, quote!(#device::trace::wait::<{ #base + #offset }>();))
    }
}
