//! Workers in separate processes on the loopback address. Results match a single process; failures of workers
//! cause errors, never wrong sums.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use warptrace_analysis::{FileHead, Selection, SetAnalysis, SetTable};
use warptrace_decoder::TraceFile;
use warptrace_query::{Database, Listen, QueryError, Stop, Workers, serve};

const MEMORY: usize = 64 << 20;
/// Makes a process of this test a worker of these folders.
const ROOTS: &str = "WARPTRACE_TEST_ROOTS";
const TOKEN: &str = "WARPTRACE_TEST_TOKEN";
const TABLES: [&str; 17] = [
    "events",
    "runs",
    "warps",
    "locations",
    "loops",
    "launches",
    "kernels",
    "lines",
    "causes",
    "edges",
    "sites",
    "losses",
    "access_losses",
    "accesses",
    "lane_accesses",
    "values",
    "lane_values",
];

/// Not a test: the body of a worker process, which runs until it is killed.
#[test]
fn worker_process() {
    let Ok(roots) = std::env::var(ROOTS) else { return };
    let list = |path: &Path| -> Result<Vec<PathBuf>, String> {
        if !path.is_dir() {
            return Ok(if path.exists() { vec![path.to_path_buf()] } else { Vec::new() });
        }
        let files = fs::read_dir(path).map_err(|error| error.to_string())?;
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "wtrc"));
        files.sort();
        Ok(files)
    };
    let listen = Listen {
        address: "127.0.0.1:0".parse().unwrap(),
        roots: roots.split(':').map(PathBuf::from).collect(),
        token: std::env::var(TOKEN).ok(),
        memory: MEMORY,
        limit: Some(Duration::from_secs(60)),
        list: Arc::new(list),
    };
    serve(listen, &Stop::new(), |address| println!("listening on {address}")).unwrap();
}

struct Process {
    child: Child,
    name: String,
}

impl Process {
    fn new(root: &Path, token: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "workers::worker_process", "--nocapture"])
            .env(ROOTS, root)
            .stdout(Stdio::piped());
        if let Some(token) = token {
            command.env(TOKEN, token);
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut names = lines.filter_map(|line| {
            line.unwrap().split_once("listening on ").map(|(_, name)| name.trim().to_owned())
        });
        Self { name: names.next().expect("the worker says where it listens"), child }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wtrc"));
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    files
}

fn folder(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, path) in traces().iter().cycle().take(count).enumerate() {
        fs::copy(path, folder.path().join(format!("t{number:03}.wtrc"))).unwrap();
    }
    folder
}

/// Opens the same traces in this process, with the same names.
fn here(folder: &Path) -> Database {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let traces = files.iter().map(|path| (name(path), TraceFile::open(path).unwrap())).collect();
    Database::new(traces, MEMORY).unwrap()
}

fn there(workers: &[&Process], token: Option<&str>) -> Result<Database, QueryError> {
    let names: Vec<String> = workers.iter().map(|worker| worker.name.clone()).collect();
    let workers = Workers::new(&names, token)?;
    Ok(Database::of_workers(workers, &[".".to_owned()], MEMORY, Stop::new())?.0)
}

fn rows(database: &Database, sql: &str) -> Result<Vec<Vec<String>>, QueryError> {
    let mut answer = database.ask(sql)?;
    let mut rows = Vec::new();
    while let Some(batch) = answer.next_batch()? {
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns: Vec<_> =
            columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect());
        }
    }
    rows.sort();
    Ok(rows)
}

/// Queries of each kind: sums, groups, joins, unions, orders, windows, and rows of each table.
fn questions() -> Vec<String> {
    let mut all: Vec<String> = [
        "SELECT count(*), sum(lanes), min(mask), max(mask) FROM events",
        "SELECT trace, kernel, name, count(*), sum(lanes) FROM events GROUP BY trace, kernel, name",
        "SELECT name, sum(count) FROM runs WHERE lanes < 32 GROUP BY name ORDER BY 2 DESC, 1 LIMIT 7",
        "SELECT count(DISTINCT mask) FROM events",
        "SELECT l.trace, l.name, sum(r.count) FROM runs r JOIN locations l ON r.trace = l.trace AND r.location = \
         l.location GROUP BY l.trace, l.name",
        "SELECT trace FROM launches UNION ALL SELECT trace FROM kernels",
        "SELECT trace, launch, warp_index, sum(count) OVER (PARTITION BY trace, launch) FROM runs WHERE event = 0",
        "SELECT trace, count(*) FROM events WHERE trace = 't001.wtrc' GROUP BY trace",
        "SELECT avg(lanes), round(stddev(lanes), 9) FROM events WHERE launch = 0",
        "SELECT 1 + 1",
        "SELECT trace, job, rank, host, whole, state, launches, events FROM traces",
        "SELECT t.rank, t.trace, sum(r.count) FROM runs r JOIN traces t ON r.trace = t.trace GROUP BY 1, 2",
        "SELECT count(*) FROM events WHERE location = 65000",
        "SELECT trace, mask FROM runs ORDER BY mask DESC, trace LIMIT 5",
        "SELECT k.trace, k.kernel FROM kernels k WHERE k.trace IN (SELECT trace FROM launches WHERE warps > 8)",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend(TABLES.map(|table| format!("SELECT * FROM {table}")));
    all
}

#[test]
fn figures_of_four_workers_are_those_of_one_process() {
    let folder = folder(14);
    let workers: Vec<Process> = (0..4).map(|_| Process::new(folder.path(), None)).collect();
    let names: Vec<String> = workers.iter().map(|worker| worker.name.clone()).collect();
    let apart = || Workers::new(&names, None).unwrap();
    let (there, found) = Database::of_workers(apart(), &[".".to_owned()], MEMORY, Stop::new()).unwrap();
    let kernel = |name: &str| Selection { kernel: Some(name.to_owned()), ..Selection::default() };
    for selection in [Selection::default(), kernel("fractal"), Selection { launch: Some(1), ..kernel("mis") }]
    {
        let mut files = Vec::new();
        for file in &found {
            files.push((&file.name, TraceFile::open(folder.path().join(&file.name)).unwrap()));
        }
        let mut table = SetTable::default();
        files.iter().for_each(|(name, trace)| table.add(&FileHead::new(name, trace)).unwrap());
        let mut here = SetAnalysis::new(table);
        for (name, trace) in &files {
            here.add(here.part(name, trace, &selection).unwrap());
        }
        let mut done = 0;
        let mut summed = there.summed(&found, &selection, || done += 1).unwrap();
        assert_eq!((done, summed.files().len()), (14, 14));
        assert_eq!(format!("{:?}", summed.files()), format!("{:?}", here.files()));
        let (there, here) = (summed.sum(), here.sum());
        assert_eq!(there.map_err(|error| error.to_string()), here.map_err(|error| error.to_string()));
    }
    workers[3].signal("-KILL");
    let error = there.summed(&found, &Selection::default(), || ()).unwrap_err().to_string();
    assert!(error.contains(&names[3]), "{error}");
}

#[test]
fn one_worker_is_enough_and_each_may_have_other_files() {
    let (first, second) = (folder(3), folder(5));
    // Two different files have the same name.
    fs::copy(traces().last().unwrap(), second.path().join("t000.wtrc")).unwrap();
    let (one, two) = (Process::new(first.path(), None), Process::new(second.path(), None));
    let sql = "SELECT count(*), sum(lanes) FROM events";
    let alone = there(&[&one], None).unwrap();
    assert_eq!(rows(&alone, sql).unwrap(), rows(&here(first.path()), sql).unwrap());
    let both = there(&[&one, &two], None).unwrap();
    let names = rows(&both, "SELECT DISTINCT trace FROM launches").unwrap();
    // Two files equal on both workers, two with the same name, and two only on the second worker.
    let names: Vec<&str> = names.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert_eq!(names.iter().filter(|name| name.ends_with("/t000.wtrc")).count(), 2, "{names:?}");
}

#[test]
fn a_damaged_file_is_named() {
    let folder = folder(6);
    let (one, two) = (Process::new(folder.path(), None), Process::new(folder.path(), None));
    let database = there(&[&one, &two], None).unwrap();
    // Damages the middle, where the events are; then the beginning.
    let path = folder.path().join("t003.wtrc");
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[length / 3..length - length / 3].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let error = rows(&database, "SELECT count(mask) FROM events").unwrap_err().to_string();
    assert!(error.contains("t003.wtrc"), "{error}");
    fs::write(&path, b"no trace").unwrap();
    let error = there(&[&one, &two], None).unwrap_err().to_string();
    assert!(error.contains("t003.wtrc"), "{error}");
}

#[test]
fn only_who_knows_the_token_is_answered_and_only_of_the_folder() {
    let folder = folder(2);
    let worker = Process::new(folder.path(), Some("a secret"));
    for token in [None, Some("a Secret"), Some("a secret2"), Some(""), Some("a secret ")] {
        let error = there(&[&worker], token).unwrap_err().to_string();
        assert!(error.contains("token"), "{error}");
    }
    assert!(there(&[&worker], Some("a secret")).is_ok());
    let workers = || Workers::new(std::slice::from_ref(&worker.name), Some("a secret")).unwrap();
    let outside = traces()[0].to_string_lossy().into_owned();
    for pattern in [outside.as_str(), "../../../../../../etc", "/etc/passwd", "/"] {
        let error = Database::of_workers(workers(), &[pattern.to_owned()], MEMORY, Stop::new()).unwrap_err();
        assert!(error.to_string().contains("no worker has a trace"), "{error}");
    }
    let listen = Listen {
        address: "0.0.0.0:0".parse().unwrap(),
        roots: vec![folder.path().to_path_buf()],
        token: None,
        memory: MEMORY,
        limit: None,
        list: Arc::new(|_| Ok(Vec::new())),
    };
    assert!(serve(listen, &Stop::new(), |_| ()).unwrap_err().to_string().contains("token"));
}

#[test]
fn nonsense_on_the_port_harms_nothing() {
    let folder = folder(3);
    let worker = Process::new(folder.path(), None);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..200 {
        let mut stream = TcpStream::connect(&worker.name).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut bytes = Vec::new();
        if round % 2 == 0 {
            // The start of HTTP/2, followed by random bytes.
            bytes.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        }
        for _ in 0..round * 7 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes.push(seed as u8);
        }
        // The worker may close the connection before everything is written.
        let _ = stream.write_all(&bytes);
        let _ = stream.read(&mut [0; 64]);
    }
    let sql = "SELECT count(*) FROM events";
    let database = there(&[&worker], None).unwrap();
    assert_eq!(rows(&database, sql).unwrap(), rows(&here(folder.path()), sql).unwrap());
}

#[test]
fn two_jobs_at_a_time_do_not_mix() {
    let folder = folder(6);
    let workers: Vec<Process> = (0..2).map(|_| Process::new(folder.path(), None)).collect();
    let workers: Vec<&Process> = workers.iter().collect();
    let here = here(folder.path());
    let questions =
        ["SELECT name, count(*) FROM events GROUP BY name", "SELECT trace, sum(count) FROM runs GROUP BY 1"];
    let expected = questions.map(|sql| rows(&here, sql).unwrap());
    std::thread::scope(|scope| {
        for (sql, expected) in questions.iter().zip(&expected) {
            let workers = &workers;
            scope.spawn(move || {
                let there = there(workers, None).unwrap();
                for _ in 0..5 {
                    assert_eq!(&rows(&there, sql).unwrap(), expected, "{sql}");
                }
            });
        }
    });
}

mod full {
    use super::*;

    #[test]
    fn answers_of_four_workers_are_those_of_one_process() {
        let folder = folder(14);
        // All workers have all files. Each file is read by one of them.
        let workers: Vec<Process> = (0..4).map(|_| Process::new(folder.path(), None)).collect();
        let (here, there) = (here(folder.path()), there(&workers.iter().collect::<Vec<_>>(), None).unwrap());
        for question in questions() {
            let expected = rows(&here, &question).unwrap_or_else(|error| panic!("{question}: {error}"));
            let found = rows(&there, &question).unwrap_or_else(|error| panic!("{question}: {error}"));
            assert_eq!(found, expected, "{question}");
        }
    }

    // A worker that does not respond is given up after some seconds.
    #[test]
    fn a_worker_that_is_killed_or_stands_still_makes_an_error() {
        let folder = folder(8);
        let workers: Vec<Process> = (0..3).map(|_| Process::new(folder.path(), None)).collect();
        let sql = "SELECT count(*) FROM events";
        let database = there(&workers.iter().collect::<Vec<_>>(), None).unwrap();
        assert_eq!(rows(&database, sql).unwrap(), rows(&here(folder.path()), sql).unwrap());
        workers[1].signal("-STOP");
        let begun = Instant::now();
        let error = rows(&database, sql).unwrap_err().to_string();
        assert!(error.contains(&workers[1].name), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        let error = there(&workers.iter().collect::<Vec<_>>(), None).unwrap_err().to_string();
        assert!(error.contains(&workers[1].name), "{error}");
        workers[1].signal("-CONT");
        let database = there(&workers.iter().collect::<Vec<_>>(), None).unwrap();
        workers[2].signal("-KILL");
        let error = rows(&database, sql).unwrap_err().to_string();
        assert!(error.contains(&workers[2].name), "{error}");
        let error = there(&workers.iter().collect::<Vec<_>>(), None).unwrap_err().to_string();
        assert!(error.contains(&workers[2].name), "{error}");
        let rest = there(&[&workers[0], &workers[1]], None).unwrap();
        assert_eq!(rows(&rest, sql).unwrap(), rows(&here(folder.path()), sql).unwrap());
    }
}
