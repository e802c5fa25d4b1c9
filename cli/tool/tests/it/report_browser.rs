//! The page of `warptrace report` in a browser: no console messages, keys, clicks, numbers and contrast.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wait_timeout::ChildExt;

use crate::report::{PROGRAMS, SOURCES};
use crate::support::{Folder, printed, text};

/// Names of browsers that accept the arguments below.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

const ON_THE_PAGE: &str = concat!(include_str!("report_contrast.js"), include_str!("report_browser.js"));
/// Names of color schemes, and their numbers in Chromium's settings.
const SCHEMES: [(&str, u8); 2] = [("dark", 0), ("light", 1)];

/// Returns the browser in `WARPTRACE_BROWSER`, or the first one in `PATH`.
fn browser() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("WARPTRACE_BROWSER") {
        return Some(given.into());
    }
    let path = std::env::var_os("PATH")?;
    let files = BROWSERS.iter().flat_map(|name| std::env::split_paths(&path).map(move |at| at.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// Returns the document and the messages. A browser sometimes hangs: an error only if that happens twice.
fn shown(browser: &Path, page: &Path, settings: &[String]) -> (String, String) {
    let mut said = String::new();
    for _ in 0..2 {
        // A separate folder: a browser waits if another one uses its profile.
        let folder = Folder::new();
        let (dom, told) = (folder.at("dom"), folder.at("told"));
        let mut child = Command::new(browser)
            // Timers take no time, but unpacking does. Tests run as root in containers, so the sandbox is off.
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
            .args(["--virtual-time-budget=600000", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-quic"])
            .args(settings)
            .arg(format!("--user-data-dir={}", text(&folder.at("profile"))))
            .arg(format!("file://{}", text(page)))
            // Files instead of pipes, which a helper process may hold open after the browser has ended.
            .stdout(File::create(&dom).unwrap())
            .stderr(File::create(&told).unwrap())
            .spawn()
            .unwrap();
        let ended = child.wait_timeout(Duration::from_secs(90)).unwrap();
        said = String::from_utf8_lossy(&std::fs::read(told).unwrap()).into_owned();
        if ended.is_some() {
            return (String::from_utf8_lossy(&std::fs::read(dom).unwrap()).into_owned(), said);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    panic!("{} did not come to an end: {said}", browser.display());
}

mod full {
    use super::*;

    #[test]
    fn the_page_works_in_a_browser() {
        let Some(browser) = browser() else {
            eprintln!("skipped: no Chromium in PATH; WARPTRACE_BROWSER can name one");
            return;
        };
        let folder = Folder::new();
        for (program, arguments) in PROGRAMS {
            let path = folder.traced(program, &format!("{program}.wtrc"), arguments);
            let page = folder.at("page.html");
            printed(&["report", text(&path), "--source", SOURCES, "-o", text(&page)]);
            let html = std::fs::read_to_string(&page).unwrap();
            let tested =
                html.replace("</body>", &format!("<script type=\"module\">{ON_THE_PAGE}</script></body>"));
            assert_ne!(tested, html);
            std::fs::write(&page, tested).unwrap();
            let sizes = ["400,800", "1280,800", "1920,1080"];
            for (size, (scheme, number)) in
                sizes.into_iter().flat_map(|size| SCHEMES.map(|scheme| (size, scheme)))
            {
                let settings = [
                    format!("--window-size={size}"),
                    format!("--blink-settings=preferredColorScheme={number}"),
                ];
                let (dom, told) = shown(&browser, &page, &settings);
                let said: Vec<&str> = told.lines().filter(|line| line.contains("CONSOLE")).collect();
                assert!(said.is_empty(), "{program}: {said:?}");
                let result = dom.split("data-tested=\"").nth(1).and_then(|rest| rest.split('"').next());
                assert_eq!(result, Some("passed"), "{program} at {size}, {scheme}: {told}");
                assert!(
                    dom.contains(&format!("data-scheme=\"{scheme}\"")),
                    "{program} at {size} is {scheme}"
                );
            }
        }
    }
}
