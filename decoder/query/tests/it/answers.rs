//! Results match the analysis and the decoded events, also for files of earlier versions.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use warptrace_analysis::{Selection, analyse};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_query::{Database, Format, QueryError, Writer};

const MEMORY: usize = 64 << 20;

/// Returns all traces: recordings of programs on the simulator, and the decoder's golden files.
fn paths() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/traces", "../decode/tests/golden"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wtrc"));
    paths.sort();
    assert!(paths.len() >= 7, "{paths:?}");
    paths
}

fn trace(name: &str) -> TraceFile {
    TraceFile::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)).unwrap()
}

fn database(path: &Path) -> Database {
    Database::new(vec![("a".to_owned(), TraceFile::open(path).unwrap())], MEMORY).unwrap()
}

fn cells(batch: &RecordBatch, row: usize) -> Vec<String> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter();
    columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string()).collect()
}

fn ask(database: &Database, sql: &str) -> Vec<Vec<String>> {
    let mut answer = database.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = Vec::new();
    while let Some(batch) = answer.next_batch().unwrap_or_else(|error| panic!("{sql}: {error}")) {
        rows.extend((0..batch.num_rows()).map(|row| cells(&batch, row)));
    }
    rows
}

fn numbers(rows: &[Vec<String>]) -> Vec<Vec<u64>> {
    rows.iter().map(|row| row.iter().map(|cell| cell.parse().unwrap()).collect()).collect()
}

/// Returns the decoded events: launch, warp, number, location, mask.
fn decoded(trace: &TraceFile) -> Vec<[u64; 5]> {
    let mut all = Vec::new();
    for info in trace.launches() {
        let launch = info.number();
        let _ = trace.decode_all(launch, 0, &WarpFilter::all(), &mut |block| {
            let numbered = (block.first_event..).zip(block.events);
            all.extend(numbered.map(|(number, event)| {
                [launch.into(), block.warp.into(), number, event.location.into(), event.mask.into()]
            }));
            ControlFlow::Continue(())
        });
    }
    all
}

#[test]
fn sums_by_location_are_those_of_the_analysis_and_make_nothing_of_masks() {
    for path in paths() {
        let database = database(&path);
        let trace = TraceFile::open(&path).unwrap();
        let analysis = analyse(&trace, &Selection::default()).unwrap();
        let visits: Vec<Vec<u64>> = analysis
            .locations
            .iter()
            .map(|found| vec![found.point.location.into(), found.counts.visits])
            .collect();
        for sql in [
            "select location, count(*) from events group by location order by location",
            "select location, count(1) as n from events e group by 1 order by 1",
            "select location, count(location) from (select location, kernel from events) group by 1 order by 1",
            "select location, sum(count) from runs group by location order by location",
            "select location, visits from locations where visits > 0 order by location",
        ] {
            assert_eq!(numbers(&ask(&database, sql)), visits, "{sql} of {}", path.display());
        }
        assert_eq!(database.made_masks(), 0, "{}", path.display());
        let lanes: Vec<Vec<u64>> = analysis
            .locations
            .iter()
            .map(|found| vec![found.point.location.into(), found.counts.lanes])
            .collect();
        for sql in [
            "select location, sum(lanes) from events group by location order by location",
            "select location, sum(lanes * count) from runs group by location order by location",
            "select location, lanes from locations where visits > 0 order by location",
        ] {
            assert_eq!(numbers(&ask(&database, sql)), lanes, "{sql} of {}", path.display());
        }
        assert!(analysis.counts.visits == 0 || database.made_masks() > 0, "{}", path.display());
    }
}

#[test]
fn counting_makes_a_row_for_each_location_and_not_for_each_event() {
    let trace = trace("fractal.wtrc");
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let (events, locations) = (analysis.counts.visits, analysis.locations.len() as u64);
    let database = Database::new(vec![("a".to_owned(), trace)], MEMORY).unwrap();
    assert_eq!(numbers(&ask(&database, "select count(*) from events")), [[events]]);
    let first = database.made_rows();
    assert!(first <= 8 * locations && first < events / 10, "{first} rows for {events} events");
    // This condition needs single events.
    assert_eq!(numbers(&ask(&database, "select count(*) from events where event >= 0")), [[events]]);
    assert!(database.made_rows() >= events);
}

#[test]
fn other_figures_are_those_of_the_analysis() {
    for path in paths() {
        let database = database(&path);
        let trace = TraceFile::open(&path).unwrap();
        let analysis = analyse(&trace, &Selection::default()).unwrap();
        let warps: Vec<Vec<u64>> = analysis
            .warps
            .iter()
            .map(|warp| {
                let (counts, launch) = (warp.counts, warp.launch.into());
                vec![launch, warp.warp.into(), counts.visits, counts.lanes, counts.idle, warp.path]
            })
            .collect();
        let sql = "select launch, warp_index, visits, lanes, idle, path from warps order by 1, 2";
        assert_eq!(numbers(&ask(&database, sql)), warps, "{}", path.display());
        let sums: Vec<Vec<u64>> = warps.iter().map(|warp| warp[..4].to_vec()).collect();
        let sql = "select launch, warp_index, count(*), sum(lanes) from events group by 1, 2 order by 1, 2";
        assert_eq!(numbers(&ask(&database, sql)), sums, "{}", path.display());
        let loops: Vec<Vec<u64>> = analysis
            .loops()
            .map(|head| {
                let (trips, location) = (&head.trips, head.point.location.into());
                vec![location, trips.count(), trips.sum(), trips.max(), trips.percentile(50)]
            })
            .collect();
        let sql = "select location, entries, trips, max, median from loops order by location";
        assert_eq!(numbers(&ask(&database, sql)), loops, "{}", path.display());
        let launches: Vec<Vec<u64>> = trace
            .launches()
            .map(|info| {
                vec![info.number().into(), info.warps().into(), trace.totals(info.number(), 0).events]
            })
            .collect();
        let sql = "select launch, warps, events from launches order by launch";
        assert_eq!(numbers(&ask(&database, sql)), launches, "{}", path.display());
    }
}

#[test]
fn conditions_choose_the_events_that_are_decoded() {
    type Keep = fn(&[u64; 5]) -> bool;
    let conditions: [(&str, Keep); 9] = [
        ("true", |_| true),
        ("launch = 1", |row| row[0] == 1),
        ("warp_index between 1 and 3 and launch >= 1", |row| row[0] >= 1 && (1..=3).contains(&row[1])),
        ("launch = 0 or warp_index = 2", |row| row[0] == 0 || row[1] == 2),
        ("location in (1, 4) and event > 3", |row| [1, 4].contains(&row[3]) && row[2] > 3),
        ("location <> 2", |row| row[3] != 2),
        ("lanes < 4 and mask % 2 = 1", |row| row[4].count_ones() < 4 && row[4] % 2 == 1),
        ("location = 70000", |_| false),
        ("warp_index < 0", |_| false),
    ];
    for (turn, path) in paths().into_iter().enumerate() {
        let database = database(&path);
        let all = decoded(&TraceFile::open(&path).unwrap());
        for (number, (condition, keep)) in conditions.into_iter().enumerate() {
            let expected: Vec<Vec<u64>> =
                all.iter().filter(|row| keep(row)).map(|row| row.to_vec()).collect();
            let what = format!("{condition} of {}", path.display());
            let columns = "launch, warp_index, event, location, mask";
            let sql = format!("select {columns} from events where {condition} order by 1, 2, 3");
            assert_eq!(numbers(&ask(&database, &sql)), expected, "{what}");
            if (turn + number) % 2 == 0 {
                continue;
            }
            let sql = format!(
                "select count(*), coalesce(sum(lanes), 0), max(location) from events where {condition}"
            );
            let lanes: u64 = expected.iter().map(|row| u64::from(row[4].count_ones())).sum();
            let counted = ask(&database, &sql);
            assert_eq!(numbers(&[counted[0][..2].to_vec()]), [[expected.len() as u64, lanes]], "{what}");
            let greatest = expected.iter().map(|row| row[3]).max();
            assert_eq!(counted[0][2], greatest.map_or_else(String::new, |most| most.to_string()), "{what}");
        }
        // Single events: sums over all of them would give a different result.
        let mut by_event: BTreeMap<u64, u64> = BTreeMap::new();
        all.iter().for_each(|row| *by_event.entry(row[2]).or_default() += 1);
        let expected: Vec<Vec<u64>> = by_event.into_iter().map(|(event, count)| vec![event, count]).collect();
        let sql = "select event, count(*) from events group by event order by event";
        assert_eq!(numbers(&ask(&database, sql)), expected, "{}", path.display());
        let distinct: std::collections::BTreeSet<u64> = all.iter().map(|row| row[4]).collect();
        let sql = "select count(distinct mask) from events";
        assert_eq!(numbers(&ask(&database, sql)), [[distinct.len() as u64]], "{}", path.display());
    }
}

#[test]
fn traces_are_told_from_each_other_and_joined() {
    let traces = || ["mis.wtrc", "stress.wtrc"].map(|name| (name.to_owned(), trace(name))).into();
    let database = Database::new(traces(), MEMORY).unwrap();
    let rows = ask(&database, "select trace, count(*) from events group by trace order by trace");
    let counts = ["mis.wtrc", "stress.wtrc"]
        .map(|name| analyse(&trace(name), &Selection::default()).unwrap().counts.visits.to_string());
    assert_eq!(rows, [["mis.wtrc", counts[0].as_str()], ["stress.wtrc", counts[1].as_str()]]);
    let joined = "select e.trace, count(*) from events e join locations l on e.trace = l.trace and \
                  e.location = l.location where l.line > 0 group by e.trace order by 1";
    assert_eq!(ask(&database, joined), rows);
}

#[test]
fn sectors_by_sql_are_those_of_the_analysis() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decode/tests/golden/accesses-v2.wtrc");
    let open = || TraceFile::open(&golden).unwrap();
    let expected = warptrace_analysis::accesses(&open(), &Selection::default()).unwrap();
    let database = Database::new(vec![("a".to_owned(), open())], MEMORY).unwrap();
    let rows = ask(
        &database,
        "select site, sectors, requests, accesses from sites where requests > 0 order by site",
    );
    let sites = expected.sites.iter().map(|site| {
        let counts = &site.counts;
        vec![u64::from(site.site), counts.sectors, counts.requests, counts.lanes]
    });
    assert_eq!(numbers(&rows), sites.collect::<Vec<_>>());
    let accesses = expected.accesses;
    let sql = "select (select count(*) from lane_accesses) + (select count(*) from lane_values)";
    assert_eq!(numbers(&ask(&database, sql)), [[accesses]]);
    // A row is for all lanes, or for one lane.
    let of_row = "sum(count * case when lane is null then lanes else 1 end)";
    let sql = format!(
        "select sum(n) from (select {of_row} as n from accesses union all select {of_row} from \"values\")"
    );
    assert_eq!(numbers(&ask(&database, &sql)), [[accesses]]);
    let sectors = "select site, sum(sectors), count(*) from (select site, request, count(distinct address >> 5) as sectors \
                   from lane_accesses where space in ('global', 'generic') group by launch, warp_index, site, request) \
                   group by site order by site";
    let global = expected.sites.iter().filter(|site| site.counts.sectors > 0);
    let global = global.map(|site| vec![u64::from(site.site), site.counts.sectors, site.counts.requests]);
    assert_eq!(numbers(&ask(&database, sectors)), global.collect::<Vec<_>>());
    let lost = ask(&database, "select coalesce(sum(lost), 0), coalesce(sum(left_out), 0) from access_losses");
    assert_eq!(numbers(&lost), [[expected.lost, expected.left_out]]);
    // A trace without accesses has no rows.
    let database = Database::new(vec![("a".to_owned(), trace("mis.wtrc"))], MEMORY).unwrap();
    for table in ["accesses", "\"values\"", "lane_accesses", "lane_values", "sites", "access_losses"] {
        assert!(ask(&database, &format!("select * from {table}")).is_empty(), "{table}");
    }
}

#[test]
fn answers_have_four_forms() {
    let database = Database::new(vec![("a".to_owned(), trace("mis.wtrc"))], MEMORY).unwrap();
    let sql = "select kernel, count(*) as n from events group by kernel order by kernel";
    let written = |format| {
        let mut answer = database.ask(sql).unwrap();
        let mut writer = Writer::new(Vec::new(), format, &answer.schema()).unwrap();
        while let Some(batch) = answer.next_batch().unwrap() {
            writer.write(&batch).unwrap();
        }
        writer.finish().unwrap()
    };
    let rows = ask(&database, sql);
    let [find, init] = [&rows[0], &rows[1]];
    assert_eq!((find[0].as_str(), init[0].as_str(), rows.len()), ("mis_find", "mis_init", 2));
    let text = |format| String::from_utf8(written(format)).unwrap();
    let width = find[1].len().max(init[1].len());
    let table =
        format!("kernel   {:>width$}\nmis_find {:>width$}\nmis_init {:>width$}\n", "n", find[1], init[1]);
    assert_eq!(text(Format::Table), table);
    assert_eq!(text(Format::Csv), format!("kernel,n\nmis_find,{}\nmis_init,{}\n", find[1], init[1]));
    let json = format!(
        "[\n{{\"kernel\":\"mis_find\",\"n\":{}}},\n{{\"kernel\":\"mis_init\",\"n\":{}}}\n]\n",
        find[1], init[1]
    );
    assert_eq!(text(Format::Json), json);
    let parquet = written(Format::Parquet);
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

#[test]
fn what_cannot_be_asked_is_said_on_one_line() {
    let database = Database::new(vec![("a".to_owned(), trace("mis.wtrc"))], MEMORY).unwrap();
    for (sql, words) in [
        ("select nme from events", &["no column `nme`", "name"][..]),
        ("select * from evnts", &["no table `evnts`", "events, runs, warps, locations, loops, launches"]),
        ("selct 1", &["no SQL"]),
        ("create table t as select 1", &["SELECT"]),
        ("insert into runs select * from runs", &["SELECT"]),
        ("set datafusion.execution.batch_size = 1", &["SELECT"]),
        ("copy runs to 'x.csv'", &["SELECT"]),
        ("", &["the query is empty"]),
        ("select strange(mask) from events", &["no function `strange`"]),
        ("select sum(name) from events", &["`sum` takes no arguments of these types"]),
        ("select e.x from events e join runs r on e.event = r.event", &["no column `x`"]),
        ("select * from runs where launch = 'x'", &["Cannot cast string 'x'"]),
        ("select 1 / 0 from events", &["division by zero"]),
    ] {
        let answer = database.ask(sql).and_then(|mut answer| answer.next_batch().map(|_| ()));
        let Err(error) = answer else { panic!("{sql} is answered") };
        let said = error.to_string();
        assert!(!said.contains('\n') && words.iter().all(|words| said.contains(words)), "{sql}: {said}");
    }
    let deep = format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(database.ask(&deep).is_err());
}

#[test]
fn a_damaged_trace_is_an_error_that_names_the_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/stress.wtrc");
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(4).position(|tag| tag == b"FRAM").unwrap() + 60;
    bytes[at] ^= 0xff;
    let traces = vec![("broken.wtrc".to_owned(), TraceFile::from_bytes(bytes).unwrap())];
    let database = Database::new(traces, MEMORY).unwrap();
    for sql in ["select count(*) from events", "select * from runs", "select max from loops"] {
        let mut answer = database.ask(sql).unwrap();
        let said = loop {
            match answer.next_batch() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{sql} is answered"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(said.starts_with("broken.wtrc: "), "{sql}: {said}");
    }
}

#[test]
fn a_query_can_be_stopped() {
    let database = Database::new(vec![("a".to_owned(), trace("stress.wtrc"))], MEMORY).unwrap();
    let stop = database.stop();
    // The query would take practically forever.
    let sql = "select count(*) from events a, events b, events c, events d where a.mask + b.mask + c.mask + d.mask = 7";
    let begun = std::time::Instant::now();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        stop.stop();
    });
    let result = database.ask(sql).and_then(|mut answer| answer.next_batch().map(|_| ()));
    assert!(matches!(result, Err(QueryError::Stopped)), "{result:?}");
    assert!(begun.elapsed().as_secs() < 30);
    stopper.join().unwrap();
    assert!(matches!(database.ask("select 1"), Err(QueryError::Stopped)));
}

#[test]
fn large_sorts_go_to_files_or_end_with_a_sentence() {
    let database = Database::new(vec![("a".to_owned(), trace("fractal.wtrc"))], 1 << 20).unwrap();
    let sql = "select mask, event, warp_index, name, file from events order by mask desc, event, warp_index";
    let mut answer = database.ask(sql).unwrap();
    let (mut rows, mut last) = (0, u64::MAX);
    loop {
        match answer.next_batch() {
            Ok(Some(batch)) => {
                for row in 0..batch.num_rows() {
                    let mask = cells(&batch, row)[0].parse().unwrap();
                    assert!(mask <= last);
                    last = mask;
                }
                rows += batch.num_rows() as u64;
            }
            Ok(None) => {
                let analysis = analyse(&trace("fractal.wtrc"), &Selection::default()).unwrap();
                assert_eq!(rows, analysis.counts.visits);
                break;
            }
            Err(error) => {
                assert!(error.to_string().contains("more memory than it may take"), "{error}");
                break;
            }
        }
    }
}
