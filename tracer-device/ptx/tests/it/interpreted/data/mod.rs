//! Addresses and values: sites must record the interpreter's accesses of each lane, in order.

mod generated;
mod kernels;
mod small;
mod values;

use std::collections::BTreeMap;

use warptrace_abi::data::{DataEntry, MAX_COUNT, Owner, accesses, lane_base};
use warptrace_abi::recording::Spaces;
use warptrace_ptx::interpret::{Access, Launch, Memory, Observed, Program, Schedule, run};
use warptrace_ptx::points::{Derived, Marked, PointOptions, Points, SiteSpace, mark};
use warptrace_ptx::splice::{Options, Placement, Recording, Spliced, splice};

use super::case::{Shape, time};
use super::foreign::program;
use super::logs::Track;
use super::model::{lanes, sequence};

/// Accesses of a warp's lanes, by lane and site.
type Accesses = BTreeMap<(u32, u16), Vec<u64>>;

/// Runs by lane and site: count, base and step.
type Runs = BTreeMap<(u32, u16), Vec<(u32, u64, i32)>>;

pub(crate) const RECORDING: Recording = Recording { data: Spaces::ALL, ..Recording::DEFAULT };

pub(crate) struct Traced {
    pub(crate) marked: Marked,
    untraced: Program,
    spliced: Spliced,
    program: Program,
}

/// Numbers of recorded and derived accesses of a launch.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) accesses: u64,
    pub(crate) known: u64,
    pub(crate) lost: u64,
    /// Accesses at derived sites, and how many of them are known.
    pub(crate) derived: u64,
    pub(crate) known_derived: u64,
    pub(crate) unmatched: u64,
    pub(crate) entries: u64,
}

pub(crate) struct Case<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) shape: Shape,
    pub(crate) parameters: Vec<Vec<u8>>,
    pub(crate) memory: Memory,
    /// The region with the kernel's results.
    pub(crate) output: u64,
    pub(crate) dynamic_shared: u32,
}

impl Case<'_> {
    fn launch<'n>(&self, kernel: &'n str, state: u32, more: Option<Vec<u8>>) -> Launch<'n> {
        let parameters = self.parameters.iter().cloned().chain(more).collect();
        Launch {
            dynamic_shared: self.dynamic_shared.next_multiple_of(16) + state,
            clock: self.shape.clock,
            ..super::launch(kernel, self.shape.grid, self.shape.block, parameters)
        }
    }
}

impl Traced {
    pub(crate) fn new(text: &str, spaces: Spaces, placement: Option<Placement>, architecture: u32) -> Self {
        let options = PointOptions { accesses: spaces, points: Points::Blocks, ..PointOptions::default() };
        Self::from_marked(mark(text, &options).expect("it is PTX"), placement, architecture)
    }

    pub(crate) fn from_marked(marked: Marked, placement: Option<Placement>, architecture: u32) -> Self {
        let recording = Some(Recording { placement, ..RECORDING });
        let options = Options { recording, architecture, ..Options::default() };
        let spliced =
            splice(&marked.text, &options).unwrap_or_else(|error| panic!("{error}\n{}", marked.text));
        Self { untraced: program(&marked.text), program: program(&spliced.text), spliced, marked }
    }

    pub(crate) fn check(&self, case: &Case<'_>, seed: u64) -> Outcome {
        let context = format!("{}, {seed}, {:?}", case.kernel, case.shape);
        let mut memory = case.memory.clone();
        let launch = case.launch(case.kernel, 0, None);
        let untraced = run(&self.untraced, &launch, &mut memory, &mut Schedule::random(seed ^ 1));
        let untraced = untraced.unwrap_or_else(|error| panic!("{context}: {error}"));
        let results = memory.region(case.output).expect("a region").to_vec();
        let (traced, tracks, traced_results) = self.run(case, seed, &context);
        assert_eq!(results, traced_results, "{context}");
        let mut outcome = Outcome::default();
        for (warp, [events, data]) in (0..).zip(tracks) {
            let context = format!("{context}, warp {warp}");
            let expected = of_warp(&traced.accesses, warp);
            let untraced = self.without_frame(&of_warp(&untraced.accesses, warp));
            assert_eq!(self.without_frame(&expected), untraced, "{context}: traced and untraced");
            let clock = time(case.shape.clock);
            let mut known = decode(&data, clock, &context);
            let derived = self.derive(&mut known);
            let all: u64 = expected.values().map(|all| all.len() as u64).sum();
            let recorded = |(_, site): &(u32, u16)| self.derived_of(*site).is_none();
            let total: u64 =
                expected.iter().filter(|(of, _)| recorded(of)).map(|(_, all)| all.len() as u64).sum();
            let in_entries: u64 = data.data.iter().map(|words| u64::from(accesses(words[1]))).sum();
            assert_eq!(in_entries + data.lost, total, "{context}: attempted");
            for (of, known) in &known {
                let expected = expected.get(of).map_or(&[][..], Vec::as_slice);
                assert!(
                    expected.starts_with(known),
                    "{context}, lane and site {of:?}: {known:x?} of {expected:x?}"
                );
            }
            if data.lost == 0 {
                assert_eq!(known, expected, "{context}");
            }
            if events.lost == 0 {
                self.check_events(&events, &expected, warp, &context);
            }
            let known: u64 = known.values().map(|all| all.len() as u64).sum();
            outcome.accesses += total;
            outcome.known += known - derived;
            outcome.lost += data.lost;
            outcome.unmatched += in_entries - (known - derived);
            outcome.derived += all - total;
            outcome.known_derived += derived;
            outcome.entries += data.data.len() as u64;
        }
        outcome
    }

    fn run(&self, case: &Case<'_>, seed: u64, context: &str) -> (Observed, Vec<[Track; 2]>, Vec<u8>) {
        let traced =
            self.spliced.kernels.iter().find(|traced| traced.name == case.kernel).expect("it is spliced");
        let mut layout = case.shape.layout(2);
        layout.data_track = Some(1);
        let mut memory = case.memory.clone();
        layout.declare(&mut memory, 0);
        let state = traced.shared_bytes * case.shape.block_warps();
        let launch = case.launch(&traced.traced_name, state, Some(layout.parameter()));
        let observed = run(&self.program, &launch, &mut memory, &mut Schedule::random(seed));
        let observed = observed.unwrap_or_else(|error| panic!("{context}: {error}"));
        let mut tracks = layout.read(&memory, time(case.shape.clock));
        let [data, events] = [tracks.pop(), tracks.pop()].map(|track| track.expect("two tracks"));
        let tracks = events.into_iter().zip(data).map(|(events, data)| [events, data]).collect();
        (observed, tracks, memory.region(case.output).expect("a region").to_vec())
    }

    fn derived_of(&self, site: u16) -> Option<Derived> {
        self.marked.sites.iter().find(|of| of.id == site).and_then(|of| of.derived)
    }

    fn derive(&self, known: &mut Accesses) -> u64 {
        let mut added = 0;
        for (site, derived) in self.marked.sites.iter().filter_map(|site| Some((site.id, site.derived?))) {
            for lane in 0..32 {
                let Some(all) = known.get(&(lane, derived.root)) else { continue };
                let all: Vec<u64> = all.iter().map(|access| derived.address(*access)).collect();
                added += all.len() as u64;
                assert!(known.insert((lane, site), all).is_none(), "site {site} has entries");
            }
        }
        added
    }

    /// Makes local addresses relative to the lane's first one at the site: traced kernels have larger frames.
    fn without_frame(&self, accesses: &Accesses) -> Accesses {
        let is_local =
            |id: u16| self.marked.sites.iter().any(|site| site.id == id && site.space == SiteSpace::Local);
        let moved = |(of, all): (&(u32, u16), &Vec<u64>)| {
            let first = if is_local(of.1) { all[0] } else { 0 };
            (*of, all.iter().map(|address| address.wrapping_sub(first)).collect())
        };
        accesses.iter().map(moved).collect()
    }

    /// Checks that each site without a predicate executes as often as its block's events indicate.
    fn check_events(&self, events: &Track, accesses: &Accesses, warp: u32, context: &str) {
        let runs: Vec<super::model::ModelRun> =
            events.entries.iter().map(super::model::ModelRun::from).collect();
        for site in self.marked.sites.iter().filter(|site| !site.is_predicated && site.location != 0) {
            let implied = self.marked.implied.iter().find(|implied| implied.points.contains(&site.location));
            let location = implied.map_or(site.location, |implied| implied.after);
            for lane in 0..32 {
                let executed: u64 = sequence(&runs, lane)
                    .iter()
                    .filter(|(at, _)| *at == location)
                    .map(|(_, count)| count)
                    .sum();
                let made = accesses.get(&(lane, site.id)).map_or(0, |all| all.len() as u64);
                assert_eq!(made, executed, "{context}, warp {warp}, lane {lane}: {site:?}");
            }
        }
    }
}

fn of_warp(accesses: &[Access], warp: u32) -> Accesses {
    let mut found = Accesses::new();
    for access in accesses.iter().filter(|access| access.warp == warp) {
        found.entry((access.lane, access.site)).or_default().push(access.value);
    }
    found
}

fn decode(track: &Track, clock: u32, context: &str) -> Accesses {
    struct Header {
        mask: u32,
        site: u16,
        since: u32,
        /// Values of an affine group.
        values: Option<(i32, u32, u64, i32)>,
        /// Whether an affine group's values were lost.
        lacks: bool,
    }
    let mut headers: Vec<Header> = Vec::new();
    let mut own: Runs = Runs::new();
    let mut all = track.data.iter().map(|words| {
        DataEntry::from_words(*words).unwrap_or_else(|| panic!("{context}: no kernel writes {words:x?}"))
    });
    let mut entries = all.by_ref().peekable();
    let mut lane_of_last = 0;
    while let Some(entry) = entries.next() {
        match entry {
            DataEntry::Header { mask, site, time, spread } => {
                lane_of_last = mask.trailing_zeros();
                let is_theirs = |entry: &DataEntry| match entry {
                    DataEntry::Values { site: of, of: Owner::Group(lanes), .. } => {
                        (*of, *lanes) == (site, mask.count_ones())
                    }
                    _ => false,
                };
                let values = spread.and_then(|spread| match entries.next_if(is_theirs)? {
                    DataEntry::Values { count, base, step, .. } => Some((spread, count, base, step)),
                    _ => None,
                });
                let lacks = spread.is_some() && values.is_none();
                headers.push(Header { mask, site, since: time.wrapping_sub(clock), values, lacks });
            }
            DataEntry::Values { site, of: Owner::Lane(lane), count, base, step } => {
                assert!(lane >= lane_of_last, "{context}: lane after lane");
                assert!(count <= MAX_COUNT && (count > 1 || step == 0), "{context}");
                own.entry((lane, site)).or_default().push((count, base, step));
            }
            other => panic!("{context}: {other:?} in a log"),
        }
    }
    // Within a lane's log, headers are already in time order.
    headers.sort_by_key(|header| header.since);
    let cut = track.lost_from.map(|time| (time & !1).wrapping_sub(clock));
    headers.retain(|header| cut.is_none_or(|cut| header.since < cut));
    assert!(headers.iter().all(|header| !header.lacks), "{context}: affine groups have their values");
    let mut taken: BTreeMap<(u32, u16), usize> = BTreeMap::new();
    let mut known = Accesses::new();
    for header in headers {
        for lane in lanes(header.mask) {
            let of = (lane, header.site);
            let (count, base, step) = match header.values {
                Some((spread, count, base, step)) => {
                    (count, lane_base(header.mask, base, spread, lane).expect("a line"), step)
                }
                None => {
                    let next = taken.entry(of).or_default();
                    *next += 1;
                    let run = own.get(&of).and_then(|runs| runs.get(*next - 1));
                    *run.unwrap_or_else(|| panic!("{context}: {of:?} has no values"))
                }
            };
            let of_run = (0..i64::from(count)).map(|nth| base.wrapping_add((i64::from(step) * nth) as u64));
            known.entry(of).or_default().extend(of_run);
        }
    }
    if track.lost == 0 {
        let all = own.iter().all(|(of, runs)| taken.get(of) == Some(&runs.len()));
        assert!(all, "{context}: each entry of values has a header");
    }
    known
}
