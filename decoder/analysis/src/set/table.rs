//! Common ids for the locations of several traces.

use std::collections::{BTreeMap, HashMap};

use warptrace_format::file::{LocationInfo, Metadata};
use warptrace_format::location::SOURCE_HASH_PREFIX;

use crate::error::AnalysisError;
use crate::figures::Point;
use crate::set::part::FileHead;

/// Identity of a location: function, name, source with digest, position, and number among equals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    function: String,
    name: String,
    file: String,
    digest: String,
    position: [u32; 2],
    turn: u32,
}

/// Common ids for the locations of several files.
#[derive(Debug, Default)]
pub struct SetTable {
    ids: HashMap<Key, u16>,
    by_id: BTreeMap<u16, LocationInfo>,
    /// No id up to this one is free. Less than [`UNKNOWN`], which no location has.
    below_free: u16,
    lacks_weights: bool,
}

impl SetTable {
    /// Adds the locations of a file, before any file is analysed. Fails if all ids are in use.
    pub fn add(&mut self, file: &FileHead) -> Result<(), AnalysisError> {
        self.lacks_weights |= file.lacks_weights;
        for (key, info) in keys(&file.metadata) {
            if !self.ids.contains_key(&key) {
                self.insert(key, info)?;
            }
        }
        Ok(())
    }

    /// Returns the locations of all files, by common id.
    pub fn locations(&self) -> impl Iterator<Item = &LocationInfo> {
        self.by_id.values()
    }

    /// Returns true if each visit counts as one, because a file lacks the instructions of its locations.
    pub const fn lacks_weights(&self) -> bool {
        self.lacks_weights
    }

    /// Returns the common id for each id of a file, including ids that are not in its table.
    pub(super) fn renamed(&self, metadata: &Metadata) -> Vec<u16> {
        // An id that is in no table stays, unless another location has it.
        let own = |id: u16| if id != Point::BEGIN && self.by_id.contains_key(&id) { UNKNOWN } else { id };
        let mut renamed: Vec<u16> = (0..=u16::MAX).map(own).collect();
        for (key, info) in keys(metadata) {
            renamed[usize::from(info.id)] = self.ids.get(&key).copied().unwrap_or(UNKNOWN);
        }
        renamed
    }

    /// Assigns a location its id in the file if that is free, otherwise the first free id.
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

/// Common id for ids that no table has and that are already the common id of another location.
const UNKNOWN: u16 = u16::MAX;

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
