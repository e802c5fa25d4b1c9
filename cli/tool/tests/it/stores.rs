//! Traces from S3 and from web servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{ChunkRef, LaunchInfo};

use crate::served::{Fault, Server};
use crate::support::{Folder, metadata, printed, refused, run, text, tool, writer};

const LAUNCHES: u32 = 60;
const WARPS: u32 = 32;
const EVENTS: u32 = 675;
const CHUNKS: u32 = 4;

/// Writes launches of half a mebibyte each, which do not compress.
fn traced(folder: &Folder, launches: u32) -> PathBuf {
    let path = folder.at("traced");
    let mut writer = writer(&path, &metadata("kernel").with_location(1, "entry", ""));
    let mut random = 1u32;
    for number in 0..launches {
        writer.begin_launch(&LaunchInfo::new(number, 0, [1, 1, 1], [32 * WARPS, 1, 1], 0).unwrap()).unwrap();
        let mut payload = || {
            let mut bytes = Vec::new();
            for _ in 0..EVENTS {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes.extend([&1u16.to_le_bytes()[..], &(random | 1).to_le_bytes()].concat());
            }
            bytes
        };
        let payloads: Vec<Vec<u8>> = (0..WARPS * CHUNKS).map(|_| payload()).collect();
        let chunk = |(number, payload)| {
            let (warp, sequence) = (number / CHUNKS, number % CHUNKS);
            ChunkRef { track: 0, warp, sequence, events: EVENTS, payload }
        };
        let chunks: Vec<ChunkRef<'_>> = (0..).zip(payloads.iter().map(Vec::as_slice)).map(chunk).collect();
        writer.write_chunks(number, &chunks).unwrap();
        let recorded = u64::from(EVENTS * CHUNKS);
        let account = WarpAccount { attempted: recorded, recorded, lost: 0, chunks: CHUNKS, finished: 1 };
        writer.end_launch(number, 0, &vec![account; WARPS as usize]).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn small(folder: &Folder, fault: Fault) -> (Server, PathBuf) {
    let path = traced(folder, 1);
    let bytes = fs::read(&path).unwrap();
    (Server::new(BTreeMap::from([("/bucket/small.wtrc".to_owned(), bytes)]), fault), path)
}

/// Without credentials from this environment.
fn run_s3(server: &Server, arguments: &[&str]) -> (i32, String, String) {
    let output = tool()
        .args(arguments)
        .env("AWS_ENDPOINT", server.url(""))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "very-secret")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn objects_of_s3_are_read_and_listed() {
    let folder = Folder::new();
    let path = folder.recorded("small.wtrc", &[]);
    let bytes = fs::read(&path).unwrap();
    let names =
        ["/bucket/run/r.10.wtrc", "/bucket/run/r.9.wtrc", "/bucket/run/other.txt", "/bucket/run/in/x.wtrc"];
    let objects = names.map(|name| (name.to_owned(), bytes.clone()));
    let server = Server::new(BTreeMap::from(objects), Fault::None);
    let of_file = printed(&["top", text(&path), "--json"]);
    let (code, out, errors) = run_s3(&server, &["top", "s3://bucket/run/r.9.wtrc", "--json"]);
    assert_eq!((code, errors.as_str(), out), (0, "", of_file));
    for folder in ["s3://bucket/run/", "s3://bucket/run/r.*.wtrc"] {
        let (code, out, errors) = run_s3(&server, &["verify", folder]);
        assert_eq!(code, 0, "{errors}");
        let at = |name: &str| out.find(name).unwrap_or_else(|| panic!("no {name} in {out}"));
        assert!(at("r.9.wtrc") < at("r.10.wtrc"), "{out}");
        assert!(!out.contains("x.wtrc") && !out.contains("other"), "{out}");
    }
    let cases = [
        ("s3://bucket/none/", "no object *.wtrc"),
        ("s3://bucket/*/a*.wtrc", "only the last part"),
        ("s3://bucket", "no object in it"),
        ("s3://bucket/run/none.wtrc", "no such object (404)"),
    ];
    for (name, what) in cases {
        let (code, out, errors) = run_s3(&server, &["top", name]);
        assert_eq!((code, out.as_str()), (1, ""), "{name}");
        assert!(errors.contains(what) && errors.contains("s3://bucket"), "{name}: {errors}");
        assert!(!errors.contains("very-secret"), "{errors}");
    }
    // Plain HTTP is used only if the environment allows it.
    let mut command = tool();
    command.args(["info", "s3://bucket/run/r.9.wtrc"]).env("AWS_ENDPOINT", server.url(""));
    let output = command.env("AWS_SKIP_SIGNATURE", "true").env_remove("AWS_ALLOW_HTTP").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn secrets_of_urls_are_not_printed() {
    let folder = Folder::new();
    let (server, path) = small(&folder, Fault::None);
    let url = server.url("/bucket/small.wtrc?X-Signature=SeCrEt");
    for arguments in [&["info", &url][..], &["verify", &url], &["top", &url, text(&path)]] {
        let (code, out, errors) = run(arguments);
        assert_eq!(code, 0, "{errors}");
        assert!(!out.contains("SeCrEt") && !errors.contains("SeCrEt"), "{arguments:?}: {out}{errors}");
    }
    let page = folder.at("page.html");
    assert_eq!(run(&["report", &url, "-o", text(&page)]).0, 0);
    assert!(!fs::read_to_string(&page).unwrap().contains("SeCrEt"));
}

#[test]
fn nothing_is_written_to_a_store() {
    let folder = Folder::new();
    let path = folder.recorded("small.wtrc", &[]);
    let name = text(&path);
    let commands: [&[&str]; 4] = [
        &["decode", name, "-o", "s3://bucket/a"],
        &["demo", "--device", "sim", "-o", "https://host/a.wtrc"],
        &["export", name, "--to", "perfetto", "-o", "gs://bucket/a"],
        &["run", "-o", "s3://bucket/a.wtrc", "true"],
    ];
    for arguments in commands {
        refused(arguments, "nothing is written there");
    }
    for url in ["https://host/folder/", "https://host/*.wtrc"] {
        refused(&["top", url], "lists nothing");
    }
}

mod full {
    use super::*;

    #[test]
    fn of_one_launch_little_of_the_file_is_read_and_figures_are_those_of_the_file() {
        let folder = Folder::new();
        let path = traced(&folder, LAUNCHES);
        let bytes = fs::read(&path).unwrap();
        let size = bytes.len() as u64;
        assert!(size > 25_000_000, "{size}");
        let server = Server::new(BTreeMap::from([("/bucket/many.wtrc".to_owned(), bytes)]), Fault::None);
        let url = server.url("/bucket/many.wtrc");
        println!("| command | requests | bytes | of the file |\n| --- | ---: | ---: | ---: |");
        let views: [&[&str]; 5] = [
            &["top", "--launch", "17", "--json"],
            &["info", "--json"],
            &["top", "--json"],
            &["decode", "--launch", "17", "--warp", "3"],
            &["verify"],
        ];
        for view in views {
            let [of_url, of_file] = [&url, text(&path)].map(|name| {
                let mut arguments = vec![view[0], name];
                arguments.extend(&view[1..]);
                run(&arguments)
            });
            let (requests, read) = server.counts();
            let part = read as f64 / size as f64 * 100.0;
            println!("| `{}` | {requests} | {read} | {part:.2} % |", view.join(" "));
            assert_eq!(of_url.0, 0, "{view:?}: {}", of_url.2);
            let plain = |text: &str, name: &str| text.replace(name, "NAME");
            assert_eq!(plain(&of_url.1, &url), plain(&of_file.1, text(&path)), "{view:?}");
            if view.contains(&"--launch") {
                assert!(read * 20 < size && read > 0, "{view:?} read {read} of {size}");
            }
            // Only data that left the cache is read twice.
            assert!(read < size + size / 20, "{view:?} read {read} of {size}");
        }
    }

    #[test]
    fn bad_servers_are_errors_that_say_so() {
        let cases = [
            (Fault::Status(404), "no such object (404)"),
            (Fault::Status(403), "denies access (403)"),
            (Fault::Status(401), "denies access (401)"),
            (Fault::Status(500), "500"),
            (Fault::Whole, "sends no ranges"),
            (Fault::NoVersion, "neither an ETag"),
            (Fault::Changes(true), "changed while it was read"),
            (Fault::Changes(false), "changed while it was read"),
            (Fault::Silent, "did not answer within"),
            (Fault::Cut, "small.wtrc"),
            (Fault::Short, "small.wtrc"),
        ];
        std::thread::scope(|scope| {
            for (fault, what) in cases {
                scope.spawn(move || {
                    let folder = Folder::new();
                    let (server, _) = small(&folder, fault);
                    let began = Instant::now();
                    let (code, out, errors) =
                        run(&["top", &server.url("/bucket/small.wtrc?Signature=SeCrEt")]);
                    println!("{fault:?}: {} s: {errors}", began.elapsed().as_secs());
                    assert_eq!((code, out.as_str()), (1, ""), "{fault:?}: {errors}");
                    assert!(
                        errors.contains(what) && errors.contains("/bucket/small.wtrc?..."),
                        "{fault:?}: {errors}"
                    );
                    assert!(!errors.contains("SeCrEt") && !errors.contains('\u{1b}'), "{fault:?}: {errors}");
                    assert!(began.elapsed() < Duration::from_secs(60), "{fault:?}");
                    if fault == Fault::Whole {
                        assert_eq!(server.counts().0, 1, "it is not asked for again and again");
                    }
                });
            }
        });
    }
}
