//! Finds the PTX in images that a program passes to the driver.

use std::ffi::{CStr, c_void};
use std::fmt;

use warptrace_ptx::points::LineTable;

use crate::cubin::{self, Assembled, Embedded, NoText};
use crate::exchange::LAUNCHES_KERNELS;
use crate::fatbin::{self, CONTAINER_MAGIC, Entry, FatbinError, Kind, WRAPPER_MAGIC};

const ELF_MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");

/// The PTX of an image, with the data needed to trace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImagePtx {
    pub(crate) ptx: String,
    /// The source lines, if the text has no `.loc` directives for them.
    pub(crate) lines: Option<LineTable>,
    /// How the program's cubin was assembled from the text.
    pub(crate) assembled: Assembled,
    /// Registers of each function in the cubin that the device would run.
    pub(crate) registers: Vec<(String, u32)>,
    /// Set if the cubin is for another architecture than the PTX.
    pub(crate) other: Option<OtherArchitecture>,
}

/// Architectures of an image's PTX and cubin that differ. The source may compile differently for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherArchitecture {
    /// Number and letter, as in `90a`.
    ptx: String,
    code: String,
}

impl fmt::Display for OtherArchitecture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ptx, code } = self;
        write!(
            out,
            "its PTX is for compute_{ptx}, and its machine code for sm_{code}, which may compute something else"
        )
    }
}

impl OtherArchitecture {
    pub(crate) fn refusal(&self) -> String {
        let code = &self.code;
        format!(
            "{self}: build with -gencode arch=compute_{code},code=[compute_{code},sm_{code}], or trace the PTX with \
             --other-architecture"
        )
    }

    /// Returns the remark on a traced kernel: it may compute something else than the cubin.
    pub(crate) fn remark(&self) -> String {
        format!("{self}; the PTX was traced, as --other-architecture asks")
    }
}

impl From<String> for ImagePtx {
    fn from(ptx: String) -> Self {
        Self { ptx, lines: None, assembled: Assembled::default(), registers: Vec::new(), other: None }
    }
}

impl ImagePtx {
    /// Reads the PTX that the assembler embedded in a cubin.
    fn in_cubin(cubin: &[u8]) -> Result<Self, NoText> {
        let Embedded { text, lines, assembled } = cubin::ptx(cubin)?;
        let registers = cubin::registers(cubin);
        Ok(Self { ptx: text, lines: Some(lines), assembled, registers, other: None })
    }
}

/// Reasons why an image has no PTX that can be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NoPtx {
    #[error(
        "only machine code; build with -gencode arch=compute_{architecture},code=compute_{architecture} or with -lineinfo, or ask NVRTC for compute_{architecture}{}{}",
        hint(),
        if *launches { "; kernels that its kernels launch are not seen either" } else { "" }
    )]
    MachineCode {
        /// The device's architecture: 90 for `sm_90`.
        architecture: u32,
        /// True if kernels of the image may launch kernels.
        launches: bool,
    },
    #[error("{0}")]
    Embedded(NoText),
    #[error(
        "its PTX is for {found}, and the device is sm_{architecture}: build for compute_{architecture} too"
    )]
    Architecture {
        /// The architectures of the PTX, as a list.
        found: String,
        architecture: u32,
    },
    #[error("its fatbin cannot be read: {0}")]
    Fatbin(#[from] FatbinError),
    #[error("its image begins with {found:#010x}: neither PTX, machine code nor a fatbin")]
    Unknown {
        /// The image's first four bytes.
        found: u32,
    },
    #[error("its PTX is no text")]
    Text,
}

impl NoPtx {
    fn machine_code(architecture: u32, cubin: Option<&[u8]>) -> Self {
        let launches = cubin.is_some_and(|cubin| cubin::names_any(cubin, LAUNCHES_KERNELS));
        Self::MachineCode { architecture, launches }
    }
}

/// Returns a hint why a framework's kernels have no PTX, or an empty string.
fn hint() -> &'static str {
    let is_set =
        |name: &str| std::env::var(name).is_ok_and(|value| !["", "0", "false", "off"].contains(&&*value));
    if is_set("TRITON_DISABLE_LINE_INFO") {
        " (TRITON_DISABLE_LINE_INFO is set, with which Triton's kernels have no PTX)"
    } else {
        ""
    }
}

/// Returns the image's PTX that suits a device best. [`in_fatbin`] has the rules for fatbins.
///
/// # Safety
/// `image` is null or valid for the driver: PTX that ends in a zero byte, a cubin, a fatbin, or its wrapper.
pub(crate) unsafe fn ptx_at(image: *const c_void, architecture: u32) -> Result<ImagePtx, NoPtx> {
    if image.is_null() {
        return Err(NoPtx::Unknown { found: 0 });
    }
    // SAFETY: an image has at least four bytes or is a text that ends in a zero byte.
    match unsafe { first_word(image.cast()) } {
        // SAFETY: guaranteed by the caller.
        WRAPPER_MAGIC | CONTAINER_MAGIC => in_fatbin(unsafe { fatbin::container_at(image) }?, architecture),
        magic if is_text(magic) => {
            // SAFETY: guaranteed by the caller.
            ptx_in(unsafe { CStr::from_ptr(image.cast()) }.to_bytes_with_nul(), architecture)
        }
        ELF_MAGIC => {
            // SAFETY: guaranteed by the caller.
            let code = unsafe { cubin::at(image) }.ok_or(NoPtx::machine_code(architecture, None))?;
            ptx_in(code, architecture)
        }
        magic => ptx_in(&magic.to_le_bytes(), architecture),
    }
}

/// Like [`ptx_at`], for an image of known size, such as a file's contents.
pub(crate) fn ptx_in(image: &[u8], architecture: u32) -> Result<ImagePtx, NoPtx> {
    let mut first = [0; 4];
    for (to, from) in first.iter_mut().zip(image) {
        *to = *from;
    }
    match u32::from_le_bytes(first) {
        ELF_MAGIC => ImagePtx::in_cubin(image).map_err(|error| match error {
            NoText::Missing => NoPtx::machine_code(architecture, Some(image)),
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

/// Reads four bytes, or up to the first zero byte, as a little-endian number. Unread bytes are 0.
///
/// # Safety
/// Four bytes can be read, or all bytes up to a zero byte among them.
unsafe fn first_word(image: *const u8) -> u32 {
    let mut bytes = [0; 4];
    for (at, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: all bytes before this one were nonzero.
        *byte = unsafe { *image.add(at) };
        if *byte == 0 {
            break;
        }
    }
    u32::from_le_bytes(bytes)
}

/// Returns true if a text may begin with these bytes: printable ASCII or whitespace, up to a zero byte.
fn is_text(magic: u32) -> bool {
    let mut bytes = magic.to_le_bytes().into_iter().take_while(|byte| *byte != 0).peekable();
    bytes.peek().is_some() && bytes.all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// Environment variables that make the driver compile PTX even if the image has a cubin for the device.
const FORCE_PTX: [&str; 2] = ["CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"];

/// Chooses a fatbin's PTX: the text for the architecture of the cubin that the device would run, or the text
/// in that cubin, or the text for the highest architecture that the device runs.
fn in_fatbin(container: &[u8], architecture: u32) -> Result<ImagePtx, NoPtx> {
    let all = fatbin::entries(container)?;
    let mut found: Vec<Entry<'_>> = all.iter().copied().filter(|entry| entry.kind == Kind::Ptx).collect();
    found.sort_by_key(|entry| std::cmp::Reverse(entry.architecture));
    let is_forced = FORCE_PTX.iter().any(|name| std::env::var(name).is_ok_and(|value| value == "1"));
    let code = machine_code(&all, architecture).filter(|_| !is_forced);
    let cubin = code.and_then(|code| code.bytes().ok());
    let made_for = code.map(|code| code.target());
    let mut texts = Vec::new();
    for entry in found.iter().filter(|entry| entry.architecture <= architecture) {
        let text = entry.text()?;
        if let Some(target) = target_of(&text).filter(|target| target.runs_on(architecture)) {
            let target = target.to_string();
            if made_for.as_ref().is_none_or(|made_for| *made_for == target) {
                let (assembled, registers) = match cubin.as_deref() {
                    Some(cubin) => (cubin::assembled(cubin), cubin::registers(cubin)),
                    None => Default::default(),
                };
                return Ok(ImagePtx { assembled, registers, ..ImagePtx::from(text) });
            }
            texts.push((target, text));
        }
    }
    let embedded = cubin.as_deref().map(ImagePtx::in_cubin);
    match (embedded, texts.into_iter().next(), made_for) {
        (Some(Ok(embedded)), ..) => Ok(embedded),
        (_, Some((ptx, text)), made_for) => {
            let registers = cubin.as_deref().map(cubin::registers).unwrap_or_default();
            let other = made_for.map(|code| OtherArchitecture { ptx, code });
            Ok(ImagePtx { registers, other, ..ImagePtx::from(text) })
        }
        (Some(Err(damaged @ (NoText::Damaged(_) | NoText::Parts(_)))), ..) => Err(NoPtx::Embedded(damaged)),
        _ if found.is_empty() => Err(NoPtx::machine_code(architecture, cubin.as_deref())),
        _ => {
            let list: Vec<String> = found.iter().map(|entry| format!("sm_{}", entry.architecture)).collect();
            Err(NoPtx::Architecture { found: list.join(", "), architecture })
        }
    }
}

/// Returns the cubin that a device would run: the highest of its generation, up to its own architecture.
fn machine_code<'e, 'f>(entries: &'e [Entry<'f>], architecture: u32) -> Option<&'e Entry<'f>> {
    let suits = |entry: &&Entry<'_>| {
        entry.kind == Kind::Elf
            && entry.architecture <= architecture
            && entry.architecture / 10 == architecture / 10
            && (!entry.is_specific() || entry.architecture == architecture)
    };
    // Code for one architecture takes precedence over code that later architectures run, too.
    entries.iter().filter(suits).max_by_key(|entry| (entry.architecture, entry.is_specific()))
}

/// The target of PTX. `sm_90a` has the number 90 and the letter `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target<'a> {
    number: u32,
    letter: &'a str,
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.number, self.letter)
    }
}

impl Target<'_> {
    /// Returns true if a device runs the target. `sm_90a` runs only on sm_90, `sm_100f` only on its family.
    fn runs_on(self, architecture: u32) -> bool {
        match self.letter {
            "" => self.number <= architecture,
            "a" => self.number == architecture,
            "f" => self.number / 10 == architecture / 10 && self.number <= architecture,
            _ => false,
        }
    }
}

fn target_of(text: &str) -> Option<Target<'_>> {
    let target = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let name = target.split([',', ' ', '\t']).find_map(|word| word.strip_prefix("sm_"))?;
    let digits = name.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    Some(Target { number: digits.parse().ok()?, letter: &name[digits.len()..] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(bytes: &[u8]) -> Result<String, NoPtx> {
        // SAFETY: each text ends in a zero byte, and the ELF header is complete.
        unsafe { ptx_at(bytes.as_ptr().cast(), 90) }.map(|found| found.ptx)
    }

    #[test]
    fn images_are_told_by_their_first_bytes() {
        assert_eq!(text_of(b"//\n.version 8.0\0").unwrap(), "//\n.version 8.0");
        let mut header = [0; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        assert_eq!(text_of(&header), Err(NoPtx::machine_code(90, None)));
        assert_eq!(text_of(b"\0"), Err(NoPtx::Unknown { found: 0 }));
        assert_eq!(text_of(b"\x7f\x7f\x01\0"), Err(NoPtx::Unknown { found: 0x01_7f7f }));
        assert_eq!(text_of(b".v\xff\xff.\0"), Err(NoPtx::Unknown { found: 0xffff_762e }));
        assert_eq!(text_of(b".ver\xff\0"), Err(NoPtx::Text));
    }

    /// The target of a PTX text, such as `sm_80`, or a cubin; its architecture; its flags.
    type TestImage<'a> = (&'a [u8], u32, u64);

    fn fatbin_of(images: &[TestImage<'_>]) -> Vec<u8> {
        let mut body = Vec::new();
        for (image, architecture, flags) in images {
            let text = format!(".version 8.0\n.target {}\n", String::from_utf8_lossy(image));
            let (kind, payload) =
                if image.starts_with(b"\x7fELF") { (2, *image) } else { (1, text.as_bytes()) };
            let mut header = [0; 64];
            header[..2].copy_from_slice(&u16::to_le_bytes(kind));
            header[4..8].copy_from_slice(&u32::to_le_bytes(64));
            header[8..16].copy_from_slice(&u64::to_le_bytes(payload.len() as u64));
            header[28..32].copy_from_slice(&architecture.to_le_bytes());
            header[40..48].copy_from_slice(&flags.to_le_bytes());
            body.extend([&header, payload].concat());
        }
        let bytes = body.len() as u64;
        [&CONTAINER_MAGIC.to_le_bytes()[..], &[1, 0, 16, 0], &bytes.to_le_bytes(), &body].concat()
    }

    #[test]
    fn ptx_is_that_of_the_machine_code_or_differs_from_it() {
        let fatbin = include_bytes!("../tests/data/kernels-cubin.fatbin");
        let code = fatbin::entries(fatbin).unwrap()[0].bytes().unwrap();
        let (code, with_ptx) = (&*code, include_bytes!("../tests/data/triton/collatz.cubin").as_slice());
        const SPECIFIC: u64 = 0x10_0000;
        // For an H100 (sm_90): images, target of the chosen PTX, reported difference from the cubin.
        let ways: &[(&[TestImage<'_>], &str, Option<&str>)] = &[
            (&[(b"sm_90", 90, 0), (code, 90, 0)], "sm_90", None),
            (
                &[(b"sm_80", 80, 0), (code, 90, 0)],
                "sm_80",
                Some("compute_80, and its machine code for sm_90,"),
            ),
            (&[(b"sm_80", 80, 0), (b"sm_90", 90, 0), (code, 90, 0)], "sm_90", None),
            (
                &[(b"sm_90", 90, 0), (code, 90, SPECIFIC)],
                "sm_90",
                Some("compute_90, and its machine code for sm_90a,"),
            ),
            (&[(b"sm_90a", 90, SPECIFIC), (code, 90, SPECIFIC)], "sm_90a", None),
            (&[(b"sm_90a", 90, SPECIFIC), (b"sm_90", 90, 0), (code, 90, 0)], "sm_90", None),
            (
                &[(b"sm_90a", 90, SPECIFIC), (code, 90, 0)],
                "sm_90a",
                Some("compute_90a, and its machine code for sm_90,"),
            ),
            (
                &[(b"sm_90", 90, 0), (code, 90, 0), (code, 90, SPECIFIC)],
                "sm_90",
                Some("compute_90, and its machine code for sm_90a,"),
            ),
            // The device runs neither code of another generation nor code of a later architecture.
            (&[(b"sm_80", 80, 0), (code, 80, 0), (code, 100, 0)], "sm_80", None),
            (&[(b"sm_80", 80, 0), (with_ptx, 90, 0)], "sm_90a", None),
            (&[(b"sm_80", 80, 0)], "sm_80", None),
            (&[(b"sm_80", 80, 0), (b"sm_100", 100, 0)], "sm_80", None),
        ];
        for (number, (images, target, other)) in ways.iter().enumerate() {
            let found = ptx_in(&fatbin_of(images), 90).unwrap();
            assert!(found.ptx.contains(&format!(".target {target}\n")), "{number}: {:.99}", found.ptx);
            let said = found.other.map(|other| other.to_string()).unwrap_or_default();
            assert!(
                said.contains(other.unwrap_or_default()) && said.is_empty() == other.is_none(),
                "{number}: {said}"
            );
        }
        let later = ptx_in(&fatbin_of(&[(b"sm_100", 100, 0), (code, 90, 0)]), 90);
        assert!(matches!(later, Err(NoPtx::Architecture { .. })), "{later:?}");
        let older = ptx_in(&fatbin_of(&[(b"sm_80", 80, 0), (code, 86, 0)]), 89).unwrap();
        assert!(older.other.is_some());
    }

    #[test]
    fn options_are_those_of_the_machine_code_beside_the_ptx() {
        let found = ptx_in(include_bytes!("../tests/data/parts/o1.fatbin"), 90).unwrap();
        assert_eq!((&*found.assembled.tool, &*found.assembled.options.join(" ")), ("ptxas", "-O 1"));
        assert_eq!((found.lines, found.other), (None, None));
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
            assert_eq!(target_of(&text).is_some_and(|target| target.runs_on(90)), runs, "{target}");
        }
        assert_eq!(target_of(""), None);
    }
}
