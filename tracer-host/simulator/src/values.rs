//! Sites of the values that kernels name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use warptrace_abi::data::ValueType;

/// Sites of a launch's values. Each value has consecutive sites, one for each type, in the order of
/// [`ValueType::ALL`], because a generic function can name a value of several types.
#[derive(Debug, Default)]
pub struct ValueSites {
    /// By the value's id: the site of its first type, and a bit for each type that lanes recorded.
    sites: BTreeMap<u16, (u16, AtomicU8)>,
}

impl ValueSites {
    /// Sites per value.
    pub const EACH: u16 = ValueType::ALL.len() as u16;

    /// Creates the sites of values from ids and numbers of first sites. For equal ids, the last one counts.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (u16, u16)>) -> Self {
        let sites = values.into_iter().map(|(id, first)| (id, (first, AtomicU8::new(0))));
        Self { sites: sites.collect() }
    }

    /// Returns the site of a value of this type and marks it as used; `None` if the value is unknown.
    pub(crate) fn site(&self, id: u16, of: ValueType) -> Option<u16> {
        let (first, used) = self.sites.get(&id)?;
        if used.load(Relaxed) >> of as u8 & 1 == 0 {
            used.fetch_or(1 << of as u8, Relaxed);
        }
        first.checked_add(of as u16)
    }

    /// Returns the used sites: id, type and number.
    pub fn used(&self) -> impl Iterator<Item = (u16, ValueType, u16)> {
        self.sites.iter().flat_map(|(id, (first, used))| {
            let used = used.load(Relaxed);
            let is_used = move |of: &ValueType| used >> *of as u8 & 1 == 1;
            ValueType::ALL.into_iter().filter(is_used).map(move |of| (*id, of, first + of as u16))
        })
    }
}
