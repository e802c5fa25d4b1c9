//! Opening: by the index where it is sound, by a walk over all sections where it is not.

mod data;
mod host;
mod index;
mod scan;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::OnceLock;

use warptrace_format::file::limits::{MAX_EARLY_ENDS, MAX_METADATA_BYTES};
use warptrace_format::file::{
    AccountsHeader, Additions, EarlyEnd, FormatError, FrameHeader, Growing, IndexEntry, KnownLabels,
    LaunchInfo, LaunchLabels, LocationCode, Metadata, MetadataError, Origin, PREAMBLE_BYTES,
    SECTION_HEADER_BYTES, SectionHeader, SectionKind, TIMES, WaitInfo, check_body, check_preamble,
};

use crate::error::OpenError;
use crate::file::{Completeness, Stray, TraceFile, TrackSections};
use crate::shown;
use crate::source::ByteSource;
use crate::work::Work;
use data::DataSections;

/// Opens a trace.
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
    let Contents {
        metadata,
        launches,
        mut early_ends,
        mut sections,
        texts,
        codes,
        hosts,
        origins,
        label_parts,
        strays,
        mut data,
        ..
    } = contents;
    let parts = [&codes, &hosts, &origins, &label_parts].into_iter().flatten().chain(data.parts());
    let parts = parts.map(|(header, at)| *at..at.saturating_add(header.total_bytes()));
    source.will_read(&parts.collect::<Vec<_>>());
    let (sites, followers) = data.read_sites(&bytes)?;
    let buffers = data.read_buffers(&bytes)?;
    let mut metadata = metadata.into_metadata();
    let (code, code_damage) = of_locations(&bytes, SectionKind::Code, &codes, LocationCode::decode)?;
    let (mut waits, wait_damage) = of_locations(&bytes, SectionKind::Waits, &codes, WaitInfo::decode)?;
    let (mut labels, mut label_damage) = (KnownLabels::default(), None);
    for (header, at) in &label_parts {
        match read_labels(&bytes, header, *at) {
            Ok(part) => labels.add(part),
            Err(OpenError::Format(error)) => label_damage = label_damage.or(Some(error)),
            Err(other) => return Err(other),
        }
    }
    let mut origin_damage = None;
    for (header, at) in &origins {
        match read_origin(&bytes, header, *at) {
            // Of several the last counts.
            Ok(origin) => metadata.origin = Some(Box::new(origin)),
            Err(OpenError::Format(error)) => origin_damage = origin_damage.or(Some(error)),
            Err(other) => return Err(other),
        }
    }
    for location in &mut metadata.locations {
        location.code = code.get(&location.id).copied().or(location.code);
        location.wait = waits.remove(&location.id).map(Box::new);
    }
    let host = host::read(&bytes, &hosts, &launches)?;
    shown::metadata(&mut metadata);
    shown::labels(&mut labels);
    early_ends.values_mut().for_each(shown::early_end);
    for track in sections.values_mut() {
        track.frames.sort_unstable_by_key(|frame| (frame.first_warp, frame.offset));
        track.accounts.sort_unstable_by_key(|section| (section.first_warp, section.offset));
    }
    Ok(TraceFile {
        source,
        length,
        metadata,
        launches,
        early_ends,
        sections,
        texts,
        code_damage,
        wait_damage,
        origin_damage,
        host,
        strays,
        sites,
        followers,
        buffers,
        data_damage: data.damage,
        labels,
        label_damage,
        completeness,
        work: Work::of_bytes(length),
        state: OnceLock::new(),
    })
}

/// Why a way of opening failed.
enum Refusal {
    /// The bytes cannot be read: no other way will help.
    Io(OpenError),
    /// These bytes are no sound index.
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

/// A source with the length that it had when it was opened.
struct Bytes<'a> {
    source: &'a dyn ByteSource,
    length: u64,
}

impl Bytes<'_> {
    /// Up to `most` bytes from `offset` on; fewer at the end of the file. Callers keep `most` within the
    /// format's limits.
    fn read(&self, offset: u64, most: u64) -> Result<Vec<u8>, OpenError> {
        let count = most.min(self.length.saturating_sub(offset));
        let mut buffer = vec![0; usize::try_from(count).unwrap_or(0)];
        self.source.read_exact_at(&mut buffer, offset).map_err(|source| OpenError::Io { offset, source })?;
        Ok(buffer)
    }

    /// The header of the section at `at`.
    fn header(&self, at: u64) -> Result<SectionHeader, OpenError> {
        Ok(SectionHeader::parse(&self.read(at, SECTION_HEADER_BYTES as u64)?, at)?)
    }

    /// The body of the section at `at`, checked against `header`.
    fn body(&self, kind: SectionKind, header: &SectionHeader, at: u64) -> Result<Vec<u8>, OpenError> {
        let body = self.read(body_offset(at), header.length)?;
        check_body(kind, header, &body, at)?;
        Ok(body)
    }
}

const fn body_offset(section_at: u64) -> u64 {
    section_at.saturating_add(SECTION_HEADER_BYTES as u64)
}

/// The metadata at the file's beginning, and the file offset of its end.
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

/// What the sections of a kind say of locations, among those that say something of such, and what is wrong
/// with the first one that cannot be read.
fn of_locations<T>(
    bytes: &Bytes<'_>,
    kind: SectionKind,
    sections: &[(SectionHeader, u64)],
    decode: impl Fn(&[u8], u64) -> Result<Vec<(u16, T)>, FormatError>,
) -> Result<(BTreeMap<u16, T>, Option<FormatError>), OpenError> {
    let (mut found, mut damage) = (BTreeMap::new(), None);
    for (header, at) in sections.iter().filter(|(header, _)| header.tag == kind.tag()) {
        let body = bytes.body(kind, header, *at);
        match body.and_then(|body| Ok(decode(&body, body_offset(*at))?)) {
            // Of several entries the last counts.
            Ok(entries) => found.extend(entries),
            Err(OpenError::Format(error)) => damage = damage.or(Some(error)),
            Err(other) => return Err(other),
        }
    }
    Ok((found, damage))
}

/// The labels of the section at `at`.
fn read_labels(bytes: &Bytes<'_>, header: &SectionHeader, at: u64) -> Result<LaunchLabels, OpenError> {
    Ok(LaunchLabels::decode(&bytes.body(SectionKind::Labels, header, at)?, body_offset(at))?)
}

/// Where the file was recorded, from the section at `at`.
fn read_origin(bytes: &Bytes<'_>, header: &SectionHeader, at: u64) -> Result<Origin, OpenError> {
    Ok(Origin::decode(&bytes.body(SectionKind::Origin, header, at)?, body_offset(at))?)
}

/// Has an error quote names of the file as they may be shown.
fn quoting(error: FormatError) -> FormatError {
    match error {
        FormatError::Contents { section, offset, message } => {
            FormatError::Contents { section, offset, message: warptrace_format::shown(&message).into_owned() }
        }
        other => other,
    }
}

/// An error about tables that contradict themselves or those before.
fn contradiction(section: &'static str, at: u64, error: &MetadataError) -> FormatError {
    FormatError::Contents {
        section,
        offset: body_offset(at),
        message: warptrace_format::shown(&error.to_string()).into_owned(),
    }
}

/// An error about a section that cannot stand where it does.
fn unexpected(header: &SectionHeader, at: u64, expected: &'static str) -> FormatError {
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
    /// With the additions so far.
    metadata: Growing,
    launches: BTreeMap<u32, LaunchInfo>,
    early_ends: BTreeMap<u32, EarlyEnd>,
    sections: BTreeMap<(u32, u32), TrackSections>,
    texts: Vec<IndexEntry>,
    /// `CODE` and `WAIT` sections: the header of each, and where it is.
    codes: Vec<(SectionHeader, u64)>,
    /// `HOST` sections, in the same way.
    hosts: Vec<(SectionHeader, u64)>,
    /// `ORIG` sections, in the same way.
    origins: Vec<(SectionHeader, u64)>,
    strays: BTreeMap<SectionKind, Stray>,
    /// The kind of section that belongs behind the last one that was added, and where.
    awaited: Option<(SectionKind, u64)>,
    data: DataSections,
    /// `LABL` sections, likewise.
    label_parts: Vec<(SectionHeader, u64)>,
    count: u32,
}

impl Contents {
    fn new(metadata: Growing) -> Self {
        let (launches, early_ends, sections) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (texts, codes, hosts, label_parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            metadata,
            launches,
            early_ends,
            sections,
            texts,
            codes,
            hosts,
            origins: Vec::new(),
            label_parts,
            strays: BTreeMap::new(),
            awaited: None,
            data: DataSections::default(),
            count: 0,
        }
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

    fn add_additions(&mut self, body: &[u8], at: u64) -> Result<(), FormatError> {
        self.count_one(at)?;
        let additions = Additions::decode(body, body_offset(at))?;
        self.metadata.add(additions).map_err(|error| contradiction("MORE", at, &error))
    }

    fn add_text(&mut self, offset: u64, length: u64) -> Result<(), FormatError> {
        self.count_one(offset)?;
        self.texts.push(text_entry(offset, length));
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
            // The first stays: what is read before this section is its.
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

    /// Adds a frame or an accounting section, of events or of addresses and values.
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
        let (behind, recorded) = match entry.kind {
            SectionKind::Frame | SectionKind::Data => {
                track.frames.push(entry);
                (SectionKind::Times, ["runs", "all"])
            }
            _ => {
                track.accounts.push(entry);
                (SectionKind::Spans, ["blocks", "all"])
            }
        };
        let times = self.metadata().property(TIMES);
        let has_it = entry.track == 0 && times.is_some_and(|times| recorded.contains(&times));
        self.awaited = has_it.then_some((behind, entry.end()));
        Ok(())
    }

    /// Takes in a section of times, which is read with the section before it.
    fn add_times(&mut self, kind: SectionKind, at: u64) {
        if self.awaited != Some((kind, at)) {
            self.strays.entry(kind).or_insert(Stray { count: 0, first: at }).count += 1;
        }
    }
}

/// The index entry of a frame.
fn frame_entry(header: &FrameHeader, offset: u64, length: u64) -> IndexEntry {
    IndexEntry {
        kind: SectionKind::Frame,
        offset,
        length,
        launch: header.launch,
        track: header.track,
        first_warp: header.first_warp,
        last_warp: header.last_warp,
        chunks: header.chunks,
        events: header.events,
    }
}

/// The index entry of a kept text.
fn text_entry(offset: u64, length: u64) -> IndexEntry {
    let (kind, launch, track) = (SectionKind::Text, 0, 0);
    IndexEntry { kind, offset, length, launch, track, first_warp: 0, last_warp: 0, chunks: 0, events: 0 }
}

/// The index entry of an accounting section.
fn accounts_entry(kind: SectionKind, header: &AccountsHeader, offset: u64, length: u64) -> IndexEntry {
    IndexEntry {
        kind,
        offset,
        length,
        launch: header.launch,
        track: header.track,
        first_warp: header.first_warp,
        last_warp: header.last_warp(),
        chunks: 0,
        events: 0,
    }
}
