//! Tests with fatbins that nvcc made from `tests/data/kernels.cu`, and with damaged ones.

use proptest::prelude::*;

use super::*;

const NONE: &[u8] = include_bytes!("../../tests/data/kernels-none.fatbin");
const LZ4: &[u8] = include_bytes!("../../tests/data/kernels-speed.fatbin");
const ZSTD: &[u8] = include_bytes!("../../tests/data/kernels-size.fatbin");
const CUBIN: &[u8] = include_bytes!("../../tests/data/kernels-cubin.fatbin");

#[test]
fn entries_are_listed_and_texts_read() {
    for (name, fatbin) in [("none", NONE), ("LZ4", LZ4), ("zstd", ZSTD)] {
        let entries = entries(fatbin).unwrap();
        let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.architecture)).collect();
        assert_eq!(kinds, [(Kind::Ptx, 75), (Kind::Ptx, 80), (Kind::Elf, 90)], "{name}");
        let text = entries[1].text().unwrap();
        assert!(text.contains(".target sm_80") && text.contains(".entry walk("), "{name}");
        assert!(text.trim_end().ends_with('}'), "{name}: the whole text is there");
    }
    let kinds: Vec<_> = entries(CUBIN).unwrap().iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Elf]);
}

#[test]
fn wrappers_lead_to_containers() {
    let wrapper = [u64::from(WRAPPER_MAGIC) | 1 << 32, LZ4.as_ptr().expose_provenance() as u64, 0];
    // SAFETY: a container, and a wrapper with its address at offset 8.
    let (inner, outer) = unsafe {
        (container_at(LZ4.as_ptr().cast()).unwrap(), container_at((&raw const wrapper).cast()).unwrap())
    };
    assert_eq!((inner, outer.len()), (LZ4, LZ4.len()));
    // SAFETY: four readable bytes. They are no magic number, so nothing else is read.
    let error = unsafe { container_at([1_u8, 2, 3, 4].as_ptr().cast()) }.unwrap_err();
    assert_eq!(error, FatbinError::Magic { found: 0x0403_0201 });
}

#[test]
fn what_is_cut_off_is_an_error() {
    for length in [0, 3, 15] {
        assert!(matches!(entries(&NONE[..length]), Err(FatbinError::Magic { .. })), "{length}");
    }
    assert_eq!(entries(&NONE[..16]).unwrap().len(), 0);
    let error = entries(&NONE[..200]).unwrap_err();
    assert_eq!(error, FatbinError::Truncated { entry: 0, offset: 16 });
}

#[test]
fn lengths_that_lie_take_no_memory() {
    for (fatbin, problem) in [(LZ4, "cannot be read"), (ZSTD, "")] {
        let mut damaged = fatbin.to_vec();
        damaged[16 + 56..16 + 64].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = entries(&damaged).unwrap()[0].text().unwrap_err();
        assert!(matches!(error, FatbinError::Long { entry: 0, bytes: u64::MAX }), "{error}");
        damaged[16 + 56..16 + 64].copy_from_slice(&(200_u64 << 20).to_le_bytes());
        let outcome = entries(&damaged).unwrap()[0].text();
        // The frame of zstd has the length of the text.
        assert_eq!(outcome.is_ok(), problem.is_empty(), "{outcome:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(at in 0_usize..2048, value: u8, cut in 0_usize..6000, which in 0_usize..3) {
        let mut bytes = [NONE, LZ4, ZSTD][which].to_vec();
        bytes[at] = value;
        bytes.truncate(bytes.len().saturating_sub(cut));
        for entry in entries(&bytes).unwrap_or_default() {
            let _ = entry.text();
        }
    }

    #[test]
    fn nor_do_bytes_of_any_kind(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for (byte, magic) in bytes.iter_mut().zip(CONTAINER_MAGIC.to_le_bytes()) {
            *byte = magic;
        }
        for entry in entries(&bytes).unwrap_or_default() {
            let _ = entry.text();
        }
    }
}
