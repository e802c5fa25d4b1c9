//! Each lane's own sequence of locations.
//!
//! The device chooses the order in which diverged groups of a warp run, so two devices may record different
//! event streams for one program. The sequence of locations of a single lane is the same everywhere if the
//! kernel is deterministic. Tests compare it between simulator, GPU and CPU reference.

use warptrace_format::Event;

use crate::error::DecodeError;
use crate::file::TraceFile;

/// Length and digest of one lane's sequence of locations: 64-bit FNV-1a (Fowler, Noll, Vo) over the two bytes
/// of each location, lowest first. Does not protect against tampering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneDigest {
    /// Number of locations in the sequence.
    pub length: u64,
    /// FNV-1a of the sequence.
    pub hash: u64,
}

impl Default for LaneDigest {
    fn default() -> Self {
        Self { length: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }
}

impl LaneDigest {
    /// Appends a location.
    #[inline]
    pub fn push(&mut self, location: u16) {
        self.length += 1;
        for byte in location.to_le_bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the digest of a sequence.
    pub fn new(locations: impl IntoIterator<Item = u16>) -> Self {
        let mut digest = Self::default();
        locations.into_iter().for_each(|location| digest.push(location));
        digest
    }
}

/// The digests of a warp's 32 lanes.
///
/// ```
/// use warptrace_decoder::lanes::{LaneDigest, LaneDigests};
/// use warptrace_format::Event;
/// // Lane 0 goes 1, 2; lane 1 goes 1, 3. The device may run the branches in either order.
/// let [a, b, c] = [(1, 0b11), (2, 0b01), (3, 0b10)].map(|(location, mask)| Event { location, mask });
/// let one: LaneDigests = [a, b, c].into_iter().collect();
/// let other: LaneDigests = [a, c, b].into_iter().collect();
/// assert_eq!(one, other);
/// assert_eq!(one.lane(1), LaneDigest::new([1, 3]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneDigests {
    lanes: [LaneDigest; 32],
}

impl LaneDigests {
    /// Appends the event's location to the sequence of each lane in its mask.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let mut mask = event.mask;
        while mask != 0 {
            self.lanes[mask.trailing_zeros() as usize].push(event.location);
            mask &= mask - 1;
        }
    }

    /// Returns the digest of lane `lane`. Panics if `lane` is 32 or more.
    pub const fn lane(&self, lane: usize) -> LaneDigest {
        self.lanes[lane]
    }

    /// Returns the digests of lanes 0 to 31.
    pub const fn lanes(&self) -> &[LaneDigest; 32] {
        &self.lanes
    }
}

impl Extend<Event> for LaneDigests {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl FromIterator<Event> for LaneDigests {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut digests = Self::default();
        digests.extend(events);
        digests
    }
}

impl TraceFile {
    /// Returns the locations of one lane of a warp, in order, up to the first error. Fails as
    /// [`TraceFile::decode_warp`]. Panics if `lane` is 32 or more.
    pub fn lane_locations(
        &self,
        launch: u32,
        warp: u32,
        track: u32,
        lane: u32,
    ) -> Result<impl Iterator<Item = Result<u16, DecodeError>>, DecodeError> {
        assert!(lane < 32, "lane {lane}: a warp has lanes 0 to 31");
        let events = self.decode_warp(launch, warp, track)?;
        let of_lane =
            events.filter(move |event| event.as_ref().map_or(true, |event| event.mask >> lane & 1 == 1));
        Ok(of_lane.map(|event| Ok(event?.location)))
    }

    /// Returns the digests of all lanes of a warp. Fails like [`TraceFile::decode_warp`] and its iterator.
    pub fn lane_digests(&self, launch: u32, warp: u32, track: u32) -> Result<LaneDigests, DecodeError> {
        self.decode_warp(launch, warp, track)?.collect()
    }
}
