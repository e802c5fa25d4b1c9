//! Compiles the programs that the tests run, and installs the test driver.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub(crate) struct Built {
    pub(crate) folder: PathBuf,
    pub(crate) shim: PathBuf,
}

/// Prints a message and returns `None` without a C compiler.
pub(crate) fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Option<Built>> = OnceLock::new();
    BUILT.get_or_init(build).as_ref()
}

/// Compiles the programs into a folder that all tests share, if they are out of date.
fn build() -> Option<Built> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler, `cc`");
        return None;
    }
    let tests = std::env::current_exe().expect("a test has a path");
    let deps = tests.parent().expect("it is in a folder");
    let shim = deps.join("libwarptrace_shim.so");
    assert!(shim.is_file(), "cargo builds the library with its tests");
    let examples = deps.with_file_name("examples");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let sources =
        ["app.c", "kernels.c", "nvrtc.c", "ranges.c", "memory.c", "devices.c", "hangs.c", "launches.c"]
            .map(|name| programs.join(name));
    let examples = ["libtest_driver.so", "adopted"].map(|name| examples.join(name));
    let made_of: String = sources.iter().chain(&examples).map(|path| state_of(path)).collect();

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shim-programs");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let mut stamp = options.open(folder.join("made-of")).expect("a file");
    stamp.lock().expect("tests take turns");
    let mut known = String::new();
    stamp.read_to_string(&mut known).expect("a text");
    if known != made_of {
        stamp.set_len(0).expect("a file");
        compile(&folder, &sources, &examples);
        stamp.write_all_at(made_of.as_bytes(), 0).expect("a file");
    }
    Some(Built { folder, shim })
}

fn state_of(path: &Path) -> String {
    let state = path.metadata().expect("cargo builds examples with the tests");
    format!("{} {:?} {}\n", path.display(), state.modified().expect("a time"), state.len())
}

fn compile(
    folder: &Path,
    [app, kernels, nvrtc, ranges, memory, devices, hangs, launches]: &[PathBuf; 8],
    [driver, adopted]: &[PathBuf; 2],
) {
    // An existing file may be running, so it is replaced and not changed.
    let copied = |from: &Path, to: &str| {
        let part = folder.join("part");
        std::fs::copy(from, &part).expect("a copy");
        std::fs::rename(part, folder.join(to)).expect("a folder");
    };
    copied(driver, "libcuda.so.1");
    copied(adopted, "adopted");
    // Since Rust 1.96, a library has its first file name as its soname: `libtest_driver-HASH.so`.
    let files = driver.parent().expect("a folder").read_dir().expect("a folder").flatten();
    let names = files.map(|entry| entry.file_name()).filter(|name| name.as_encoded_bytes().ends_with(b".so"));
    for link in names.chain(["libcuda.so".into()]).map(|name| folder.join(name)) {
        if !link.exists() {
            std::os::unix::fs::symlink("libcuda.so.1", link).expect("a link");
        }
    }
    let cc = |name: &str, source: &Path, more: &[&str]| {
        let include = format!("-I{}/../include", env!("CARGO_MANIFEST_DIR"));
        let library = format!("-L{}", folder.display());
        let part = folder.join("part");
        let mut cc = Command::new("cc");
        cc.arg("-w").arg("-o").arg(&part).arg(source).args([include, library]).args(more).arg("-ldl");
        assert!(cc.status().expect("cc runs").success(), "{name}");
        std::fs::rename(part, folder.join(name)).expect("a folder");
    };
    cc("app", app, &["-Wl,--allow-shlib-undefined"]);
    cc("app-linked", app, &["-DLINKED", "-lcuda", "-Wl,--allow-shlib-undefined"]);
    cc("kernels", kernels, &[]);
    cc("memory", memory, &[]);
    cc("devices", devices, &["-pthread"]);
    cc("ranges", ranges, &["-pthread"]);
    cc("hangs", hangs, &["-lcuda", "-pthread", "-Wl,--allow-shlib-undefined"]);
    cc("launches", launches, &["-lcuda", "-Wl,--allow-shlib-undefined"]);
    cc("libnvrtc-test.so", nvrtc, &["-shared", "-fPIC"]);
}
