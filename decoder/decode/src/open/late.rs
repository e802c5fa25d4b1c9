//! Sections that no index lists, read after all others. A damaged one is only reported: the file still opens.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use warptrace_format::file::limits::{MAX_HOST_READINGS, MAX_UNRECORDED, MAX_UNRECORDED_NOTES};
use warptrace_format::file::{
    Buffers, FormatError, HostTimes, KnownLabels, KnownStacks, LaunchInfo, LaunchLabels, LaunchStacks,
    LocationCode, Metadata, Origin, SectionHeader, SectionKind, SiteInfo, Unrecorded, UnrecordedLaunches,
    WaitInfo, decode_sites,
};

use super::{Bytes, body_offset};
use crate::buffers::KnownBuffers;
use crate::derived::Followers;
use crate::error::OpenError;
use crate::file::{Damage, is_of_data};
use crate::host::Host;
use crate::shown;

/// Maximum number of damaged sections of addresses and values that are noted.
const MOST_DAMAGE: usize = 8;

#[derive(Default)]
pub(super) struct LateSections {
    pub(super) sections: Vec<(SectionKind, SectionHeader, u64)>,
    pub(super) damage: Vec<Damage>,
}

impl LateSections {
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        let range = |(_, header, at): &(_, SectionHeader, u64)| *at..at.saturating_add(header.total_bytes());
        self.sections.iter().map(range).collect()
    }

    /// Notes the error of a section: the first 8 of addresses and values together, the first of each other
    /// kind. Returns true if there was an error. Fails only with I/O errors.
    pub(super) fn note_damage(
        &mut self,
        kind: SectionKind,
        read: Result<(), OpenError>,
    ) -> Result<bool, OpenError> {
        let error = match read {
            Ok(()) => return Ok(false),
            Err(OpenError::Format(error)) => error,
            Err(other) => return Err(other),
        };
        let is_same = |damage: &&Damage| {
            if is_of_data(kind) { is_of_data(damage.kind) } else { damage.kind == kind }
        };
        let most = if is_of_data(kind) { MOST_DAMAGE } else { 1 };
        if self.damage.iter().filter(is_same).count() < most {
            self.damage.push(Damage { kind, error });
        }
        Ok(true)
    }

    /// Passes the body and body offset of each section of a kind to `take`. Returns true if one is damaged.
    fn read(
        &mut self,
        bytes: &Bytes<'_>,
        kind: SectionKind,
        mut take: impl FnMut(&[u8], u64) -> Result<(), FormatError>,
    ) -> Result<bool, OpenError> {
        let mut is_damaged = false;
        for (_, header, at) in self.sections.clone().iter().filter(|(of, ..)| *of == kind) {
            let body = bytes.body(kind, header, *at);
            let read = body.and_then(|body| Ok(take(&body, body_offset(*at))?));
            is_damaged |= self.note_damage(kind, read)?;
            // Limits the work: sections after damaged host times are not read.
            if is_damaged && kind == SectionKind::Host {
                break;
            }
        }
        Ok(is_damaged)
    }

    pub(super) fn read_sites(
        &mut self,
        bytes: &Bytes<'_>,
    ) -> Result<(BTreeMap<u16, SiteInfo>, Followers), OpenError> {
        let (mut found, kind) = (BTreeMap::new(), SectionKind::Sites);
        self.read(bytes, kind, |body, at| {
            for mut site in decode_sites(body, at)? {
                shown::site(&mut site);
                // The first entry counts: sections read before this one refer to it.
                found.entry(site.number).or_insert(site);
            }
            Ok(())
        })?;
        let followers = match Followers::new(&found) {
            Ok(followers) => followers,
            Err((site, root)) => {
                let message =
                    format!("site {site} follows from site {root}, which another section has otherwise");
                let last = self.sections.iter().rfind(|(of, ..)| *of == kind);
                let offset = last.map_or(0, |(.., at)| body_offset(*at));
                let error = FormatError::Contents { section: kind.name(), offset, message };
                self.note_damage(kind, Err(error.into()))?;
                Followers::default()
            }
        };
        Ok((found, followers))
    }

    pub(super) fn read_buffers(&mut self, bytes: &Bytes<'_>) -> Result<Option<KnownBuffers>, OpenError> {
        let has_some = self.sections.iter().any(|(kind, ..)| *kind == SectionKind::Buffers);
        let mut found = KnownBuffers::default();
        let is_damaged = self.read(bytes, SectionKind::Buffers, |body, at| {
            found.add(Buffers::decode(body, at)?);
            Ok(())
        })?;
        if is_damaged {
            found.lack();
        }
        Ok(has_some.then_some(found))
    }

    pub(super) fn read_labels(&mut self, bytes: &Bytes<'_>) -> Result<KnownLabels, OpenError> {
        let mut labels = KnownLabels::default();
        self.read(bytes, SectionKind::Labels, |body, at| {
            labels.add(LaunchLabels::decode(body, at)?);
            Ok(())
        })?;
        shown::labels(&mut labels);
        Ok(labels)
    }

    pub(super) fn read_stacks(&mut self, bytes: &Bytes<'_>) -> Result<KnownStacks, OpenError> {
        let mut stacks = KnownStacks::default();
        self.read(bytes, SectionKind::Stacks, |body, at| {
            stacks.add(LaunchStacks::decode(body, at)?);
            Ok(())
        })?;
        shown::stacks(&mut stacks);
        Ok(stacks)
    }

    pub(super) fn read_unrecorded(&mut self, bytes: &Bytes<'_>) -> Result<Unrecorded, OpenError> {
        let (mut sums, mut notes) = (BTreeMap::<_, u64>::new(), Vec::new());
        self.read(bytes, SectionKind::Unrecorded, |body, offset| {
            let mut found = Unrecorded::decode(body, offset)?;
            let (kernels, all) = (sums.len() + found.launches.len(), notes.len() + found.notes.len());
            if kernels > MAX_UNRECORDED || all > MAX_UNRECORDED_NOTES {
                let message = format!("over {MAX_UNRECORDED} kernels or {MAX_UNRECORDED_NOTES} notes in all");
                return Err(FormatError::Contents { section: "UNTR", offset, message });
            }
            shown::unrecorded(&mut found);
            for UnrecordedLaunches { kernel, reason, launches } in found.launches {
                let sum = sums.entry((kernel, reason)).or_default();
                *sum = sum.saturating_add(launches);
            }
            notes.append(&mut found.notes);
            Ok(())
        })?;
        let of = |((kernel, reason), launches)| UnrecordedLaunches { kernel, reason, launches };
        let mut launches: Vec<_> = sums.into_iter().map(of).collect();
        launches.sort_by_key(|of| Reverse(of.launches));
        Ok(Unrecorded { launches, notes })
    }

    /// Reads where the file was recorded. The last section counts.
    pub(super) fn read_origin(
        &mut self,
        bytes: &Bytes<'_>,
        metadata: &mut Metadata,
    ) -> Result<(), OpenError> {
        self.read(bytes, SectionKind::Origin, |body, at| {
            metadata.origin = Some(Box::new(Origin::decode(body, at)?));
            Ok(())
        })?;
        Ok(())
    }

    /// Reads the instructions and waits of locations. The last entry of a location counts.
    pub(super) fn read_locations(
        &mut self,
        bytes: &Bytes<'_>,
        metadata: &mut Metadata,
    ) -> Result<(), OpenError> {
        let (mut codes, mut waits) = (BTreeMap::new(), BTreeMap::new());
        self.read(bytes, SectionKind::Code, |body, at| {
            codes.extend(LocationCode::decode(body, at)?);
            Ok(())
        })?;
        self.read(bytes, SectionKind::Waits, |body, at| {
            waits.extend(WaitInfo::decode(body, at)?);
            Ok(())
        })?;
        for location in &mut metadata.locations {
            location.code = codes.get(&location.id).copied().or(location.code);
            location.wait = waits.remove(&location.id).map(Box::new);
        }
        Ok(())
    }

    /// Reads the host's times of launches, up to the first damaged section.
    pub(super) fn read_host(
        &mut self,
        bytes: &Bytes<'_>,
        launches: &BTreeMap<u32, LaunchInfo>,
    ) -> Result<Host, OpenError> {
        let mut host = Host::default();
        self.read(bytes, SectionKind::Host, |body, offset| {
            let wrong = |message: String| Err(FormatError::Contents { section: "HOST", offset, message });
            let times = HostTimes::decode(body, offset, launches.len())?;
            for launch in times.launches {
                if !launches.contains_key(&launch.launch) {
                    return wrong(format!("launch {} is not in the file", launch.launch));
                }
                if host.launches.contains_key(&launch.launch) {
                    return wrong(format!("launch {} is told of a second time", launch.launch));
                }
                host.launches.insert(launch.launch, launch);
            }
            if host.readings.len() + times.readings.len() > MAX_HOST_READINGS as usize {
                return wrong(format!("more than {MAX_HOST_READINGS} readings of clocks"));
            }
            host.readings.extend(times.readings);
            Ok(())
        })?;
        Ok(host)
    }
}
