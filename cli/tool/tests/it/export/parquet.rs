//! Parquet, read by DuckDB.

use std::path::Path;

use serde_json::{Value, json};

use super::{ExportedRun, Warp, decoded, export, lossy, mis, read_with};
use crate::support::{Folder, run, text};

fn read(folder: &Path, tables: &[&str]) -> Option<Value> {
    read_with("read_parquet.py", "duckdb", &[&[text(folder)], tables].concat())
}

fn run_of(row: &Value) -> (Warp, ExportedRun) {
    let number = |column: usize| row[column].as_u64().unwrap();
    let warp = (number(0), [number(2), number(3), number(4)], number(5));
    let name = row[9].as_str().unwrap().to_owned();
    let (first_event, location, mask, count) = (number(7), number(8), number(12), number(19));
    assert_eq!(number(13), u64::from(mask.count_ones()));
    (warp, ExportedRun { location, mask, name, first_event, count })
}

#[test]
fn columns_are_typed_as_the_page_says() {
    let folder = Folder::new();
    let out = folder.at("tables/");
    export(&mis(&folder), "parquet", &out, &[]);
    let tables = ["runs", "locations", "launches", "losses", "accesses", "values", "sites", "access_losses"];
    let Some(mut found) = read(&out, &tables) else { return };
    let by_lane = folder.at("lanes/");
    export(&folder.at("mis.wtrc"), "parquet", &by_lane, &["--events"]);
    let lanes = ["lane_accesses", "lane_values"];
    let more = read(&by_lane, &lanes).unwrap();
    lanes.iter().for_each(|table| found[table] = more[table].clone());
    // For a trace without accesses, these tables have columns but no rows.
    for table in tables.iter().chain(&lanes).filter(|table| !tables[..3].contains(table)) {
        assert_eq!(found[*table]["rows"], json!([]), "{table}");
    }
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/exports.md"))
            .unwrap();
    for table in tables.iter().chain(&lanes).copied() {
        // Tables of values have the columns of tables of accesses.
        let documented = match table {
            "values" => "accesses",
            "lane_values" => "lane_accesses",
            other => other,
        };
        let section = page.split(&format!("**`{documented}`**")).nth(1).unwrap();
        let documented = section.split("**`").next().unwrap();
        let types = found[table]["types"].as_object().unwrap();
        assert!(!types.is_empty());
        for (column, kind) in types {
            let kind = match kind.as_str().unwrap() {
                "UTINYINT" => "uint8",
                "USMALLINT" => "uint16",
                "UINTEGER" => "uint32",
                "UBIGINT" => "uint64",
                "INTEGER" => "int32",
                "BIGINT" => "int64",
                "DOUBLE" => "float64",
                "VARCHAR" => "text",
                other => panic!("{column} is {other}"),
            };
            let line = documented
                .lines()
                .find(|line| line.starts_with('|') && line.contains(&format!("`{column}`")));
            let line = line.unwrap_or_else(|| panic!("the page has no {table}.{column}"));
            assert!(line.contains(&format!("| {kind}")), "{line} is {kind}");
        }
    }
    let launches = found["launches"]["rows"].as_array().unwrap();
    let info = super::json(&["info", text(&folder.at("mis.wtrc"))]);
    let kernels = &info["metadata"]["kernels"];
    assert_eq!(launches.len(), info["launches"].as_array().unwrap().len());
    for (row, launch) in launches.iter().zip(info["launches"].as_array().unwrap()) {
        assert_eq!(
            (&row[1], &row[12], &row[13]),
            (
                &kernels[launch["kernel"].as_u64().unwrap() as usize]["name"],
                &launch["events"],
                &json!("completed")
            )
        );
    }
}

mod full {
    use super::*;

    #[test]
    fn rows_are_the_runs_that_decode_prints_and_sums_are_those_of_lines() {
        let folder = Folder::new();
        let trace = mis(&folder);
        for (number, chosen) in
            [&[][..], &["--launch", "1"], &["--block", "1"], &["--warp", "1"]].iter().enumerate()
        {
            let out = folder.at(&format!("tables{number}/"));
            export(&trace, "parquet", &out, chosen);
            let Some(found) = read(&out, &["runs", "locations", "launches", "losses"]) else { return };
            let rows = found["runs"]["rows"].as_array().unwrap();
            let expected = decoded(&trace, chosen);
            let expected: Vec<(Warp, ExportedRun)> = expected
                .into_iter()
                .flat_map(|(warp, runs)| runs.into_iter().map(move |run| (warp, run)))
                .collect();
            assert!(rows.iter().map(run_of).eq(expected), "{chosen:?}");

            let lines = super::super::json(&[&["lines", text(&trace), "--sort", "source"], *chosen].concat());
            let lines: Vec<Value> = lines["lines"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| {
                    json!([
                        line["file"],
                        line["line"],
                        line["visits"],
                        line["lanes"],
                        line["lanes"],
                        line["warps"]
                    ])
                })
                .collect();
            assert!(lines.len() > 5 || *chosen == ["--launch", "1"], "{lines:?}");
            assert_eq!(found["runs"]["lines"], json!(lines), "{chosen:?}");
            assert_eq!(found["losses"]["rows"], json!([]));
            assert_eq!(found["runs"]["facts"]["warptrace.whole"], "true");
        }
    }

    #[test]
    fn events_are_a_row_each_and_groups_of_rows_are_bounded() {
        let folder = Folder::new();
        let trace = folder.traced("fractal", "a.wtrc", &["--width", "128", "--depth", "900"]);
        let out = folder.at("all/");
        std::fs::create_dir(&out).unwrap();
        export(&trace, "parquet", &out, &["--events"]);
        let Some(found) =
            read_with("read_parquet_events.py", "duckdb", &[text(&out.join("events/**/*.parquet"))])
        else {
            return;
        };
        let events = super::super::json(&["lines", text(&trace)])["totals"]["visits"].as_u64().unwrap();
        assert!(events > 1 << 18, "{events} events are more than a group");
        assert_eq!(found["rows"], events);
        // Events of each warp are numbered from 0, without gaps.
        assert_eq!(found["gaps"], 0);
        assert_eq!(found["largest_group"], 1 << 18);
    }

    #[test]
    fn losses_have_rows_facts_and_a_warning() {
        let folder = Folder::new();
        for policy in ["stop", "ring"] {
            let trace = lossy(&folder, &["--policy", policy]);
            let out = folder.at(policy);
            std::fs::create_dir(&out).unwrap();
            let (code, output, errors) = run(&["export", text(&trace), "--to", "parquet", "-o", text(&out)]);
            assert_eq!(code, 0, "{errors}");
            assert!(errors.starts_with("warning: INCOMPLETE trace: "), "{errors}");
            assert!(output.contains("/losses: "), "{output}");
            let Some(found) = read(&out, &["runs", "losses"]) else { return };
            let facts = &found["runs"]["facts"];
            assert_eq!(
                (&facts["warptrace.whole"], &facts["warptrace.policy"]),
                (&json!("false"), &json!(policy))
            );
            let lost =
                super::super::json(&["lines", text(&trace)])["losses"]["lost_events"].as_u64().unwrap();
            let rows = found["losses"]["rows"].as_array().unwrap();
            let (reason, position) =
                if policy == "stop" { ("memory", "end") } else { ("overwritten", "start") };
            assert!(rows.iter().all(|row| row[9] == reason && row[10] == position && row[8] == 1));
            assert_eq!(rows.iter().map(|row| row[11].as_u64().unwrap()).sum::<u64>(), lost);

            // An export of a part warns about the losses of that part.
            let part = folder.at(&format!("{policy}-part/"));
            let (_, _, errors) =
                run(&["export", text(&trace), "--to", "parquet", "-o", text(&part), "--warp", "3"]);
            assert!(errors.contains("1 warp were lost") || errors.contains("of 1 warp "), "{errors}");
            let found = read(&part, &["losses"]).unwrap();
            let rows = found["losses"]["rows"].as_array().unwrap();
            assert!(rows.len() == 1 && rows[0][5] == 3, "{rows:?}");
        }
    }
}
