//! Arguments of the attribute.

use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitInt, Path, Token, UseTree, braced, parse_quote};

pub(crate) struct Arguments {
    pub(crate) device: Path,
    /// Whether the module is in a package that depends on `warptrace`, whose build script compiles it. False
    /// for a module that names the device crate: its code is compiled elsewhere.
    pub(crate) is_users: bool,
    /// Whether only `trace!` and `trace_loop!` are traced.
    pub(crate) only_marked: bool,
    /// First location id of a copy in which every decision is traced, if requested. For evaluation only:
    /// `warptrace-bench record --automatic` and tests compare automatic trace points with manual ones.
    pub(crate) automatic: Option<u16>,
    pub(crate) callees: Vec<UseTree>,
    pub(crate) first_id: u16,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self {
            device: parse_quote!(::warptrace::device),
            is_users: true,
            only_marked: false,
            automatic: None,
            callees: Vec::new(),
            first_id: 1,
        };
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name != "only_marked" {
                arguments.value(&name, input)?;
            } else {
                arguments.only_marked = true;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn value(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let known = ["device", "first_id", "automatic", "callees"];
        if !known.iter().any(|known| name == known) {
            return Err(syn::Error::new(
                name.span(),
                "the arguments are `only_marked`, for `trace!` and `trace_loop!` alone, `first_id = NUMBER`, from which \
                 this module's locations are numbered, `callees = { path::to::{functions} }`, and \
                 `device = path::of::the::crate`",
            ));
        }
        input.parse::<Token![=]>()?;
        if name == "device" {
            self.device = Path::parse_mod_style(input)?;
            self.is_users = false;
        } else if name == "first_id" {
            self.first_id = id(input)?;
        } else if name == "automatic" {
            self.automatic = Some(id(input)?);
        } else {
            let trees;
            braced!(trees in input);
            let trees = trees.parse_terminated(UseTree::parse, Token![,])?;
            self.callees = trees.into_iter().collect();
        }
        Ok(())
    }
}

pub(crate) fn id(input: ParseStream<'_>) -> syn::Result<u16> {
    let number: LitInt = input.parse()?;
    let id = number.base10_parse().ok().filter(|id| *id != 0);
    id.ok_or_else(|| syn::Error::new(number.span(), "ids of locations are 1 to 65,535"))
}

pub(crate) fn names(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => names(&path.tree),
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(name) => vec![name.rename.to_string()],
        UseTree::Glob(_) => Vec::new(),
        UseTree::Group(group) => group.items.iter().flat_map(names).collect(),
    }
}
