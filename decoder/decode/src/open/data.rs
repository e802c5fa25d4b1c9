//! Sections of addresses and values, which no index lists.
//!
//! They are found where the walk over what lies between listed sections comes to them. What is wrong with one
//! of them is said of it alone: the file opens, and events are there.

use std::collections::BTreeMap;

use warptrace_format::file::data::{DATA_HEADER_BYTES, DataHeader};
use warptrace_format::file::{
    ACCOUNTS_HEADER_BYTES, AccountsHeader, Buffers, FormatError, IndexEntry, SectionHeader, SectionKind,
    SiteInfo, decode_sites,
};

use super::{Bytes, Contents, accounts_entry, body_offset};
use crate::buffers::KnownBuffers;
use crate::derived::Followers;
use crate::error::OpenError;
use crate::shown;

/// Damaged sections that are told of; of more it is enough to know that there are some.
const MOST_DAMAGE: usize = 8;

/// What was found of them so far, apart from those that belong to launches.
#[derive(Default)]
pub(super) struct DataSections {
    /// The header of each section of sites, and where it is; and of each section of buffers.
    sites: Vec<(SectionHeader, u64)>,
    buffers: Vec<(SectionHeader, u64)>,
    /// What is wrong with the first sections that could not be read.
    pub(super) damage: Vec<FormatError>,
}

impl DataSections {
    fn add_damage(&mut self, error: FormatError) {
        if self.damage.len() < MOST_DAMAGE {
            self.damage.push(error);
        }
    }

    /// The sections that are read when the file is opened.
    pub(super) fn parts(&self) -> impl Iterator<Item = &(SectionHeader, u64)> {
        self.sites.iter().chain(&self.buffers)
    }

    /// Reads the sites, and which of them follow from which.
    pub(super) fn read_sites(
        &mut self,
        bytes: &Bytes<'_>,
    ) -> Result<(BTreeMap<u16, SiteInfo>, Followers), OpenError> {
        let (mut found, mut last) = (BTreeMap::new(), 0);
        for (header, at) in std::mem::take(&mut self.sites) {
            last = body_offset(at);
            let body = bytes.body(SectionKind::Sites, &header, at);
            match body.and_then(|body| Ok(decode_sites(&body, body_offset(at))?)) {
                Ok(sites) => {
                    for mut site in sites {
                        shown::site(&mut site);
                        // The first counts: what is read before this section is its.
                        found.entry(site.number).or_insert(site);
                    }
                }
                Err(OpenError::Format(error)) => self.add_damage(error),
                Err(other) => return Err(other),
            }
        }
        let followers = Followers::of(&found).unwrap_or_else(|(site, root)| {
            let message =
                format!("site {site} follows from site {root}, which another section has otherwise");
            self.add_damage(FormatError::Contents {
                section: SectionKind::Sites.name(),
                offset: last,
                message,
            });
            Followers::default()
        });
        Ok((found, followers))
    }

    /// Reads the buffers; `None` if there is no section of them.
    pub(super) fn read_buffers(&mut self, bytes: &Bytes<'_>) -> Result<Option<KnownBuffers>, OpenError> {
        let sections = std::mem::take(&mut self.buffers);
        let mut found = (!sections.is_empty()).then(KnownBuffers::default);
        for (header, at) in sections {
            let body = bytes.body(SectionKind::Buffers, &header, at);
            match (body.and_then(|body| Ok(Buffers::decode(&body, body_offset(at))?)), &mut found) {
                (Ok(part), Some(found)) => found.add(part),
                (Err(OpenError::Format(error)), found) => {
                    // What that section has is not known.
                    found.iter_mut().for_each(KnownBuffers::lack);
                    self.add_damage(error);
                }
                (Err(other), _) => return Err(other),
                (Ok(_), None) => {}
            }
        }
        Ok(found)
    }
}

impl Contents {
    /// Adds a section of sites, of buffers, of addresses and values, or of accounts of these.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn add_data(
        &mut self,
        bytes: &Bytes<'_>,
        kind: SectionKind,
        header: &SectionHeader,
        at: u64,
    ) -> Result<(), OpenError> {
        match kind {
            SectionKind::Sites => self.data.sites.push((*header, at)),
            SectionKind::Buffers => self.data.buffers.push((*header, at)),
            _ => match self.data_entry(bytes, kind, header, at) {
                Ok(entry) => self.add(entry).unwrap_or_else(|error| self.data.add_damage(error)),
                Err(OpenError::Format(error)) => self.data.add_damage(error),
                Err(other) => return Err(other),
            },
        }
        Ok(())
    }

    fn data_entry(
        &self,
        bytes: &Bytes<'_>,
        kind: SectionKind,
        header: &SectionHeader,
        at: u64,
    ) -> Result<IndexEntry, OpenError> {
        let (body_at, length) = (body_offset(at), header.total_bytes());
        // One or two.
        let track = u32::try_from(self.metadata().tracks.len()).unwrap_or(u32::MAX);
        if kind == SectionKind::DataAccounts {
            let fixed = bytes.read(body_at, header.length.min(ACCOUNTS_HEADER_BYTES as u64))?;
            let accounts = AccountsHeader::parse(&fixed, body_at)?;
            if accounts.track != track {
                let (section, field, offset) = (kind.name(), "track", body_at.saturating_add(4));
                let expected = format!("{track}, the track behind those of events").into();
                let value = accounts.track.into();
                return Err(FormatError::Invalid { section, field, offset, value, expected }.into());
            }
            return Ok(accounts_entry(kind, &accounts, at, length));
        }
        let fixed = bytes.read(body_at, header.length.min(DATA_HEADER_BYTES as u64))?;
        let DataHeader { launch, first_warp, last_warp, entries, accesses, .. } =
            DataHeader::parse(&fixed, body_at)?;
        let (chunks, events) = (entries, accesses);
        Ok(IndexEntry { kind, offset: at, length, launch, track, first_warp, last_warp, chunks, events })
    }
}
