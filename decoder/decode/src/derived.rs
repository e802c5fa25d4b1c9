//! Derived sites: their accesses are computed from another site.

use std::collections::BTreeMap;

use warptrace_format::data::{Derived, LaneRun};
use warptrace_format::file::SiteInfo;
use warptrace_format::file::data::{Group, SiteGroups, lanes};

/// Derived sites by their root (the source site).
#[derive(Debug, Default)]
pub(crate) struct Followers(BTreeMap<u16, Vec<(u16, Derived)>>);

impl Followers {
    /// Resolves derived sites to their roots. The table may come from several sections. Fails with a derived
    /// site and its root if the root is missing or itself derived.
    pub(crate) fn new(sites: &BTreeMap<u16, SiteInfo>) -> Result<Self, (u16, u16)> {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for (&number, site) in sites {
            let Some(derived) = site.derived else { continue };
            if sites.get(&derived.root).is_none_or(|root| root.derived.is_some()) {
                return Err((number, derived.root));
            }
            found.entry(derived.root).or_default().push((number, derived));
        }
        Ok(Self(found))
    }

    pub(crate) fn of_root(&self, root: u16) -> &[(u16, Derived)] {
        self.0.get(&root).map_or(&[], Vec::as_slice)
    }
}

/// Computes the accesses of a site derived from a root with complete groups; `None` if they have more than
/// `most` groups and runs. Lanes of a group stay in one group. Runs are cut where 32-bit addresses wrap.
pub(crate) fn derive(root: &SiteGroups, site: u16, derived: &Derived, most: usize) -> Option<SiteGroups> {
    let mut found = SiteGroups { site, ..SiteGroups::default() };
    for (group, runs) in root.each_group() {
        let ends = |run: &LaneRun| [run.base, run.nth(run.count.saturating_sub(1))];
        let own = lanes(group.mask).filter_map(|lane| group.run(runs, lane));
        let mut added = own.flat_map(|run| ends(&run)).map(|access| derived.added(access));
        let first = added.next();
        if !derived.is_narrow || added.all(|added| Some(added) == first) {
            found.groups.push(*group);
            found.runs.extend(runs.iter().map(|run| LaneRun { base: derived.address(run.base), ..*run }));
        } else {
            wrap(group, runs, derived, &mut found);
        }
        if found.entries() > most {
            return None;
        }
    }
    Some(found)
}

fn wrap(group: &Group, runs: &[LaneRun], derived: &Derived, found: &mut SiteGroups) {
    let own: Vec<(u32, LaneRun)> =
        lanes(group.mask).filter_map(|lane| Some((lane, group.run(runs, lane)?))).collect();
    let added = |run: &LaneRun, number: u32| derived.added(run.nth(number));
    let mut cuts: Vec<u32> = own
        .iter()
        .flat_map(|(_, run)| {
            let last = run.count.saturating_sub(1);
            let wraps = |number: &u32| added(run, number - 1) != added(run, *number);
            (1..=last).filter(wraps).chain([run.count])
        })
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut from = 0;
    for to in cuts {
        let here = own.iter().filter(|(_, run)| run.count > from);
        let mask = here.clone().fold(0, |mask, (lane, _)| mask | 1 << lane);
        found.runs.extend(here.map(|(_, run)| {
            let count = to.min(run.count) - from;
            let step = if count == 1 { 0 } else { run.step };
            LaneRun { base: derived.address(run.nth(from)), step, count }
        }));
        found.groups.push(Group { mask, spread: None, missing: 0, ..*group });
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(groups: Vec<Group>, runs: Vec<LaneRun>) -> SiteGroups {
        SiteGroups { site: 1, groups, runs, loose: Vec::new() }
    }

    fn all(site: &SiteGroups, lane: u32) -> Vec<u64> {
        let runs = site.each_group().filter_map(|(group, runs)| group.run(runs, lane));
        runs.flat_map(|run| (0..run.count).map(move |number| run.nth(number))).collect()
    }

    #[test]
    fn each_access_follows_from_one_of_the_root() {
        let group = |mask, spread| Group { mask, time: 7, spread, missing: 0 };
        let run = |base, step, count| LaneRun { base, step, count };
        let root = site(
            vec![group(0xff, Some(28)), group(0b101, None), group(1 << 31, Some(0))],
            vec![run(0, 4, 100), run(0xffff_ffe0, 4, 8), run(8, -4, 3), run(1000, 0, 1)],
        );
        for derived in [
            Derived { root: 1, offset: 64, is_narrow: false },
            Derived { root: 1, offset: -64, is_narrow: false },
            Derived { root: 1, offset: 16, is_narrow: true },
            Derived { root: 1, offset: -20, is_narrow: true },
            Derived { root: 1, offset: i64::from(i32::MIN), is_narrow: true },
        ] {
            let found = derive(&root, 2, &derived, 1 << 10).expect("they are few");
            assert_eq!((found.site, found.accesses()), (2, root.accesses()));
            for lane in 0..32 {
                let expected: Vec<u64> =
                    all(&root, lane).into_iter().map(|access| derived.address(access)).collect();
                assert_eq!(all(&found, lane), expected, "{derived:?}, lane {lane}");
            }
            if !derived.is_narrow {
                assert_eq!(found.groups, root.groups);
            }
            assert!(derive(&root, 2, &derived, 5).is_none());
        }
        // Lanes 0 to 4 wrap one after the other; lanes that wrap in the same access stay together.
        let downwards =
            derive(&root, 2, &Derived { root: 1, offset: -20, is_narrow: true }, 1 << 10).expect("few");
        assert_eq!(downwards.groups[..6].iter().map(|group| group.mask).collect::<Vec<_>>(), [0xff; 6]);
        // In the second group, one lane wraps at every access, and its run is shorter.
        assert_eq!(downwards.groups.len(), 9);
    }

    #[test]
    fn a_chain_is_told_of() {
        use warptrace_format::file::{SiteKind, SiteSpace};
        let site = |number, root| {
            let derived = (root > 0).then_some(Derived { root, offset: 4, is_narrow: false });
            (number, SiteInfo { derived, ..SiteInfo::new(number, SiteKind::Load, SiteSpace::Global, 4) })
        };
        let table = |sites: &[(u16, u16)]| sites.iter().map(|(number, root)| site(*number, *root)).collect();
        let followers = Followers::new(&table(&[(1, 0), (2, 1), (3, 0), (9, 1)])).expect("it is sound");
        assert_eq!(followers.of_root(1).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 9]);
        assert!(followers.of_root(3).is_empty());
        assert_eq!(Followers::new(&table(&[(1, 0), (2, 1), (3, 2)])).err(), Some((3, 2)));
        assert_eq!(Followers::new(&table(&[(2, 1)])).err(), Some((2, 1)));
    }
}
