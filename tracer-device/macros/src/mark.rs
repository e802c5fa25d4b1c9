//! `trace!("name")`, `trace!("name" = 40)`, `trace!("name", if condition)` and `trace!("name", value)`.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, LitStr, Token};

use crate::arguments::id;

pub(crate) struct Mark {
    pub(crate) name: LitStr,
    pub(crate) id: Option<u16>,
    pub(crate) condition: Option<Expr>,
    /// Values to record, with their names. Empty for a trace point.
    pub(crate) values: Vec<(LitStr, Expr)>,
}

const MAX_VALUE_NAME: usize = 200;

fn value_name(name: LitStr) -> syn::Result<LitStr> {
    let text = name.value();
    let refuse = |what: &str| Err(syn::Error::new(name.span(), what));
    if text.trim().is_empty() {
        return refuse("a value's name is what the trace calls it: write one");
    }
    if text.chars().any(char::is_control) {
        return refuse("the name of a value is one line without control characters");
    }
    if text.len() > MAX_VALUE_NAME {
        return refuse("the name of a value has at most 200 bytes");
    }
    Ok(name)
}

impl Parse for Mark {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let wrong = |error: syn::Error| {
            syn::Error::new(
                error.span(),
                "`trace!` takes a name in quotes, then perhaps a condition: trace!(\"long row\", if length > 64), or \
                 a value, and more of them: trace!(\"length\", length; \"row\", row)",
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
        let (mut condition, mut values) = (None, Vec::new());
        if !input.is_empty() {
            input.parse::<Token![,]>().map_err(wrong)?;
            if input.peek(Token![if]) {
                input.parse::<Token![if]>()?;
                condition = Some(input.parse().map_err(wrong)?);
            } else if !input.is_empty() {
                if number.is_some() {
                    return Err(syn::Error::new(
                        name.span(),
                        "a value makes no event, so it has no id: leave it out",
                    ));
                }
                values.push((value_name(name.clone())?, input.parse().map_err(wrong)?));
                while input.parse::<Option<Token![;]>>()?.is_some() && !input.is_empty() {
                    let name = value_name(input.parse().map_err(wrong)?)?;
                    input.parse::<Token![,]>().map_err(wrong)?;
                    values.push((name, input.parse().map_err(wrong)?));
                }
            }
            input.parse::<Option<Token![,]>>()?;
        }
        if input.is_empty() {
            Ok(Self { name, id: number, condition, values })
        } else {
            Err(wrong(input.error("")))
        }
    }
}
