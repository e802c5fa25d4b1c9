//! Events of a warp.

/// Bytes of an event in CUT form: location, then mask, lowest byte first. CUT is the input of the codec `ecl`
/// and the baseline for compression ratios. The codec `raw` uses more.
pub const RAW_EVENT_BYTES: u32 = 5;

/// Lanes of a warp.
pub const LANES: u32 = 32;

/// A location and the lanes that executed it together.
///
/// ```
/// use warptrace_format::Event;
/// let event = Event { location: 3, mask: 0xffff_ffff };
/// assert_eq!(event.cut(), [3, 0xff, 0xff, 0xff, 0xff]);
/// assert_eq!(Event::from_cut(event.cut()), event);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    /// Id of the trace point: 1..=255 for the codec `ecl`, 1..=65,535 for the others. Never 0 in a trace.
    pub location: u16,
    /// Bit *i* is set if lane *i* executed the trace point in this group. Never 0 in a trace.
    pub mask: u32,
}

impl Event {
    /// Returns the event in CUT form, without the location's high byte, which the caller checks.
    #[inline(always)]
    pub const fn cut(self) -> [u8; 5] {
        let mask = self.mask.to_le_bytes();
        [self.location.to_le_bytes()[0], mask[0], mask[1], mask[2], mask[3]]
    }

    /// Returns the event of these bytes. The inverse of [`Event::cut`].
    #[inline(always)]
    pub const fn from_cut(bytes: [u8; 5]) -> Self {
        Self { location: bytes[0] as u16, mask: u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) }
    }
}
