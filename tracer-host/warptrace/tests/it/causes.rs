//! Kernels with known causes of idle lanes: the first line that the tool prints names the cause.
#![expect(clippy::unwrap_used, clippy::manual_is_multiple_of, reason = "tests; names are what pages show")]

#[path = "../known/kernels.rs"]
mod kernels;

use kernels::known;
use warptrace::{Device, LaunchConfig};
use warptrace_analysis::words::{Names, apart, finding};
use warptrace_analysis::{Selection, Weight, analyse};
use warptrace_decoder::TraceFile;

/// The kernels with their stored PTX.
static MODULE: warptrace::device::KernelModule =
    warptrace::device::KernelModule { ptx: include_str!("../known/kernels.ptx"), ..known::MODULE };

/// A kernel without PTX, so without weights.
#[warptrace::kernels]
mod unweighted {
    use warptrace::device::{DisjointSlice, thread};

    /// Half of the lanes make no trip of the loop after the branch.
    #[kernel]
    pub fn no_trip(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        if data[i] == u32::MAX {
            *out += 1;
        } else {
            *out += 2;
        }
        let mut left = data[i] % 2 * 40;
        while left > 0 {
            *out += left * data[i];
            left -= 1;
        }
    }
}

/// Records a kernel of four warps on the numbers from 0 and returns the description of the greatest cause.
macro_rules! said {
    ($kernel:ident) => {
        said!(&MODULE, known::$kernel, Weight::Instructions)
    };
    ($module:expr, $kernel:path, $weight:expr) => {{
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wtrc");
        let device = Device::simulator();
        let data: Vec<u32> = (0..128).collect();
        let (data, out) = (device.upload(&data).unwrap(), device.zeros::<u32>(128).unwrap());
        let mut trace = device.trace(&path).memory(64 << 20).start($module).unwrap();
        let config = LaunchConfig::for_elements_in_blocks(128, 64);
        trace.launch(&$kernel(&data, &out), &config).unwrap();
        trace.finish().unwrap();
        let trace = TraceFile::open(&path).unwrap();
        let analysis = analyse(&trace, &Selection::default()).unwrap();
        assert_eq!(analysis.weight, $weight);
        let names = Names::new(&trace);
        let lines = analysis.cause_lines();
        let more = lines.first().map(|line| apart(&analysis, &names, line)).unwrap_or_default();
        let said = (finding(&analysis, &names), more.join("\n"));
        println!("{}: {}\n{}", stringify!($kernel), said.0, said.1);
        said
    }};
}

/// Returns the line number of this text in the kernels' file.
fn line_of(text: &str) -> usize {
    include_str!("../known/kernels.rs").lines().position(|line| line.trim() == text).unwrap() + 1
}

#[test]
fn a_branch_is_named_that_idles_later_lines() {
    let (first, _) = said!(branch);
    let line = line_of("if data[i] % 8 == 0 {");
    assert!(
        first.contains(&format!("caused by divergence in branch: if data[i] % 8 == 0 (kernels.rs:{line})")),
        "{first}"
    );
}

#[test]
fn a_loop_is_named_that_one_lane_does_not_leave() {
    let (first, more) = said!(long_lane);
    let line = line_of("for turn in 0..turns {");
    assert!(
        first.contains("caused by different trip counts of the loop at long_lane: for ")
            && first.ends_with(&format!("(kernels.rs:{line})")),
        "{first}"
    );
    assert!(more.contains("after 5 to 200 trips, median 5"), "{more}");
}

#[test]
fn an_early_return_is_named() {
    let (first, more) = said!(early);
    let line = line_of("if data[i] % 2 == 0 {");
    assert!(
        first.contains(&format!(
            "caused by divergence without reconvergence in early: if data[i] % 2 == 0 (kernels.rs:{line})"
        )),
        "{first}"
    );
    assert!(more.contains("they do not reconverge"), "{more}");
}

#[test]
fn of_nested_branches_the_one_is_named_that_parts_lanes() {
    let (first, _) = said!(nested);
    let line = line_of("if data[i] % 4 == 0 {");
    assert!(first.contains(&format!("in nested: if data[i] % 4 == 0 (kernels.rs:{line})")), "{first}");
}

#[test]
fn where_lanes_stay_together_nothing_is_named() {
    let (first, more) = said!(nothing);
    assert!(
        first.starts_with("none of ") && first.contains(" instruction slots idle") && more.is_empty(),
        "{first}"
    );
}

#[test]
fn a_branch_of_few_instructions_weighs_little_however_often_it_parts_lanes() {
    let (first, _) = said!(small);
    let line = line_of("if data[i] % 4 == 1 {");
    assert!(first.contains(&format!("in small: if data[i] % 4 == 1 (kernels.rs:{line})")), "{first}");
}

#[test]
fn a_loop_is_named_that_some_lanes_never_enter() {
    let (first, _) = said!(&unweighted::MODULE, unweighted::no_trip, Weight::Events);
    assert!(first.contains("in no_trip: while left > 0 (causes.rs:"), "{first}");
}

#[test]
fn of_two_branches_with_a_barrier_between_them_the_one_is_named_that_idles_lanes() {
    let (first, _) = said!(barrier);
    let line = line_of("if data[i] % 8 == 1 {");
    assert!(first.contains(&format!("in barrier: if data[i] % 8 == 1 (kernels.rs:{line})")), "{first}");
}
