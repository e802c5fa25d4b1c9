//! `trace!("name")` and `trace!("name", if condition)`.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, LitStr, Token};

/// A trace point that was written by hand.
pub(crate) struct Mark {
    pub(crate) name: LitStr,
    pub(crate) condition: Option<Expr>,
}

impl Parse for Mark {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let wrong = |error: syn::Error| {
            syn::Error::new(
                error.span(),
                "`trace!` takes a name in quotes, then perhaps a condition: trace!(\"long row\", if length > 64)",
            )
        };
        let name: LitStr = input.parse().map_err(wrong)?;
        if name.value().trim().is_empty() {
            return Err(syn::Error::new(
                name.span(),
                "a trace point's name is what the trace calls it: write one",
            ));
        }
        let mut condition = None;
        if !input.is_empty() {
            input.parse::<Token![,]>().map_err(wrong)?;
            if !input.is_empty() {
                input.parse::<Token![if]>().map_err(wrong)?;
                condition = Some(input.parse().map_err(wrong)?);
                input.parse::<Option<Token![,]>>()?;
            }
        }
        if input.is_empty() { Ok(Self { name, condition }) } else { Err(wrong(input.error(""))) }
    }
}
