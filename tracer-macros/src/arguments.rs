//! Arguments of the attribute.

use syn::parse::{Parse, ParseStream};
use syn::{Path, Token, parse_quote};

/// What stands in `#[kernels(...)]`.
pub(crate) struct Arguments {
    /// Where the device crate is found.
    pub(crate) device: Path,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(Self { device: parse_quote!(::warptrace::device) });
        }
        let name: syn::Ident = input.parse()?;
        if name != "device" {
            return Err(syn::Error::new(name.span(), "the one argument is `device = path::of::the::crate`"));
        }
        input.parse::<Token![=]>()?;
        let device = Path::parse_mod_style(input)?;
        if input.is_empty() { Ok(Self { device }) } else { Err(input.error("nothing follows the path")) }
    }
}
