//! Arguments of the attribute.

use syn::parse::{Parse, ParseStream};
use syn::{LitInt, Path, Token, parse_quote};

/// What stands in `#[kernels(...)]`.
pub(crate) struct Arguments {
    /// Where the device crate is found.
    pub(crate) device: Path,
    /// Id of the module's first location.
    pub(crate) first_id: u16,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self { device: parse_quote!(::warptrace::device), first_id: 1 };
        while !input.is_empty() {
            let name: syn::Ident = input.parse()?;
            if name == "device" {
                input.parse::<Token![=]>()?;
                arguments.device = Path::parse_mod_style(input)?;
            } else if name == "first_id" {
                input.parse::<Token![=]>()?;
                let number: LitInt = input.parse()?;
                arguments.first_id = number
                    .base10_parse()
                    .ok()
                    .filter(|id| *id != 0)
                    .ok_or_else(|| syn::Error::new(number.span(), "ids of locations are 1 to 65,535"))?;
            } else {
                return Err(syn::Error::new(
                    name.span(),
                    "the arguments are `first_id = NUMBER`, from which this module's locations are numbered, and \
                     `device = path::of::the::crate`",
                ));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}
