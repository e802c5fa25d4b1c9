//! Host, device and rank of a recording: the `ORIG` section.
//!
//! The body is an [`Origin`] in the metadata's encoding. The section is optional, and not in the index.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::limits::{MAX_ORIGIN_NOTES, MAX_ORIGIN_TEXT_BYTES};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "ORIG";

/// Host, device, rank and start of a recording. Unknown fields are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the job, from its launcher.
    pub job: Option<String>,
    /// Source of the ranks: `torchrun`, `Open MPI`, `PMI` or `Slurm`.
    pub launcher: Option<String>,
    /// Number of the process in the job, from 0.
    pub rank: Option<u32>,
    /// Number of processes in the job.
    pub ranks: Option<u32>,
    /// Number of the process among the job's processes on its host, from 0.
    pub local_rank: Option<u32>,
    /// Name of the host.
    pub host: Option<String>,
    /// Process id on the host.
    pub process: Option<u32>,
    /// Number of the device among those visible to the process, from 0.
    pub device: Option<u32>,
    /// UUID of the device, as `nvidia-smi -L` prints it: `GPU-…`, or `MIG-…` for a part of a GPU.
    pub device_uuid: Option<String>,
    /// Start of the recording.
    pub began: Option<Began>,
    /// Problems that the recorder found in the other fields, in sentences; at most [`MAX_ORIGIN_NOTES`].
    #[serde(deserialize_with = "bounded::<_, _, MAX_ORIGIN_NOTES>")]
    pub notes: Vec<String>,
}

/// A point in time on two clocks of the host, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// Real-time clock (`CLOCK_REALTIME`), since 1970-01-01 UTC.
    pub realtime_ns: u64,
    /// Monotonic clock (`CLOCK_MONOTONIC`), since an arbitrary time, common to a host's processes.
    pub monotonic_ns: u64,
    /// Maximum distance between the two readings.
    pub error_ns: u64,
}

impl Origin {
    /// Returns all texts.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { job, launcher, host, device_uuid, notes, .. } = self;
        [job, launcher, host, device_uuid].into_iter().flatten().chain(notes)
    }

    /// Encodes the section, header and body. Cuts long texts, and more than [`MAX_ORIGIN_NOTES`] notes.
    pub fn encode_section(&self) -> Vec<u8> {
        let mut fitting = self.clone();
        fitting.notes.truncate(MAX_ORIGIN_NOTES);
        for text in fitting.texts_mut() {
            text.truncate(text.floor_char_boundary(MAX_ORIGIN_TEXT_BYTES));
        }
        let body = postcard::to_allocvec(&fitting).expect("strings, integers and options");
        encode_section(SectionKind::Origin, &body)
    }

    /// Decodes the body of a section at file offset `at`. Rejects a text over [`MAX_ORIGIN_TEXT_BYTES`], too
    /// many notes, and a rank that is not below the number of ranks.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
        let mut found: Self = decode_body((SECTION, "origin"), body, at)?;
        if let Some(long) = found.texts_mut().find(|text| text.len() > MAX_ORIGIN_TEXT_BYTES) {
            let found = long.len();
            return Err(contents(format!(
                "a text of {found} bytes, over the limit of {MAX_ORIGIN_TEXT_BYTES}"
            )));
        }
        if let (Some(rank), Some(ranks)) = (found.rank, found.ranks)
            && rank >= ranks
        {
            return Err(contents(format!("rank {rank} of {ranks}: ranks are numbered from 0")));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    fn origin() -> Origin {
        Origin {
            job: Some("j".into()),
            launcher: Some("Slurm".into()),
            rank: Some(300),
            ranks: Some(512),
            local_rank: None,
            host: Some("h".into()),
            process: Some(7),
            device: Some(0),
            device_uuid: None,
            began: Some(Began { realtime_ns: 1, monotonic_ns: 2, error_ns: 128 }),
            notes: vec!["n".into()],
        }
    }

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let section = origin().encode_section();
        assert_eq!(&section[..8], b"ORIG\x01\x00\x01\x00");
        let body = &section[SECTION_HEADER_BYTES..];
        let mut expected = vec![1, 1, b'j', 1, 5];
        expected.extend(b"Slurm");
        expected.extend([1, 0xac, 2, 1, 0x80, 4, 0, 1, 1, b'h', 1, 7, 1, 0, 0, 1, 1, 2, 0x80, 1, 1, 1, b'n']);
        assert_eq!(body, expected);
        assert_eq!(Origin::decode(body, 0).unwrap(), origin());
        for length in 0..body.len() {
            assert!(Origin::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(Origin::decode(&[body, &[0]].concat(), 0).is_err(), "a byte follows");
    }

    #[test]
    fn what_is_too_long_is_cut_by_writers_and_refused_by_readers() {
        let long = "é".repeat(MAX_ORIGIN_TEXT_BYTES);
        let many = vec![long.clone(); MAX_ORIGIN_NOTES + 1];
        let all = Origin { host: Some(long.clone()), notes: many.clone(), ..origin() };
        let read = Origin::decode(&all.encode_section()[SECTION_HEADER_BYTES..], 0).unwrap();
        assert_eq!((read.host.unwrap().len(), read.notes.len()), (MAX_ORIGIN_TEXT_BYTES, MAX_ORIGIN_NOTES));
        for (bad, said) in [
            (Origin { job: Some(long), ..origin() }, "a text of 2048 bytes"),
            (Origin { notes: many, ..origin() }, "cannot be decoded"),
            (Origin { rank: Some(512), ..origin() }, "rank 512 of 512"),
        ] {
            let error = Origin::decode(&postcard::to_allocvec(&bad).unwrap(), 0).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
