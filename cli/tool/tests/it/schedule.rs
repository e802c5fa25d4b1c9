//! Place and time of warps: `top`, `warps` and `stats` agree with the simulator's schedule.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Folder, json, recorded, run, text};

const SMS: u64 = 4;

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn blocks_follow_each_other_on_their_multiprocessors() {
    let folder = Folder::new();
    let arguments = ["--graph", "road:1024", "--grid", "11x64", "--times", "all"];
    let path = folder.traced("mis", "a.wtrc", &arguments);
    let warps = json(&["warps", text(&path)]);
    // By launch and block: SM, begin, and the duration of the longest warp.
    let mut blocks: BTreeMap<(u64, u64), (u64, u64, u64)> = BTreeMap::new();
    for warp in warps["warps"].as_array().unwrap() {
        let block = warp["block"][0].as_u64().unwrap();
        let [begin, length, events, sm] =
            ["begin_nanoseconds", "nanoseconds", "visits", "sm"].map(|field| number(warp, field));
        // A nanosecond is an event of the warp.
        assert_eq!((length, sm), (events, block % SMS), "{warp}");
        let found = blocks.entry((number(warp, "launch"), block)).or_insert((sm, begin, length));
        assert_eq!(found.1, begin, "warps of a block begin together");
        found.2 = found.2.max(length);
    }
    let stats = json(&["stats", text(&path)]);
    let launches = stats["schedule"]["launches"].as_array().unwrap();
    assert_eq!(launches.len(), 2);
    for launch in launches {
        let number_of = number(launch, "launch");
        let mut free = [0; SMS as usize];
        let of_launch: Vec<_> = blocks.range((number_of, 0)..(number_of + 1, 0)).collect();
        for (_, (sm, begin, length)) in &of_launch {
            assert_eq!(free[*sm as usize], *begin, "{launch}");
            free[*sm as usize] += length;
        }
        let end = free.into_iter().max().unwrap();
        assert_eq!((number(launch, "nanoseconds"), number(launch, "blocks")), (end, of_launch.len() as u64));
        assert_eq!(number(launch, "busy_nanoseconds"), free.iter().sum::<u64>());
        assert_eq!(number(launch, "waiting_nanoseconds"), free.iter().map(|free| end - free).sum::<u64>());
        assert_eq!((number(launch, "waves"), number(launch, "sms")), (3, SMS));
        assert_eq!(number(launch, "gap_nanoseconds"), if number_of == 0 { 0 } else { 1_000 });
    }
    let (code, output, _) = run(&["verify", text(&path)]);
    assert!(code == 0 && output.contains("; warps: "), "{output}");
}

#[test]
fn top_says_first_which_block_was_waited_for() {
    let folder = Folder::new();
    let arguments = ["--graph", "road:1024", "--grid", "11x64", "--times", "blocks"];
    let path = folder.traced("mis", "a.wtrc", &arguments);
    let top = json(&["top", text(&path)]);
    let said = top["schedule_findings"][0].as_str().unwrap().to_owned();
    let launch = &top["schedule"]["launches"][0];
    assert_eq!(launch["kernel"], "mis_find");
    let last = &launch["last"];
    assert!(said.contains(&format!("on SM {}", number(last, "sm"))), "{said}");
    let share = 100.0 * number(launch, "waiting_nanoseconds") as f64
        / (number(launch, "nanoseconds") * number(launch, "sms")) as f64;
    assert!(share > 0.0 && said.contains("SMs waited "), "{share}: {said}");
    let (_, output, _) = run(&["top", text(&path)]);
    assert_eq!(output.lines().next(), Some(said.as_str()));
    let (_, output, _) = run(&["warps", text(&path)]);
    assert!(output.contains(" SM ") && output.contains(" ran "), "{output}");
    // A tail without cost is not the main finding.
    let arguments = ["--width", "96", "--depth", "400", "--times", "blocks"];
    let path = folder.traced("fractal", "b.wtrc", &arguments);
    let top = json(&["top", text(&path)]);
    let (_, output, _) = run(&["top", text(&path)]);
    let said: Vec<&str> = output.lines().take(2).collect();
    assert_eq!(said, [top["finding"].as_str().unwrap(), top["schedule_findings"][0].as_str().unwrap()]);
    assert!(said[1].contains(" SMs waited ") && said[1].ends_with(" of it for its end"), "{said:?}");
}

#[test]
fn damaged_spans_are_told_and_take_no_event_along() {
    let (folder, path) = recorded(&["--times", "all"]);
    let bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|four| four == b"SPAN").unwrap();
    let events = |path: &std::path::Path| json(&["stats", text(path)])["totals"].clone();
    let whole = events(&path);
    for place in [at + 24, at + 32, at + 37] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x20;
        let path = folder.at("damaged.wtrc");
        std::fs::write(&path, damaged).unwrap();
        let (code, output, _) = run(&["verify", text(&path)]);
        assert_eq!(code, 3, "{output}");
        assert!(output.contains("SPAN: checksum of the body at offset"), "{output}");
        assert_eq!(events(&path), whole);
        let (_, output, _) = run(&["top", text(&path)]);
        assert!(output.lines().next().unwrap().contains("begin or end of "), "{output}");
    }
}
