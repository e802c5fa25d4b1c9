//! What a recording has of a kernel that fails.

use crate::support::{Folder, run, text};

/// Records a kernel of which thread 37 traps.
fn record(folder: &Folder, how: &[&str]) -> (u8, String) {
    let program = ["--threads", "64", "--turns", "3", "--culprit", "37"];
    let (_, (code, _, error)) = folder.record("fault", "trace", &[&program, how].concat());
    (code, error)
}

#[test]
fn in_the_hosts_memory_everything_is_there() {
    let folder = Folder::new();
    let path = folder.at("trace");
    let (code, error) = record(&folder, &["--policy", "stream", "--post-mortem"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("kernel `fault` failed") && error.contains("as it was asked for"), "{error}");
    let (_, decoded, _) = run(&["decode", text(&path), "--warp", "1"]);
    let of_lane_5 = |line: &&str| {
        let mask = line.split_whitespace().nth(1).unwrap_or_default();
        mask.len() == 32 && mask.as_bytes()[31 - 5] == b'1'
    };
    let lines = decoded.lines().filter(of_lane_5);
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().last()).collect();
    // Thread 37 takes 3 + 37 % 4 turns.
    assert_eq!(names, ["ENTER", "EVEN", "ODD", "EVEN", "ODD", "CULPRIT"], "{decoded}");
}

#[test]
fn what_the_simulator_cannot_do_is_said() {
    let folder = Folder::new();
    let (code, error) = record(&folder, &["--how", "stray"]);
    assert_eq!(code, 1);
    assert!(error.contains("the simulator does not guard its memory"), "{error}");
}

#[test]
fn logs_that_are_not_emptied_are_not_in_the_hosts_memory() {
    let folder = Folder::new();
    let (code, error) = record(&folder, &["--post-mortem"]);
    assert_eq!(code, 1);
    assert!(error.contains("choose the policy `stream` as well"), "{error}");
    let (code, error) = record(&folder, &["--how", "nothing"]);
    assert_eq!((code, error.as_str()), (0, ""));
}
