//! Files assembled from sections. Unit tests and other packages include this file by its path.
#![allow(dead_code, reason = "each of these needs a part of it")]
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{
    AccountRun, AccountsHeader, ChunkRef, Compression, EarlyEnd, FrameHeader, IndexEntry, LaunchInfo,
    LocationCode, Metadata, SECTION_HEADER_BYTES, SectionHeader, SectionKind, TRAILER_BYTES, Tie, Trailer,
    WaitInfo, encode_accounts, encode_frame, encode_index, encode_preamble, encode_section, encode_spans,
};
use warptrace_format::span::WarpSpan;

#[derive(Debug)]
pub(crate) struct Sections {
    /// The file so far. It opens as an unfinished file.
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: Vec<IndexEntry>,
}

impl Sections {
    pub(crate) fn new(metadata: &Metadata) -> Self {
        let mut file = Self { bytes: encode_preamble().to_vec(), index: Vec::new() };
        file.put(&encode_section(SectionKind::Metadata, &metadata.encode().unwrap()));
        let code = LocationCode::encode_section(&metadata.locations).into_iter();
        code.chain(WaitInfo::encode_sections(&metadata.locations)).for_each(|section| file.put(&section));
        file
    }

    pub(crate) fn put(&mut self, section: &[u8]) {
        self.index.extend(index_entry(section, self.bytes.len() as u64));
        self.bytes.extend_from_slice(section);
    }

    /// Appends chunks of one launch and track, in frames of at least one chunk and about `frame_bytes` bytes.
    pub(crate) fn put_chunks(
        &mut self,
        launch: u32,
        chunks: &[ChunkRef<'_>],
        (frame_bytes, compression): (u64, Compression),
    ) {
        let mut chunks = chunks.to_vec();
        chunks.sort_unstable_by_key(|chunk| (chunk.warp, chunk.sequence));
        let mut rest = &chunks[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |chunk: &&ChunkRef<'_>| {
                bytes += chunk.frame_bytes();
                bytes <= frame_bytes
            };
            let (frame, after) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            self.put(&encode_frame(launch, frame[0].track, frame, compression).unwrap().section);
            rest = after;
        }
    }

    pub(crate) fn put_frame(&mut self, launch: u32, chunks: &[ChunkRef<'_>]) {
        self.put_chunks(launch, chunks, (u64::MAX, Compression::Suited));
    }

    /// Appends the accounts of a launch's chosen warps, and their spans unless `spans` is empty.
    pub(crate) fn put_accounts(
        &mut self,
        launch: &LaunchInfo,
        track: u32,
        accounts: &[WarpAccount],
        spans: &[WarpSpan],
    ) {
        // A section covers consecutive warps.
        let at_once = if launch.is_whole() { 1 << 14 } else { 1 };
        for from in (0..accounts.len()).step_by(at_once) {
            let part = from..accounts.len().min(from + at_once);
            let first = launch.chosen_warp(from as u32).unwrap();
            let accounts = &accounts[part.clone()];
            let accounts = AccountRun::of(accounts);
            let body =
                encode_accounts(launch.number(), track, first, &accounts, Compression::Suited).unwrap();
            let section = encode_section(SectionKind::Accounts, &body);
            self.put(&section);
            if !spans.is_empty() {
                let tie = Tie::to_encoded(&section);
                self.put(&encode_spans(tie, &spans[part], Compression::Suited).unwrap());
            }
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let entries = self.index.len() as u32;
        let index_offset = self.bytes.len() as u64;
        let index = (entries > 0).then(|| encode_index(0, &self.index, Compression::None).unwrap());
        self.bytes.extend(index.iter().flat_map(|index| encode_section(SectionKind::Index, index)));
        let file_length = (self.bytes.len() + TRAILER_BYTES) as u64;
        let trailer = Trailer { index_offset, file_length, entries, index_sections: u32::from(entries > 0) };
        self.bytes.extend(trailer.encode());
        self.bytes
    }
}

/// Returns the index entry of a section at this offset; `None` for kinds that no index lists.
fn index_entry(section: &[u8], offset: u64) -> Option<IndexEntry> {
    let header = SectionHeader::parse(section, 0).unwrap();
    let (kind, body) = (header.kind(0).unwrap()?, &section[SECTION_HEADER_BYTES..]);
    let mut entry = IndexEntry {
        kind,
        offset,
        length: section.len() as u64,
        launch: 0,
        track: 0,
        first_warp: 0,
        last_warp: 0,
        chunks: 0,
        events: 0,
    };
    match kind {
        SectionKind::Additions | SectionKind::Text => {}
        SectionKind::Launch => entry.launch = LaunchInfo::decode(header.version, body, 0).unwrap().number(),
        SectionKind::EarlyEnd => entry.launch = EarlyEnd::decode(body, 0).unwrap().0,
        SectionKind::Frame => {
            let header = FrameHeader::parse(header.version, body, 0).unwrap();
            (entry.launch, entry.track) = (header.launch, header.track);
            (entry.first_warp, entry.last_warp) = (header.first_warp, header.last_warp);
            (entry.chunks, entry.events) = (header.chunks, header.events);
        }
        SectionKind::Accounts => {
            let header = AccountsHeader::parse(body, 0).unwrap();
            (entry.launch, entry.track) = (header.launch, header.track);
            (entry.first_warp, entry.last_warp) = (header.first_warp, header.last_warp());
        }
        _ => return None,
    }
    Some(entry)
}
