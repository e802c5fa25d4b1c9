//! A web server in this process, which also implements S3's interface, counts requests, and injects faults.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Returns this status.
    Status(u16),
    /// Sends the whole object instead of a range.
    Whole,
    /// Has another version from the second request on. True if it respects `If-Match`.
    Changes(bool),
    /// Sends no version.
    NoVersion,
    /// Responds to the first request only.
    Silent,
    /// Closes the connection in the middle of the second and all later responses.
    Cut,
    /// From the second request on, sends one byte less than the range, and says so.
    Short,
}

#[derive(Default)]
struct Counts {
    requests: u64,
    bytes: u64,
}

pub(crate) struct Server {
    address: String,
    counts: Arc<Mutex<Counts>>,
}

impl Server {
    /// Serves objects by path, until the process ends.
    pub(crate) fn new(objects: BTreeMap<String, Vec<u8>>, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let counts = Arc::<Mutex<Counts>>::default();
        let (shared, objects) = (counts.clone(), Arc::new(objects));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counts, objects) = (shared.clone(), objects.clone());
                // A disconnected client ends only its thread.
                std::thread::spawn(move || while serve(&stream, &objects, fault, &counts).is_some() {});
            }
        });
        Self { address, counts }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap());
        (counts.requests, counts.bytes)
    }
}

/// Responds to one request; `None` at the end of the connection.
fn serve(
    stream: &TcpStream,
    objects: &BTreeMap<String, Vec<u8>>,
    fault: Fault,
    counts: &Mutex<Counts>,
) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let named = |line: &String| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
        Some(headers.iter().find(|line| named(line))?.split_once(':')?.1.trim())
    };
    let target = first.split(' ').nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = {
        let mut counts = counts.lock().unwrap();
        counts.requests += 1;
        counts.requests
    };
    let is_later = number > 1;
    let mut out = stream;
    let mut answer = |status: &str, more: &str, length: usize, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{more}\r\n");
        out.write_all(head.as_bytes()).and_then(|()| out.write_all(body)).ok()
    };
    if query.contains("list-type=2") {
        let xml = listed(path, query, objects);
        return answer("200 OK", "Content-Type: application/xml\r\n", xml.len(), xml.as_bytes());
    }
    if let Fault::Status(status) = fault {
        return answer(&format!("{status} No"), "", 9, b"secret\x1b[2");
    }
    let Some(object) = objects.get(path) else { return answer("404 Not Found", "", 0, b"") };
    let tag = if matches!(fault, Fault::Changes(_)) && is_later { "\"two\"" } else { "\"one\"" };
    let version = match fault {
        Fault::NoVersion => String::new(),
        _ => format!("ETag: {tag}\r\nLast-Modified: Fri, 27 Nov 2026 09:00:00 GMT\r\n"),
    };
    if fault != Fault::Changes(false) && header("if-match").is_some_and(|wanted| wanted != tag) {
        return answer("412 Precondition Failed", "", 0, b"");
    }
    if fault == Fault::Silent && is_later {
        std::thread::sleep(Duration::from_secs(100));
        return None;
    }
    let range = header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let Some((from, to)) = range.filter(|_| fault != Fault::Whole) else {
        return answer("200 OK", &version, object.len(), object);
    };
    let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?.min(object.len() - 1));
    let body = &object[from..=to];
    counts.lock().unwrap().bytes += body.len() as u64;
    let told = format!("{version}Content-Range: bytes {from}-{to}/{}\r\n", object.len());
    let sent = match fault {
        Fault::Cut | Fault::Short if is_later => &body[..body.len() - 1],
        _ => body,
    };
    let length = if fault == Fault::Short { sent.len() } else { body.len() };
    answer("206 Partial Content", &told, length, sent)?;
    (sent.len() == length).then_some(())
}

/// Returns a page of a list in S3's format.
fn listed(bucket: &str, query: &str, objects: &BTreeMap<String, Vec<u8>>) -> String {
    let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or("");
    let start = format!("{}/{}", bucket.trim_end_matches('/'), prefix.replace("%2F", "/"));
    let of_folder =
        objects.iter().filter(|(path, _)| path.strip_prefix(&start).is_some_and(|name| !name.contains('/')));
    let entries = of_folder.map(|(path, bytes)| {
        let key = path.trim_start_matches(bucket).trim_start_matches('/');
        format!(
            "<Contents><Key>{key}</Key><Size>{}</Size><LastModified>2026-11-27T09:00:00Z</LastModified>\
             <ETag>\"one\"</ETag></Contents>",
            bytes.len()
        )
    });
    format!("<ListBucketResult>{}</ListBucketResult>", entries.collect::<String>())
}
