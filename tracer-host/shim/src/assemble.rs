//! Loads PTX into a driver that may be too old for it.
//!
//! Triton's PTX often has a later version than the driver supports. [`load`] first tries the text, with its
//! version lowered to the driver's if necessary: the driver refuses a text that needs a later version. Then
//! it tries machine code that an assembler makes from the text. A driver loads such code within the same
//! major version. If the program's machine code was made with options that change the code, [`load`] tries
//! the assembler first, with the same options.

use std::collections::hash_map::DefaultHasher;
use std::ffi::{CString, OsStr, c_void};
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use warptrace_abi::run::RUN_PTXAS;

use crate::cubin::Assembled;
use crate::driver::{self, Answer, SUCCESS};

/// Environment variables with the folder of the CUDA toolkit.
const TOOLKITS: [&str; 3] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"];
/// Folders of assemblers in Python packages, relative to the folder of all packages.
const PACKAGES: [&str; 4] =
    ["triton/backends/nvidia/bin", "nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cu12/bin"];
/// Names of the assembler. Triton calls its newer one `ptxas-blackwell`.
const NAMES: [&str; 2] = ["ptxas-blackwell", "ptxas"];
/// Limit on the characters of an assembler's message that are reported.
const MAX_MESSAGE_CHARS: usize = 160;

#[derive(Debug)]
pub(crate) enum Image {
    Text(CString),
    Code(Vec<u8>),
}

impl Image {
    pub(crate) fn as_ptr(&self) -> *const c_void {
        match self {
            Self::Text(text) => text.as_ptr().cast(),
            Self::Code(code) => code.as_ptr().cast(),
        }
    }
}

/// An image that the driver has loaded, and a note for the user.
pub(crate) type Loaded = (Image, Option<String>);

/// Loads a text with `load`. Fails with the reasons if the driver loads neither it nor assembled code.
pub(crate) fn load(
    text: CString,
    assembled: &Assembled,
    architecture: u32,
    mut load: impl FnMut(&Image) -> Answer,
) -> Result<Loaded, String> {
    let version = version_of(&text);
    let known = driver::version().and_then(takes);
    let needs_options = !assembled.options.is_empty();
    let mut said = String::new();
    if needs_options {
        match with_assembler(&text, assembled, architecture, &mut load) {
            Ok(image) => return Ok((image, None)),
            Err(error) => said = error,
        }
    }
    let lowered = match (version, known) {
        (Some((at, version)), Some(known)) if version > known => {
            let mut lowered = text.to_bytes().to_vec();
            lowered.splice(at.0..at.1, format!("{}.{}", known.0, known.1).into_bytes());
            CString::new(lowered).ok()
        }
        _ => None,
    };
    let image = Image::Text(lowered.unwrap_or_else(|| text.clone()));
    let refused = match load(&image) {
        SUCCESS => {
            let options = assembled.options.join(" ");
            let note = needs_options.then(|| {
                format!(
                    "a kernel that was assembled with {options} is traced as the driver assembles it, without that: \
                     {said}; --ptxas names an assembler"
                )
            });
            return Ok((image, note));
        }
        refused => refused,
    };
    if !needs_options {
        match with_assembler(&text, assembled, architecture, &mut load) {
            Ok(image) => return Ok((image, None)),
            Err(error) => said = error,
        }
    }
    let of = version.map_or_else(String::new, |(_, (major, minor))| format!(" of version {major}.{minor}"));
    Err(format!(
        "the driver refused its PTX{of} with trace points (error {refused}); {said}; --ptxas names an assembler"
    ))
}

/// Finds the version of a text. Returns its byte range and its numbers.
fn version_of(text: &CString) -> Option<((usize, usize), (u32, u32))> {
    let text = text.to_str().ok()?;
    let at = text.lines().find(|line| line.trim_start().starts_with(".version"))?;
    let words = at.split_once(".version")?.1;
    let number = words.split_whitespace().next()?;
    let (major, minor) = number.split_once('.')?;
    let start = number.as_ptr() as usize - text.as_ptr() as usize;
    Some(((start, start + number.len()), (major.parse().ok()?, minor.parse().ok()?)))
}

/// Returns the latest PTX version that a driver of this version supports; `None` if it is unknown.
fn takes(driver: i32) -> Option<(u32, u32)> {
    let (major, minor) = (driver / 1000, u32::try_from(driver % 1000 / 10).ok()?);
    match major {
        12 if minor >= 8 => Some((8, minor - 1)),
        13 => Some((9, minor)),
        _ => None,
    }
}

/// Assembles a text. Uses the first assembler that succeeds and whose code the driver loads.
fn with_assembler(
    text: &CString,
    assembled: &Assembled,
    architecture: u32,
    load: &mut impl FnMut(&Image) -> Answer,
) -> Result<Image, String> {
    let mut problem = "no ptxas was found".to_owned();
    for tool in assemblers(&assembled.tool) {
        match assemble(&tool, text.to_bytes(), &assembled.options, architecture) {
            Ok(code) => {
                let image = Image::Code(code);
                match load(&image) {
                    SUCCESS => return Ok(image),
                    refused => problem = format!("and what {} made of it (error {refused})", tool.display()),
                }
            }
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// Lists the assemblers: the user's choice alone, or all that exist in the program's Python packages, in the
/// toolkit and in `PATH`, in this order. Assemblers named `like` come first.
fn assemblers(like: &str) -> Vec<PathBuf> {
    if let Some(chosen) = std::env::var_os(RUN_PTXAS).filter(|chosen| !chosen.is_empty()) {
        return vec![chosen.into()];
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for packages in package_folders() {
        folders.extend(PACKAGES.iter().map(|folder| packages.join(folder)));
    }
    folders
        .extend(TOOLKITS.iter().filter_map(std::env::var_os).map(|toolkit| Path::new(&toolkit).join("bin")));
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    folders.push("/usr/local/cuda/bin".into());
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        for name in NAMES {
            let tool = folder.join(name);
            if tool.is_file() && !found.contains(&tool) {
                found.push(tool);
            }
        }
    }
    found.sort_by_key(|tool| !like.is_empty() && tool.file_name() != Some(OsStr::new(like)));
    found
}

/// Lists the folders of Python packages from which the program has loaded libraries.
fn package_folders() -> Vec<PathBuf> {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: `info` describes a library whose name is null or a C string. `found` is the caller's list.
        let (name, found) = unsafe {
            if (*info).dlpi_name.is_null() {
                return 0;
            }
            (std::ffi::CStr::from_ptr((*info).dlpi_name), &mut *found.cast::<Vec<PathBuf>>())
        };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let is_packages = |folder: &&Path| {
            let name = folder.file_name().unwrap_or_default();
            name == "site-packages" || name == "dist-packages"
        };
        if let Some(folder) = path.ancestors().find(is_packages)
            && !found.iter().any(|known| known == folder)
        {
            found.push(folder.to_owned());
        }
        0
    }
    let mut found: Vec<PathBuf> = Vec::new();
    // SAFETY: the callback has the signature that is needed, and `found` has the type that it writes.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// Assembles a text. Uses the cache of earlier runs.
fn assemble(tool: &Path, text: &[u8], options: &[String], architecture: u32) -> Result<Vec<u8>, String> {
    let target = target_of(text, architecture);
    let kept = Kept::new(tool, text, options, &target);
    if let Some(code) = kept.as_ref().and_then(Kept::read) {
        return Ok(code);
    }
    let failed = |what: &str| format!("{} cannot assemble it: {what}", tool.display());
    let folder = Folder::make().map_err(|error| failed(&error.to_string()))?;
    let (input, output) = (folder.0.join("kernel.ptx"), folder.0.join("kernel.cubin"));
    fs::write(&input, text).map_err(|error| failed(&error.to_string()))?;
    let mut command = Command::new(tool);
    command.args(["-lineinfo", "-arch", &target]).args(options).arg(&input).arg("-o").arg(&output);
    // The assembler is not a part of the traced program.
    command.env_remove("LD_PRELOAD").env_remove("WARPTRACE_RUN_FILE");
    let ended = command.output().map_err(|error| failed(&error.to_string()))?;
    if !ended.status.success() {
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        let line = message.lines().next().unwrap_or_default();
        return Err(failed(&line.chars().take(MAX_MESSAGE_CHARS).collect::<String>()));
    }
    let code = fs::read(&output).map_err(|error| failed(&error.to_string()))?;
    if let Some(kept) = kept {
        kept.write(&code);
    }
    Ok(code)
}

/// Returns the architecture to assemble for: the text's, if it ends in a letter, or the device's.
fn target_of(text: &[u8], architecture: u32) -> String {
    let text = String::from_utf8_lossy(text);
    let target = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"));
    let name = target.and_then(|target| target.trim().split([',', ' ', '\t']).next()).unwrap_or_default();
    match name.ends_with(|last: char| last.is_ascii_alphabetic()) {
        true => name.to_owned(),
        false => format!("sm_{architecture}"),
    }
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn make() -> std::io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("warptrace-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Cache entry for assembled code. The file name is a hash of text, options, architecture and tool (path,
/// size and time). The entry stores these in full, to detect hash collisions.
struct Kept {
    folder: PathBuf,
    name: String,
    key: Vec<u8>,
}

impl Kept {
    /// Returns `None` if the tool's file cannot be read, or the environment names no cache folder.
    fn new(tool: &Path, text: &[u8], options: &[String], target: &str) -> Option<Self> {
        let cache = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))?;
        let file = fs::metadata(tool).ok()?;
        let head = format!(
            "// {} {} {} -arch {target} {}\n",
            tool.display(),
            file.size(),
            file.mtime(),
            options.join(" ")
        );
        let key = [head.as_bytes(), text].concat();
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Some(Self {
            folder: cache.join("warptrace/assembled"),
            name: format!("{:016x}", hasher.finish()),
            key,
        })
    }

    fn read(&self) -> Option<Vec<u8>> {
        let of = |ending: &str| fs::read(self.folder.join(format!("{}.{ending}", self.name))).ok();
        (of("ptx")? == self.key).then(|| of("cubin")).flatten()
    }

    /// Stores code. Ignores errors: they only cost time in the next run.
    fn write(&self, code: &[u8]) {
        let write = |ending: &str, bytes: &[u8]| {
            let file = self.folder.join(format!("{}.{ending}", self.name));
            let new = file.with_extension(format!("{ending}-{}", std::process::id()));
            fs::write(&new, bytes).and_then(|()| fs::rename(&new, &file))
        };
        if fs::create_dir_all(&self.folder).is_ok() && write("cubin", code).is_ok() {
            let _ = write("ptx", &self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_and_compared() {
        let text = CString::new("\n\n.version 9.4\n.target sm_90a\n").expect("no zero");
        assert_eq!(version_of(&text), Some(((11, 14), (9, 4))));
        assert_eq!((takes(13_000), takes(12_080), takes(13_020)), (Some((9, 0)), Some((8, 7)), Some((9, 2))));
        assert_eq!(takes(11_080), None);
    }

    #[test]
    fn code_is_made_for_the_device() {
        assert_eq!(target_of(b".version 8.0\n.target sm_80, debug\n", 90), "sm_90");
        assert_eq!(target_of(b".version 8.0\n.target sm_90a\n", 90), "sm_90a");
    }
}
