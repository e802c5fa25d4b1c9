//! Opens a trace by its index if the index is sound, otherwise by a scan of all sections.

mod index;
mod late;
mod scan;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::OnceLock;

use warptrace_format::file::data::{DATA_HEADER_BYTES, DataHeader};
use warptrace_format::file::limits::{MAX_EARLY_ENDS, MAX_METADATA_BYTES};
use warptrace_format::file::{
    ACCOUNTS_HEADER_BYTES, AccountsHeader, Additions, EarlyEnd, FRAME_HEADER_BYTES, FormatError, FrameHeader,
    Growing, IndexEntry, LaunchInfo, Metadata, MetadataError, PREAMBLE_BYTES, SECTION_HEADER_BYTES,
    SectionHeader, SectionKind, check_body, check_preamble,
};

use crate::count::count;
use crate::error::OpenError;
use crate::file::{Completeness, Stray, TraceFile, TrackSections};
use crate::shown;
use crate::source::ByteSource;
use crate::times::records;
use crate::work::Work;
use late::LateSections;

pub(crate) fn open(source: Box<dyn ByteSource>) -> Result<TraceFile, OpenError> {
    let length = source.length().map_err(|source| OpenError::Io { offset: 0, source })?;
    let bytes = Bytes { source: &*source, length };
    check_preamble(&bytes.read(0, PREAMBLE_BYTES as u64)?)?;
    let (metadata, metadata_end) = read_metadata(&bytes)?;
    let (contents, completeness) = match index::read(&bytes, metadata.clone(), metadata_end) {
        Ok(contents) => (contents, Completeness::Complete),
        Err(Refusal::Io(error)) => return Err(error),
        Err(Refusal::Unusable(why)) => scan::read(&bytes, metadata, metadata_end, why)?,
    };
    let Contents { metadata, launches, mut early_ends, mut sections, texts, strays, mut late, .. } = contents;
    source.will_read(&late.ranges());
    let mut metadata = metadata.into_metadata();
    let (sites, followers) = late.read_sites(&bytes)?;
    let buffers = late.read_buffers(&bytes)?;
    let labels = late.read_labels(&bytes)?;
    let stacks = late.read_stacks(&bytes)?;
    let unrecorded = late.read_unrecorded(&bytes)?;
    let host = late.read_host(&bytes, &launches)?;
    late.read_origin(&bytes, &mut metadata)?;
    late.read_locations(&bytes, &mut metadata)?;
    shown::metadata(&mut metadata);
    early_ends.values_mut().for_each(shown::early_end);
    for track in sections.values_mut() {
        track.frames.sort_unstable_by_key(|frame| (frame.first_warp, frame.offset));
        track.accounts.sort_unstable_by_key(|section| (section.first_warp, section.offset));
    }
    let data_track = count(metadata.tracks.len());
    let has_accesses = !sites.is_empty() || sections.keys().any(|(_, track)| *track == data_track);
    Ok(TraceFile {
        has_accesses,
        source,
        length,
        metadata,
        launches,
        early_ends,
        sections,
        texts,
        host,
        strays,
        sites,
        followers,
        buffers,
        labels,
        stacks,
        unrecorded,
        untraced_kernels: OnceLock::new(),
        damage: late.damage,
        completeness,
        work: Work::of_bytes(length),
        state: OnceLock::new(),
    })
}

enum Refusal {
    /// The bytes cannot be read. A scan would fail, too.
    Io(OpenError),
    Unusable(FormatError),
}

impl From<FormatError> for Refusal {
    fn from(error: FormatError) -> Self {
        Self::Unusable(error)
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Format(error) => Self::Unusable(error),
            other => Self::Io(other),
        }
    }
}

struct Bytes<'a> {
    source: &'a dyn ByteSource,
    length: u64,
}

impl Bytes<'_> {
    fn read(&self, offset: u64, most: u64) -> Result<Vec<u8>, OpenError> {
        let count = most.min(self.length.saturating_sub(offset));
        let mut buffer = vec![0; usize::try_from(count).unwrap_or(0)];
        self.source.read_exact_at(&mut buffer, offset).map_err(|source| OpenError::Io { offset, source })?;
        Ok(buffer)
    }

    fn header(&self, at: u64) -> Result<SectionHeader, OpenError> {
        Ok(SectionHeader::parse(&self.read(at, SECTION_HEADER_BYTES as u64)?, at)?)
    }

    fn body(&self, kind: SectionKind, header: &SectionHeader, at: u64) -> Result<Vec<u8>, OpenError> {
        let body = self.read(body_offset(at), header.length)?;
        check_body(kind, header, &body, at)?;
        Ok(body)
    }
}

const fn body_offset(section_at: u64) -> u64 {
    section_at.saturating_add(SECTION_HEADER_BYTES as u64)
}

fn read_metadata(bytes: &Bytes<'_>) -> Result<(Growing, u64), OpenError> {
    let at = PREAMBLE_BYTES as u64;
    let header = bytes.header(at)?;
    if header.kind(at)? != Some(SectionKind::Metadata) {
        return Err(unexpected(&header, at, "META, which comes first").into());
    }
    if header.length > MAX_METADATA_BYTES {
        return Err(FormatError::TooLarge {
            section: "META",
            field: "length",
            offset: at + 8,
            value: header.length,
            limit: MAX_METADATA_BYTES,
        }
        .into());
    }
    let body = bytes.body(SectionKind::Metadata, &header, at)?;
    let metadata = Growing::new(Metadata::decode(&body, body_offset(at)).map_err(quoting)?)
        .map_err(|error| contradiction("META", at, &error))?;
    Ok((metadata, at + header.total_bytes()))
}

fn quoting(error: FormatError) -> FormatError {
    match error {
        FormatError::Contents { section, offset, message } => {
            FormatError::Contents { section, offset, message: warptrace_format::shown(&message).into_owned() }
        }
        other => other,
    }
}

fn contradiction(section: &'static str, at: u64, error: &MetadataError) -> FormatError {
    FormatError::Contents {
        section,
        offset: body_offset(at),
        message: warptrace_format::shown(&error.to_string()).into_owned(),
    }
}

fn unexpected(header: &SectionHeader, at: u64, expected: impl Into<Cow<'static, str>>) -> FormatError {
    FormatError::Invalid {
        section: "section header",
        field: "tag",
        offset: at,
        value: u64::from(u32::from_le_bytes(header.tag.0)),
        expected: expected.into(),
    }
}

/// The sections found so far, each checked against the launches before it.
struct Contents {
    metadata: Growing,
    launches: BTreeMap<u32, LaunchInfo>,
    early_ends: BTreeMap<u32, EarlyEnd>,
    sections: BTreeMap<(u32, u32), TrackSections>,
    texts: Vec<IndexEntry>,
    strays: BTreeMap<SectionKind, Stray>,
    /// The kind and offset of the section that must follow the last one.
    awaited: Option<(SectionKind, u64)>,
    late: LateSections,
    count: u32,
}

impl Contents {
    fn new(metadata: Growing) -> Self {
        Self {
            metadata,
            launches: BTreeMap::new(),
            early_ends: BTreeMap::new(),
            sections: BTreeMap::new(),
            texts: Vec::new(),
            strays: BTreeMap::new(),
            awaited: None,
            late: LateSections::default(),
            count: 0,
        }
    }

    /// Adds the section at `at`, reading only what opening needs. Returns the launch that it begins or ends.
    /// Fails if it cannot be read or is not allowed here; only notes errors of addresses and values.
    fn add_section(
        &mut self,
        bytes: &Bytes<'_>,
        kind: SectionKind,
        header: &SectionHeader,
        at: u64,
    ) -> Result<Option<u32>, OpenError> {
        let body_at = body_offset(at);
        match kind {
            SectionKind::Launch => {
                let launch = LaunchInfo::decode(header.version, &bytes.body(kind, header, at)?, body_at)?;
                self.add_launch(launch, at)?;
                return Ok(Some(launch.number()));
            }
            SectionKind::EarlyEnd => {
                let (launch, end) = EarlyEnd::decode(&bytes.body(kind, header, at)?, body_at)?;
                self.add_early_end((launch, end), at)?;
                return Ok(Some(launch));
            }
            SectionKind::Additions => {
                self.count_one(at)?;
                let additions = Additions::decode(&bytes.body(kind, header, at)?, body_at)?;
                self.metadata.add(additions).map_err(|error| contradiction("MORE", at, &error))?;
            }
            SectionKind::Text => self.add_text(at, header.total_bytes())?,
            SectionKind::Frame | SectionKind::Accounts => {
                let entry = entry_of(bytes, kind, header, at)?;
                self.add(entry)?;
            }
            SectionKind::Data | SectionKind::DataAccounts => {
                let entry = self.data_entry(bytes, kind, header, at);
                let added = entry.and_then(|entry| Ok(self.add(entry)?));
                self.late.note_damage(kind, added)?;
            }
            SectionKind::Times | SectionKind::Spans => self.add_times(kind, at),
            SectionKind::Origin
            | SectionKind::Code
            | SectionKind::Waits
            | SectionKind::Labels
            | SectionKind::Stacks
            | SectionKind::Unrecorded
            | SectionKind::Sites
            | SectionKind::Buffers
            | SectionKind::Host => self.late.sections.push((kind, *header, at)),
            _ => {
                return Err(unexpected(
                    header,
                    at,
                    "ORIG, MORE, TEXT, CODE, LABL, STCK, UNTR, SITE, LNCH, FRAM, TIME, ACCT, SPAN, DATA, DACC, BUFS, ENDS, HOST, INDX or TAIL",
                )
                .into());
            }
        }
        Ok(None)
    }

    fn metadata(&self) -> &Metadata {
        self.metadata.metadata()
    }

    fn count_one(&mut self, at: u64) -> Result<(), FormatError> {
        let limit = warptrace_format::file::limits::MAX_INDEXED_SECTIONS;
        if self.count == limit {
            return Err(FormatError::TooLarge {
                section: "file",
                field: "sections that an index lists",
                offset: at,
                value: u64::from(limit) + 1,
                limit: u64::from(limit),
            });
        }
        self.count += 1;
        Ok(())
    }

    fn add_text(&mut self, offset: u64, length: u64) -> Result<(), FormatError> {
        self.count_one(offset)?;
        self.texts.push(bare_entry(SectionKind::Text, offset, length));
        Ok(())
    }

    fn add_launch(&mut self, launch: LaunchInfo, at: u64) -> Result<(), FormatError> {
        self.count_one(at)?;
        let kernels = self.metadata().kernels.len();
        let invalid = |field, value, expected: String| {
            Err(FormatError::Invalid {
                section: "LNCH",
                field,
                offset: body_offset(at),
                value: u64::from(value),
                expected: expected.into(),
            })
        };
        if launch.kernel() as usize >= kernels {
            let expected = format!("less than {kernels}, the kernels that META and MORE before it name");
            return invalid("kernel", launch.kernel(), expected);
        }
        match self.launches.entry(launch.number()) {
            // The first launch stays: sections read so far belong to it.
            Entry::Occupied(_) => {
                invalid("number", launch.number(), "a number that no launch before has".into())
            }
            Entry::Vacant(place) => {
                place.insert(launch);
                Ok(())
            }
        }
    }

    fn add_early_end(&mut self, (launch, end): (u32, EarlyEnd), at: u64) -> Result<(), FormatError> {
        self.count_one(at)?;
        let (field, value) = ("launch", u64::from(launch));
        let expected = if !self.launches.contains_key(&launch) {
            "the number of a launch before".into()
        } else if self.early_ends.contains_key(&launch) {
            "a launch whose end is told once".into()
        } else if self.early_ends.len() == MAX_EARLY_ENDS {
            format!("at most {MAX_EARLY_ENDS} such sections")
        } else {
            self.early_ends.insert(launch, end);
            return Ok(());
        };
        let (section, offset, expected) = (SectionKind::EarlyEnd.name(), body_offset(at), expected.into());
        Err(FormatError::Invalid { section, field, offset, value, expected })
    }

    fn data_entry(
        &self,
        bytes: &Bytes<'_>,
        kind: SectionKind,
        header: &SectionHeader,
        at: u64,
    ) -> Result<IndexEntry, OpenError> {
        let entry = entry_of(bytes, kind, header, at)?;
        let track = count(self.metadata().tracks.len());
        if kind == SectionKind::DataAccounts && entry.track != track {
            let (section, field, offset) = (kind.name(), "track", body_offset(at).saturating_add(4));
            let expected = format!("{track}, the track behind those of events").into();
            return Err(
                FormatError::Invalid { section, field, offset, value: entry.track.into(), expected }.into()
            );
        }
        Ok(IndexEntry { track, ..entry })
    }

    fn add(&mut self, entry: IndexEntry) -> Result<(), FormatError> {
        self.count_one(entry.offset)?;
        let is_data = matches!(entry.kind, SectionKind::Data | SectionKind::DataAccounts);
        let tracks = self.metadata().tracks.len() + usize::from(is_data);
        let invalid = |field, value, expected: String| {
            Err(FormatError::Invalid {
                section: entry.kind.name(),
                field,
                offset: body_offset(entry.offset),
                value,
                expected: expected.into(),
            })
        };
        let Some(launch) = self.launches.get(&entry.launch) else {
            let expected = "the number of a launch before".into();
            return invalid("launch", u64::from(entry.launch), expected);
        };
        if entry.track as usize >= tracks {
            let expected = format!("less than {tracks}, the tracks that META declares");
            return invalid("track", u64::from(entry.track), expected);
        }
        if entry.last_warp >= launch.warps() {
            let expected = format!("less than {}, the launch's warps", launch.warps());
            return invalid("last warp", u64::from(entry.last_warp), expected);
        }
        let track = self.sections.entry((entry.launch, entry.track)).or_default();
        let (of_track, behind) = match entry.kind {
            SectionKind::Frame | SectionKind::Data => (&mut track.frames, SectionKind::Times),
            _ => (&mut track.accounts, SectionKind::Spans),
        };
        of_track.push(entry);
        let has_it = entry.track == 0 && records(self.metadata(), behind);
        self.awaited = has_it.then_some((behind, entry.end()));
        Ok(())
    }

    /// Notes a section of times or spans. It is read later, with the section before it.
    fn add_times(&mut self, kind: SectionKind, at: u64) {
        if self.awaited != Some((kind, at)) {
            self.strays.entry(kind).or_insert(Stray { count: 0, first: at }).count += 1;
        }
    }
}

fn bare_entry(kind: SectionKind, offset: u64, length: u64) -> IndexEntry {
    let (launch, track, first_warp, last_warp) = (0, 0, 0, 0);
    IndexEntry { kind, offset, length, launch, track, first_warp, last_warp, chunks: 0, events: 0 }
}

fn entry_of(
    bytes: &Bytes<'_>,
    kind: SectionKind,
    header: &SectionHeader,
    at: u64,
) -> Result<IndexEntry, OpenError> {
    let body_at = body_offset(at);
    let fixed = |most: usize| bytes.read(body_at, header.length.min(most as u64));
    let bare = bare_entry(kind, at, header.total_bytes());
    Ok(match kind {
        SectionKind::Frame => {
            let FrameHeader { launch, track, first_warp, last_warp, chunks, events, .. } =
                FrameHeader::parse(header.version, &fixed(FRAME_HEADER_BYTES)?, body_at)?;
            IndexEntry { launch, track, first_warp, last_warp, chunks, events, ..bare }
        }
        SectionKind::Data => {
            let DataHeader { launch, first_warp, last_warp, entries, accesses, .. } =
                DataHeader::parse(&fixed(DATA_HEADER_BYTES)?, body_at)?;
            IndexEntry { launch, first_warp, last_warp, chunks: entries, events: accesses, ..bare }
        }
        _ => {
            let accounts = AccountsHeader::parse(&fixed(ACCOUNTS_HEADER_BYTES)?, body_at)?;
            let AccountsHeader { launch, track, first_warp, .. } = accounts;
            IndexEntry { launch, track, first_warp, last_warp: accounts.last_warp(), ..bare }
        }
    })
}
