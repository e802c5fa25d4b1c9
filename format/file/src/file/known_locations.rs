//! Table of locations that can grow.

use std::collections::BTreeMap;

use super::metadata::LocationInfo;
use super::metadata_error::MetadataError;
use crate::codec::CodecSpec;

#[derive(Clone, Debug, Default)]
pub(super) struct KnownLocations(BTreeMap<u16, String>);

impl KnownLocations {
    /// Adds locations, in any order, for a trace with these codecs. Fails without a change for an id that is
    /// 0, taken or too large for a codec, and for a parent that is unknown or does not have a smaller id.
    pub(super) fn add(
        &mut self,
        locations: &[LocationInfo],
        tracks: &[CodecSpec],
    ) -> Result<(), MetadataError> {
        let mut added = 0;
        self.add_each(locations, tracks, &mut added).inspect_err(|_| {
            for location in &locations[..added] {
                self.0.remove(&location.id);
            }
        })
    }

    fn add_each(
        &mut self,
        locations: &[LocationInfo],
        tracks: &[CodecSpec],
        added: &mut usize,
    ) -> Result<(), MetadataError> {
        for location in locations {
            let id = location.id;
            if id == 0 {
                return Err(MetadataError::LocationZero { point: location.describe() });
            }
            for codec in tracks {
                let largest = codec.max_location();
                if id > largest {
                    let (point, codec) = (location.describe(), codec.name());
                    return Err(MetadataError::LocationTooLarge { point, id, codec, largest });
                }
            }
            let second = location.describe();
            if let Some(first) = self.0.get(&id) {
                return Err(MetadataError::LocationTwice { id, first: first.clone(), second });
            }
            self.0.insert(id, second);
            *added += 1;
        }
        // Parents have smaller ids, so a walk along parents terminates.
        for location in locations {
            let (id, parent) = (location.id, location.parent);
            if parent != 0 && (parent >= id || !self.0.contains_key(&parent)) {
                return Err(MetadataError::Parent { point: location.describe(), id, parent });
            }
        }
        Ok(())
    }
}
