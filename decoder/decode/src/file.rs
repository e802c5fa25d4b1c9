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

/// How much of a file is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completeness {
    /// The file was finished, and its index is sound.
    #[default]
    Complete,
    /// Only the first `valid_bytes` bytes hold sections that can be read.
    Prefix {
        /// Bytes up to the end of the last whole section.
        valid_bytes: u64,
        /// Why there are no more.
        reason: PrefixReason,
    },
}

/// Why only a prefix of a file can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixReason {
    /// The file ends where a section ends, but has no index: the recording was interrupted.
    Unfinished,
    /// The file ends inside a section.
    CutShort {
        /// The section's tag; `None` when the file ends inside its header.
        section: Option<Tag>,
        /// File offset at which the section begins.
        offset: u64,
        /// Bytes of the section, or of its header, that are missing.
        missing: u64,
    },
    /// A section is damaged, and what follows it cannot be trusted.
    Damaged(FormatError),
    /// Every section before the index is there, but the index is damaged; it was made anew.
    IndexDamaged(FormatError),
    /// The file goes on after its end.
    TrailingBytes {
        /// File offset of the first byte too many.
        offset: u64,
        /// Number of them.
        bytes: u64,
    },
}

impl Completeness {
    /// Says what of the trace cannot be read; `None` if all of it can, also where other bytes are behind it.
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

/// Totals of one launch and track, as the index gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// Chunks.
    pub chunks: u64,
    /// Events.
    pub events: u64,
    /// Bytes of the frames in the file.
    pub file_bytes: u64,
}

/// Sections of one launch and track.
#[derive(Debug, Default)]
pub(crate) struct TrackSections {
    /// Sorted by first warp, then by offset.
    pub(crate) frames: Vec<IndexEntry>,
    /// Sorted by first warp, then by offset.
    pub(crate) accounts: Vec<IndexEntry>,
}

/// Sections that belong nowhere: how many, and where the first one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stray {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

/// What is wrong with a section without which the file opens.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    pub(crate) kind: SectionKind,
    pub(crate) error: FormatError,
}

/// The kinds of sections about addresses and values.
pub(crate) const DATA_KINDS: [SectionKind; 4] =
    [SectionKind::Sites, SectionKind::Data, SectionKind::DataAccounts, SectionKind::Buffers];

/// Whether sections of a kind are about addresses and values.
pub(crate) fn is_of_data(kind: SectionKind) -> bool {
    DATA_KINDS.contains(&kind)
}

/// A text that a file keeps under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptText {
    /// There is none.
    None,
    /// There is one, which is longer than was asked for.
    TooLong,
    /// The text.
    Whole(SourceText),
}

/// An open `.wtrc` file. Shared references may be used from several threads.
pub struct TraceFile {
    pub(crate) source: Box<dyn ByteSource>,
    pub(crate) length: u64,
    pub(crate) metadata: Metadata,
    pub(crate) launches: BTreeMap<u32, LaunchInfo>,
    pub(crate) early_ends: BTreeMap<u32, EarlyEnd>,
    pub(crate) sections: BTreeMap<(u32, u32), TrackSections>,
    /// Sections of texts.
    pub(crate) texts: Vec<IndexEntry>,
    /// When launches ran by the host's clocks.
    pub(crate) host: Host,
    /// Sections of times that belong to no section before them.
    pub(crate) strays: BTreeMap<SectionKind, Stray>,
    /// Whether there are sites, or sections of addresses and values.
    pub(crate) has_accesses: bool,
    /// By number.
    pub(crate) sites: BTreeMap<u16, SiteInfo>,
    /// Of these, which follow from which.
    pub(crate) followers: Followers,
    /// Memory that kernels could reach; `None` if the file does not say.
    pub(crate) buffers: Option<KnownBuffers>,
    /// What the program called its launches.
    pub(crate) labels: KnownLabels,
    /// Call stacks of launches.
    pub(crate) stacks: KnownStacks,
    /// Launches that were not recorded: one for each kernel and reason, those with the most launches first.
    pub(crate) unrecorded: Unrecorded,
    /// By number of the kernel, whether it has launches that were asked for and not traced.
    pub(crate) untraced_kernels: OnceLock<Vec<bool>>,
    /// What is wrong with sections besides frames and accounts that cannot be read.
    pub(crate) damage: Vec<Damage>,
    pub(crate) completeness: Completeness,
    pub(crate) work: Work,
    /// Found out when it is asked for first.
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
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The system's error; a preamble or metadata that cannot be read; a section that needs a newer build. A
    /// file whose later parts are missing or damaged opens: ask [`TraceFile::completeness`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let failed = |source| OpenError::File { path: path.to_path_buf(), source };
        // Asked before, since opening a pipe waits for who writes it.
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

    /// Opens a trace from any source of bytes.
    ///
    /// # Errors
    /// As [`TraceFile::open`].
    pub fn from_source(source: Box<dyn ByteSource>) -> Result<Self, OpenError> {
        open::open(source)
    }

    /// Opens a trace in memory.
    ///
    /// # Errors
    /// As [`TraceFile::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::from_source(Box::new(bytes))
    }

    /// Opens a trace from a seekable reader, which one thread at a time then reads.
    ///
    /// # Errors
    /// As [`TraceFile::open`].
    pub fn from_reader(reader: impl Read + Seek + Send + 'static) -> Result<Self, OpenError> {
        Self::from_source(Box::new(SeekSource::new(reader)))
    }

    /// Lifts the limit on work: by default a file may ask for 2^28 steps and 2^11 for each of its bytes in
    /// all walks together, a step being an event of `raw` and `ecl`, or of `predict` where it is expanded;
    /// else those of a chunk of `predict` are at most 64 for each byte of its payload. A byte of accounts
    /// takes 4, warps with one account 16, a warp whose account is looked at for itself 16, and 512 if it is
    /// given a row or a mark. Reads of single warps are not counted. Lifts the limit of
    /// [`limited`](Self::limited) outputs, too.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.work = Work::unlimited();
        self
    }

    /// Counts the work from here on anew: for a program that keeps the trace open, whose every request has
    /// the limit of [`unlimited`](Self::unlimited) for itself.
    pub fn renew_work(&self) {
        self.work.renew();
    }

    /// What was recorded, where and how.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The launches, in order of their numbers.
    pub fn launches(&self) -> impl ExactSizeIterator<Item = &LaunchInfo> {
        self.launches.values()
    }

    /// The launch with this number.
    pub fn launch(&self, number: u32) -> Option<&LaunchInfo> {
        self.launches.get(&number)
    }

    /// What the program called a launch, as it may be shown; `None` if it did not name it.
    pub fn label(&self, launch: u32) -> Option<&str> {
        self.labels.label_of(launch)
    }

    /// Returns the call stack of the thread that made a launch, innermost frame first; nothing if the file has
    /// none.
    pub fn stack(&self, launch: u32) -> impl Iterator<Item = &StackFrame> {
        self.stacks.of(launch)
    }

    /// Returns the number of a launch's call stack. Launches with equal stacks have one number.
    pub fn stack_number(&self, launch: u32) -> Option<u32> {
        self.stacks.number_of(launch)
    }

    /// Returns the line of the program that made a launch: the innermost frame of its call stack that is
    /// neither in an installed package nor in generated code. If all are, the innermost frame.
    pub fn launch_site(&self, launch: u32) -> Option<&StackFrame> {
        self.stack(launch).find(|frame| !frame.is_of_library()).or_else(|| self.stack(launch).next())
    }

    /// Which launches were not recorded, and notes on what was, as they may be shown. Each kernel and reason is
    /// there once, those with the most launches first.
    pub const fn unrecorded(&self) -> &Unrecorded {
        &self.unrecorded
    }

    /// Whether the file is whole, and how far it goes if it is not.
    pub const fn completeness(&self) -> &Completeness {
        &self.completeness
    }

    /// Length of the file in bytes when it was opened.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Totals of a launch and track; zeros where there is nothing. Of the [data track](Self::data_track)
    /// chunks are entries, and events accesses.
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

    /// Frames of a launch and track, sorted by first warp.
    pub(crate) fn frames(&self, launch: u32, track: u32) -> &[IndexEntry] {
        self.sections.get(&(launch, track)).map_or(&[], |sections| &sections.frames)
    }

    /// Accounting sections of a launch and track, sorted by first warp.
    pub(crate) fn account_sections(&self, launch: u32, track: u32) -> &[IndexEntry] {
        self.sections.get(&(launch, track)).map_or(&[], |sections| &sections.accounts)
    }

    /// The launch and the codec of a track, or why there is none.
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

    /// Reads the header of the section at an offset.
    pub(crate) fn header_at(&self, offset: u64) -> Result<SectionHeader, DecodeError> {
        let mut header = [0; SECTION_HEADER_BYTES];
        self.source
            .read_exact_at(&mut header, offset)
            .map_err(|source| DecodeError::Io { offset, source })?;
        Ok(SectionHeader::parse(&header, offset)?)
    }

    /// Reads the body of a section that the index lists, or that stands behind such a one.
    pub(crate) fn load_body(&self, entry: &IndexEntry) -> Result<Vec<u8>, DecodeError> {
        Ok(self.load_section(entry)?.1)
    }

    /// Like [`load_body`](Self::load_body), with the version of the section.
    fn load_section(&self, entry: &IndexEntry) -> Result<(u16, Vec<u8>), DecodeError> {
        let offset = entry.offset;
        // The length was checked against the format's limit and the file's length when the index was read.
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

    /// Reads the text that the file keeps under a name, which locations give for their file. Of several under
    /// one name the last one counts.
    ///
    /// # Errors
    /// If the file cannot be read, one of its texts is damaged, or they take more work than its length lets
    /// expect.
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

    /// Reads a text for its errors.
    pub(crate) fn check_text(&self, entry: &IndexEntry) -> Result<(), DecodeError> {
        let body = self.load_body(entry)?;
        let at = entry.offset.saturating_add(SECTION_HEADER_BYTES as u64);
        self.work.spend_text(SourceText::decode_head(&body, at)?.1)?;
        SourceText::decode(&body, at)?;
        Ok(())
    }

    /// Reads a frame and compares it with the index.
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

    /// Reads an accounting section and compares it with the index.
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
