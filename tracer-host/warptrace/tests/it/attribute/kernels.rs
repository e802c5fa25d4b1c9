//! The attribute's output for a module: the table, and the kernels' results and events on the simulator.

use warptrace_device::{LocationKind, SourceLocation};
use warptrace_format::Counting;
use warptrace_macros::kernels;

use super::support::{self, global, lanes, named};

/// Contains every traced construct once.
#[kernels(device = warptrace_device)]
mod all {
    use warptrace_device::{Global, simt};

    #[derive(Clone, Copy)]
    struct Walk(u32);

    impl Walk {
        fn step(&mut self) -> Option<u32> {
            self.0 = self.0.checked_sub(1)?;
            Some(self.0)
        }

        fn twice(self) -> u32 {
            self.0 * 2
        }
    }

    fn classify(x: u32) -> u32 {
        let class = match x % 4 {
            0 => 1,
            1 | 2 if x > 8 => {
                return 20;
            }
            _ => 3,
        };
        class * 10
    }

    #[untraced]
    fn silent(x: u32) -> u32 {
        if x > 3 { x } else { 3 }
    }

    #[kernel]
    pub fn everything(mut out: Global<u32>, rounds: u32) {
        let lane = simt::lane();
        let Some(limit) = rounds.checked_sub(lane % 2) else { return };
        let mut walk = Walk(lane % 3);
        let mut sum = 0;
        for step in 0..limit {
            sum += step;
        }
        while let Some(left) = walk.step() {
            if left == 1 {
                continue;
            }
            sum += classify(lane);
        }
        let found = loop {
            sum += 1;
            if sum > 5 {
                break sum;
            }
        };
        trace!("large", if found > 40);
        if lane == 7 {
            sum += 1;
        } else if lane > 20 {
            sum += walk.twice() + silent(sum);
        }
        #[untraced]
        for _ in 0..3 {
            if lane > 4 {
                sum += 1;
            }
        }
        trace!("end");
        out = Global::new(out.at(0).expose_provenance() as u64, out.len());
        // SAFETY: each lane has a separate element.
        unsafe { out.set(u64::from(lane), sum) };
    }
}

#[test]
fn the_table_lists_what_the_source_says() {
    let rows: Vec<String> = all::LOCATIONS
        .iter()
        .map(|location| {
            let SourceLocation { id, name, kind, parent, .. } = location;
            format!("{id:>2} in {parent:>2}  {kind:<9}  {name}")
        })
        .collect();
    let expected = "
 1 in  0  entry      Walk::step
 2 in  1  else       Walk::step: self.0.checked_sub(1)? returns
 3 in  1  then       Walk::step: self.0.checked_sub(1)? has a value
 4 in  0  entry      classify
 5 in  4  arm        classify: match x % 4: 0
 6 in  4  arm        classify: match x % 4: 1 | 2 if x > 8
 7 in  4  arm        classify: match x % 4: _
 8 in  0  entry      everything
 9 in  8  else       everything: else of let Some(limit) = rounds.checked_sub(lane % 2)
10 in  8  then       everything: let Some(limit) = rounds.checked_sub(lane % 2)
11 in  8  loop body  everything: for step in 0..limit
12 in  8  loop exit  everything: end of for step in 0..limit
13 in  8  loop body  everything: while let Some(left) = walk.step()
14 in 13  then       everything: if left == 1
15 in 13  else       everything: else of if left == 1
16 in  8  loop exit  everything: end of while let Some(left) = walk.step()
17 in  8  loop body  everything: loop
18 in  8  loop exit  everything: end of loop
19 in  8  marked     everything: large
20 in  8  then       everything: if lane == 7
21 in  8  then       everything: if lane > 20
22 in  8  else       everything: else of if lane > 20
23 in  8  marked     everything: end";
    assert_eq!(format!("\n{}", rows.join("\n")), expected);
    assert!(
        all::LOCATIONS.iter().all(|location| location.function == location.name.split(": ").next().unwrap())
    );
}

#[test]
fn positions_are_those_of_the_users_tokens() {
    let lines: Vec<&str> = include_str!("kernels.rs").lines().collect();
    let rest = |line: u32, column: u32| &lines[line as usize - 1][column as usize - 1..];
    for location in all::LOCATIONS {
        let token = rest(location.line, location.column);
        let starts = match location.kind {
            LocationKind::Entry => ["step(", "classify(", "everything("].as_slice(),
            LocationKind::Then => &["{", ";", "?"],
            LocationKind::Else => &["{", "}", "?"],
            LocationKind::Arm => &["=>"],
            LocationKind::LoopBody => &["{"],
            LocationKind::LoopExit => &["}"],
            _ => &["trace!"],
        };
        assert!(starts.iter().any(|start| token.starts_with(start)), "{location:?} at `{token}`");
        let before = &lines[location.rejoin_line as usize - 1][..location.rejoin_column as usize - 1];
        assert!(before.ends_with(['}', ';', ')']), "{location:?} rejoins behind `{before}`");
    }
    assert!(all::MODULE.file.ends_with("kernels.rs"));
    assert_eq!(
        (all::MODULE.name, all::MODULE.kernels),
        ("it::attribute::kernels::all", ["everything"].as_slice())
    );
}

#[test]
fn every_lane_records_its_own_way() {
    let mut out = vec![0; 32];
    // SAFETY: an element for each lane.
    let events =
        unsafe { support::record(&all::MODULE, &all::everything(global(&mut out), 4), Counting::All) };
    let name = |id: u16| all::LOCATIONS[usize::from(id) - 1].name;
    // Lane 1: three rounds of `for`, one step of the walk, no class, a loop of three.
    let way: Vec<&str> = lanes(&events)[1].iter().map(|&id| name(id)).collect();
    let expected = [
        "everything",
        "everything: let Some(limit) = rounds.checked_sub(lane % 2)",
        "everything: for step in 0..limit",
        "everything: for step in 0..limit",
        "everything: for step in 0..limit",
        "everything: end of for step in 0..limit",
        "Walk::step",
        "Walk::step: self.0.checked_sub(1)? has a value",
        "everything: while let Some(left) = walk.step()",
        "everything: else of if left == 1",
        "classify",
        "classify: match x % 4: _",
        "Walk::step",
        "Walk::step: self.0.checked_sub(1)? returns",
        "everything: end of while let Some(left) = walk.step()",
        "everything: loop",
        "everything: end of loop",
        "everything: else of if lane > 20",
        "everything: end",
    ];
    assert_eq!(way, expected);
    // 3 of the loop, 30 of the class, 1 of `loop`.
    assert_eq!(out[1], 3 + 30 + 1);
    assert_eq!(named(&events, &all::MODULE, "everything: if lane == 7"), [1 << 7]);
}

/// Structure that lines and columns alone do not show to the simulator.
#[kernels(device = warptrace_device)]
#[rustfmt::skip]
mod shapes {
    use warptrace_device::simt;

    #[kernel]
    pub fn one_line(rounds: u32) {
        let lane = simt::lane();
        let mut turns = lane % 4;
        while turns != 0 { if turns & 1 == 0 { trace!("even") } turns -= 1; }
        if lane > 40 { trace!("never") }
        trace!("one line");
        let mut turns = rounds;
        while turns != 0 { turns -= 1; if turns == lane { continue; } if lane > 7 { trace!("rest") } else { below(lane) } } trace!("met");
    }

    // Called from above.
    fn below(lane: u32) {
        let mut turns = lane;
        while turns > 1 {
            turns /= 2;
            if turns & 1 == 0 { trace!("halved") } else { trace!("odd") }
        }
        trace!("leaves");
    }
}

#[test]
fn lanes_meet_where_the_source_says_whatever_its_layout() {
    for counting in [Counting::Never, Counting::All] {
        // SAFETY: the kernel accesses no memory.
        let events = unsafe { support::record(&shapes::MODULE, &shapes::one_line(2), counting) };
        let masks = |name: &str| named(&events, &shapes::MODULE, name);
        assert_eq!(masks("one_line: one line"), [u32::MAX], "all have met behind the first loop");
        assert_eq!(masks("one_line: met"), [u32::MAX], "and behind the second");
        // Turn 2 of lanes 2 and 3 in each group of four, in the loop's first and second iteration.
        assert_eq!(masks("one_line: even"), [0x4444_4444, 0x8888_8888]);
        assert_eq!(masks("one_line: rest"), [0xffff_ff00; 2]);
        // Lane 1 skips the first iteration, lane 0 the second.
        assert_eq!(masks("below"), [0xfd, 0xfe], "a function below its caller");
        assert_eq!(masks("below: leaves"), [0xfd, 0xfe]);
        // Lanes 2 to 7 halve once: 2 and 3 to 1, 4 and 5 to 2, 6 and 7 to 3; then 4 to 7 once more.
        assert_eq!(masks("below: halved"), [0x30; 2]);
        assert_eq!(masks("below: odd"), [0xcc, 0xf0, 0xcc, 0xf0]);
    }
}

/// Values next to points in a module that traces only marks.
#[kernels(device = warptrace_device, only_marked, first_id = 1001)]
mod valued {
    use warptrace_device::simt;

    #[kernel]
    pub fn walk(x: u32) {
        let lane = simt::lane();
        trace!("lane", lane; "x", x,);
        for k in 0..x {
            trace!("STEP");
            trace!("k", k);
        }
    }
}

#[test]
fn values_have_ids_of_their_own_and_make_no_event() {
    let rows: Vec<(u16, &str, u16)> =
        valued::MODULE.values.iter().map(|value| (value.id, value.name, value.location)).collect();
    assert_eq!(rows, [(1001, "lane", 0), (1002, "x", 0), (1003, "k", 0)]);
    assert_eq!(valued::MODULE.locations.iter().map(|location| location.id).collect::<Vec<_>>(), [1001]);
    // SAFETY: the kernel accesses no memory.
    let events = unsafe { support::record(&valued::MODULE, &valued::walk(3), Counting::Never) };
    assert_eq!(named(&events, &valued::MODULE, "STEP"), [u32::MAX; 3]);
    assert_eq!(events.len(), 3);
}
