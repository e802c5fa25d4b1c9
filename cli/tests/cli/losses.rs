//! A pool that is too small for the trace.

use crate::support::{Folder, WARPS, run, text};

/// A pool of one MiB with chunks of 64 KiB: 16 chunks for 32 warps, so that half of them find none.
const TOO_SMALL: [&str; 4] = ["--pool-mib", "1", "--chunk-bytes", "65536"];

#[test]
fn the_picture_is_unchanged_and_the_losses_are_exact() {
    let folder = Folder::new();
    let (whole_picture, picture) = (folder.at("whole.png"), folder.at("part.png"));
    let whole = folder.recorded("whole.wtrc", &["--picture", text(&whole_picture)]);
    let (path, (code, _, errors)) =
        folder.record("part.wtrc", &[&TOO_SMALL[..], &["--picture", text(&picture)]].concat());
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("--pool-mib"), "says what to do: {errors}");
    assert!(std::fs::read(whole_picture).unwrap() == std::fs::read(picture).unwrap(), "the pictures differ");

    let launch = |path: &str| {
        let (code, output, _) = run(&["info", path, "--json"]);
        assert_eq!(code, 0);
        let info: serde_json::Value = serde_json::from_str(&output).unwrap();
        let number = |field: &str| info["launches"][0][field].as_u64().unwrap();
        (number("events"), number("lost"))
    };
    let (attempted, none) = launch(text(&whole));
    assert_eq!(none, 0);
    let (recorded, lost) = launch(text(&path));
    assert!(recorded > 0 && lost > 0, "{recorded} recorded, {lost} lost");
    assert_eq!(recorded + lost, attempted);

    let (code, output, errors) = run(&["verify", text(&path)]);
    assert_eq!(code, 3, "{output}{errors}");
    assert!(output.contains(&format!("{lost} events of ")), "names {lost} lost events: {output}");
}

#[test]
fn what_was_recorded_is_a_beginning_of_each_warps_events() {
    let folder = Folder::new();
    let whole = folder.recorded("whole.wtrc", &[]);
    let (part, _) = folder.record("part.wtrc", &TOO_SMALL);
    let events = |path: &str| {
        let (code, output, _) = run(&["decode", path, "--format", "csv"]);
        assert_eq!(code, 0);
        output.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let (whole, part) = (events(text(&whole)), events(text(&part)));
    assert!(!part.is_empty() && part.len() < whole.len());
    assert!(part.iter().all(|line| whole.contains(line)));
    let of_warp = |line: &String| line.split(',').take(6).collect::<Vec<_>>().join(",");
    let warps: std::collections::BTreeSet<String> = part.iter().map(of_warp).collect();
    assert!(warps.len() < WARPS, "some warp found no chunk");
}
