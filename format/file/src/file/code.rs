//! Compiled code at locations: the `CODE` section.
//!
//! The body is a list in the metadata's encoding: the location's id (varint16), its instructions (varint32),
//! and a byte: 1 for a counted loop, otherwise 0. The section is optional and not in the index.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::limits::MAX_LOCATIONS;
use super::metadata::{LocationInfo, bounded};
use super::section::{SectionKind, encode_section};

const SECTION: &str = "CODE";

/// Compiled code at a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationCode {
    /// Instructions from the location's point up to the next one. 0 if the compiler left none.
    pub instructions: u32,
    /// True for a loop whose iterations were counted instead of recorded event by event.
    pub counted: bool,
}

#[derive(Serialize, Deserialize)]
struct Body(#[serde(deserialize_with = "bounded::<_, _, MAX_LOCATIONS>")] Vec<(u16, u32, bool)>);

impl LocationCode {
    /// Encodes the section, header and body, for locations with known code; `None` without any.
    pub fn encode_section(locations: &[LocationInfo]) -> Option<Vec<u8>> {
        let known = locations.iter().filter_map(|info| {
            let Self { instructions, counted } = info.code?;
            Some((info.id, instructions, counted))
        });
        let body = Body(known.collect());
        let encoded = postcard::to_allocvec(&body).expect("integers in a sequence of known length");
        (!body.0.is_empty()).then(|| encode_section(SectionKind::Code, &encoded))
    }

    /// Decodes the body of a section at file offset `at`: ids of locations, and their code.
    pub fn decode(body: &[u8], at: u64) -> Result<Vec<(u16, Self)>, FormatError> {
        let Body(found) = decode_body((SECTION, "code of locations"), body, at)?;
        let of = |(id, instructions, counted)| (id, Self { instructions, counted });
        Ok(found.into_iter().map(of).collect())
    }
}

/// Serde functions for a field that human-readable formats contain and the metadata's bytes do not.
pub(super) mod beside {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<T: Serialize, S: Serializer>(
        found: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { found.serialize(serializer) } else { serializer.serialize_unit() }
    }

    pub(in super::super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        if deserializer.is_human_readable() {
            return Option::deserialize(deserializer);
        }
        <()>::deserialize(deserializer).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let code = |instructions, counted| Some(LocationCode { instructions, counted });
        let locations = [(3, code(300, false)), (4, None), (9, code(0, true))]
            .map(|(id, code)| LocationInfo { code, ..LocationInfo::new(id, "x", "") });
        let section = LocationCode::encode_section(&locations).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        assert_eq!(body, [2, 3, 0xac, 2, 0, 9, 0, 1]);
        let found = LocationCode::decode(body, 0).unwrap();
        assert_eq!(found, [(3, code(300, false).unwrap()), (9, code(0, true).unwrap())]);
        for length in 0..body.len() {
            assert!(LocationCode::decode(&body[..length], 9).is_err(), "length {length}");
        }
        for bad in [&[body, &[0]].concat()[..], &[1, 3, 1, 2]] {
            assert!(LocationCode::decode(bad, 0).is_err(), "{bad:?}");
        }
        assert_eq!(LocationCode::encode_section(&locations[1..2]), None);
    }

    #[test]
    fn the_metadatas_bytes_do_not_have_it_and_json_does() {
        let without = LocationInfo::new(1, "a", "");
        let with = LocationInfo { code: Some(LocationCode::default()), ..without.clone() };
        assert_eq!(postcard::to_allocvec(&with), postcard::to_allocvec(&without));
        let bytes = postcard::to_allocvec(&with).unwrap();
        assert_eq!(postcard::from_bytes::<LocationInfo>(&bytes).unwrap(), without);
    }
}
