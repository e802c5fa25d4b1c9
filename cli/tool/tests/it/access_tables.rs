//! Addresses and values in exports, in the page of `report`, in `top` and in `diff`.

use std::path::Path;
#[cfg(feature = "parquet")]
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::accesses::{page, record, record_with};
#[cfg(feature = "parquet")]
use crate::support::read_with;
use crate::support::{Folder, json, printed, run, text};
use warptrace_format::file::Derived;

#[cfg(feature = "parquet")]
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[cfg(feature = "parquet")]
fn export(folder: &Folder, trace: &Path, name: &str) -> [PathBuf; 2] {
    [("runs", &[][..]), ("lanes", &["--events"])].map(|(form, more)| {
        let out = folder.at(&format!("{name}-{form}/"));
        let (code, _, errors) =
            run(&[&["export", text(trace), "--to", "parquet", "-o", text(&out)], more].concat());
        assert_eq!(code, 0, "{errors}");
        out
    })
}

#[cfg(feature = "parquet")]
fn read(tables: &[PathBuf; 2]) -> Option<Value> {
    let docs = std::fs::read_to_string(Path::new(ROOT).join("docs/reference/exports.md")).unwrap();
    let formula = docs.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(formula.contains("address // 32"), "{formula}");
    read_with("read_accesses.py", "duckdb", &[text(&tables[0]), text(&tables[1]), formula])
}

#[cfg(feature = "parquet")]
fn counted(trace: &Path) -> Vec<Value> {
    let found = json(&["accesses", text(trace)]);
    let mut sites = found["sites"].as_array().unwrap().clone();
    sites.sort_by_key(|site| site["site"].as_u64());
    sites
}

#[cfg(feature = "parquet")]
fn check(trace: &Path, found: &Value) {
    let sites = counted(trace);
    let expected: Vec<Value> = sites
        .iter()
        .map(|site| {
            let counts = &site["counts"];
            json!([site["site"], counts["sectors"], counts["requests"], counts["lanes"], site["events"]])
        })
        .collect();
    assert_eq!(found["sites"], json!(expected));
    let global =
        sites.iter().filter(|site| ["global", "generic"].iter().any(|space| site["space"] == *space));
    let global: Vec<Value> = global
        .filter(|site| site["kind"] != "value")
        .map(|site| json!([site["site"], site["counts"]["sectors"], site["counts"]["requests"]]))
        .collect();
    assert_eq!(found["sectors"], json!(global), "sectors by the documentation's formula");
    assert_eq!(found["runs"], found["lanes"], "both forms have the same accesses");
    let lanes: Vec<Value> = sites.iter().map(|site| json!([site["site"], site["counts"]["lanes"]])).collect();
    let rows = found["lanes"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| json!([row[0], row[1]])).collect::<Vec<_>>(), lanes);
}

#[cfg(feature = "parquet")]
#[test]
fn tables_say_which_accesses_are_lost() {
    let folder = Folder::new();
    let trace = record(&folder, "lossy.wtrc", 200);
    let Some(found) = read(&export(&folder, &trace, "lossy")) else { return };
    check(&trace, &found);
    let counted = json(&["accesses", text(&trace)]);
    let fields = ["accesses", "lost_accesses", "left_out_accesses", "unmatched_accesses"];
    let [all, lost, left_out, unmatched] = fields.map(|field| &counted[field]);
    assert_eq!(found["losses"], json!([[0, all, lost, left_out, unmatched]]));
    assert_eq!(found["facts"]["warptrace.accesses_lost"], lost.to_string());
    // Losses of values are not in the other table.
    assert_eq!(found["facts"]["warptrace.accesses_left_out"], left_out.to_string());
    assert!(lost.as_u64().unwrap() > 0 && left_out.as_u64().unwrap() > 0);
}

#[test]
fn top_says_what_is_lost_before_what_is_wasted() {
    let folder = Folder::new();
    let lossy = record(&folder, "lossy.wtrc", 200);
    let top = page("top", &lossy);
    let line = top.lines().find(|line| line.starts_with("memory ")).unwrap();
    assert!(line.starts_with("memory  accesses: ") && line.contains(" lost, "), "{line}");
    assert!(line.contains("of those known: no line is known to move more"), "{line}");
    let lacks = json(&["top", text(&lossy)])["access_losses"].clone();
    assert!(line.contains(lacks.as_str().unwrap()));
    let whole = record(&folder, "whole.wtrc", usize::MAX);
    assert!(json(&["top", text(&whole)])["access_losses"].is_null());
}

#[test]
fn diff_compares_sectors_and_passes_by_line() {
    let folder = Folder::new();
    let whole = record(&folder, "whole.wtrc", usize::MAX);
    let derived = Some(Derived { root: 1, offset: 4, is_narrow: false });
    let more = record_with(&folder, "derived.wtrc", usize::MAX, derived);
    let same = printed(&["diff", text(&whole), text(&whole)]);
    assert!(same.contains("no line has more or fewer of either"), "{same}");
    let (_, output, _) = run(&["diff", text(&whole), text(&more)]);
    // The additional site has its own line: 256 requests of 5 sectors.
    let row = output.lines().find(|line| line.starts_with("transpose.cu:16 ")).unwrap();
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row[1..6], ["256", "+256", "1,280", "+1,280", "1,024"], "{output}");
    assert!(!output.contains("transpose.cu:13"), "{output}");
    let found = json(&["diff", text(&whole), text(&more)])["accesses"].clone();
    assert_eq!((&found["exact"], &found["lost_accesses"]), (&json!([true, true]), &json!([0, 0])));
    let first = &found["lines"][0];
    assert_eq!((&first["line"], &first["counts"][0]["sectors"]), (&json!(16), &json!(0)));
    let row = found["lines"].as_array().unwrap().iter().find(|row| row["line"] == 13).unwrap();
    assert_eq!(row["counts"][0], row["counts"][1]);
    let lossy = record(&folder, "lossy.wtrc", 200);
    let (_, output, _) = run(&["diff", text(&whole), text(&lossy)]);
    let section = output.split("banks of shared memory\n").nth(1).unwrap();
    assert!(section.starts_with("second: accesses: ") && section.contains(" lost, "), "{output}");
    let demo = folder.recorded("demo.wtrc", &[]);
    assert!(json(&["diff", text(&demo), text(&demo)])["accesses"].is_null());
}

fn memory(trace: &Path) -> (Option<String>, Value) {
    assert_eq!(run(&["report", text(trace)]).0, 0);
    let html = std::fs::read_to_string(trace.with_extension("html")).unwrap();
    let section = html.split(r#"<section id="memory""#).nth(1);
    let section = section.map(|section| section.split("</section>").next().unwrap().to_owned());
    let figures = html.split(r#"id="figures">"#).nth(1).unwrap().split("</script>").next().unwrap();
    (section, serde_json::from_str(figures).unwrap())
}

#[test]
fn the_page_has_the_lines_that_accesses_prints() {
    let folder = Folder::new();
    let whole = record(&folder, "whole.wtrc", usize::MAX);
    let (section, figures) = memory(&whole);
    let section = section.unwrap();
    assert_eq!(figures["accesses"]["lines"], json(&["accesses", text(&whole)])["lines"]);
    assert!(section.contains("transpose.cu:13 moves 8.0 times the bytes"), "{section}");
    let cells = ["load global", "store global", "load shared", "value weight"];
    assert!(cells.iter().all(|cell| section.contains(cell)), "{section}");
    assert!(
        section.contains(r#"data-label="sectors"><b>32.0</b>"#) && section.contains(">2048<"),
        "{section}"
    );
    // 32 passes are as long as 128 sectors, the longest bar. The minimum is one pass.
    assert!(section.contains(r#"<path d="M0 1h160.0v12H0z"/><path class="least" d="M0 4h5.0v6H0z"/>"#));
    assert!(!section.contains("class=\"note\""), "nothing is lost or estimated: {section}");
    let (section, figures) = memory(&record(&folder, "lossy.wtrc", 200));
    let section = section.unwrap();
    let [note, finding] = ["class=\"note\">accesses: ", "no line is known to move more"]
        .map(|part| section.find(part).unwrap());
    assert!(note < finding && section.contains(" left out, since others"), "{section}");
    assert!(figures["accesses"]["lost_accesses"].as_u64().unwrap() > 0);
    let (section, figures) = memory(&folder.recorded("demo.wtrc", &[]));
    assert!(section.is_none() && figures["accesses"].is_null());
}

#[cfg(feature = "parquet")]
mod full {
    use super::*;

    #[test]
    fn sectors_that_duckdb_counts_are_those_of_accesses() {
        let folder = Folder::new();
        let derived = Some(Derived { root: 1, offset: 4, is_narrow: false });
        let golden = |name: &str| Path::new(ROOT).join(name);
        let traces = [
            record(&folder, "whole.wtrc", usize::MAX),
            record_with(&folder, "derived.wtrc", usize::MAX, derived),
            golden("decoder/decode/tests/golden/accesses-v2.wtrc"),
            golden("fuzz/corpus/data/accesses-v2.wtrc"),
        ];
        for (number, trace) in traces.iter().enumerate() {
            let Some(found) = read(&export(&folder, trace, &number.to_string())) else { return };
            check(trace, &found);
            assert!(found["sectors"].as_array().unwrap().len() > 1, "{found}");
            if number < 2 {
                assert_eq!(found["losses"], json!([]));
                assert_eq!(found["facts"]["warptrace.accesses_lost"], "0");
                let numbers = &found["numbers"][0];
                assert_eq!(numbers[0], "weight");
                assert!(
                    numbers[1].as_f64().unwrap() >= 1.0 && numbers[2].as_f64().unwrap() < 2.0,
                    "{numbers}"
                );
                assert!(numbers[3].as_u64().unwrap() > 1000, "{numbers}");
            }
        }
    }
}
