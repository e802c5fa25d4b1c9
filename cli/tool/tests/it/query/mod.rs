//! `warptrace query`: compares SQL with the figures and events that other commands print.

#[cfg(unix)]
mod programs;

use std::path::Path;

use crate::bad_traces::bad_traces;
use crate::support::{Folder, printed, read_with, recorded, refused, run, text};
use serde_json::{Value, json};

fn mis(folder: &Folder, name: &str, seed: &str) -> std::path::PathBuf {
    let more = ["--graph", "road:1024", "--grid", "16x64", "--sim-seed", seed];
    folder.traced("mis", name, &more)
}

fn ask(sql: &str, files: &[&Path]) -> Vec<Value> {
    let mut arguments = vec!["query", sql, "--format", "json"];
    arguments.extend(files.iter().map(|file| text(file)));
    let (code, output, errors) = run(&arguments);
    assert_eq!(code, 0, "{sql}: {errors}");
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{sql}: {error}: {output}"))
}

fn tool(arguments: &[&str]) -> Value {
    serde_json::from_str(&run(&[arguments, &["--json"]].concat()).1).unwrap()
}

#[test]
fn sums_over_events_runs_and_locations_are_those_of_stats() {
    let folder = Folder::new();
    let trace = mis(&folder, "a.wtrc", "1");
    let stats = tool(&["stats", text(&trace)]);
    let expected = stats["locations"].as_array().unwrap();
    for sql in [
        "select location, count(*) as visits, sum(lanes) as lanes from events group by location order by location",
        "select location, sum(count) as visits, sum(lanes * count) as lanes from runs group by 1 order by 1",
        "select location, visits, lanes from locations where visits > 0 order by location",
    ] {
        let rows = ask(sql, &[&trace]);
        assert_eq!(rows.len(), expected.len(), "{sql}");
        for (row, expected) in rows.iter().zip(expected) {
            for field in ["location", "visits", "lanes"] {
                assert_eq!(row[field], expected[field], "{sql}: {row}");
            }
        }
    }
    let warps = ask("select launch, warp_index, visits, idle, path from warps order by 1, 2", &[&trace]);
    let expected = tool(&["warps", text(&trace), "--sort", "number"]);
    for (row, expected) in warps.iter().zip(expected["warps"].as_array().unwrap()) {
        assert_eq!(row["warp_index"], expected["warp"]);
        assert_eq!(row["visits"], expected["visits"]);
        assert_eq!(row["path"].to_string(), expected["path"].as_str().unwrap());
    }
    let loops = ask("select name, max, imbalance from loops order by idle desc", &[&trace]);
    let expected = tool(&["loops", text(&trace)]);
    let expected = expected["loops"].as_array().unwrap();
    assert_eq!(loops.len(), expected.len());
    assert_eq!((&loops[0]["name"], &loops[0]["max"]), (&expected[0]["name"], &expected[0]["trips"]["max"]));
    let launches = ask("select kernel, warps, events, \"end\" from launches order by launch", &[&trace]);
    assert_eq!(
        launches[0],
        json!({ "kernel": "mis_init", "warps": 32, "events": launches[0]["events"], "end": "completed" })
    );
}

/// Launch, block, warp, event, location, mask.
fn decoded(trace: &Path) -> Vec<[u64; 6]> {
    let (_, output, _) = run(&["decode", text(trace), "--format", "csv"]);
    let row = |record: csv::StringRecord| {
        let number = |column: usize| record[column].parse::<u64>().unwrap();
        let mask = u64::from_str_radix(record[9].trim_start_matches("0x"), 16).unwrap();
        [number(0), number(2), number(5), number(6), number(7), mask]
    };
    csv::Reader::from_reader(output.as_bytes()).records().map(|record| row(record.unwrap())).collect()
}

#[test]
fn conditions_choose_the_rows_that_decode_prints() {
    let folder = Folder::new();
    let trace = mis(&folder, "a.wtrc", "1");
    let all = decoded(&trace);
    type Keep = fn(&[u64; 6]) -> bool;
    let conditions: [(&str, Keep); 8] = [
        ("true", |_| true),
        ("launch = 1", |row| row[0] == 1),
        ("kernel = 'mis_init'", |row| row[0] == 0),
        ("warp_index between 3 and 9 and launch >= 1", |row| {
            row[0] == 1 && (3..=9).contains(&(row[1] * 2 + row[2]))
        }),
        ("block_x = 4 or block_x = 5 and warp = 1", |row| row[1] == 4 || row[1] == 5 && row[2] == 1),
        ("location in (14, 2) and event > 3", |row| [2, 14].contains(&row[4]) && row[3] > 3),
        ("lanes < 4 and mask % 2 = 1", |row| row[5].count_ones() < 4 && row[5] % 2 == 1),
        ("launch = 7 or warp_index = 4000000", |_| false),
    ];
    for (condition, keep) in conditions {
        let expected: Vec<[u64; 6]> = all.iter().filter(|row| keep(row)).copied().collect();
        let columns = "launch, block_x, warp, event, location, mask";
        let sql =
            format!("select {columns} from events where {condition} order by launch, warp_index, event");
        let rows = ask(&sql, &[&trace]);
        let fields = ["launch", "block_x", "warp", "event", "location", "mask"];
        let found: Vec<[u64; 6]> =
            rows.iter().map(|row| fields.map(|field| row[field].as_u64().unwrap())).collect();
        assert_eq!(found, expected, "{condition}");
        let counted = ask(&format!("select count(*) as n from events where {condition}"), &[&trace]);
        assert_eq!(counted[0]["n"], expected.len(), "{condition}");
    }
}

#[test]
fn times_of_runs_and_events_add_up_to_those_of_stats() {
    let folder = Folder::new();
    let more = ["--graph", "road:1024", "--grid", "16x64", "--times", "runs"];
    let trace = folder.traced("mis", "a.wtrc", &more);
    let stats = tool(&["stats", text(&trace)]);
    let cycles = |rows: &[Value]| -> Vec<u64> {
        rows.iter().map(|row| row["warp_cycles"].as_u64().unwrap()).collect()
    };
    for sql in [
        "select location, coalesce(sum(t_end - t_begin), 0) as warp_cycles from runs group by 1 order by 1",
        "select location, warp_cycles from locations where visits > 0 order by location",
    ] {
        assert_eq!(cycles(&ask(sql, &[&trace])), cycles(stats["locations"].as_array().unwrap()), "{sql}");
    }
    let fields = ["lane_cycles", "warp_cycles", "active_lane_cycles", "idle_lane_cycles", "timed_visits"];
    for table in ["locations", "lines", "kernels"] {
        let sums = fields.map(|field| format!("sum({field}) as {field}")).join(", ");
        let rows = ask(&format!("select {sums} from {table}"), &[&trace]);
        for field in fields {
            assert_eq!(rows[0][field], stats["totals"][field], "{table} {field}");
        }
    }
    let warps = ask("select cycles as warp_cycles from warps", &[&trace]);
    assert_eq!(stats["totals"]["warp_cycles"], cycles(&warps).iter().sum::<u64>());
    // The first event of a run has its begin and the last one its end, also if not every event is expanded.
    let sums = "count(t_begin) as begins, count(t_end) as ends, min(t_begin) as first, max(t_end) as last, \
                count(*) filter (where t_begin is null) as more";
    let [of_runs, of_events] =
        ["runs", "events"].map(|table| ask(&format!("select {sums} from {table}"), &[&trace]).remove(0));
    for field in ["begins", "ends", "first", "last"] {
        assert_eq!(of_runs[field], of_events[field], "{field}");
    }
    let runs = ask("select count(*) as runs from runs", &[&trace]);
    assert_eq!((&of_runs["begins"], &of_runs["more"]), (&runs[0]["runs"], &json!(0)));
    assert_eq!(
        of_events["more"].as_u64().unwrap() + runs[0]["runs"].as_u64().unwrap(),
        stats["totals"]["visits"].as_u64().unwrap()
    );
    let untimed = mis(&folder, "b.wtrc", "1");
    for (table, column) in
        [("runs", "t_begin"), ("events", "t_end"), ("lines", "warp_cycles"), ("warps", "cycles")]
    {
        let rows = ask(&format!("select count({column}) as known from {table}"), &[&untimed]);
        assert_eq!(rows[0]["known"], 0, "{table}");
    }
}

#[test]
fn rows_say_on_which_multiprocessor_and_when_their_block_ran() {
    let folder = Folder::new();
    let more = ["--graph", "road:1024", "--grid", "11x64", "--times", "all"];
    let trace = folder.traced("mis", "a.wtrc", &more);
    let stats = tool(&["stats", text(&trace)]);
    let launches = stats["schedule"]["launches"].as_array().unwrap();
    // Aggregates of `events` read a table of sums, aggregates of `runs` do not. Both have the same blocks.
    for table in ["runs", "events"] {
        let of_blocks = format!(
            "select launch, count(distinct sm) as sms, count(*) as blocks, max(e) as nanoseconds, sum(e - b) as busy_nanoseconds \
             from (select launch, block_x, min(sm) as sm, min(block_begin_ns) as b, max(block_end_ns) as e from {table} \
             group by launch, block_x) group by launch order by launch"
        );
        let rows = ask(&of_blocks, &[&trace]);
        assert_eq!(rows.len(), launches.len());
        for (row, launch) in rows.iter().zip(launches) {
            for field in ["launch", "sms", "blocks", "nanoseconds", "busy_nanoseconds"] {
                assert_eq!(row[field], launch[field], "{table} {field}");
            }
        }
    }
    let rows =
        ask("select begin_ns, end_ns - begin_ns as nanoseconds from launches order by launch", &[&trace]);
    for (row, launch) in rows.iter().zip(launches) {
        assert_eq!(json!(row["begin_ns"].to_string()), launch["begin"]);
        assert_eq!(row["nanoseconds"], launch["nanoseconds"]);
    }
    let warps = tool(&["warps", text(&trace), "--sort", "number"]);
    let rows = ask("select sm, begin_ns, end_ns from warps order by launch, warp_index", &[&trace]);
    for (row, warp) in rows.iter().zip(warps["warps"].as_array().unwrap()) {
        assert_eq!((&row["sm"], &row["begin_ns"]), (&warp["sm"], &warp["begin_nanoseconds"]));
        let [begin, length] = ["begin_nanoseconds", "nanoseconds"].map(|field| warp[field].as_u64().unwrap());
        assert_eq!(row["end_ns"], begin + length);
    }
}

#[test]
fn the_page_shows_what_the_tool_prints() {
    let folder = Folder::new();
    let trace = folder.traced("mis", "before.wtrc", &crate::pages::BEFORE);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/exports.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (command, rest) =
        page.split_once("$ warptrace query \"").unwrap().1.split_once("\" before.wtrc\n").unwrap();
    let shown = rest.split_once("```").unwrap().0;
    let printed = printed(&["query", command, text(&trace)]);
    assert_eq!(printed.replace(text(&trace), "before.wtrc"), shown);
}

#[test]
fn traces_are_told_apart_by_a_column() {
    let folder = Folder::new();
    let [a, b] = [("a.wtrc", "1"), ("b.wtrc", "2")].map(|(name, seed)| mis(&folder, name, seed));
    let rows = ask("select trace, sum(count) as n from runs group by trace order by trace", &[&a, &b]);
    for (row, path) in rows.iter().zip([&a, &b]) {
        assert_eq!(row["trace"], text(path));
        assert_eq!(row["n"], tool(&["stats", text(path)])["totals"]["visits"]);
    }
    assert_eq!(rows.len(), 2);
    let one = format!("select count(*) as n from events where trace = '{}'", text(&b));
    assert_eq!(ask(&one, &[&a, &b])[0]["n"], rows[1]["n"]);
}

#[test]
fn answers_have_four_forms() {
    let folder = Folder::new();
    let trace = mis(&folder, "a.wtrc", "1");
    let sql =
        "select name, line, count(*) as visits from events group by name, line order by visits desc, name";
    let expected = ask(sql, &[&trace]);
    let (code, table, _) = run(&["query", sql, text(&trace), "--limit", "2"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((code, lines.len()), (0, 5), "{table}");
    assert!(lines[0].contains("whole trace; ") && lines[1].starts_with("name "), "{table}");
    assert!(lines[2].starts_with(expected[0]["name"].as_str().unwrap()), "{table}");
    assert_eq!(lines[4], "and more; `--limit 0` shows all");
    let (_, mean, _) = run(&["query", "select 2.0 / 3.0 as mean", text(&trace)]);
    assert!(mean.ends_with("  mean\n0.6667\n"), "{mean}");
    let (_, output, _) = run(&["query", sql, text(&trace), "--format", "csv"]);
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(output.as_bytes()).records().map(|record| record.unwrap()).collect();
    assert_eq!(rows.len(), expected.len());
    assert_eq!(rows[0][2], expected[0]["visits"].to_string());
    let parquet = folder.at("answer.parquet");
    let (code, _, errors) = run(&["query", sql, text(&trace), "--format", "parquet", "-o", text(&parquet)]);
    assert_eq!(code, 0, "{errors}");
    if let Some(found) = read_with("read_answer.py", "duckdb", &[text(&parquet)]) {
        assert_eq!(found, json!(expected));
    }
}

#[test]
fn what_cannot_be_asked_is_said() {
    let (folder, trace) = recorded(&[]);
    for (sql, words) in [
        ("select nme from events", &["no column `nme`", "name"][..]),
        ("select * from evnts", &["no table `evnts`", "events, runs, warps, locations, loops, launches"]),
        ("selct 1", &["no SQL"]),
        ("", &["the query is empty: begin it with SELECT"]),
        ("create table t as select 1", &["SELECT"]),
        ("insert into runs select * from runs", &["SELECT"]),
        ("set datafusion.execution.batch_size = 1", &["SELECT"]),
        ("copy runs to 'x.csv'", &["SELECT"]),
        ("select strange(mask) from events", &["strange"]),
        ("select 1 / 0 from events", &["zero"]),
    ] {
        let (code, output, errors) = run(&["query", sql, text(&trace)]);
        assert_eq!(code, 1, "{sql}: {output}");
        assert!(errors.starts_with("error: ") && errors.lines().count() == 1, "{sql}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{sql}: {errors}");
        }
    }
    let deep = format!("select {}1{}", "(".repeat(30_000), ")".repeat(30_000));
    let (code, _, errors) = run(&["query", &deep, text(&trace)]);
    assert_eq!(code, 1, "{errors}");
    refused(&["query", "select 1", text(&folder.at("none"))], "cannot open");
    refused(&["query", "select 1", text(&trace), text(&trace)], "is named twice");
}

#[test]
fn an_answer_that_cannot_be_finished_leaves_an_earlier_one_alone() {
    let (folder, trace) = recorded(&["--zstd", "0"]);
    let damaged = folder.at("damaged.wtrc");
    let mut bytes = std::fs::read(&trace).unwrap();
    let frame = bytes.windows(4).position(|tag| tag == b"FRAM").unwrap();
    bytes[frame + 60] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let answer = folder.at("answer.csv");
    let ask =
        |trace: &Path, sql: &str| run(&["query", sql, text(trace), "--format", "csv", "-o", text(&answer)]);
    assert_eq!(ask(&trace, "select count(*) as n from events").0, 0);
    let before = std::fs::read_to_string(&answer).unwrap();
    assert!(before.starts_with("n\n"), "{before}");
    for (trace, sql) in [(&damaged, "select * from events"), (&trace, "select array_agg(mask) from runs")] {
        let (code, output, errors) = ask(trace, sql);
        assert_eq!((code, output.as_str()), (1, ""), "{errors}");
        assert_eq!(std::fs::read_to_string(&answer).unwrap(), before);
    }
    let files = folder.files();
    assert!(files.iter().all(|name| !name.starts_with('.')), "{files:?}");
    refused(&["query", "select 1", text(&trace), "-o", text(&trace)], "are one file");
}

#[test]
fn a_plan_is_shown_line_by_line() {
    let (_folder, trace) = recorded(&[]);
    let plan = printed(&["query", "explain select name, count(*) from events group by 1", text(&trace)]);
    let scan = "    TableScan: events projection=[name, count]";
    assert!(plan.lines().any(|line| line.trim_start() == scan.trim_start()), "{plan}");
    assert!(!plan.contains("\\n"), "{plan}");
}

#[test]
fn lost_events_and_damage_are_said() {
    let folder = Folder::new();
    let lossy =
        folder.traced("stress", "lossy.wtrc", &["--walks", "256", "--rounds", "64", "--memory", "1MiB"]);
    let sql = "select sum(count) as n from runs";
    let (code, table, _) = run(&["query", sql, text(&lossy)]);
    assert!(code == 0 && table.lines().next().unwrap().contains("INCOMPLETE trace"), "{table}");
    let (_, _, errors) = run(&["query", sql, text(&lossy), "--format", "csv"]);
    assert!(errors.starts_with("warning: ") && errors.contains("INCOMPLETE"), "{errors}");

    let whole = folder.recorded("whole.wtrc", &[]);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = folder.at("cut.wtrc");
    std::fs::write(&cut, &bytes[..bytes.len() - 60]).unwrap();
    let (code, table, _) = run(&["query", sql, text(&cut)]);
    assert!(code == 0 && table.lines().next().unwrap().contains("INCOMPLETE trace"), "{table}");
}

#[test]
fn each_kind_of_bad_file_is_told() {
    let folder = Folder::new();
    for (lack, path) in bad_traces(&folder) {
        for format in ["table", "csv", "json"] {
            let sql = "select name, location, count(*) as n from events group by 1, 2 order by 2";
            let (code, output, errors) = run(&["query", sql, text(&path), "--format", format]);
            assert!(!errors.contains("panicked"), "{lack:?}: {errors}");
            if let Some([start, part]) = lack.error(&path) {
                let start =
                    if start == "error: cannot " { format!("error: {}: ", text(&path)) } else { start };
                assert_eq!(code, 1, "{format} {lack:?}: {output}");
                assert!(errors.starts_with(&start) && errors.contains(&part), "{format} {lack:?}: {errors}");
                assert!(!output.contains("trace"), "{format} {lack:?}: {output}");
                continue;
            }
            assert_eq!(code, 0, "{format} {lack:?}: {errors}");
            let first = if format == "table" { &output } else { &errors }.lines().next().unwrap_or_default();
            match lack.incomplete() {
                Some(part) => {
                    assert!(first.contains("INCOMPLETE trace: ") && first.contains(part), "{first}");
                }
                None => assert_eq!(first.contains("whole trace; "), format == "table", "{lack:?}: {first}"),
            }
        }
    }
    // Without a table of locations, names are unknown. Without events, counts are 0.
    let bare = folder.at("bare.wtrc");
    let rows = ask("select name, location, count(*) as n from events group by 1, 2 order by 2", &[&bare]);
    assert_eq!(
        rows,
        [json!({ "name": null, "location": 7, "n": 2 }), json!({ "name": null, "location": 9, "n": 1 })]
    );
    let empty = folder.at("empty.wtrc");
    assert_eq!(ask("select count(*) as n from events", &[&empty]), [json!({ "n": 0 })]);
}

#[test]
fn memory_is_bounded() {
    let folder = Folder::new();
    let trace = folder.traced("fractal", "large.wtrc", &["--width", "128", "--depth", "900"]);
    // Sorting all events exceeds the memory, so it uses temporary files.
    let sql = "select mask, event, warp_index from events order by mask, event, warp_index";
    let (code, output, errors) = run(&["query", sql, text(&trace), "--format", "csv", "--memory", "16"]);
    if code == 0 {
        let masks: Vec<u64> =
            output.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
        assert!(masks.is_sorted() && masks.len() > 100_000, "{}", masks.len());
    } else {
        assert!(errors.contains("more memory than it may take"), "{errors}");
    }
}
