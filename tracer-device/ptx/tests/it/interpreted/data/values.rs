//! Values that the source names: of each type, in unrolled loops, and values that cannot be recorded.

use std::collections::BTreeMap;

use warptrace_abi::recording::Spaces;
use warptrace_ptx::interpret::{Memory, Schedule, run};
use warptrace_ptx::points::{Marked, PointOptions, SiteKind, ValueType, mark, mark_accesses};

use super::super::Extent;
use super::super::case::Shape;
use super::super::foreign::program;
use super::small::module;
use super::{Case, Traced};
use warptrace_abi::log::FirstSegments;

const VALUED: &str = include_str!("../../../data/foreign/valued.ptx");
const THREADS: u32 = 70;
const DATA: u64 = 0x10_0000;
const OUT: u64 = 0x20_0000;

/// A launch of `valued` with 70 threads and 26 that return at once, and with this many segments.
fn case(segments: u32) -> Case<'static> {
    let mut memory = Memory::new();
    memory.declare(DATA, (0..8_u32).flat_map(|number| (number as f32).to_le_bytes()).collect());
    memory.declare(OUT, vec![0; 4 * THREADS as usize]);
    let shape = Shape {
        grid: [3, 1, 1],
        block: [32, 1, 1],
        first: FirstSegments::of_streams(4),
        segments,
        claimed: 0,
        clock: 9,
    };
    let parameters =
        [DATA.to_le_bytes().to_vec(), OUT.to_le_bytes().to_vec(), THREADS.to_le_bytes().to_vec()];
    Case { kernel: "valued", shape, parameters: parameters.to_vec(), memory, output: OUT, dynamic_shared: 0 }
}

type Named = BTreeMap<(u32, String), Vec<u64>>;

/// Returns the values that the threads of `valued.cu` name.
fn expected() -> Named {
    let mut found = Named::new();
    for thread in 0..THREADS {
        let mut put =
            |name: &str, value: u64| found.entry((thread, name.to_owned())).or_default().push(value);
        let mut sum = 0.0_f32;
        for k in 0..thread % 5 {
            let part = 1.0 / (k as f32 - 2.0);
            put("part", part.to_bits().into());
            put("rows left", ((thread % 5).cast_signed() - 7 - k.cast_signed()).cast_unsigned().into());
            sum += part;
        }
        put("sum", f64::from(sum).to_bits());
        put("is even", u64::from(thread % 2 == 0));
        put("byte", u64::from((thread + 250) as u8));
        put("far", (i64::from(thread) - (1 << 40)).cast_unsigned());
        put("out", OUT + 4 * u64::from(thread));
    }
    found
}

fn marked(spaces: Spaces) -> Marked {
    mark(VALUED, &PointOptions { accesses: spaces, ..PointOptions::default() }).expect("it is PTX")
}

#[test]
fn values_of_every_type_are_what_the_source_says() {
    let marked = marked(Spaces::VALUES);
    let sites: BTreeMap<&str, (ValueType, u32)> = marked
        .sites
        .iter()
        .map(|site| {
            assert_eq!(
                (site.kind, site.is_predicated, site.bytes),
                (SiteKind::Value, false, site.value.as_ref().expect("a value").ty.bytes())
            );
            let value = site.value.as_ref().expect("a value");
            (&*value.name, (value.ty, site.source.as_ref().expect("a line").line))
        })
        .collect();
    // Copies in an unrolled loop are one site.
    assert_eq!(sites.len(), marked.sites.len());
    let line = |text: &str| {
        let lines = include_str!("../../../data/foreign/valued.cu").lines();
        lines.map(str::trim).position(|line| line.starts_with(text)).expect("it is there") as u32 + 1
    };
    for (name, ty) in [
        ("part", ValueType::F32),
        ("rows left", ValueType::I32),
        ("sum", ValueType::F64),
        ("is even", ValueType::U32),
        ("byte", ValueType::U32),
        ("far", ValueType::I64),
        ("out", ValueType::U64),
    ] {
        assert_eq!(sites[name], (ty, line(&format!("WARPTRACE_VALUE(\"{name}\""))), "{name}");
    }
    assert_eq!(sites.len(), 7);
    let case = case(64);
    let launch = case.launch("valued", 0, None);
    let mut memory = case.memory.clone();
    let observed =
        run(&program(&marked.text), &launch, &mut memory, &mut Schedule::random(3)).expect("it runs");
    let mut found = Named::new();
    for access in &observed.accesses {
        let site = marked.sites.iter().find(|site| site.id == access.site).expect("it is there");
        let name = site.value.as_ref().expect("a value").name.to_string();
        found.entry((access.warp * 32 + access.lane, name)).or_default().push(access.value);
    }
    assert_eq!(found, expected());
    let [(function, reason)] = &*marked.unrecorded else { panic!("{:?}", marked.unrecorded) };
    assert!(
        function.contains("far_away") && reason.contains("not inlined: 1 of its"),
        "{function}: {reason}"
    );
}

in_both_tiers! {
    what_is_recorded_of_values_is_what_lanes_held: check_recorded;
}

fn check_recorded(extent: Extent) {
    let (values, all) = (marked(Spaces::VALUES), marked(Spaces::ALL));
    assert_eq!(values.sites.len(), 7);
    assert!(all.sites.len() > 7 && all.sites[..7].iter().all(|site| site.kind == SiteKind::Value));
    let total: u64 = expected().values().map(|values| values.len() as u64).sum();
    for marked in [values, all] {
        let is_alone = marked.sites.len() == 7;
        let traced = Traced::from_marked(marked, None, 90);
        for (seed, segments) in (0..extent.rounds(16)).flat_map(|seed| [(seed, 0), (seed, 3), (seed, 400)]) {
            let outcome = traced.check(&case(segments), seed);
            assert!(!is_alone || outcome.accesses == total, "{}", outcome.accesses);
            assert!(segments != 400 || outcome.lost == 0, "{}", outcome.lost);
            assert!(segments != 0 || outcome.lost > 0);
        }
    }
}

#[test]
fn without_values_the_text_is_the_same() {
    let without = marked(Spaces { values: false, ..Spaces::ALL });
    assert!(without.sites.iter().all(|site| site.kind != SiteKind::Value) && !without.sites.is_empty());
    let comments = |text: &str| text.lines().filter(|line| line.contains("WARPTRACE_VALUE")).count();
    assert_eq!(comments(&without.text), comments(VALUED));
    assert!(marked(Spaces::NONE).sites.is_empty());
}

fn named(body: &str) -> (Vec<(String, u16)>, Vec<String>) {
    let options = PointOptions { accesses: Spaces::VALUES, ..PointOptions::default() };
    let marked = mark_accesses(&module(body), &options).expect("it is PTX");
    let of = |site: &warptrace_ptx::points::Site| {
        let value = site.value.as_ref().expect("a value");
        (value.name.to_string(), value.id)
    };
    (marked.sites.iter().map(of).collect(), marked.unrecorded.into_iter().map(|(_, reason)| reason).collect())
}

#[test]
fn odd_names_and_bad_markers_are_said() {
    let (sites, said) =
        named("\t// WARPTRACE_VALUE u32 %r1 a \u{1b}[31m red\n\t// warptrace.value 7 f32 %f1\n\tret;");
    assert_eq!(sites, [("a \u{1b}[31m red".to_owned(), 0), (String::new(), 7)]);
    assert_eq!(said, [""; 0]);
    let long = format!("\t// WARPTRACE_VALUE u32 %r1 {}\n\tret;", "ä".repeat(150));
    let (sites, said) = named(&long);
    assert_eq!((sites, said.len()), (vec![(format!("{}…", "ä".repeat(100)), 0)], 0));
    for (marker, says) in [
        ("WARPTRACE_VALUE u32 %q1 name", "1 of its accesses are not recorded: `%q1` is no register"),
        ("WARPTRACE_VALUE u32 %rd1 name", "`%rd1` has not the bits of u32"),
        ("WARPTRACE_VALUE u32 %p1 name", "`%p1` has not the bits of u32"),
        ("WARPTRACE_VALUE u31 %r1 name", "`u31` is none of the types"),
        ("WARPTRACE_VALUE u32 %r1", "the name of a value is missing"),
        ("warptrace.value 0 u32 %r1", "`0` is not the value"),
    ] {
        let (sites, said) = named(&format!("\t// {marker}\n\tret;"));
        assert!(sites.is_empty() && said.len() == 1 && said[0].contains(says), "{marker}: {said:?}");
    }
    let many: String = (0..600).map(|number| format!("\t// WARPTRACE_VALUE u32 %r1 v{number}\n")).collect();
    let (sites, said) = named(&format!("{many}\tret;"));
    assert_eq!(sites.len(), 512);
    assert!(said[0].contains("88 of its accesses are not recorded: of a kernel at most 512"), "{said:?}");
}
