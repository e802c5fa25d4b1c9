//! The location table of a module.

use std::collections::BTreeMap;

use proc_macro2::{LineColumn, Span, TokenStream};
use quote::quote;
use syn::Path;

/// The kind of a location. The names match `LocationKind`.
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
    Barrier,
    Wait,
    Waited,
}

#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) function: String,
    pub(crate) parent: u16,
    pub(crate) at: LineColumn,
    pub(crate) rejoin: LineColumn,
}

struct Value {
    id: u16,
    name: String,
    location: u16,
    at: LineColumn,
}

pub(crate) struct LocationTable {
    /// Next automatic id.
    next: u32,
    locations: BTreeMap<u16, Location>,
    /// Locations of waits. Their ids follow the last id of `locations`.
    waits: Vec<Location>,
    /// Values. They have separate ids, which start at the id of the first location.
    values: Vec<Value>,
    next_value: u32,
    /// The first error in the ids.
    error: Option<syn::Error>,
}

impl LocationTable {
    /// Creates an empty table. `first` is the id of the first location.
    pub(crate) fn starting_at(first: u16) -> Self {
        let (next, next_value) = (first.into(), first.into());
        let (waits, values) = (Vec::new(), Vec::new());
        Self { next, locations: BTreeMap::new(), waits, values, next_value, error: None }
    }

    pub(crate) fn add_value(&mut self, name: String, location: u16, span: Span) -> u16 {
        let Ok(id) = u16::try_from(self.next_value) else {
            let text = "ids of values end at 65,535: begin at a lower `first_id`, or name fewer values";
            self.error.get_or_insert_with(|| syn::Error::new(span, text));
            return u16::MAX;
        };
        self.next_value += 1;
        self.values.push(Value { id, name, location, at: span.start() });
        id
    }

    /// Returns the values as an expression of type `&[SourceValue]`.
    pub(crate) fn value_rows(&self, device: &Path) -> TokenStream {
        let rows = self.values.iter().map(|Value { id, name, location, at }| {
            let [line, column] = position(*at);
            quote!(#device::SourceValue {
                id: #id, name: #name, location: #location, line: #line, column: #column,
            })
        });
        quote!(&[#(#rows),*])
    }

    /// Adds a location and returns its id: `id`, or the id after the previous one. Remembers the first error.
    pub(crate) fn add(&mut self, location: Location, id: Option<u16>, span: Span) -> u16 {
        let number = id.map_or(self.next, u32::from);
        self.next = number + 1;
        let Ok(id) = u16::try_from(number) else {
            let text = "this is location 65,536, and ids end at 65,535: split the module, begin at a lower `first_id`, or \
                        leave functions out with #[untraced]";
            self.error.get_or_insert_with(|| syn::Error::new(span, text));
            return u16::MAX;
        };
        if let Some(other) = self.locations.get(&id) {
            let text = format!("location {id} is `{}` already: give one of them another id", other.name);
            self.error.get_or_insert_with(|| syn::Error::new(span, text));
        }
        self.locations.insert(id, location);
        id
    }

    /// Adds a location of a wait. Returns the difference between its id and the last id of other locations.
    pub(crate) fn add_wait(&mut self, location: Location) -> u16 {
        self.waits.push(location);
        u16::try_from(self.waits.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn waits(&self) -> &[Location] {
        &self.waits
    }

    /// Returns the last id, excluding waits.
    pub(crate) fn last(&self) -> u16 {
        self.locations.last_key_value().map_or(0, |(id, _)| *id)
    }

    /// Checks the ids: returns an error if one was used twice, or there were too many.
    pub(crate) fn check(&mut self) -> syn::Result<()> {
        if usize::from(self.last()) + self.waits.len() > usize::from(u16::MAX) {
            let text = "the ids of its waits, behind those of all other locations, would be above 65,535: begin at a lower \
                        `first_id`, or leave functions out with #[untraced]";
            self.error.get_or_insert_with(|| syn::Error::new(Span::call_site(), text));
        }
        self.error.take().map_or(Ok(()), Err)
    }

    /// Returns a module of constants with the ids of marks whose names are unique identifiers.
    pub(crate) fn marks(&self) -> TokenStream {
        let mut marks: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
        for (id, location) in self.locations.iter().filter(|(_, location)| location.kind == Kind::Marked) {
            marks.entry(&location.name).or_default().push(*id);
        }
        let constants =
            marks.into_iter().filter_map(|(name, ids)| match (syn::parse_str::<syn::Ident>(name), &*ids) {
                (Ok(name), [id]) => Some(quote!(pub const #name: u16 = #id;)),
                _ => None,
            });
        quote! {
            /// Ids of the trace points, by their names.
            #[allow(dead_code, missing_docs, non_upper_case_globals, reason = "named as the trace points are")]
            pub mod at {
                #(#constants)*
            }
        }
    }

    /// Returns the locations, and the locations of waits, as expressions of type `&[SourceLocation]`.
    pub(crate) fn rows(&self, device: &Path) -> [TokenStream; 2] {
        let row = |(id, location): (u16, &Location)| {
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
        };
        let rows = self.locations.iter().map(|(id, location)| row((*id, location)));
        let waits =
            (1..).zip(&self.waits).map(|(behind, wait)| row((self.last().saturating_add(behind), wait)));
        [quote!(&[#(#rows),*]), quote!(&[#(#waits),*])]
    }
}

/// Returns line and column, from 1.
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
            let mut table = LocationTable::starting_at(first);
            for id in first..=u16::MAX {
                assert_eq!(table.add(location.clone(), None, Span::call_site()), id);
            }
            assert!(table.check().is_ok());
            table.add(location.clone(), None, Span::call_site());
            assert!(table.check().unwrap_err().to_string().starts_with("this is location 65,536"));
        }
    }
}
