//! The locations of a module.

use proc_macro2::{LineColumn, Span, TokenStream};
use quote::quote;
use syn::Path;

/// What a location stands for; the names are those of `LocationKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Marked,
    Entry,
    Then,
    Else,
    Arm,
    LoopBody,
    LoopExit,
    Return,
}

/// A location: what a row of the table says.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) function: String,
    pub(crate) parent: u16,
    pub(crate) at: LineColumn,
    pub(crate) rejoin: LineColumn,
}

/// The locations so far.
pub(crate) struct Table {
    /// Id of the first.
    first: u16,
    locations: Vec<Location>,
    is_full: Option<Span>,
}

impl Table {
    /// A table without locations, whose first will have this id.
    pub(crate) fn starting_at(first: u16) -> Self {
        Self { first, locations: Vec::new(), is_full: None }
    }

    /// Adds a location and answers its id. The first that is one too many is remembered.
    pub(crate) fn add(&mut self, location: Location, span: Span) -> u16 {
        let Ok(id) = u16::try_from(usize::from(self.first) + self.locations.len()) else {
            self.is_full.get_or_insert(span);
            return u16::MAX;
        };
        self.locations.push(location);
        id
    }

    /// Answers the error if there were too many locations.
    pub(crate) fn check(&self) -> syn::Result<()> {
        match self.is_full {
            Some(span) => Err(syn::Error::new(
                span,
                "this is location 65,536, and ids end at 65,535: split the module, begin at a lower `first_id`, or \
                 leave functions out with #[untraced]",
            )),
            None => Ok(()),
        }
    }

    /// The table as an expression of type `&[SourceLocation]`.
    pub(crate) fn rows(&self, device: &Path) -> TokenStream {
        let rows = (self.first..=u16::MAX).zip(&self.locations).map(|(id, location)| {
            let Location { kind, name, function, parent, at, rejoin } = location;
            let kind = syn::Ident::new(&format!("{kind:?}"), Span::call_site());
            let [line, column] = position(*at);
            let [rejoin_line, rejoin_column] = position(*rejoin);
            quote!(#device::SourceLocation {
                id: #id,
                name: #name,
                function: #function,
                kind: #device::LocationKind::#kind,
                line: #line,
                column: #column,
                parent: #parent,
                rejoin_line: #rejoin_line,
                rejoin_column: #rejoin_column,
            })
        });
        quote!(&[#(#rows),*])
    }
}

/// Line and column from 1.
fn position(at: LineColumn) -> [u32; 2] {
    [at.line, at.column + 1].map(|number| u32::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_end_at_65_535() {
        let origin = LineColumn { line: 1, column: 0 };
        let location = Location {
            kind: Kind::Arm,
            name: String::new(),
            function: String::new(),
            parent: 0,
            at: origin,
            rejoin: origin,
        };
        for first in [1, 65_000] {
            let mut table = Table::starting_at(first);
            for id in first..=u16::MAX {
                assert_eq!(table.add(location.clone(), Span::call_site()), id);
            }
            assert!(table.check().is_ok());
            table.add(location.clone(), Span::call_site());
            assert!(table.check().unwrap_err().to_string().starts_with("this is location 65,536"));
        }
    }
}
