//! Times of launches on the host's clocks, and their relation to the device's timer: the `HOST` section.
//!
//! ```text
//! offset  size  field
//!      0     4  launches      at most 65536
//!      4     4  readings      at most 64; at least one launch or reading
//!      8     4  plain bytes   of the contents before compression, at most 24 a launch, 40 a reading and 1024
//!     12     1  compression   0 none, 1 zstd
//!     13     3  zero
//!     16     …  contents, compressed or not: consecutive columns
//! ```
//!
//! ```text
//! launch       for each launch, 32 bits: its number, minus the previous one (0 for the first), zigzag
//! begin        for each launch, 64 bits: the real-time clock when it was submitted to the device, minus the
//!              previous one (0 for the first), zigzag
//! nanoseconds  for each launch, 64 bits: time until its end was observed, plus 1; 0 if unknown
//! realtime     for each reading, 64 bits: the real-time clock
//! monotonic    for each reading, 64 bits: the monotonic clock
//! timer        for each reading, 64 bits: the device's global timer; 0 if it was not read
//! width        for each reading, 64 bits: its duration, from before to after the read of the timer
//! ```
//!
//! Differences are modulo 2^32 or 2^64. Times are in nanoseconds.

use warptrace_columns::Element;

use super::contents::{Contents, encode_contents, put};
use super::error::FormatError;
use super::fields::Fields;
use super::frame::Compression;
use super::limits::{MAX_HOST_LAUNCHES, MAX_HOST_READINGS};
use super::section::SectionKind;

const SECTION: &str = "HOST";
/// Maximum bytes of a launch, of a reading, and of all columns' headers, before compression.
const LAUNCH_BYTES: u32 = 24;
const READING_BYTES: u32 = 40;
const COLUMN_BYTES: u32 = 1024;

/// Times of a launch on the host's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLaunch {
    /// Number of the launch.
    pub launch: u32,
    /// Real-time clock when the launch was submitted to the device, in nanoseconds since 1970-01-01 UTC.
    pub begin: u64,
    /// Time from there until its end was observed, by the monotonic clock; `None` if not observed.
    pub nanoseconds: Option<u64>,
}

/// A reading of the host's clocks and the device's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Real-time clock, in nanoseconds since 1970-01-01 UTC.
    pub realtime: u64,
    /// Monotonic clock, in nanoseconds.
    pub monotonic: u64,
    /// Global timer of the device, in nanoseconds, never 0; `None` if it was not read.
    pub timer: Option<u64>,
    /// Duration of the reading, in nanoseconds. The host's clocks are in its middle, at most half of it off.
    pub width: u64,
}

/// Contents of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTimes {
    /// Launches, each at most once.
    pub launches: Vec<HostLaunch>,
    /// Readings of the clocks, in order.
    pub readings: Vec<ClockReading>,
}

impl HostTimes {
    /// Returns true if there are no launches and no readings.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty() && self.readings.is_empty()
    }

    /// Encodes the section, header and body. Fails without launches and readings, and for too many of them.
    pub fn encode_section(&self, compression: Compression) -> Result<Vec<u8>, FormatError> {
        let Self { launches, readings } = self;
        let most = |field, offset, value: usize, limit: u32| {
            let count = u32::try_from(value).ok().filter(|count| *count <= limit);
            count.ok_or_else(|| FormatError::too_large(SECTION, field, offset, value as u64, limit))
        };
        let counts = [
            most("launches", 0, launches.len(), MAX_HOST_LAUNCHES)?,
            most("readings", 4, readings.len(), MAX_HOST_READINGS)?,
        ];
        if self.is_empty() {
            return Err(nothing(0));
        }
        let (mut last, mut numbers, mut begins, mut lengths) = ((0u32, 0u64), vec![], vec![], vec![]);
        for &HostLaunch { launch, begin, nanoseconds } in launches {
            numbers.push(launch.wrapping_sub(last.0).zigzag());
            begins.push(begin.wrapping_sub(last.1).zigzag());
            lengths.push(nanoseconds.map_or(0, |nanoseconds| nanoseconds.saturating_add(1)));
            last = (launch, begin);
        }
        let of_readings = |value: fn(&ClockReading) -> u64| readings.iter().map(value).collect::<Vec<u64>>();
        let mut plain = Vec::new();
        put(&numbers, 0, compression, &mut plain);
        let columns = [
            begins,
            lengths,
            of_readings(|reading| reading.realtime),
            of_readings(|reading| reading.monotonic),
            of_readings(|reading| reading.timer.unwrap_or(0)),
            of_readings(|reading| reading.width),
        ];
        columns.iter().for_each(|column| put(column, 0, compression, &mut plain));
        let fixed = counts.map(u32::to_le_bytes);
        encode_contents(SectionKind::Host, fixed.as_flattened(), &plain, compression)
    }

    /// Decodes the body of a section at file offset `at`, in a file of `launches` launches. Rejects contents
    /// that do not decompress as announced, and columns that are invalid or contradict each other.
    pub fn decode(body: &[u8], at: u64, launches: usize) -> Result<Self, FormatError> {
        let mut fields = Fields::new(SECTION, body, at);
        let count = fields.u32("launches")?;
        let most = MAX_HOST_LAUNCHES.min(u32::try_from(launches).unwrap_or(u32::MAX));
        fields.limit("launches", 4, count.into(), most.into())?;
        let readings = fields.u32("readings")?;
        fields.limit("readings", 4, readings.into(), MAX_HOST_READINGS.into())?;
        if count == 0 && readings == 0 {
            return Err(nothing(at));
        }
        // At most 24 * 2^16 plus a small constant.
        let contents =
            Contents::read(SECTION, fields, LAUNCH_BYTES * count + READING_BYTES * readings + COLUMN_BYTES)?;
        let (count, readings) = (count as usize, readings as usize);
        let mut columns = contents.columns();
        let numbers: Vec<u32> = columns.next("launch", count..=count)?;
        let begins: Vec<u64> = columns.next("begin", count..=count)?;
        let lengths: Vec<u64> = columns.next("nanoseconds", count..=count)?;
        let mut of_readings = |name| columns.next::<u64>(name, readings..=readings);
        let (realtime, monotonic) = (of_readings("realtime")?, of_readings("monotonic")?);
        let (timer, width) = (of_readings("timer")?, of_readings("width")?);
        columns.end()?;
        let mut last = (0u32, 0u64);
        let launches =
            numbers.into_iter().zip(begins.into_iter().zip(lengths)).map(|(number, (begin, length))| {
                last = (last.0.wrapping_add(number.unzigzag()), last.1.wrapping_add(begin.unzigzag()));
                HostLaunch { launch: last.0, begin: last.1, nanoseconds: length.checked_sub(1) }
            });
        let host = realtime.into_iter().zip(monotonic);
        let readings =
            host.zip(timer.into_iter().zip(width)).map(|((realtime, monotonic), (timer, width))| {
                ClockReading { realtime, monotonic, timer: Some(timer).filter(|timer| *timer != 0), width }
            });
        Ok(Self { launches: launches.collect(), readings: readings.collect() })
    }
}

fn nothing(at: u64) -> FormatError {
    FormatError::Contents { section: SECTION, offset: at, message: "no launch and no reading".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    const FIXED_BYTES: usize = 16;

    fn times() -> HostTimes {
        let launch = |launch, begin, nanoseconds| HostLaunch { launch, begin, nanoseconds };
        let begin = 1_790_000_000_000_000_000;
        HostTimes {
            launches: vec![
                launch(7, begin + 5, Some(0)),
                launch(3, begin, Some(12_345)),
                launch(u32::MAX, begin + 90, None),
            ],
            readings: vec![
                ClockReading { realtime: begin - 1, monotonic: 17, timer: Some(99), width: 8_000 },
                ClockReading { realtime: begin + 1_000, monotonic: 1_018, timer: None, width: 0 },
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let all = times();
        let HostTimes { launches, readings } = all.clone();
        let readings = HostTimes { launches: Vec::new(), readings };
        let launches = HostTimes { launches, readings: Vec::new() };
        for times in [all, launches, readings] {
            for compression in [Compression::None, Compression::Suited, Compression::Zstd(3)] {
                let section = times.encode_section(compression).unwrap();
                assert_eq!(&section[..8], b"HOST\x01\x00\x01\x00");
                let body = &section[SECTION_HEADER_BYTES..];
                assert_eq!(HostTimes::decode(body, 0, 3).unwrap(), times);
                assert_eq!(HostTimes::decode(body, 0, 2).is_err(), !times.launches.is_empty());
            }
        }
        assert!(HostTimes::default().encode_section(Compression::None).is_err());
    }

    #[test]
    fn damage_is_an_error_or_other_times() {
        let section = times().encode_section(Compression::None).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        for length in 0..body.len() {
            assert!(HostTimes::decode(&body[..length], 9, 3).is_err(), "length {length}");
        }
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut damaged = body.to_vec();
                damaged[at] ^= 1 << bit;
                if let Ok(times) = HostTimes::decode(&damaged, 9, 3) {
                    assert!(times.launches.len() == 3 && times.readings.len() == 2);
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_as_the_page_says() {
        let section = times().encode_section(Compression::None).unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        let plain = (body.len() - FIXED_BYTES) as u8;
        assert_eq!(body[..FIXED_BYTES], [3, 0, 0, 0, 2, 0, 0, 0, plain, 0, 0, 0, 0, 0, 0, 0]);
        let mut source = warptrace_columns::ColumnCursor::new(&body[FIXED_BYTES..]);
        let numbers: Vec<u32> = warptrace_columns::decode(&mut source).unwrap();
        assert_eq!(numbers, [14, 7, 7]);
        let columns: [Vec<u64>; 6] = std::array::from_fn(|_| warptrace_columns::decode(&mut source).unwrap());
        assert_eq!(columns[0][1..], [9, 180]);
        assert_eq!(columns[1], [1, 12_346, 0]);
        assert_eq!(columns[3..], [vec![17, 1_018], vec![99, 0], vec![8_000, 0]]);
        assert!(source.rest().is_empty());
    }
}
