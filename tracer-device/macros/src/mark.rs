//! `trace!("name")`, `trace!("name" = 40)` and `trace!("name", if condition)`.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, LitStr, Token};

use crate::arguments::id;

/// A trace point that was written by hand.
pub(crate) struct Mark {
    pub(crate) name: LitStr,
    /// Its id, where that is not the next one.
    pub(crate) id: Option<u16>,
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
        let number = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(id(input)?),
            None => None,
        };
        let mut condition = None;
        if !input.is_empty() {
            input.parse::<Token![,]>().map_err(wrong)?;
            if !input.is_empty() {
                input.parse::<Token![if]>().map_err(wrong)?;
                condition = Some(input.parse().map_err(wrong)?);
                input.parse::<Option<Token![,]>>()?;
            }
        }
        if input.is_empty() { Ok(Self { name, id: number, condition }) } else { Err(wrong(input.error(""))) }
    }
}
