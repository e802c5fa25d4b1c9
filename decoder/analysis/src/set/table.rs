//! The locations of several traces: one number for each.

use std::collections::{BTreeMap, HashMap};

use warptrace_format::file::{LocationInfo, Metadata};
use warptrace_format::location::SOURCE_HASH_PREFIX;

use crate::error::AnalysisError;
use crate::figures::Point;
use crate::set::part::FileHead;

/// What makes a location of two files the same: function, name, source file with its digest, position, and
/// which of several such it is. A location that its file's table lacks has its number alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    function: String,
    name: String,
    file: String,
    digest: String,
    position: [u32; 2],
    turn: u32,
}

/// Gives the locations of several files common numbers.
#[derive(Debug, Default)]
pub struct SetTable {
    ids: HashMap<Key, u16>,
    by_id: BTreeMap<u16, LocationInfo>,
    /// No number up to this one is free; below [`UNKNOWN`], which no location has.
    below_free: u16,
    lacks_weights: bool,
}

impl SetTable {
    /// Takes a file's locations. Call it for all files before the first is analysed.
    ///
    /// # Errors
    /// All files together have more locations than there are numbers.
    pub fn add(&mut self, file: &FileHead) -> Result<(), AnalysisError> {
        self.lacks_weights |= file.lacks_weights;
        for (key, info) in keys(&file.metadata) {
            if !self.ids.contains_key(&key) {
                self.insert(key, info)?;
            }
        }
        Ok(())
    }

    /// The locations that any file has, in the order of their common numbers.
    pub fn locations(&self) -> impl Iterator<Item = &LocationInfo> {
        self.by_id.values()
    }

    /// Whether some file does not say how many instructions a visit stands for, so that each counts as one in all.
    pub const fn lacks_weights(&self) -> bool {
        self.lacks_weights
    }

    /// Returns for each id of a file, whether its table has it or not, the common number.
    pub(super) fn renamed(&self, metadata: &Metadata) -> Vec<u16> {
        // What no table has keeps its number unless that is another location's.
        let own = |id: u16| if id != Point::BEGIN && self.by_id.contains_key(&id) { UNKNOWN } else { id };
        let mut renamed: Vec<u16> = (0..=u16::MAX).map(own).collect();
        for (key, info) in keys(metadata) {
            renamed[usize::from(info.id)] = self.ids.get(&key).copied().unwrap_or(UNKNOWN);
        }
        renamed
    }

    /// Gives a location its own number if that is free, or else the first that is.
    fn insert(&mut self, key: Key, info: &LocationInfo) -> Result<(), AnalysisError> {
        let mut id = info.id;
        if id == Point::BEGIN || id == UNKNOWN || self.by_id.contains_key(&id) {
            while self.by_id.contains_key(&(self.below_free + 1)) {
                self.below_free += 1;
            }
            id = self.below_free + 1;
            if id == UNKNOWN {
                return Err(AnalysisError::TooManyLocations);
            }
        }
        self.by_id.insert(id, LocationInfo { id, parent: 0, ..info.clone() });
        self.ids.insert(key, id);
        Ok(())
    }
}

/// The common number of all locations that a file visits, does not name, and whose own numbers others have.
const UNKNOWN: u16 = u16::MAX;

/// The locations of a file with what makes them the same as others'.
fn keys(metadata: &Metadata) -> impl Iterator<Item = (Key, &LocationInfo)> {
    let digests: HashMap<&str, &str> = metadata
        .properties
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(SOURCE_HASH_PREFIX)?, value.as_str())))
        .collect();
    let mut turns: HashMap<Key, u32> = HashMap::new();
    metadata.locations.iter().map(move |info| {
        let mut key = Key {
            function: info.function.clone(),
            name: info.name.clone(),
            file: info.file.clone(),
            digest: digests.get(info.file.as_str()).copied().unwrap_or_default().to_owned(),
            position: [info.line, info.column],
            turn: 0,
        };
        let turn = turns.entry(key.clone()).or_default();
        key.turn = *turn;
        *turn += 1;
        (key, info)
    })
}
