//! An open trace.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::OnceLock;

use warptrace_format::file::{
    Accounts, EarlyEnd, FormatError, Frame, IndexEntry, KnownLabels, KnownStacks, LaunchInfo, Metadata,
    SECTION_HEADER_BYTES, SectionHeader, SectionKind, SiteInfo, SourceText, StackFrame, Tag, Unrecorded,
    check_body, decode_accounts,
};
use warptrace_format::{shown, shown_lines};

use crate::buffers::KnownBuffers;
use crate::derived::Followers;
use crate::error::{DecodeError, OpenError};
use crate::host::Host;
use crate::open;
use crate::source::{ByteSource, SeekSource};
use crate::state::FileState;
use crate::work::Work;

/// Completeness of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completeness {
    /// The file was finished, and its index is sound.
    #[default]
    Complete,
    /// Only the first `valid_bytes` bytes hold readable sections.
    Prefix {
        /// Bytes up to the end of the last whole section. With [`IndexDamaged`](PrefixReason::IndexDamaged),
        /// up to the index; with [`TrailingBytes`](PrefixReason::TrailingBytes), up to the trailer.
        valid_bytes: u64,
        /// Why reading ends there.
        reason: PrefixReason,
    },
}

/// The reason why only a prefix of a file can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixReason {
    /// The file ends after a section, without a trailer: the recording was interrupted or has not ended yet.
    Unfinished,
    /// The file ends inside a section.
    CutShort {
        /// The section's tag; `None` if the file ends inside the section's header.
        section: Option<Tag>,
        /// File offset of the section.
        offset: u64,
        /// Missing bytes of the section, or of its header.
        missing: u64,
    },
    /// A section is damaged, and the bytes after it cannot be trusted.
    Damaged(FormatError),
    /// Every section before the index is present, but the index is damaged. The reader rebuilt it.
    IndexDamaged(FormatError),
    /// The file has bytes after its trailer.
    TrailingBytes {
        /// File offset of the first excess byte.
        offset: u64,
        /// Number of excess bytes.
        bytes: u64,
    },
}

impl Completeness {
    /// Describes how much of the file can be read, and why not more; also a rebuilt index, although nothing
    /// is missing. `None` if the file is complete, or if only other bytes follow it.
    pub fn cut_off(&self) -> Option<String> {
        match self {
            Self::Complete | Self::Prefix { reason: PrefixReason::TrailingBytes { .. }, .. } => None,
            Self::Prefix { .. } => Some(self.to_string()),
        }
    }
}

impl fmt::Display for Completeness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => out.write_str("complete"),
            Self::Prefix { reason: reason @ PrefixReason::TrailingBytes { .. }, .. } => reason.fmt(out),
            Self::Prefix { valid_bytes, reason } => {
                write!(out, "only the first {valid_bytes} bytes can be read: {reason}")
            }
        }
    }
}

impl fmt::Display for PrefixReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished => out.write_str("the recording was not finished (no index at the end)"),
            Self::CutShort { section: Some(tag), offset, missing } => {
                write!(out, "the file ends inside section {tag} at offset {offset}, {missing} bytes short")
            }
            Self::CutShort { section: None, offset, missing } => {
                write!(out, "the file ends inside a section header at offset {offset}, {missing} bytes short")
            }
            Self::Damaged(error) => write!(out, "{error}"),
            Self::IndexDamaged(error) => write!(out, "the index was rebuilt, because: {error}"),
            Self::TrailingBytes { offset, bytes } => {
                let (word, are) = if *bytes == 1 { ("byte", "is") } else { ("bytes", "are") };
                write!(
                    out,
                    "{bytes} {word} behind the end of the trace, from offset {offset} on, that {are} no part of it"
                )
            }
        }
    }
}

/// Totals of one launch and track, from the index or from the headers of sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Number of frames.
    pub frames: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of events.
    pub events: u64,
    /// Bytes of the frames in the file, without sections of times.
    pub file_bytes: u64,
}

/// Sections of one launch and track, sorted by first warp, then by offset.
#[derive(Debug, Default)]
pub(crate) struct TrackSections {
    pub(crate) frames: Vec<IndexEntry>,
    pub(crate) accounts: Vec<IndexEntry>,
}

/// Number of misplaced sections of a kind, and offset of the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stray {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

/// The error of a section that opening does not need.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    pub(crate) kind: SectionKind,
    pub(crate) error: FormatError,
}

pub(crate) const DATA_KINDS: [SectionKind; 4] =
    [SectionKind::Sites, SectionKind::Data, SectionKind::DataAccounts, SectionKind::Buffers];

pub(crate) fn is_of_data(kind: SectionKind) -> bool {
    DATA_KINDS.contains(&kind)
}

/// A source text in the file, looked up by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptText {
    /// The file has no text with this name.
    None,
    /// The text is longer than the requested maximum.
    TooLong,
    /// The text.
    Whole(SourceText),
}

/// An open `.wtrc` file. Several threads may share a reference to it.
pub struct TraceFile {
    pub(crate) source: Box<dyn ByteSource>,
    pub(crate) length: u64,
    pub(crate) metadata: Metadata,
    pub(crate) launches: BTreeMap<u32, LaunchInfo>,
    pub(crate) early_ends: BTreeMap<u32, EarlyEnd>,
    pub(crate) sections: BTreeMap<(u32, u32), TrackSections>,
    pub(crate) texts: Vec<IndexEntry>,
    pub(crate) host: Host,
    /// Sections of times that belong to no section before them.
    pub(crate) strays: BTreeMap<SectionKind, Stray>,
    pub(crate) has_accesses: bool,
    pub(crate) sites: BTreeMap<u16, SiteInfo>,
    pub(crate) followers: Followers,
    pub(crate) buffers: Option<KnownBuffers>,
    pub(crate) labels: KnownLabels,
    pub(crate) stacks: KnownStacks,
    pub(crate) unrecorded: Unrecorded,
    /// For each kernel, whether launches of it were requested but not traced. Computed on the first request.
    pub(crate) untraced_kernels: OnceLock<Vec<bool>>,
    /// Errors of sections that no index lists: the first 8 of addresses and values, the first of other kinds.
    pub(crate) damage: Vec<Damage>,
    pub(crate) completeness: Completeness,
    pub(crate) work: Work,
    /// Computed on the first request.
    pub(crate) state: OnceLock<FileState>,
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TraceFile")
            .field("length", &self.length)
            .field("launches", &self.launches.len())
            .field("completeness", &self.completeness)
            .finish_non_exhaustive()
    }
}

impl TraceFile {
    /// Opens the file at `path`, also if later parts are missing or damaged: see [`TraceFile::completeness`].
    /// Fails with the system's error, at an unreadable preamble or metadata, or if a section is too new.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let failed = |source| OpenError::File { path: path.to_path_buf(), source };
        // Checked first, because opening a pipe blocks until a writer opens it.
        let kind = fs::metadata(path).map_err(failed)?.file_type();
        if kind.is_dir() {
            return Err(OpenError::Folder { path: path.to_path_buf() });
        }
        if !kind.is_file() {
            return Err(OpenError::NoFile { path: path.to_path_buf() });
        }
        let file = File::open(path).map_err(failed)?;
        Self::from_source(Box::new(file))
    }

    /// Opens a trace from any source of bytes. Errors: as for [`TraceFile::open`].
    pub fn from_source(source: Box<dyn ByteSource>) -> Result<Self, OpenError> {
        open::open(source)
    }

    /// Opens a trace in memory. Errors: as for [`TraceFile::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::from_source(Box::new(bytes))
    }

    /// Opens a trace from a seekable reader, which one thread at a time reads. Fails as [`TraceFile::open`].
    pub fn from_reader(reader: impl Read + Seek + Send + 'static) -> Result<Self, OpenError> {
        Self::from_source(Box::new(SeekSource::new(reader)))
    }

    /// Removes the limits on work and on [`limited`](Self::limited) output. By default, all reads of a file
    /// together may take 2^28 steps plus 2^11 for each byte of the file. A step is one event of `raw`, `ecl`
    /// or expanded `predict`. A chunk of `predict` that is not expanded takes at most 64 for each byte of its
    /// payload, a byte of accounts 4, a group of warps with one account 16, a warp visited separately 16, and
    /// a warp with its own row or mark 512. Times, spans, source texts, addresses and values also take steps.
    /// The events of [single warps](Self::decode_warp) are not counted.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.work = Work::unlimited();
        self
    }

    /// Resets the counts of work and output. A program that keeps the trace open calls it for each request.
    pub fn renew_work(&self) {
        self.work.renew();
    }

    /// Returns the description of the recording: tool, device, kernels, locations.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the launches, in order of their numbers.
    pub fn launches(&self) -> impl ExactSizeIterator<Item = &LaunchInfo> {
        self.launches.values()
    }

    /// Returns the launch with this number.
    pub fn launch(&self, number: u32) -> Option<&LaunchInfo> {
        self.launches.get(&number)
    }

    /// Returns the program's label of a launch, escaped for display; `None` if it has no label.
    pub fn label(&self, launch: u32) -> Option<&str> {
        self.labels.label_of(launch)
    }

    /// Returns the call stack of a launch's thread, innermost frame first; empty if the file has none.
    pub fn stack(&self, launch: u32) -> impl Iterator<Item = &StackFrame> {
        self.stacks.of(launch)
    }

    /// Returns the number of a launch's call stack. Launches with equal stacks have one number.
    pub fn stack_number(&self, launch: u32) -> Option<u32> {
        self.stacks.number_of(launch)
    }

    /// Returns the line of the program that made a launch: the innermost frame that is in neither an
    /// installed package nor generated code, otherwise the innermost frame.
    pub fn launch_site(&self, launch: u32) -> Option<&StackFrame> {
        self.stack(launch).find(|frame| !frame.is_of_library()).or_else(|| self.stack(launch).next())
    }

    /// Returns the launches that were not recorded, and notes about the recording, escaped for display. Each
    /// kernel and reason has one entry; entries are sorted by descending number of launches.
    pub const fn unrecorded(&self) -> &Unrecorded {
        &self.unrecorded
    }

    /// Returns whether the file is complete, and otherwise how much of it can be read.
    pub const fn completeness(&self) -> &Completeness {
        &self.completeness
    }

    /// Returns the length of the file in bytes at the time of opening.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns the totals of a launch and track; zeros if the file has none. For the
    /// [data track](Self::data_track), `frames` counts sections, `chunks` entries and `events` accesses.
    pub fn totals(&self, launch: u32, track: u32) -> Totals {
        let mut totals = Totals::default();
        for frame in self.frames(launch, track) {
            totals.frames += 1;
            totals.chunks += u64::from(frame.chunks);
            totals.events = totals.events.saturating_add(frame.events);
            totals.file_bytes += frame.length;
        }
        totals
    }

    pub(crate) fn frames(&self, launch: u32, track: u32) -> &[IndexEntry] {
        self.sections.get(&(launch, track)).map_or(&[], |sections| &sections.frames)
    }

    pub(crate) fn account_sections(&self, launch: u32, track: u32) -> &[IndexEntry] {
        self.sections.get(&(launch, track)).map_or(&[], |sections| &sections.accounts)
    }

    pub(crate) fn resolve(
        &self,
        launch: u32,
        track: u32,
    ) -> Result<(&LaunchInfo, warptrace_format::codec::CodecSpec), DecodeError> {
        let info = self.launches.get(&launch).ok_or(DecodeError::UnknownLaunch { launch })?;
        let tracks = self.metadata.tracks.len();
        let codec = self.metadata.tracks.get(track as usize);
        Ok((info, *codec.ok_or(DecodeError::UnknownTrack { track, tracks })?))
    }

    pub(crate) fn header_at(&self, offset: u64) -> Result<SectionHeader, DecodeError> {
        let mut header = [0; SECTION_HEADER_BYTES];
        self.source
            .read_exact_at(&mut header, offset)
            .map_err(|source| DecodeError::Io { offset, source })?;
        Ok(SectionHeader::parse(&header, offset)?)
    }

    /// Reads the body of a section, and checks its kind and checksum.
    pub(crate) fn load_body(&self, entry: &IndexEntry) -> Result<Vec<u8>, DecodeError> {
        Ok(self.load_section(entry)?.1)
    }

    fn load_section(&self, entry: &IndexEntry) -> Result<(u16, Vec<u8>), DecodeError> {
        let offset = entry.offset;
        // Opening checked the length against the limits of the format and the length of the file.
        let mut section = vec![0; usize::try_from(entry.length).unwrap_or(0)];
        self.source
            .read_exact_at(&mut section, offset)
            .map_err(|source| DecodeError::Io { offset, source })?;
        let header = SectionHeader::parse(&section, offset)?;
        if header.kind(offset)? != Some(entry.kind) {
            let (found, expected) = (header.tag.0, entry.kind.tag().0);
            let [found, expected] = [found, expected].map(|tag| u64::from(u32::from_le_bytes(tag)));
            return Err(DecodeError::IndexMismatch {
                section: entry.kind.name(),
                offset,
                field: "tag",
                found,
                expected,
            });
        }
        let body = section.split_off(SECTION_HEADER_BYTES);
        check_body(entry.kind, &header, &body, offset)?;
        Ok((header.version, body))
    }

    /// Reads the text with this name, the name of a file; of several, the last one. Does not unpack a text of
    /// more than `most` bytes. Fails if a text is damaged or cannot be read, or above the work limit.
    pub fn text(&self, name: &str, most: usize) -> Result<KeptText, DecodeError> {
        for entry in self.texts.iter().rev() {
            let body = self.load_body(entry)?;
            let at = entry.offset.saturating_add(SECTION_HEADER_BYTES as u64);
            let (found, bytes) = SourceText::decode_head(&body, at)?;
            if shown(found) != name {
                continue;
            }
            if bytes > most {
                return Ok(KeptText::TooLong);
            }
            self.work.spend_text(bytes)?;
            let SourceText { name, text } = SourceText::decode(&body, at)?;
            let (name, text) = (shown(&name).into_owned(), shown_lines(&text).into_owned());
            return Ok(KeptText::Whole(SourceText { name, text }));
        }
        Ok(KeptText::None)
    }

    pub(crate) fn check_text(&self, entry: &IndexEntry) -> Result<(), DecodeError> {
        let body = self.load_body(entry)?;
        let at = entry.offset.saturating_add(SECTION_HEADER_BYTES as u64);
        self.work.spend_text(SourceText::decode_head(&body, at)?.1)?;
        SourceText::decode(&body, at)?;
        Ok(())
    }

    pub(crate) fn load_frame(&self, entry: &IndexEntry) -> Result<Frame, DecodeError> {
        let (version, body) = self.load_section(entry)?;
        let frame = Frame::decode(version, &body, entry.offset.saturating_add(SECTION_HEADER_BYTES as u64))?;
        let header = frame.header();
        compare(
            entry,
            &[
                ("launch", header.launch.into(), entry.launch.into()),
                ("track", header.track.into(), entry.track.into()),
                ("first warp", header.first_warp.into(), entry.first_warp.into()),
                ("last warp", header.last_warp.into(), entry.last_warp.into()),
                ("chunks", header.chunks.into(), entry.chunks.into()),
                ("events", header.events, entry.events),
            ],
        )?;
        Ok(frame)
    }

    pub(crate) fn load_accounts(&self, entry: &IndexEntry) -> Result<Accounts, DecodeError> {
        let body = self.load_body(entry)?;
        let accounts = decode_accounts(&body, entry.offset.saturating_add(SECTION_HEADER_BYTES as u64))?;
        let header = accounts.header;
        compare(
            entry,
            &[
                ("launch", header.launch.into(), entry.launch.into()),
                ("track", header.track.into(), entry.track.into()),
                ("first warp", header.first_warp.into(), entry.first_warp.into()),
                ("last warp", header.last_warp().into(), entry.last_warp.into()),
            ],
        )?;
        Ok(accounts)
    }
}

pub(crate) fn compare(entry: &IndexEntry, fields: &[(&'static str, u64, u64)]) -> Result<(), DecodeError> {
    for &(field, found, expected) in fields {
        if found != expected {
            let (section, offset) = (entry.kind.name(), entry.offset);
            return Err(DecodeError::IndexMismatch { section, offset, field, found, expected });
        }
    }
    Ok(())
}
