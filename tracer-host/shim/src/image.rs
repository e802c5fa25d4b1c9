//! What a program gives the driver to load, and the PTX in it.

use std::ffi::{CStr, c_void};

use warptrace_ptx::points::LineTable;

use crate::cubin::{self, Assembled, Embedded, NoText};
use crate::fatbin::{self, CONTAINER_MAGIC, Entry, FatbinError, Kind, WRAPPER_MAGIC};

/// Machine code is an ELF file.
const ELF_MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");

/// What is traced of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImagePtx {
    /// The text.
    pub(crate) ptx: String,
    /// Where the source has its lines, if the text does not say it.
    pub(crate) lines: Option<LineTable>,
    /// How the program's machine code was made of it.
    pub(crate) assembled: Assembled,
    /// How many registers functions take in the machine code beside it that the device would run.
    pub(crate) registers: Vec<(String, u32)>,
    /// The architectures of the PTX and of that machine code, if the code is of a later one.
    pub(crate) older: Option<(u32, u32)>,
}

impl From<String> for ImagePtx {
    fn from(ptx: String) -> Self {
        Self { ptx, lines: None, assembled: Assembled::default(), registers: Vec::new(), older: None }
    }
}

impl ImagePtx {
    /// Takes the PTX that the assembler has left in machine code.
    fn in_cubin(cubin: &[u8]) -> Result<Self, NoText> {
        let Embedded { text, lines, assembled } = cubin::ptx(cubin)?;
        let registers = cubin::registers(cubin);
        Ok(Self { ptx: text, lines: Some(lines), assembled, registers, older: None })
    }
}

/// Why an image has no PTX that can be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NoPtx {
    /// There is none in it.
    #[error(
        "only machine code; build with -gencode arch=compute_{architecture},code=compute_{architecture} or with -lineinfo, or ask NVRTC for compute_{architecture}{}",
        hint()
    )]
    MachineCode {
        /// That of the device, 90 for `sm_90`.
        architecture: u32,
    },
    /// The text in it cannot be read.
    #[error("{0}")]
    Embedded(NoText),
    /// All of it is for later devices.
    #[error(
        "its PTX is for {found}, and the device is sm_{architecture}: build for compute_{architecture} too"
    )]
    Architecture {
        /// What it is for.
        found: String,
        /// That of the device, 90 for `sm_90`.
        architecture: u32,
    },
    /// The container cannot be read.
    #[error("its fatbin cannot be read: {0}")]
    Fatbin(#[from] FatbinError),
    /// It is nothing that is known here.
    #[error("its image begins with {found:#010x}: neither PTX, machine code nor a fatbin")]
    Unknown {
        /// What it begins with.
        found: u32,
    },
    /// A text that is not UTF-8.
    #[error("its PTX is no text")]
    Text,
}

/// Says why a framework's kernels may have no PTX, if that is known.
fn hint() -> &'static str {
    let is_set =
        |name: &str| std::env::var(name).is_ok_and(|value| !["", "0", "false", "off"].contains(&&*value));
    if is_set("TRITON_DISABLE_LINE_INFO") {
        " (TRITON_DISABLE_LINE_INFO is set, with which Triton's kernels have no PTX)"
    } else {
        ""
    }
}

/// Reads the PTX that suits a device best: of the highest architecture that the device runs.
///
/// # Errors
/// If there is none.
///
/// # Safety
/// `image` is one that the driver would take: PTX that ends in zero, machine code, a fatbin or its wrapper.
pub(crate) unsafe fn ptx_at(image: *const c_void, architecture: u32) -> Result<ImagePtx, NoPtx> {
    if image.is_null() {
        return Err(NoPtx::Unknown { found: 0 });
    }
    // SAFETY: any of them has at least four bytes, or is a text, which ends in zero.
    match unsafe { first_word(image.cast()) } {
        // SAFETY: the caller's promise.
        WRAPPER_MAGIC | CONTAINER_MAGIC => in_fatbin(unsafe { fatbin::container_at(image) }?, architecture),
        magic if is_text(magic) => {
            // SAFETY: the caller's promise.
            ptx_in(unsafe { CStr::from_ptr(image.cast()) }.to_bytes_with_nul(), architecture)
        }
        ELF_MAGIC => {
            // SAFETY: the caller's promise.
            let code = unsafe { cubin::at(image) }.ok_or(NoPtx::MachineCode { architecture })?;
            ptx_in(code, architecture)
        }
        magic => ptx_in(&magic.to_le_bytes(), architecture),
    }
}

/// Like [`ptx_at`], for an image of which all bytes are known, such as that of a file.
///
/// # Errors
/// If there is none.
pub(crate) fn ptx_in(image: &[u8], architecture: u32) -> Result<ImagePtx, NoPtx> {
    let mut first = [0; 4];
    for (to, from) in first.iter_mut().zip(image) {
        *to = *from;
    }
    match u32::from_le_bytes(first) {
        ELF_MAGIC => ImagePtx::in_cubin(image).map_err(|error| match error {
            NoText::Missing => NoPtx::MachineCode { architecture },
            damaged => NoPtx::Embedded(damaged),
        }),
        CONTAINER_MAGIC => in_fatbin(image, architecture),
        magic if is_text(magic) => {
            let end = image.iter().position(|byte| *byte == 0).unwrap_or(image.len());
            String::from_utf8(image[..end].to_vec()).map(ImagePtx::from).map_err(|_| NoPtx::Text)
        }
        found => Err(NoPtx::Unknown { found }),
    }
}

/// Reads the first four bytes, or zeros behind the first zero.
///
/// # Safety
/// As many bytes can be read, or one of zero before.
unsafe fn first_word(image: *const u8) -> u32 {
    let mut bytes = [0; 4];
    for (at, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: no byte before it was zero.
        *byte = unsafe { *image.add(at) };
        if *byte == 0 {
            break;
        }
    }
    u32::from_le_bytes(bytes)
}

/// Tells whether a text may begin so: printable characters and spaces.
fn is_text(magic: u32) -> bool {
    let mut bytes = magic.to_le_bytes().into_iter().take_while(|byte| *byte != 0).peekable();
    bytes.peek().is_some() && bytes.all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// Chooses among the PTX texts of a fatbin: that of the machine code which the device would run, if none of
/// the same architecture stands beside it, or else the one of the highest architecture that the device runs.
fn in_fatbin(container: &[u8], architecture: u32) -> Result<ImagePtx, NoPtx> {
    let all = fatbin::entries(container)?;
    let mut found: Vec<Entry<'_>> = all.iter().copied().filter(|entry| entry.kind == Kind::Ptx).collect();
    found.sort_by_key(|entry| std::cmp::Reverse(entry.architecture));
    let code = machine_code(&all, architecture);
    let cubin = code.and_then(|code| code.bytes().ok());
    let is_beside = |entry: &Entry<'_>| code.is_some_and(|code| code.architecture <= entry.architecture);
    if let Some(cubin) = cubin.as_ref().filter(|_| !found.iter().any(is_beside))
        && let Ok(embedded) = ImagePtx::in_cubin(cubin)
    {
        return Ok(embedded);
    }
    if found.is_empty() {
        return Err(NoPtx::MachineCode { architecture });
    }
    for entry in found.iter().filter(|entry| entry.architecture <= architecture) {
        let text = entry.text()?;
        if runs_on(&text, architecture) {
            let registers = cubin.as_deref().map(cubin::registers).unwrap_or_default();
            let later = code.map(|code| code.architecture).filter(|later| *later > entry.architecture);
            let older = later.map(|later| (entry.architecture, later));
            return Ok(ImagePtx { registers, older, ..ImagePtx::from(text) });
        }
    }
    let list: Vec<String> = found.iter().map(|entry| format!("sm_{}", entry.architecture)).collect();
    Err(NoPtx::Architecture { found: list.join(", "), architecture })
}

/// Finds the machine code that a device would run: of its own architecture, or the highest of the same
/// generation below.
fn machine_code<'e, 'f>(entries: &'e [Entry<'f>], architecture: u32) -> Option<&'e Entry<'f>> {
    let suits = |entry: &&Entry<'_>| {
        entry.kind == Kind::Elf
            && entry.architecture <= architecture
            && entry.architecture / 10 == architecture / 10
    };
    entries.iter().filter(suits).max_by_key(|entry| entry.architecture)
}

/// Returns whether a device runs PTX: `sm_90a` runs on that architecture only, `sm_100f` on those of one
/// family.
fn runs_on(text: &str, architecture: u32) -> bool {
    let Some(target) = text.lines().find_map(|line| line.trim_start().strip_prefix(".target")) else {
        return false;
    };
    let Some(name) = target.split([',', ' ', '\t']).find_map(|word| word.strip_prefix("sm_")) else {
        return false;
    };
    let digits = name.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let Ok(number) = digits.parse::<u32>() else { return false };
    match &name[digits.len()..] {
        "" => number <= architecture,
        "a" => number == architecture,
        "f" => number / 10 == architecture / 10 && number <= architecture,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(bytes: &[u8]) -> Result<String, NoPtx> {
        // SAFETY: each ends in zero, or is longer than what its header says.
        unsafe { ptx_at(bytes.as_ptr().cast(), 90) }.map(|found| found.ptx)
    }

    #[test]
    fn images_are_told_by_their_first_bytes() {
        assert_eq!(text_of(b"//\n.version 8.0\0").unwrap(), "//\n.version 8.0");
        let mut header = [0; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        assert_eq!(text_of(&header), Err(NoPtx::MachineCode { architecture: 90 }));
        assert_eq!(text_of(b"\0"), Err(NoPtx::Unknown { found: 0 }));
        assert_eq!(text_of(b"\x7f\x7f\x01\0"), Err(NoPtx::Unknown { found: 0x01_7f7f }));
        assert_eq!(text_of(b".v\xff\xff.\0"), Err(NoPtx::Unknown { found: 0xffff_762e }));
        assert_eq!(text_of(b".ver\xff\0"), Err(NoPtx::Text));
    }

    #[test]
    fn targets_with_letters_run_on_few_devices() {
        for (target, runs) in [
            ("sm_75", true),
            ("sm_90", true),
            ("sm_90a, debug", true),
            ("sm_89a", false),
            ("sm_100", false),
            ("sm_90f", true),
            ("sm_80f", false),
            ("sm_90x", false),
            ("compute_90", false),
        ] {
            let text = format!(".version 8.0\n  .target {target}\n.address_size 64");
            assert_eq!(runs_on(&text, 90), runs, "{target}");
        }
        assert!(!runs_on("", 90));
    }
}
