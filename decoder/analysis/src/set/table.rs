//! The locations of several traces: one number for each.

use std::collections::{BTreeMap, HashMap};

use warptrace_decoder::TraceFile;
use warptrace_format::file::LocationInfo;
use warptrace_format::location::SOURCE_HASH_PREFIX;

use crate::error::AnalysisError;
use crate::figures::Point;
use crate::points::weights;

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
    /// Of each location the files that have it, in order.
    files: BTreeMap<u16, Vec<u32>>,
    lacks_weights: bool,
}

impl SetTable {
    /// Takes a trace's locations. Call it for all files before the first is analysed.
    ///
    /// # Errors
    /// All files together have more locations than there are numbers.
    pub fn add(&mut self, trace: &TraceFile) -> Result<(), AnalysisError> {
        self.lacks_weights |= weights(trace).is_none();
        self.renamed(trace).map(|_| ())
    }

    /// The locations that any file has, in the order of their common numbers.
    pub fn locations(&self) -> impl Iterator<Item = &LocationInfo> {
        self.by_id.values()
    }

    /// Whether some file does not say how many instructions a visit stands for, so that each counts as one in all.
    pub(super) const fn lacks_weights(&self) -> bool {
        self.lacks_weights
    }

    /// The files that have a location in their tables, of those that were [noted](Self::note).
    pub(super) fn files(&self, id: u16) -> &[u32] {
        self.files.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns how many locations are in some of so many files, but not in all.
    pub(super) fn apart(&self, files: usize) -> u64 {
        self.files.values().filter(|having| having.len() < files).count() as u64
    }

    /// Notes which locations a file has, by its `renamed`.
    pub(super) fn note(&mut self, file: u32, trace: &TraceFile, renamed: &[u16]) {
        for info in &trace.metadata().locations {
            self.files.entry(renamed[usize::from(info.id)]).or_default().push(file);
        }
    }

    /// Returns for each id of a trace, whether its table has it or not, the common number.
    pub(super) fn renamed(&mut self, trace: &TraceFile) -> Result<Vec<u16>, AnalysisError> {
        let metadata = trace.metadata();
        let digests: HashMap<&str, &str> = metadata
            .properties
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(SOURCE_HASH_PREFIX)?, value.as_str())))
            .collect();
        let mut renamed: Vec<u16> = (0..=u16::MAX).collect();
        let mut known = vec![false; renamed.len()];
        let mut turns: HashMap<Key, u32> = HashMap::new();
        for info in &metadata.locations {
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
            let at = usize::from(info.id);
            known[at] = true;
            renamed[at] = match self.ids.get(&key) {
                Some(&id) => id,
                None => self.insert(key, info)?,
            };
        }
        // What no table has keeps its number unless that is another location's.
        for (id, renamed) in (0..=u16::MAX).zip(&mut renamed).filter(|(id, _)| !known[usize::from(*id)]) {
            if id != Point::BEGIN && self.by_id.contains_key(&id) {
                *renamed = UNKNOWN;
            }
        }
        Ok(renamed)
    }

    fn insert(&mut self, key: Key, info: &LocationInfo) -> Result<u16, AnalysisError> {
        let is_free = |id: &u16| *id != Point::BEGIN && *id != UNKNOWN && !self.by_id.contains_key(id);
        let next = self.by_id.keys().next_back().map_or(1, |last| last.saturating_add(1));
        let id = [info.id, next].into_iter().find(is_free);
        let id = id.or_else(|| (1..UNKNOWN).find(is_free)).ok_or(AnalysisError::TooManyLocations)?;
        self.by_id.insert(id, LocationInfo { id, parent: 0, ..info.clone() });
        self.ids.insert(key, id);
        Ok(id)
    }
}

/// The common number of all locations that a file visits, does not name, and whose own numbers others have.
const UNKNOWN: u16 = u16::MAX;
