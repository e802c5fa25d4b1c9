//! Images and their functions.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use warptrace_ptx::Module;
use warptrace_ptx::interpret::Program;

use crate::cubin;
use crate::fatbin;

fn is_too_new(text: &str) -> bool {
    let latest = std::env::var("TEST_DRIVER_PTX").ok();
    let latest = latest.as_deref().and_then(|latest| latest.split_once('.'));
    let latest = latest.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let version = Module::parse(text).map_or((0, 0), |module| module.version());
    latest.is_some_and(|latest| version > latest)
}

/// A loaded image, leaked. Its address is the handle of the module or library.
pub struct Image {
    /// The PTX of the image, or the PTX embedded in its machine code; empty if it has none.
    pub text: String,
    pub is_code: bool,
    pub is_too_new: bool,
    pub program: Option<Program>,
    pub functions: Mutex<Vec<&'static Function>>,
}

/// Its address is the handle.
pub struct Function {
    pub name: String,
    pub c_name: std::ffi::CString,
    pub image: &'static Image,
    /// Size and alignment of each parameter in bytes.
    pub parameters: Vec<(usize, usize)>,
    pub max_dynamic_shared: Mutex<i32>,
}

pub fn say(line: &str) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(path) = std::env::var_os("TEST_DRIVER_LOG") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
        let _ = writeln!(file, "{line}");
    }
}

/// Loads an image. Kernels without PTX cannot run.
pub fn load(bytes: &[u8]) -> &'static Image {
    // The last PTX of a fatbin (sorted by architecture), or the PTX in its machine code.
    let in_fatbin = || {
        let entries = fatbin::entries(bytes).ok()?;
        let of = |kind| entries.iter().rfind(|entry| entry.kind == kind);
        match of(fatbin::Kind::Ptx) {
            Some(entry) => entry.text().ok(),
            None => Some(cubin::ptx(&of(fatbin::Kind::Elf)?.bytes().ok()?).ok()?.text),
        }
    };
    let is_code = bytes.starts_with(b"\x7fELF");
    let text = if is_code {
        cubin::ptx(bytes).map(|embedded| embedded.text).unwrap_or_default()
    } else if let Some(text) = in_fatbin() {
        text
    } else if bytes.first().is_some_and(|byte| b"/.\n \t".contains(byte)) {
        String::from_utf8_lossy(bytes).into_owned()
    } else {
        String::new()
    };
    let kind = match bytes {
        [0x7f, b'E', ..] if text.contains("$traced") => "traced machine code",
        [0x7f, b'E', ..] => "machine code",
        [0x50, 0xed, 0x55, 0xba, ..] => "fatbin",
        _ if text.contains("$traced") => "traced PTX",
        _ => "PTX",
    };
    // Merging and packing run natively.
    let is_tools = text.contains("warptrace_merge") || text.contains("warptrace_gather");
    let program = match (!is_tools).then(|| Program::parse(&text)).transpose() {
        Ok(program) => program,
        Err(error) => {
            say(&format!("cannot interpret: {error}"));
            None
        }
    };
    if !is_tools && !text.contains("warptrace_clocks") {
        say(&format!("image {kind}"));
        // The tracer's machine code has no text.
        if let Some(path) = std::env::var_os("TEST_DRIVER_KEEP").filter(|_| !text.is_empty()) {
            let _ = std::fs::write(path, &text);
        }
    }
    let is_too_new = !is_code && is_too_new(&text);
    Box::leak(Box::new(Image { text, is_code, is_too_new, program, functions: Mutex::default() }))
}

pub fn function(image: &'static Image, name: &str) -> Option<&'static Function> {
    let mut functions = image.functions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = functions.iter().find(|function| function.name == name) {
        return Some(known);
    }
    let parameters = if image.text.is_empty() {
        // Machine code without PTX: any function may exist.
        Vec::new()
    } else {
        let module = Module::parse(&image.text).ok()?;
        let entry = module.definitions().find(|entry| entry.is_entry() && entry.name == name)?;
        entry.params.iter().map(size_of).collect::<Option<Vec<_>>>()?
    };
    let c_name = std::ffi::CString::new(name).ok()?;
    let function: &'static Function = Box::leak(Box::new(Function {
        name: name.to_owned(),
        c_name,
        image,
        parameters,
        max_dynamic_shared: Mutex::new(48 << 10),
    }));
    functions.push(function);
    Some(function)
}

pub fn kernels(image: &Image) -> Vec<String> {
    let module = Module::parse(&image.text).ok();
    let entries = module.iter().flat_map(|module| module.definitions()).filter(|entry| entry.is_entry());
    entries.map(|entry| entry.name.to_owned()).collect()
}

fn size_of(param: &warptrace_ptx::Param<'_>) -> Option<(usize, usize)> {
    let bits: usize = param.ty.trim_start_matches('.').get(1..)?.parse().ok()?;
    let count = match param.dimensions {
        None => 1,
        Some(text) => text.trim_matches(['[', ']']).parse().ok()?,
    };
    Some((bits / 8 * count, param.align.map_or(bits / 8, |align| align as usize)))
}
